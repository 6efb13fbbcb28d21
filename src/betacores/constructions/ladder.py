"""Sizes for constructions that optimise every size on its own.

One optimisation for each of 1..M would cost M times the largest, and neighbouring sizes differ little: the ladder is M,
M/2, M/4, ... down to 1, or the sizes one asks for. Between two rungs the path repeats the lower one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Int


def ladder(size: int, sizes: Iterable[int] | None = None) -> tuple[int, ...]:
    """Return the sizes to optimise for, in order; the last is `size`."""
    if sizes is not None:
        return tuple(sorted({int(m) for m in sizes if m < size} | {size}))
    rungs = {size}
    while min(rungs) > 1:
        rungs.add(min(rungs) // 2)
    return tuple(sorted(rungs))


def rung_of_every_size(rungs: tuple[int, ...], size: int) -> Int[np.ndarray, " size"]:
    """Return for 1..size the place of the largest rung that is no larger; -1 where there is none."""
    return np.searchsorted(np.asarray(rungs), np.arange(1, size + 1), side="right") - 1
