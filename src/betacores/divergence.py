"""The log-likelihood and the β-likelihood of any model: one sign, one scale.

For a row with log-likelihood `ℓ(θ)` and power integral `I(θ) = ∫ p^(1+β)` the β-likelihood is

    f(θ) = expm1(β ℓ) / β  −  (I / (1+β) − 1),

a log-likelihood-like quantity: larger is better, and `f → ℓ` as β → 0 (β = 0 is `ℓ` exactly). Its gradient weighs the
row by `p^β`, so rows the model does not believe fade out. When `I = c` for every row and θ (location families), `f` is
divided by `c`, so that a typical clean row counts as one observation whatever β and the dimension; the constant that
then remains is the one that keeps the limit β → 0. When `I` varies, with an unknown scale say, a model may name a
typical value `c` of it: `f` is then divided by that constant too, for a table in other units has all `p^β` multiplied
by one number, and rows would count for more or less than one by the choice of units alone.

The score of a row, `r = p^β / I`, has mean 1 over rows that come from the model and goes to 0 for outliers; the mean of
`1 − r` therefore estimates the contamination.

Reference: Basu, Harris, Hjort and Jones, "Robust and efficient estimation by minimising a density power divergence",
Biometrika 85 (1998); Manousakas and Mascolo, "β-Cores", WSDM 2021, whose formulas differ from these in sign and scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import LinearPredictor, Model, Rows

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Below this log-likelihood single precision has no digits left for the difference between two draws: the row says
# nothing about θ, and a constant says that without overflowing.
FLOOR = -1e10

# No sum over rows of its exponential overflows.
LARGEST_EXPONENT = 60.0

# For smaller β the temperature is one to single precision.
LEAST_TEMPERED = 1e-6

# For smaller β the two likelihoods agree to single precision for every ℓ down to −1e6.
SMALLEST_BETA = 1e-12

# Inside compiled code β is either a scalar that may change without recompiling, or None: the log-likelihood itself.
if TYPE_CHECKING:
    Beta = Float[Array, ""] | None
else:
    Beta = Any


def as_beta(beta: float) -> Beta:
    """Return β as compiled code takes it: None for 0, so that the classical likelihood is exact and costs nothing."""
    return None if beta == 0 else jnp.asarray(beta, jnp.result_type(float))


def likelihood(model: Model, theta: Float[Array, " p"], row: Rows, beta: Beta) -> Float[Array, ""]:
    """Return `f(θ)` of one row."""
    log_likelihood = jnp.maximum(model.log_likelihood(theta, row), FLOOR)
    if beta is None:
        return log_likelihood
    if hasattr(model, "log_temperature"):
        return _tempered(log_likelihood, model.log_temperature(row.x.shape[-1], beta), beta)
    if hasattr(model, "log_reference"):
        return relative(model, log_likelihood, _log_integral(model, theta, row, beta), row.x.shape[-1], beta)
    return _plain(log_likelihood, model.power_integral(theta, row, beta), beta)


def transformed(model: Model, log_likelihood: Array, columns: int, beta: Beta) -> Array:
    """Return `f` as a function of `ℓ` alone, elementwise, for models whose power integral is a constant."""
    log_likelihood = jnp.maximum(log_likelihood, FLOOR)
    return log_likelihood if beta is None else _tempered(log_likelihood, model.log_temperature(columns, beta), beta)


def response_likelihood(model: LinearPredictor | SeveralPredictors, eta: Any, y: Array | None, beta: Beta) -> Array:
    """Return `f` as a function of the linear predictor, or of several, elementwise."""
    log_likelihood = jnp.maximum(model.response_log_likelihood(eta, y), FLOOR)
    if beta is None:
        return log_likelihood
    if hasattr(model, "log_temperature"):
        return _tempered(log_likelihood, model.log_temperature(0, beta), beta)
    return _plain(log_likelihood, model.response_power_integral(eta, beta), beta)


def likelihoods(model: Model, thetas: Float[Array, "s p"], rows: Rows, beta: Beta) -> Float[Array, "n s"]:
    """Return `f` of rows (down) under draws (across), by the model's fast path if it has one."""
    if isinstance(model, LinearPredictor):
        # Rows across: their number, a batch or a capacity, fills vector registers better than the number of draws.
        eta = model.with_offset(thetas @ model.features(rows).T, rows.x)
        return response_likelihood(model, eta, rows.y, beta).T
    if isinstance(model, SeveralPredictors):
        return response_likelihood(model, model.predictors(thetas, rows), rows.y, beta).T
    if not hasattr(model, "log_likelihoods"):
        over_draws = jax.vmap(likelihood, in_axes=(None, 0, None, None))
        return jax.vmap(over_draws, in_axes=(None, None, 0, None))(model, thetas, rows, beta)
    log_likelihood = jnp.maximum(model.log_likelihoods(thetas, rows), FLOOR)
    if beta is None:
        return log_likelihood
    if hasattr(model, "log_temperature"):
        return _tempered(log_likelihood, model.log_temperature(rows.x.shape[-1], beta), beta)
    if hasattr(model, "log_reference"):
        log_integral = jax.vmap(jax.vmap(model.log_power_integral, (0, None, None)), (None, 0, None))
        return relative(model, log_likelihood, log_integral(thetas, rows, beta), rows.x.shape[-1], beta)
    integral = jax.vmap(jax.vmap(model.power_integral, (0, None, None)), (None, 0, None))(thetas, rows, beta)
    return _plain(log_likelihood, integral, beta)


def relative(model: Model, log_likelihood: Array, log_integral: Array, columns: int, beta: Float[Array, ""]) -> Array:
    """Return `f` from `ℓ` and `log I`, elementwise, for models with a typical power integral."""
    # It vanishes with β, but for its rounding, which must not be divided by next to nothing.
    log_reference = jnp.where(beta < LEAST_TEMPERED, 0.0, model.log_reference(columns, beta))
    beta = jnp.maximum(beta, SMALLEST_BETA)
    powers = jnp.expm1(jnp.minimum(beta * log_likelihood - log_reference, LARGEST_EXPONENT)) * (1 / beta)
    # A model that knows the share of clean rows charges no others for the integral.
    clean = getattr(model, "clean", "auto")
    share = 1.0 if isinstance(clean, str) else clean
    integrals = jnp.exp(jnp.minimum(log_integral - log_reference, LARGEST_EXPONENT)) * (share / (1 + beta))
    return powers - (integrals - 1) + log_reference / beta


def log_scores(model: Model, theta: Float[Array, " p"], rows: Rows, beta: Float[Array, ""]) -> Float[Array, " n"]:
    """Return `log r = β ℓ − log I` of rows at one parameter."""

    def one(row: Rows) -> Float[Array, ""]:
        return beta * jnp.maximum(model.log_likelihood(theta, row), FLOOR) - _log_integral(model, theta, row, beta)

    return jax.vmap(one)(rows)


def has_power_integral(model: Model) -> bool:
    """Tell whether the model can be used with β > 0."""
    return hasattr(model, "power_integral")


def _log_integral(model: Model, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
    if hasattr(model, "log_temperature"):
        return model.log_temperature(row.x.shape[-1], beta)
    if hasattr(model, "log_power_integral"):
        return model.log_power_integral(theta, row, beta)
    return jnp.log(model.power_integral(theta, row, beta))


def _plain(log_likelihood: Array, integral: Array, beta: Float[Array, ""]) -> Array:
    beta = jnp.maximum(beta, SMALLEST_BETA)
    # Reciprocals of scalars: an elementwise division costs as much as an exponential.
    return jnp.expm1(beta * log_likelihood) * (1 / beta) - (integral * (1 / (1 + beta)) - 1)


def _tempered(log_likelihood: Array, log_temperature: Array, beta: Float[Array, ""]) -> Array:
    # exp(βℓ)/c as exp(βℓ − log c): in high dimension both underflow where their ratio does not.
    beta = jnp.maximum(beta, SMALLEST_BETA)
    relative = jnp.expm1(beta * log_likelihood - log_temperature) * (1 / beta)
    return relative + (log_temperature / beta + beta / (1 + beta))
