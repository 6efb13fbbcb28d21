"""Trust in the covariates: how likely a row's `x` is to belong with the rest, whatever its label says.

A likelihood of `y | x` cannot see that `x` itself is absurd. The guard models `x` as a mixture: with probability
`1 - ε` a row is sound and belongs to one of a few groups; otherwise each cell was hit with probability `π_j`. The trust
of a row is the probability that it is sound,

    h = (1-ε) S / ((1-ε) S + ε D),    S = Σ_k p_k ∏_j f_kj(w_j),    D = ∏_j [(1-π_j) f_j(w_j) + π_j g_j(w_j)],

about 1 anywhere in the bulk, falling to 0 as soon as the cells together are better explained by damage. `w` is the row
after robust scaling of either side of each column, `2 arcsinh(z/2)` against far cells, and whitening. `f_kj` is a
Student-t with the group's place and scale and the column's degrees of freedom, `f_j` that of the column as a whole,
`g_j` a wide one. A column of few levels enters by how far a cell is from being a level: a rare level costs nothing.

Heavy tails and damage look alike in one column and differ across columns, since damage comes in several cells of the
same row. Hence the fit weighs explanations by likelihood: heavy-tailed columns, rows with a scale of their own
(elliptical tails), groups, and either of the first and last with damage. Damage must be the best explanation, leave few
rows in doubt and be a minority; otherwise a share of 0.001 is assumed, which only absurd rows feel.

Reference: contaminated mixtures fitted by EM, as in Punzo & McNicholas (2016), here with damage by cell.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special, stats

LARGEST = 1e12  # cells are clipped here, so that float32 squares stay finite
LEVELS = 20  # a column of more levels than this is treated as continuous
OFF_LEVEL = 12.0  # distance given to a cell that is no level at all
TAILS = np.array([3.0, 5.0, 8.0, 15.0, 30.0, 100.0])  # degrees of freedom to choose from
BAD_TAIL = 8.0  # degrees of freedom of damaged cells
MOST_DAMAGE = 0.4  # more than this is no damage but a second population
UNSEEN_DAMAGE = 1e-3  # share of damaged rows assumed where the fit saw none
GROUPS = 10  # groups of sound rows
NO_GROUP = -100.0  # log-share of a group that is not there
KMEANS_ROWS = 2000  # rows the groups are first looked for in
FEWEST = 50  # rows below which no damage is looked for
PUREST = 0.6  # how surely damaged rows must be told from sound ones, 1 for no doubt
GAIN = 0.25  # log-likelihood that each row called damaged must bring
WIDEST = 1.1  # of a group, against the typical distance from the median
CELLS = 30_000  # cells the fit looks at
ITERATIONS = 25
PSEUDO = 20.0  # rows' worth of belief in the default shape of damage


class Guard(NamedTuple):
    """Fitted model of the covariates.

    All fields are arrays (NumPy's while fitting, then JAX's), one entry per column unless said otherwise.
    """

    center: Any
    scale_below: Any
    scale_above: Any
    discrete: Any  # 1 for a column of few levels
    low: Any  # lowest and highest established level
    high: Any
    span: Any
    step: Any  # distance between levels; infinite where cells between levels are not judged
    tolerance: Any  # in steps
    mix: Any  # (columns, columns) whitening
    share: Any  # (groups,) log-shares of the groups of sound rows
    mean: Any  # (groups, columns) sound cells: place and scale
    spread: Any
    tail: Any  # and degrees of freedom
    overall_mean: Any  # cells of damaged rows that were not hit
    overall_spread: Any
    hit: Any  # cells of damaged rows that were: their share and scale
    bad_spread: Any
    log_odds: Any  # scalar, log ε/(1-ε)
    row_tail: Any  # scalar, degrees of freedom of the rows' own scale; huge where rows have none
    row_scale: Any  # scalar, largest such scale that is believed
    typical_low: Any
    typical_high: Any


def trust(guard: Guard, x: Float[Array, "n columns"]) -> Float[Array, " n"]:
    """Return the probability that each row is sound.

    Parameters
    ----------
    guard
        Fitted by `fit_guard`.
    x
        Rows. Cells beyond ±1e12, infinite or missing cells count as ±1e12.
    """
    whitened = _whitened(guard, _coordinates(guard, jnp.asarray(x, jnp.float32), jnp), jnp)
    sound = jax.nn.logsumexp(_log_sound(guard, whitened, jnp), axis=0)
    bad = _log_damaged(guard, whitened, jnp)[0].sum(axis=1)
    return jax.nn.sigmoid(sound - bad - guard.log_odds)


def _whitened(guard: Guard, coordinates: Any, xp: Any) -> Any:
    """Return rows in the coordinates the mixture is stated in, divided by the rows' own scale if they have one."""
    whitened = coordinates @ guard.mix
    if xp is np:
        return _rescaled(guard, whitened, np) if guard.row_scale > 1 else whitened
    return jax.lax.cond(guard.row_scale > 1, lambda w: _rescaled(guard, w, jnp), lambda w: w, whitened)


def _rescaled(guard: Guard, whitened: Any, xp: Any) -> Any:
    """Return the rows divided by their own scale, within what is believed of it."""
    smooth = 1 - guard.discrete
    away = whitened - guard.overall_mean
    square = xp.square(away / guard.overall_spread) @ smooth
    scale = xp.clip(xp.sqrt((guard.row_tail + square) / (guard.row_tail + smooth.sum())), 1.0, guard.row_scale)
    return guard.overall_mean + away / xp.where(smooth > 0, scale[:, None], 1.0)


def _coordinates(guard: Guard, x: Any, xp: Any) -> Any:
    """Return cells in comparable units: signed distance from the centre, or from the nearest level."""
    x = xp.clip(xp.where(xp.isnan(x), LARGEST, x), -LARGEST, LARGEST)
    away = x - guard.center
    half = xp.where(away < 0, -0.5 / guard.scale_below, 0.5 / guard.scale_above)  # products are cheaper than divisions
    near = 2 * xp.sign(away) * _arcsinh(away * half, xp)
    steps = (x - guard.low) * (1 / guard.step)
    between = xp.abs(steps - xp.round(steps)) > guard.tolerance
    outside = xp.maximum(guard.low - x, x - guard.high)
    beyond = 4 * _arcsinh(xp.maximum(outside, 0) * (1 / guard.span), xp)
    return xp.where(guard.discrete > 0, xp.where(between, xp.maximum(beyond, OFF_LEVEL), beyond), near)


def _arcsinh(size: Any, xp: Any) -> Any:
    """Return arcsinh of positive numbers; XLA's own is many times slower on a CPU."""
    size = xp.minimum(size, 1e18)  # its square is still finite in float32
    return xp.log(size + xp.sqrt(1 + xp.square(size)))


def _log_student(w: Any, mean: Any, spread: Any, tail: Any, xp: Any) -> Any:
    """Return cells' Student-t log-densities, less the constant that all components of a column share."""
    return -xp.log(spread) - (tail + 1) / 2 * xp.log(1 + xp.square((w - mean) * (1 / (spread * xp.sqrt(tail)))))


def _log_sound(guard: Guard, w: Any, xp: Any) -> Any:
    """Return each row's log-density within each group of sound rows, shares included, groups first."""

    def one(group: Any) -> Any:
        share, mean, spread = group
        scaled = (w - mean) * (1 / (spread * xp.sqrt(guard.tail)))
        return share - xp.log(spread).sum() - xp.log(1 + xp.square(scaled)) @ ((guard.tail + 1) / 2)

    groups = (guard.share, guard.mean, guard.spread)
    if xp is np:
        return np.stack([one(g) if g[0] > NO_GROUP else np.full(len(w), -np.inf) for g in zip(*groups, strict=True)])
    absent = jnp.full(len(w), -jnp.inf, w.dtype)
    # One group at a time keeps the cells in the cache, and groups that are not there cost nothing.
    return jax.lax.map(lambda group: jax.lax.cond(group[0] > NO_GROUP, one, lambda _: absent, group), groups)


def _log_damaged(guard: Guard, w: Any, xp: Any) -> tuple[Any, Any]:
    """Return each cell's log-density in a damaged row, and the log-density it would have there if not hit."""
    spared = _log_student(w, guard.overall_mean, guard.overall_spread, guard.tail, xp)
    # The two kinds of Student-t have different heights; both are stated relative to the sound one's.
    height = _height(BAD_TAIL, np) - _height(guard.tail, xp)
    struck = height + _log_student(w, guard.overall_mean, guard.bad_spread, BAD_TAIL, xp)
    # Relative to the wider density: the other way round the ratio overflows.
    return struck + xp.log(guard.hit + (1 - guard.hit) * xp.exp(spared - struck)), spared


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
    blank = _columns(x)
    u = _coordinates(blank, x, np)
    most = max(1000, CELLS // max(1, x.shape[1]))
    some = np.random.default_rng(seed).permutation(len(x))[:most]
    everything = np.ones(len(u), bool)
    fits = [_fit(_start(blank, u, everything, 1), u[some])]
    if len(u) >= FEWEST:
        fits.append(_elliptical(fits[0][0], u[some]))
        # Fewer groups for wide tables: a group costs time by the cell there, and must be filled by fewer rows.
        many = int(np.clip(30 * GROUPS // x.shape[1], 2, GROUPS))
        for groups in (1, many) if (blank.discrete == 0).any() else (1,):
            # The first whitening is by all rows, damaged ones too; the second by those that are believed.
            fits += _with_and_without_damage(_start(blank, u, everything, groups), u[some])
            kept = _believed(fits[-1][0], u)
            fits += _with_and_without_damage(_start(blank, u, kept, groups), u[some])
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


def explain(guard: Guard, x_suspicious: Float[np.ndarray, "rows columns"], columns: list[str]) -> dict[str, Any]:
    """Say which columns give suspicious rows away, in plain values that JSON can hold.

    Parameters
    ----------
    guard
        Fitted by `fit_guard`.
    x_suspicious
        Rows of low trust.
    columns
        Names of the columns.

    Returns
    -------
    dict
        `rows`, their number; `columns`, at most ten of {"column", "rows", "typical"}, those that speak against most
        rows first; `kinds`, how many columns are continuous and discrete.
    """
    guard = jax.tree.map(np.asarray, guard)
    x = np.asarray(x_suspicious, np.float32).reshape(-1, len(columns))
    cells, spared = _log_damaged(guard, _whitened(guard, _coordinates(guard, x, np), np), np)
    telling = cells - spared > 1.0
    counts = telling.sum(axis=0)
    discrete = int(np.sum(guard.discrete > 0))
    return {
        "rows": len(x),
        "columns": [
            {
                "column": columns[j],
                "rows": int(counts[j]),
                "typical": [float(guard.typical_low[j]), float(guard.typical_high[j])],
            }
            for j in np.argsort(-counts, kind="stable")[:10]
            if counts[j] > 0
        ],
        "kinds": {"continuous": len(columns) - discrete, "discrete": discrete},
    }


def _columns(x: np.ndarray) -> Guard:
    """Return a guard that knows the columns one by one, and nothing of their rows."""
    units = np.array([(*_levels(column), *_scales(column)) for column in x.T]).reshape(-1, 9).T
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


def _levels(column: np.ndarray) -> tuple[float, ...]:
    """Return whether a column is discrete, and its lowest level, highest level, span, step and tolerance."""
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
    if not len(levels) or len(levels) > LEVELS or share < 0.6 or (noisy and (len(levels) == 1 or inside.mean() > 0.95)):
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
    center = float(np.median(column))
    away = column - center
    both = float(np.median(np.abs(away)))
    sides = []
    for side in (-away[away < 0], away[away > 0]):
        quartile = float(np.median(side)) if len(side) else 0.0
        sides.append(quartile / 0.6745)
    floor = 0.1 * max(both / 0.6745, 1e-30)
    below, above = (max(side, floor) if side > 0 else max(*sides, floor) for side in sides)
    if max(sides) == 0:
        below = above = max(1.0, abs(center))
    return center, below, above


def _height(tail: Any, xp: Any) -> Any:
    """Return the log-density of a standard Student-t at its centre."""
    gammaln = special.gammaln if xp is np else jax.scipy.special.gammaln
    return gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * xp.log(np.pi * tail)


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


def _with_and_without_damage(start: Guard, u: np.ndarray) -> list[tuple[Guard, float]]:
    """Return both fits, the second started from the groups of the first."""
    plain = _fit(start, u)
    return [plain, _fit(start._replace(share=plain[0].share, mean=plain[0].mean), u, damage=True)]


def _best(fits: list[tuple[Guard, float]]) -> Guard:
    """Return the guard of the highest likelihood."""
    return max(fits, key=lambda fit: fit[1])[0]


def _believed(guard: Guard, u: np.ndarray) -> np.ndarray:
    """Return which rows are more likely sound than damaged; all, where that would leave few."""
    w = _whitened(guard, u, np)
    bad = guard.log_odds + _log_damaged(guard, w, np)[0].sum(axis=1)
    kept = special.logsumexp(_log_sound(guard, w, np), axis=0) > bad
    return kept if kept.mean() > 0.5 else np.ones(len(u), bool)


def _fit(guard: Guard, u: np.ndarray, damage: bool = False) -> tuple[Guard, float]:
    """Fit the mixture by EM; also return a row's mean log-likelihood, less what the parameters cost.

    The likelihood is minus infinity where damage is not to be believed: when rows cannot be told apart (the sum of
    squared probabilities of damage is well below their sum), or when it is no minority.
    """
    w = u @ guard.mix
    still = guard.discrete > 0
    reference = guard.overall_spread
    # Where most cells tie (rain, capital gains), a group as narrow as the tie would make damage of all the others.
    tied = np.median(np.abs(w - guard.overall_mean), axis=0) < 0.1 * w.std(axis=0)
    narrowest = np.where(tied, 0.8, 0.1) * reference
    groups = guard.share > NO_GROUP
    log_sound = -0.5 * np.stack([np.square((w - mean) / reference).sum(axis=1) for mean in guard.mean])
    log_sound[~groups] = -np.inf
    damaged = np.zeros(len(w))
    hits = np.zeros_like(w)
    if damage:
        distance = -2 * log_sound.max(axis=0)
        columns = len(still)
        cut = np.median(distance) / stats.chi2.median(columns) * stats.chi2.ppf(0.95, columns) * 1.2
        damaged = (distance > cut).astype(float)
        far = np.square((w - guard.mean[log_sound.argmax(axis=0)]) / reference) > 4
        hits = damaged[:, None] * np.where(far, 0.9, 0.1)
    for turn in range(ITERATIONS):
        weights = special.softmax(log_sound, axis=0) * (1 - damaged)
        guard = _sound_step(guard, w, weights, hits, reference, narrowest, turn)
        if damage:
            guard = _bad_step(guard, w, hits, damaged)
        log_sound = _log_sound(guard, w, np)
        sound = special.logsumexp(log_sound, axis=0) + special.log_expit(-guard.log_odds)
        cells, spared = _log_damaged(guard, w, np)
        bad = cells.sum(axis=1) + special.log_expit(guard.log_odds)
        if damage:
            damaged = special.expit(bad - sound)
            hits = damaged[:, None] * (1 - (1 - guard.hit) * np.exp(spared - cells))
    likelihood = np.logaddexp(sound, bad).mean() + _height(guard.tail, np).sum() + np.linalg.slogdet(guard.mix)[1]
    cost = (2 * groups.sum() + 2 * damage) * len(still) * np.log(len(u)) / (2 * len(u))
    purity = np.square(damaged).sum() / max(damaged.sum(), 1e-9)
    if damage:
        cost += GAIN * damaged.mean()
    believed = not damage or (purity >= PUREST and damaged.mean() <= MOST_DAMAGE)
    return guard, float(likelihood - cost) if believed else -np.inf


def _student_step(w: np.ndarray, weights: np.ndarray, mean: np.ndarray, spread: np.ndarray, tail: Any) -> Any:
    """Take one EM step for the place and scale of weighted Student-t columns."""
    pull = weights * (tail + 1) / (tail + np.square((w - mean) / spread))
    mean = (pull * w).sum(axis=0) / np.maximum(pull.sum(axis=0), 1e-9)
    return mean, np.sqrt((pull * np.square(w - mean)).sum(axis=0) / np.maximum(weights.sum(axis=0), 1e-9))


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
    square, pooled = [], []
    for k in groups:
        weight = np.broadcast_to(weights[k][:, None], w.shape)
        mean[k], spread[k] = _student_step(w, weight, mean[k], spread[k], guard.tail)
        near = 6 * reference
        mean[k] = np.where(still, 0.0, np.clip(mean[k], guard.overall_mean - near, guard.overall_mean + near))
        widest = WIDEST * reference
        spread[k] = np.where(still, 1.0, np.clip(spread[k], narrowest, widest))
        square.append(np.square((w - mean[k]) / spread[k]))
        pooled.append(weight)
    share = guard.share.copy()
    share[groups] = np.log(np.maximum(weights[groups].sum(axis=1), 1.0) / max(weights.sum(), 1.0))
    overall_mean, overall_spread = _student_step(w, 1 - hits, guard.overall_mean, guard.overall_spread, guard.tail)
    tail = guard.tail
    if turn % 5 == 4 and len(w) >= 50:
        all_weights, all_squares = np.concatenate(pooled), np.concatenate(square)
        fits = [
            (all_weights * (_height(nu, np) - (nu + 1) / 2 * np.log1p(all_squares / nu))).sum(axis=0) for nu in TAILS
        ]
        tail = np.where(still, 10.0, TAILS[np.argmax(fits, axis=0)])
    return guard._replace(
        share=share, mean=mean, spread=spread, tail=tail,
        overall_mean=np.where(still, 0.0, overall_mean),
        overall_spread=np.where(still, 1.0, np.maximum(overall_spread, narrowest)),
        bad_spread=np.maximum(guard.bad_spread, 1.5 * reference),
    )  # fmt: skip


def _bad_step(guard: Guard, w: np.ndarray, hits: np.ndarray, damaged: np.ndarray) -> Guard:
    """Take one EM step for the damaged cells, held by a little belief in the default shape."""
    total = hits.sum(axis=0)
    square = np.square(w - guard.overall_mean)
    pull = hits * (BAD_TAIL + 1) / (BAD_TAIL + square / np.square(guard.bad_spread))
    wide = np.square(5 * guard.overall_spread)
    spread = np.sqrt(((pull * square).sum(axis=0) + PSEUDO * wide) / (total + PSEUDO))
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
    best, most = (np.inf, np.ones(count)), -np.inf
    for nu in (2.0, 3.0, 5.0, 8.0, 15.0):
        spread = guard.overall_spread[smooth]
        for _ in range(8):
            pull = (nu + count) / (nu + np.square(part / spread).sum(axis=1, keepdims=True))
            spread = np.maximum(np.sqrt((pull * np.square(part)).mean(axis=0)), 1e-2)
        height = special.gammaln((nu + count) / 2) - special.gammaln(nu / 2) - count / 2 * np.log(np.pi * nu)
        rows = np.log1p(np.square(part / spread).sum(axis=1) / nu)
        fit = height - np.log(spread).sum() - (nu + count) / 2 * rows.mean()
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
    levels = (_log_student(w, 0.0, 1.0, 10.0, np) + _height(10.0, np))[:, ~smooth].sum(axis=1).mean()
    return guard, float(most + levels + np.linalg.slogdet(guard.mix)[1] - len(spread) * np.log(len(u)) / len(u))
