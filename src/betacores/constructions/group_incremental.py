"""Algorithm 1 over groups: whole groups enter, their rows get weights.

Problem and update are those of `betacores.constructions.incremental`, with a group's vector the sum of its rows'. Every
selection looks at all groups, in one pass over the rows; then the weights of the rows that have entered are optimised,
one for each row as published, or one for each group.

Reference: Manousakas and Mascolo, "β-Cores", WSDM 2021, on batches and groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from betacores.constructions.incremental import select
from betacores.constructions.path import NOTHING, Path, stopped
from betacores.constructions.rough import rough_posterior
from betacores.constructions.units import WholeGroups
from betacores.divergence import Beta, as_beta, likelihoods
from betacores.groups import Groups
from betacores.models.base import Model, Rows
from betacores.posteriors.conjugate import has_conjugate
from betacores.posteriors.laplace import first_guess
from betacores.randomness import normals, split
from betacores.sampling import random_subset
from betacores.sources import ArraySource
from betacores.tangent import centred

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

# Places for rows come in multiples of so many, so that few sizes are compiled for.
PLACES = 512


def group_incremental(
    model: Model,
    source: ArraySource,
    groups: Groups,
    key: PRNGKeyArray,
    *,
    size: int,
    beta: float,
    draws: int,
    steps: int,
    batch_optimise: int | None,
    learning_rate: float | Callable[[int], float],
    optimiser: str,
    sampler_target: str,
    eligible: Bool[np.ndarray, " groups"] | None,
    by_row: bool,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the path of Algorithm 1 over groups, as one of rows.

    Parameters
    ----------
    model, source, groups
        The model, the rows, and which group each belongs to.
    key
        Random key.
    size
        Number of outer iterations, and so the largest number of groups.
    beta
        Of the β-likelihood; 0 gives SparseVI.
    draws, steps, batch_optimise, learning_rate, optimiser, sampler_target
        As for `betacores.constructions.incremental.incremental`.
    eligible
        Which groups may be chosen; all if not given.
    by_row
        Whether every row has a weight of its own, or all rows of a group have one.
    progress
        Called with the number of finished outer iterations and their total.
    """
    rules = rules_of(
        model,
        source.row_count,
        beta=beta,
        draws=draws,
        steps=steps,
        batch_optimise=batch_optimise,
        learning_rate=learning_rate,
        optimiser=optimiser,
        sampler_target=sampler_target,
        by_row=by_row,
    )
    units, now = WholeGroups(groups), EMPTY
    free = np.ones(len(groups), bool) if eligible is None else np.asarray(eligible)
    history: list[np.ndarray] = []
    warnings: tuple[str, ...] = ()
    for m in range(1, size + 1):
        now = group_step(model, source, units, now, free, jax.random.fold_in(key, m), rules)
        history.append(now.weights)
        if warnings := stopped(progress, m, size):
            break
    if not len(now.members):
        return NOTHING
    padded = [np.pad(one, (0, len(now.members) - len(one))) for one in history]
    return Path(now.members, np.stack(padded), warnings)


class Rules(NamedTuple):
    """How a step goes about it; see `group_incremental`."""

    beta: Beta
    sampler_beta: Beta
    exact: bool
    draws: int
    batch: int
    rates: Float[np.ndarray, " steps"]
    optimiser: str
    by_row: bool


class Entered(NamedTuple):
    """Groups in order of entrance, their rows, and the rows' weights."""

    chosen: tuple[int, ...]
    members: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]


EMPTY = Entered((), np.zeros(0, int), np.zeros(0))


def rules_of(
    model: Model,
    row_count: int,
    *,
    beta: float,
    draws: int,
    steps: int,
    batch_optimise: int | None,
    learning_rate: float | Callable[[int], float],
    optimiser: str,
    sampler_target: str,
    by_row: bool,
) -> Rules:
    """Return the rules of steps for a model and so many rows; see `group_incremental`."""
    rate = learning_rate if callable(learning_rate) else lambda t: learning_rate / t
    sampler_beta = as_beta(beta if sampler_target == "beta" else 0.0)
    return Rules(
        beta=as_beta(beta),
        sampler_beta=sampler_beta,
        exact=has_conjugate(model) and sampler_beta is None,
        draws=draws,
        batch=min(batch_optimise or row_count, row_count),
        rates=np.array([rate(t) for t in range(1, steps + 1)], np.float32),
        optimiser=optimiser,
        by_row=by_row,
    )


def group_step(
    model: Model,
    source: ArraySource,
    units: WholeGroups,
    now: Entered,
    free: Bool[np.ndarray, " groups"],
    key: PRNGKeyArray,
    rules: Rules,
) -> Entered:
    """Let one group enter, unless one that has entered needs other weights more, and optimise the weights.

    Parameters
    ----------
    model, source, units
        The model, the rows, and their groups.
    now
        What has entered so far.
    free
        Which groups may enter.
    key
        Random key.
    rules
        How.
    """
    chosen, members, weights = now
    draw_key, step_key = split(key, 2)
    held, held_weights = _held(source, members, weights)
    noise = normals(draw_key, (rules.draws, model.parameter_count(len(source.columns))))
    thetas, own = _at(model, held, held_weights, noise, rules.beta, rules.sampler_beta, rules.exact)
    everyone = np.arange(units.count)
    vectors = units.vectors(model, thetas, source, everyone, rules.beta)
    residual = vectors.sum(0) - weights @ np.asarray(own, np.float64)[: len(weights)]
    place, insert = select(
        jnp.asarray(vectors),
        jnp.asarray(vectors[list(chosen)]),
        jnp.asarray(residual, jnp.float32),
        jnp.asarray(free & ~np.isin(everyone, chosen)),
    )
    if bool(insert):
        chosen = (*chosen, int(place))
        entered = units.groups.members(np.array([int(place)]))
        members, weights = np.concatenate([members, entered]), np.concatenate([weights, np.zeros(len(entered))])
    if len(members):
        held, held_weights = _held(source, members, weights)
        sizes = units.groups.sizes[list(chosen)]
        tied = np.arange(len(members)) if rules.by_row else np.repeat(np.arange(len(chosen)), sizes)
        tied = np.pad(tied, (0, len(held_weights) - len(tied)), constant_values=len(held_weights) - 1)
        found = _optimise(
            model,
            source.on_device,
            held,
            held_weights,
            jnp.asarray(tied),
            jnp.asarray(len(members)),
            step_key,
            **(rules._asdict() | {"rates": jnp.asarray(rules.rates)}),
        )
        weights = np.asarray(found, np.float64)[: len(members)]
    return Entered(chosen, members, weights)


def _held(source: ArraySource, members: Int[np.ndarray, " m"], weights: np.ndarray) -> tuple[Rows, Float[Array, " c"]]:
    """Return rows and weights, padded by rows of weight zero."""
    count = len(members)
    # Half a doubling at a time: few sizes to compile for, and no more than 42 % of room that is not needed.
    halves = max(math.ceil(2 * math.log2(max(count, 1) / PLACES)), 0)
    places = math.ceil(PLACES * 2 ** (halves / 2))
    rows = source.take(np.pad(members, (0, places - count)))
    return jax.tree.map(jnp.asarray, rows), jnp.asarray(np.pad(weights, (0, places - count)), jnp.float32)


@partial(jax.jit, static_argnames="exact")
def _at(model, rows, weights, noise, beta, sampler_beta, exact) -> tuple[Float[Array, "s p"], Float[Array, "c s"]]:
    """Return draws from the coreset's posterior, and its rows' vectors."""
    thetas = rough_posterior(model, rows, weights, sampler_beta, None, exact).transform(noise)
    return thetas, centred(likelihoods(model, thetas, rows, beta))


@partial(jax.jit, static_argnames=("draws", "batch", "optimiser", "exact", "by_row"))
def _optimise(
    model,
    everything,
    rows,
    weights,
    tied,
    count,
    key,
    *,
    rates,
    beta,
    sampler_beta,
    draws,
    batch,
    optimiser,
    exact,
    by_row,
) -> Float[Array, " c"]:
    """Optimise the weights of rows, those tied together being one."""
    del by_row  # said by what is tied
    row_count, places = everything.x.shape[0], weights.shape[0]
    taken = jnp.arange(places) < count
    transform = optax.scale_by_adam() if optimiser == "adam" else optax.identity()
    rows_tied = jnp.maximum(jax.ops.segment_sum(taken.astype(weights.dtype), tied, places), 1)
    free = jax.ops.segment_sum(weights, tied, places) / rows_tied
    mode = first_guess(model, rows.x.shape[-1], weights.dtype)

    def step(carry, inputs):
        free, memory, mode = carry
        key, rate = inputs
        noise_key, batch_key = jax.random.split(key)
        own = jnp.where(taken, free[tied], 0.0)
        posterior = rough_posterior(model, rows, own, sampler_beta, mode, exact)
        thetas = posterior.transform(jax.random.normal(noise_key, (draws, mode.shape[0])))
        ids = random_subset(batch_key, row_count, batch)
        sample = jax.tree.map(lambda a: a[ids], everything)
        total = row_count / batch * likelihoods(model, thetas, sample, beta).sum(0)
        # Draws down, rows across, as they are computed: the other way round each step takes three times as long.
        members = likelihoods(model, thetas, rows, beta).T
        members = members - members[:1]
        residual = total - members @ own
        each = jnp.where(taken, (residual.mean() - residual) @ members / draws, 0.0)
        gradient = jax.ops.segment_sum(each, tied, places)
        direction, memory = transform.update(gradient, memory)
        return (jnp.maximum(free - rate * direction, 0), memory, posterior.mean), None

    inputs = (jax.random.split(key, rates.shape[0]), rates)
    (free, _, _), _ = jax.lax.scan(step, (free, transform.init(free), mode), inputs)
    return jnp.where(taken, free[tied], 0.0)
