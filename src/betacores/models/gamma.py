"""Regression of a positive response: `y` is gamma distributed with mean `exp(η)`, `η = z·θ`, and shape k.

The likelihood is the density of `log y`, in which the mean is a location: with `v = log y − η`,

    ℓ = h(k) − k (e^v − 1 − v),     h(k) = k log k − k − log Γ(k),
    log ∫ p^(1+β) d(log y) = (1+β) h(k) − h(k (1+β)).

It differs from the density of `y` by a factor `y`, which no ordinary likelihood feels. The β-likelihood does: with the
density of `y` itself the power integral is infinite for shapes `k ≤ β/(1+β)`, a row with ten times the mean counts
`10^−β` as much, and everything depends on the units of y. With that of `log y` none of this happens.

`h` and `e^v − 1 − v` are computed without cancellation, so that a large shape, a response that hardly varies, is
no trouble to single precision. What an unknown shape asks of prior and units: `betacores.models.scaled`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax.numpy as jnp
import numpy as np
from scipy import special

from betacores.models.base import Response, Rows
from betacores.models.prior import GaussianPrior
from betacores.models.scaled import ScaledPredictor

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# A response of exp(40) times its mean has the least log-likelihood there is; one far below it nearly so.
HIGHEST, LOWEST = 40.0, -1e8
# The logarithm of less is not finite in single precision; no such response passes the door.
SMALLEST = 1e-30
LEAST_SHAPE, MOST_SHAPE = 1e-3, 1e8


@final
class GammaRegression(ScaledPredictor):
    """A positive response, gamma distributed, with the logarithm of its mean linear in the covariates.

    Parameters
    ----------
    shape
        The shape k if it is known: the response has a standard deviation of `1/√k` times its mean.
    intercept
        Whether to add a constant to the linear predictor (after the coefficients of the columns).
    prior
        Prior of the coefficients; independent N(0, 1) if not given.
    shape_prior
        Prior of log k; N(log typical, 1) if not given.
    typical
        A rough k, which sets how much a row counts when β > 0 and where the default prior is; ``"auto"`` leaves it
        to `summarize` to estimate it robustly.
    clean
        The share of clean rows, for which `summarize` has an estimate too; see `betacores.clean_share`.
    """

    name: ClassVar[str] = "gamma"
    response: ClassVar[Response] = "positive"
    auxiliary: ClassVar[str] = "log_shape"
    escapes_upwards: ClassVar[bool] = False

    def __init__(
        self,
        shape: float | None = None,
        intercept: bool = True,
        prior: GaussianPrior | None = None,
        shape_prior: GaussianPrior | None = None,
        typical: float | Literal["auto"] = "auto",
        clean: float | Literal["auto"] = "auto",
    ):
        self._set(shape, typical, intercept, prior, shape_prior, clean)

    def response_log_likelihood(self, eta: Any, a: Any, y: Any) -> Float[Array, "..."]:
        """Return the log-density of the logarithm of responses."""
        k, v = jnp.exp(a), jnp.clip(jnp.log(jnp.maximum(y, SMALLEST)) - eta, LOWEST, HIGHEST)
        return _height(k) - k * _excess(v)

    def log_integral(self, a: Any, beta: Any) -> Float[Array, "..."]:
        """Return the log of the power integral."""
        k = jnp.exp(a)
        return (1 + beta) * _height(k) - _height(k * (1 + beta))

    def _robust_fit(self, rows: Rows) -> tuple[np.ndarray, float]:
        from betacores.noise import robust_line

        line, noise = robust_line(rows.x, np.log(np.maximum(rows.y, SMALLEST)), self.intercept)
        shape = _shape_of(noise)
        if self.intercept:
            # The logarithm of a gamma variable of mean 1 has this mean.
            line[-1] -= special.digamma(shape) - math.log(shape)
        return line, shape


def _shape_of(deviation: float) -> float:
    """Return the shape for which the logarithm of a gamma variable, of variance ψ'(k), has a standard deviation."""
    from scipy import optimize

    low, high = math.log(LEAST_SHAPE), math.log(MOST_SHAPE)
    variance = float(np.clip(deviation**2, special.polygamma(1, MOST_SHAPE), special.polygamma(1, LEAST_SHAPE)))
    if variance in (special.polygamma(1, MOST_SHAPE), special.polygamma(1, LEAST_SHAPE)):
        return MOST_SHAPE if variance < 1 else LEAST_SHAPE
    return math.exp(optimize.brentq(lambda a: special.polygamma(1, math.exp(a)) - variance, low, high))


def _excess(v: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `e^v − 1 − v`, to all digits near zero."""
    near = jnp.clip(v, -0.5, 0.5)
    terms = jnp.zeros_like(near)
    for n in range(11, 1, -1):
        terms = (terms + 1.0) * near / (n + 1) if n < 11 else near / (n + 1)
    return jnp.where(jnp.abs(v) < 0.5, 0.5 * near**2 * (1 + terms), jnp.expm1(v) - v)


def _height(k: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `k log k − k − log Γ(k) = log(k/2π)/2 − s(k)`, with `s` what Stirling's formula leaves."""
    # From log Γ(k) = log Γ(k+8) − log k(k+1)…(k+7) where the series is not exact.
    large, small = jnp.maximum(k, 8.0), jnp.minimum(k, 8.0)
    shifted = small + 8.0
    log_gamma = (shifted - 0.5) * jnp.log(shifted) - shifted + 0.5 * jnp.log(2 * jnp.pi) + _stirling(shifted)
    log_gamma = log_gamma - sum(jnp.log(small + i) for i in range(8))
    direct = small * jnp.log(small) - small - log_gamma
    return jnp.where(k < 8.0, direct, 0.5 * jnp.log(large / (2 * jnp.pi)) - _stirling(large))


def _stirling(k: Float[Array, "..."]) -> Float[Array, "..."]:
    inverse = 1 / k
    square = inverse**2
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
