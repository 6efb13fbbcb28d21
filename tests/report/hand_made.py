"""Coresets made by hand: scores by formulas written out here, so that reports can be tested without a construction."""

from __future__ import annotations

import numpy as np

from betacores.constructions.path import Path
from betacores.coreset import Coreset
from betacores.groups import Groups
from betacores.info import Info
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Model
from betacores.origin import Origin
from betacores.quality import KLEstimate
from betacores.scores import beliefs_over

SCORE_BETA = 0.5


def coreset_of(
    model: Model,
    x: np.ndarray,
    y: np.ndarray | None,
    theta: np.ndarray,
    *,
    trust: np.ndarray | None = None,
    kept: int = 30,
    columns: list[str] | None = None,
    groups: list[str] | None = None,
    info: dict | None = None,
    labels: np.ndarray | None = None,
    **origin: object,
) -> Coreset:
    """Return a coreset of evenly weighted believed rows, with scores at a parameter."""
    scores = scores_at(model, x, y, theta, labels)
    believed = scores if trust is None else scores * trust
    indices = np.flatnonzero(believed > 0.9)[:kept]
    weights = np.full(len(indices), len(x) / max(len(indices), 1))
    settings = {"method": "pursuit", "size": kept, "readout": "classical", "score_beta": SCORE_BETA, "seed": 7}
    told = {"kl_estimate": KLEstimate(0.05, 0.01), "timings": {"mode": 0.5}, "notes": ["a note"]} | (info or {})
    coded = None
    if groups is not None:
        names = list(dict.fromkeys(groups))
        coded = Groups(names, np.array([names.index(group) for group in groups]))
    response = None if y is None else y[indices]
    return Coreset(
        indices=indices,
        weights=weights,
        X=x[indices],
        y=response,
        scores=scores,
        covariate_scores=trust,
        contamination=float(np.clip(1 - believed.mean(), 0, 1)),
        contamination_interval=beliefs_over(scores, trust).interval,
        model=model,
        method="pursuit",
        beta=SCORE_BETA,
        info=Info(settings, **told),
        columns=columns or [f"x{j}" for j in range(x.shape[1])],
        labels=labels,
        path=Path(indices, weights[None]),
        path_X=x[indices],
        path_y=response,
        grouping=coded,
        origin=Origin(x, y, **origin),
    )


def scores_at(model: Model, x: np.ndarray, y: np.ndarray | None, theta: np.ndarray, labels: np.ndarray | None):
    """Return `p^β / ∫ p^(1+β)` of every row."""
    b = SCORE_BETA
    if isinstance(model, GaussianMean):
        d = x.shape[1]
        return np.exp(-0.5 * b * ((x - theta) ** 2).sum(1)) * (1 + b) ** (d / 2)
    eta = x @ theta[:-1] + theta[-1]
    if isinstance(model, LinearRegression):
        return np.exp(-0.5 * b * ((y - eta) / model.noise) ** 2) * np.sqrt(1 + b)
    assert isinstance(model, LogisticRegression)
    p = 1 / (1 + np.exp(-np.where(y == labels[1], eta, -eta)))
    return p**b / (p ** (1 + b) + (1 - p) ** (1 + b))


def linear_table(rows: int = 400, seed: int = 0):
    """Return a linear table of three correlated columns, and its parameters."""
    random = np.random.default_rng(seed)
    base = random.normal(size=rows)
    x = np.column_stack(
        [base + 0.1 * random.normal(size=rows), base + 0.1 * random.normal(size=rows), random.normal(size=rows)]
    )
    theta = np.array([1.0, -2.0, 0.5, 10.0])
    return x, x @ theta[:-1] + theta[-1] + 0.5 * random.normal(size=rows), theta


def logistic_table(rows: int = 400, seed: int = 0):
    """Return a logistic table of three columns with words for labels, and its parameters."""
    random = np.random.default_rng(seed)
    x, theta = random.normal(size=(rows, 3)), np.array([2.0, -1.0, 0.0, 0.5])
    y = np.where(random.uniform(size=rows) < 1 / (1 + np.exp(-x @ theta[:-1] - theta[-1])), "yes", "no")
    return x, y, theta
