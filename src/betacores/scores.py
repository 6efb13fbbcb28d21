"""Scores for people: how much the model believes each row, and how much of the table is dirty.

The score of a row is `r = p^β / I` at a robust estimate of the parameters: 1 on average over clean rows, near 0 for
outliers. It has a β of its own, never 0, since at β = 0 every score is 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from betacores.divergence import log_scores
from betacores.models.base import Model, Rows
from betacores.programs import block_program
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
    return collect(source, block_scores, model, np.asarray(theta, np.float32), np.float32(beta))


def beliefs(scores: Float[np.ndarray, " rows"], trust: Float[np.ndarray, " rows"] | None) -> Float[np.ndarray, " rows"]:
    """Return how far every row is believed: its score, times the trust in its covariates."""
    believed = np.asarray(scores, np.float64)
    return believed if trust is None else believed * trust


class Beliefs(NamedTuple):
    """Sums over all rows of how far they are believed: what there is to say of a table as a whole.

    ``distrusted`` is the number of rows that count less than half for their covariates.
    """

    rows: int
    total: float
    squares: float
    score_total: float
    score_squares: float
    distrusted: float
    trust_total: float

    @property
    def contamination(self) -> float:
        """The estimated share of rows that do not come from the model, be it for response or covariates.

        One less the mean belief. Scores of the others may be above one on average, if the model is wrong, and would
        make up for rows whose covariates are absurd: these count in any case.
        """
        return float(np.clip(max(1.0 - self.total / self.rows, self.distrusted / self.rows), 0.0, 1.0))

    @property
    def interval(self) -> tuple[float, float]:
        """An interval that holds the share with probability 95 %, if the model is right for the clean rows."""
        absurd = self.distrusted / self.rows
        sides = np.array([-1.96, 1.96]) / np.sqrt(self.rows)
        low, high = np.maximum(
            1.0 - self.total / self.rows + sides * _spread(self.total, self.squares, self.rows),
            absurd + sides * np.sqrt(absurd * (1 - absurd)),
        ).clip(0.0, 1.0)
        return float(low), float(high)

    @property
    def mean_score(self) -> float:
        """The mean of the scores alone."""
        return self.score_total / self.rows

    @property
    def too_high(self) -> bool:
        """Whether the mean score is above one beyond doubt, which no contamination can make it."""
        spread = _spread(self.score_total, self.score_squares, self.rows)
        # Of few rows the mode itself is too close to each.
        return self.rows >= 100 and bool(self.mean_score > 1.05 + 5 * spread / np.sqrt(self.rows))


def _spread(total: float, squares: float, rows: int) -> float:
    return float(np.sqrt(max(squares / rows - (total / rows) ** 2, 0.0)))


def belief_sums(scores: Any, trust: Any, there: Any) -> tuple[Any, ...]:
    """Return the sums of `Beliefs` over rows of which some are there, with weight one, and others are not."""
    believed = scores if trust is None else scores * trust
    trusted = 0.0 * scores + (1.0 if trust is None else trust)
    parts = (believed, believed**2, scores, scores**2, (trusted < 0.5) * 1.0, trusted)
    return tuple(there @ part for part in parts)


def beliefs_over(scores: Float[np.ndarray, " rows"], trust: Float[np.ndarray, " rows"] | None) -> Beliefs:
    """Return the sums over all rows of a table in memory."""
    wide = np.asarray(scores, np.float64)
    return Beliefs(len(wide), *(float(total) for total in belief_sums(wide, trust, np.ones(len(wide)))))


def scores_of(rows: Rows, model: Model, theta: Array, beta: Array) -> Float[Array, " n"]:
    """Return the scores of rows, within a program."""
    return jnp.exp(log_scores(model, theta, rows, beta))


@block_program
def block_scores(rows: Rows, model: Model, theta: Array, beta: Array) -> Float[Array, " n"]:
    """Return the scores of rows."""
    return scores_of(rows, model, theta, beta)
