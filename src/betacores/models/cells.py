"""Checks of a table's cells, for models that describe only some kinds of them."""

from __future__ import annotations

import numpy as np


def refuse(x: np.ndarray, columns: list[str], wrong: np.ndarray, expected: str, remedy: str) -> None:
    """Raise if any cell is wrong, naming the first of them."""
    if not wrong.any():
        return
    row, column = np.argwhere(wrong)[0]
    raise ValueError(
        f"data: expected {expected}; row {row}, column {columns[column]!r} is {x[row, column]:g} "
        f"({wrong.sum()} such cells in all); {remedy}."
    )


def not_whole(x: np.ndarray) -> np.ndarray:
    """Tell the cells that are not 0 or a whole number above it."""
    return (x < 0) | (x != np.floor(x))
