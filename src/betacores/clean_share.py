"""The share of clean rows, which a β-likelihood with an unknown scale has to know.

In `Σ_n f_n = Σ_n p_n^β / β − N I / (1+β)` dirty rows count nothing in the first sum and yet are counted in the second.
Where `I` is a constant that is no matter; where it depends on a scale, the scale comes out too large: by a fifth, and
the contamination at half of what it is, with a fifth of the rows dirty. The remedy is to model the density of the rows
as `τ p`, of which the share `1 − τ` is left to whatever the dirty rows are: up to a factor,

    f_n = p_n^β / β − τ I / (1+β),      with the best τ the mean score,  τ = mean_n(p_n^β / I).

Both together are the minimum of the γ-divergence, whose bias vanishes as the dirty rows are farther out, whatever their
share. Here τ is found once, by turns with the mode for the β of the scores, and then is a constant of the model.

Reference: Kanamori and Fujisawa, "Robust estimation under heavy contamination using unnormalized models", Biometrika
102 (2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.grid import grid_modes
from betacores.models.base import Model, Rows
from betacores.programs import block_program
from betacores.scores import default_score_beta, scores_of
from betacores.sources import ArraySource, Source, reduce

if TYPE_CHECKING:
    from jaxtyping import Array, Float

ROUNDS, POLISH_ROUNDS, TOLERANCE = 12, 2, 1e-4
# A smaller share than this is no description of the rows.
LEAST = 0.2


def with_clean_share(model: Model, sample: ArraySource, source: Source) -> Model:
    """Return a model that leaves its ``clean`` share to the data with it settled.

    Parameters
    ----------
    model
        With a robust start.
    sample, source
        A sample of rows; and all of them.
    """
    scale = source.row_count / sample.row_count
    beta = default_score_beta(model, len(sample.columns))
    theta = np.asarray(model.robust_start(Rows(sample.x, sample.y)), np.float32)
    model = model.replaced(clean=_mean_score(model, sample, theta, beta))
    for _ in range(ROUNDS):
        before, (model, theta) = model.clean, _round(model, sample, theta, beta, scale)
        if abs(model.clean - before) < TOLERANCE:
            break
    if scale > 1:
        for _ in range(POLISH_ROUNDS):
            model, theta = _round(model, source, theta, beta, 1.0)
    return model


def _round(
    model: Model, source: Source, theta: Float[np.ndarray, " p"], beta: float, scale: float
) -> tuple[Model, Float[np.ndarray, " p"]]:
    """Return the model with the mean score at its mode for the share, and that mode."""
    theta = grid_modes(model, source, theta[None], np.array([beta]), scale=scale).thetas[0]
    return model.replaced(clean=_mean_score(model, source, theta, beta)), theta


def _mean_score(model: Model, source: Source, theta: Float[np.ndarray, " p"], beta: float) -> float:
    total, weight = reduce(source, _block_sums, model, np.asarray(theta, np.float32), np.float32(beta))
    return float(np.clip(total / max(weight, 1e-30), LEAST, 1.0))


@block_program
def _block_sums(rows: Rows, weights: Array, model: Model, theta: Array, beta: Array) -> tuple[Array, Array]:
    return weights @ scores_of(rows, model, theta, beta), weights.sum()
