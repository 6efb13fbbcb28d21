"""Simulated tables with a known share of dirty rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float


class Dirty(NamedTuple):
    """A table, its response (None if it has none), and which rows are dirty."""

    x: Float[np.ndarray, "rows columns"]
    y: Any
    outlier: Bool[np.ndarray, " rows"]


def contaminated_gaussian(seed: int, fraction: float, *, rows: int = 5000, columns: int = 20) -> Dirty:
    """Return the β-Cores paper's Gaussian table: clean rows N(1, I), a fraction of them replaced by N(10, I).

    Exactly ``round(fraction * rows)`` rows, at random places, are replaced.
    """
    random = np.random.default_rng(seed)
    x = random.normal(1.0, 1.0, (rows, columns))
    outlier = np.zeros(rows, bool)
    outlier[random.permutation(rows)[: round(fraction * rows)]] = True
    x[outlier] = random.normal(10.0, 1.0, (outlier.sum(), columns))
    return Dirty(x, None, outlier)


def contaminated_logistic(seed: int, fraction: float, *, rows: int = 20_000, columns: int = 10) -> Dirty:
    """Return a binary table in which a faulty source reports far-off covariates with the wrong label.

    Clean rows have standard normal covariates and labels by a logistic model. The faulty rows lie about six standard
    deviations out along the model's own direction, on either side, and carry the label the model finds impossible.
    """
    random = np.random.default_rng(seed)
    theta = random.normal(size=columns)
    theta *= 2.5 / np.linalg.norm(theta)
    x = random.normal(size=(rows, columns))
    outlier = np.zeros(rows, bool)
    outlier[random.permutation(rows)[: round(fraction * rows)]] = True
    side = random.choice([-1.0, 1.0], outlier.sum())
    x[outlier] = random.normal(0, 0.5, (outlier.sum(), columns)) + side[:, None] * 6 * theta / np.linalg.norm(theta)
    y = random.uniform(size=rows) < 1 / (1 + np.exp(-x @ theta))
    y[outlier] = side < 0
    return Dirty(x, np.where(y, "yes", "no"), outlier)
