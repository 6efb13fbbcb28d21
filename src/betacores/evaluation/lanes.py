"""Many small weighted posteriors side by side: each a lane of one compiled program."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax

from betacores.divergence import Beta
from betacores.models.base import Model, Rows
from betacores.posteriors.laplace import laplace

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray

# Lanes wait for the longest trajectory: 63 steps at most, where seven are usual.
MAX_DOUBLINGS = 6


class Lanes(NamedTuple):
    """Draws of every lane and chain, and one diagnostic a lane, the worst over parameters or the sum over chains."""

    thetas: Float[Array, "lanes chains draws p"]
    r_hat: Float[Array, " lanes"]
    effective_sample_size: Float[Array, " lanes"]
    divergences: Int[Array, " lanes"]


@partial(jax.jit, static_argnames=("draws", "chains", "warmup"))
def nuts_lanes(
    keys: PRNGKeyArray,
    model: Model,
    rows: Rows,
    weights: Float[Array, "lanes n"],
    beta: Beta,
    *,
    draws: int,
    chains: int,
    warmup: int,
) -> Lanes:
    """Return draws by NUTS of several weighted posteriors.

    Parameters
    ----------
    keys
        One random key a lane.
    model
        The model of all lanes.
    rows, weights
        One set of weighted rows a lane. Rows of weight zero change nothing.
    beta
        Of the β-likelihood; None is the classical posterior.
    draws, chains, warmup
        Draws kept of each chain, number of chains, and steps of adaptation before.
    """
    from betacores.posteriors.nuts import nuts

    def one(key: PRNGKeyArray, rows: Rows, weights: Float[Array, " n"]) -> Lanes:
        thetas, info = nuts(
            key, model, rows, weights, beta, draws=draws, chains=chains, warmup=warmup, max_doublings=MAX_DOUBLINGS
        )
        return Lanes(thetas, info.r_hat.max(), info.effective_sample_size.min(), info.divergences.sum())

    return jax.vmap(one)(keys, rows, weights)


@partial(jax.jit, static_argnames=("draws",))
def laplace_lanes(
    keys: PRNGKeyArray, model: Model, rows: Rows, weights: Float[Array, "lanes n"], beta: Beta, *, draws: int
) -> Float[Array, "lanes draws p"]:
    """Return independent draws of the Laplace approximations of several weighted posteriors."""

    def one(key: PRNGKeyArray, rows: Rows, weights: Float[Array, " n"]) -> Float[Array, "draws p"]:
        posterior = laplace(model, rows, weights, beta)[0]
        return posterior.transform(jax.random.normal(key, (draws, posterior.mean.shape[-1]), posterior.mean.dtype))

    return jax.vmap(one)(keys, rows, weights)
