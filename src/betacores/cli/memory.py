"""How much memory there is, and how much a table would take."""

from __future__ import annotations

import os
from pathlib import Path

# Of a table held in memory there are several copies: Arrow's, in double and in single precision, scaled, and what is
# computed from them. Measured on 3 million rows of 11 columns, report included: 52 bytes; rounded up.
BYTES_A_CELL = 64
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
USED = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")


def taken_by(rows: int, columns: int) -> int:
    """Return how many bytes a table of numbers takes while its coreset is made in memory."""
    return rows * columns * BYTES_A_CELL


def available() -> int | None:
    """Return how many bytes are free for this process; None if the system does not say."""
    known = [size for size in (_of_machine(), _of_container(), _of_process()) if size is not None]
    return min(known, default=None)


def in_words(size: int) -> str:
    """Return a number of bytes for people."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("MemAvailable:"))
        return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_container() -> int | None:
    for limit, used in zip(LIMITS, USED, strict=True):
        try:
            return max(int(Path(limit).read_text()) - int(Path(used).read_text()), 0)
        except (OSError, ValueError):
            continue
    return None


def _of_process() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft
