"""Which batch of rows enters next, given the basis that the network has learnt so far.

On a given basis `z` the model is linear regression, and all of this is about its last layer: ``uniform`` takes batches
at random, ``incremental`` is Algorithm 1 of the β-Cores paper over batches (with β = 0 SparseVI), and ``cleansing``, in
a module of its own, is pursuit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import jax
import numpy as np

from betacores.constructions.group_incremental import Entered, group_step, rules_of
from betacores.constructions.units import WholeGroups
from betacores.groups import Groups
from betacores.models import LinearRegression
from betacores.neural.judging import held_out_noise
from betacores.robust import robust_location_scale
from betacores.sources import ArraySource

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, PRNGKeyArray

INITIAL = 0


class Chosen(NamedTuple):
    """Batches in order of entrance, their rows in the coreset, the rows' weights, and the noise of the last layer.

    Where it is told which rows of the table are believed, weights are those for training the network, and the last
    layer has weights of its own with which the coreset stands for all that are believed.
    """

    batches: tuple[int, ...]
    rows: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]
    noise: float
    believed: Bool[np.ndarray, " n"] | None = None


class Basis(NamedTuple):
    """What the network makes of all rows, and what is predicted for them, given the coreset."""

    z: Float[np.ndarray, "n hidden"]
    predicted: Float[np.ndarray, " n"]


class Chooser(Protocol):
    """A way to let batches enter."""

    def first(self) -> Chosen:
        """Return the coreset to begin with."""
        ...

    def next(self, on: Basis, now: Chosen, key: PRNGKeyArray) -> Chosen:
        """Return the coreset on a new basis, with one batch more if there is one."""
        ...


class Uniform:
    """Batches at random; every row of them stands for as many of all."""

    def __init__(self, y: Float[np.ndarray, " n"], batches: Groups, noise: float | None, key: PRNGKeyArray):
        self.y, self.batches, self.noise = y, batches, noise
        others = 1 + jax.random.permutation(key, len(batches) - 1)
        self.order = (INITIAL, *np.asarray(others).tolist())

    def first(self) -> Chosen:
        """Return the initial batch."""
        return self._of(1, self.noise or spread_of(self.y))

    def next(self, on: Basis, now: Chosen, key: PRNGKeyArray) -> Chosen:
        """Take the next batch of the order."""
        noise = self.noise or held_out_noise(on.predicted, self.y, outside(len(self.y), now), key) or now.noise
        return self._of(len(now.batches) + 1, noise)

    def _of(self, count: int, noise: float) -> Chosen:
        rows = self.batches.members(np.array(self.order[:count]))
        return Chosen(self.order[:count], rows, np.full(len(rows), len(self.y) / len(rows)), noise)


class Incremental:
    """Algorithm 1 over batches, with a weight for every row."""

    def __init__(
        self,
        y: Float[np.ndarray, " n"],
        batches: Groups,
        noise: float | None,
        *,
        beta: float,
        draws: int = 100,
        steps: int = 100,
        batch_optimise: int | None = 1000,
        learning_rate: float = 1.0,
    ):
        self.y, self.units, self.noise = y, WholeGroups(batches), noise
        model = LinearRegression(noise=1.0)
        self.rules = rules_of(
            model,
            len(y),
            beta=beta,
            draws=draws,
            steps=steps,
            batch_optimise=batch_optimise,
            learning_rate=learning_rate,
            optimiser="adam",
            sampler_target="classical",
            by_row=True,
        )

    def first(self) -> Chosen:
        """Return the initial batch, each row for itself."""
        rows = self.units.groups.members(np.array([INITIAL]))
        return Chosen((INITIAL,), rows, np.ones(len(rows)), self.noise or spread_of(self.y))

    def next(self, on: Basis, now: Chosen, key: PRNGKeyArray) -> Chosen:
        """Take a step of Algorithm 1."""
        noise_key, step_key = jax.random.split(key)
        noise = self.noise or held_out_noise(on.predicted, self.y, outside(len(self.y), now), noise_key) or now.noise
        everyone = np.ones(self.units.count, bool)
        before = Entered(now.batches, now.rows, now.weights)
        model, source = LinearRegression(noise=noise), ArraySource(on.z, self.y)
        after = group_step(model, source, self.units, before, everyone, step_key, self.rules)
        return Chosen(after.chosen, after.members, after.weights, noise)


def outside(rows: int, now: Chosen) -> Bool[np.ndarray, " n"]:
    """Return which of so many rows are not in the coreset."""
    absent = np.ones(rows, bool)
    absent[now.rows] = False
    return absent


def spread_of(y: Float[np.ndarray, " n"]) -> float:
    """Return the noise to begin with, before there is a basis: the spread of the response."""
    return float(robust_location_scale(y[:, None])[1][0])
