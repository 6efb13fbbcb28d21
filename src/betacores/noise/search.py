"""The search for the right fixed point, on a sample of rows.

There is one fixed point for each cluster of rows, and one at σ = 0 wherever more rows than parameters are tied. The
search therefore starts from the line of least absolute deviations, at several scales and levels, and from the best of
many lines through a few rows each, and takes the smallest γ-divergence among the fixed points that describe more than
half of the rows.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from betacores.noise.fixed_point import SMALLEST, Fit, fixed_point, judged, solve, weighted_sums

if TYPE_CHECKING:
    from jaxtyping import Float

# When fixed points are compared γ is never small: a small γ would rather have one wide cluster than a narrow one and
# outliers.
JUDGE_GAMMA = 0.5
SEARCH_STEPS = 100
CORE_SCALES = 6.0
# Lines tried through a few rows each, not more than can all be clean by luck, and rows that such a line is judged by.
TRIES, MOST_PICKED, SEEN = 300, 12, 500
GAUSSIAN_MAD = 1.4826


def search(
    z: Float[np.ndarray, "n p"],
    y: Float[np.ndarray, " n"],
    weights: Float[np.ndarray, " n"],
    gamma: float,
    rank: int,
    rng: np.random.Generator,
) -> Fit:
    """Return the best fixed point on a sample, from several levels and scales around a robust line."""
    # Rows of great leverage are left to the weights, which need a line from without them.
    farthest = np.abs(z).max(axis=1)
    core = farthest <= max(CORE_SCALES, float(np.median(farthest)))
    theta = _least_absolute(z[core], y[core], weights[core])
    e = y - z @ theta
    look = partial(weighted_sums, z, y, weights, xp=np)
    # The line runs through as many rows as it has parameters; to describe the rest, it must be near half of the others.
    enough = 0.5 * (1 + rank / len(y))
    spread = GAUSSIAN_MAD * float(np.quantile(np.abs(e), enough))
    middle, half = shortest_interval(e, enough)
    beside = theta + np.linalg.lstsq(z, np.full(len(y), middle), rcond=None)[0]
    # When 2 rows in 5 are dirty, half of all rows are 5 in 6 of the clean ones: the spread is twice too large, or more.
    starts = [(theta, spread * share) for share in (2.0, 1.0, 0.5, 0.25)]
    starts += [(beside, GAUSSIAN_MAD * half * share) for share in (1.0, 0.5)]
    few, width = _through_few(z, y, enough, rng)
    starts += [(few, GAUSSIAN_MAD * width * share) for share in (1.0, 0.5)]
    found = [fixed_point(look, at, max(sigma, SMALLEST), gamma, rank, SEARCH_STEPS) for at, sigma in starts]
    fits = [judged(look, at, sigma, max(gamma, JUDGE_GAMMA)) for at, sigma in found]
    good = [fit for fit in fits if fit.share >= enough]
    return min(good, key=lambda fit: fit.divergence) if good else max(fits, key=lambda fit: fit.share)


def _least_absolute(
    z: Float[np.ndarray, "n p"], y: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " p"]:
    """Return nearly the line of least absolute deviations, by iteratively reweighted least squares."""
    theta = np.zeros(z.shape[1])
    for _ in range(40):
        e = y - z @ theta
        small = max(0.2 * float(np.median(np.abs(e))), SMALLEST)
        w = weights * small / np.maximum(np.abs(e), small)
        weighted = z * w[:, None]
        theta = theta + solve(weighted.T @ z, weighted.T @ e)
    return theta


def _through_few(
    z: Float[np.ndarray, "n p"], y: Float[np.ndarray, " n"], share: float, rng: np.random.Generator
) -> tuple[Float[np.ndarray, " p"], float]:
    """Return, of many lines through a few rows, the one nearest to a share of all rows, and how near it is.

    With few parameters some of the lines go through clean rows only, wherever the others are and whatever their share.
    """
    picks = rng.integers(len(y), size=(TRIES, min(z.shape[1], MOST_PICKED)))
    rows, columns = z[picks], np.swapaxes(z[picks], 1, 2)
    ridge = 1e-9 * np.square(rows).sum(axis=(1, 2))[:, None, None] + 1e-30
    lines = np.linalg.solve(columns @ rows + ridge * np.eye(z.shape[1]), columns @ y[picks][..., None])[..., 0]
    some = slice(None, None, -(-len(y) // SEEN))
    near = np.quantile(np.abs(y[some, None] - z[some] @ lines.T), share, axis=0)
    best = int(np.argmin(near))
    return lines[best], float(near[best])


def shortest_interval(e: Float[np.ndarray, " n"], share: float) -> tuple[float, float]:
    """Return the middle and half the length of the shortest interval that holds a share of the numbers."""
    ordered = np.sort(e)
    held = min(int(share * len(e)), len(e) - 1)
    lengths = ordered[held:] - ordered[: len(e) - held]
    at = int(np.argmin(lengths))
    return float(ordered[at] + lengths[at] / 2), float(lengths[at] / 2)


def tied_noise(z: Float[np.ndarray, "n p"], y: Float[np.ndarray, " n"], theta: np.ndarray) -> float:
    """Return the noise of a response that mostly takes one value, and zero for any other that fits exactly.

    Counts and flags are tied without being exact. Were σ zero, every row off the tie would be an outlier.
    """
    _, counts = np.unique(y, return_counts=True)
    away = np.abs(y - z @ theta)
    off = away[away > 100 * SMALLEST]
    if off.size == 0 or counts.max() < 0.4 * len(y):
        return 0.0
    return float(np.median(off)) * math.sqrt(off.size / len(y))
