"""Tables that memory does not hold, read in canonical blocks: what every kind of file has in common."""

from __future__ import annotations

import abc
import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from betacores.sources.base import BLOCK_ROWS

if TYPE_CHECKING:
    from jaxtyping import Float

T = TypeVar("T")

# Blocks read before they are asked for, and seconds after which a silent disk is given up.
AHEAD, PATIENCE = 2, 600.0
ALIGNMENT = 64  # bytes
REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Raw(NamedTuple):
    """Consecutive rows as the file has them: numbers, and the response, an array if it is of numbers too."""

    x: Float[np.ndarray, "n columns"]
    y: Any
    start: int


class Cut(NamedTuple):
    """Consecutive rows that have been read and not yet put together, which the last two do, in whatever thread.

    ``made`` does it in single precision, cells too large for it infinite; ``exact`` in double, if somebody may ask.
    """

    start: int
    rows: int
    made: Callable[[], Any]
    exact: Callable[[], Raw] | None = None


def exactly(cut: Cut) -> Raw:
    """Return rows in double precision."""
    assert cut.exact is not None
    return cut.exact()


class Reader(abc.ABC):
    """A table on disk.

    Attributes
    ----------
    row_count, columns
        Number of rows, and names of the covariates.
    response
        Whether the response is of ``"numbers"`` or ``"words"``; None if there is none.
    decodes
        Whether it takes longer to make rows of what is in the file than to read them as they are computed with.
    remedy
        What can be done about rows that are not as they should be.
    """

    row_count: int
    columns: list[str]
    response: str | None = None
    decodes: bool = False
    remedy: str

    @abc.abstractmethod
    def cuts(self, first: int = 0) -> Iterator[Cut]:
        """Yield all rows in canonical blocks, from the first one asked for, to be put together by who takes them."""

    @abc.abstractmethod
    def where(self, row: int, *, response: bool = False) -> str:
        """Say which file a row is in, or its response, and which of its rows it is."""

    @abc.abstractmethod
    def identity(self) -> Any:
        """Return what tells the table from another, as JSON can hold it, without reading its rows."""

    @abc.abstractmethod
    def check_unchanged(self) -> None:
        """Complain if a file is gone or is not what it was."""

    @abc.abstractmethod
    def table(self) -> Any:
        """Return everything that was asked for, in memory: a table, or an array and its responses."""

    @abc.abstractmethod
    def cuts_of(self, held: Any) -> Iterator[Cut]:
        """Yield what `table` gave in canonical blocks."""

    def rows(self, ids: np.ndarray) -> Raw:
        """Return some rows by their numbers, in double precision; in the order of the table."""
        ids = np.unique(ids)
        found = []
        for cut in ahead(self.cuts(int(ids[0]) // BLOCK_ROWS if len(ids) else 0)):
            raw = exactly(cut)
            here = ids[(ids >= raw.start) & (ids < raw.start + len(raw.x))] - raw.start
            found.append((raw.x[here], None if raw.y is None else as_numpy(raw.y.take(here))))
            if raw.start + len(raw.x) > ids[-1]:
                break
        y = None if found[0][1] is None else np.concatenate([part[1] for part in found])
        return Raw(np.concatenate([part[0] for part in found]), y, -1)


def stamp_of(path: str) -> list[int]:
    """Return what a file that is written again does not keep: its size and its time."""
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]


def check_local(name: str, path: str) -> None:
    """Complain of the address of a file elsewhere."""
    if REMOTE.match(path):
        raise ValueError(
            f"{name}: only local paths are read here, got {path!r}; fetch the files before, or pass a Dask collection, "
            "such as dask.dataframe.read_parquet makes of an address."
        )


def as_numpy(column: Any) -> np.ndarray:
    """Return a column as an array."""
    return column if isinstance(column, np.ndarray) else np.array(column.to_pylist())


def ahead(parts: Iterator[T]) -> Iterator[T]:
    """Yield what an iterator yields, got by a thread that is a little ahead; an error comes out where it would have."""
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(AHEAD)
    given_up = threading.Event()

    def hand_over(kind: str, value: Any) -> bool:
        while not given_up.is_set():
            try:
                waiting.put((kind, value), timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def read() -> None:
        try:
            for part in parts:
                if not hand_over("part", part):
                    return
            hand_over("end", None)
        except BaseException as error:
            hand_over("error", error)

    thread = threading.Thread(target=read, daemon=True, name="betacores-reader")
    thread.start()
    try:
        while True:
            try:
                kind, value = waiting.get(timeout=PATIENCE)
            except queue.Empty:
                said = f"data: nothing could be read for {PATIENCE:.0f} seconds; is the disk there?"
                raise TimeoutError(said) from None
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        given_up.set()


class Cutter:
    """Cuts pieces of any length into canonical blocks; what they hold is looked at when a block is made."""

    def __init__(self, first: int, join: Callable[[list[Any]], Any]):
        self.start = first * BLOCK_ROWS
        self.join = join
        self._begin()

    def _begin(self) -> None:
        self.pieces: list[tuple[list[np.ndarray], Any]] = []
        self.filled = 0

    def add(self, columns: list[np.ndarray], y: Any, count: int) -> Iterator[Cut]:
        """Take columns of numbers and responses; yield the blocks that are full."""
        at = 0
        while at < count:
            room = slice(at, at + min(count - at, BLOCK_ROWS - self.filled))
            self.pieces.append(([column[room] for column in columns], None if y is None else y[room]))
            self.filled, at = self.filled + room.stop - at, room.stop
            if self.filled == BLOCK_ROWS:
                yield self._cut()

    def rest(self) -> Iterator[Cut]:
        """Yield the last block, if there is one."""
        if self.filled:
            yield self._cut()

    def _cut(self) -> Cut:
        made = partial(_made, self.pieces, self.filled, self.start, self.join)
        cut = Cut(self.start, self.filled, partial(made, np.float32), partial(made, np.float64))
        self.start += self.filled
        self._begin()
        return cut


def _made(pieces: list[tuple[list[np.ndarray], Any]], rows: int, start: int, join: Any, kind: Any) -> Raw:
    x = aligned((rows, len(pieces[0][0])), kind)
    at = 0
    with np.errstate(over="ignore"):
        for columns, _ in pieces:
            count = len(columns[0])
            for j, column in enumerate(columns):
                x[at : at + count, j] = column
            at += count
    return Raw(x, None if pieces[0][1] is None else join([y for _, y in pieces]), start)


def aligned(shape: tuple[int, int], kind: Any) -> np.ndarray:
    """Return an array to be filled that begins where JAX takes it as it is; any other it would copy."""
    wanted = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.empty(wanted + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + wanted].view(kind).reshape(shape)
