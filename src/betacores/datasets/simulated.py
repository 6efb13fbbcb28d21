"""Simulated tables with a known share of dirty rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
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


GAUSSIAN_OUTLIERS = ("cluster at 10", "cluster at 4 sd", "cluster at 1e6", "scatter", "Cauchy cloud")


def gaussian_with(kind: str, seed: int, fraction: float, *, rows: int = 5000, columns: int = 20) -> Dirty:
    """Return clean rows N(1, I), a fraction of them replaced by outliers of one of the `GAUSSIAN_OUTLIERS`.

    ``"cluster at 10"``: N(10, I), the β-Cores paper's. ``"cluster at 4 sd"``: a tight cluster, N(c, 0.1² I), with c at
    distance 4 from the clean mean, less than a clean row's typical distance. ``"cluster at 1e6"``: the same at distance
    a million. ``"scatter"``: N(0, 10² I). ``"Cauchy cloud"``: independent Cauchy cells around the clean mean.
    """
    random = np.random.default_rng(seed)
    x = random.normal(1.0, 1.0, (rows, columns))
    outlier = np.zeros(rows, bool)
    outlier[random.permutation(rows)[: round(fraction * rows)]] = True
    count = int(outlier.sum())
    direction = random.normal(size=columns)
    direction /= np.linalg.norm(direction)
    noise = random.normal(size=(count, columns))
    x[outlier] = {
        "cluster at 10": 10.0 + noise,
        "cluster at 4 sd": 1.0 + 4.0 * direction + 0.1 * noise,
        "cluster at 1e6": 1.0 + 1e6 * direction + 0.1 * noise,
        "scatter": 10.0 * noise,
        "Cauchy cloud": 1.0 + random.standard_cauchy((count, columns)),
    }[kind]
    return Dirty(x, None, outlier)


def corrupted_logistic(seed: int, fraction: float, *, rows: int = 30_000, columns: int = 10) -> Dirty:
    """Return a binary table with the β-Cores paper's corruption.

    Clean rows have standard normal covariates and labels by a logistic model. Half of the columns, the same for all
    rows, are replaced by N(0, 5²) noise in a random fraction of the rows; in another, drawn independently, labels are
    flipped.
    """
    random = np.random.default_rng(seed)
    theta = random.normal(size=columns)
    theta *= 4 / np.linalg.norm(theta)
    x = random.normal(size=(rows, columns))
    y = random.uniform(size=rows) < 1 / (1 + np.exp(-x @ theta))
    noisy, flipped = (random.permutation(rows)[: round(fraction * rows)] for _ in range(2))
    hit = random.permutation(columns)[: columns // 2]
    x[np.ix_(noisy, hit)] = random.normal(0, 5, (len(noisy), len(hit)))
    y[flipped] = ~y[flipped]
    outlier = np.zeros(rows, bool)
    outlier[noisy] = outlier[flipped] = True
    return Dirty(x, y.astype(int), outlier)


def flipped_logistic(seed: int, fraction: float, *, rows: int = 30_000, columns: int = 10) -> Dirty:
    """Return a binary table in which all flipped labels come from one region: the rows farthest along a direction."""
    random = np.random.default_rng(seed)
    theta = random.normal(size=columns)
    theta *= 4 / np.linalg.norm(theta)
    x = random.normal(size=(rows, columns))
    y = random.uniform(size=rows) < 1 / (1 + np.exp(-x @ theta))
    direction = random.normal(size=columns)
    outlier = np.zeros(rows, bool)
    outlier[np.argsort(-x @ direction)[: round(fraction * rows)]] = True
    y[outlier] = ~y[outlier]
    return Dirty(x, y.astype(int), outlier)


def shifted_linear(
    seed: int, fraction: float, shift: float = 10.0, *, rows: int = 5000, columns: int = 10, noise: float = 0.5
) -> Dirty:
    """Return a real response linear in standard normal covariates, in a fraction of rows shifted by noise scales."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, columns))
    y = x @ random.normal(size=columns) + 0.3 + noise * random.normal(size=rows)
    outlier = np.zeros(rows, bool)
    outlier[random.permutation(rows)[: round(fraction * rows)]] = True
    y[outlier] += shift * noise
    return Dirty(x, y, outlier)
