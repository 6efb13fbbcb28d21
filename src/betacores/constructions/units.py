"""What a construction chooses: rows, or groups of them. A group's vector is the sum of its rows'."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from betacores.constructions.path import Path
from betacores.divergence import Beta
from betacores.groups import Groups
from betacores.models.base import Model
from betacores.sources import Source
from betacores.tangent import row_vectors

# Rows whose vectors are held at once.
TOGETHER = 16_384
# A group may have this share fewer rows that can be believed than the cleanest quarter, beyond chance.
SHARE_SLACK = 0.03


class Units(Protocol):
    """What can be chosen."""

    count: int

    def vectors(
        self, model: Model, thetas: Float[Array, "s p"], source: Source, units: Int[np.ndarray, " n"], beta: Beta
    ) -> Float[np.ndarray, "n s"]:
        """Return the vectors of units."""
        ...

    def rows(
        self, units: Int[np.ndarray, " k"], weights: Float[np.ndarray, " k"]
    ) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Return the rows of weighted units, and their weights."""
        ...

    def lengths(self, units: Int[np.ndarray, " n"], vectors: Float[np.ndarray, "n s"]) -> Float[np.ndarray, " n"]:
        """Return how much the vectors of units say, for each row of them."""
        ...


class SingleRows:
    """Rows, each for itself."""

    def __init__(self, count: int):
        self.count = count

    def vectors(
        self, model: Model, thetas: Float[Array, "s p"], source: Source, units: Int[np.ndarray, " n"], beta: Beta
    ) -> Float[np.ndarray, "n s"]:
        """Return the vectors of rows."""
        return row_vectors(model, thetas, source, units, beta)

    def rows(
        self, units: Int[np.ndarray, " k"], weights: Float[np.ndarray, " k"]
    ) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Return rows as they are."""
        return units, weights

    def lengths(self, units: Int[np.ndarray, " n"], vectors: Float[np.ndarray, "n s"]) -> Float[np.ndarray, " n"]:
        """Return the lengths of vectors."""
        return np.linalg.norm(vectors, axis=1)


class WholeGroups:
    """Groups, of which every row counts the same; rows that are not counted, if any, are left out of them."""

    def __init__(self, groups: Groups, counted: Bool[np.ndarray, " rows"] | None = None):
        self.groups, self.count = groups, len(groups)
        self.counted = counted
        self.members = groups.among(np.ones(len(groups.codes), bool) if counted is None else counted)

    def vectors(
        self, model: Model, thetas: Float[Array, "s p"], source: Source, units: Int[np.ndarray, " n"], beta: Beta
    ) -> Float[np.ndarray, "n s"]:
        """Return the sums of the rows' vectors, some rows at a time."""
        members = self.members.rows_of(units)
        places = np.repeat(np.arange(len(units)), self.members.sizes[units])
        sums = np.zeros((len(units), len(thetas)))
        for start in range(0, len(members), TOGETHER):
            part = slice(start, start + TOGETHER)
            # Members are in the order of their groups, so that a group's rows are next to each other.
            firsts = np.flatnonzero(np.diff(places[part], prepend=-1))
            found = row_vectors(model, thetas, source, members[part], beta)
            sums[places[part][firsts]] += np.add.reduceat(found.astype(np.float64), firsts, axis=0)
        return sums.astype(np.float32)

    def rows(
        self, units: Int[np.ndarray, " k"], weights: Float[np.ndarray, " k"]
    ) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, " m"]]:
        """Return the rows of groups, each with the weight of its group."""
        return self.members.rows_of(units), np.repeat(weights, self.members.sizes[units])

    def lengths(self, units: Int[np.ndarray, " n"], vectors: Float[np.ndarray, "n s"]) -> Float[np.ndarray, " n"]:
        """Return lengths of vectors, divided by the root of the number of rows."""
        return np.linalg.norm(vectors, axis=1) / np.sqrt(np.maximum(self.members.sizes[units], 1))

    def eligible(self) -> Bool[np.ndarray, " groups"] | None:
        """Return which groups may be chosen: those with as many rows that count as the others have, up to chance."""
        if self.counted is None:
            return None
        share = self.members.sizes / self.groups.sizes
        error = np.sqrt(share * (1 - share) / self.groups.sizes)
        # Of the rows, a quarter is in groups that are no worse than this.
        order = np.argsort(-share)
        ahead = np.cumsum(self.groups.sizes[order]) >= 0.25 * len(self.counted)
        usual = share[order][ahead.argmax()]
        return share + 2 * error >= usual - SHARE_SLACK

    def as_rows(self, path: Path) -> Path:
        """Return a path of groups as one of rows."""
        weights = np.repeat(path.weights, self.members.sizes[path.indices], axis=1)
        return path._replace(indices=self.members.rows_of(path.indices), weights=weights)
