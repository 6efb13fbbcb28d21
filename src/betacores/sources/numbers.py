"""Numbers, one for every row of a table that memory does not hold: a file of single precision, in the order of rows.

A file that stays has another beside it, with the sum of the bytes of every block, written after the block: what was
being written when a process was killed has none and is written again, and what has one must still agree with it.
"""

from __future__ import annotations

import contextlib
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.checkpoints import not_written, reason

if TYPE_CHECKING:
    from jaxtyping import Float

BYTES = 4
SUMS = ".sums"


def _file_at(place: Path | None) -> Any:
    if place is None:
        with _told(None):
            return tempfile.TemporaryFile(prefix="betacores-")
    return place.open("r+b" if place.exists() else "w+b")


@contextlib.contextmanager
def _told(place: Path | None) -> Iterator[None]:
    """Say what to do where a file cannot be written."""
    try:
        yield
    except OSError as error:
        if place is not None:
            raise not_written(place, error) from None
        raise OSError(
            f"data: a temporary file of 4 bytes a row cannot be written ({reason(error)}); make room where temporary "
            "files are kept, or name another folder in the variable TMPDIR, and run again."
        ) from None


class Numbers:
    """A file of numbers, filled block by block and read by ranges.

    Parameters
    ----------
    place
        Where the file is, and stays; None for one that goes when nobody holds it any longer. A file that is there
        already is gone on with after its last whole block; ValueError if it is damaged.
    rows, block_rows
        Number of all rows, and of those of a block.
    """

    def __init__(self, place: Path | None, rows: int, block_rows: int):
        self.place, self.rows, self.block_rows = place, rows, block_rows
        self._file: Any = _file_at(place)
        self._sums: Any = None if place is None else _file_at(place.with_name(place.name + SUMS))
        self.done = 0 if self._sums is None else self._checked()

    def __del__(self) -> None:
        """Close the files; maps of them stay."""
        for name in ("_file", "_sums"):
            # What could not be written has been told already.
            with contextlib.suppress(OSError):
                if getattr(self, name, None) is not None:
                    getattr(self, name).close()

    def _checked(self) -> int:
        """Return the number of blocks that are there, after adding up their bytes."""
        sums = np.frombuffer(self._read(self._sums, 0, None), "<u4")
        for number, found in enumerate(sums.tolist()):
            start = number * self.block_rows
            if start >= self.rows or zlib.crc32(self._bytes(start, min(start + self.block_rows, self.rows))) != found:
                raise ValueError("the sum of a block's bytes is another")
        return len(sums)

    @staticmethod
    def _read(file: Any, at: int, count: int | None) -> bytes:
        file.seek(at)
        found = file.read() if count is None else file.read(count)
        return found[: len(found) - len(found) % BYTES]

    def _bytes(self, start: int, stop: int) -> bytes:
        return self._read(self._file, start * BYTES, (stop - start) * BYTES)

    def filled(self, parts_from: Callable[[int], Iterable[np.ndarray]]) -> Numbers:
        """Return the same after writing what is missing, block by block."""
        first = self.done
        if self._sums is not None:
            self._sums.truncate(first * BYTES)
            self._sums.seek(first * BYTES)
        if first * self.block_rows < self.rows:
            self._file.truncate(first * self.block_rows * BYTES)
            self._file.seek(first * self.block_rows * BYTES)
            for part in parts_from(first):
                with _told(self.place):
                    self._write(np.ascontiguousarray(part, np.float32))
            with _told(self.place):
                self._file.flush()
        return self

    def _write(self, part: Float[np.ndarray, " n"]) -> None:
        # A cluster, or a device, may give several blocks at once.
        for start in range(0, len(part), self.block_rows):
            block = part[start : start + self.block_rows]
            self._file.write(block.data)
            if self._sums is not None:
                self._file.flush()
                self._sums.write(np.array(zlib.crc32(block.data), "<u4").tobytes())
                self._sums.flush()
            self.done += 1

    def between(self, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """Return the numbers of consecutive rows."""
        return np.frombuffer(self._bytes(start, stop), np.float32)

    def at(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return the numbers of some rows."""
        return np.array(self.mapped()[ids])

    def whole(self) -> Float[np.ndarray, " rows"]:
        """Return all numbers, in memory."""
        return self.between(0, self.rows).copy()

    def mapped(self) -> Float[np.ndarray, " rows"]:
        """Return all numbers as an array that the system reads from the file as it is looked at."""
        return np.memmap(self._file, np.float32, mode="r", shape=(self.rows,))
