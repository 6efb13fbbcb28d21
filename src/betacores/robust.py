"""Statistics that a few wild cells do not move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


def robust_location_scale(
    x: Float[np.ndarray, "rows columns"],
) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]:
    """Return each column's median and robust scale.

    The scale is 1.4826 times the median absolute deviation. Where more than half of the cells are equal that is zero,
    and 1.2533 times the mean absolute deviation from the median takes its place; constant columns get scale 1. Both
    factors make it the standard deviation of normal cells.
    """
    x = np.asarray(x, np.float64)
    centre = np.median(x, 0)
    away = np.abs(x - centre)
    scale = 1.4826 * np.median(away, 0)
    scale = np.where(scale > 0, scale, 1.2533 * away.mean(0))
    return centre, np.where(scale > 0, scale, 1.0)
