"""Numbers, one for every row of a table that memory does not hold: a file of single precision, in the order of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

BYTES = 4


def at_rows(numbers: Any, ids: np.ndarray) -> Float[np.ndarray, " n"]:
    """Return the numbers of some rows, of an array or of a file of them."""
    return numbers.at(ids) if isinstance(numbers, Numbers) else np.asarray(numbers[ids])


class Numbers:
    """A file of numbers, filled block by block and read by ranges.

    Parameters
    ----------
    place
        Where the file is, and stays; None for one that goes when nobody holds it any longer. A file that is there
        already is gone on with after its last whole block.
    rows, block_rows
        Number of all rows, and of those of a block.
    """

    def __init__(self, place: Path | None, rows: int, block_rows: int):
        self.rows, self.block_rows = rows, block_rows
        self._file: BinaryIO | Any
        if place is None:
            self._file = tempfile.TemporaryFile(prefix="betacores-")
        else:
            self._file = place.open("r+b" if place.exists() else "w+b")

    def __del__(self) -> None:
        """Close the file; maps of it stay what they are."""
        if hasattr(self, "_file"):
            self._file.close()

    @property
    def done(self) -> int:
        """Number of blocks that are there."""
        self._file.seek(0, 2)
        held = self._file.tell() // BYTES
        return -(-self.rows // self.block_rows) if held >= self.rows else held // self.block_rows

    def filled(self, parts_from: Callable[[int], Iterable[np.ndarray]]) -> Numbers:
        """Return the same after writing what is missing, block by block."""
        first = self.done
        if first * self.block_rows < self.rows:
            self._file.truncate(first * self.block_rows * BYTES)
            self._file.seek(first * self.block_rows * BYTES)
            for part in parts_from(first):
                self._file.write(np.ascontiguousarray(part, np.float32).tobytes())
            self._file.flush()
        return self

    def between(self, start: int, stop: int) -> Float[np.ndarray, " n"]:
        """Return the numbers of consecutive rows."""
        self._file.seek(start * BYTES)
        return np.frombuffer(self._file.read((stop - start) * BYTES), np.float32)

    def at(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return the numbers of some rows."""
        return np.array(self.mapped()[ids])

    def whole(self) -> Float[np.ndarray, " rows"]:
        """Return all numbers, in memory."""
        return self.between(0, self.rows).copy()

    def mapped(self) -> Float[np.ndarray, " rows"]:
        """Return all numbers as an array that the system reads from the file as it is looked at."""
        return np.memmap(self._file, np.float32, mode="r", shape=(self.rows,))
