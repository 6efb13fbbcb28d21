"""Sparse non-negative least squares: orthogonal matching pursuit with exact refits.

Problem: few rows of `G` (each a vector over draws) and weights `w ≥ 0` with `‖t − Gᵀw‖` small.

Update, for m = 1, 2, ...: with the residual `r = t − Gᵀw`, take the row with the largest `g·r/‖g‖` into the passive
set, and solve the non-negative least squares problem on that set exactly, by the active-set method of Lawson and Hanson
warm-started from the last solution: solve without the constraint; while a weight comes out negative, go towards the
solution only as far as the first weight that reaches zero, and drop its row. The Cholesky factor of the passive Gram
matrix grows by one border a row, and is rotated back to triangular form when a row is dropped.

Reference: Lawson and Hanson, "Solving least squares problems" (1974), chapter 23; Nguyen, Soussen, Idier and Djermoune,
"Non-negative orthogonal greedy algorithms", IEEE Transactions on Signal Processing 67 (2019).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import solve_triangular

# A new row whose part orthogonal to the passive ones is smaller than this share of it adds nothing but rounding.
DEPENDENT = 1e-9


class Passive:
    """The passive set: its rows, the Cholesky factor of their Gram matrix, and their weights."""

    def __init__(self, vectors: Float[np.ndarray, "n s"], target: Float[np.ndarray, " s"]):
        self.vectors, self.target = vectors, target
        self.places: list[int] = []
        self.factor = np.zeros((0, 0))
        self.weights = np.zeros(0)

    def residual(self) -> Float[np.ndarray, " s"]:
        """Return what the weighted rows still lack."""
        return self.target - self.weights @ self.vectors[self.places]

    def add(self, place: int) -> bool:
        """Take in a row with weight zero; tell whether it was linearly independent of the others."""
        new = self.vectors[place]
        border = solve_triangular(self.factor, self.vectors[self.places] @ new, lower=True) if self.places else []
        rest = new @ new - np.dot(border, border)
        if rest <= DEPENDENT * (new @ new):
            return False
        size = len(self.places)
        factor = np.zeros((size + 1, size + 1))
        factor[:size, :size] = self.factor
        factor[size, :size] = border
        factor[size, size] = np.sqrt(rest)
        self.factor = factor
        self.places.append(place)
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
        self.factor = factor[:, :-1]
        self.places.pop(position)
        self.weights = np.delete(self.weights, position)

    def refit(self) -> None:
        """Solve the non-negative least squares problem on the passive rows."""
        while self.places:
            right = self.vectors[self.places] @ self.target
            half = solve_triangular(self.factor, right, lower=True)
            free = solve_triangular(self.factor, half, lower=True, trans="T")
            if np.all(free > 0):
                self.weights = free
                return
            # Go towards the free solution until the first weight reaches zero.
            falling = free <= 0
            steps = self.weights[falling] / np.maximum(self.weights[falling] - free[falling], np.finfo(float).tiny)
            step = steps.min()
            self.weights = self.weights + step * (free - self.weights)
            self.drop(int(np.flatnonzero(falling)[steps.argmin()]))


def sparse_nonnegative(
    vectors: Float[np.ndarray, "n s"], target: Float[np.ndarray, " s"], size: int
) -> list[tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]]:
    """Return, for every number of steps up to `size`, the chosen rows and their weights.

    The path ends early when no row points towards the residual any more.
    """
    length = np.linalg.norm(vectors, axis=1)
    passive = Passive(vectors, target)
    path: list[tuple[np.ndarray, np.ndarray]] = []
    usable = length > 0
    while len(path) < size:
        residual = passive.residual()
        gains = np.where(usable, vectors @ residual / np.where(length > 0, length, 1.0), -np.inf)
        gains[passive.places] = -np.inf
        place = int(gains.argmax())
        if not gains[place] > 1e-12 * np.linalg.norm(target):
            break
        if not passive.add(place):
            usable[place] = False
            continue
        passive.refit()
        path.append((np.array(passive.places), passive.weights.copy()))
    return path
