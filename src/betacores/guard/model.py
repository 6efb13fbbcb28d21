"""Trust in the covariates: how likely a row's `x` is to belong with the rest, whatever its label says.

A likelihood of `y | x` cannot see that `x` itself is absurd. The guard models `x` as a mixture: with probability
`1 - ε` a row is sound and belongs to one of a few groups; otherwise each cell was hit with probability `π_j`. The trust
of a row is the probability that it is sound,

    h = (1-ε) S / ((1-ε) S + ε D),    S = Σ_k p_k ∏_j f_kj(w_j),    D = ∏_j [(1-π_j) f_j(w_j) + π_j g_j(w_j)],

about 1 anywhere in the bulk, falling to 0 as soon as the cells together are better explained by damage. `w` is the row
after robust scaling of either side of each column, `2 arcsinh(z/2)` against far cells, and whitening. `f_kj` is a
Student-t with the group's place and scale and the column's degrees of freedom, `f_j` that of the column as a whole,
`g_j` a wide one. A column of few levels enters by how far a cell is from being a level: a rare level costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

if TYPE_CHECKING:
    from jaxtyping import Array, Float

LARGEST = 1e12  # cells are clipped here, so that float32 squares stay finite
OFF_LEVEL = 12.0  # distance given to a cell that is no level at all
BAD_TAIL = 8.0  # degrees of freedom of damaged cells
NO_GROUP = -100.0  # log-share of a group that is not there
OF_COLUMNS = (
    "center", "scale_below", "scale_above", "discrete", "low", "high", "span", "step", "tolerance", "tail",
    "overall_mean", "overall_spread", "hit", "bad_spread",
)  # fmt: skip


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
    down = columns_down(guard)
    w = guard.mix.T @ coordinates(down, jnp.asarray(x, jnp.float32).T, jnp)
    w = jax.lax.cond(guard.row_scale > 1, lambda: _rescaled(down, w, _across), lambda: w)
    bad = log_damaged(down, w, jnp)[0].sum(axis=0)
    return jax.nn.sigmoid(_sound(guard, w) - bad - guard.log_odds)


def columns_down(guard: Guard) -> Guard:
    """Return the guard for tables with columns down: cells of one lie side by side, which is twice as fast."""
    return guard._replace(**{name: getattr(guard, name)[:, None] for name in OF_COLUMNS})


def _sound(guard: Guard, w: Float[Array, "columns n"]) -> Float[Array, " n"]:
    """Return each row's log-density if it is sound; columns down."""

    def one(total: Array, group: tuple[Array, Array, Array]) -> Array:
        share, mean, spread = group
        scaled = (w - mean[:, None]) * (1 / (spread * jnp.sqrt(guard.tail)))[:, None]
        density = share - jnp.log(spread).sum() - ((guard.tail + 1) / 2) @ jnp.log(1 + jnp.square(scaled))
        return jnp.logaddexp(total, density)

    def with_next(total: Array, group: tuple[Array, Array, Array]) -> tuple[Array, None]:
        return jax.lax.cond(group[0] > NO_GROUP, one, lambda total, _: total, total, group), None

    # One group at a time keeps the cells in the cache, and groups that are not there cost nothing.
    nothing = jnp.full(w.shape[1], -jnp.inf, w.dtype)
    return jax.lax.scan(with_next, nothing, (guard.share, guard.mean, guard.spread))[0]


def whitened(guard: Guard, coordinates: Any) -> Any:
    """Return rows in the coordinates the mixture is stated in, divided by the rows' own scale if they have one."""
    whitened = coordinates @ guard.mix
    return _rescaled(guard, whitened, _along) if guard.row_scale > 1 else whitened


def _rescaled(guard: Guard, whitened: Any, total: Callable[[Any], Any]) -> Any:
    """Return the rows divided by their own scale, within what is believed of it; `total` adds up over columns."""
    xp = jnp if isinstance(whitened, jax.Array) else np
    smooth = 1 - guard.discrete
    away = whitened - guard.overall_mean
    square = total(xp.square(away / guard.overall_spread) * smooth)
    scale = xp.clip(xp.sqrt((guard.row_tail + square) / (guard.row_tail + smooth.sum())), 1.0, guard.row_scale)
    return guard.overall_mean + away / xp.where(smooth > 0, scale, 1.0)


def _along(cells: Any) -> Any:
    return cells.sum(axis=1, keepdims=True)


def _across(cells: Any) -> Any:
    return cells.sum(axis=0, keepdims=True)


def coordinates(guard: Guard, x: Any, xp: Any) -> Any:
    """Return cells in comparable units: signed distance from the centre, or from the nearest level."""
    # What is no number is smaller than none.
    x = xp.maximum(xp.where(x < LARGEST, x, LARGEST), -LARGEST)
    away = x - guard.center
    # Products are cheaper than divisions, and one of the two is negative.
    size = xp.maximum(away * (0.5 / guard.scale_above), away * (-0.5 / guard.scale_below))
    near = 2 * xp.copysign(_arcsinh(size, xp), away)
    if xp is np:
        return _from_levels(guard, x, near, np) if (guard.discrete > 0).any() else near
    # Most tables have no column of few levels, and a logarithm a cell is what costs.
    return jax.lax.cond((guard.discrete > 0).any(), lambda: _from_levels(guard, x, near, jnp), lambda: near)


def _from_levels(guard: Guard, x: Any, near: Any, xp: Any) -> Any:
    """Return cells of columns of few levels by their distance from them, and the others as they are."""
    steps = (x - guard.low) * (1 / guard.step)
    between = xp.abs(steps - xp.round(steps)) > guard.tolerance
    outside = xp.maximum(guard.low - x, x - guard.high)
    beyond = 4 * _arcsinh(xp.maximum(outside, 0) * (1 / guard.span), xp)
    return xp.where(guard.discrete > 0, xp.where(between, xp.maximum(beyond, OFF_LEVEL), beyond), near)


def _arcsinh(size: Any, xp: Any) -> Any:
    """Return arcsinh of positive numbers; XLA's own is many times slower on a CPU."""
    size = xp.minimum(size, 1e18)  # its square is still finite in float32
    return xp.log(size + xp.sqrt(1 + xp.square(size)))


def log_student(w: Any, mean: Any, spread: Any, tail: Any, xp: Any) -> Any:
    """Return cells' Student-t log-densities, less the constant that all components of a column share."""
    return -xp.log(spread) - (tail + 1) / 2 * xp.log(1 + xp.square((w - mean) * (1 / (spread * xp.sqrt(tail)))))


def log_sound(guard: Guard, w: Float[np.ndarray, "columns n"]) -> Float[np.ndarray, "groups n"]:
    """Return each row's log-density within each group of sound rows, shares included, groups first; columns down."""

    def one(share: float, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
        scaled = (w - mean[:, None]) * (1 / (spread * np.sqrt(guard.tail)))[:, None]
        return share - np.log(spread).sum() - ((guard.tail + 1) / 2) @ np.log(1 + np.square(scaled))

    groups = zip(guard.share, guard.mean, guard.spread, strict=True)
    return np.stack([one(*g) if g[0] > NO_GROUP else np.full(w.shape[1], -np.inf, w.dtype) for g in groups])


def log_damaged(guard: Guard, w: Any, xp: Any) -> tuple[Any, Any]:
    """Return each cell's log-density in a damaged row, and the log-density it would have there if not hit."""
    spared = log_student(w, guard.overall_mean, guard.overall_spread, guard.tail, xp)
    # The two kinds of Student-t have different heights; both are stated relative to the sound one's.
    higher = height(BAD_TAIL, np) - height(guard.tail, xp)
    struck = higher + log_student(w, guard.overall_mean, guard.bad_spread, BAD_TAIL, xp)
    # Relative to the wider density: the other way round the ratio overflows.
    return struck + xp.log(guard.hit + (1 - guard.hit) * xp.exp(spared - struck)), spared


def height(tail: Any, xp: Any) -> Any:
    """Return the log-density of a standard Student-t at its centre."""
    gammaln = special.gammaln if xp is np else jax.scipy.special.gammaln
    return gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * xp.log(np.pi * tail)


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
    cells, spared = log_damaged(guard, whitened(guard, coordinates(guard, x, np)), np)
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
