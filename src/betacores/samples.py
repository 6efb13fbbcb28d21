"""Uniform samples of rows, one within the other: a small one to search in, a larger one for the last steps of a mode.

The mode over M of N rows is about `√(N/M)` posterior standard deviations away from the mode over all of them, and one
Newton step over all rows leaves about `√N / M` of a standard deviation. So few rows are needed, and one pass over all
is enough, if the mode that it starts from is that of a few times `√N` rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

from betacores.posteriors.laplace import TOLERANCE
from betacores.sampling import sample_rows

if TYPE_CHECKING:
    from jaxtyping import Int, PRNGKeyArray

SAMPLE_ROWS, HARDLY_MORE = 20_000, 1.25
# The larger sample has so many times √N rows, as far as memory is well spent on its cells.
TIMES_ROOT, MOST_CELLS = 64, 1 << 25


def large_sample(key: PRNGKeyArray, rows: int, columns: int) -> Int[np.ndarray, " n"]:
    """Return the numbers of the larger sample's rows, in order; all of them for short tables."""
    wanted = min(int(TIMES_ROOT * rows**0.5), MOST_CELLS // max(1, columns))
    return sample_rows(key, rows, max(SAMPLE_ROWS, wanted))


def small_sample(key: PRNGKeyArray, large: int) -> Int[np.ndarray, " n"]:
    """Return places in the larger sample, of so many rows, that make the small one, in order."""
    # Two samples that are nearly the same would only be twice the work.
    wanted = large if large <= HARDLY_MORE * SAMPLE_ROWS else SAMPLE_ROWS
    return sample_rows(jax.random.fold_in(key, 1), large, wanted)


def enough_for_one_step(rows: int, sampled: int) -> bool:
    """Return whether one Newton step over all rows leads from the mode over a sample to that over all of them."""
    return sampled >= 0.99 * TIMES_ROOT * rows**0.5


def last_step_tolerance(rows: int) -> float:
    """Return the squared Newton decrement from which a step over all rows is the last.

    A step from `δ` posterior standard deviations away leaves about `c δ² / √N`, with `c` a few units. For short tables,
    where a pass costs nothing, as strict as anywhere; for long ones a thousandth of a standard deviation is left for
    `c` as large as ten.
    """
    return TOLERANCE if rows <= SAMPLE_ROWS else 1e-4 * rows**0.5
