"""Pursuit over batches: which rows are dirty, which batches are clean, and which of those enters next.

Pursuit decides first which rows are doubtful: those with covariates that the guard does not trust, with a response
apart from most, or with one that the robust fit to all rows, on the basis, finds unlikely. By how many of them it has a
batch is of a clean kind or of another, and those of others wait until no clean one is left. Clean batches enter whole:
the unlikely rows among them are what the network has not learnt yet, and would not learn without them; only if all
batches are much alike, so that dirt may be anywhere, impossible ones are left out, unless they are so few, and with
responses so usual, that they are of a rare kind rather than dirt. How many rows are how unlikely in clean batches also
tells which rows of the others are likely to be clean; those enter with them. Among the batches that may enter it takes
the one whose vector, the sum of its rows', points best towards what the coreset lacks of the posterior of all rows that
could enter.

Once it is known which batches are clean, the guard learns from them alone what covariates are like: nothing is damaged
there, so that it need not tell two fifths of damage from a population of its own.

The batch called initial is there from the beginning. It may hold any share of dirty rows. Where it has hardly more
doubtful ones than clean batches, only those stay out that the guard does not trust: of few rows the rare ones are worth
most, and a network cannot guess them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from betacores.constructions.units import WholeGroups
from betacores.divergence import as_beta
from betacores.groups import Groups
from betacores.guard import Guard, fit_guard, trust
from betacores.models import LinearRegression
from betacores.neural.judging import (
    LEAST_OUTSIDE,
    by_the_batch,
    held_out_error,
    held_out_noise,
    likely_clean,
    rare,
    with_most,
)
from betacores.neural.kinds import clean_as_others, clean_batches
from betacores.neural.network import FARTHEST_CELL
from betacores.neural.selection import INITIAL, Basis, Chosen, outside, spread_of
from betacores.noise import robust_noise
from betacores.pilot import pilot
from betacores.posteriors.weighted import weighted_posterior
from betacores.robust import robust_location_scale
from betacores.scores import row_scores
from betacores.sources import ArraySource

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int, PRNGKeyArray

# β of the scores that tell dirty rows, below which score a row is doubtful, and how many standard deviations from the
# prediction are impossible.
SCORE_BETA, SCREEN, IMPOSSIBLE = 0.5, 0.05, 10.0
LEAST_TRUST = 0.5
# Draws over which vectors are compared.
DRAWS = 300
# Rows are judged anew each time that the coreset has grown by this share.
GROWN = 1.5
# Of fewer rows a parameter nobody can tell which are doubtful, but for responses so many scales off.
LEAST_JUDGED, ABSURD = 5, 1e4
# Fewer rows of clean batches, or fewer than twice the columns, say too little about covariates.
LEAST_SOUND = 50


class Cleansing:
    """Pursuit over batches, which are cleansed as they enter."""

    unjudged = False

    def __init__(
        self,
        x: Float[np.ndarray, "n columns"],
        y: Float[np.ndarray, " n"],
        batches: Groups,
        noise: float | None,
        guarded: bool,
        key: PRNGKeyArray,
    ):
        self.x, self.y, self.batches, self.given = x, y, batches, noise
        self.near, self.judged_at = with_most(y), 0
        if len(y) < LEAST_JUDGED * (x.shape[1] + 1):
            self._believe()
            return
        self.trust = _trust(fit_guard(x), x) if guarded else None
        self.sound = self.likely = np.zeros(len(y), bool)
        on = np.clip(x, -FARTHEST_CELL, FARTHEST_CELL)
        noise_key, judge_key = jax.random.split(key)
        while True:
            self.noise = noise or robust_noise(ArraySource(on, y, weights=self._trusted()), True, noise_key)
            self._judge(on, self.noise, np.ones(len(y), bool), judge_key)
            # Judged again only once: after that the network tells more.
            if self.sound.any() or not self._learn_covariates():
                break

    def first(self) -> Chosen:
        """Return the rows of the initial batch that a robust linear fit believes; all if it believes none."""
        rows = self._rows((INITIAL,))
        return Chosen((INITIAL,), rows, np.ones(len(rows)), self.noise, self.kept)

    def next(self, on: Basis, now: Chosen, key: PRNGKeyArray) -> Chosen:
        """Judge rows on the new basis, if the coreset has grown much, and take the batch that it lacks most."""
        noise_key, judge_key, draw_key = jax.random.split(key, 3)
        if len(now.rows) >= GROWN * self.judged_at and not self.unjudged:
            unseen = outside(len(self.y), now)
            scale = self.given or held_out_noise(on.predicted, self.y, unseen & self.kept, noise_key) or now.noise
            self.noise = self.given or held_out_error(on.predicted, self.y, unseen & self.kept) or now.noise
            self._learn_covariates()
            self._judge(on.z, scale, unseen, judge_key)
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

    def _believe(self) -> None:
        """Let in all rows but those with an absurd response, since they are too few to be judged."""
        self.unjudged, self.trust = True, None
        middle, scale = (part[0] for part in robust_location_scale(self.y[:, None]))
        self.near = np.abs(self.y - middle) <= ABSURD * scale
        self.scores, self.kept = self.near.astype(np.float64), self.near
        self.noise = self.given or spread_of(self.y[self.near])
        self.clean = np.arange(len(self.batches)) != INITIAL
        self.units = WholeGroups(self.batches, self.kept)

    def _judge(
        self, z: Float[np.ndarray, "n p"], scale: float, unseen: Bool[np.ndarray, " n"], key: PRNGKeyArray
    ) -> None:
        """Decide which rows are doubtful or impossible and which batches are clean."""
        weights = self._trusted()
        source, model = ArraySource(z, self.y, weights=weights), LinearRegression(noise=scale)
        mode = pilot(model, source, SCORE_BETA, key).theta
        trusted = weights >= LEAST_TRUST
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
        self.by_the_batch = by_the_batch(~believed, in_clean)
        possible = np.full(len(error), True) if self.by_the_batch else error < IMPOSSIBLE
        possible |= rare(trusted & ~possible, believed, self.y)
        # The network comes closer to rows it has seen than to any other: they are no measure, and the last one stays.
        if unseen.all() or (in_clean & unseen).sum() >= LEAST_OUTSIDE:
            self.likely = likely_clean(error, in_clean & unseen & trusted, trusted & ~in_clean)
        self.kept = believed | np.where(in_clean, self.near & possible, self.likely & trusted)
        if whole:
            self.kept |= (self.batches.codes == INITIAL) & trusted & possible
        self.units = WholeGroups(self.batches, self.kept)

    def _learn_covariates(self) -> bool:
        """Learn from the batches that are clean, if dirt comes by the batch, what covariates are like; tell if so."""
        if self.trust is None or not self.by_the_batch:
            return False
        sound = self.clean[self.batches.codes]
        if sound.sum() < max(LEAST_SOUND, 2 * self.x.shape[1]) or np.array_equal(sound, self.sound):
            return False
        self.trust, self.sound = _trust(fit_guard(self.x, sound=sound), self.x), sound
        return True

    def _trusted(self) -> Float[np.ndarray, " n"]:
        """Return how far rows are trusted before anything is predicted, by covariates and by gaps of the response."""
        return self.near.astype(np.float32) * (1.0 if self.trust is None else self.trust)

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


def _trust(guard: Guard, x: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, " n"]:
    return np.asarray(_compiled_trust(guard, jnp.asarray(x)))


_compiled_trust = jax.jit(trust)


def _weight(vectors: Float[np.ndarray, "k s"], wanted: Float[np.ndarray, " s"]) -> float:
    """Return the one weight with which batches come closest to what is wanted, and not less than one."""
    own = vectors.sum(0)
    return max(float(own @ wanted) / max(float(own @ own), np.finfo(float).tiny), 1.0)
