"""What tells clean rows from dirty ones while a network is being trained: errors, gaps, and batches side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from betacores.guard.model import height
from betacores.noise import robust_noise
from betacores.noise.search import shortest_interval
from betacores.sources import ArraySource

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, PRNGKeyArray

# Errors are in standard deviations; smaller ones are rounding.
NO_ERROR = 1e-30
# Fewer rows outside the coreset say too little about the noise.
LEAST_OUTSIDE = 50
# Errors, in standard deviations, between which clean and other batches are compared; degrees of freedom that errors of
# clean rows may have; and how improbable it is that more rows than expected are so by chance.
EDGES = np.array([0.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0])
TAILS, CHANCE = (2.0, 3.0, 5.0, 10.0, 30.0), 0.05
# Dirt comes by the batch if other batches have so many times the share of doubtful rows of clean ones, and this more.
TIMES_DIRTIER, MORE_DIRTY = 3.0, 0.2
# Responses apart from most by a gap of so many of their scales are doubtful whatever is predicted.
GAP = 3.0
# So small a share of impossible rows, with responses that others have too, is what is rare, and not dirt.
FEW = 0.02
NORMAL_QUARTILE = 0.6745


def held_out_noise(
    predicted: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], outside: Bool[np.ndarray, " n"], key: PRNGKeyArray
) -> float | None:
    """Return the robust scale of responses around predictions for rows outside the coreset; None if they are few.

    The network has seen those inside, and comes closer to them than to any other.
    """
    if outside.sum() < LEAST_OUTSIDE:
        return None
    return robust_noise(ArraySource(predicted[:, None], y, weights=outside), True, key)


def held_out_error(
    predicted: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], outside: Bool[np.ndarray, " n"]
) -> float | None:
    """Return the root mean square error of predictions for rows outside the coreset; None if they are few."""
    if outside.sum() < LEAST_OUTSIDE:
        return None
    return float(np.sqrt(np.mean((y[outside] - predicted[outside]) ** 2)))


def by_the_batch(doubtful: Bool[np.ndarray, " n"], in_clean: Bool[np.ndarray, " n"]) -> bool:
    """Tell whether dirt comes by the batch: the other batches have far more doubtful rows than the clean ones."""
    if in_clean.all() or not in_clean.any():
        return False
    return bool(doubtful[~in_clean].mean() > TIMES_DIRTIER * doubtful[in_clean].mean() + MORE_DIRTY)


def rare(
    impossible: Bool[np.ndarray, " n"], believed: Bool[np.ndarray, " n"], y: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Return which impossible rows are rare rather than dirty: where they are few, those with a usual response.

    The closer the network comes to most rows, the smaller is the error that is impossible. It cannot learn rows that it
    is never shown, so that a few of a rare kind would stay out for ever. What is wrong about a response that others
    have too, in so few rows, does little harm.

    Parameters
    ----------
    impossible
        Rows far from what is predicted for them.
    believed
        Rows between whose responses are the usual ones.
    y
        Responses.
    """
    if impossible.mean() > FEW or not believed.any():
        return np.zeros(len(y), bool)
    return impossible & (y >= y[believed].min()) & (y <= y[believed].max())


def likely_clean(
    error: Float[np.ndarray, " n"], clean: Bool[np.ndarray, " n"], others: Bool[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Return which of other rows are likely to be clean, by how common such errors are among clean ones.

    The clean rows among the others have errors like those of clean rows, and there are as many of them as the smallest
    errors tell. From the first kind of error on of which there are more than that, and more than by chance, none is.

    Parameters
    ----------
    error
        Errors of all rows, in standard deviations.
    clean
        Rows that are clean, and that nothing was learnt from.
    others
        Those to tell.
    """
    if not clean.any():
        return np.zeros(len(error), bool)
    shares = np.diff(_half_student(error[clean]))
    counts = np.histogram(error[others], EDGES)[0]
    expected = counts[0] * shares / max(shares[0], np.finfo(float).tiny)
    # The chance of so many or more, if they were clean.
    chance = special.gammainc(counts, expected)
    limit = EDGES[:-1][(counts > 2 * expected) & (chance < CHANCE)]
    return others & (error < min([*limit, EDGES[-1]]))


def _half_student(error: Float[np.ndarray, " m"]) -> Float[np.ndarray, " edges"]:
    """Return how probable errors up to the edges are, by the Student t of the same median that fits best."""
    # Of responses that are all the same there are no errors, and everything is far by them.
    median = max(float(np.median(error)), NO_ERROR)
    scales = [median / special.stdtrit(nu, 0.75) for nu in TAILS]
    heights = [
        height(nu, np) - np.log(scale) - (nu + 1) / 2 * np.log1p(np.square(error / scale) / nu).mean()
        for nu, scale in zip(TAILS, scales, strict=True)
    ]
    best = int(np.argmax(heights))
    return 2 * special.stdtr(TAILS[best], EDGES / scales[best]) - 1


def with_most(y: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Return which responses are with most: the fewer on one side of the widest gap are not, if it is wide, and so on.

    A gap is wide by the scale of those on its other side alone: with two responses in five apart, a scale of all is
    no measure of either.
    """
    order = np.argsort(y, kind="stable")
    ordered = np.asarray(y, np.float64)[order]
    first, last = 0, len(ordered)
    while last - first > 1:
        gaps = np.diff(ordered[first:last])
        cut = first + 1 + int(gaps.argmax())
        kept = (first, cut) if 2 * cut >= first + last else (cut, last)
        scale = shortest_interval(ordered[slice(*kept)], 0.5)[1] / NORMAL_QUARTILE
        if not gaps.max() > GAP * scale > 0:
            break
        first, last = kept
    near = np.zeros(len(ordered), bool)
    near[order[first:last]] = True
    return near
