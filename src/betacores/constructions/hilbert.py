"""Rows as vectors of a Hilbert space: what giga, frank-wolfe and importance choose from.

The space is that of functions of the parameter with the covariance under an approximation of the posterior, that of
all rows, as their product. With S draws of it a row becomes its centred likelihood over the draws, divided by √S:
products of such vectors are covariances. A coreset is good if its weighted sum is near the sum over all rows.

Reference: Campbell and Broderick, "Automated scalable Bayesian inference via Hilbert coresets", JMLR 20 (2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import Beta, as_beta
from betacores.models.base import Model, Rows
from betacores.pilot import approximation
from betacores.preparation import Prepared
from betacores.randomness import split
from betacores.sampling import sample_rows
from betacores.sources import collect
from betacores.tangent import row_vectors, vectors
from betacores.target import Target

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray

# Rows at a time, so that their vectors fit a processor's cache.
TOGETHER = 2048


class Projected(NamedTuple):
    """Vectors of candidate rows, their sum over all rows, and the sum of the lengths of all rows' vectors."""

    ids: Int[np.ndarray, " n"]
    vectors: Float[np.ndarray, "n s"]
    target: Float[np.ndarray, " s"]
    total: float


def projected(prepared: Prepared, target: Target, key: PRNGKeyArray, *, draws: int, candidates: int) -> Projected:
    """Return the vectors of all rows, or of a uniform sample of so many candidates, and what they are to sum to."""
    draw_key, candidate_key = split(key, 2)
    model, source = prepared.model, prepared.source
    thetas = approximation(model, prepared.found).draw(draw_key, draws)
    wanted = target.over(thetas)
    ids = sample_rows(candidate_key, source.row_count, candidates)
    found = row_vectors(model, thetas, source, ids, as_beta(prepared.beta)).astype(np.float64) / np.sqrt(draws)
    total = float(np.linalg.norm(found, axis=1).sum()) * source.row_count / len(ids)
    return Projected(ids, found, (wanted - wanted.mean()) / np.sqrt(draws), total)


def lengths(prepared: Prepared, key: PRNGKeyArray, *, draws: int) -> Float[np.ndarray, " rows"]:
    """Return the length of every row's vector."""
    thetas = approximation(prepared.model, prepared.found).draw(key, draws)
    beta = as_beta(prepared.beta)
    return collect(prepared.source, _lengths, prepared.model, thetas, beta).astype(np.float64)


@jax.jit
def _lengths(rows: Rows, model: Model, thetas: Array, beta: Beta) -> Float[Array, " n"]:
    def some(rows: Rows) -> Float[Array, " n"]:
        return jnp.linalg.norm(vectors(model, thetas, rows, beta), axis=1) / jnp.sqrt(thetas.shape[0])

    count = rows.x.shape[0]
    if count <= TOGETHER or count % TOGETHER:
        return some(rows)
    pieces = jax.tree.map(lambda a: a.reshape(count // TOGETHER, TOGETHER, *a.shape[1:]), rows)
    return jax.lax.map(some, pieces).reshape(count)


def directions(vectors: Float[np.ndarray, "n s"]) -> tuple[Float[np.ndarray, "n s"], Float[np.ndarray, " n"]]:
    """Return vectors made of unit length, and their lengths; a vector of zeros, which has no direction, stays so."""
    length = np.linalg.norm(vectors, axis=1)
    return vectors / np.where(length > 0, length, 1.0)[:, None], length
