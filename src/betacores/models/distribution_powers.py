"""Power integrals `∫ p^(1+β)` of NumPyro's distributions, in closed form or by enumeration.

With `a = 1 + β`:

====================================  ===================================================================
Normal(μ, σ)                          `(2πσ²)^(−β/2) a^(−1/2)`
MultivariateNormal(μ, LLᵀ), d         `((2π)^(d/2) |L|)^(−β) a^(−d/2)`
LogNormal(μ, σ)                       `(2πσ²)^(−β/2) a^(−1/2) exp(−βμ + β²σ² / 2a)`
StudentT(ν, μ, σ), Cauchy (ν = 1)     `c^a σ^(−β) √ν B(1/2, (νa + β)/2)`, `c` the constant of the density at σ = 1
Laplace(μ, b)                         `(2b)^(−β) / a`
Exponential(λ)                        `λ^β / a`
Gamma(k, λ), Chi2                     `λ^β Γ(k') / (Γ(k)^a a^k')`, `k' = (k − 1) a + 1`; infinite if `k' ≤ 0`
Logistic(μ, s)                        `s^(−β) B(a, a)`
Bernoulli, Categorical                the sum over outcomes
Poisson, Binomial, Geometric,         the sum over a window of counts, see `betacores.models.power_rules`
negative binomials and other counts
====================================  ===================================================================

Independent parts of an outcome multiply. What is in no line of the table is left to the numerical rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, gammaln, logsumexp

from betacores.models.power_rules import MOST, counts_within

if TYPE_CHECKING:
    from jaxtyping import Array, Float

LOG_TAU = 1.8378770664093453


def log_power_integral(distribution: Any, beta: Float[Array, ""]) -> Array | None:
    """Return the logarithm of the power integral, one a batch, or None if it is not known."""
    name = type(distribution).__name__
    if name == "ExpandedDistribution":
        inner = log_power_integral(distribution.base_dist, beta)
        return None if inner is None else jnp.broadcast_to(inner, distribution.batch_shape)
    if name == "Independent":
        inner = log_power_integral(distribution.base_dist, beta)
        axes = tuple(range(-distribution.reinterpreted_batch_ndims, 0))
        return None if inner is None else inner.sum(axes)
    if name not in CLOSED:
        return None
    return jnp.broadcast_to(CLOSED[name](distribution, beta), distribution.batch_shape)


def _normal(own: Any, beta: Array) -> Array:
    return -beta * (0.5 * LOG_TAU + jnp.log(own.scale)) - 0.5 * jnp.log1p(beta)


def _multivariate_normal(own: Any, beta: Array) -> Array:
    d = own.event_shape[-1]
    log_det = jnp.log(jnp.diagonal(own.scale_tril, axis1=-2, axis2=-1)).sum(-1)
    return -beta * (0.5 * d * LOG_TAU + log_det) - 0.5 * d * jnp.log1p(beta)


def _log_normal(own: Any, beta: Array) -> Array:
    return _normal(own, beta) - beta * own.loc + 0.5 * beta**2 * own.scale**2 / (1 + beta)


def _student_t(own: Any, beta: Array, df: Any = None) -> Array:
    df = own.df if df is None else df
    log_constant = gammaln(0.5 * (df + 1)) - gammaln(0.5 * df) - 0.5 * jnp.log(df * jnp.pi)
    beyond = betaln(0.5, 0.5 * (df * (1 + beta) + beta))
    return (1 + beta) * log_constant - beta * jnp.log(own.scale) + 0.5 * jnp.log(df) + beyond


def _cauchy(own: Any, beta: Array) -> Array:
    return _student_t(own, beta, jnp.ones(()))


def _laplace(own: Any, beta: Array) -> Array:
    return -beta * jnp.log(2 * own.scale) - jnp.log1p(beta)


def _exponential(own: Any, beta: Array) -> Array:
    return beta * jnp.log(own.rate) - jnp.log1p(beta)


def _gamma(own: Any, beta: Array) -> Array:
    shape = (own.concentration - 1) * (1 + beta) + 1
    inside = jnp.where(shape > 0, shape, 1.0)
    log_power = gammaln(inside) - (1 + beta) * gammaln(own.concentration) - inside * jnp.log1p(beta)
    return jnp.where(shape > 0, beta * jnp.log(own.rate) + log_power, jnp.inf)


def _logistic(own: Any, beta: Array) -> Array:
    return -beta * jnp.log(own.scale) + betaln(1 + beta, 1 + beta)


def _bernoulli(own: Any, beta: Array) -> Array:
    logits = own.logits
    both = jnp.stack([jax.nn.log_sigmoid(logits), jax.nn.log_sigmoid(-logits)])
    return logsumexp((1 + beta) * both, axis=0)


def _categorical(own: Any, beta: Array) -> Array:
    return logsumexp((1 + beta) * jax.nn.log_softmax(own.logits, axis=-1), axis=-1)


def _poisson(own: Any, beta: Array) -> Array:
    return _counted(poisson_log_mass, jnp.asarray(own.rate, jnp.result_type(float)), (own.rate,), own.rate, beta)


def _binomial(own: Any, beta: Array) -> Array:
    total = jnp.asarray(own.total_count, jnp.result_type(float))

    def log_mass(at: Array, total: Array, probs: Array) -> Array:
        # Outside its bounds a count is not possible, and must not be asked for.
        at = jnp.clip(at, 0.0, total)
        # Of two Poisson counts whose sum is known the first is binomial: no difference of large numbers.
        both = poisson_log_mass(at, total * probs) + poisson_log_mass(total - at, total * (1 - probs))
        return both - poisson_log_mass(total, total)

    return _counted(log_mass, total * own.probs, (total, own.probs), total * own.probs * (1 - own.probs), beta, total)


def _counted(
    log_mass: Callable[..., Array], mean: Array, settings: tuple, variance: Any, beta: Array, upper: Any = MOST
) -> Array:
    """Return the logarithm of a sum over counts, for every entry of the settings.

    Farther than eight standard deviations and twenty counts from the mean both families have nothing.
    """
    given = jax.tree.map(lambda part: jnp.asarray(part, jnp.result_type(float)), (settings, mean, variance, upper))
    shape = jnp.broadcast_shapes(*(part.shape for part in jax.tree.leaves(given)))

    def one(settings: tuple, mean: Array, variance: Array, upper: Array) -> Array:
        reach = 8.0 * jnp.sqrt(variance) + 20.0
        low, high = jnp.maximum(jnp.floor(mean - reach), 0.0), jnp.minimum(jnp.ceil(mean + reach), upper)
        over = jax.lax.stop_gradient(counts_within(low, high, upper))
        logs = (1 + beta) * jax.vmap(lambda at: log_mass(at, *settings))(over.points) + over.base
        top = jax.lax.stop_gradient(logs.max())
        counts = logs > top - 80
        return top + jnp.log((over.weights * jnp.where(counts, jnp.exp(jnp.where(counts, logs - top, 0.0)), 0.0)).sum())

    flat = jax.tree.map(lambda part: jnp.broadcast_to(part, shape).reshape(-1), given)
    return jax.vmap(one)(*flat).reshape(shape)


def poisson_log_mass(at: Array, rate: Array) -> Array:
    """Return the log-probability of a count, with all digits for large ones.

    By Stirling's formula `log p = −½ log 2πk − 1/12k + ... − k (e^u − 1 − u)`, `u = log(λ/k)`.
    """
    large = jnp.maximum(at, 8.0)
    away = (rate - large) / large
    close = jnp.abs(away) < 0.5
    u = jnp.where(close, jnp.log1p(jnp.where(close, away, 0.0)), jnp.log(rate) - jnp.log(large))
    # Near the mean the difference of the large numbers is lost, and its series is exact.
    near = jnp.abs(u) < 0.05
    small = jnp.where(near, u, 0.0)
    series = small**2 * (0.5 + small / 6 * (1 + small / 4 * (1 + small / 5)))
    far = jnp.exp(jnp.where(near, 0.0, u)) - 1 - jnp.where(near, 0.0, u)
    rest = (1 / 12 - (1 / 360 - 1 / 1260 / large**2) / large**2) / large
    stirling = -large * jnp.where(near, series, far) - 0.5 * (LOG_TAU + jnp.log(large)) - rest
    few = jnp.minimum(at, 8.0)
    plain = jax.scipy.special.xlogy(few, rate) - rate - gammaln(few + 1)
    return jnp.where(at < 8, plain, stirling)


CLOSED: dict[str, Callable[[Any, Any], Any]] = {
    "Normal": _normal,
    "MultivariateNormal": _multivariate_normal,
    "LogNormal": _log_normal,
    "StudentT": _student_t,
    "Cauchy": _cauchy,
    "Laplace": _laplace,
    "Exponential": _exponential,
    "Gamma": _gamma,
    "Chi2": _gamma,
    "Logistic": _logistic,
    "BernoulliLogits": _bernoulli,
    "BernoulliProbs": _bernoulli,
    "CategoricalLogits": _categorical,
    "CategoricalProbs": _categorical,
    "OrderedLogistic": _categorical,
    "Poisson": _poisson,
    "BinomialLogits": _binomial,
    "BinomialProbs": _binomial,
}
