"""Rows as they are computed with, in a temporary file: decoded once, and read back from there by every later pass.

To decode rows takes longer than most of what is computed with them. So the first pass writes down what it has made of
them, and the others read that: covariates as they are computed with, responses as numbers. Only where it is sure to
pay: where the copy would be large against the memory in which the system keeps what was written last, or against what
is left of the disk, or would lie in memory itself, rows are decoded in every pass.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.sources.reader import aligned

if TYPE_CHECKING:
    from jaxtyping import Float

    from betacores.sources.reader import Reader

MOST_BYTES = 8 << 30
# Shares of the memory that the machine has, and of the free disk, that a copy may be as large as.
OF_MEMORY, OF_DISK = 0.25, 0.25
MOUNTS, IN_MEMORY = Path("/proc/self/mounts"), ("tmpfs", "ramfs")


class Scratch:
    """A file of rows, written block by block in any order, that goes when nobody holds it any longer.

    Parameters
    ----------
    rows, columns
        Size of the table.
    responds
        Whether the rows have a response.
    block_rows
        Rows of a block.
    """

    def __init__(self, rows: int, columns: int, responds: bool, block_rows: int):
        self.columns, self.responds, self.block_rows = columns, responds, block_rows
        self.row_bytes = _row_bytes(columns, responds)
        self._missing, self._lock, self._full = set(range(-(-rows // block_rows))), threading.Lock(), False
        self._file: Any = tempfile.TemporaryFile(prefix="betacores-")

    def __del__(self) -> None:
        """Close the file, which is its end."""
        if hasattr(self, "_file"):
            self._file.close()

    @property
    def whole(self) -> bool:
        """Whether all blocks are there."""
        return not self._missing

    def write(self, x: Float[np.ndarray, "n columns"], y: Any, start: int) -> None:
        """Keep a block; when the disk is full, or a response is no number of double precision, no more of them."""
        if self._full or start // self.block_rows not in self._missing:
            return
        parts: list[Any] = [np.ascontiguousarray(x, np.float32)]
        if self.responds:
            parts.append(np.ascontiguousarray(y, np.float64))
        try:
            exact = not self.responds or y.dtype.kind == "f" or np.array_equal(parts[1].astype(y.dtype), y)
            written = os.pwritev(self._file.fileno(), parts, start * self.row_bytes) if exact else -1
        except OSError:
            written = -1
        with self._lock, contextlib.suppress(OSError):
            if written == sum(part.nbytes for part in parts):
                self._missing.discard(start // self.block_rows)
            else:
                self._full = True
                self._file.truncate(0)

    def read(self, start: int, count: int) -> tuple[Float[np.ndarray, "n columns"], Float[np.ndarray, " n"] | None]:
        """Return a block."""
        x, y = aligned((count, self.columns), np.float32), np.empty(count) if self.responds else None
        parts: list[Any] = [x] if y is None else [x, y]
        if os.preadv(self._file.fileno(), parts, start * self.row_bytes) != sum(part.nbytes for part in parts):
            raise OSError("data: the temporary copy of the rows cannot be read back; is the disk there? Run again.")
        return x, y


def scratch_for(reader: Reader, block_rows: int) -> Scratch | None:
    """Return a file for a table's rows; None where there is to be no copy of them."""
    columns, responds = len(reader.columns), reader.response is not None
    wanted = reader.row_count * _row_bytes(columns, responds)
    if not reader.decodes or not hasattr(os, "pwritev") or wanted > min(MOST_BYTES, OF_MEMORY * _memory()):
        return None
    try:
        folder = tempfile.gettempdir()
        if wanted > OF_DISK * shutil.disk_usage(folder).free or _kind_of_disk(folder) in IN_MEMORY:
            return None
        return Scratch(reader.row_count, columns, responds, block_rows)
    except OSError:  # there is no such folder, or nothing may be written there
        return None


def _row_bytes(columns: int, responds: bool) -> int:
    """Return the bytes of a row: covariates in single precision, the response in double."""
    return 4 * columns + 8 * responds


def _memory() -> int:
    """Return the bytes of memory that the machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _kind_of_disk(folder: str) -> str:
    """Return what a folder lies on, as the system calls it; nothing where it does not say."""
    if not MOUNTS.exists():
        return ""
    place = os.path.realpath(folder)
    mounts = [line.split()[1:3] for line in MOUNTS.read_text(errors="replace").splitlines()]
    above = [mount for mount in mounts if os.path.commonpath([place, mount[0]]) == mount[0]]
    # The last of those that are mounted at one place lies above the others.
    return max(enumerate(above), key=lambda found: (len(found[1][0]), found[0]))[1][1] if above else ""
