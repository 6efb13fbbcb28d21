"""NumPy's own files, and arrays that are maps of files: read by ranges, so that what was read is not held."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from betacores.sources.base import BLOCK_ROWS
from betacores.sources.reader import Cut, Raw, Reader, check_local, stamp_of


class Column:
    """An array on disk, or in memory, of which ranges of rows are read.

    Parameters
    ----------
    given
        The path of an ``.npy`` file, a memory map, or an array.
    name
        What to call it.
    """

    def __init__(self, given: Any, name: str):
        self.path: str | None = None
        if isinstance(given, (str, os.PathLike)):
            given = _mapped(os.fspath(given), name)
        given = given if isinstance(given, np.ndarray) else np.asarray(given)
        self.array = given
        whole = (
            isinstance(given, np.memmap) and isinstance(given.filename, (str, os.PathLike)) and given.base is not None
        )
        # A map holds what was looked at; the file itself does not. A part of a map does not know where it begins.
        if whole and not isinstance(given.base, np.ndarray) and given.flags.c_contiguous and given.size:
            self.path, self.offset = os.fspath(given.filename), int(given.offset)
            self.stamp = stamp_of(self.path)

    def between(self, start: int, stop: int) -> np.ndarray:
        """Return consecutive rows."""
        if self.path is None:
            return np.asarray(self.array[start:stop])
        self.check_unchanged()
        width = int(np.prod(self.array.shape[1:], dtype=np.int64))
        count = (stop - start) * width
        offset = self.offset + start * width * self.array.dtype.itemsize
        found = np.fromfile(self.path, self.array.dtype, count, offset=offset)
        if len(found) < count:
            raise OSError(f"data: {self.path} ends before its last row; write or fetch it again.")
        return found.reshape(-1, *self.array.shape[1:])

    def check_unchanged(self) -> None:
        """Complain if its file is gone or is not what it was."""
        if self.path is not None and (not os.path.exists(self.path) or stamp_of(self.path) != self.stamp):
            raise OSError(f"data: {self.path} is gone or has changed since the run began; run again.")

    def identity(self) -> Any:
        """Return what tells it from another."""
        if self.path is not None:
            return [self.path, *self.stamp]
        import zlib

        return [list(self.array.shape), self.array.dtype.str, zlib.crc32(np.ascontiguousarray(self.array).tobytes())]


class NpyReader(Reader):
    """Rows of an array on disk, and responses from another or from memory.

    Parameters
    ----------
    x
        Rows of numbers: a path or a memory map.
    y
        One response a row: a path, a memory map or an array; None if there is none.
    """

    remedy = "drop such rows or fill such cells, and write the array again"

    def __init__(self, x: Any, y: Any = None):
        self._x, self._y = Column(x, "data"), None if y is None else Column(y, "y")
        table = self._x.array
        if table.ndim != 2 or table.dtype.kind not in "fiub":
            raise ValueError(f"data: expected rows and columns of numbers, got shape {table.shape} of {table.dtype}.")
        self.row_count, self.columns = len(table), [f"x{j}" for j in range(table.shape[1])]
        if self._y is not None:
            if self._y.array.shape != (self.row_count,):
                raise ValueError(
                    f"y: expected one value for each of the {self.row_count} rows of data, got shape "
                    f"{self._y.array.shape}."
                )
            if self._y.array.dtype.kind not in "fiub":
                raise ValueError(f"y: expected numbers, got {self._y.array.dtype}; write labels as numbers.")
            self.response = "numbers"

    def cuts(self, first: int = 0) -> Iterator[Cut]:
        """Yield all rows in canonical blocks."""
        for start in range(first * BLOCK_ROWS, self.row_count, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, self.row_count)
            x, y = self._x.between(start, stop), None if self._y is None else self._y.between(start, stop)
            yield _cut(x, y, start)

    def cuts_of(self, held: tuple[np.ndarray, np.ndarray | None]) -> Iterator[Cut]:
        """Yield what `table` gave in canonical blocks."""
        x, y = held
        for start in range(0, len(x), BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, len(x))
            yield _cut(x[start:stop], None if y is None else y[start:stop], start)

    def check_unchanged(self) -> None:
        """Complain if a file is gone or is not what it was."""
        for column in (self._x, self._y):
            if column is not None:
                column.check_unchanged()

    def where(self, row: int, *, response: bool = False) -> str:
        """Say which row it is, and of which file."""
        column = self._y if response else self._x
        return f"row {row}" if column is None or column.path is None else f"{column.path}, row {row}"

    def identity(self) -> Any:
        """Return paths, sizes and times of the files."""
        return {"x": self._x.identity(), "y": None if self._y is None else self._y.identity()}

    def table(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return everything, in memory."""
        y = None if self._y is None else self._y.between(0, self.row_count)
        return self._x.between(0, self.row_count), y


def _cut(x: np.ndarray, y: np.ndarray | None, start: int) -> Cut:
    made = partial(_made, x, y, start)
    return Cut(start, len(x), partial(made, np.float32), partial(made, np.float64))


def _made(x: np.ndarray, y: np.ndarray | None, start: int, kind: Any) -> Raw:
    with np.errstate(over="ignore"):
        return Raw(x.astype(kind, copy=False), y, start)


def _mapped(path: str, name: str) -> np.ndarray:
    check_local(name, path)
    if path.lower().endswith(".npz"):
        raise ValueError(
            f"{name}: {path} may hold several arrays; pass the one that is meant, numpy.load(...)['name'], or write it "
            "as an .npy file."
        )
    if not os.path.exists(path):
        raise FileNotFoundError(f"{name}: there is no file {path}.")
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"{name}: {path} is no whole .npy file of numbers ({reason}); write it again.") from error
