"""Which batch of rows enters next, given the basis that the network has learnt so far.

On a given basis `z` the model is linear regression, and all of this is about its last layer: ``uniform`` takes batches
at random, ``incremental`` is Algorithm 1 of the β-Cores paper over batches (with β = 0 SparseVI), and ``cleansing``
is pursuit.

Pursuit decides first which rows are doubtful: those with covariates that the guard does not trust, with a response
apart from most, or with one that the robust fit to all rows, on the basis, finds unlikely. By how many of them it has a
batch is of a clean kind or of another, and those of others wait until no clean one is left. Clean batches enter whole:
the unlikely rows among them are what the network has not learnt yet, and would not learn without them; only if all
batches are much alike, so that dirt may be anywhere, impossible ones are left out. How many rows are how unlikely in
clean batches also tells which rows of the others are likely to be clean; those enter with them. Among the batches that
may enter it takes the one whose vector, the sum of its rows', points best towards what the coreset lacks of the
posterior of all rows that could enter.

The batch called initial is there from the beginning. It may hold any share of dirty rows. Where it has hardly more
doubtful ones than clean batches, only those stay out that the guard does not trust: of few rows the rare ones are worth
most, and a network cannot guess them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import jax
import numpy as np

from betacores.constructions.group_incremental import Entered, group_step, rules_of
from betacores.constructions.units import WholeGroups
from betacores.divergence import as_beta
from betacores.groups import Groups
from betacores.models import LinearRegression
from betacores.neural.judging import by_the_batch, held_out_error, held_out_noise, likely_clean, with_most
from betacores.neural.kinds import clean_as_others, clean_batches
from betacores.noise import robust_noise
from betacores.pilot import pilot
from betacores.posteriors.weighted import weighted_posterior
from betacores.robust import robust_location_scale
from betacores.scores import row_scores
from betacores.sources import ArraySource

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, PRNGKeyArray

INITIAL = 0
# β of the scores that tell dirty rows, below which score a row is doubtful, and how many standard deviations from the
# prediction are impossible.
SCORE_BETA, SCREEN, IMPOSSIBLE = 0.5, 0.05, 10.0
LEAST_TRUST = 0.5
# Draws over which vectors are compared.
DRAWS = 300
# Rows are judged anew each time that the coreset has grown by this share.
GROWN = 1.5


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
        return self._of(1, _given_noise(self.noise, self.y))

    def next(self, on: Basis, now: Chosen, key: PRNGKeyArray) -> Chosen:
        """Take the next batch of the order."""
        noise = self.noise or held_out_noise(on.predicted, self.y, _outside(len(self.y), now), key) or now.noise
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
        return Chosen((INITIAL,), rows, np.ones(len(rows)), _given_noise(self.noise, self.y))

    def next(self, on: Basis, now: Chosen, key: PRNGKeyArray) -> Chosen:
        """Take a step of Algorithm 1."""
        noise_key, step_key = jax.random.split(key)
        noise = self.noise or held_out_noise(on.predicted, self.y, _outside(len(self.y), now), noise_key) or now.noise
        everyone = np.ones(self.units.count, bool)
        before = Entered(now.batches, now.rows, now.weights)
        model, source = LinearRegression(noise=noise), ArraySource(on.z, self.y)
        after = group_step(model, source, self.units, before, everyone, step_key, self.rules)
        return Chosen(after.chosen, after.members, after.weights, noise)


class Cleansing:
    """Pursuit over batches, which are cleansed as they enter."""

    def __init__(
        self,
        x: Float[np.ndarray, "n columns"],
        y: Float[np.ndarray, " n"],
        batches: Groups,
        noise: float | None,
        trust: Float[np.ndarray, " n"] | None,
        key: PRNGKeyArray,
    ):
        self.y, self.batches, self.given = y, batches, noise
        self.near = with_most(y)
        self.trust = self.near.astype(np.float32) * (1.0 if trust is None else trust)
        self.judged_at = 0
        noise_key, judge_key = jax.random.split(key)
        start = noise or robust_noise(ArraySource(x, y, weights=self.trust), True, noise_key)
        self._judge(x, start, judge_key)
        self.noise = start

    def first(self) -> Chosen:
        """Return the rows of the initial batch that a robust linear fit believes; all if it believes none."""
        rows = self._rows((INITIAL,))
        return Chosen((INITIAL,), rows, np.ones(len(rows)), self.noise, self.kept)

    def next(self, on: Basis, now: Chosen, key: PRNGKeyArray) -> Chosen:
        """Judge rows on the new basis, if the coreset has grown much, and take the batch that it lacks most."""
        noise_key, judge_key, draw_key = jax.random.split(key, 3)
        if len(now.rows) >= GROWN * self.judged_at:
            outside = _outside(len(self.y), now) & self.kept
            scale = self.given or held_out_noise(on.predicted, self.y, outside, noise_key) or now.noise
            self.noise = self.given or held_out_error(on.predicted, self.y, outside) or now.noise
            self._judge(on.z, scale, judge_key)
            self.judged_at = len(now.rows)
        vectors = self._vectors(on.z, now, draw_key)
        batches = now.batches
        left = np.setdiff1d(np.flatnonzero(self.clean), batches)
        if not left.size:
            left = np.setdiff1d(self.batches.codes[self.kept], batches)
        if left.size:
            wanted = vectors.sum(0)
            lacking = wanted - _weight(vectors[list(batches)], wanted) * vectors[list(batches)].sum(0)
            length = np.linalg.norm(vectors[left], axis=1)
            gains = np.where(length > 0, vectors[left] @ lacking / np.where(length > 0, length, 1.0), -np.inf)
            batches = (*batches, int(left[gains.argmax()]))
        rows, weight = self._rows(batches), _weight(vectors[list(batches)], vectors.sum(0))
        return Chosen(batches, rows, np.full(len(rows), weight), self.noise, self.kept)

    def _judge(self, z: Float[np.ndarray, "n p"], scale: float, key: PRNGKeyArray) -> None:
        """Decide which rows are doubtful or impossible and which batches are clean."""
        source, model = ArraySource(z, self.y, weights=self.trust), LinearRegression(noise=scale)
        mode = pilot(model, source, SCORE_BETA, key).theta
        trusted = self.trust >= LEAST_TRUST
        self.scores = row_scores(model, source, mode, SCORE_BETA) * trusted
        believed = self.scores >= SCREEN
        believed = believed if believed.any() else np.ones(len(self.y), bool)
        doubtful = np.bincount(self.batches.codes, ~believed, len(self.batches)).astype(int)
        self.clean = clean_batches(doubtful, self.batches.sizes)
        # Those to begin with are no batch, and of a kind of their own: any share of them may be dirty.
        self.clean[INITIAL] = False
        usual = doubtful[self.clean].sum() / max(self.batches.sizes[self.clean].sum(), 1)
        whole = clean_as_others(doubtful[INITIAL], self.batches.sizes[INITIAL], usual)
        in_clean = self.clean[self.batches.codes]
        error = np.abs(self.y - (z @ mode[:-1] + mode[-1])) / scale
        # Where dirt comes by the batch, clean batches are clean; else it may be anywhere.
        limit = np.inf if by_the_batch(~believed, in_clean) else IMPOSSIBLE
        likely = trusted & likely_clean(error, in_clean, trusted)
        self.kept = believed | np.where(in_clean, self.near & (error < limit), likely)
        if whole:
            self.kept |= (self.batches.codes == INITIAL) & trusted & (error < limit)
        self.units = WholeGroups(self.batches, self.kept)

    def _rows(self, batches: tuple[int, ...]) -> Int[np.ndarray, " m"]:
        members = self.batches.members(np.array(batches))
        kept = members[self.kept[members]]
        return kept if len(kept) else members

    def _vectors(
        self, z: Float[np.ndarray, "n hidden"], now: Chosen, key: PRNGKeyArray
    ) -> Float[np.ndarray, "batches s"]:
        """Return the vectors of batches, of the rows that could enter, over draws from the coreset's posterior."""
        model, source = LinearRegression(noise=self.noise), ArraySource(z, self.y)
        around, _ = weighted_posterior(model, source.take(now.rows), now.weights, None)
        everyone = np.arange(self.units.count)
        return self.units.vectors(model, around.draw(key, DRAWS), source, everyone, as_beta(0.0))


def _weight(vectors: Float[np.ndarray, "k s"], wanted: Float[np.ndarray, " s"]) -> float:
    """Return the one weight with which batches come closest to what is wanted, and not less than one."""
    own = vectors.sum(0)
    return max(float(own @ wanted) / max(float(own @ own), np.finfo(float).tiny), 1.0)


def _outside(rows: int, now: Chosen) -> Bool[np.ndarray, " n"]:
    outside = np.ones(rows, bool)
    outside[now.rows] = False
    return outside


def _given_noise(noise: float | None, y: Float[np.ndarray, " n"]) -> float:
    """Return the noise to begin with, before there is a basis: the spread of the response."""
    return noise or float(robust_location_scale(y[:, None])[1][0])
