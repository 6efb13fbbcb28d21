"""Draws from `∝ exp(Σ_n w_n f_n) π0` by the no-U-turn sampler of BlackJAX.

Several chains start from over-dispersed draws of the Laplace approximation, whose covariance also serves as their
first mass matrix, adapt step size and mass matrix in windows, and then run side by side.

Reference: Hoffman and Gelman, "The No-U-Turn sampler", JMLR 15 (2014); Vehtari, Gelman, Simpson, Carpenter and
Bürkner, "Rank-normalization, folding, and localization: an improved R-hat", Bayesian Analysis 16 (2021).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import blackjax
import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from betacores.divergence import Beta, likelihood
from betacores.models.base import Model, Rows
from betacores.posteriors.laplace import laplace


class NutsInfo(NamedTuple):
    """Diagnostics: one R-hat and bulk effective sample size a parameter, one count of divergences a chain."""

    r_hat: Float[Array, " p"]
    effective_sample_size: Float[Array, " p"]
    divergences: Int[Array, " chains"]


@partial(jax.jit, static_argnames=("draws", "chains", "warmup"))
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
    """

    def log_density(theta: Float[Array, " p"]) -> Float[Array, ""]:
        each = jax.vmap(likelihood, (None, None, 0, None))(model, theta, rows, beta)
        return weights @ each + model.log_prior(theta)

    approximation, _ = laplace(model, rows, weights, beta)
    covariance = approximation.covariance()
    start_key, chain_key = jax.random.split(key)
    centre = approximation.mean
    starts = centre + 2.0 * (approximation.draw(start_key, chains) - centre)
    adaptation = blackjax.window_adaptation(
        blackjax.nuts,
        log_density,
        is_mass_matrix_diagonal=False,
        initial_inverse_mass_matrix=covariance,
        adaptation_info_fn=blackjax.adaptation.base.get_filter_adapt_info_fn(),
    )

    def chain(key: PRNGKeyArray, start: Float[Array, " p"]) -> tuple[Float[Array, "draws p"], Int[Array, ""]]:
        warmup_key, key = jax.random.split(key)
        (state, parameters), _ = adaptation.run(warmup_key, start, warmup)
        kernel = blackjax.nuts(log_density, **parameters)

        def step(state, key):
            state, info = kernel.step(key, state)
            return state, (state.position, info.is_divergent)

        _, (path, divergent) = jax.lax.scan(step, state, jax.random.split(key, draws))
        return path, divergent.sum()

    paths, divergences = jax.vmap(chain)(jax.random.split(chain_key, chains), starts)
    # R-hat compares chains; a single one is compared with itself, first half against second.
    compared = paths if chains > 1 else paths[0, : draws // 2 * 2].reshape(2, draws // 2, -1)
    info = NutsInfo(blackjax.diagnostics.rhat(compared), blackjax.diagnostics.ess_bulk(compared), divergences)
    return paths, info
