"""What to say where the noise is skewed: a robust fit then follows the bulk of the rows, and their mean is elsewhere.

Dirt far off stands apart from the rest, and noise of heavy tails lies on both sides. Skewed noise has a shoulder on one
side: many rows a few standard deviations of the bulk away, and hardly any so far on the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.models import LinearRegression, Model
from betacores.models.predictors import linear_predictor

if TYPE_CHECKING:
    from jaxtyping import Float

    from betacores.sources import ArraySource

# Where a shoulder begins and ends, in standard deviations of the bulk.
BEGINS, ENDS = 2.5, 6.0
# A shoulder holds this share of the rows at least, and so many times those on the other side; six in a thousand rows
# of normal noise are so far off on either side.
LEAST, TIMES = 0.02, 4.0
TRUSTED = 0.5


def told_of_one_side(model: Model, sample: ArraySource, theta: Float[np.ndarray, " p"], beta: float) -> list[str]:
    """Return a note for the person if the noise is skewed, with what that means for predictions.

    Parameters
    ----------
    model, sample
        The model, and a uniform sample of the rows, weighted by the trust in them.
    theta
        Mode of the β-posterior.
    beta
        Of that posterior; the ordinary one follows the mean.
    """
    if not isinstance(model, LinearRegression) or sample.y is None or beta == 0:
        return []
    seen = np.asarray(sample.weights) >= TRUSTED
    away = (sample.y[seen] - linear_predictor(model, sample.x[seen], theta)) / float(model.noise)
    if not len(away) or not np.isfinite(away).all():
        return []
    side = 1.0 if np.sum((away > BEGINS) & (away < ENDS)) >= np.sum((away < -BEGINS) & (away > -ENDS)) else -1.0
    shoulder, other = (float(np.mean((s * away > BEGINS) & (s * away < ENDS))) for s in (side, -side))
    beyond = float(np.mean(side * away >= ENDS))
    if shoulder < LEAST or shoulder < TIMES * other or beyond > shoulder:
        return []
    gap = side * float(np.clip(away, -ENDS, ENDS).mean()) * float(model.noise)
    where, so = ("above", "higher") if side > 0 else ("below", "lower")
    return [
        f"noise: skewed, {shoulder:.1%} of the rows lie {BEGINS:g} to {ENDS:g} standard deviations {where} the fit and "
        f"{other:.1%} as far on the other side; the fit follows the bulk, and means are {gap:.2g} {so} at least. If "
        "those rows are no errors and means are wanted, take the logarithm of the response or beta=0"
    ]
