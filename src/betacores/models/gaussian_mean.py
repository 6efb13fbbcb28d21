"""The mean of a Gaussian with known covariance: `x ~ N(θ, Σ)`, `θ ~ N(μ0, Σ0)`.

The power integral `∫ p^(1+β) = ((2π)^d |Σ|)^(−β/2) (1+β)^(−d/2)` is the same for every row and θ. The classical
posterior is Gaussian with precision `Σ0⁻¹ + Σ_n w_n Σ⁻¹` and shift `Σ0⁻¹ μ0 + Σ⁻¹ Σ_n w_n x_n`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from betacores.models.base import Model, Rows
from betacores.models.prior import GaussianPrior, gaussian_prior, precision_of

if TYPE_CHECKING:
    from jaxtyping import Array, Float


@final
class GaussianMean(Model):
    """Gaussian rows of known covariance around an unknown mean.

    Parameters
    ----------
    covariance
        A variance, one for each column, or a covariance matrix.
    prior
        Prior of the mean; independent N(0, 1) if not given.
    """

    name: ClassVar[str] = "gaussian-mean"
    log_concave: ClassVar[bool] = True

    def __init__(self, covariance: ArrayLike = 1.0, prior: GaussianPrior | None = None):
        precision = precision_of(np.asarray(covariance, np.float64), "covariance")
        # Whitening by a factor W of the precision, Σ⁻¹ = WᵀW, turns every distance into a Euclidean one.
        self.whitener = np.linalg.cholesky(precision).T if precision.ndim == 2 else np.sqrt(precision)
        self.prior = prior or gaussian_prior()

    def parameter_count(self, columns: int) -> int:
        """One mean a column."""
        size = len(self.whitener) if jnp.ndim(self.whitener) else columns
        if size != columns:
            raise ValueError(f"covariance: it is for {size} columns, the data have {columns}.")
        return columns

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Means carry their column's name."""
        return list(columns)

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-density of one row."""
        away = self._whiten(row.x - theta)
        return -0.5 * away @ away - self._log_normaliser(row.x.shape[-1])

    def log_likelihoods(self, thetas: Float[Array, "s p"], rows: Rows) -> Float[Array, "n s"]:
        """Return the log-densities of rows (down) at means (across)."""
        # ‖u − v‖² by one matrix product. Both sides are first centred on the draws, or the squares would
        # swallow the difference in single precision when the data are far from the origin.
        centre = thetas.mean(0)
        u, v = self._whiten(rows.x - centre), self._whiten(thetas - centre)
        halves = 0.5 * (v * v).sum(-1)[:, None] + 0.5 * (u * u).sum(-1)
        return (v @ u.T - halves - self._log_normaliser(rows.x.shape[-1])).T

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        return self.prior.log_density(theta)

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the power integral, the same for every row and mean."""
        del theta
        return jnp.exp(self.log_temperature(row.x.shape[-1], beta))

    def log_temperature(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        return -beta * self._log_normaliser(columns) - 0.5 * columns * jnp.log1p(beta)

    def quadratic(
        self, theta: Float[Array, " p"], rows: Rows
    ) -> tuple[Float[Array, " n"], Float[Array, "n p"], Float[Array, "p p"]]:
        """Return the log-densities of rows, their gradients, and the Hessian they share."""
        away = self._whiten(rows.x - theta)
        values = -0.5 * (away * away).sum(-1) - self._log_normaliser(rows.x.shape[-1])
        gradients = away @ self.whitener if jnp.ndim(self.whitener) == 2 else away * self.whitener
        return values, gradients, -self._precision(rows.x.shape[-1])

    def conjugate(self, rows: Rows, weights: Float[Array, " n"]) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Return what weighted rows add to the posterior's precision and shift."""
        columns = rows.x.shape[-1]
        precision = self._precision(columns)
        return weights.sum() * precision, precision @ (weights @ rows.x)

    def robust_start(self, rows: Rows) -> Float[Array, " p"]:
        """Start from the median of each column."""
        return jnp.median(rows.x, axis=0)

    def _whiten(self, x: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
        return x @ self.whitener.T if jnp.ndim(self.whitener) == 2 else x * self.whitener

    def _precision(self, columns: int) -> Float[Array, "d d"]:
        factor = jnp.asarray(self.whitener, jnp.result_type(float))
        return factor.T @ factor if factor.ndim == 2 else jnp.diag(jnp.broadcast_to(factor**2, (columns,)))

    def _log_normaliser(self, columns: int) -> Float[Array, ""]:
        scales = jnp.diagonal(self.whitener) if jnp.ndim(self.whitener) == 2 else self.whitener
        log_det = jnp.broadcast_to(jnp.log(scales), (columns,)).sum()
        return 0.5 * columns * jnp.log(2 * jnp.pi) - log_det
