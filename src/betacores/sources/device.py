"""Rows on an accelerator: large blocks, cut out of arrays that stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows
from betacores.sources.base import LARGEST_CELL, Block, Source

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Rows of a block, as many as memory allows: a kernel's start costs as much as a million of them. A row's products in a
# search with many lanes take about so many bytes, and all of them together a small share of the memory.
MOST_ROWS, FEWEST_ROWS, BYTES_A_ROW = 1 << 24, 1 << 18, 4096
WIDE = 1024


def on_accelerator(data: Any) -> bool:
    """Return whether data is an array that an accelerator holds."""
    return isinstance(data, jax.Array) and any(device.platform != "cpu" for device in data.devices())


class DeviceSource(Source):
    """Rows of arrays on an accelerator.

    Parameters
    ----------
    x, y
        Rows as the model takes them, in single precision; ``y`` None if there is no response.
    columns
        Names of the columns.
    given
        The response as it was handed in.
    trust
        How far rows are trusted, if they are not all.
    """

    def __init__(self, x: Array, y: Array | None, columns: list[str], given: Any = None, trust: Any = None):
        self.x, self.y, self.columns, self.given, self.trust = x, y, columns, given, trust
        self.row_count = x.shape[0]
        self.block_rows = min(_block_rows(x), self.row_count)

    def trusting(self, trust: Any) -> DeviceSource:
        """Return the same rows, each counting as much less as it is trusted less."""
        source = DeviceSource(self.x, self.y, self.columns, self.given, trust)
        source.watch, source.journal = self.watch, self.journal
        return source

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """Yield all rows in large blocks, the last one padded."""
        length = self.block_rows
        for start in range(first * length, self.row_count, length):
            count = min(length, self.row_count - start)
            rows, weights, trust = _cut(Rows(self.x, self.y), self.trust, np.int32(start), np.int32(count), length)
            yield Block(rows, weights, trust, start, count)

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers."""
        return Rows(*gathered((self.x, self.y), ids))

    def as_given(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows by their numbers as they were handed in."""
        return gathered((self.x, self.given), ids)

    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their numbers."""
        return np.ones(len(ids), np.float32) if self.trust is None else gathered((self.trust,), ids)[0]

    def keep(self, parts_from: Callable[[int], Iterable[Any]], arguments: tuple) -> Any:
        """Return numbers that come block by block as one array on the accelerator."""
        if self.journal is None:
            return jnp.concatenate([jnp.asarray(part) for part in parts_from(0)])
        return jnp.asarray(self.journal.numbers(arguments, self.row_count, self.block_rows).filled(parts_from).whole())

    def identity(self) -> Any:
        """Return sums that tell the rows from others."""
        given = (self.x, self.y)
        return [None if a is None else [list(a.shape), float(a.sum()), float(jnp.abs(a).sum())] for a in given]


def gathered(arrays: tuple, places: np.ndarray) -> tuple:
    """Return numbers at some places of arrays on an accelerator, on the host; None of None."""
    # Every number of places is a program of its own there; few numbers, few programs.
    padded = np.zeros(max(1024, 1 << (len(places) - 1).bit_length()) if len(places) else 1024, np.int32)
    padded[: len(places)] = places
    return jax.tree.map(lambda array: np.asarray(array)[: len(places)], _gathered(arrays, padded))


@jax.jit
def _gathered(arrays: tuple, places: Array) -> tuple:
    return jax.tree.map(lambda array: array[places], arrays)


def _block_rows(x: Array) -> int:
    """Return the number of rows of a block, a power of two."""
    told = next(iter(x.devices())).memory_stats() or {}
    most = told.get("bytes_limit", MOST_ROWS * BYTES_A_ROW) // BYTES_A_ROW
    return 1 << (int(np.clip(most, FEWEST_ROWS, MOST_ROWS)).bit_length() - 1)


@partial(jax.jit, static_argnames="length")
def _cut(rows: Rows, trust: Any, start: Array, count: Array, length: int) -> tuple[Rows, Array, Any]:
    """Return consecutive rows, of which so many count, and others up to the length that do not."""
    last = rows.x.shape[0] - length
    back = jnp.maximum(start - last, 0)

    def part(array: Any) -> Any:
        # The last block is cut out farther back, and turned so that its own rows come first.
        found = jax.lax.dynamic_slice_in_dim(array, start - back, length)
        return jax.lax.cond(back > 0, lambda a: jnp.roll(a, -back, 0), lambda a: a, found)

    rows, trust = jax.tree.map(part, (rows, trust))
    there = (jnp.arange(length) < count).astype(jnp.float32)
    return rows, there if trust is None else trust * there, trust


@jax.jit
def extremes(x: Float[Array, "n columns"]) -> tuple[Float[Array, " columns"], Float[Array, " columns"]]:
    """Return the smallest and the largest number of each column; NaN where a cell is not finite."""
    rows, columns = x.shape
    # Many rows side by side make one wide row, which an accelerator reads better than many narrow ones.
    whole = rows - rows % WIDE
    wide = x[:whole].reshape(-1, WIDE * columns)
    parts = [x[whole:]] if rows % WIDE else []
    low = jnp.concatenate([wide.min(0).reshape(-1, columns) if whole else x, *parts]).min(0)
    high = jnp.concatenate([wide.max(0).reshape(-1, columns) if whole else x, *parts]).max(0)
    # The smallest of numbers and NaN is either, as compilers please.
    finite = [jnp.isfinite(wide).all(0).reshape(-1, columns) if whole else jnp.isfinite(x), *map(jnp.isfinite, parts)]
    there = jnp.concatenate(finite).all(0)
    return jnp.where(there, low, jnp.nan), jnp.where(there, high, jnp.nan)


@jax.jit
def as_taken(values: Array) -> Array:
    """Return numbers in single precision, none too large for it."""
    return jnp.clip(values, -LARGEST_CELL, LARGEST_CELL).astype(jnp.float32)
