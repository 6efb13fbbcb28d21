"""How good a coreset is: an estimate of `KL(coreset posterior ‖ target posterior)` from draws not used to build it.

The target is the β-posterior over all rows. With draws from the coreset posterior `π_w` and the log-ratio
`u(θ) = Σ_m w_m g_m(θ) − Σ_n f_n(θ)`, in which the prior cancels and constants do not matter,

    KL = E_w[u] + log E_w[exp(−u)].

Draws come from the closed form where there is one, else from the Laplace approximation with importance weights; the sum
over all rows is one pass. The standard error is a bootstrap over the draws. Beyond a few units the second
term hangs on draws that never come, and the estimate is too small: read it then as "large".
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import logsumexp

from betacores.divergence import Beta, as_beta, likelihoods
from betacores.models.base import Model, Rows
from betacores.posteriors import conjugate, has_conjugate, laplace
from betacores.sources import Source
from betacores.tangent import anchored, target_over

BOOTSTRAPS = 200


class KLEstimate(NamedTuple):
    """An estimated divergence and its standard error."""

    value: float
    standard_error: float


def kl_estimate(
    model: Model,
    source: Source,
    rows: Rows,
    weights: Float[np.ndarray, " m"],
    key: PRNGKeyArray,
    *,
    beta: float,
    read_beta: float,
    draws: int = 1000,
) -> KLEstimate:
    """Estimate the divergence from a coreset's posterior to the β-posterior over all rows.

    Parameters
    ----------
    model, source
        The model, and all rows.
    rows, weights
        The coreset.
    key
        Random key.
    beta
        Of the target.
    read_beta
        Of the likelihood that reads the coreset; 0 is the classical one.
    draws
        Number of draws from the coreset posterior.
    """
    held = jnp.asarray(weights, jnp.float32)
    if has_conjugate(model) and read_beta == 0:
        posterior = conjugate(model, rows, held)
        thetas, log_weights = posterior.draw(key, draws), np.zeros(draws)
    else:
        posterior, _ = jax.jit(laplace)(model, rows, held, as_beta(read_beta))
        noise = jax.random.normal(key, (draws, posterior.mean.shape[0]))
        thetas = posterior.transform(noise)
        log_weights = np.asarray(_log_joint(model, thetas, rows, held, as_beta(read_beta)) + 0.5 * (noise**2).sum(1))
    read = np.asarray(held @ anchored(likelihoods(model, thetas, rows, as_beta(read_beta))), np.float64)
    ratio = read - target_over(source, model, thetas, as_beta(beta))
    value = _divergence(ratio, log_weights)
    random = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    samples = random.integers(draws, size=(BOOTSTRAPS, draws))
    spread = np.std([_divergence(ratio[sample], log_weights[sample]) for sample in samples])
    return KLEstimate(float(max(value, 0.0)), float(spread))


def _divergence(ratio: Float[np.ndarray, " s"], log_weights: Float[np.ndarray, " s"]) -> float:
    normalised = log_weights - logsumexp(log_weights)
    return float(np.exp(normalised) @ ratio + logsumexp(normalised - ratio))


@jax.jit
def _log_joint(model: Model, thetas: Array, rows: Rows, weights: Array, beta: Beta) -> Float[Array, " s"]:
    return weights @ anchored(likelihoods(model, thetas, rows, beta)) + jax.vmap(model.log_prior)(thetas)
