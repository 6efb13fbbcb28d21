"""The mode of the β-posterior over all rows: where scores are read, and the reference for screening.

The β-posterior of dirty data has several modes, one for each cluster the model could explain. The search therefore
starts from several points, each with a schedule of β:

- ``prior``: the prior's mean (zero where the model does not tell it), at β throughout;
- ``robust``: the model's own robust start (medians, say), if it has one, at β throughout;
- ``ladder``: the classical mode, followed as β grows from 0, for starts so far off that every row would count nothing.

They run on a sample of rows, first on its core, the rows with no cell far from its column's median: rows of great
leverage hold the search at a poor mode next to them, though at a better one they count nothing. The best log-posterior
wins and is polished on all rows. Every pass is a sum over blocks; steps are the damped Newton steps of the Laplace
approximation.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from betacores.divergence import as_beta
from betacores.models.base import Model, Rows
from betacores.posteriors.derivatives import Derivatives, add, likelihood_derivatives, prior_derivatives
from betacores.posteriors.laplace import TOLERANCE, accepts, newton, next_damping
from betacores.sampling import random_subset
from betacores.sources import ArraySource, Source, reduce

SAMPLE_ROWS = 20_000
LADDER = (0.0, *(4.0**-k for k in range(12, 0, -1)))
CORE_SCALES = 4.0
STAGE_STEPS = 25


class Pilot(NamedTuple):
    """The mode, and how the search for it went."""

    theta: Float[np.ndarray, " p"]
    log_posterior: float
    converged: bool
    start: str


def pilot(model: Model, source: Source, beta: float, key: PRNGKeyArray) -> Pilot:
    """Return the mode of the β-posterior over all rows of a source."""
    p = model.parameter_count(len(source.columns))
    ids = np.asarray(random_subset(key, source.row_count, min(SAMPLE_ROWS, source.row_count)))
    sample = source.take(np.sort(ids))
    prior = np.asarray(model.prior.mean_vector(p) if hasattr(model, "prior") else np.zeros(p), np.float32)
    starts = {"prior": (prior, [beta]), "ladder": (prior, [beta * share for share in LADDER] + [beta])}
    if hasattr(model, "robust_start"):
        starts["robust"] = (np.asarray(model.robust_start(sample)), [beta])
    scale = source.row_count / sample.x.shape[0]
    everything, core = ArraySource(sample.x, sample.y), _core(model, sample)
    found = {}
    for name, (theta, betas) in starts.items():
        for stage in betas:
            theta, *_ = _climb(model, core, theta, stage, scale)
        found[name] = _climb(model, everything, theta, beta, scale)
    # A start that did not converge is taken only if none did.
    best = max(found, key=lambda name: (bool(found[name][2]), found[name][1]))
    theta, value, converged = found[best]
    if scale > 1:
        theta, value, converged = _climb(model, source, theta, beta, 1.0)
    return Pilot(np.asarray(theta), float(value), bool(converged), best)


def curvature(model: Model, source: Source, theta: np.ndarray, beta: float) -> Float[np.ndarray, "p p"]:
    """Return the negative Hessian of the log-posterior over all rows."""
    traced = as_beta(beta)
    total = reduce(source, lambda rows, present: _block_derivatives(model, theta, rows, present, traced))
    return -(total.hessian + np.asarray(prior_derivatives(model, jnp.asarray(theta)).hessian))


def _core(model: Model, sample: Rows) -> Source:
    """Return the rows whose every number is within a few scales of its column's median, and at least half of all."""
    table = np.column_stack([sample.x, sample.y]) if model.response == "real" else sample.x
    low, middle, high = np.quantile(table, (0.01, 0.5, 0.99), axis=0)
    away = np.abs(table - middle)
    # The spread of the central 98 % stands in where most cells of a column are equal, as with rare categories.
    scale = np.median(1.5 * away, axis=0)
    scale = np.where(scale > 0, scale, (high - low) / 2)
    farthest = (away / np.where(scale > 0, scale, 1.0)).max(axis=1)
    kept = farthest <= max(CORE_SCALES, np.median(farthest))
    # Left out by a zero, not cut out: another shape for every table would be another compilation.
    return ArraySource(sample.x, sample.y, present=kept)


def _climb(
    model: Model, source: Source, theta: np.ndarray, beta: float, scale: float
) -> tuple[np.ndarray, float, bool]:
    """Climb to a mode of `scale · Σ_n f_n + log π0` by damped Newton steps, one pass over the rows each."""
    traced = as_beta(beta)

    def look(theta: np.ndarray) -> Derivatives:
        total = reduce(source, lambda rows, present: _block_derivatives(model, theta, rows, present, traced))
        return Derivatives(*(scale * part for part in total))

    at, damping = look(theta), 0.0
    for _ in range(STAGE_STEPS):
        step, decrement, log_posterior = _newton_step(model, theta, at, damping)
        if decrement <= TOLERANCE and damping == 0:
            return np.asarray(theta + step), float(log_posterior), True
        proposal = np.asarray(theta + step)
        there = look(proposal)
        better = bool(_is_better(model, theta, at, proposal, there))
        theta, at = (proposal, there) if better else (theta, at)
        damping = float(next_damping(jnp.asarray(damping), jnp.asarray(better)))
    return theta, float(_newton_step(model, theta, at, damping)[2]), False


@jax.jit
def _block_derivatives(model: Model, theta: Array, rows: Rows, present: Array, beta: Array | None) -> Derivatives:
    return likelihood_derivatives(model, theta, rows, present, beta)


@jax.jit
def _newton_step(
    model: Model, theta: Array, likelihood: Derivatives, damping: Array
) -> tuple[Float[Array, " p"], Float[Array, ""], Float[Array, ""]]:
    at = add(likelihood, prior_derivatives(model, theta))
    step, decrement, _, _ = newton(model, theta, at, damping)
    return step, decrement, at.value


@jax.jit
def _is_better(model: Model, theta: Array, at: Derivatives, proposal: Array, there: Derivatives) -> Bool[Array, ""]:
    return accepts(at.value + model.log_prior(theta), there.value + model.log_prior(proposal))
