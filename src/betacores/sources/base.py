"""Where rows come from.

A source answers two questions: `blocks()`, all rows once, in canonical blocks (fixed ranges of global row numbers, in
order), and `take(ids)`, some rows by their global numbers. Whatever is computed over all rows goes through `reduce` or
`collect`, the only places that loop over data: blocks are computed in single precision and added up in double.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.models.base import Rows

if TYPE_CHECKING:
    from jaxtyping import Array, Float

BLOCK_ROWS = 65_536
CHUNK_ROWS = 16_384


class Block(NamedTuple):
    """Consecutive rows, padded to a common length.

    ``weights`` say how much each row counts in sums: 1, less for a row that is trusted less, and 0 for padding.
    ``length`` is the number of rows without the padding.
    """

    rows: Rows
    weights: Any
    length: int


class Source(abc.ABC):
    """Rows of a table, wherever they are."""

    row_count: int
    columns: list[str]

    @abc.abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all rows in canonical blocks."""

    @abc.abstractmethod
    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their global numbers."""

    @abc.abstractmethod
    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their global numbers."""


def reduce(source: Source, function: Callable[[Rows, Array], Any]) -> Any:
    """Return the sum over blocks of `function(rows, weights)`, a pytree of arrays, in double precision."""
    total = None
    for rows, weights, _ in source.blocks():
        part = jax.tree.map(lambda a: np.asarray(a, np.float64), function(rows, weights))
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


def collect(source: Source, function: Callable[[Rows], Float[Array, " n"]]) -> Float[np.ndarray, " rows"]:
    """Return `function(rows)`, one number a row, for all rows in order."""
    return np.concatenate([np.asarray(function(rows))[:length] for rows, _, length in source.blocks()])


def by_chunks(function: Callable[[Array], Array], values: Float[Array, "n columns"]) -> Float[Array, " n"]:
    """Return `function(values)`, one number a row, computed in pieces that fit a processor's cache."""
    count = values.shape[0]
    if count <= CHUNK_ROWS or count % CHUNK_ROWS:
        return function(values)
    return jax.lax.map(function, values.reshape(count // CHUNK_ROWS, CHUNK_ROWS, -1)).reshape(count)


def over_chunks(function: Callable[[Rows, Array], Any], rows: Rows, weights: Array) -> Any:
    """Return `function(rows, weights)`, a sum over rows, of a block cut into pieces that fit a processor's cache."""
    count = weights.shape[0]
    if count <= CHUNK_ROWS or count % CHUNK_ROWS:
        return function(rows, weights)
    pieces = jax.tree.map(lambda a: a.reshape(count // CHUNK_ROWS, CHUNK_ROWS, *a.shape[1:]), (rows, weights))
    return jax.tree.map(lambda a: a.sum(0), jax.lax.map(lambda piece: function(*piece), pieces))
