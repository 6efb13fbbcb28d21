"""How good a coreset is: an estimate of `KL(coreset posterior ‖ target posterior)` from draws not used to build it.

The target is the β-posterior over all rows. With draws from the coreset posterior `π_w` and the log-ratio
`u(θ) = Σ_m w_m g_m(θ) − Σ_n f_n(θ)`, in which the prior cancels and constants do not matter,

    KL = E_w[u] + log E_w[exp(−u)].

Draws come from the closed form where there is one, else from the Laplace approximation with importance weights; the sum
over all rows is one pass. The standard error is a bootstrap over the draws. Beyond a few units the second
term hangs on draws that never come, and the estimate is too small: read it then as "large".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from betacores.divergence import Beta, as_beta
from betacores.models.base import Model, Rows
from betacores.posteriors import Gaussian, has_conjugate
from betacores.posteriors.weighted import padded, weighted_posterior
from betacores.randomness import generator
from betacores.tangent import gains
from betacores.target import Target

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

BOOTSTRAPS = 200
# What single precision leaves of a divergence of zero.
ROUNDING = 1e-5


class KLEstimate(NamedTuple):
    """An estimated divergence and its standard error."""

    value: float
    standard_error: float

    def __str__(self) -> str:
        """Say it as people write it."""
        return f"{self.value:.2g} ± {self.standard_error:.1g}"


def kl_estimate(
    model: Model,
    target: Target,
    rows: Rows,
    weights: Float[np.ndarray, " m"],
    key: PRNGKeyArray,
    *,
    read_beta: float,
    draws: int = 1000,
) -> KLEstimate:
    """Estimate the divergence from a coreset's posterior to the β-posterior over all rows.

    Parameters
    ----------
    model, target
        The model, and the log-likelihood of all rows.
    rows, weights
        The coreset.
    key
        Random key.
    read_beta
        Of the likelihood that reads the coreset; 0 is the classical one.
    draws
        Number of draws from the coreset posterior.
    """
    beta = as_beta(read_beta)
    posterior, _ = weighted_posterior(model, rows, weights, beta)
    held, held_weights = padded(rows, weights)
    random = generator(key)
    noise = random.standard_normal((draws, posterior.mean.shape[0]), np.float32)
    thetas, read, log_prior = _read(model, posterior, noise, held, held_weights, beta)
    log_weights = np.zeros(draws)
    if not (has_conjugate(model) and beta is None):
        log_weights = np.asarray(read, np.float64) + np.asarray(log_prior) + 0.5 * (noise**2).sum(1)
    ratio = np.asarray(read, np.float64) - target.over(thetas)
    drawn = random.integers(draws, size=(BOOTSTRAPS, draws)) + draws * np.arange(BOOTSTRAPS)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=BOOTSTRAPS * draws).reshape(BOOTSTRAPS, draws)
    value, *others = _divergences(ratio, log_weights, np.vstack([np.ones(draws), counts]))
    return KLEstimate(max(value, 0.0), max(float(np.std(others)), ROUNDING))


def _divergences(
    ratio: Float[np.ndarray, " s"], log_weights: Float[np.ndarray, " s"], counts: Float[np.ndarray, "b s"]
) -> Float[np.ndarray, " b"]:
    """Return the divergence for every way to count the draws."""
    turned = log_weights - ratio
    tops = log_weights.max(), turned.max()
    weights = np.exp(log_weights - tops[0])
    sums = (counts @ np.column_stack([weights, np.exp(turned - tops[1]), weights * ratio])).T
    # Where all that weighs is left out by chance, next to nothing is left.
    weight, turned_weight = np.maximum(sums[:2], np.finfo(float).tiny)
    return sums[2] / weight + np.log(turned_weight) - np.log(weight) + tops[1] - tops[0]


@jax.jit
def _read(
    model: Model, posterior: Gaussian, noise: Array, rows: Rows, weights: Array, beta: Beta
) -> tuple[Float[Array, "s p"], Float[Array, " s"], Float[Array, " s"]]:
    """Return draws, the coreset's log-likelihood there less that at the first, and the log-prior."""
    thetas = posterior.transform(noise)
    values = weights @ gains(model, thetas, rows, beta)
    return thetas, values, jax.vmap(model.log_prior)(thetas)
