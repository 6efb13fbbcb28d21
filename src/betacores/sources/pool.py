"""Some rows of a source, held in memory and known by their numbers in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from betacores.models.base import Rows

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Takes(Protocol):
    """Whatever gives rows by their numbers."""

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows."""
        ...


class Pool(NamedTuple):
    """Rows in the order of their numbers, and how much each counts."""

    ids: Int[np.ndarray, " n"]
    rows: Rows
    weights: Float[np.ndarray, " n"]

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers."""
        places = self._places(ids)
        return Rows(self.rows.x[places], None if self.rows.y is None else self.rows.y[places])

    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their numbers."""
        return self.weights[self._places(ids)]

    def holds(self, ids: np.ndarray) -> bool:
        """Tell whether all rows of these numbers are there."""
        places = np.minimum(self._places(ids), len(self.ids) - 1)
        return not len(ids) or (len(self.ids) > 0 and bool((self.ids[places] == ids).all()))

    def among(self, ids: np.ndarray) -> Pool:
        """Return a part of the pool."""
        ids = np.unique(ids)
        return Pool(ids, self.take(ids), self.weights_of(ids))

    def _places(self, ids: np.ndarray) -> Int[np.ndarray, " n"]:
        return np.searchsorted(self.ids, ids)


def joined(one: Pool, other: Pool) -> Pool:
    """Return the rows of two pools, each once."""
    ids, first = np.unique(np.concatenate([one.ids, other.ids]), return_index=True)
    y = None if one.rows.y is None else np.concatenate([one.rows.y, other.rows.y])[first]
    rows = Rows(np.concatenate([one.rows.x, other.rows.x])[first], y)
    return Pool(ids, rows, np.concatenate([one.weights, other.weights])[first])
