"""Poisson regression: counts `y` with mean `λ = exp(η)`, `η = z·θ + log exposure`, `z = (x, 1)`, Gaussian prior.

With `u = η − log y` and the rest `S` of Stirling's formula the log-probability of a count is

    ℓ = −y (e^u − 1 − u) − ½ log 2πy − S(y),      ℓ = −e^η for y = 0,

which keeps its digits for large counts, where `y η − e^η − log y!` has none in single precision.

The power integral is the sum `I = Σ_k p(k)^a`, `a = 1+β`. Up to the mean 10 it is a polynomial in `λ^a`,

    I = e^(−aλ) Σ_(k<32) (λ^k / k!)^a,

whose coefficients do not depend on the row. What is cut off is below `Σ_(k≥32) p(k) < 1.3e-8` for these means, since
`p(k)^a ≤ p(k)`. Beyond, it is the asymptotic series

    I = (2πλ)^(−β/2) a^(−½) (1 + c₁/λ + c₂/λ² + ... + c₅/λ⁵),      c₁ = (a − 1/a) / 24,  ...,

from Stirling's series under the integral of `p^a`; sum and integral differ by `2 exp(−2π²λ/a)`. All of `c_j` are zero
at β = 0, where `I = 1`. The error, largest at the mean 10, is below 3e-7 of `I` there for any β up to 8, and falls with
the sixth power of the mean.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import LinearPredictor, Response, Rows
from betacores.models.counts import LARGEST_ETA, Exposed, robust_line
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.models.stirling import HALF_LOG_TAU, stirling_rest

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Means up to here are summed over so many counts.
SUMMED_MEAN, TERMS = 10.0, 32
# `c_j` as coefficients of a^j, a^(j−2), ..., a^(−j), for j = 1 to 5.
SERIES = (
    (1 / 24, -1 / 24),
    (1 / 1152, 11 / 576, -23 / 1152),
    (1 / 82944, -101 / 138240, 769 / 27648, -11237 / 414720),
    (1 / 7962624, -473 / 9953280, -39859 / 6635520, 680863 / 9953280, -2482411 / 39813120),
    (
        *(1 / 955514880, -1061 / 955514880, 729347 / 3344302080),
        *(-15823877 / 477757440, 226287557 / 955514880, -272785979 / 1337720832),
    ),
)
# Sums that are nearer to zero are no numbers of single precision.
LEAST = 1e-35
# Beyond this power the coefficients of the sum would not fit single precision.
LARGEST_POWER = 9.0


@final
class PoissonRegression(Exposed, LinearPredictor):
    """A response of counts, with a mean whose logarithm is linear in the covariates.

    Parameters
    ----------
    intercept
        Whether to add a constant to the linear predictor (as the last parameter).
    prior
        Prior of the coefficients; independent N(0, 1) if not given.
    exposure
        Name or number of the column that holds the time, area or number of people that a count is of: the mean is
        proportional to it, and it is no covariate.
    offset
        The same for a column that holds the logarithm of the exposure.
    """

    name: ClassVar[str] = "poisson"
    response: ClassVar[Response] = "count"

    def __init__(
        self,
        intercept: bool = True,
        prior: GaussianPrior | None = None,
        exposure: str | int | None = None,
        offset: str | int | None = None,
    ):
        self._expose(exposure, offset)
        self.intercept = bool(intercept)
        self.prior = prior or gaussian_prior()

    def parameter_count(self, columns: int) -> int:
        """One coefficient a covariate, and the intercept."""
        return self.coefficient_count(columns)

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Coefficients carry their column's name."""
        return self.coefficient_names(columns)

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        return self.prior.log_density(theta)

    def response_log_likelihood(self, eta: Float[Array, "..."], y: Any) -> Float[Array, "..."]:
        """Return the log-probability of a count."""
        # Counts stay where they are when points are moved.
        y = jax.lax.stop_gradient(y)
        some = jnp.maximum(y, 1)
        eta = jnp.minimum(eta, LARGEST_ETA)
        u = eta - jnp.log(some)
        none = y < 1
        log_likelihood = -some * (jnp.expm1(jnp.where(none, 0.0, u)) - u)
        constant = 0.5 * jnp.log(some) + HALF_LOG_TAU + stirling_rest(some)
        return jnp.where(none, -jnp.exp(eta), log_likelihood - constant)

    def response_power_integral(self, eta: Float[Array, "..."], beta: Float[Array, ""]) -> Float[Array, "..."]:
        """Return `Σ_k p(k)^(1+β)`."""
        return power_sum(eta, beta)

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from the line of least absolute deviations through the log-counts."""
        return robust_line(self, rows)


def power_sum(eta: Float[Array, "..."], beta: Float[Array, ""]) -> Float[Array, "..."]:
    """Return `Σ_k p(k)^(1+β)` of a Poisson distribution with log-mean η."""
    power, edge = 1 + beta, math.log(SUMMED_MEAN)
    small, large = jnp.minimum(eta, edge), jnp.clip(eta, edge, LARGEST_ETA)
    return jnp.maximum(jnp.where(eta < edge, _summed(small, power), _asymptotic(large, power)), LEAST)


def _summed(eta: Float[Array, "..."], power: Float[Array, ""]) -> Float[Array, "..."]:
    # Coefficients of t = (λ / 10)^a, which is at most one: those of λ^a would be too small for single precision.
    counts = np.arange(TERMS)
    logs = counts * math.log(SUMMED_MEAN) - np.array([math.lgamma(k + 1) for k in counts])
    level = jnp.where(power > LARGEST_POWER, logs.max(), 0.0)
    coefficients = jnp.exp(power * (jnp.asarray(logs, jnp.result_type(power)) - level))
    t = jnp.exp(power * (eta - math.log(SUMMED_MEAN)))
    total = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        total = total * t + coefficient
    return jnp.exp(power * (level - jnp.exp(eta))) * total


def _asymptotic(eta: Float[Array, "..."], power: Float[Array, ""]) -> Float[Array, "..."]:
    inverse, total = jnp.exp(-eta), jnp.zeros_like(eta)
    for j in range(len(SERIES), 0, -1):
        total = (total + _series_coefficient(j, power)) * inverse
    return jnp.exp(-(power - 1) * (0.5 * eta + HALF_LOG_TAU)) * (1 + total) / jnp.sqrt(power)


def _series_coefficient(j: int, power: Float[Array, ""]) -> Float[Array, ""]:
    return jnp.asarray(sum(c * power ** (j - 2 * i) for i, c in enumerate(SERIES[j - 1])))
