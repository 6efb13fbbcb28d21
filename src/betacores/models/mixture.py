"""Mixture of K Gaussians with independent columns: `m(x) = Σ_k π_k N(x; μ_k, diag σ_k²)`, `π = softmax`.

See `mixture_density` for the power integral, and `mixture_start` for where the search for the mode starts.

The posterior is the same for every order of the components. The search for its mode starts with them in the order of
their means in the first column, and draws around the mode stay there; `ordered` puts any draw in that order. Unknown
scales ask for a typical one, the share of clean rows and a proper prior: `betacores.models.scaled`. The prior keeps
components from collapsing onto single rows, too.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Model, Rows
from betacores.models.mixture_density import Components, integral_bounds, log_density, log_integral
from betacores.models.mixture_start import clustered
from betacores.models.prior import GaussianPrior, check_length
from betacores.models.scaled import ESCAPE, clean_share, held

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# The default prior of a mean is so many typical standard deviations wide.
WIDTH = 3.0


@final
class GaussianMixture(Model):
    """Rows from a few Gaussian clusters with independent columns.

    Parameters
    ----------
    components
        How many.
    prior
        Prior of all parameters: log-odds of the components against the first, means and logarithms of the standard
        deviations, component by component. If not given, independent: N(0, 1) for log-odds, N(m, (3 s)²) for a mean,
        N(log s, 1) for the logarithm of a standard deviation, with the typical location m and scale s of the column.
    clean
        The share of clean rows, for which `summarize` has an estimate too; see `betacores.clean_share`.
    """

    name: ClassVar[str] = "gaussian-mixture"

    def __init__(
        self, components: int = 2, prior: GaussianPrior | None = None, clean: float | Literal["auto"] = "auto"
    ):
        if isinstance(components, bool) or not isinstance(components, (int, np.integer)) or components < 1:
            raise ValueError(f"components: expected a whole number, 1 or more, got {components!r}.")
        self.components = int(components)
        self.own_prior = prior
        self.clean = clean_share(clean)
        self.settles = True
        # Location and scale of each column, and a typical parameter.
        self.centre: Any = 0.0
        self.spread: Any = 1.0
        self.typical: Any = 0.0

    def parameter_count(self, columns: int) -> int:
        """Log-odds, means and scales."""
        return self.components - 1 + 2 * self.components * columns

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Parameters carry the number of the component and the column's name."""
        odds = [f"log_odds {k}" for k in range(1, self.components)]
        pairs = list(itertools.product(range(self.components), columns))
        return [*odds, *(f"mean {k} {c}" for k, c in pairs), *(f"log_scale {k} {c}" for k, c in pairs)]

    def bound(self, columns: list[str], labels: np.ndarray | None) -> Model:
        """Check that the prior is one for these columns."""
        del labels
        check_length(self.own_prior, self.parameter_count(len(columns)))
        return self

    def settled(self, rows: Rows) -> Model:
        """Return the model with the columns' units and typical components taken from dirty rows."""
        if not self.settles:
            return self
        from betacores.robust import robust_location_scale

        centre, spread = robust_location_scale(rows.x)
        return self.replaced(centre=centre, spread=spread, typical=self.robust_start(rows), settles=False)

    def parts(self, theta: Float[Array, " p"], columns: int) -> Components:
        """Return the components."""
        odds, means, scales = jnp.split(theta, [self.components - 1, self.components * (columns + 1) - 1])
        shape, middle = (self.components, columns), jnp.log(self.spread)
        log_scale = held(scales.reshape(shape), middle)
        log_weight = jax.nn.log_softmax(jnp.concatenate([jnp.zeros(1, theta.dtype), odds]))
        return Components(log_weight, means.reshape(shape), log_scale)

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-density of one row."""
        return log_density(self.parts(theta, row.x.shape[-1]), row.x)

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the power integral, the same for every row."""
        return jnp.exp(self.log_power_integral(theta, row, beta))

    def log_power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        return log_integral(self.parts(theta, row.x.shape[-1]), beta)

    def log_reference(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral for typical components."""
        typical = jnp.asarray(self.typical, jnp.result_type(float))
        return log_integral(self.parts(jnp.broadcast_to(typical, (self.parameter_count(columns),)), columns), beta)

    def integral_bounds(self, theta: Float[Array, " p"], columns: int, beta: float) -> tuple[Array, Array]:
        """Return a lower and an upper bound of the power integral, for β at most 1."""
        return integral_bounds(self.parts(theta, columns), beta)

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        if self.own_prior is not None:
            return self.own_prior.log_density(theta)
        means = self.components * self._columns(theta.shape[-1])
        units = jnp.concatenate(
            [jnp.ones(self.components - 1), WIDTH * self._tiled(self.spread, means), jnp.ones(means)]
        )
        return -0.5 * (((theta - self._prior_centre(theta.shape[-1])) / units) ** 2).sum()

    def prior_mean(self, parameters: int) -> Float[Array, " p"]:
        """Return where the prior is centred, with the components apart: all in one place they would stay there."""
        middle = self._prior_centre(parameters) if self.own_prior is None else self.own_prior.mean_vector(parameters)
        columns = self._columns(parameters)
        apart = jnp.linspace(-1.0, 1.0, self.components)[:, None] * jnp.broadcast_to(self.spread, (columns,))
        first = self.components - 1
        return middle.at[first : first + self.components * columns].add(apart.ravel())

    def first_guess(self, columns: int) -> Float[Array, " p"]:
        """Begin at the typical components."""
        return self.prior_mean(self.parameter_count(columns)) if np.ndim(self.typical) == 0 else self.typical

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from clusters of most rows, those nearest to their centres."""
        return clustered(np.asarray(rows.x, np.float64), self.components)

    def escaped(self, thetas: Float[np.ndarray, "s p"]) -> np.ndarray:
        """Tell the parameters with a standard deviation so large that no row counts."""
        thetas = np.asarray(thetas)
        columns = self._columns(thetas.shape[-1])
        log_scale = thetas[:, -self.components * columns :].reshape(len(thetas), self.components, columns)
        return np.any(log_scale > np.log(np.asarray(self.spread)) + ESCAPE, axis=(1, 2))

    def ordered(self, thetas: Float[np.ndarray, "s p"]) -> Float[np.ndarray, "s p"]:
        """Return draws with the components in the order of their means in the first column."""
        thetas = np.asarray(thetas)
        columns, k = self._columns(thetas.shape[-1]), self.components
        odds = np.column_stack([np.zeros(len(thetas)), thetas[:, : k - 1]])
        means, scales = (part.reshape(-1, k, columns) for part in np.split(thetas[:, k - 1 :], 2, axis=1))
        order = np.argsort(means[:, :, 0], axis=1, kind="stable")
        odds = np.take_along_axis(odds, order, 1)
        means, scales = (np.take_along_axis(part, order[:, :, None], 1) for part in (means, scales))
        flat = (part.reshape(len(thetas), -1) for part in (means, scales))
        return np.concatenate([odds[:, 1:] - odds[:, :1], *flat], axis=1)

    def _prior_centre(self, parameters: int) -> Float[Array, " p"]:
        means = self.components * self._columns(parameters)
        parts = [jnp.zeros(self.components - 1), self._tiled(self.centre, means)]
        return jnp.concatenate([*parts, self._tiled(jnp.log(self.spread), means)])

    def _tiled(self, values: Any, count: int) -> Float[Array, " count"]:
        return jnp.broadcast_to(values, (self.components, count // self.components)).ravel()

    def _columns(self, parameters: int) -> int:
        return (parameters - self.components + 1) // (2 * self.components)
