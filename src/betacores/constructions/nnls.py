"""Sparse non-negative least squares: orthogonal matching pursuit with exact refits.

Problem: few rows of `G` (each a vector over draws) and weights `w ≥ 0` with `‖t − Gᵀw‖` small.

Update, for m = 1, 2, ...: with the residual `r = t − Gᵀw`, take the row with the largest `g·r/‖g‖` into the passive
set, and solve the non-negative least squares problem on that set exactly, by the active-set method of Lawson and Hanson
warm-started from the last solution: solve without the constraint; while a weight comes out negative, go towards the
solution only as far as the first weight that reaches zero, and drop its row. The Cholesky factor of the passive Gram
matrix grows by one border a row, and is rotated back to triangular form when a row is dropped.

Exchange, at the end: drop the row whose loss lengthens the residual least, `w_i²/((GGᵀ)⁻¹)_ii`, take the best row in
its place, and keep the exchange if the residual has become shorter.

Reference: Lawson and Hanson, "Solving least squares problems" (1974), chapter 23; Nguyen, Soussen, Idier and Djermoune,
"Non-negative orthogonal greedy algorithms", IEEE Transactions on Signal Processing 67 (2019).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# A new row whose part orthogonal to the passive ones is smaller than this share of it adds nothing but rounding.
DEPENDENT = 1e-9
# Gains are computed in single precision; a smaller share of the target's length is rounding.
SMALLEST_GAIN = 1e-6
# The search has stalled when so many steps have shortened the residual by no more than this share.
STALLED_STEPS, STALLED_SHARE = 20, 0.01


class Step(NamedTuple):
    """Chosen rows, their weights, and the length of what they lack."""

    places: Int[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]
    residual: float


class Passive:
    """The passive set: its rows in double precision, the Cholesky factor of their Gram matrix, and their weights.

    ``lack`` is what the weighted rows still lack, since the last refit. Nothing is computed twice in a step, as most of
    its time goes by in reading rows.
    """

    def __init__(self, vectors: Float[np.ndarray, "n s"], target: Float[np.ndarray, " s"]):
        self.vectors, self.target, self.lack = vectors, target, target
        self.places: list[int] = []
        self.rows = np.zeros((16, len(target)))
        self.right = np.zeros(0)
        self.factor = np.zeros((0, 0))
        self.weights = np.zeros(0)

    def copy(self) -> Passive:
        """Return another that changes by itself."""
        other = copy.copy(self)
        other.places, other.rows = list(self.places), self.rows.copy()
        return other

    def taken(self) -> Float[np.ndarray, "k s"]:
        """Return the passive rows."""
        return self.rows[: len(self.places)]

    def step(self) -> Step:
        """Return the present solution."""
        return Step(np.array(self.places, int), self.weights.copy(), float(np.linalg.norm(self.lack)))

    def add(self, place: int) -> bool:
        """Take in a row with weight zero; tell whether it was linearly independent of the others."""
        new, size = self.vectors[place].astype(np.float64), len(self.places)
        border = solved(self.factor, self.taken() @ new) if size else np.zeros(0)
        rest = new @ new - border @ border
        if rest <= DEPENDENT * (new @ new):
            return False
        factor = np.zeros((size + 1, size + 1))
        factor[:size, :size] = self.factor
        factor[size, :size] = border
        factor[size, size] = np.sqrt(rest)
        self.factor = factor
        if size == len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
        self.rows[size] = new
        self.places.append(place)
        self.right = np.append(self.right, new @ self.target)
        self.weights = np.append(self.weights, 0.0)
        return True

    def drop(self, position: int) -> None:
        """Let a row go; Givens rotations make the factor triangular again."""
        factor = np.delete(self.factor, position, axis=0)
        for k in range(position, len(factor)):
            a, b = factor[k, k], factor[k, k + 1]
            length = np.hypot(a, b)
            rotation = np.array([[a, -b], [b, a]]) / length
            factor[k:, k : k + 2] = factor[k:, k : k + 2] @ rotation
            factor[k, k + 1] = 0.0
        self.factor = np.ascontiguousarray(factor[:, :-1])
        self.places.pop(position)
        self.rows[position : len(self.places)] = self.rows[position + 1 : len(self.places) + 1]
        self.right = np.delete(self.right, position)
        self.weights = np.delete(self.weights, position)

    def refit(self) -> None:
        """Solve the non-negative least squares problem on the passive rows."""
        while self.places:
            free = solved(self.factor, solved(self.factor, self.right), trans="T")
            if np.all(free > 0):
                self.weights = free
                break
            # Go towards the free solution until the first weight reaches zero.
            falling = free <= 0
            steps = self.weights[falling] / np.maximum(self.weights[falling] - free[falling], np.finfo(float).tiny)
            step = steps.min()
            self.weights = self.weights + step * (free - self.weights)
            self.drop(int(np.flatnonzero(falling)[steps.argmin()]))
        self.lack = self.target - self.weights @ self.taken()

    def least_missed(self) -> int:
        """Return the position of the row whose loss lengthens the residual least."""
        inverse = solved(self.factor, np.eye(len(self.places)))
        return int(np.argmin(self.weights**2 / (inverse**2).sum(0)))


def solved(factor: Float[np.ndarray, "k k"], right: np.ndarray, trans: str = "N") -> np.ndarray:
    """Solve with a lower triangular matrix, or with its transpose."""
    # SciPy's own function takes longer to begin than to compute. What lies row by row is to LAPACK a transpose.
    found, wrong = dtrtrs(factor.T, right, lower=0, trans=int(trans == "N"))
    if wrong:
        raise np.linalg.LinAlgError("The rows taken are linearly dependent.")
    return found


class Search:
    """Candidates for the passive set, and the choice among them."""

    def __init__(self, vectors: Float[np.ndarray, "n s"], target: Float[np.ndarray, " s"]):
        self.vectors, self.target = vectors, target
        length = np.linalg.norm(vectors, axis=1)
        self.usable = length > 0
        self.inverse_length = np.where(self.usable, 1 / np.where(self.usable, length, 1.0), 0.0)
        self.threshold = SMALLEST_GAIN * np.linalg.norm(target)

    def extend(self, passive: Passive) -> bool:
        """Take in the row that points best towards the residual, and refit; tell whether there was one."""
        gains = self.vectors @ passive.lack.astype(self.vectors.dtype) * self.inverse_length
        gains[~self.usable] = -np.inf
        gains[passive.places] = -np.inf
        while True:
            place = int(gains.argmax())
            if not gains[place] > self.threshold:
                return False
            if passive.add(place):
                passive.refit()
                return True
            self.usable[place], gains[place] = False, -np.inf


def sparse_nonnegative(
    vectors: Float[np.ndarray, "n s"],
    target: Float[np.ndarray, " s"],
    size: int,
    first: Int[np.ndarray, " i"] | tuple = (),
    shortest: float = 0.0,
) -> Iterator[Step]:
    """Yield the solution after every step, until it has `size` rows or nothing is left to gain.

    Parameters
    ----------
    vectors
        Candidates, one a row.
    target
        What their weighted sum is to be.
    size
        The largest number of rows.
    first
        Rows to begin with; those that are no help leave again at once.
    shortest
        A residual of no more than this length is none.
    """
    passive, search = Passive(vectors, target), Search(vectors, target)
    for place in first[:size]:
        if search.usable[place] and passive.add(int(place)):
            passive.refit()
    if passive.places:
        yield passive.step()
    # A row that leaves makes room for another, so that more steps than rows may be needed, though not without end.
    lengths: list[float] = []
    for _ in range(3 * size):
        if len(passive.places) >= size or not search.extend(passive):
            break
        step = passive.step()
        lengths.append(step.residual)
        yield step
        stalled = len(lengths) > STALLED_STEPS and step.residual > (1 - STALLED_SHARE) * lengths[-1 - STALLED_STEPS]
        if stalled or step.residual <= shortest:
            break


def exchanged(vectors: Float[np.ndarray, "n s"], target: Float[np.ndarray, " s"], step: Step, rounds: int) -> Step:
    """Improve a solution by exchanging rows, one a round, as long as that helps."""
    passive, search = Passive(vectors, target), Search(vectors, target)
    for place in step.places:
        passive.add(int(place))
    passive.refit()
    best = min(passive.step(), step, key=lambda s: s.residual)
    for _ in range(rounds):
        if len(passive.places) < 2:
            break
        trial = passive.copy()
        position = trial.least_missed()
        left = trial.places[position]
        trial.drop(position)
        trial.refit()
        was, search.usable[left] = search.usable[left], False
        found = search.extend(trial)
        search.usable[left] = was
        if not found or trial.step().residual >= best.residual:
            break
        passive, best = trial, trial.step()
    return best
