"""The fit of the guard: explanations of the covariates, weighed by likelihood.

Heavy tails and damage look alike in one column and differ across columns, since damage comes in several cells of the
same row. Hence the fit weighs explanations by likelihood: heavy-tailed columns, rows with a scale of their own
(elliptical tails), groups, and either of the first and last with damage. Damage must be the best explanation, leave few
rows in doubt and be a minority; otherwise a share of 0.001 is assumed, which only absurd rows feel. Where some rows are
known to be sound, they alone say what sound rows are like, and damage is what the others have besides.

Reference: Punzo and McNicholas, "Parsimonious mixtures of multivariate contaminated normal distributions", Biometrical
Journal 58 (2016), for mixtures of sound and contaminated rows; here damage is by cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from betacores.guard.columns import GROUPS, columns_of
from betacores.guard.em import TAILS, fit_mixture, log_total
from betacores.guard.model import (
    LARGEST,
    NO_GROUP,
    Guard,
    columns_down,
    coordinates,
    height,
    log_damaged,
    log_sound,
    log_student,
    whitened,
)
from betacores.robust import medians, quantiles

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

KMEANS_ROWS = 2000  # rows the groups are first looked for in
FEWEST = 50  # rows below which no damage is looked for
CELLS = 30_000  # cells the fit looks at
FEW_ITERATIONS = 8
UNDERSTOOD = 0.95  # of rows known to be sound, the share that is to be trusted


def fit_guard(
    x: Float[np.ndarray, "rows columns"], seed: int = 0, sound: Bool[np.ndarray, " rows"] | None = None
) -> Guard:
    """Fit the guard to a uniform sample of rows.

    Parameters
    ----------
    x
        At most some 20,000 rows; up to 40 % of them may be damaged.
    seed
        Chooses the rows EM looks at when the sample is large or wide.
    sound
        Rows that are known to be sound, if any are: what sound rows are like is then learnt from them alone.
    """
    x = np.asarray(x, np.float64)
    x = np.clip(np.where(np.isnan(x), LARGEST, x), -LARGEST, LARGEST)
    most = max(1000, CELLS // max(1, x.shape[1]))
    some = np.random.default_rng(seed).permutation(len(x))[:most]
    best = None
    if sound is not None:
        blank = columns_of(x[sound], damage=False)
        u = coordinates(blank, x, np)
        best = _around(blank, u, some, sound)
    if best is None:
        blank = columns_of(x)
        u = coordinates(blank, x, np)
        best = _best(_explanations(blank, u, some))
    if len(u) < FEWEST:  # scales of few rows are rough: believe in wide, heavy-tailed columns
        tail = np.where(best.discrete > 0, best.tail, TAILS[0])
        best = best._replace(tail=tail, spread=2 * best.spread, overall_spread=2 * best.overall_spread)
    kept = _believed(best, u)
    ends = quantiles(x[kept] if kept.any() else x, (0.005, 0.995))
    best = best._replace(
        typical_low=np.where(best.discrete > 0, best.low, ends[0]),
        typical_high=np.where(best.discrete > 0, best.high, ends[1]),
    )
    return jax.tree.map(lambda field: jnp.asarray(np.asarray(field, np.float32)), best)


def _explanations(blank: Guard, u: np.ndarray, some: np.ndarray, damage: bool = True) -> list[tuple[Guard, float]]:
    """Return the explanations of rows, with their likelihoods; with damage too, if there may be any."""
    everything = np.ones(len(u), bool)
    alone = _start(blank, u, everything)
    fits = [fit_mixture(alone, u[some])]
    if len(u) >= FEWEST:
        fits.append(_elliptical(fits[0][0], u[some]))
        if damage:
            fits += _damaged_fits(alone, fits[0], u, some)
        # Fewer groups for wide tables: a group costs time by the cell there, and must be filled by fewer rows.
        many = int(np.clip(30 * GROUPS // u.shape[1], 2, GROUPS))
        if (blank.discrete == 0).any():
            together = _grouped(alone, u, everything, many)
            grouped = fit_mixture(together, u[some], turns=FEW_ITERATIONS)
            # Groups are gone into only where they promise to explain the rows better than other sound rows would. Not
            # than damage: a group small and far off looks like that, until its rows are seen to belong together.
            if grouped[1] > max(fit[1] for fit in fits[:2]):
                grouped = fit_mixture(together, u[some])
                fits += [grouped, *(_damaged_fits(together, grouped, u, some) if damage else [])]
    return fits


def _around(blank: Guard, u: np.ndarray, some: np.ndarray, sound: np.ndarray) -> Guard | None:
    """Return the guard whose sound rows are like those known, and whose damage is what others have; None if it errs.

    A guard that doubts rows known to be sound has not understood what they are like.
    """
    known = np.flatnonzero(sound)
    guard = _best(_explanations(blank, u[sound], np.arange(len(known))[: len(some)], damage=False))
    guards = [guard]
    if guard.row_scale == 1:
        others, reached = fit_mixture(guard, u[some], damage=True, doubted=~sound[some])
        guards = [others, guard] if np.isfinite(reached) else guards
    return next((guard for guard in guards if _likely_sound(guard, u[sound]).mean() >= UNDERSTOOD), None)


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


def _start(guard: Guard, u: np.ndarray, kept: np.ndarray) -> Guard:
    """Return a rough guard from the rows kept: their whitening, and one group of them all."""
    guard = guard._replace(mix=_whitening(u[kept], guard.discrete))
    w = u[kept] @ guard.mix
    still = guard.discrete > 0
    median = np.where(still, 0.0, medians(w))
    scale = np.where(still, 1.0, _typical_distance(w, median))
    share = np.where(np.arange(GROUPS) == 0, 0.0, NO_GROUP)
    return guard._replace(
        share=share, mean=np.tile(median, (GROUPS, 1)), spread=np.tile(scale, (GROUPS, 1)), overall_mean=median,
        overall_spread=scale, bad_spread=10 * scale,
    )  # fmt: skip


def _grouped(guard: Guard, u: np.ndarray, kept: np.ndarray, groups: int) -> Guard:
    """Return a rough guard of one group with so many, found among the rows kept."""
    if groups == 1:
        return guard
    still = guard.discrete > 0
    w = u[kept][:KMEANS_ROWS] @ guard.mix
    labels = _nearest_groups(np.clip((w - guard.overall_mean) / guard.overall_spread, -4, 4) * ~still, groups)
    share, mean = guard.share.copy(), guard.mean.copy()
    share[:groups] = np.log(np.maximum(np.bincount(labels, minlength=groups), 1) / len(labels))
    for k in set(labels):
        mean[k] = medians(w[labels == k]) * ~still
    return guard._replace(share=share, mean=mean)


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
    robust, plain = medians(np.abs(w - median)) / 0.6745, w.std(axis=0)
    return np.maximum(np.where(robust > 0.1 * plain, np.maximum(robust, 0.3 * plain), plain), 1e-2)


def _damaged_fits(
    start: Guard, plain: tuple[Guard, float], u: np.ndarray, some: np.ndarray
) -> list[tuple[Guard, float]]:
    """Return fits with damage, started from the groups of one without.

    The first whitening is by all rows, damaged ones too; if damage is a better explanation, the second is by those that
    are then believed.
    """
    first = fit_mixture(start._replace(share=plain[0].share, mean=plain[0].mean), u[some], damage=True)
    if first[1] <= plain[1]:
        return [first]
    groups = int((start.share > NO_GROUP).sum())
    believed = _believed(first[0], u)
    start = _grouped(_start(start, u, believed), u, believed, groups)
    plain = fit_mixture(start, u[some])
    return [first, plain, fit_mixture(start._replace(share=plain[0].share, mean=plain[0].mean), u[some], damage=True)]


def _best(fits: list[tuple[Guard, float]]) -> Guard:
    """Return the guard of the highest likelihood."""
    return max(fits, key=lambda fit: fit[1])[0]


def _believed(guard: Guard, u: np.ndarray) -> np.ndarray:
    """Return which rows are more likely sound than damaged; all, where that would leave few."""
    kept = _likely_sound(guard, u)
    return kept if kept.mean() > 0.5 else np.ones(len(u), bool)


def _likely_sound(guard: Guard, u: np.ndarray) -> np.ndarray:
    """Return which rows are more likely sound than damaged."""
    w = np.ascontiguousarray(whitened(guard, u).T)
    bad = guard.log_odds + log_damaged(columns_down(guard), w, np)[0].sum(axis=0)
    return log_total(log_sound(guard, w)) > bad


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
