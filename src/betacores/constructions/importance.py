"""Importance sampling: rows at random, those that say more about the parameters more often.

Row n is drawn with probability `σ_n/σ`, where `σ_n` is the length of its vector and σ the sum over all rows; drawn k
times in m it weighs `(k/m) σ/σ_n`. The weighted sum of vectors is then the sum over all rows on average.

Reference: Campbell and Broderick, "Automated scalable Bayesian inference via Hilbert coresets", JMLR 20 (2019).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.constructions.path import NOTHING, Path
from betacores.randomness import generator

if TYPE_CHECKING:
    from jaxtyping import Float, PRNGKeyArray


def importance(lengths: Float[np.ndarray, " n"], key: PRNGKeyArray, *, size: int) -> Path:
    """Return the path of importance samples of 1..size draws, each the beginning of the next.

    Parameters
    ----------
    lengths
        Of every row's vector.
    key
        Random key.
    size
        Number of draws. A row drawn again makes the coreset smaller.
    """
    lengths = np.asarray(lengths, np.float64)
    total = lengths.sum()
    if not total > 0:
        return NOTHING
    random = generator(key)
    drawn = random.choice(len(lengths), size, p=lengths / total)
    rows, first = np.unique(drawn, return_index=True)
    rows = rows[np.argsort(first)]
    counts = (drawn[:, None] == rows).cumsum(0)
    return Path(rows, counts / np.arange(1, size + 1)[:, None] * (total / lengths[rows]))
