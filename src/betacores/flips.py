"""Whether two labels look flipped at random: what a logistic model cannot see, and another family can undo.

With a share r of flipped labels the probability of a label is `r + (1 − 2r) sigmoid(η)`: a flatter curve whose ends do
not go to 0 and 1. No row of it looks dirty, and no β tells it from smaller coefficients. Along the linear predictor of
the mode that was found, a line `s η + b` in place of `η` takes the flatness back, and the gain in likelihood from the
best r on a grid against r = 0 says whether the ends are those of flips. By chance alone `2 gain` exceeds 10 once in a
thousand tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from betacores.models import LogisticRegression, Model
from betacores.models.predictors import linear_predictor

if TYPE_CHECKING:
    from jaxtyping import Float

    from betacores.sources import ArraySource

RATES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35)
# Twice the gain in log-likelihood from which on one speaks of flips.
CLEAR = 10.0
SEEN_ROWS, TURNS = 5000, 12
# Rates are tried in order; after so many that were worse than an earlier one the others would be worse still.
FALLEN = 3
# Dirt that is seen is another matter: wrong labels far out look like flips, and are best left to β.
MOST_SEEN = 0.03


def told_of_flips(model: Model, sample: ArraySource, theta: Float[np.ndarray, " p"], contamination: float) -> list[str]:
    """Return a note for the person if labels look flipped at random, with the family that models flips.

    Parameters
    ----------
    model, sample
        The model, and a uniform sample of the rows.
    theta
        Mode of the β-posterior.
    contamination
        Share of the rows that were found not to fit.
    """
    if not isinstance(model, LogisticRegression) or sample.y is None or contamination > MOST_SEEN:
        return []
    some = slice(None, None, -(-len(sample.x) // SEEN_ROWS) or 1)
    y, weights = (np.asarray(a[some], np.float64) for a in (sample.y, sample.weights))
    eta = linear_predictor(model, sample.x[some], theta)
    if not np.isfinite(eta).all():
        return []
    fits, line = [], np.array([1.0, 0.0])
    for rate in RATES:
        # From where the last rate has led: lines of rates next to each other are alike.
        fit, line = _likelihood(eta, y, weights, rate, line)
        fits.append(fit)
        if len(fits) > FALLEN and max(fits) > max(fits[-FALLEN:]):
            break
    best = int(np.argmax(fits))
    if 2 * (fits[best] - fits[0]) < CLEAR:
        return []
    return [
        f"labels: about {RATES[best]:.0%} look flipped at random, which no beta undoes; model 'noisy-logistic' does, "
        "unless the log-odds are not linear in the columns, which looks alike"
    ]


def _likelihood(
    eta: np.ndarray, y: np.ndarray, weights: np.ndarray, rate: float, line: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the largest log-likelihood of labels with such a rate along a line `s η + b`, and the line.

    By Fisher scoring, from a line that is near.
    """
    reached = -np.inf
    z = np.column_stack([eta, np.ones_like(eta)])
    for _ in range(TURNS):
        up = expit(z @ line)
        p = rate + (1 - 2 * rate) * np.where(y > 0, up, 1 - up)
        p = np.clip(p, 1e-12, 1 - 1e-12)
        value = float(weights @ np.log(p))
        if value <= reached + 1e-6:
            break
        reached = value
        slope = (1 - 2 * rate) * up * (1 - up)
        information = (z * (weights * slope**2 / (p * (1 - p)))[:, None]).T @ z + 1e-9 * np.eye(2)
        step = np.linalg.solve(information, z.T @ (weights * y * slope / p))
        line = line + np.clip(step, -2.0, 2.0)
    return reached, line
