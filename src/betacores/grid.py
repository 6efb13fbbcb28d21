"""Modes of the β-posterior for many β at once: all lanes of the grid share every pass over the rows.

A lane's Newton steps are damped as those of a single mode; a lane that has arrived waits for the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.divergence import Beta
from betacores.models.base import LinearPredictor, Model, Rows
from betacores.posteriors.derivatives import (
    Derivatives,
    add,
    likelihood_derivatives,
    prior_derivatives,
    response_derivatives,
    row_gradients,
)
from betacores.posteriors.gaussian import scaled_cholesky
from betacores.posteriors.laplace import TOLERANCE
from betacores.programs import block_program
from betacores.sources import Source, over_chunks, reduce
from betacores.sources.base import CHUNK_ROWS

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float

# Up to so many parameters a row's outer product is formed once for the whole grid.
FEW_PARAMETERS = 24
SEVERAL_LANES, MANY_LANES = 3, 8
# Squared length, in posterior standard deviations, of a step that is made whatever the value says: it changes the value
# by less than a numerical power integral is off, by the same amount in every row.
SHORT = 1e-3


class GridFit(NamedTuple):
    """Modes for a grid of β, and how they were found.

    ``likelihood`` holds the derivatives of `Σ_n w_n f_n`, one a lane, at ``looked_at``, one Newton step before
    ``thetas``.
    """

    thetas: Float[np.ndarray, "k p"]
    looked_at: Float[np.ndarray, "k p"]
    likelihood: Derivatives
    converged: Bool[np.ndarray, " k"]


def grid_modes(
    model: Model,
    source: Source,
    starts: Float[np.ndarray, "k p"],
    betas: Float[np.ndarray, " k"],
    *,
    scale: float = 1.0,
    steps: int = 25,
    tolerance: float = TOLERANCE,
) -> GridFit:
    """Climb from the starts to a mode of `scale · Σ_n w_n f_n + log π0` for every β.

    Parameters
    ----------
    model, source
        The model, and the rows.
    starts, betas
        One start and one β a lane.
    scale
        By which the sums over the source are multiplied, when it is a sample of the rows.
    steps
        Passes after the first; with none, one Newton step from the starts is made.
    tolerance
        Squared Newton decrement, in posterior standard deviations, from which the last step is made.
    """
    thetas = np.asarray(starts, np.float32)

    def look(at: np.ndarray) -> Derivatives:
        return grid_derivatives(model, source, at, betas, scale=scale)

    def with_prior(likelihood: Derivatives, at: np.ndarray) -> tuple[Derivatives, np.ndarray]:
        prior = priors_at(model, at)
        return add(likelihood, prior), prior.hessian

    # Rows that fit well have a likelihood near zero, the sum of parts that are not.
    rounding = 4 * float(np.finfo(np.float32).eps) * scale * source.row_count
    likelihood, damping = look(thetas), np.zeros(len(betas))
    posterior, bend = with_prior(likelihood, thetas)
    for passes in range(steps + 1):
        step, decrement = _newton_steps(posterior, bend, damping)
        arrived = (decrement <= tolerance) & (damping == 0) & np.isfinite(posterior.value)
        if arrived.all() or passes == steps:
            break
        proposal = np.where(arrived[:, None], thetas, thetas + step).astype(np.float32)
        there = look(proposal)
        beyond, bend_there = with_prior(there, proposal)
        short = (decrement <= SHORT) & np.isfinite(beyond.value)
        better = (_accepts(posterior.value, beyond.value, rounding) | short) & ~arrived
        thetas, bend = chosen(better, (proposal, bend_there), (thetas, bend))
        likelihood = Derivatives(*chosen(better, there, likelihood))
        posterior = Derivatives(*chosen(better, beyond, posterior))
        lower, higher = np.where(damping > 1e-2, damping * 0.1, 0.0), np.maximum(damping * 10, 0.1)
        damping = np.where(arrived, damping, np.where(better, lower, higher))
    ended = np.where((damping == 0)[:, None], thetas + step, thetas).astype(np.float32)
    return GridFit(ended, thetas, likelihood, arrived)


def grid_derivatives(
    model: Model,
    source: Source,
    thetas: Float[np.ndarray, "k p"],
    betas: Float[np.ndarray, " k"],
    *,
    scale: float = 1.0,
) -> Derivatives:
    """Return the derivatives of `scale · Σ_n w_n f_n`, one a lane, in one pass and in double precision."""
    total = reduce(source, _block_derivatives, model, np.asarray(thetas, np.float32), as_betas(betas))
    return Derivatives(*(scale * part for part in total))


def as_betas(betas: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"] | None:
    """Return several β for a compiled program; None if all are zero, which asks no power integral of the model."""
    return np.asarray(betas, np.float32) if np.any(betas) else None


def last_step(model: Model, source: Source, fit: GridFit, betas: Float[np.ndarray, " k"], first: int = 0) -> GridFit:
    """Make one Newton step over all rows from the modes of a sample, in all lanes from the first, as they bend there.

    The curvature over M rows is off by a share of about `√(p/M)`, and so is the step. Where one step is enough at all
    (`betacores.samples`) that is a few hundredths of a posterior standard deviation, and a row's gradient costs a
    fraction of its curvature.
    """
    thetas, value, hessian = (part[first:] for part in (fit.thetas, fit.likelihood.value, fit.likelihood.hessian))
    gradients = reduce(source, _block_gradients, model, thetas, as_betas(betas[first:]))
    prior, held = priors_at(model, thetas), priors_at(model, fit.looked_at[first:])
    at = Derivatives(value, gradients + prior.gradient, hessian + held.hessian)
    steps, _ = _newton_steps(at, held.hessian, np.zeros(len(thetas)))
    return fit._replace(thetas=np.concatenate([fit.thetas[:first], (thetas + steps).astype(np.float32)]))


def priors_at(model: Model, thetas: Float[np.ndarray, "k p"]) -> Derivatives:
    """Return the derivatives of the log-prior at several parameters, in double precision."""
    # A few numbers: an accelerator would take longer to be asked than to answer.
    with jax.default_device(_processor()):
        found = _prior_derivatives(model, np.asarray(thetas, np.float32))
    return Derivatives(*(np.asarray(part, np.float64) for part in found))


def _processor() -> Any:
    """Return the processor as a device of JAX; None where JAX was told to leave it alone."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


def _accepts(
    value: Float[np.ndarray, " k"], proposed: Float[np.ndarray, " k"], rounding: float
) -> Bool[np.ndarray, " k"]:
    """Tell where a proposed log-posterior is no worse than the current one, up to single precision's rounding."""
    return np.isfinite(proposed) & ~(proposed < value - 8 * np.finfo(np.float32).eps * np.abs(value) - rounding)


def chosen(lanes: Bool[np.ndarray, " k"], new: Iterable[Any], old: Iterable[Any]) -> list[np.ndarray]:
    """Return the new arrays in some lanes, the old in the others."""
    return [np.where(lanes.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(new, old, strict=True)]


@block_program
def _block_derivatives(rows: Rows, weights: Array, model: Model, thetas: Array, betas: Array | None) -> Derivatives:
    def lanes(rows: Rows, weights: Array) -> Derivatives:
        if isinstance(model, LinearPredictor) and thetas.shape[-1] <= FEW_PARAMETERS:
            return _packed_derivatives(model, thetas, rows, weights, betas)
        return _plain_derivatives(model, thetas, rows, weights, betas)

    return over_chunks(lanes, rows, weights, _piece(len(thetas)))


@block_program
def _block_gradients(
    rows: Rows, weights: Array, model: Model, thetas: Array, betas: Array | None
) -> Float[Array, "k p"]:
    def lanes(rows: Rows, weights: Array) -> Array:
        if isinstance(model, LinearPredictor):
            z = model.features_down(rows)
            return (_over_lanes(model, thetas, z, rows, betas)[1] * weights) @ z.T
        return jax.lax.map(lambda at: weights @ row_gradients(model, at[0], rows, at[1]), (thetas, betas))

    return over_chunks(lanes, rows, weights, _piece(len(thetas)))


def _piece(lanes: int) -> int:
    """Return how many rows are looked at together; many lanes fill the cache with fewer."""
    return CHUNK_ROWS // 4 if lanes < MANY_LANES else CHUNK_ROWS // 8


def _plain_derivatives(model: Model, thetas: Array, rows: Rows, weights: Array, betas: Array | None) -> Derivatives:
    def lane(at: tuple[Array, Beta]) -> Derivatives:
        theta, beta = at
        return likelihood_derivatives(model, theta, rows, weights, beta)

    return jax.lax.map(lane, (thetas, betas))


def _packed_derivatives(
    model: LinearPredictor, thetas: Array, rows: Rows, weights: Array, betas: Array | None
) -> Derivatives:
    z = model.features_down(rows)
    p = len(z)
    value, slope, curvature = _over_lanes(model, thetas, z, rows, betas)
    bent = curvature * weights
    if len(thetas) < SEVERAL_LANES:
        hessian = jax.vmap(lambda lane: (lane * z) @ z.T)(bent)
    else:
        # Every Hessian is a weighted sum of the rows' z zᵀ: one product of all weights with the packed triangles.
        upper = np.triu_indices(p)
        places = np.zeros((p, p), int)
        places[upper] = places[upper[::-1]] = np.arange(len(upper[0]))
        hessian = (bent @ (z[upper[0]] * z[upper[1]]).T)[:, places]
    return Derivatives(value @ weights, (slope * weights) @ z.T, hessian)


def _over_lanes(model: LinearPredictor, thetas: Array, z: Array, rows: Rows, betas: Array | None) -> tuple[Array, ...]:
    """Return the likelihoods of responses and their first two derivatives by the linear predictors, one row a lane."""
    over_lanes = jax.vmap(response_derivatives, (None, 0, None, None if betas is None else 0))
    return over_lanes(model, model.with_offset(thetas @ z, rows.x), rows.y, betas)


def _newton_steps(
    at: Derivatives, prior_hessians: Float[np.ndarray, "k p p"], damping: Float[np.ndarray, " k"]
) -> tuple[Float[np.ndarray, "k p"], Float[np.ndarray, " k"]]:
    """Return damped Newton steps from derivatives of log-posteriors, one a lane, and the squared Newton decrements."""
    # On the host: compiling a decomposition for every number of lanes would take longer than all the steps.
    curvatures = -at.hessian
    # No direction of the posterior is taken to be flatter than the flattest of the prior.
    floors = np.maximum(-np.einsum("kpp->kp", prior_hessians).max(1), 1e-6)
    sharpness = np.maximum(np.abs(np.einsum("kpp->kp", curvatures)), floors[:, None])
    damped = curvatures + (damping[:, None] * sharpness)[:, :, None] * np.eye(sharpness.shape[1])
    lost = ~(np.isfinite(damped).all((1, 2)) & np.isfinite(at.gradient).all(1))
    damped[lost], gradients = np.eye(sharpness.shape[1]), np.where(lost[:, None], 0.0, at.gradient)
    try:
        steps = _downhill(damped, gradients)
    except np.linalg.LinAlgError:
        steps = np.stack([_lifted_step(*lane) for lane in zip(damped, gradients, floors, strict=True)])
    return steps, np.where(lost, np.inf, np.einsum("kp,kp->k", gradients, steps))


def _downhill(curvatures: Float[np.ndarray, "*k p p"], gradients: Float[np.ndarray, "*k p"]) -> np.ndarray:
    """Return the steps to where the gradients vanish; NumPy's error if a curvature is not positive definite."""
    scale, factor = scaled_cholesky(curvatures)
    half = np.linalg.solve(factor, (gradients / scale)[..., None])
    return np.linalg.solve(np.swapaxes(factor, -1, -2), half)[..., 0] / scale


def _lifted_step(
    curvature: Float[np.ndarray, "p p"], gradient: Float[np.ndarray, " p"], floor: float
) -> Float[np.ndarray, " p"]:
    """Return the step of a lane, with directions that are bent the wrong way turned round."""
    try:
        return _downhill(curvature, gradient)
    except np.linalg.LinAlgError:
        # A direction bent the wrong way keeps its sharpness, so that a step along it keeps its length.
        values, vectors = np.linalg.eigh(curvature)
        sharpness = np.maximum(np.abs(values), max(floor, np.abs(values).max() * np.finfo(np.float32).eps))
        return vectors @ ((vectors.T @ gradient) / sharpness)


_prior_derivatives = jax.jit(jax.vmap(prior_derivatives, (None, 0)))
