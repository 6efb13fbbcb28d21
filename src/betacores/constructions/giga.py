"""Greedy iterative geodesic ascent: a sparse sum in the right direction, then of the right length.

Problem: few rows and weights `w ≥ 0` with `‖L − Σ_n w_n v_n‖` small, for vectors `v` and their sum `L`.

Update, on the unit sphere, with `ℓ_n = v_n/‖v_n‖` and `ℓ = L/‖L‖`: from the current point `y` choose the `ℓ_n` towards
which the geodesic leads most nearly towards `ℓ`, and go along it to the point nearest to `ℓ`. The weights are then
scaled so that the sum is as near to `L` as its direction allows; the error is `‖L‖ √(1 − ⟨ℓ, y⟩²)`, which never grows
and falls geometrically.

Reference: Campbell and Broderick, "Bayesian coreset construction via greedy iterative geodesic ascent", ICML 2018.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from betacores.constructions.hilbert import directions
from betacores.constructions.path import NOTHING, Path, Sparse, path_of, sparse, stopped

if TYPE_CHECKING:
    from jaxtyping import Float

# A cosine this near to one is a step of no length.
SMALLEST_STEP = 1e-14


def giga(
    vectors: Float[np.ndarray, "n s"],
    target: Float[np.ndarray, " s"],
    *,
    size: int,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the path of geodesic ascent, with places among the vectors as its indices.

    Parameters
    ----------
    vectors, target
        What to choose from, and what to sum to.
    size
        Number of steps, and so the largest number of rows.
    progress
        Called with the number of finished steps and their total.
    """
    units, length = directions(np.asarray(vectors, np.float64))
    wanted = np.linalg.norm(target)
    if not (wanted > 0 and length.any()):
        return NOTHING
    aim, usable = target / wanted, length > 0
    # Lengths of the vectors in units of the target's, so that a unit vector's weight becomes a row's.
    length = np.where(usable, length, 1.0) / wanted
    towards = units @ aim
    point, weights = np.zeros_like(aim), np.zeros(len(units))
    steps: list[Sparse] = []
    warnings: tuple[str, ...] = ()
    for m in range(1, size + 1):
        cosine, along = aim @ point, units @ point
        # Of every unit vector the part at right angles to the current point.
        across = np.sqrt(np.maximum(1 - along**2, 0))
        ahead = usable & (across > SMALLEST_STEP)
        gains = np.where(ahead, (towards - along * cosine) / np.where(ahead, across, 1.0), -np.inf)
        best = int(gains.argmax())
        if not gains[best] > SMALLEST_STEP:
            break
        to_best, to_point = towards[best] - cosine * along[best], cosine - towards[best] * along[best]
        share = to_best / (to_best + max(to_point, 0.0))
        point, weights = (1 - share) * point + share * units[best], (1 - share) * weights
        weights[best] += share
        norm = np.linalg.norm(point)
        point, weights = point / norm, weights / norm
        steps.append(sparse(weights * (aim @ point) / length))
        if warnings := stopped(progress, m, size):
            break
    return path_of(steps, size, warnings)
