"""Draws from `∝ exp(Σ_n w_n f_n) π0` by the no-U-turn sampler of BlackJAX.

With mode `μ` and negative Hessian `L Lᵀ` there, parameters are `θ = μ + L⁻ᵀ φ`, and the posterior of `φ` is about
standard normal: it needs no mass matrix, so that warm-up adapts the step size alone. (A dense mass matrix estimated
from a few hundred steps is worse than the one that the Laplace approximation gives.) Several chains start
over-dispersed and run side by side. The log-posterior is a difference from the one at the mode, which keeps digits when
weights are large.

Reference: Hoffman and Gelman, "The No-U-Turn sampler", JMLR 15 (2014); Vehtari, Gelman, Simpson, Carpenter and
Bürkner, "Rank-normalization, folding, and localization: an improved R-hat", Bayesian Analysis 16 (2021).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import blackjax
import jax
import jax.numpy as jnp
from blackjax.adaptation.step_size import dual_averaging_adaptation
from jax.scipy.linalg import solve_triangular

from betacores.divergence import Beta, likelihood, response_likelihood
from betacores.models.base import LinearPredictor, Model, Rows
from betacores.posteriors.gaussian import Gaussian
from betacores.posteriors.laplace import laplace

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray

TARGET_ACCEPTANCE = 0.8
# Trajectories of at most 1,023 steps, where seven are usual.
MAX_DOUBLINGS = 10
# Dual averaging is drawn towards ten times where it begins.
FIRST_STEP = 0.1


class NutsInfo(NamedTuple):
    """Diagnostics: one R-hat and bulk effective sample size a parameter, one count of divergences a chain."""

    r_hat: Float[Array, " p"]
    effective_sample_size: Float[Array, " p"]
    divergences: Int[Array, " chains"]


@partial(jax.jit, static_argnames=("draws", "chains", "warmup", "max_doublings"))
def nuts(
    key: PRNGKeyArray,
    model: Model,
    rows: Rows,
    weights: Float[Array, " n"],
    beta: Beta = None,
    *,
    draws: int = 1000,
    chains: int = 4,
    warmup: int = 500,
    max_doublings: int = MAX_DOUBLINGS,
) -> tuple[Float[Array, "chains draws p"], NutsInfo]:
    """Return draws of a weighted posterior, and how far to trust them.

    Parameters
    ----------
    key
        Random key.
    model, rows, weights
        The posterior's ingredients. Rows of weight zero change nothing.
    beta
        Of the β-likelihood; None is the classical posterior.
    draws, chains, warmup
        Draws kept of each chain, number of chains, and steps of adaptation before.
    max_doublings
        Trajectories have fewer than `2 ** max_doublings` steps.
    """
    approximation, _ = laplace(model, rows, weights, beta)
    log_density = whitened(model, rows, weights, beta, approximation)
    start_key, chain_key = jax.random.split(key)
    # Over-dispersed starts, or chains that never moved would seem to agree.
    starts = 2.0 * jax.random.normal(start_key, (chains, approximation.mean.shape[-1]), approximation.mean.dtype)
    chain = partial(_chain, log_density=log_density, draws=draws, warmup=warmup, max_doublings=max_doublings)
    paths, divergences = jax.vmap(chain)(jax.random.split(chain_key, chains), starts)
    thetas = jax.vmap(approximation.transform)(paths)
    # R-hat compares chains; a single one is compared with itself, first half against second.
    compared = thetas if chains > 1 else thetas[0, : draws // 2 * 2].reshape(2, draws // 2, -1)
    info = NutsInfo(blackjax.diagnostics.rhat(compared), blackjax.diagnostics.ess_bulk(compared), divergences)
    return thetas, info


def _chain(
    key: PRNGKeyArray,
    start: Float[Array, " p"],
    log_density: Callable[[Array], Array],
    draws: int,
    warmup: int,
    max_doublings: int,
) -> tuple[Float[Array, "draws p"], Int[Array, ""]]:
    """Return the path of one chain after warm-up, and the number of divergences on it."""
    kernel = blackjax.nuts.build_kernel()
    begin, update, end = dual_averaging_adaptation(TARGET_ACCEPTANCE)

    # One loop for warm-up and draws: the kernel is most of what there is to compile.
    def advance(carry, at):
        state, size = carry
        number, key = at
        adapting = number < warmup
        step_size = jnp.where(adapting, jnp.exp(size.log_step_size), end(size))
        state, info = kernel(key, state, log_density, step_size, jnp.ones_like(start), max_doublings)
        size = jax.tree.map(partial(jnp.where, adapting), update(size, info.acceptance_rate), size)
        return (state, size), (state.position, info.is_divergent)

    first = (blackjax.nuts.init(start, log_density), begin(FIRST_STEP))
    steps = (jnp.arange(warmup + draws), jax.random.split(key, warmup + draws))
    _, (path, divergent) = jax.lax.scan(advance, first, steps)
    return path[warmup:], divergent[warmup:].sum()


def whitened(
    model: Model, rows: Rows, weights: Float[Array, " n"], beta: Beta, approximation: Gaussian
) -> Callable[[Float[Array, " p"]], Float[Array, ""]]:
    """Return the log-posterior of `φ`, less the one at the mode."""
    mean, factor = approximation
    spread = solve_triangular(factor, jnp.eye(mean.shape[-1], dtype=mean.dtype), lower=True, trans="T")

    if isinstance(model, LinearPredictor):
        z = model.features(rows)
        offset, directions = model.with_offset(z @ mean, rows.x), z @ spread

        def each(phi: Float[Array, " p"]) -> Float[Array, " n"]:
            return response_likelihood(model, offset + directions @ phi, rows.y, beta)

    else:

        def each(phi: Float[Array, " p"]) -> Float[Array, " n"]:
            return jax.vmap(likelihood, (None, None, 0, None))(model, mean + spread @ phi, rows, beta)

    at_mode, prior_at_mode = each(jnp.zeros_like(mean)), model.log_prior(mean)

    def log_density(phi: Float[Array, " p"]) -> Float[Array, ""]:
        return weights @ (each(phi) - at_mode) + (model.log_prior(mean + spread @ phi) - prior_at_mode)

    return log_density
