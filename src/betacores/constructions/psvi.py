"""Pseudo-coresets: points that are rows no longer, moved to where few of them stand for all rows.

Problem: points `u` and weights `w ≥ 0` with `KL(π_{u,w} ‖ π)` small, where `π_{u,w} ∝ exp(Σ_m w_m f(u_m)) π0`.

Update: begin with a uniform subset of m rows, each of weight N/m. At every step draw S parameters from `π_{u,w}` and a
minibatch of B rows; with the residual `R = (N/B) Σ_b f_b − Σ_m w_m f(u_m)`, centred over the draws, step against the
gradient of `½ mean R²` in points and weights with the draws held fixed: for weights it is `−(1/S) f̄·R`, for points
`−w_m (1/S) Σ_s (∇f(u_m) − mean ∇f(u_m)) R_s`, which are the gradients of the KL divergence. Points move in units of
each column's robust scale; labels stay as they are, real responses move as well.

All sizes on the ladder are optimised side by side.

Reference: Manousakas, Xu, Mascolo and Campbell, "Bayesian pseudocoresets", NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from betacores.constructions.ladder import ladder, rung_of_every_size
from betacores.constructions.path import Path
from betacores.constructions.rough import rough_posterior
from betacores.divergence import Beta, as_beta, likelihoods
from betacores.models.base import Model, Rows
from betacores.posteriors.conjugate import has_conjugate
from betacores.posteriors.laplace import first_guess
from betacores.randomness import split
from betacores.robust import robust_location_scale
from betacores.sampling import random_subset, sample_rows, shuffled_rows
from betacores.sources import ArraySource
from betacores.tangent import anchored

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

# Rows the columns' scales are learned from.
SCALE_ROWS = 10_000
# Steps between two looks at the clock: progress is shown, and an interruption heeded.
TOGETHER = 50


class Moving(NamedTuple):
    """What the steps move: points, as shifts in units of the columns' scales, and weights."""

    shift: Rows
    weights: Float[Array, " m"]


class State(NamedTuple):
    """One size: what has moved, the optimiser's memory, and the last mode."""

    moving: Moving
    memory: optax.OptState
    mode: Float[Array, " p"]


class Start(NamedTuple):
    """Where the points of one size begin, and which places are taken."""

    rows: Rows
    taken: Array


def psvi(
    model: Model,
    source: ArraySource,
    key: PRNGKeyArray,
    *,
    size: int,
    beta: float,
    sizes: Iterable[int] | None = None,
    draws: int = 100,
    steps: int = 500,
    batch_optimise: int | None = 200,
    learning_rate: float | Callable[[int], float] = 0.1,
    optimiser: str = "adam",
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the path of pseudo-coresets.

    Parameters
    ----------
    model, source
        The model, and the rows.
    key
        Random key.
    size
        The largest number of points.
    beta
        Of the β-likelihood; 0 is the classical one.
    sizes
        Sizes to optimise for; by default halvings of `size`. See `betacores.constructions.ladder`.
    draws
        Parameters drawn at every step.
    steps
        Gradient steps.
    batch_optimise
        Rows drawn without replacement at every step; None means all rows.
    learning_rate
        `c0` of the schedule `c0/t`, or any function of t = 1..steps. Adam's steps are about as long as their rate: at
        the published 0.1 a point travels by about 0.7 scales in 500 steps, and 0.5 serves a few points better.
    optimiser
        ``"adam"`` as in the published code, or ``"sgd"``.
    progress
        Called with the number of finished steps and their total.
    """
    subset_key, scale_key, step_key = split(key, 3)
    everything, rungs = source.on_device, ladder(size, sizes)
    row_count = source.row_count
    order = np.stack([shuffled_rows(jax.random.fold_in(subset_key, m), row_count, size) for m in rungs])
    taken = np.arange(size) < np.asarray(rungs)[:, None]
    scale = _scales(model, source, scale_key)
    start = Start(jax.tree.map(lambda a: a[order], everything), jnp.asarray(taken))
    weights = jnp.asarray(np.where(taken, row_count / np.asarray(rungs)[:, None], 0.0), jnp.float32)
    moving = Moving(jax.tree.map(jnp.zeros_like, start.rows), weights)
    transform = optax.scale_by_adam() if optimiser == "adam" else optax.identity()
    mode = jnp.tile(first_guess(model, len(source.columns)), (len(rungs), 1))
    state = State(moving, jax.vmap(transform.init)(moving), mode)
    rate = learning_rate if callable(learning_rate) else lambda t: learning_rate / t
    rates = np.asarray([rate(t) for t in range(1, steps + 1)], np.float32)
    warnings = []
    for first in range(0, steps, TOGETHER):
        try:
            state = _advance(
                model,
                everything,
                start,
                scale,
                state,
                jax.random.fold_in(step_key, first),
                jnp.asarray(rates[first : first + TOGETHER]),
                as_beta(beta),
                draws=draws,
                batch=min(batch_optimise or row_count, row_count),
                optimiser=optimiser,
                exact=has_conjugate(model) and beta == 0,
            )
            jax.block_until_ready(state.moving.weights)
            if progress is not None:
                progress(min(first + TOGETHER, steps), steps)
        except KeyboardInterrupt:
            warnings.append(f"Interrupted: {first} of {steps} steps were done.")
            break
    points = jax.tree.map(lambda a: np.asarray(a)[taken], _moved(start.rows, scale, state.moving.shift))
    # Every size has points of its own, and so columns of its own.
    own = np.repeat(np.arange(len(rungs)), rungs) == np.arange(len(rungs))[:, None]
    each = np.zeros(own.shape)
    each[own] = np.asarray(state.moving.weights, np.float64)[taken]
    rung_at = rung_of_every_size(rungs, size)
    weights_at = np.where(rung_at[:, None] >= 0, each[rung_at], 0.0)
    return Path(order[taken], weights_at, tuple(warnings), points=points)


def loss(
    model: Model,
    points: Rows,
    weights: Float[Array, " m"],
    thetas: Float[Array, "s p"],
    total: Float[Array, " s"],
    beta: Beta,
) -> Float[Array, ""]:
    """Return half the mean squared residual over draws: with the draws held fixed, its gradient is the KL's.

    Parameters
    ----------
    model, points, weights
        The pseudo-coreset.
    thetas
        Draws from its posterior.
    total
        The log-likelihood of all rows at the draws, up to a constant.
    beta
        Of the β-likelihood; None is the classical one.
    """
    residual = total - weights @ anchored(likelihoods(model, thetas, points, beta))
    return 0.5 * jnp.mean((residual - residual.mean()) ** 2)


def _moved(rows: Rows, scale: Rows, shift: Rows) -> Rows:
    return jax.tree.map(lambda start, unit, moved: start + unit * moved, rows, scale, shift)


def _scales(model: Model, source: ArraySource, key: PRNGKeyArray) -> Rows:
    """Return the units that points move in: a column's robust scale, and none for labels, which stay."""
    rows = source.take(sample_rows(key, source.row_count, SCALE_ROWS))
    x = jnp.asarray(robust_location_scale(rows.x)[1], jnp.float32)
    if rows.y is None:
        return Rows(x)
    real = model.response == "real"
    return Rows(x, jnp.asarray(robust_location_scale(rows.y[:, None])[1][0] if real else 0.0, jnp.float32))


@partial(jax.jit, static_argnames=("draws", "batch", "optimiser", "exact"))
def _advance(model, everything, start, scale, state, key, rates, beta, *, draws, batch, optimiser, exact) -> State:
    """Make some steps with every size."""
    row_count = everything.x.shape[0]
    transform = optax.scale_by_adam() if optimiser == "adam" else optax.identity()

    def one(state: State, start: Start, noise: Array, sample: Rows, rate: Array) -> State:
        rows, weights = _moved(start.rows, scale, state.moving.shift), state.moving.weights
        posterior = rough_posterior(model, rows, weights, beta, state.mode, exact)
        thetas = posterior.transform(noise)
        total = row_count / batch * anchored(likelihoods(model, thetas, sample, beta)).sum(0)

        def objective(moving: Moving) -> Array:
            return loss(model, _moved(start.rows, scale, moving.shift), moving.weights, thetas, total, beta)

        gradient = jax.grad(objective)(state.moving)
        direction, memory = transform.update(gradient, state.memory)
        moved = jax.tree.map(lambda at, step: at - rate * step, state.moving, direction)
        moved = moved._replace(weights=jnp.where(start.taken, jnp.maximum(moved.weights, 0), 0))
        new = State(moved, memory, posterior.mean)
        # Where a step would lead out of the numbers there are, it is not taken.
        sound = jnp.all(jnp.asarray([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(new)]))
        return jax.tree.map(lambda there, here: jnp.where(sound, there, here), new, state)

    def step(state: State, inputs: tuple[Array, Array]) -> tuple[State, None]:
        key, rate = inputs
        noise_key, batch_key = jax.random.split(key)
        sizes, p = state.mode.shape
        noise = jax.random.normal(noise_key, (sizes, draws, p))
        ids = random_subset(batch_key, row_count, batch)
        sample = jax.tree.map(lambda a: a[ids], everything)
        return jax.vmap(one, (0, 0, 0, None, None))(state, start, noise, sample, rate), None

    return jax.lax.scan(step, state, (jax.random.split(key, rates.shape[0]), rates))[0]
