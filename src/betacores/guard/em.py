"""One explanation of the covariates fitted by EM: groups of sound rows, with damaged ones or without.

Columns lie down here and rows across, in single precision: what is done cell by cell runs along the rows then, which is
several times faster than along a few columns, and there are digits to spare for what is settled to the fourth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from betacores.guard.columns import UNSEEN_DAMAGE
from betacores.guard.model import BAD_TAIL, NO_GROUP, Guard, columns_down, height, log_damaged, log_sound
from betacores.robust import medians

TAILS = np.array([3.0, 5.0, 8.0, 15.0, 30.0, 100.0], np.float32)  # degrees of freedom to choose from
MOST_DAMAGE = 0.45  # more than this is no damage but a second population
PUREST = 0.6  # how surely damaged rows must be told from sound ones, 1 for no doubt
GAIN = 0.25  # log-likelihood that each row called damaged must bring
WIDEST = 1.1  # of a group, against the typical distance from the median
ITERATIONS = 25
SETTLED = 1e-4  # of a row's mean log-likelihood, in one turn
PSEUDO = 20.0  # rows' worth of belief in the default shape of damage


def fit_mixture(
    guard: Guard, u: np.ndarray, damage: bool = False, turns: int = ITERATIONS, doubted: np.ndarray | None = None
) -> tuple[Guard, float]:
    """Fit the mixture by EM; also return a row's mean log-likelihood, less what the parameters cost.

    If it is told which rows are doubted, the others are sound, whatever they look like.

    The likelihood is minus infinity where damage is not to be believed: when rows cannot be told apart (the sum of
    squared probabilities of damage is well below their sum), or when it is no minority.
    """
    mix, w = guard.mix, np.ascontiguousarray((u @ guard.mix).T, np.float32)
    guard = Guard(*(np.asarray(field, np.float32) for field in guard))._replace(mix=mix)
    still = guard.discrete > 0
    reference = guard.overall_spread
    # Where most cells tie (rain, capital gains), a group as narrow as the tie would make damage of all the others.
    tied = medians(np.abs(w - guard.overall_mean[:, None]).T) < 0.1 * w.std(axis=1)
    narrowest = np.where(tied, np.float32(0.8), np.float32(0.1)) * reference
    groups = guard.share > NO_GROUP
    densities = np.full((len(groups), len(u)), -np.inf, np.float32)
    for k in np.flatnonzero(groups):
        densities[k] = -0.5 * _away(w, guard.mean[k], reference).sum(axis=0)
    damaged = np.zeros(len(u), np.float32)
    doubted = np.ones(len(u), bool) if doubted is None else doubted
    hits = np.zeros_like(w)
    if damage:
        distance = -2 * densities.max(axis=0)
        columns = len(still)
        # Quantiles of χ² by its own special function: importing all of scipy.stats for them takes long.
        middle, far_out = 2 * special.gammaincinv(columns / 2, (0.5, 0.95))
        cut = medians(distance) / middle * far_out * 1.2
        damaged = (distance > cut).astype(np.float32) * doubted
        far = _away(w, guard.mean[densities.argmax(axis=0)].T, reference) > 4
        hits = damaged * np.where(far, np.float32(0.9), np.float32(0.1))
    reached = -np.inf
    for turn in range(turns):
        weights = np.exp(densities - log_total(densities)) * (1 - damaged)
        guard = _sound_step(guard, w, weights, hits, reference, narrowest, turn)
        if damage:
            guard = _bad_step(guard, w, hits, damaged)
        densities = log_sound(guard, w)
        # What the likelihood is matters only where the search may end, and the turn before.
        if not damage and turn % 5 < 3 and turn + 1 < turns:
            continue
        sound = log_total(densities) + special.log_expit(-guard.log_odds)
        cells, spared = log_damaged(columns_down(guard), w, np)
        bad = cells.sum(axis=0) + special.log_expit(guard.log_odds)
        if damage:
            damaged = special.expit(bad - sound) * doubted
            hits = damaged * (1 - (1 - guard.hit)[:, None] * np.exp(spared - cells))
        before, reached = reached, np.logaddexp(sound, bad).mean(dtype=np.float64)
        # Every fifth turn the degrees of freedom have just been fitted: before them it may only look settled.
        if turn % 5 == 4 and abs(reached - before) < SETTLED:
            break
    likelihood = reached + height(guard.tail.astype(np.float64), np).sum() + np.linalg.slogdet(guard.mix)[1]
    cost = (2 * groups.sum() + 2 * damage) * len(still) * np.log(len(u)) / (2 * len(u))
    purity = np.square(damaged).sum() / max(damaged.sum(), 1e-9)
    if damage:
        cost += GAIN * damaged.mean()
    believed = not damage or (purity >= PUREST and damaged.mean() <= MOST_DAMAGE)
    return guard, float(likelihood - cost) if believed else -np.inf


def _student_step(w: np.ndarray, weights: np.ndarray, mean: np.ndarray, spread: np.ndarray, tail: Any) -> Any:
    """Take one EM step for the place and scale of weighted Student-t columns."""
    pull = weights * ((tail + 1)[:, None] / (tail[:, None] + _away(w, mean, spread)))
    mean = (pull * w).sum(axis=1) / np.maximum(pull.sum(axis=1), 1e-9)
    square = (pull * np.square(w - mean[:, None])).sum(axis=1)
    return mean, np.sqrt(square / np.maximum(weights.sum(axis=-1), 1e-9))


def _away(w: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the cells' squared distances from a place, by a scale."""
    place = mean if mean.ndim == 2 else mean[:, None]
    return np.square((w - place) * (1 / spread)[:, None])


def log_total(densities: np.ndarray) -> np.ndarray:
    """Return each row's log-density over all groups; SciPy's function takes longer to begin than to compute."""
    if len(there := densities[densities[:, 0] > -np.inf]) == 1:
        return there[0]
    top = there.max(axis=0)
    return top + np.log(np.exp(there - top).sum(axis=0))


def _sound_step(
    guard: Guard,
    w: np.ndarray,
    weights: np.ndarray,
    hits: np.ndarray,
    reference: np.ndarray,
    narrowest: np.ndarray,
    turn: int,
) -> Guard:
    """Take one EM step for the sound rows; degrees of freedom every fifth turn, since they cost more.

    A group is a place where rows gather: not wider than the column, nor absurdly far from the rest of it. Without these
    bounds a group would make damage its own.
    """
    still = guard.discrete > 0
    mean, spread = guard.mean.copy(), guard.spread.copy()
    groups = np.flatnonzero(guard.share > NO_GROUP)
    for k in groups:
        mean[k], spread[k] = _student_step(w, weights[k], mean[k], spread[k], guard.tail)
        near = 6 * reference
        mean[k] = np.where(still, 0.0, np.clip(mean[k], guard.overall_mean - near, guard.overall_mean + near))
        widest = WIDEST * reference
        spread[k] = np.where(still, 1.0, np.clip(spread[k], narrowest, widest))
    share = guard.share.copy()
    share[groups] = np.log(np.maximum(weights[groups].sum(axis=1), 1.0) / max(weights.sum(), 1.0))
    overall_mean, overall_spread = _student_step(w, 1 - hits, guard.overall_mean, guard.overall_spread, guard.tail)
    tail = guard.tail
    if turn % 5 == 4 and w.shape[1] >= 50:
        every = weights[groups].ravel()
        squares = np.concatenate([_away(w, mean[k], spread[k]) for k in groups], axis=1)
        total = every.sum()
        fits = [height(float(nu), np) * total - (nu + 1) / 2 * (np.log(1 + squares / nu) @ every) for nu in TAILS]
        tail = np.where(still, 10.0, TAILS[np.argmax(fits, axis=0)])
    return guard._replace(
        share=share, mean=mean, spread=spread, tail=tail,
        overall_mean=np.where(still, 0.0, overall_mean),
        overall_spread=np.where(still, 1.0, np.maximum(overall_spread, narrowest)),
        bad_spread=np.maximum(guard.bad_spread, 1.5 * reference),
    )  # fmt: skip


def _bad_step(guard: Guard, w: np.ndarray, hits: np.ndarray, damaged: np.ndarray) -> Guard:
    """Take one EM step for the damaged cells, held by a little belief in the default shape."""
    total = hits.sum(axis=1)
    square = np.square(w - guard.overall_mean[:, None])
    pull = hits * (BAD_TAIL + 1) / (BAD_TAIL + square / np.square(guard.bad_spread)[:, None])
    wide = np.square(5 * guard.overall_spread)
    spread = np.sqrt(((pull * square).sum(axis=1) + PSEUDO * wide) / (total + PSEUDO))
    hit = (total + 1) / (damaged.sum() + 2 + len(total))
    return guard._replace(
        hit=np.clip(hit, 0.01, 0.99), bad_spread=np.maximum(spread, 1.5 * guard.overall_spread),
        log_odds=special.logit(np.clip(damaged.mean(), UNSEEN_DAMAGE, 0.9)),
    )  # fmt: skip
