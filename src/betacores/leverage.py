"""How far a row's linear predictor swings over the posterior: `z_nᵀ H⁻¹ z_n`, its leverage.

Rows far out in the covariates, and those of a rare level, have much of it. They decide coefficients that the others
leave open, and a uniform sample has too few of them or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import LinearPredictor, Model, Rows, sum_over_columns
from betacores.sources import Source, by_chunks, collect
from betacores.sources.base import CHUNK_ROWS

if TYPE_CHECKING:
    from jaxtyping import Array, Float


def leverages(model: Model, source: Source, precision: Float[np.ndarray, "p p"]) -> Float[np.ndarray, " rows"] | None:
    """Return the variance of every row's linear predictor under a Gaussian posterior; None for other models."""
    if not isinstance(model, LinearPredictor):
        return None
    factor = leverage_factor(precision)
    return collect(source, block_leverages, model, factor).astype(np.float64)


def leverage_factor(precision: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """Return `F` with `F Fᵀ = H⁻¹`, so that a row's leverage is the squared length of `z F`."""
    values, vectors = np.linalg.eigh(precision)
    return (vectors * np.maximum(values, values[-1] * 1e-12) ** -0.5).astype(np.float32)


@jax.jit
def block_leverages(rows: Rows, model: LinearPredictor, factor: Float[Array, "p p"]) -> Float[Array, " n"]:
    """Return the leverages of rows."""
    if jax.default_backend() != "cpu":
        return sum_over_columns((model.features(rows) @ factor) ** 2)
    # In few rows at a time: a product with many is several times slower.
    return by_chunks(lambda x: jnp.square(factor.T @ model.features_down(Rows(x))).sum(0), rows.x, CHUNK_ROWS // 8)
