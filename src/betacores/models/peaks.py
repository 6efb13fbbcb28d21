"""Where a density of one variable has its mass: looked for without knowing anything about it.

A coarse grid of both signs, growing by factors, finds the neighbourhood of the peak; the grid between the two
neighbours of the best point is refined again and again. The width is read off the distance at which the log-density
has fallen by a half. Densities of one peak are found in any place and of any width that single precision can tell from
zero: the peak of one in ten thousand times its own width from zero, or in a ten-thousandth of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Array, Float

_SIZES = 4.0 ** np.arange(-10, 21)
_REAL_GRID = np.concatenate([-_SIZES[::-1], [0.0], _SIZES]).astype(np.float32)
_COUNT_GRID = np.concatenate([[0.0], 2.0 ** np.arange(0, 25)]).astype(np.float32)
_DISTANCES = (4.0 ** np.arange(-20, 21)).astype(np.float32)
_COUNT_DISTANCES = (2.0 ** np.arange(0, 25)).astype(np.float32)
# The peak of counts is wider the larger they are, by the root at least.
ROUNDS, COUNT_ROUNDS, PIECES = 9, 5, 8
# What is so far below the peak is nothing in single precision: exp(-18) = 1.5e-8.
NOTHING = 18.0

LogDensity = Callable[["Array"], "Array"]


def real_peak(log_density: LogDensity) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the mode of a density on the line and the standard deviation of the Gaussian as sharp as it is."""
    every = _vectorised(log_density)
    mode = _refined(every, jnp.asarray(_REAL_GRID), whole=False)
    top = every(mode[None])[0]
    away = jnp.asarray(_DISTANCES)
    widths = jnp.stack([_half_width(top - every(mode + side * away), away) for side in (-1.0, 1.0)])
    return mode, jnp.exp(jnp.log(widths).mean())


def count_window(log_mass: LogDensity, upper: Float[Array, ""]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the first and the last of the whole numbers that have all the mass but nothing."""
    every = _vectorised(log_mass)
    grid = jnp.minimum(jnp.asarray(_COUNT_GRID), upper)
    mode = _refined(every, grid, whole=True)
    top = every(mode[None])[0]
    away = jnp.asarray(_COUNT_DISTANCES)
    left, right = jnp.maximum(mode - away, 0.0), jnp.minimum(mode + away, upper)
    low = left[jnp.argmax((top - every(left) > NOTHING) | (left == 0))]
    high = right[_first(top - every(right) > NOTHING)]
    return low, high


def _vectorised(log_density: LogDensity) -> LogDensity:
    each = jax.vmap(log_density)

    def every(at: Array) -> Array:
        found = each(at)
        # What is no number has no mass; and infinities cannot be told apart.
        return jnp.where(jnp.isnan(found), -jnp.inf, found).clip(-1e37, 1e37)

    return every


def _refined(every: LogDensity, grid: Array, whole: bool) -> Array:
    def around(points: Array) -> tuple[Array, Array, Array]:
        best = jnp.argmax(every(points))
        return points[jnp.maximum(best - 1, 0)], points[best], points[jnp.minimum(best + 1, len(points) - 1)]

    def narrower(_: int, bracket: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        inside = jnp.linspace(bracket[0], bracket[2], PIECES + 1)
        return around(jnp.round(inside) if whole else inside)

    return jax.lax.fori_loop(0, COUNT_ROUNDS if whole else ROUNDS, narrower, around(grid))[1]


def _half_width(drop: Array, away: Array) -> Array:
    at = _first(drop >= 0.5)
    # Exact for a parabola however coarse the distances are.
    return away[at] * jnp.sqrt(0.5 / jnp.clip(drop[at], 1e-3, 1e3))


def _first(reached: Array) -> Array:
    return jnp.where(reached.any(), jnp.argmax(reached), len(reached) - 1)
