"""What a construction returns: the coreset after every outer iteration, so that one run gives every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from betacores.models.base import Rows

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Path(NamedTuple):
    """Rows in order of insertion, and their weights after every outer iteration.

    ``weights[m - 1]`` are the weights after iteration m; rows not inserted by then have weight zero. ``trace`` holds
    what the construction has to say of every iteration. ``points`` are what is kept in place of the rows, by a
    construction that moves them: one for each of ``indices``, the rows they started from.
    """

    indices: Int[np.ndarray, " k"]
    weights: Float[np.ndarray, "m k"]
    warnings: tuple[str, ...] = ()
    trace: dict[str, list] | None = None
    points: Rows | None = None

    def at(self, iteration: int) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Return the rows of positive weight after an iteration, and their weights."""
        weights = self.weights[iteration - 1]
        kept = weights > 0
        return self.indices[kept], weights[kept]


NOTHING = Path(
    np.zeros(0, int),
    np.zeros((1, 0)),
    ("No row was selected: every candidate's likelihood is the same under all draws.",),
)


class Sparse(NamedTuple):
    """Weights of candidates, of which few are positive."""

    places: Int[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]


def sparse(weights: Float[np.ndarray, " n"]) -> Sparse:
    """Return the positive ones of weights over all candidates."""
    places = np.flatnonzero(weights > 0)
    return Sparse(places, weights[places])


def stopped(progress: Callable[[int, int], None] | None, done: int, total: int) -> tuple[str, ...]:
    """Report a finished step; return what to warn of if the caller asks, by `KeyboardInterrupt`, to stop here."""
    try:
        if progress is not None:
            progress(done, total)
    except KeyboardInterrupt:
        return (f"Interrupted: {done} of {total} steps were done.",)
    return ()


def path_of(steps: list[Sparse], size: int, warnings: tuple[str, ...] = ()) -> Path:
    """Return the path of a construction's steps, of which `size` were asked for; one that stopped early stays there."""
    if not steps:
        return NOTHING
    ever = list(dict.fromkeys(place for step in steps for place in step.places.tolist()))
    column = {place: k for k, place in enumerate(ever)}
    weights = np.zeros((size, len(ever)))
    for m, step in enumerate(steps):
        weights[m, [column[place] for place in step.places.tolist()]] = step.weights
    weights[len(steps) :] = weights[len(steps) - 1]
    return Path(np.array(ever, int), weights, warnings)
