"""Centred likelihood vectors: rows as directions in the space of log-posteriors.

With draws `θ_1..θ_S` a row becomes the vector `ḡ = (g(θ_s) − mean_s g)_s`. Products of such vectors, over S, estimate
covariances under the distribution the draws come from, and the gradient of the KL divergence between a coreset
posterior and the full one is such a covariance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import Beta, likelihoods
from betacores.models.base import LinearPredictor, Model, Rows
from betacores.posteriors.derivatives import response_derivatives
from betacores.programs import block_program
from betacores.sources import Source, reduce
from betacores.sources.pool import Takes

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int

# Rows whose vectors are computed together: half as many as pursuit has candidates by default, and a few more.
TOGETHER = 2560
# Predictors that differ by less: what is beyond the quadratic is less than the rounding of a difference.
NEAR = 0.01


def vectors(model: Model, thetas: Float[Array, "s p"], rows: Rows, beta: Beta) -> Float[Array, "n s"]:
    """Return the centred vectors of rows."""
    if not _graded(model):
        return centred(likelihoods(model, thetas, rows, beta))
    found = gains(model, thetas, rows, beta)
    return found - found.mean(-1, keepdims=True)


def gains(model: Model, thetas: Float[Array, "s p"], rows: Rows, beta: Beta) -> Float[Array, "n s"]:
    """Return the likelihood of rows at draws, less that at the first draw.

    Of a billion rows the posterior is so narrow that the difference is in the last digits of either. Where predictors
    differ by little, it is computed from the derivatives at the first draw instead, with digits of its own.
    """
    if not _graded(model):
        return anchored(likelihoods(model, thetas, rows, beta))
    z = model.features(rows).T
    at = model.with_offset(thetas[0] @ z, rows.x)
    away = (thetas - thetas[0]) @ z
    here, slope, curvature = response_derivatives(model, at, rows.y, beta)
    # The model's own way to the derivatives gives the likelihood with fewer exponentials; the others are not computed.
    there = response_derivatives(model, at + away, rows.y, beta)[0]
    rounding = 4 * jnp.finfo(there.dtype).eps * jnp.abs(here)
    # Rows far off have the same likelihood under every draw; rounding must not make a direction out of that.
    direct = jnp.where(jnp.abs(there - here) <= rounding, 0.0, there - here)
    return jnp.where(jnp.abs(away) < NEAR, away * (slope + 0.5 * curvature * away), direct).T


def _graded(model: Model) -> TypeGuard[LinearPredictor]:
    """Return whether the model gives its derivatives by a predictor, of which a unit is the scale."""
    return isinstance(model, LinearPredictor) and hasattr(model, "response_derivatives")


_vectors = jax.jit(vectors)


def centred(values: Float[Array, "n s"]) -> Float[Array, "n s"]:
    """Return each row less its mean; a row that is constant up to rounding becomes exactly zero."""
    away = anchored(values)
    away = away - away.mean(-1, keepdims=True)
    # Far outliers have the same likelihood under every draw. Rounding must not make a direction out of that.
    size = jnp.abs(values).max(-1, keepdims=True)
    flat = jnp.abs(away).max(-1, keepdims=True) <= 4 * jnp.finfo(values.dtype).eps * size
    return jnp.where(flat, 0.0, away)


def anchored(values: Float[Array, "n s"]) -> Float[Array, "n s"]:
    """Return each row less its value at the first draw.

    Against a centred residual this is as good as centring, and costs one subtraction: `ḡ·R = (g − g_1)·R` if `Σ R = 0`.
    A row that is the same under every draw becomes exactly zero.
    """
    return values - values[:, :1]


def row_vectors(
    model: Model, thetas: Float[Array, "s p"], source: Takes, ids: Int[np.ndarray, " n"], beta: Beta
) -> Float[np.ndarray, "n s"]:
    """Return the centred vectors of rows, some at a time: one program for any number of rows, and little memory."""
    found = np.empty((len(ids), len(thetas)), np.float32)
    for start in range(0, len(ids), TOGETHER):
        some = ids[start : start + TOGETHER]
        padded = np.pad(some, (0, TOGETHER - len(some)), mode="edge")
        found[start : start + len(some)] = np.asarray(_vectors(model, thetas, source.take(padded), beta))[: len(some)]
    return found


def target_over(source: Source, model: Model, thetas: Float[Array, "s p"], beta: Beta) -> Float[np.ndarray, " s"]:
    """Return `Σ_n f_n(θ_s)` over all rows, less its value at the first draw, in one pass."""
    return reduce(source, _block_target, model, thetas, beta)


@block_program
def _block_target(rows: Rows, weights: Array, model: Model, thetas: Array, beta: Beta) -> Float[Array, " s"]:
    # Differences to the first draw are small, so that the sum over a block keeps its digits.
    return weights @ gains(model, thetas, rows, beta)
