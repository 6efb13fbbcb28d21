"""The smallest and the largest cell of every column, block by block: exactly where single precision tells too little.

Blocks are put together in single precision, in which a column whose cells differ by less has one value. As long as that
is all that is known of a column its cells are looked at exactly, and no longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.sources.reader import Cut, exactly

if TYPE_CHECKING:
    from jaxtyping import Float

# Rows that are looked at side by side: they are short, and NumPy goes along them one at a time.
TOGETHER = 64


class Extremes:
    """What is known of the columns of the blocks so far.

    Parameters
    ----------
    columns
        Their number.
    """

    def __init__(self, columns: int):
        self._single = np.full(columns, np.inf, np.float32), np.full(columns, -np.inf, np.float32)
        self._exact = np.full(columns, np.inf), np.full(columns, -np.inf)

    def add(
        self,
        low: Float[np.ndarray, " columns"],
        high: Float[np.ndarray, " columns"],
        block: Cut,
    ) -> None:
        """Add a block by its extremes in single precision; its cells are there to be looked at."""
        self._single = np.minimum(self._single[0], low), np.maximum(self._single[1], high)
        doubtful = np.flatnonzero(self._single[0] == self._single[1])
        if doubtful.size:
            cells = exactly(block).x[:, doubtful]
            for known, here, better in zip(self._exact, extremes_of(cells), (np.minimum, np.maximum), strict=True):
                known[doubtful] = better(known[doubtful], here)

    @property
    def low(self) -> Float[np.ndarray, " columns"]:
        """The smallest cells: below the largest exactly in columns that are not constant."""
        return self._known(0)

    @property
    def high(self) -> Float[np.ndarray, " columns"]:
        """The largest cells."""
        return self._known(1)

    def _known(self, side: int) -> Float[np.ndarray, " columns"]:
        doubtful = self._single[0] == self._single[1]
        return np.where(doubtful, self._exact[side], self._single[side])


def extremes_of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns' smallest and largest cells."""
    rows, columns = x.shape
    if rows % TOGETHER:
        return x.min(0), x.max(0)
    wide = x.reshape(-1, TOGETHER * columns)
    return wide.min(0).reshape(-1, columns).min(0), wide.max(0).reshape(-1, columns).max(0)
