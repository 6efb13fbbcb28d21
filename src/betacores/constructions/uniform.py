"""Uniform subsampling, the baseline: m rows at random, each with weight N/m.

The subsets are nested, the first m rows of one random order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.constructions.path import Path
from betacores.sampling import shuffled_rows

if TYPE_CHECKING:
    from jaxtyping import PRNGKeyArray


def uniform(row_count: int, key: PRNGKeyArray, *, size: int) -> Path:
    """Return the path of uniform subsets of 1..size rows."""
    indices = shuffled_rows(key, row_count, size)
    sizes = np.arange(1, size + 1)
    weights = np.where(np.arange(size) < sizes[:, None], row_count / sizes[:, None], 0.0)
    return Path(indices, weights)
