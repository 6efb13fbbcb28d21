"""Rows held in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows
from betacores.sources.base import BLOCK_ROWS, Block, Source

if TYPE_CHECKING:
    from jaxtyping import Float

# Tables of fewer rows get programs of their own length; longer ones share them.
SHARED_FROM = 1024
# A table of one block and no more cells is padded once for all passes: a search for modes makes dozens of them.
MOST_HELD_CELLS = 1 << 22


class ArraySource(Source):
    """Rows of a float32 array, with a response or without.

    ``weights`` may make rows count less in all sums, or not at all, without changing any shape; ``trust`` does so too,
    and is known apart from them.
    """

    def __init__(
        self,
        x: np.ndarray,
        y: np.ndarray | None = None,
        columns: list[str] | None = None,
        weights: np.ndarray | None = None,
        trust: np.ndarray | None = None,
    ):
        self.x = x
        self.y = y
        base = np.ones(len(x), np.float32) if weights is None else np.asarray(weights, np.float32)
        self.base, self.trust = base, trust
        self.weights = base if trust is None else base * trust
        self.row_count = x.shape[0]
        self.columns = columns or [f"x{i}" for i in range(x.shape[1])]
        self.block_rows = min(BLOCK_ROWS, padded_length(self.row_count))

    def weighted(self, weights: np.ndarray) -> ArraySource:
        """Return the same rows with other weights."""
        return self._derived(weights, self.trust if self.trust is None else np.ones_like(self.trust))

    def counting(self, share: np.ndarray) -> ArraySource:
        """Return the same rows, each counting for a share of what it did, and trusted as before."""
        return self._derived(self.base * np.asarray(share, np.float32), self.trust)

    def trusting(self, trust: Any) -> ArraySource:
        """Return the same rows, each counting as much less as it is trusted less."""
        return self._derived(self.base, np.asarray(trust, np.float32))

    def _derived(self, weights: np.ndarray, trust: np.ndarray | None) -> ArraySource:
        source = ArraySource(self.x, self.y, self.columns, weights, trust)
        source.watch, source.journal = self.watch, self.journal
        return source

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """Yield all rows in canonical blocks, the last one padded."""
        if self.block_count == 1 and (self.x.size <= MOST_HELD_CELLS or jax.default_backend() != "cpu"):
            yield from [self._only_block][first:]
        else:
            yield from self._cut(first)

    @cached_property
    def _only_block(self) -> Block:
        """The one block of a short table, padded and handed to the device once and not at every pass."""
        (block,) = self._cut(0)
        return block._replace(**dict(zip(("rows", "weights", "trust"), jax.device_put(block[:3]), strict=True)))

    def _cut(self, first: int) -> Iterator[Block]:
        length = self.block_rows
        for start in range(first * length, self.row_count, length):
            part = slice(start, min(start + length, self.row_count))
            y, trust = (None if a is None else a[part] for a in (self.y, self.trust))
            yield padded_block(Rows(self.x[part], y), self.weights[part], trust, start, length)

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers."""
        return Rows(self.x[ids], None if self.y is None else self.y[ids])

    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their numbers."""
        return self.weights[ids]

    def identity(self) -> Any:
        """Return sums of all bytes, which tell rows from others."""
        given = (self.x, self.y, self.base)
        return [None if a is None else [list(a.shape), zlib.crc32(np.ascontiguousarray(a).data)] for a in given]

    def keep(self, parts_from: Callable[[int], Iterable[np.ndarray]], arguments: tuple) -> Float[np.ndarray, " rows"]:
        """Return numbers that come block by block as one array."""
        if self.journal is None:
            return np.concatenate([np.asarray(part, np.float32) for part in parts_from(0)])
        return self.journal.numbers(arguments, self.row_count, self.block_rows).filled(parts_from).whole()

    @cached_property
    def on_device(self) -> Rows:
        """All rows as device arrays, for the constructions that draw minibatches at every step."""
        return Rows(jnp.asarray(self.x), None if self.y is None else jnp.asarray(self.y))


def padded_block(rows: Rows, weights: np.ndarray, trust: np.ndarray | None, start: int, length: int) -> Block:
    """Return a block of consecutive rows, padded to the common length by copies of its last row that count nothing."""
    count = len(weights)
    missing = length - count
    if missing:
        x, y = rows
        rows = Rows(
            np.pad(x, ((0, missing), (0, 0)), mode="edge"), None if y is None else np.pad(y, (0, missing), mode="edge")
        )
        weights = np.pad(weights, (0, missing))
        trust = None if trust is None else np.pad(trust, (0, missing))
    return Block(rows, weights, trust, start, count)


def padded_length(count: int) -> int:
    """Return a length not less, and at most an eighth more: every length of its own would be its own compilation."""
    if count <= SHARED_FROM:
        return count
    step = 1 << (count.bit_length() - 4)
    return -(-count // step) * step
