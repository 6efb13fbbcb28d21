"""The standard deviation of the clean rows around the line, when many rows are not clean.

Linear regression, `y = z·θ + ε`, takes the standard deviation σ of `ε` as known. It is found with the coefficients, by
the fixed point of the γ-divergence, which gives each row the weight of its density to the power γ,

    `w_n = exp(−γ e_n² / 2σ²)`,  `e_n = y_n − z_n·θ`,
    `θ ← argmin Σ_n w_n e_n²`,  `σ² ← (1 + γ) Σ_n w_n e_n² / Σ_n w_n`,

so that rows far from the line count nothing, for any share of them. The factor `1 + γ` undoes what the weights cut off
a Gaussian; what the fit of the coefficients takes is given back as degrees of freedom, in the denominator.

There is one fixed point for each cluster of rows, and one at σ = 0 wherever more rows than parameters are tied. The
search therefore starts from the line of least absolute deviations, at several scales and levels, and from the best of
many lines through a few rows each, and takes the smallest γ-divergence,

    `log σ / (1 + γ) − log(mean_n w_n) / γ`,

among the fixed points that describe more than half of the rows. It runs on a sample; passes over all rows polish it.

Reference: Fujisawa and Eguchi, "Robust parameter estimation with a small bias against heavy contamination",
Journal of Multivariate Analysis, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows
from betacores.sampling import sample_rows
from betacores.sources import ArraySource, Source, over_chunks, reduce

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

# A larger γ tells dirty rows from clean ones when they are near; a smaller one wastes less of the clean rows, and does
# not take a few rows that happen to be on a line for all. It grows with the rows for each parameter. When fixed points
# are compared it is never small: a small γ would rather have one wide cluster than a narrow one and outliers.
JUDGE_GAMMA = 0.5
LEAST_GAMMA, POLISH_GAMMA, SEARCH_GAMMA, ROWS_FOR_GAMMA = 0.1, 0.7, 1.0, 40
SAMPLE_ROWS, SEARCH_ROWS, ROWS_PER_COLUMN = 20_000, 2_000, 50
SEARCH_STEPS, POLISH_STEPS, TOLERANCE = 100, 8, 3e-4
# The least noise that single precision can tell from none, in units of the response's scale.
SMALLEST = 1e-6
# Cells beyond so many scales are brought in, residuals beyond so many σ count nothing: products stay finite.
FARTHEST_CELL, FARTHEST_RESIDUAL = 1e6, 30.0
CORE_SCALES = 6.0
# Lines tried through a few rows each, not more than can all be clean by luck, and rows that such a line is judged by.
TRIES, MOST_PICKED, SEEN = 300, 12, 500
GAUSSIAN_MAD = 1.4826


class Frame(NamedTuple):
    """Where the table is centred and in what units it is measured, so that every number is of order one."""

    centre: Float[np.ndarray, " columns"]
    scale: Float[np.ndarray, " columns"]
    level: Any
    unit: Any


class Sums(NamedTuple):
    """What one pass over rows gives: `Σ w z zᵀ`, `Σ w z e`, `Σ w e²`, `Σ w`, and the number of rows."""

    gram: Any
    pull: Any
    energy: Any
    mass: Any
    rows: Any


class Fit(NamedTuple):
    """A line and the noise around it, the γ-divergence there and the share of rows it describes."""

    theta: Float[np.ndarray, " p"]
    sigma: float
    divergence: float
    share: float


def robust_noise(source: Source, intercept: bool, key: PRNGKeyArray, sample: ArraySource | None = None) -> float:
    """Return the standard deviation of the clean rows around the line of a linear regression.

    Parameters
    ----------
    source
        Rows with a real response. Rows count by the weights of the source; rows with a number that is not finite do
        not count.
    intercept
        Whether the line has a constant.
    key
        Random key of the sample that the search runs on, and of the lines it tries.
    sample
        A uniform sample of the rows; one is drawn if it is not given.

    Returns
    -------
    float
        Always finite and positive. A millionth of the response's scale if the rows lie on a line exactly; the
        response's own robust scale if there are no more rows than parameters, and 1 if no row counts.

    Notes
    -----
    Dirty rows may be two in five of all rows. They are told from clean ones if they are 5σ or more away. Nearer ones,
    or those spread over the clean ones, make the noise too large: at two in five, by 15 % if they have 10 times the
    noise, and by 100 % if they are shifted by 3σ, where the two clusters of rows are one. With few rows for each
    parameter, 20 or less, the share that can be told from noise is smaller: one in five.
    """
    if sample is None:
        ids = sample_rows(key, source.row_count, SAMPLE_ROWS)
        sample = ArraySource(*source.take(ids), weights=source.weights_of(ids))
    sources = [source] if source.row_count <= sample.row_count else [sample, source]
    x, y, weights = _searched(Rows(sample.x, sample.y), sample.weights)
    if len(y) == 0:
        return 1.0
    frame = _frame(x, y, intercept)
    z, y = _features(x, y, frame, intercept, np)
    rank = max(int(np.linalg.matrix_rank(z)), 1)
    if len(y) <= rank:
        return float(frame.unit * GAUSSIAN_MAD)
    gamma = float(np.clip(weights.sum() / rank / ROWS_FOR_GAMMA, LEAST_GAMMA, SEARCH_GAMMA))
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    theta, sigma, *_ = _search(z, y, weights, gamma, rank, rng)
    if sigma <= 10 * SMALLEST:
        return float(frame.unit * max(SMALLEST, _tied_noise(z, y, theta)))
    for rows in sources:
        look = partial(_pass, rows, jax.tree.map(np.float32, frame), intercept)
        theta, sigma = _fixed_point(look, theta, sigma, min(gamma, POLISH_GAMMA), rank, POLISH_STEPS)
    return float(frame.unit * sigma)


def robust_line(
    x: Float[np.ndarray, "n columns"], y: Float[np.ndarray, " n"], intercept: bool, seed: int = 0
) -> tuple[Float[np.ndarray, " p"], float]:
    """Return a line that dirty rows do not move, constant last, and the noise around it: the search alone, on few rows.

    Parameters
    ----------
    x, y
        Covariates and responses of a sample of rows.
    intercept
        Whether the line has a constant.
    seed
        Of the lines that are tried.
    """
    x, y, weights = _searched(Rows(x, y), np.ones(len(y)))
    frame = _frame(x, y, intercept)
    z, scaled = _features(x, y, frame, intercept, np)
    rank = max(int(np.linalg.matrix_rank(z)), 1)
    theta, sigma = np.zeros(z.shape[1]), GAUSSIAN_MAD
    if len(y) > rank:
        gamma = float(np.clip(len(y) / rank / ROWS_FOR_GAMMA, LEAST_GAMMA, SEARCH_GAMMA))
        theta, sigma, *_ = _search(z, scaled, weights, gamma, rank, np.random.default_rng(seed))
        if sigma <= 10 * SMALLEST:
            sigma = max(SMALLEST, _tied_noise(z, scaled, theta))
    slopes = frame.unit * theta[: x.shape[1]] / frame.scale
    constant = [frame.level + frame.unit * theta[-1] - slopes @ frame.centre] if intercept else []
    return np.concatenate([slopes, constant]), float(frame.unit * sigma)


def _searched(sample: Rows, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return covariates, responses and weights of the rows that the search uses, in double precision."""
    # Rows may be sorted by anything: every k-th, not the first ones.
    wanted = max(SEARCH_ROWS, ROWS_PER_COLUMN * sample.x.shape[1])
    some = slice(None, None, max(len(weights) // wanted, 1))
    x, y, weights = (np.asarray(a[some], np.float64) for a in (sample.x, sample.y, weights))
    counts = np.isfinite(x).all(axis=1) & np.isfinite(y) & (weights > 0)
    return x[counts], y[counts], weights[counts]


def _frame(x: Float[np.ndarray, "n columns"], y: Float[np.ndarray, " n"], intercept: bool) -> Frame:
    """Return medians, and medians of the absolute deviations from them that are not zero."""
    # A line without constant would get one if the columns were centred.
    centre = np.median(x, axis=0) if intercept else np.zeros(x.shape[1])
    level = float(np.median(y)) if intercept else 0.0
    scale = np.array([_typical(column) for column in np.abs(x - centre).T])
    return Frame(centre, scale, level, _typical(np.abs(y - level)))


def _typical(sizes: Float[np.ndarray, " n"]) -> float:
    """Return the median of the sizes that are not zero: a scale even where most cells of a column are equal."""
    some = sizes[sizes > 0]
    return float(np.clip(np.median(some), 1e-30, 1e30)) if some.size else 1.0


def _features(x: Any, y: Any, frame: Frame, intercept: bool, xp: Any) -> tuple[Any, Any]:
    """Return covariates, with a one for the intercept, and responses in the units of the frame."""
    z = xp.clip((x - frame.centre) / frame.scale, -FARTHEST_CELL, FARTHEST_CELL)
    if intercept:
        z = xp.concatenate([z, xp.ones_like(z[:, :1])], axis=1)
    return z, (y - frame.level) / frame.unit


def _sums(z: Any, y: Any, weights: Any, theta: Any, sigma: Any, gamma: Any, xp: Any) -> Sums:
    """Return the weighted sums at a line; NumPy in the search, JAX in the passes over all rows."""
    far = FARTHEST_RESIDUAL * sigma
    e = xp.clip(y - z @ theta, -far, far)
    w = weights * xp.exp(-0.5 * gamma * (e / sigma) ** 2)
    weighted = z * w[:, None]
    return Sums(weighted.T @ z, weighted.T @ e, (w * e) @ e, w.sum(), weights.sum())


def _pass(source: Source, frame: Frame, intercept: bool, theta: np.ndarray, sigma: float, gamma: float) -> Sums:
    at = np.float32(theta), np.float32(sigma), np.float32(gamma)
    return Sums(*reduce(source, _block_sums, frame, *at, intercept))


@partial(jax.jit, static_argnames="intercept")
def _block_sums(
    rows: Rows, weights: Array, frame: Frame, theta: Array, sigma: Array, gamma: Array, intercept: bool
) -> Sums:
    def sums(rows: Rows, weights: Array) -> Sums:
        finite = jnp.isfinite(rows.y) & jnp.isfinite(rows.x.sum(axis=1))
        x, y = jnp.where(finite[:, None], rows.x, 0.0), jnp.where(finite, rows.y, 0.0)
        return _sums(*_features(x, y, frame, intercept, jnp), weights * finite, theta, sigma, gamma, jnp)

    return over_chunks(sums, rows, weights)


def _search(
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
    look = partial(_sums, z, y, weights, xp=np)
    # The line runs through as many rows as it has parameters; to describe the rest, it must be near half of the others.
    enough = 0.5 * (1 + rank / len(y))
    spread = GAUSSIAN_MAD * float(np.quantile(np.abs(e), enough))
    middle, half = _shortest_interval(e, enough)
    beside = theta + np.linalg.lstsq(z, np.full(len(y), middle), rcond=None)[0]
    # When 2 rows in 5 are dirty, half of all rows are 5 in 6 of the clean ones: the spread is twice too large, or more.
    starts = [(theta, spread * share) for share in (2.0, 1.0, 0.5, 0.25)]
    starts += [(beside, GAUSSIAN_MAD * half * share) for share in (1.0, 0.5)]
    few, width = _through_few(z, y, enough, rng)
    starts += [(few, GAUSSIAN_MAD * width * share) for share in (1.0, 0.5)]
    found = [_fixed_point(look, at, max(sigma, SMALLEST), gamma, rank, SEARCH_STEPS) for at, sigma in starts]
    fits = [_judged(look, at, sigma, max(gamma, JUDGE_GAMMA)) for at, sigma in found]
    good = [fit for fit in fits if fit.share >= enough]
    return min(good, key=lambda fit: fit.divergence) if good else max(fits, key=lambda fit: fit.share)


def _fixed_point(
    look: Callable[..., Sums], theta: np.ndarray, sigma: float, gamma: float, rank: int, steps: int
) -> tuple[np.ndarray, float]:
    """Follow the updates of line and noise until the noise rests, one look at the rows each."""
    for _ in range(steps):
        sums = look(theta, sigma, gamma)
        step = _solve(sums.gram, sums.pull)
        energy = max(float(sums.energy - sums.pull @ step), 0.0)
        mass = max(float(sums.mass), 1e-30)
        freedom = max(mass - _freedom(gamma) * rank / math.sqrt(1 + gamma), 0.05 * mass)
        theta, before = theta + step, sigma
        sigma = max(math.sqrt((1 + gamma) * energy / freedom), SMALLEST)
        if abs(math.log(sigma / before)) < TOLERANCE:
            break
    return theta, sigma


def _judged(look: Callable[..., Sums], theta: np.ndarray, sigma: float, gamma: float) -> Fit:
    """Return a fixed point with what it is chosen by."""
    sums = look(theta, sigma, gamma)
    mean = max(float(sums.mass / sums.rows), 1e-30)
    divergence = math.log(sigma) / (1 + gamma) - math.log(mean) / gamma
    # A Gaussian has `mean w = 1 / √(1+γ)`; rows that are tied have one.
    return Fit(theta, sigma, divergence, mean * math.sqrt(1 + gamma) if sigma > SMALLEST else mean)


def _freedom(gamma: float) -> float:
    """Return how many clean rows' worth of `Σ w e²` the fit of one coefficient takes, to first order; 1 at γ = 0.

    With `ψ = e w` and `χ = w (e² − s)`, the expected change of `Σ_n χ(e_n)` by one coefficient,
    `−E[χ' ψ] / E[ψ'] + E[χ''] E[ψ²] / 2 E[ψ']²`, where `s = 1 / (1 + γ)` and `v = 1 / (1 + 2γ)`.
    """
    s, v = 1 / (1 + gamma), 1 / (1 + 2 * gamma)
    own = v**0.5 * ((2 + gamma * s) * v - 3 * gamma * v**2) / s**1.5
    others = s**0.5 * (2 + gamma * s - (5 * gamma + gamma**2 * s) * s + 3 * gamma**2 * s**2) * v**1.5 / s**3
    return (own - 0.5 * others) / s**1.5


def _solve(gram: Float[np.ndarray, "p p"], pull: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """Solve least squares for a step; the ridge, far below the units of the frame, is for columns that repeat."""
    diagonal = np.sqrt(np.maximum(np.diag(gram), 1e-30))
    scaled = gram / diagonal / diagonal[:, None]
    return np.linalg.solve(scaled + 1e-7 * np.eye(len(pull)), pull / diagonal) / diagonal


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
        theta = theta + _solve(weighted.T @ z, weighted.T @ e)
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


def _shortest_interval(e: Float[np.ndarray, " n"], share: float) -> tuple[float, float]:
    """Return the middle and half the length of the shortest interval that holds a share of the numbers."""
    ordered = np.sort(e)
    held = min(int(share * len(e)), len(e) - 1)
    lengths = ordered[held:] - ordered[: len(e) - held]
    at = int(np.argmin(lengths))
    return float(ordered[at] + lengths[at] / 2), float(lengths[at] / 2)


def _tied_noise(z: Float[np.ndarray, "n p"], y: Float[np.ndarray, " n"], theta: np.ndarray) -> float:
    """Return the noise of a response that mostly takes one value, and zero for any other that fits exactly.

    Counts and flags are tied without being exact. Were σ zero, every row off the tie would be an outlier.
    """
    _, counts = np.unique(y, return_counts=True)
    away = np.abs(y - z @ theta)
    off = away[away > 100 * SMALLEST]
    if off.size == 0 or counts.max() < 0.4 * len(y):
        return 0.0
    return float(np.median(off)) * math.sqrt(off.size / len(y))
