"""Gaussian rows with unknown mean and covariance.

The covariance is parameterised by regressions of every column on those before it,

    x_j = μ_j + Σ_{k<j} φ_jk (x_k − μ_k) + σ_j ε_j,      θ = (μ, log σ, φ),

any values of which are a covariance `Σ`, with `|Σ| = Π σ_j²`; the matrix `A = diag(1/σ) (1 − φ)` is lower triangular
and whitens rows, `Σ⁻¹ = AᵀA`. The power integral is `((2π)^d |Σ|)^(−β/2) (1+β)^(−d/2)`. As with any unknown scale, the
β-posterior is in need of a typical covariance, the share of clean rows and a proper prior: `betacores.models.scaled`.

Statistics are those of rows whitened by the typical covariance, in which clean rows are of order one: single precision
loses nothing to columns that nearly repeat each other, nor to rows far from the origin.

Reference: Pourahmadi, "Joint mean-covariance models with applications to longitudinal data", Biometrika 86 (1999).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax.numpy as jnp
import numpy as np

from betacores.models.base import Model, Rows
from betacores.models.family import ExponentialFamily
from betacores.models.prior import GaussianPrior, check_length
from betacores.models.scaled import ESCAPE, clean_share, held

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Whitened cells farther out are brought in, so that products of squares stay finite.
FARTHEST = 1e6
# The default prior of a mean is so many typical standard deviations wide.
WIDTH = 10.0


@final
class GaussianDensity(ExponentialFamily):
    """Gaussian rows around an unknown mean, with unknown covariance.

    Parameters
    ----------
    prior
        Prior of all parameters: means, logarithms of the standard deviations σ, and coefficients φ row by row. If not
        given, independent: N(m, (10 s)²) for a mean, N(log σ⁰, 1) for log σ, N(0, (s_j / s_k)²) for φ_jk, with the
        typical location m, standard deviations s, and σ⁰.
    typical
        A rough location and covariance, which set how much a row counts when β > 0 and where the default prior is;
        ``"auto"`` leaves them to `summarize` to estimate them robustly.
    clean
        The share of clean rows, for which `summarize` has an estimate too; see `betacores.clean_share`.
    """

    name: ClassVar[str] = "gaussian-density"

    def __init__(
        self,
        prior: GaussianPrior | None = None,
        typical: tuple[Any, Any] | Literal["auto"] = "auto",
        clean: float | Literal["auto"] = "auto",
    ):
        self.own_prior = prior
        self.clean = clean_share(clean)
        # The typical mean, and the typical covariance's lower Cholesky factor.
        self.centre: Any = 0.0
        self.factor: Any = 1.0
        self.settles = isinstance(typical, str)
        if not isinstance(typical, str):
            location, covariance = typical
            self.centre = np.asarray(location, np.float64)
            self.factor = np.linalg.cholesky(np.asarray(covariance, np.float64))

    def parameter_count(self, columns: int) -> int:
        """One mean and one standard deviation a column, and one coefficient for every two."""
        if np.ndim(self.centre) and len(self.centre) != columns:
            raise ValueError(f"typical: it is for {len(self.centre)} columns, the data have {columns}.")
        return 2 * columns + columns * (columns - 1) // 2

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Parameters carry their columns' names."""
        pairs = [f"{columns[j]} on {columns[k]}" for j, k in zip(*np.tril_indices(len(columns), -1), strict=True)]
        return [*(f"mean {c}" for c in columns), *(f"log_scale {c}" for c in columns), *pairs]

    def bound(self, columns: list[str], labels: np.ndarray | None) -> Model:
        """Check that the prior is one for these columns."""
        del labels
        check_length(self.own_prior, self.parameter_count(len(columns)))
        return self

    def settled(self, rows: Rows) -> Model:
        """Return the model with location and covariance taken from dirty rows."""
        from betacores.robust import robust_scatter

        if not self.settles:
            return self
        centre, scatter = robust_scatter(rows.x)
        return self.replaced(centre=centre, factor=np.linalg.cholesky(scatter), settles=False)

    def statistics(self, rows: Rows) -> Float[Array, "*n q"]:
        """Return one, the whitened row, and the products of its cells."""
        columns = rows.x.shape[-1]
        v = jnp.clip((rows.x - self.centre) @ self._whitener(columns).T, -FARTHEST, FARTHEST)
        first, second = np.tril_indices(columns)
        return jnp.concatenate([jnp.ones_like(v[..., :1]), v, v[..., first] * v[..., second]], axis=-1)

    def natural(self, theta: Float[Array, " p"], columns: int) -> Float[Array, " q"]:
        """Return the natural parameters of whitened rows."""
        mean, log_scale, coefficients = self._parts(theta, columns)
        to_noise = jnp.exp(-log_scale)[:, None] * (jnp.eye(columns, dtype=theta.dtype) - coefficients)
        relative, shift = to_noise @ self._factor(columns), to_noise @ (mean - self.centre)
        first, second = np.tril_indices(columns)
        squares = (relative.T @ relative)[first, second] * np.where(first == second, -0.5, -1.0)
        constant = -0.5 * shift @ shift - log_scale.sum() - 0.5 * columns * jnp.log(2 * jnp.pi)
        return jnp.concatenate([constant[None], shift @ relative, squares.astype(theta.dtype)])

    def log_integral(self, theta: Any, columns: int, beta: Any) -> Float[Array, ""]:
        """Return the log of the power integral."""
        return self._log_power(self._parts(theta, columns)[1].sum(), columns, beta)

    def log_reference(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral for the typical covariance."""
        return self._log_power(self._typical_log_scale(columns).sum(), columns, beta)

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        if self.own_prior is not None:
            return self.own_prior.log_density(theta)
        columns = _columns(theta.shape[-1])
        spread = self._spread(columns)
        first, second = np.tril_indices(columns, -1)
        units = jnp.concatenate([WIDTH * spread, jnp.ones(columns), spread[first] / spread[second]])
        return -0.5 * (((theta - self.prior_mean(theta.shape[-1])) / units) ** 2).sum()

    def prior_mean(self, parameters: int) -> Float[Array, " p"]:
        """Return where the prior is centred."""
        if self.own_prior is not None:
            return self.own_prior.mean_vector(parameters)
        columns = _columns(parameters)
        means = jnp.broadcast_to(self.centre, (columns,))
        return jnp.concatenate([means, self._typical_log_scale(columns), jnp.zeros(columns * (columns - 1) // 2)])

    def first_guess(self, columns: int) -> Float[Array, " p"]:
        """Begin at the typical location and covariance."""
        factor = self._factor(columns)
        scaled = self._whitener(columns) * jnp.diagonal(factor)[:, None]
        means = jnp.broadcast_to(jnp.asarray(self.centre, factor.dtype), (columns,))
        return jnp.concatenate([means, self._typical_log_scale(columns), -scaled[np.tril_indices(columns, -1)]])

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from the covariance of the half of the rows that are closest together."""
        from betacores.robust import robust_scatter

        return parameters_of(*robust_scatter(rows.x))

    def escaped(self, thetas: Float[np.ndarray, "s p"]) -> np.ndarray:
        """Tell the parameters with a standard deviation so large that no row counts."""
        columns = _columns(np.shape(thetas)[-1])
        log_scale = np.asarray(thetas)[:, columns : 2 * columns]
        return np.any(log_scale > np.asarray(self._typical_log_scale(columns)) + ESCAPE, axis=1)

    def moments(self, theta: Float[np.ndarray, " p"]) -> tuple[Float[np.ndarray, " d"], Float[np.ndarray, "d d"]]:
        """Return mean and covariance of the rows, from a parameter or a draw."""
        theta = np.asarray(theta, np.float64)
        columns = _columns(len(theta))
        coefficients = np.zeros((columns, columns))
        coefficients[np.tril_indices(columns, -1)] = theta[2 * columns :]
        inverse = np.linalg.inv(np.eye(columns) - coefficients)
        factor = inverse * np.exp(theta[columns : 2 * columns])
        return theta[:columns], factor @ factor.T

    def _parts(self, theta: Float[Array, " p"], columns: int) -> tuple[Array, Array, Array]:
        middle = self._typical_log_scale(columns)
        log_scale = held(theta[columns : 2 * columns], middle)
        below = np.tril_indices(columns, -1)
        coefficients = jnp.zeros((columns, columns), theta.dtype).at[below].set(theta[2 * columns :])
        return theta[:columns], log_scale, coefficients

    def _factor(self, columns: int) -> Float[Array, "d d"]:
        factor = jnp.asarray(self.factor, jnp.result_type(float))
        return factor if factor.ndim == 2 else factor * jnp.eye(columns)

    def _whitener(self, columns: int) -> Float[Array, "d d"]:
        from jax.scipy.linalg import solve_triangular

        return solve_triangular(self._factor(columns), jnp.eye(columns), lower=True)

    def _typical_log_scale(self, columns: int) -> Float[Array, " d"]:
        return jnp.log(jnp.diagonal(self._factor(columns)))

    def _spread(self, columns: int) -> Float[Array, " d"]:
        return jnp.sqrt((self._factor(columns) ** 2).sum(1))

    def _log_power(self, log_volume: Any, columns: int, beta: Any) -> Float[Array, ""]:
        return -beta * (log_volume + 0.5 * columns * jnp.log(2 * jnp.pi)) - 0.5 * columns * jnp.log1p(beta)


def parameters_of(mean: Float[np.ndarray, " d"], covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, " p"]:
    """Return the parameters of a Gaussian with this mean and covariance."""
    whitener = np.linalg.inv(np.linalg.cholesky(np.asarray(covariance, np.float64)))
    precision = np.diagonal(whitener)
    coefficients = -(whitener / precision[:, None])[np.tril_indices(len(precision), -1)]
    return np.concatenate([mean, -np.log(precision), coefficients])


def _columns(parameters: int) -> int:
    """Return for how many columns there are so many parameters, `d (d + 3) / 2`."""
    return (int(np.sqrt(8 * parameters + 9)) - 3) // 2
