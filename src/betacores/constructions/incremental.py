"""Incremental construction of a sparse β-posterior: β-Cores, and with β = 0 SparseVI.

Problem: find few rows and weights `w ≥ 0` with `KL(π_w ‖ π_β)` small, where `π_w ∝ exp(Σ_m w_m f_m) π0`.

Update, for m = 1..M: draw S parameters from the current `π_w`; draw a minibatch of B rows; centre the likelihood
vectors over the draws (`ḡ`); with the residual `R = (N/B) Σ_b ḡ_b − Σ_m w_m ḡ_m`, score the minibatch by `ḡ·R/‖ḡ‖` and
the members by its absolute value, and take the best, which may be a member already. Then T steps on the weights along
`(1/S) ḡ·R`, with fresh draws and a fresh minibatch at each step, projected on `w ≥ 0`.

Reference: Algorithm 1 of Manousakas and Mascolo, "β-Cores", WSDM 2021; Campbell and Beronov, "Sparse variational
inference: Bayesian coresets from scratch", NeurIPS 2019.

| paper | here |
|---|---|
| M | ``size`` (outer iterations; a row chosen twice makes the coreset smaller) |
| B | ``batch_select``, ``batch_optimise`` |
| S | ``draws`` |
| T | ``steps`` |
| γ_t | ``learning_rate`` |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from betacores.constructions.path import Path
from betacores.constructions.rough import rough_posterior
from betacores.divergence import Beta, as_beta, likelihoods
from betacores.models.base import Model, Rows
from betacores.posteriors.conjugate import has_conjugate
from betacores.posteriors.laplace import first_guess
from betacores.programs import WIDE, Program
from betacores.sampling import random_subset
from betacores.tangent import anchored, centred, vectors

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

Optimiser = Literal["adam", "sgd"]
SamplerTarget = Literal["beta", "classical"]
Progress = Callable[[int, int], None]


class State(NamedTuple):
    """A coreset of fixed capacity; places from ``filled`` on are empty and weigh nothing."""

    ids: Int[Array, " m"]
    rows: Rows
    weights: Float[Array, " m"]
    filled: Int[Array, ""]
    mode: Float[Array, " p"]


def incremental(
    model: Model,
    rows: Rows,
    key: PRNGKeyArray,
    *,
    size: int,
    beta: float,
    draws: int = 100,
    steps: int = 500,
    batch_select: int | None = 1000,
    batch_optimise: int | None = 200,
    learning_rate: float | Callable[[int], float] = 1.0,
    optimiser: Optimiser = "adam",
    sampler_target: SamplerTarget = "beta",
    eligible: Bool[np.ndarray, " n"] | None = None,
    capacity: int | None = None,
    progress: Progress | None = None,
) -> Path:
    """Return the path of Algorithm 1.

    Parameters
    ----------
    model, rows
        The model, and all rows on the device.
    key
        Random key.
    size
        Number of outer iterations, and so the largest coreset.
    beta
        Of the β-likelihood; 0 gives SparseVI.
    draws
        Parameters drawn at every step.
    steps
        Weight updates at every outer iteration.
    batch_select, batch_optimise
        Rows drawn without replacement to choose from, and for each weight update; None means all rows.
    learning_rate
        `c0` of the schedule `c0/t`, or any function of t = 1..steps.
    optimiser
        ``"adam"`` as in the published code, or ``"sgd"`` as printed in the paper.
    sampler_target
        Whether the draws come from the coreset's β-posterior, as Algorithm 1 says, or from its classical posterior,
        as in the published code.
    eligible
        Which rows may be chosen; all if not given.
    capacity
        Places held for the coreset; at least, and by default, ``size``.
    progress
        Called with the number of finished outer iterations and their total.
    """
    if hasattr(model, "compact"):
        model, rows = model.compact(rows)
    row_count = rows.x.shape[0]
    state = empty_state(model, rows, max(size, capacity or 0))
    rate = learning_rate if callable(learning_rate) else lambda t: learning_rate / t
    advance = partial(
        _advance,
        model,
        rows,
        jnp.ones(row_count, bool) if eligible is None else jnp.asarray(eligible),
        rates=jnp.asarray([rate(t) for t in range(1, steps + 1)], rows.x.dtype),
        beta=as_beta(beta),
        draws=draws,
        batch_select=min(batch_select or row_count, row_count),
        batch_optimise=min(batch_optimise or row_count, row_count),
        optimiser=optimiser,
        sampler_beta=as_beta(beta if sampler_target == "beta" else 0.0),
        exact=has_conjugate(model) and (sampler_target == "classical" or beta == 0),
    )
    weights, warnings = [], []
    for m in range(1, size + 1):
        try:
            state = advance(state, jax.random.fold_in(key, m))
            weights.append(np.asarray(state.weights, np.float64))
            if progress is not None:
                progress(m, size)
        except KeyboardInterrupt:
            if not weights:
                raise
            warnings.append(f"Interrupted: {len(weights)} of {size} outer iterations were done.")
            break
    filled = int(state.filled)
    if not np.any(weights[-1] > 0):
        warnings.append("No row was selected: every candidate's likelihood is the same under all draws.")
    return Path(np.asarray(state.ids)[:filled], np.asarray(weights)[:, :filled], tuple(warnings))


def empty_state(model: Model, rows: Rows, capacity: int) -> State:
    """Return a coreset without members."""
    # Places without a row hold the first, of weight zero: a likelihood need not be defined at a row of zeros.
    places = jax.tree.map(lambda a: jnp.broadcast_to(a[:1], (capacity, *a.shape[1:])), rows)
    mode = first_guess(model, rows.x.shape[-1], rows.x.dtype)
    return State(jnp.full(capacity, -1, jnp.int32), places, jnp.zeros(capacity, mode.dtype), jnp.int32(0), mode)


@partial(
    Program,
    # The last level of optimisation takes a second more to compile, and gains a few per cent at most.
    on_processors={**WIDE, "xla_backend_optimization_level": 2},
    static_argnames=("draws", "batch_select", "batch_optimise", "optimiser", "exact"),
)
def _advance(
    model,
    rows,
    eligible,
    state,
    key,
    *,
    rates,
    beta,
    sampler_beta,
    exact,
    draws,
    batch_select,
    batch_optimise,
    optimiser,
) -> State:
    """Make one outer iteration: choose a row, then optimise the weights."""
    row_count = rows.x.shape[0]

    def draw(state: State, noise: Float[Array, "s p"]) -> tuple[Float[Array, "s p"], State]:
        posterior = rough_posterior(model, state.rows, state.weights, sampler_beta, state.mode, exact)
        return posterior.transform(noise), state._replace(mode=posterior.mean)

    def minibatch(key: PRNGKeyArray, batch: int) -> tuple[Int[Array, " b"], Rows]:
        ids = random_subset(key, row_count, batch)
        return ids, jax.tree.map(lambda a: a[ids], rows)

    select_key, steps_key, noise_key = jax.random.split(key, 3)
    # All draws of the iteration at once and in one flat array: generated inside the loop they cost five times as much.
    shape = (1 + rates.shape[0], draws, state.mode.shape[0])
    noise = jax.random.normal(noise_key, (math.prod(shape),), rows.x.dtype).reshape(shape)

    thetas, state = draw(state, noise[0])
    ids, batch = minibatch(select_key, batch_select)
    candidates = vectors(model, thetas, batch, beta)
    members = centred(_member_values(model, thetas, state, beta))
    residual = row_count / batch_select * candidates.sum(0) - state.weights @ members
    free = eligible[ids] & ~jnp.isin(ids, state.ids)
    state = _insert(state, ids, batch, *select(candidates, members, residual, free))

    transform = optax.scale_by_adam() if optimiser == "adam" else optax.identity()

    def step(carry, inputs):
        state, memory = carry
        key, noise, rate = inputs
        thetas, state = draw(state, noise)
        _, batch = minibatch(key, batch_optimise)
        total = row_count / batch_optimise * likelihoods(model, thetas, batch, beta).sum(0)
        members = anchored(_member_values(model, thetas, state, beta))
        residual = total - state.weights @ members
        gradient = -members @ (residual - residual.mean()) / draws
        direction, memory = transform.update(gradient, memory)
        return (state._replace(weights=jnp.maximum(state.weights - rate * direction, 0)), memory), None

    inputs = (jax.random.split(steps_key, rates.shape[0]), noise[1:], rates)
    (state, _), _ = jax.lax.scan(step, (state, transform.init(state.weights)), inputs)
    return state


def select(
    candidates: Float[Array, "b s"],
    members: Float[Array, "m s"],
    residual: Float[Array, " s"],
    free: Bool[Array, " b"],
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Choose by correlation with the residual.

    Parameters
    ----------
    candidates, members
        Centred vectors of the minibatch and of the coreset.
    residual
        What the coreset still lacks.
    free
        Which candidates may be chosen.

    Returns
    -------
    place
        Of the best candidate.
    insert
        Whether it is to be inserted: it has a direction, and no member does better.
    """
    gains = jnp.where(free, _correlations(candidates, residual), -jnp.inf)
    member_gains = jnp.abs(_correlations(members, residual))
    # A vector of zeros has no direction: 0/0 must never select a row.
    best_member = jnp.where(jnp.isfinite(member_gains), member_gains, -jnp.inf).max(initial=-jnp.inf)
    place = gains.argmax()
    return place, jnp.isfinite(gains[place]) & (gains[place] > best_member)


def _correlations(vectors: Float[Array, "n s"], residual: Float[Array, " s"]) -> Float[Array, " n"]:
    length = jnp.linalg.norm(vectors, axis=-1)
    return jnp.where(length > 0, vectors @ residual / jnp.where(length > 0, length, 1.0), -jnp.inf)


def _member_values(model: Model, thetas: Float[Array, "s p"], state: State, beta: Beta) -> Float[Array, "m s"]:
    taken = jnp.arange(state.ids.shape[0]) < state.filled
    return jnp.where(taken[:, None], likelihoods(model, thetas, state.rows, beta), 0.0)


def _insert(state: State, ids: Int[Array, " b"], batch: Rows, place: Array, insert: Array) -> State:
    def put(places: Array, values: Array) -> Array:
        return places.at[state.filled].set(jnp.where(insert, values[place], places[state.filled]))

    return state._replace(
        ids=put(state.ids, ids),
        rows=jax.tree.map(put, state.rows, batch),
        filled=state.filled + insert.astype(jnp.int32),
    )
