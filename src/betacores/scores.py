"""Scores for people: how much the model believes each row, and how much of the table is dirty.

The score of a row is `r = p^β / I` at a robust estimate of the parameters: 1 on average over clean rows, near 0 for
outliers. It has a β of its own, never 0, since at β = 0 every score is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

from betacores.divergence import log_scores
from betacores.models.base import Model, Rows
from betacores.sources import Source, collect

if TYPE_CHECKING:
    from jaxtyping import Array, Float


def default_score_beta(model: Model, columns: int, beta: float = 0.0) -> float:
    """Return the β scores are read with, if none is asked for: at least `beta`.

    Large enough to tell rows apart, small enough that the scores of clean rows stay near 1: the more numbers a row's
    likelihood multiplies, the smaller.
    """
    return max(beta, min(0.5, 2.0 / (columns if model.response == "none" else 1)))


def row_scores(model: Model, source: Source, theta: np.ndarray, beta: float) -> Float[np.ndarray, " rows"]:
    """Return the score of every row at one parameter."""
    return np.exp(collect(source, lambda rows: _block_log_scores(model, theta, rows, np.float32(beta))))


def beliefs(scores: Float[np.ndarray, " rows"], trust: Float[np.ndarray, " rows"] | None) -> Float[np.ndarray, " rows"]:
    """Return how far every row is believed: its score, times the trust in its covariates."""
    believed = np.asarray(scores, np.float64)
    return believed if trust is None else believed * trust


def contamination(scores: Float[np.ndarray, " rows"], trust: Float[np.ndarray, " rows"] | None = None) -> float:
    """Return the estimated share of rows that do not come from the model, be it for response or covariates.

    One less the mean belief. Scores of the others may be above one on average, if the model is wrong, and would make up
    for rows whose covariates are absurd: these count in any case.
    """
    return float(np.clip(max(1.0 - beliefs(scores, trust).mean(), _distrusted(trust)), 0.0, 1.0))


def contamination_interval(
    scores: Float[np.ndarray, " rows"], trust: Float[np.ndarray, " rows"] | None = None
) -> tuple[float, float]:
    """Return an interval that holds the share with probability 95 %, if the model is right for the clean rows."""
    believed, absurd = beliefs(scores, trust), _distrusted(trust)
    sides = np.array([-1.96, 1.96]) / np.sqrt(len(believed))
    low, high = np.maximum(
        1.0 - believed.mean() + sides * believed.std(), absurd + sides * np.sqrt(absurd * (1 - absurd))
    ).clip(0.0, 1.0)
    return float(low), float(high)


def _distrusted(trust: Float[np.ndarray, " rows"] | None) -> float:
    """Return the share of rows that count less than half for their covariates."""
    return 0.0 if trust is None else float(np.mean(np.asarray(trust) < 0.5))


def scores_too_high(scores: Float[np.ndarray, " rows"]) -> bool:
    """Tell whether the mean score is above one beyond doubt, which no contamination can make it."""
    believed = np.asarray(scores, np.float64)
    # Of few rows the mode itself is too close to each.
    return len(believed) >= 100 and bool(believed.mean() > 1.05 + 5 * believed.std() / np.sqrt(len(believed)))


@jax.jit
def _block_log_scores(model: Model, theta: Array, rows: Rows, beta: Array) -> Float[Array, " n"]:
    return log_scores(model, theta, rows, beta)
