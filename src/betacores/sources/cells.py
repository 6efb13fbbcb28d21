"""Cells too large for single precision: how many there are, what is computed with in their place, and what to say."""

from __future__ import annotations

import numpy as np

from betacores.sources.base import LARGEST_CELL


def beyond(values: np.ndarray) -> int:
    """Return how many numbers are too large."""
    if not values.size or (values.dtype.kind != "f" and values.dtype.itemsize < 8):
        return 0
    if -LARGEST_CELL <= values.min() and values.max() <= LARGEST_CELL:
        return 0
    return int((np.abs(values.astype(np.float64)) > LARGEST_CELL).sum())


def clipped(values: np.ndarray) -> np.ndarray:
    """Return numbers in single precision, none too large for it."""
    if not beyond(values):
        return values.astype(np.float32)
    return np.clip(np.asarray(values, np.float64), -LARGEST_CELL, LARGEST_CELL).astype(np.float32)


def told_of_large_cells(count: int) -> list[str]:
    """Return what to say of cells that are too large."""
    if not count:
        return []
    return [
        f"{count} cells beyond ±{LARGEST_CELL:g} were computed with as ±{LARGEST_CELL:g}; "
        "the rows are kept as given. If they are not errors, rescale the columns."
    ]
