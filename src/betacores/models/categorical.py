"""Rows of categories: independent columns of codes 0, 1, 2, …, with probabilities `p_jk ∝ exp(θ_jk)`, `θ_j0 = 0`.

The power integral is a finite sum, `Π_j Σ_k p_jk^(1+β)`. A row is an outlier for holding several rare codes at once.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Model, Rows
from betacores.models.cells import not_whole, refuse
from betacores.models.family import ExponentialFamily
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.models.scaled import clean_share

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# A column of more codes is hardly one of categories.
MOST_LEVELS = 1000
# The default prior of log-odds, wide enough for levels of one row in a thousand.
WIDTH = 3.0


@final
class CategoricalDensity(ExponentialFamily):
    """Rows of independent categories, coded by whole numbers from 0.

    Parameters
    ----------
    levels
        How many codes each column has; ``"auto"`` takes those of the table.
    prior
        Prior of the log-odds of every code against code 0 of its column; independent N(0, 3²) if not given.
    clean
        The share of clean rows, for which `summarize` has an estimate too; see `betacores.clean_share`.
    """

    name: ClassVar[str] = "categorical"
    movable: ClassVar[bool] = False

    def __init__(
        self,
        levels: tuple[int, ...] | Literal["auto"] = "auto",
        prior: GaussianPrior | None = None,
        clean: float | Literal["auto"] = "auto",
    ):
        self.fixed = levels != "auto"
        self.levels = tuple(int(count) for count in levels) if self.fixed else ()
        if any(count < 2 for count in self.levels):
            raise ValueError(f"levels: every column needs at least two codes, got {levels!r}.")
        self.prior = prior or gaussian_prior(0.0, WIDTH**2)
        self.clean = clean_share(clean)
        self.typical: Any = 0.0

    def check_rows(self, x: np.ndarray, columns: list[str]) -> Model:
        """Refuse cells that are no codes, and take the numbers of levels from the others unless they were given."""
        refuse(x, columns, not_whole(x), "codes: whole numbers from 0", "encode the categories as 0, 1, 2 and so on")
        most = self.levels if self.fixed else (MOST_LEVELS,) * len(columns)
        if len(most) != len(columns):
            raise ValueError(f"levels: they are for {len(most)} columns, the data have {len(columns)}.")
        remedy = "leave levels out, or recode" if self.fixed else "recode rare ones together"
        refuse(x, columns, x >= np.asarray(most), f"codes below {max(most)}", remedy)
        if self.fixed:
            return self
        seen = x.max(axis=0).astype(int) + 1
        before = self.levels or (2,) * len(columns)
        return self.replaced(levels=tuple(max(2, int(a), b) for a, b in zip(seen, before, strict=True)))

    def settled(self, rows: Rows) -> Model:
        """Return the model with typical log-odds taken from dirty rows."""
        return self.replaced(typical=self.robust_start(rows)) if np.ndim(self.typical) == 0 else self

    def parameter_count(self, columns: int) -> int:
        """One log-odds a code but the first of each column."""
        if len(self.levels) != columns:
            raise ValueError(
                f"levels: they are known for {len(self.levels)} columns, the data have {columns}; pass levels, one a "
                "column."
            )
        return sum(self.levels) - columns

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Log-odds carry their column's name and the code."""
        return [f"{c} = {k}" for c, count in zip(columns, self.levels, strict=True) for k in range(1, count)]

    def statistics(self, rows: Rows) -> Float[Array, "*n q"]:
        """Return one, and for every code of every column whether it is the row's."""
        codes = [jnp.arange(count, dtype=rows.x.dtype) for count in self.levels]
        own = [jnp.clip(jnp.round(rows.x[..., j : j + 1]), 0, count - 1) for j, count in enumerate(self.levels)]
        told = [(mine == all_of_them).astype(rows.x.dtype) for mine, all_of_them in zip(own, codes, strict=True)]
        return jnp.concatenate([jnp.ones_like(rows.x[..., :1]), *told], axis=-1)

    def natural(self, theta: Float[Array, " p"], columns: int) -> Float[Array, " q"]:
        """Return the log-probabilities of all codes."""
        del columns
        return jnp.concatenate([jnp.zeros_like(theta[:1]), *self._log_probabilities(theta)])

    def log_integral(self, theta: Any, columns: int, beta: Any) -> Float[Array, ""]:
        """Return the log of the power integral: a sum over codes, for every column."""
        del columns
        parts = [jax.nn.logsumexp((1 + beta) * log_p) for log_p in self._log_probabilities(theta)]
        return jnp.stack(parts).sum()

    def log_reference(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral for the typical log-odds."""
        at = jnp.broadcast_to(jnp.asarray(self.typical, jnp.result_type(float)), (self.parameter_count(columns),))
        return self.log_integral(at, columns, beta)

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        return self.prior.log_density(theta)

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from the frequencies of the codes, each counted half a time more."""
        codes = np.clip(np.round(np.asarray(rows.x, np.float64)), 0, np.asarray(self.levels) - 1).astype(int)
        counts = [np.bincount(codes[:, j], minlength=count) + 0.5 for j, count in enumerate(self.levels)]
        return np.concatenate([np.log(many[1:] / many[0]) for many in counts])

    def _log_probabilities(self, theta: Float[Array, " p"]) -> list[Array]:
        ends = np.cumsum([0, *(count - 1 for count in self.levels)])
        parts = [jnp.concatenate([jnp.zeros_like(theta[:1]), theta[a:b]]) for a, b in itertools.pairwise(ends)]
        return [jax.nn.log_softmax(part) for part in parts]
