"""Negative binomial regression: counts `y` with mean `μ = exp(η)` and variance `μ + φ μ²`, `η = z·θ + log exposure`.

The dispersion `φ` is known, or its logarithm is the last parameter. With `r = 1/φ`, `v = log y − η` and the rest `S` of
Stirling's formula the log-probability of a count above 0 is

    ℓ = −D − ½ log 2πy(1 + y/r) + S(y + r) − S(y) − S(r),
    D = y log(1 + (e^v − 1) r/(y + r)) − r log(1 + (y − μ)/(μ + r)),

half the deviance, and `ℓ = −r log(1 + μ/r)` for y = 0: no large terms are left to cancel, whatever the mean and the
dispersion. As φ → 0 it is the Poisson distribution. See `negative_binomial_sum` for the power integral.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Response, Rows
from betacores.models.counts import LARGEST_ETA, Exposed, robust_line
from betacores.models.negative_binomial_sum import half_deviance, power_sum
from betacores.models.one_further import OneFurther
from betacores.models.predictors import linear_predictor
from betacores.models.prior import GaussianPrior, check_length, gaussian_prior
from betacores.models.stirling import HALF_LOG_TAU, stirling_rest

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Dispersions beyond are as good as these: Poisson counts, and nearly all counts zero.
LEAST_LOG_DISPERSION, LARGEST_LOG_DISPERSION = -15.0, 10.0


@final
class NegativeBinomialRegression(Exposed, OneFurther):
    """A response of counts that scatter more than Poisson counts, with a mean whose logarithm is linear.

    Parameters
    ----------
    dispersion
        `φ` of the variance `μ + φ μ²` of clean rows; by default its logarithm is estimated, as the last parameter.
    intercept
        Whether to add a constant to the linear predictor (as the last coefficient).
    prior
        Prior of the coefficients; independent N(0, 1) if not given.
    dispersion_prior
        Prior of the logarithm of an unknown dispersion; N(−1, 2²) if not given.
    exposure
        Name or number of the column that holds the time, area or number of people that a count is of: the mean is
        proportional to it, and it is no covariate.
    offset
        The same for a column that holds the logarithm of the exposure.
    """

    name: ClassVar[str] = "negative-binomial"
    response: ClassVar[Response] = "count"
    further_name: ClassVar[str] = "dispersion"
    dispersion: float | None

    def __init__(
        self,
        dispersion: float | None = None,
        intercept: bool = True,
        prior: GaussianPrior | None = None,
        dispersion_prior: GaussianPrior | None = None,
        exposure: str | int | None = None,
        offset: str | int | None = None,
    ):
        self._expose(exposure, offset)
        self._take(dispersion, dispersion_prior, (-1.0, 4.0), "a positive number", lambda value: 0 < value < math.inf)
        self.intercept = bool(intercept)
        self.coefficient_prior = prior or gaussian_prior()

    def parameter_count(self, columns: int) -> int:
        """One coefficient a covariate, the intercept, and the dispersion unless it is known."""
        count = self.coefficient_count(columns)
        check_length(self.coefficient_prior, count, "coefficients")
        return count + self.further

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Coefficients carry their column's name; the last is the logarithm of the dispersion."""
        return [*self.coefficient_names(columns), *["log dispersion"] * self.further]

    def response_log_likelihood(self, u: Any, y: Any) -> Float[Array, "..."]:
        """Return the log-probability of a count."""
        # Counts stay where they are when points are moved.
        y = jax.lax.stop_gradient(y)
        eta, size = jnp.minimum(u[0], LARGEST_ETA), jnp.exp(self._log_size(u))
        some, mean = jnp.maximum(y, 1), jnp.exp(eta)
        away = jnp.log(some) - jnp.where(y < 1, 0.0, eta)
        scatter = 0.5 * (jnp.log(some) + jnp.log1p(some / size)) + HALF_LOG_TAU
        rests = stirling_rest(some + size) - stirling_rest(some) - stirling_rest(size)
        log_likelihood = rests - scatter - half_deviance(some, away, mean, size)
        return jnp.where(y < 1, -size * jnp.log1p(mean / size), log_likelihood)

    def response_power_integral(self, u: Any, beta: Float[Array, ""]) -> Float[Array, "..."]:
        """Return `Σ_k p(k)^(1+β)`."""
        return power_sum(u[0], self._log_size(u), beta)

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from the line of least absolute deviations through the log-counts, and the scatter around it."""
        line = robust_line(self, rows)
        if not self.further:
            return line
        x, y = np.asarray(rows.x, np.float64), np.asarray(rows.y, np.float64)
        mean = np.exp(np.clip(linear_predictor(self, x, line), -LARGEST_ETA, LARGEST_ETA))
        # The square of a standard normal has median 0.455.
        excess = float(np.median(((y - mean) ** 2 / mean - 0.455) / (0.455 * mean)))
        return np.append(line, np.log(np.clip(excess, 0.05, 5.0)))

    def _log_size(self, u: Any) -> Float[Array, "..."]:
        """Return `log r`, less the logarithm of the dispersion."""
        log_dispersion = u[1] if self.dispersion is None else jnp.log(jnp.asarray(self.dispersion, u[0].dtype))
        return -jnp.clip(log_dispersion, LEAST_LOG_DISPERSION, LARGEST_LOG_DISPERSION)
