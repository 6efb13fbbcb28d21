"""Linear regression: `y = z·θ + ε`, `ε ~ N(0, σ²)`, `z = (x, 1)`, Gaussian prior.

The power integral `(2πσ²)^(−β/2) (1+β)^(−1/2)` is the same for every row and θ. The classical posterior is Gaussian
with precision `Σ0⁻¹ + σ⁻² Σ_n w_n z_n z_nᵀ` and shift `Σ0⁻¹ μ0 + σ⁻² Σ_n w_n y_n z_n`.
"""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax.numpy as jnp

from betacores.models.base import LinearPredictor, Response, Rows
from betacores.models.prior import GaussianPrior, gaussian_prior

if TYPE_CHECKING:
    from jaxtyping import Array, Float


@final
class LinearRegression(LinearPredictor):
    """A real response linear in the covariates, with Gaussian noise.

    Parameters
    ----------
    noise
        Standard deviation of the clean rows' response around the line; ``"auto"`` leaves it to `summarize` to estimate
        it robustly.
    intercept
        Whether to add a constant to the linear predictor (as the last parameter).
    prior
        Prior of the coefficients; independent N(0, 1) if not given.
    """

    name: ClassVar[str] = "linear"
    response: ClassVar[Response] = "real"
    log_concave: ClassVar[bool] = True

    def __init__(
        self, noise: float | Literal["auto"] = "auto", intercept: bool = True, prior: GaussianPrior | None = None
    ):
        if noise != "auto" and not (isinstance(noise, numbers.Real) and math.isfinite(noise) and noise > 0):
            raise ValueError(f"noise: expected a positive standard deviation or 'auto', got {noise!r}.")
        self.noise = "auto" if noise == "auto" else float(noise)
        self.intercept = bool(intercept)
        self.prior = prior or gaussian_prior()

    def with_noise(self, noise: float) -> LinearRegression:
        """Return the same model with a known standard deviation."""
        return LinearRegression(noise, self.intercept, self.prior)

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        return self.prior.log_density(theta)

    def response_log_likelihood(self, eta: Float[Array, "..."], y: Any) -> Float[Array, "..."]:
        """Return the Gaussian log-density of a response."""
        return -0.5 * ((y - eta) / self._known_noise()) ** 2 - self._log_normaliser()

    def response_power_integral(self, eta: Float[Array, "..."], beta: Float[Array, ""]) -> Float[Array, "..."]:
        """Return the power integral, the same for every row and line."""
        return jnp.broadcast_to(jnp.exp(self.log_temperature(0, beta)), jnp.shape(eta))

    def log_temperature(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        del columns
        return -beta * self._log_normaliser() - 0.5 * jnp.log1p(beta)

    def conjugate(self, rows: Rows, weights: Float[Array, " n"]) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        """Return what weighted rows add to the posterior's precision and shift."""
        z = self.features(rows)
        weighted = z * (weights / self._known_noise() ** 2)[:, None]
        return weighted.T @ z, weighted.T @ rows.y

    def _log_normaliser(self) -> Float[Array, ""]:
        return 0.5 * jnp.log(2 * jnp.pi) + jnp.log(self._known_noise())

    def _known_noise(self) -> Any:
        if isinstance(self.noise, str):
            raise ValueError("noise: it is 'auto', which only summarize() can settle; give LinearRegression a number.")
        return self.noise
