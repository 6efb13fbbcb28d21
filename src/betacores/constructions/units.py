"""What a construction chooses: rows, or groups of them. A group's vector is the sum of its rows'."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from betacores.constructions.path import Path
from betacores.divergence import Beta
from betacores.groups import Groups
from betacores.models.base import Model
from betacores.sources.pool import Takes
from betacores.tangent import row_vectors

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int

# Rows whose vectors are held at once.
TOGETHER = 16_384
# This share of the rows is taken to be in groups that are clean, or as clean as there are.
CLEANEST = 0.25
# Of a group's rows so many more may be doubtful, and of this one must be so sure.
RATE_SLACK, SURE = 0.03, 0.95
# Rates of doubtful rows that are considered, closer to each other near zero.
RATES = np.linspace(0.01, 0.995, 120) ** 2
EM_STEPS = 300


class Units(Protocol):
    """What can be chosen: what it is called, and what to do if not enough of it was."""

    plural: str
    remedy: str

    def vectors(
        self, model: Model, thetas: Float[Array, "s p"], source: Takes, units: Int[np.ndarray, " n"], beta: Beta
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

    plural, remedy = "rows", "ask for a larger size"

    def vectors(
        self, model: Model, thetas: Float[Array, "s p"], source: Takes, units: Int[np.ndarray, " n"], beta: Beta
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

    plural, remedy = "groups", "let rows have weights of their own (weights_by='row')"

    def __init__(self, groups: Groups, counted: Bool[np.ndarray, " rows"] | None = None):
        self.groups, self.count = groups, len(groups)
        self.counted = counted
        self.members = groups.among(np.ones(len(groups.codes), bool) if counted is None else counted)

    def vectors(
        self, model: Model, thetas: Float[Array, "s p"], source: Takes, units: Int[np.ndarray, " n"], beta: Beta
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
        """Return which groups may be chosen: those that are surely no dirtier than the cleanest, as far as can be told.

        A group of few rows shows little of itself, and is judged by what groups are like here: see `doubt_rates`.
        """
        if self.counted is None:
            return None
        sizes, clean = self.groups.sizes, self.clean_chances
        order = np.argsort(-clean, kind="stable")
        level = clean[order][(np.cumsum(sizes[order]) >= CLEANEST * sizes.sum()).argmax()]
        return clean >= min(SURE, level)

    @cached_property
    def clean_chances(self) -> Float[np.ndarray, " groups"]:
        """How likely each group is to have as few doubtful rows as the cleanest: rows that are not counted."""
        sizes = self.groups.sizes
        rates, chances = doubt_rates(sizes - self.members.sizes, sizes)
        usual = rates[np.searchsorted(np.cumsum(sizes @ chances), CLEANEST * sizes.sum() * (1 - 1e-6))]
        return chances[:, rates <= usual + RATE_SLACK].sum(1)

    def as_rows(self, path: Path) -> Path:
        """Return a path of groups as one of rows."""
        weights = np.repeat(path.weights, self.members.sizes[path.indices], axis=1)
        return path._replace(indices=self.members.rows_of(path.indices), weights=weights)

    def with_row_weights(self, path: Path, chosen_from: Callable[[Bool[np.ndarray, " rows"]], Path]) -> Path:
        """Return a path of groups as one of rows that have weights of their own.

        Parameters
        ----------
        path
            Of groups.
        chosen_from
            Chooses among some rows, and returns their path; its end is taken.
        """
        found: dict[tuple[int, ...], dict[int, float]] = {}
        kept = [tuple(path.indices[weights > 0].tolist()) for weights in path.weights]
        for groups in kept:
            if groups and groups not in found:
                among = np.zeros(len(self.groups.codes), bool)
                among[self.members.rows_of(np.array(groups))] = True
                rows = chosen_from(among)
                found[groups] = dict(zip(rows.indices.tolist(), rows.weights[-1].tolist(), strict=True))
        place = {int(group): k for k, group in enumerate(path.indices)}
        ever = sorted(
            {row for one in found.values() for row in one}, key=lambda r: (place[int(self.groups.codes[r])], r)
        )
        weights = np.array([[found.get(groups, {}).get(row, 0.0) for row in ever] for groups in kept])
        return path._replace(indices=np.array(ever, int), weights=weights.reshape(len(kept), len(ever)))


def doubt_rates(
    doubtful: Int[np.ndarray, " groups"], sizes: Int[np.ndarray, " groups"]
) -> tuple[Float[np.ndarray, " rates"], Float[np.ndarray, "groups rates"]]:
    """Return rates of doubtful rows, and how likely each is to be that of a group, given the counts of all groups.

    Empirical Bayes: counts are binomial, and how common each rate is among groups is found by maximum likelihood. Where
    groups are much alike a small one with a doubtful row is like the others; where some are clean and others are not,
    it could be either.
    """
    kinds, kind_of, times = np.unique(
        np.column_stack([doubtful, sizes]), axis=0, return_inverse=True, return_counts=True
    )
    log_likelihood = kinds[:, :1] * np.log(RATES) + (kinds[:, 1:] - kinds[:, :1]) * np.log1p(-RATES)
    likelihood = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True))
    common = np.full(len(RATES), 1 / len(RATES))
    for _ in range(EM_STEPS):
        chances = likelihood * common
        chances /= chances.sum(1, keepdims=True)
        common = times @ chances / times.sum()
    return RATES, chances[kind_of.ravel()]
