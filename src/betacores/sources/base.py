"""Where rows come from.

A source answers two questions: `blocks()`, all rows once, in canonical blocks (fixed ranges of global row numbers, in
order), and `take(ids)`, some rows by their global numbers. Whatever is computed over all rows goes through `reduce` or
`collect`, the only places that loop over data: blocks are computed in single precision and added up in double.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from betacores.models.base import Rows

BLOCK_ROWS = 65_536


class Block(NamedTuple):
    """Consecutive rows, padded to a common length; ``present`` is 1 for a row and 0 for padding."""

    rows: Rows
    present: Any


class Source(abc.ABC):
    """Rows of a table, wherever they are."""

    row_count: int
    columns: list[str]

    @abc.abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all rows in canonical blocks."""

    @abc.abstractmethod
    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their global numbers."""


def reduce(source: Source, function: Callable[[Rows, Array], Any]) -> Any:
    """Return the sum over blocks of `function(rows, present)`, a pytree of arrays, in double precision."""
    total = None
    for rows, present in source.blocks():
        part = jax.tree.map(lambda a: np.asarray(a, np.float64), function(rows, present))
        total = part if total is None else jax.tree.map(np.add, total, part)
    return total


def collect(source: Source, function: Callable[[Rows], Float[Array, " n"]]) -> Float[np.ndarray, " rows"]:
    """Return `function(rows)`, one number a row, for all rows in order."""
    parts = [np.asarray(function(rows))[np.asarray(present) > 0] for rows, present in source.blocks()]
    return np.concatenate(parts)
