"""Columns one by one: whether a column is one of few levels, its units, and a robust scale of either side."""

from __future__ import annotations

import numpy as np
from scipy import special

from betacores.guard.model import NO_GROUP, Guard
from betacores.robust import medians

LEVELS = 20  # a column of more levels than this is treated as continuous
GROUPS = 10  # groups of sound rows
UNSEEN_DAMAGE = 1e-3  # share of damaged rows assumed where the fit saw none


def columns_of(x: np.ndarray, damage: bool = True) -> Guard:
    """Return a guard that knows the columns one by one, and nothing of their rows."""
    # Of sound cells hardly any may lie off the levels, if there are any.
    least = 0.6 if damage else 0.99
    units = np.array([(*_levels(column, least), *_scales(column)) for column in x.T]).reshape(-1, 9).T
    discrete, low, high, span, step, tolerance, center, below, above = units
    count = x.shape[1]
    ones, zeros = np.ones(count), np.zeros(count)
    share = np.where(np.arange(GROUPS) == 0, 0.0, NO_GROUP)
    return Guard(
        center=center, scale_below=below, scale_above=above,
        discrete=discrete, low=low, high=high, span=span, step=step, tolerance=tolerance,
        mix=np.eye(count), share=share, mean=np.zeros((GROUPS, count)), spread=np.ones((GROUPS, count)),
        tail=10 * ones, overall_mean=zeros, overall_spread=ones,
        hit=np.full(count, min(0.5, 1 / max(1, count))), bad_spread=10 * ones, log_odds=special.logit(UNSEEN_DAMAGE),
        row_tail=np.array(1e9), row_scale=np.array(1.0), typical_low=low, typical_high=high,
    )  # fmt: skip


def _levels(column: np.ndarray, least: float) -> tuple[float, ...]:
    """Return whether a column is discrete, and its lowest level, highest level, span, step and tolerance.

    At least so many of its cells are at levels if it is.
    """
    rows = len(column)
    values, counts = np.unique(column, return_counts=True)
    if len(values) == 1:
        return 1.0, values[0], values[0], max(1.0, abs(values[0])), np.inf, 0.5
    often = counts >= max(3, 0.001 * rows)
    levels, share = values[often], counts[often].sum() / rows
    rest = np.repeat(values[~often], counts[~often])
    inside = (rest >= levels[0]) & (rest <= levels[-1]) if len(levels) else np.zeros(0)
    # A censored column also repeats a few values, but the rest of it lies between them, where noise would not stay.
    noisy = len(rest) > 0.01 * rows
    if (
        not len(levels)
        or len(levels) > LEVELS
        or share < least
        or (noisy and (len(levels) == 1 or inside.mean() > 0.95))
    ):
        return 0.0, 0.0, 0.0, 1.0, np.inf, 0.5
    levels = _connected(levels, counts[often])
    low, high = levels[0], levels[-1]
    if low == high:
        return 1.0, low, high, max(1.0, abs(low)), np.inf, 0.5
    step = _common_step(np.diff(levels))
    tolerance = max(0.02, 1e-6 * max(abs(low), abs(high)) / step)
    if step < (high - low) / 1000 or tolerance > 0.25:
        step = np.inf
    return 1.0, low, high, high - low, step, tolerance


def _connected(levels: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the levels that lie together: a level far outside the span of the others is a code such as -999."""
    first = last = int(np.argmax(counts))
    while first > 0 or last < len(levels) - 1:
        span = levels[last] - levels[first]
        gap_below = levels[first] - levels[first - 1] if first > 0 else np.inf
        gap_above = levels[last + 1] - levels[last] if last < len(levels) - 1 else np.inf
        if span > 0 and min(gap_below, gap_above) > 20 * span:
            break
        if gap_below < gap_above:
            first -= 1
        else:
            last += 1
    return levels[first : last + 1]


def _common_step(gaps: np.ndarray) -> float:
    """Return the largest step that all gaps are multiples of, nearly; tiny where there is none."""
    step = 0.0
    for gap in gaps:
        rest = float(gap)
        while rest > 0.01 * min(gaps):
            step, rest = rest, step % rest if step else 0.0
            if step - rest < 0.01 * min(gaps):
                rest = 0.0
    return step


def _scales(column: np.ndarray) -> tuple[float, float, float]:
    """Return a column's centre and the robust scale of either side, each with a fallback where half the cells tie."""
    center = float(medians(column))
    away = column - center
    both = float(medians(np.abs(away)))
    sides = [float(medians(side)) / 0.6745 if len(side) else 0.0 for side in (-away[away < 0], away[away > 0])]
    floor = 0.1 * max(both / 0.6745, 1e-30)
    below, above = (max(side, floor) if side > 0 else max(*sides, floor) for side in sides)
    if max(sides) == 0:
        below = above = max(1.0, abs(center))
    return center, below, above
