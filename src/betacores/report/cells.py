"""Which cells make a row unlikely: each column against its usual range, and against what the rest of the row says.

Rows that are believed give the reference: a precision matrix `Q` of cells in robust units. Of a row with distance `r`
from the centre, the cell that disagrees most with the others is the one with the largest

    |(Q r)_j| / √Q_jj,

its residual given the other cells in standard deviations. If one cell was changed it is that one: for all others the
ratio to it is a partial correlation. The cell is then replaced by what the others predict, and the next one looked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from betacores.guard.columns import columns_of
from betacores.guard.model import Guard, coordinates
from betacores.models import GaussianMean, Model

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# Rows the reference is made of, and columns beyond which cells are judged one by one.
REFERENCE_ROWS, MOST_JOINT = 10_000, 400
# A cell so many standard deviations from what the others predict is odd.
ODD = 3.0
# At most so many cells of a row are named.
NAMED = 3
# The usual range holds all but so many of the believed cells, on either side.
TAIL = 0.01


class Reference(NamedTuple):
    """What cells of believed rows are like."""

    low: Float[np.ndarray, " columns"]
    high: Float[np.ndarray, " columns"]
    centre: Float[np.ndarray, " columns"]
    precision: Float[np.ndarray, "columns columns"]
    guard: Guard | None  # the units; None if they are those of the table

    def away(self, x: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, "n columns"]:
        """Return the distance of rows from the centre, in the units of the precision."""
        return _units(self.guard, x) - self.centre


class Odd(NamedTuple):
    """A cell that is odd: by how many standard deviations, and what the rest of the row predicts, give or take.

    ``alone`` tells whether it is beyond its column's usual range, whatever the rest of the row.
    """

    column: int
    size: float
    expected: float
    spread: float
    alone: bool


def reference_of(
    x: Float[np.ndarray, "n columns"], believed: Bool[np.ndarray, " n"], model: Model, theta: np.ndarray
) -> Reference:
    """Learn what cells of believed rows are like; a model of whole rows knows how they vary together."""
    ids = np.flatnonzero(believed) if believed.any() else np.arange(len(x))
    some = np.asarray(x[ids[:: -(-len(ids) // REFERENCE_ROWS)]], np.float64)
    low, high = np.quantile(some, (TAIL, 1 - TAIL), axis=0)
    if isinstance(model, GaussianMean):
        return Reference(low, high, theta, _known_precision(model, x.shape[1]), None)
    guard = columns_of(some)
    u = _units(guard, some)
    centre = np.where(guard.discrete > 0, 0.0, u.mean(0))
    return Reference(low, high, centre, _precision(u - centre, guard.discrete > 0), guard)


def odd_cells(reference: Reference, x: Float[np.ndarray, "n columns"]) -> tuple[list[list[Odd]], Int[np.ndarray, " n"]]:
    """Return for every row its oddest cells, none if no cell is odd, and how many more are odd on their own."""
    x = np.asarray(x, np.float64)
    rest = reference.away(x)
    sharpness = np.sqrt(reference.precision.diagonal())
    found: list[list[Odd]] = [[] for _ in x]
    every = np.arange(len(x))
    for _ in range(min(NAMED, x.shape[1])):
        pull = rest @ reference.precision
        size = np.abs(pull) / sharpness
        worst: Int[np.ndarray, " n"] = size.argmax(1)
        residual = pull[every, worst] / sharpness[worst] ** 2
        rest[every, worst] -= residual
        for row in np.flatnonzero(size[every, worst] > ODD):
            j, value = int(worst[row]), x[row, worst[row]]
            alone = not reference.low[j] <= value <= reference.high[j]
            predicted = float(rest[row, j] + reference.centre[j])
            ends = [_cell_of(reference.guard, j, predicted + side / sharpness[j]) for side in (-1, 0, 1)]
            found[row].append(Odd(j, float(size[row, j]), ends[1], (ends[2] - ends[0]) / 2, alone))
    more = ((x < reference.low) | (x > reference.high)) & (np.abs(rest) * sharpness > ODD)
    return found, more.sum(1)


def is_discrete(reference: Reference, column: int) -> bool:
    """Tell whether a column has few values."""
    return reference.guard is not None and bool(reference.guard.discrete[column] > 0)


def _units(guard: Guard | None, x: np.ndarray) -> np.ndarray:
    return x if guard is None else coordinates(guard, x, np)


def _known_precision(model: GaussianMean, columns: int) -> np.ndarray:
    factor = np.asarray(model.whitener, np.float64)
    return factor.T @ factor if factor.ndim == 2 else np.diag(np.broadcast_to(factor**2, (columns,)))


def _precision(u: np.ndarray, discrete: np.ndarray) -> np.ndarray:
    """Return the precision of cells: of continuous columns jointly, of the others one by one."""
    spread = np.where(discrete, 1.0, np.maximum(u.std(0), 0.05))
    correlation = np.eye(u.shape[1])
    smooth = np.flatnonzero(~discrete)
    if 1 < len(smooth) <= MOST_JOINT and len(u) > 2 * len(smooth):
        standard = u[:, smooth] / spread[smooth]
        shrink = min(0.5, len(smooth) / len(u) + 0.001)
        joint = (1 - shrink) * standard.T @ standard / len(u) + shrink * np.eye(len(smooth))
        correlation[np.ix_(smooth, smooth)] = joint
    return np.linalg.inv(correlation) / spread / spread[:, None]


def _cell_of(guard: Guard | None, column: int, u: float) -> float:
    """Return the cell that has a coordinate."""
    if guard is None or guard.discrete[column] > 0:
        return u
    side = guard.scale_below if u < 0 else guard.scale_above
    return float(guard.center[column] + 2 * np.sinh(u / 2) * side[column])
