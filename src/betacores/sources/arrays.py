"""Rows held in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows
from betacores.sources.base import BLOCK_ROWS, Block, Source


class ArraySource(Source):
    """Rows of a float32 array, with a response or without.

    ``present`` may leave rows out of all sums, by a zero, without changing any shape.
    """

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray | None = None,
        columns: list[str] | None = None,
        present: np.ndarray | None = None,
    ):
        self.x = x
        self.y = y
        self.present = np.ones(len(x), np.float32) if present is None else np.asarray(present, np.float32)
        self.row_count = x.shape[0]
        self.columns = columns or [f"x{i}" for i in range(x.shape[1])]

    def blocks(self) -> Iterator[Block]:
        """Yield all rows in canonical blocks; the last is padded unless it is the only one."""
        length = min(BLOCK_ROWS, self.row_count)
        for start in range(0, self.row_count, length):
            rows = self.take(np.arange(start, min(start + length, self.row_count)))
            missing = length - rows.x.shape[0]
            present = np.pad(self.present[start : start + length], (0, missing))
            x = np.pad(rows.x, ((0, missing), (0, 0)), mode="edge")
            y = None if rows.y is None else np.pad(rows.y, (0, missing), mode="edge")
            yield Block(Rows(x, y), present)

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers."""
        return Rows(self.x[ids], None if self.y is None else self.y[ids])

    @cached_property
    def on_device(self) -> Rows:
        """All rows as device arrays, for the constructions that draw minibatches at every step."""
        return Rows(jnp.asarray(self.x), None if self.y is None else jnp.asarray(self.y))
