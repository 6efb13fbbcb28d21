"""Tables that memory does not hold, read in canonical blocks: what every kind of file has in common."""

from __future__ import annotations

import abc
import os
import queue
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from betacores.sources.base import BLOCK_ROWS

if TYPE_CHECKING:
    from jaxtyping import Float

T = TypeVar("T")

# Blocks read before they are asked for, and seconds after which a silent disk is given up.
AHEAD, PATIENCE = 2, 600.0


class Raw(NamedTuple):
    """Consecutive rows as the file has them: numbers, and the response, an array if it is of numbers too."""

    x: Float[np.ndarray, "n columns"]
    y: Any
    start: int


class Reader(abc.ABC):
    """A table on disk.

    Attributes
    ----------
    row_count, columns
        Number of rows, and names of the covariates.
    response
        Whether the response is of ``"numbers"`` or ``"words"``; None if there is none.
    single
        Whether single precision holds every covariate exactly.
    """

    row_count: int
    columns: list[str]
    response: str | None = None
    single: bool = False

    @abc.abstractmethod
    def blocks(self, first: int = 0, *, double: bool = False) -> Iterator[Raw]:
        """Yield all rows in canonical blocks, from the first one asked for.

        In single precision, cells too large for it infinite; in double precision if asked for.
        """

    @abc.abstractmethod
    def where(self, row: int) -> str:
        """Say which file a row is in, and which of its rows it is."""

    @abc.abstractmethod
    def identity(self) -> Any:
        """Return what tells the table from another, as JSON can hold it, without reading its rows."""

    @abc.abstractmethod
    def table(self) -> Any:
        """Return everything that was asked for, in memory: a table, or an array and its responses."""

    def rows(self, ids: np.ndarray) -> Raw:
        """Return some rows by their numbers, in double precision; in the order of the table."""
        ids = np.unique(ids)
        found = []
        for raw in ahead(self.blocks(int(ids[0]) // BLOCK_ROWS if len(ids) else 0, double=True)):
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
    """Puts pieces of any length together and cuts them into canonical blocks."""

    def __init__(self, columns: int, first: int, double: bool, join: Callable[[list[Any]], Any]):
        self.start = first * BLOCK_ROWS
        self.kind = np.float64 if double else np.float32
        self.columns, self.join = columns, join
        self._begin()

    def _begin(self) -> None:
        self.x, self.filled = np.empty((BLOCK_ROWS, self.columns), self.kind), 0
        self.y: list[Any] = []

    def add(self, columns: list[np.ndarray], y: Any, count: int) -> Iterator[Raw]:
        """Take columns of numbers and responses; yield the blocks that are full."""
        at = 0
        while at < count:
            room = min(count - at, BLOCK_ROWS - self.filled)
            with np.errstate(over="ignore"):
                for j, column in enumerate(columns):
                    self.x[self.filled : self.filled + room, j] = column[at : at + room]
            if y is not None:
                self.y.append(y[at : at + room])
            self.filled, at = self.filled + room, at + room
            if self.filled == BLOCK_ROWS:
                yield self._cut()

    def rest(self) -> Iterator[Raw]:
        """Yield the last block, if there is one."""
        if self.filled:
            yield self._cut()

    def _cut(self) -> Raw:
        raw = Raw(self.x[: self.filled], self.join(self.y) if self.y else None, self.start)
        self.start += self.filled
        self._begin()
        return raw
