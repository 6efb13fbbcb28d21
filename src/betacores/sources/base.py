"""Where rows come from, and the one loop over them.

A source answers two questions: `blocks()`, all rows once, in canonical blocks (fixed ranges of global row numbers, in
order), and `take(ids)`, some rows by their global numbers. Whatever is computed over all rows is a `fold`: work on one
block after the other, and what it gives put together. `reduce`, `collect` and `chosen` (in `choice`) are folds, so that
memory, files and clusters are one path. Blocks are computed in single precision and added up in double.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.models.base import Rows
from betacores.sources.crew import side_by_side

if TYPE_CHECKING:
    from jaxtyping import Array, Float

    from betacores.sources.journal import Journal
    from betacores.sources.watch import Watch

BLOCK_ROWS = 65_536
CHUNK_ROWS, DEVICE_CHUNK_ROWS = 16_384, 4096
# Single precision has no use for larger cells: their squares must still fit, with room for sums.
LARGEST_CELL = 1e12


class Block(NamedTuple):
    """Consecutive rows, padded to a common length.

    ``weights`` say how much each row counts in sums: how many rows it stands for, times the trust in it, and 0 for
    padding. ``trust`` is the second factor, None if every row is trusted. ``start`` is the number of the first row, and
    ``length`` the number of rows without the padding.
    """

    rows: Rows
    weights: Any
    trust: Any
    start: int
    length: int


class Source(abc.ABC):
    """Rows of a table, wherever they are."""

    row_count: int
    columns: list[str]
    block_rows: int = BLOCK_ROWS
    # Who is told of passes, and where they are noted down, if anybody wants to know.
    watch: Watch | None = None
    journal: Journal | None = None

    @property
    def block_count(self) -> int:
        """Number of canonical blocks."""
        return -(-self.row_count // self.block_rows)

    @abc.abstractmethod
    def blocks(self, first: int = 0) -> Iterator[Block]:
        """Yield all rows in canonical blocks, from the first one asked for."""

    @abc.abstractmethod
    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their global numbers."""

    @abc.abstractmethod
    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their global numbers."""

    @abc.abstractmethod
    def trusting(self, trust: Any) -> Source:
        """Return the same rows, each counting as much less as it is trusted less; `trust` is what `collect` gave."""

    @abc.abstractmethod
    def keep(self, parts_from: Callable[[int], Iterable[np.ndarray]], arguments: tuple) -> Any:
        """Return numbers, one a row, in a form that `trusting` takes.

        Parameters
        ----------
        parts_from
            Yields the numbers block by block, from the block asked for.
        arguments
            What decides them.
        """

    def as_array(self, numbers: Any) -> Any:
        """Return what `keep` made as an array, or as something like one; None for None."""
        return numbers

    @abc.abstractmethod
    def identity(self) -> Any:
        """Return what tells the rows from others, as JSON can hold it."""

    def each(
        self,
        work: Callable[..., Any],
        arguments: tuple,
        combine: Callable[[Any, Any], Any],
        settled: Callable[[Any], Any],
        first: int = 0,
    ) -> Iterator[tuple[int, Any]]:
        """Yield the number of blocks done, from the first one asked for, and what the work on the last of them gave.

        A source that does several blocks at once settles what they give and puts it together.
        """
        del combine, settled
        return side_by_side(work, self.blocks(first), arguments, first)


def fold(
    source: Source,
    work: Callable[..., Any],
    arguments: tuple,
    combine: Callable[[Any, Any], Any],
    settled: Callable[[Any], Any],
) -> Any:
    """Return what the work on all blocks gives, put together.

    Parameters
    ----------
    source
        The rows.
    work, arguments
        `work(block, *arguments)` is done on every block. It is a function of a module, so that another process can
        find it by its name.
    combine
        Puts two results together, of blocks in order; associative.
    settled
        Makes of a result, which may still be on its way from a device, tuples of NumPy arrays.
    """
    journal, watch = source.journal, source.watch
    state, done = (None, 0) if journal is None else journal.resumed(arguments)
    if watch is not None:
        watch.begins(source.row_count)
    if done < source.block_count:
        for until, result in source.each(work, arguments, combine, settled, done):
            part = settled(result)
            state = part if state is None else combine(state, part)
            if journal is not None:
                journal.note(state, until, source.block_count)
            if watch is not None:
                watch.saw(min(until * source.block_rows, source.row_count))
    if watch is not None:
        watch.ends()
    return state


def reduce(source: Source, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the sum over blocks of `function(rows, weights, *arguments)`, an array or several, in double precision."""
    return fold(source, on_block, (function, *arguments), added, in_double)


def on_block(block: Block, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function of rows and weights gives."""
    return function(block.rows, block.weights, *arguments)


def added(one: Any, other: Any) -> Any:
    """Return the sum of two arrays, or of two tuples of them."""
    if isinstance(one, tuple):
        return tuple(a + b for a, b in zip(one, other, strict=True))
    return one + other


def in_double(result: Any) -> Any:
    """Return an array, or a tuple of arrays, in double precision."""
    if isinstance(result, tuple):
        return tuple(np.asarray(part, np.float64) for part in result)
    return np.asarray(result, np.float64)


def collect(source: Source, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return `function(rows, *arguments)`, one number a row, for all rows in order.

    An array for rows that are in memory; in any case what `Source.keep` makes of it.
    """
    watch, given = source.watch, (function, *arguments)

    def parts_from(first: int) -> Iterator[np.ndarray]:
        for done, part in source.each(_numbers, given, _joined, np.asarray, first):
            yield part
            if watch is not None:
                watch.saw(min(done * source.block_rows, source.row_count))

    if watch is not None:
        watch.begins(source.row_count)
    kept = source.keep(parts_from, given)
    if watch is not None:
        watch.ends()
    return kept


def _numbers(block: Block, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(block.rows, *arguments)[: block.length]


def _joined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.concatenate([one, other])


def by_chunks(
    function: Callable[[Array], Array], values: Float[Array, "n columns"], most: int = CHUNK_ROWS
) -> Float[Array, " n"]:
    """Return `function(values)`, one number a row, computed in pieces that fit a processor's cache."""
    count = values.shape[0]
    if jax.default_backend() != "cpu" or count <= most or count % most:
        return function(values)
    return jax.lax.map(function, values.reshape(count // most, most, -1)).reshape(count)


def over_chunks(function: Callable[[Rows, Array], Any], rows: Rows, weights: Array, most: int = CHUNK_ROWS) -> Any:
    """Return `function(rows, weights)`, a sum over rows, of a block cut into pieces.

    One after the other, of a length that fits a processor's cache; all at once on an accelerator, where one product
    over all rows would be done by a single one of its many cores.
    """
    on_processor = jax.default_backend() == "cpu"
    count, piece = weights.shape[0], most if on_processor else DEVICE_CHUNK_ROWS
    if count <= piece or count % piece:
        return function(rows, weights)
    pieces = jax.tree.map(lambda a: a.reshape(count // piece, piece, *a.shape[1:]), (rows, weights))
    many = jax.lax.map(lambda part: function(*part), pieces) if on_processor else jax.vmap(function)(*pieces)
    return jax.tree.map(lambda a: a.sum(0), many)
