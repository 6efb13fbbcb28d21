"""The standard deviation of the clean rows around the line, when many rows are not clean.

Linear regression, `y = z·θ + ε`, takes the standard deviation σ of `ε` as known. It is found with the coefficients, by
the fixed point of the γ-divergence (`fixed_point`), which gives each row the weight of its density to the power γ. The
search for it (`search`) runs on a sample; passes over all rows polish it.

Reference: Fujisawa and Eguchi, "Robust parameter estimation with a small bias against heavy contamination",
Journal of Multivariate Analysis, 2008.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows
from betacores.noise.fixed_point import SMALLEST, Sums, fixed_point, weighted_sums
from betacores.noise.search import GAUSSIAN_MAD, search, tied_noise
from betacores.programs import block_program
from betacores.randomness import generator
from betacores.samples import SAMPLE_ROWS
from betacores.sampling import sample_rows
from betacores.sources import ArraySource, Source, over_chunks, reduce

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

# A larger γ tells dirty rows from clean ones when they are near; a smaller one wastes less of the clean rows, and does
# not take a few rows that happen to be on a line for all. It grows with the rows for each parameter.
LEAST_GAMMA, POLISH_GAMMA, SEARCH_GAMMA, ROWS_FOR_GAMMA = 0.1, 0.7, 1.0, 40
SEARCH_ROWS, ROWS_PER_COLUMN = 2_000, 50
POLISH_STEPS = 8
# Cells beyond so many scales are brought in: products stay finite.
FARTHEST_CELL = 1e6


class Frame(NamedTuple):
    """Where the table is centred and in what units it is measured, so that every number is of order one."""

    centre: Float[np.ndarray, " columns"]
    scale: Float[np.ndarray, " columns"]
    level: Any
    unit: Any


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
    rng = generator(key)
    theta, sigma, *_ = search(z, y, weights, gamma, rank, rng)
    if sigma <= 10 * SMALLEST:
        return float(frame.unit * max(SMALLEST, tied_noise(z, y, theta)))
    for rows in sources:
        look = partial(_pass, rows, jax.tree.map(np.float32, frame), intercept)
        theta, sigma = fixed_point(look, theta, sigma, min(gamma, POLISH_GAMMA), rank, POLISH_STEPS)
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
        theta, sigma, *_ = search(z, scaled, weights, gamma, rank, np.random.default_rng(seed))
        if sigma <= 10 * SMALLEST:
            sigma = max(SMALLEST, tied_noise(z, scaled, theta))
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


def _pass(source: Source, frame: Frame, intercept: bool, theta: np.ndarray, sigma: float, gamma: float) -> Sums:
    at = np.float32(theta), np.float32(sigma), np.float32(gamma)
    return Sums(*reduce(source, _block_sums, frame, *at, intercept))


@partial(block_program, static_argnames="intercept")
def _block_sums(
    rows: Rows, weights: Array, frame: Frame, theta: Array, sigma: Array, gamma: Array, intercept: bool
) -> Sums:
    def sums(rows: Rows, weights: Array) -> Sums:
        finite = jnp.isfinite(rows.y) & jnp.isfinite(rows.x.sum(axis=1))
        x, y = jnp.where(finite[:, None], rows.x, 0.0), jnp.where(finite, rows.y, 0.0)
        return weighted_sums(*_features(x, y, frame, intercept, jnp), weights * finite, theta, sigma, gamma, jnp)

    return over_chunks(sums, rows, weights)
