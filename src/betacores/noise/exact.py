"""What to say of a response that its columns leave no doubt about: most often they were computed from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.noise.estimate import robust_line

if TYPE_CHECKING:
    from jaxtyping import Float

# Noise below this share of the response's spread is none; columns that do less than this share of the work go unnamed.
EXACT, NAMED = 1e-3, 0.05
MOST_NAMED, SEEN_ROWS = 3, 5000


def told_of_exactness(
    x: Float[np.ndarray, "n columns"], y: Float[np.ndarray, " n"], columns: list[str], noise: float
) -> list[str]:
    """Return a note for the person if the columns say the response all but exactly, with those that say most of it.

    Parameters
    ----------
    x, y, columns
        Covariates and responses of a sample of rows, and the columns' names.
    noise
        Standard deviation around the line.
    """
    some = slice(None, None, -(-len(y) // SEEN_ROWS) or 1)
    x, y = np.asarray(x[some], np.float64), np.asarray(y[some], np.float64)
    low, high = np.quantile(y, [0.05, 0.95]) if len(y) else (0.0, 0.0)
    if len(y) <= x.shape[1] + 1 or not noise < EXACT * (high - low):
        return []
    slopes = robust_line(x, y, True)[0][: x.shape[1]]
    work = np.abs(slopes) * (np.quantile(x, 0.95, axis=0) - np.quantile(x, 0.05, axis=0))
    telling = [columns[j] for j in np.argsort(-work)[:MOST_NAMED] if work[j] > NAMED * work.max()]
    named = f", most of all {', '.join(map(repr, telling))}" if telling else ""
    return [f"noise: next to none, the columns say the response exactly{named}; leave out what was computed from it"]
