"""Rows of counts: `n` trials, the row's total, shared out to columns with probabilities `p_k ∝ exp(θ_k)`, `θ_0 = 0`.

The power integral is the sum over all rows of counts with the same total,

    I(n) = Σ_{|x| = n} (n! / Π_k x_k!  Π_k p_k^x_k)^(1+β) = n!^(1+β) · (b_1 * … * b_K)(n),  b_k(j) = (p_k^j / j!)^(1+β),

a K-fold convolution: exact, for all totals up to `SUMMED` at once, in `K · SUMMED²` operations in place of an
enumeration. For larger totals the local limit theorem makes `I(n)` proportional to `n^(−β (K−1)/2)`, up to a relative
error of order 1/n; it is continued from `SUMMED` by this law.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from betacores.models.base import Model, Rows
from betacores.models.cells import not_whole, refuse
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.models.scaled import clean_share

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Totals up to this are summed exactly.
SUMMED = 64
# Counts in single precision are whole up to this.
LARGEST = 1e6
WIDTH = 3.0


@final
class MultinomialDensity(Model):
    """Rows of counts, each a number of trials shared out to the columns.

    Parameters
    ----------
    prior
        Prior of the log-odds of every column against the first; independent N(0, 3²) if not given.
    clean
        The share of clean rows, for which `summarize` has an estimate too; see `betacores.clean_share`.
    """

    name: ClassVar[str] = "multinomial"
    movable: ClassVar[bool] = False

    def __init__(self, prior: GaussianPrior | None = None, clean: float | Literal["auto"] = "auto"):
        self.prior = prior or gaussian_prior(0.0, WIDTH**2)
        self.clean = clean_share(clean)
        self.typical: Any = 0.0
        self.trials = 1.0

    def check_rows(self, x: np.ndarray, columns: list[str]) -> Model:
        """Refuse cells that are no counts, and a table of one column."""
        if len(columns) < 2:
            raise ValueError("data: trials are shared out to at least two columns, got one; pass the others' counts.")
        refuse(x, columns, not_whole(x), "counts: whole numbers, 0 or more", "drop these rows, or round them")
        return self

    def settled(self, rows: Rows) -> Model:
        """Return the model with typical log-odds and a typical total taken from dirty rows."""
        if np.ndim(self.typical):
            return self
        total = float(np.median(np.asarray(rows.x, np.float64).sum(1)))
        return self.replaced(typical=self.robust_start(rows), trials=max(total, 1.0))

    def parameter_count(self, columns: int) -> int:
        """One log-odds a column but the first."""
        return columns - 1

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Log-odds carry their column's name."""
        return [f"log_odds {column}" for column in columns[1:]]

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-probability of one row, given its total."""
        x = jnp.clip(row.x, 0.0, LARGEST)
        coefficient = gammaln(x.sum(-1) + 1) - gammaln(x + 1).sum(-1)
        return coefficient + x @ _log_probabilities(theta)

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        return self.prior.log_density(theta)

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the sum over all rows of counts with the same total."""
        return jnp.exp(self.log_power_integral(theta, row, beta))

    def log_power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        total = jnp.clip(row.x, 0.0, LARGEST).sum(-1)
        return _at(total, _log_integrals(_log_probabilities(theta), beta), row.x.shape[-1], beta)

    def log_reference(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral for typical log-odds and a typical total."""
        typical = jnp.broadcast_to(jnp.asarray(self.typical, jnp.result_type(float)), (columns - 1,))
        return _at(jnp.asarray(self.trials), _log_integrals(_log_probabilities(typical), beta), columns, beta)

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from the median shares of the columns."""
        x = np.asarray(rows.x, np.float64) + 0.5 / np.shape(rows.x)[1]
        shares = np.median(x / x.sum(1, keepdims=True), axis=0)
        return np.log(shares[1:] / shares[0])


def _log_probabilities(theta: Float[Array, " p"]) -> Float[Array, " k"]:
    return jax.nn.log_softmax(jnp.concatenate([jnp.zeros_like(theta[:1]), theta]))


def _log_integrals(log_p: Float[Array, " k"], beta: Float[Array, ""]) -> Float[Array, " totals"]:
    """Return `log I(n)` for n = 0, …, SUMMED."""
    counts = np.arange(SUMMED + 1)
    log_factorial = gammaln(counts + jnp.ones_like(log_p[:1]))
    # What is left for the column that comes, and where there is nothing left.
    left = counts[:, None] - counts
    impossible = jnp.where(left < 0, -jnp.inf, 0.0).astype(log_p.dtype)

    def add(total: Float[Array, " n"], log_p_k: Float[Array, ""]) -> tuple[Array, None]:
        own = (1 + beta) * (counts * log_p_k - log_factorial)
        return jax.nn.logsumexp(total[np.maximum(left, 0)] + own + impossible, axis=1), None

    first = (1 + beta) * (counts * log_p[0] - log_factorial)
    total, _ = jax.lax.scan(add, first, log_p[1:])
    return total + (1 + beta) * log_factorial


def _at(total: Array, table: Float[Array, " n"], columns: int, beta: Float[Array, ""]) -> Array:
    beyond = jnp.log(jnp.maximum(total, SUMMED) / SUMMED)
    place = jnp.clip(jnp.round(total), 0, SUMMED).astype(jnp.int32)
    return table[place] - 0.5 * beta * (columns - 1) * beyond
