"""The fit of the guard: explanations of the covariates, weighed by likelihood.

Heavy tails and damage look alike in one column and differ across columns, since damage comes in several cells of the
same row. Hence the fit weighs explanations by likelihood: heavy-tailed columns, rows with a scale of their own
(elliptical tails), groups, and either of the first and last with damage. Damage must be the best explanation, leave few
rows in doubt and be a minority; otherwise a share of 0.001 is assumed, which only absurd rows feel.

Reference: Punzo and McNicholas, "Parsimonious mixtures of multivariate contaminated normal distributions", Biometrical
Journal 58 (2016), for mixtures of sound and contaminated rows; here damage is by cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from betacores.guard.columns import GROUPS, UNSEEN_DAMAGE, columns_of
from betacores.guard.model import (
    BAD_TAIL,
    LARGEST,
    NO_GROUP,
    Guard,
    coordinates,
    height,
    log_damaged,
    log_sound,
    log_student,
    whitened,
)

if TYPE_CHECKING:
    from jaxtyping import Float

TAILS = np.array([3.0, 5.0, 8.0, 15.0, 30.0, 100.0], np.float32)  # degrees of freedom to choose from
MOST_DAMAGE = 0.45  # more than this is no damage but a second population
KMEANS_ROWS = 2000  # rows the groups are first looked for in
FEWEST = 50  # rows below which no damage is looked for
PUREST = 0.6  # how surely damaged rows must be told from sound ones, 1 for no doubt
GAIN = 0.25  # log-likelihood that each row called damaged must bring
WIDEST = 1.1  # of a group, against the typical distance from the median
CELLS = 30_000  # cells the fit looks at
ITERATIONS, FEW_ITERATIONS = 25, 8
SETTLED = 1e-4  # of a row's mean log-likelihood, in one turn
PSEUDO = 20.0  # rows' worth of belief in the default shape of damage


def fit_guard(x: Float[np.ndarray, "rows columns"], seed: int = 0) -> Guard:
    """Fit the guard to a uniform sample of rows.

    Parameters
    ----------
    x
        At most some 20,000 rows; up to 40 % of them may be damaged.
    seed
        Chooses the rows EM looks at when the sample is large or wide.
    """
    x = np.asarray(x, np.float64)
    x = np.clip(np.where(np.isnan(x), LARGEST, x), -LARGEST, LARGEST)
    blank = columns_of(x)
    u = coordinates(blank, x, np)
    most = max(1000, CELLS // max(1, x.shape[1]))
    some = np.random.default_rng(seed).permutation(len(x))[:most]
    everything = np.ones(len(u), bool)
    alone = _start(blank, u, everything, 1)
    fits = [_fit(alone, u[some])]
    if len(u) >= FEWEST:
        fits += [_elliptical(fits[0][0], u[some]), *_damaged_fits(alone, fits[0], u, some)]
        # Fewer groups for wide tables: a group costs time by the cell there, and must be filled by fewer rows.
        many = int(np.clip(30 * GROUPS // x.shape[1], 2, GROUPS))
        if (blank.discrete == 0).any():
            together = _start(blank, u, everything, many)
            grouped = _fit(together, u[some], turns=FEW_ITERATIONS)
            # Groups are gone into only where they promise to explain the rows better than other sound rows would. Not
            # than damage: a group small and far off looks like that, until its rows are seen to belong together.
            if grouped[1] > max(fit[1] for fit in fits[:2]):
                grouped = _fit(together, u[some])
                fits += [grouped, *_damaged_fits(together, grouped, u, some)]
    best = _best(fits)
    if len(u) < FEWEST:  # scales of few rows are rough: believe in wide, heavy-tailed columns
        tail = np.where(best.discrete > 0, best.tail, TAILS[0])
        best = best._replace(tail=tail, spread=2 * best.spread, overall_spread=2 * best.overall_spread)
    kept = _believed(best, u)
    ends = np.quantile(x[kept] if kept.any() else x, [0.005, 0.995], axis=0)
    best = best._replace(
        typical_low=np.where(best.discrete > 0, best.low, ends[0]),
        typical_high=np.where(best.discrete > 0, best.high, ends[1]),
    )
    return jax.tree.map(lambda field: jnp.asarray(field, jnp.float32), best)


def _whitening(u: np.ndarray, discrete: np.ndarray) -> np.ndarray:
    """Return the symmetric whitening of the continuous columns; collinear columns are damped, discrete ones kept."""
    smooth = discrete == 0
    mix = np.eye(len(discrete))
    part = u[:, smooth]
    rows, count = part.shape
    if rows < 5 or count < 2:
        return mix
    spread = np.sqrt(np.maximum(part.var(axis=0), 1e-4))
    standard = (part - part.mean(axis=0)) / spread
    shrink = min(1.0, count / rows + 0.01)
    values, vectors = np.linalg.eigh((1 - shrink) * standard.T @ standard / rows + shrink * np.eye(count))
    root = (vectors / np.sqrt(values)) @ vectors.T
    mix[np.ix_(smooth, smooth)] = root / spread[:, None]
    return mix


def _start(guard: Guard, u: np.ndarray, kept: np.ndarray, groups: int) -> Guard:
    """Return a rough guard from the rows kept: their whitening, and so many groups."""
    guard = guard._replace(mix=_whitening(u[kept], guard.discrete))
    w = u @ guard.mix
    still = guard.discrete > 0
    median = np.where(still, 0.0, np.median(w[kept], axis=0))
    scale = np.where(still, 1.0, _typical_distance(w[kept], median))
    share, mean = guard.share.copy(), np.tile(median, (GROUPS, 1))
    if groups > 1:
        near = np.clip((w - median) / scale, -4, 4) * ~still
        near, w = near[kept][:KMEANS_ROWS], w[kept][:KMEANS_ROWS]
        labels = _nearest_groups(near, groups)
        share[:groups] = np.log(np.maximum(np.bincount(labels, minlength=groups), 1) / len(labels))
        for k in set(labels):
            mean[k] = np.median(w[labels == k], axis=0) * ~still
    return guard._replace(
        share=share, mean=mean, spread=np.tile(scale, (GROUPS, 1)), overall_mean=median, overall_spread=scale,
        bad_spread=10 * scale,
    )  # fmt: skip


def _nearest_groups(z: np.ndarray, groups: int) -> np.ndarray:
    """Return a label for each row, by a few turns of k-means from rows far from each other."""
    centers = z[:1]
    nearest = np.full(len(z), np.inf)
    for _ in range(groups - 1):
        nearest = np.minimum(nearest, np.square(z - centers[-1]).sum(axis=1))
        # The 80 % quantile, since the farthest rows of all are the damaged ones.
        centers = np.vstack([centers, z[np.argsort(nearest)[int(0.8 * (len(z) - 1))]]])
    for _ in range(10):
        labels = (np.square(centers).sum(axis=1) - 2 * z @ centers.T).argmin(axis=1)
        member = (labels[:, None] == np.arange(groups)).astype(float)
        count = member.sum(axis=0)[:, None]
        centers = np.where(count > 0, member.T @ z / np.maximum(count, 1), centers)
    return labels


def _typical_distance(w: np.ndarray, median: np.ndarray) -> np.ndarray:
    """Return a robust scale of each column, not too small where half the cells tie."""
    robust, plain = np.median(np.abs(w - median), axis=0) / 0.6745, w.std(axis=0)
    return np.maximum(np.where(robust > 0.1 * plain, np.maximum(robust, 0.3 * plain), plain), 1e-2)


def _damaged_fits(
    start: Guard, plain: tuple[Guard, float], u: np.ndarray, some: np.ndarray
) -> list[tuple[Guard, float]]:
    """Return fits with damage, started from the groups of one without.

    The first whitening is by all rows, damaged ones too; if damage is a better explanation, the second is by those that
    are then believed.
    """
    first = _fit(start._replace(share=plain[0].share, mean=plain[0].mean), u[some], damage=True)
    if first[1] <= plain[1]:
        return [first]
    groups = int((start.share > NO_GROUP).sum())
    start = _start(start, u, _believed(first[0], u), groups)
    plain = _fit(start, u[some])
    return [first, plain, _fit(start._replace(share=plain[0].share, mean=plain[0].mean), u[some], damage=True)]


def _best(fits: list[tuple[Guard, float]]) -> Guard:
    """Return the guard of the highest likelihood."""
    return max(fits, key=lambda fit: fit[1])[0]


def _believed(guard: Guard, u: np.ndarray) -> np.ndarray:
    """Return which rows are more likely sound than damaged; all, where that would leave few."""
    w = whitened(guard, u)
    bad = guard.log_odds + log_damaged(guard, w, np)[0].sum(axis=1)
    kept = _log_total(log_sound(guard, w)) > bad
    return kept if kept.mean() > 0.5 else np.ones(len(u), bool)


def _fit(guard: Guard, u: np.ndarray, damage: bool = False, turns: int = ITERATIONS) -> tuple[Guard, float]:
    """Fit the mixture by EM; also return a row's mean log-likelihood, less what the parameters cost.

    The likelihood is minus infinity where damage is not to be believed: when rows cannot be told apart (the sum of
    squared probabilities of damage is well below their sum), or when it is no minority.
    """
    # Single precision is twice as fast, and has digits to spare for what is settled to the fourth.
    mix, w = guard.mix, (u @ guard.mix).astype(np.float32)
    guard = Guard(*(np.asarray(field, np.float32) for field in guard))._replace(mix=mix)
    still = guard.discrete > 0
    reference = guard.overall_spread
    # Where most cells tie (rain, capital gains), a group as narrow as the tie would make damage of all the others.
    tied = np.median(np.abs(w - guard.overall_mean), axis=0) < 0.1 * w.std(axis=0)
    narrowest = np.where(tied, np.float32(0.8), np.float32(0.1)) * reference
    groups = guard.share > NO_GROUP
    densities = -0.5 * np.stack([np.square((w - mean) / reference).sum(axis=1) for mean in guard.mean])
    densities[~groups] = -np.inf
    damaged = np.zeros(len(w), np.float32)
    hits = np.zeros_like(w)
    if damage:
        distance = -2 * densities.max(axis=0)
        columns = len(still)
        # Quantiles of χ² by its own special function: importing all of scipy.stats for them takes long.
        middle, far_out = 2 * special.gammaincinv(columns / 2, (0.5, 0.95))
        cut = np.median(distance) / middle * far_out * 1.2
        damaged = (distance > cut).astype(np.float32)
        far = np.square((w - guard.mean[densities.argmax(axis=0)]) / reference) > 4
        hits = damaged[:, None] * np.where(far, 0.9, 0.1)
    reached = -np.inf
    for turn in range(turns):
        weights = np.exp(densities - _log_total(densities)) * (1 - damaged)
        guard = _sound_step(guard, w, weights, hits, reference, narrowest, turn)
        if damage:
            guard = _bad_step(guard, w, hits, damaged)
        densities = log_sound(guard, w)
        sound = _log_total(densities) + special.log_expit(-guard.log_odds)
        cells, spared = log_damaged(guard, w, np)
        bad = cells.sum(axis=1) + special.log_expit(guard.log_odds)
        if damage:
            damaged = special.expit(bad - sound)
            hits = damaged[:, None] * (1 - (1 - guard.hit) * np.exp(spared - cells))
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
    pull = weights * ((tail + 1) / (tail + np.square((w - mean) / spread)))
    mean = _down(pull * w) / np.maximum(_down(pull), 1e-9)
    return mean, np.sqrt(_down(pull * np.square(w - mean)) / np.maximum(_down(weights), 1e-9))


def _down(cells: np.ndarray) -> np.ndarray:
    """Return the sums of columns: a matrix product goes along short rows many times faster than a sum does."""
    return np.ones(len(cells), cells.dtype) @ cells


def _log_total(densities: np.ndarray) -> np.ndarray:
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
    square = []
    for k in groups:
        mean[k], spread[k] = _student_step(w, weights[k][:, None], mean[k], spread[k], guard.tail)
        near = 6 * reference
        mean[k] = np.where(still, 0.0, np.clip(mean[k], guard.overall_mean - near, guard.overall_mean + near))
        widest = WIDEST * reference
        spread[k] = np.where(still, 1.0, np.clip(spread[k], narrowest, widest))
        square.append(np.square((w - mean[k]) / spread[k]))
    share = guard.share.copy()
    share[groups] = np.log(np.maximum(weights[groups].sum(axis=1), 1.0) / max(weights.sum(), 1.0))
    overall_mean, overall_spread = _student_step(w, 1 - hits, guard.overall_mean, guard.overall_spread, guard.tail)
    tail = guard.tail
    if turn % 5 == 4 and len(w) >= 50:
        every, squares = weights[groups].ravel(), np.concatenate(square)
        total = every.sum()
        fits = [height(float(nu), np) * total - (nu + 1) / 2 * (every @ np.log(1 + squares / nu)) for nu in TAILS]
        tail = np.where(still, 10.0, TAILS[np.argmax(fits, axis=0)])
    return guard._replace(
        share=share, mean=mean, spread=spread, tail=tail,
        overall_mean=np.where(still, 0.0, overall_mean),
        overall_spread=np.where(still, 1.0, np.maximum(overall_spread, narrowest)),
        bad_spread=np.maximum(guard.bad_spread, 1.5 * reference),
    )  # fmt: skip


def _bad_step(guard: Guard, w: np.ndarray, hits: np.ndarray, damaged: np.ndarray) -> Guard:
    """Take one EM step for the damaged cells, held by a little belief in the default shape."""
    total = _down(hits)
    square = np.square(w - guard.overall_mean)
    pull = hits * (BAD_TAIL + 1) / (BAD_TAIL + square / np.square(guard.bad_spread))
    wide = np.square(5 * guard.overall_spread)
    spread = np.sqrt((_down(pull * square) + PSEUDO * wide) / (total + PSEUDO))
    hit = (total + 1) / (damaged.sum() + 2 + len(total))
    return guard._replace(
        hit=np.clip(hit, 0.01, 0.99), bad_spread=np.maximum(spread, 1.5 * guard.overall_spread),
        log_odds=special.logit(np.clip(damaged.mean(), UNSEEN_DAMAGE, 0.9)),
    )  # fmt: skip


def _elliptical(guard: Guard, u: np.ndarray) -> tuple[Guard, float]:
    """Fit rows with a scale of their own (a multivariate t): far in many columns at once, yet sound."""
    smooth = guard.discrete == 0
    count = int(smooth.sum())
    if count < 2:
        return guard, -np.inf
    w = u @ guard.mix
    part = (w - guard.overall_mean)[:, smooth]
    squares = np.square(part)
    best, most = (np.inf, np.ones(count)), -np.inf
    for nu in (2.0, 3.0, 5.0, 8.0, 15.0):
        spread = guard.overall_spread[smooth]
        for _ in range(8):
            pull = (nu + count) / (nu + squares @ (1 / np.square(spread)))
            spread = np.maximum(np.sqrt(pull @ squares / len(squares)), 1e-2)
        peak = special.gammaln((nu + count) / 2) - special.gammaln(nu / 2) - count / 2 * np.log(np.pi * nu)
        rows = np.log1p(squares @ (1 / np.square(spread)) / nu)
        fit = peak - np.log(spread).sum() - (nu + count) / 2 * rows.mean()
        if fit > most:
            best, most = (nu, spread), fit
    spread = guard.overall_spread.copy()
    spread[smooth] = best[1]
    scale = np.sqrt((best[0] + np.square(part / best[1]).sum(axis=1)) / (best[0] + count))
    guard = guard._replace(
        mean=np.tile(guard.overall_mean, (GROUPS, 1)), spread=np.tile(spread, (GROUPS, 1)),
        tail=np.where(smooth, 15.0, guard.tail), overall_spread=spread, bad_spread=10 * spread,
        row_tail=np.array(best[0]), row_scale=np.array(max(1.0, np.quantile(scale, 0.999))),
    )  # fmt: skip
    levels = (log_student(w, 0.0, 1.0, 10.0, np) + height(10.0, np))[:, ~smooth].sum(axis=1).mean()
    return guard, float(most + levels + np.linalg.slogdet(guard.mix)[1] - len(spread) * np.log(len(u)) / len(u))
