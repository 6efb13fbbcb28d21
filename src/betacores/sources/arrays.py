"""Rows held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows
from betacores.sources.base import BLOCK_ROWS, Block, Source

if TYPE_CHECKING:
    from jaxtyping import Float

# Tables of fewer rows get programs of their own length; longer ones share them.
SHARED_FROM = 1024


class ArraySource(Source):
    """Rows of a float32 array, with a response or without.

    ``weights`` may make rows count less in all sums, or not at all, without changing any shape.
    """

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray | None = None,
        columns: list[str] | None = None,
        weights: np.ndarray | None = None,
    ):
        self.x = x
        self.y = y
        self.weights = np.ones(len(x), np.float32) if weights is None else np.asarray(weights, np.float32)
        self.row_count = x.shape[0]
        self.columns = columns or [f"x{i}" for i in range(x.shape[1])]

    def weighted(self, weights: np.ndarray) -> ArraySource:
        """Return the same rows with other weights."""
        return ArraySource(self.x, self.y, self.columns, weights)

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in canonical blocks, the last one padded."""
        length = min(BLOCK_ROWS, padded_length(self.row_count))
        for start in range(0, self.row_count, length):
            part = slice(start, min(start + length, self.row_count))
            count = part.stop - start
            x, weights = self.x[part], self.weights[part]
            y = None if self.y is None else self.y[part]
            if count < length:
                missing = length - count
                x, weights = np.pad(x, ((0, missing), (0, 0)), mode="edge"), np.pad(weights, (0, missing))
                y = None if y is None else np.pad(y, (0, missing), mode="edge")
            yield Block(Rows(x, y), weights, count)

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers."""
        return Rows(self.x[ids], None if self.y is None else self.y[ids])

    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their numbers."""
        return self.weights[ids]

    @cached_property
    def on_device(self) -> Rows:
        """All rows as device arrays, for the constructions that draw minibatches at every step."""
        return Rows(jnp.asarray(self.x), None if self.y is None else jnp.asarray(self.y))


def padded_length(count: int) -> int:
    """Return a length not less, and at most an eighth more: every length of its own would be its own compilation."""
    if count <= SHARED_FROM:
        return count
    step = 1 << (count.bit_length() - 4)
    return -(-count // step) * step
