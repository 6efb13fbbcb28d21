"""What a construction returns: the coreset after every outer iteration, so that one run gives every size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Path(NamedTuple):
    """Rows in order of insertion, and their weights after every outer iteration.

    ``weights[m - 1]`` are the weights after iteration m; rows not inserted by then have weight zero. ``trace`` holds
    what the construction has to say of every iteration.
    """

    indices: Int[np.ndarray, " k"]
    weights: Float[np.ndarray, "m k"]
    warnings: tuple[str, ...] = ()
    trace: dict[str, list] | None = None

    def at(self, iteration: int) -> tuple[Int[np.ndarray, " k"], Float[np.ndarray, " k"]]:
        """Return the rows of positive weight after an iteration, and their weights."""
        weights = self.weights[iteration - 1]
        kept = weights > 0
        return self.indices[kept], weights[kept]
