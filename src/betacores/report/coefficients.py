"""Coefficients three times: robust on all rows, from the coreset, and classical on all rows.

The first two should agree, or the coreset is too small; the third differs from them by what the outliers do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.coreset import Coreset
from betacores.models import GaussianMean
from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import LinearPredictor
from betacores.precision import single_precision
from betacores.report.fits import Fit, Fitting, sampled
from betacores.report.table import Table
from betacores.report.words import number
from betacores.robust import robust_location_scale

if TYPE_CHECKING:
    from jaxtyping import Float

MOST_PARAMETERS = 40
# What a coefficient changes, by the kind of the response.
CHANGES = {"binary": "log-odds", "classes": "log-odds", "count": "the logarithm of the mean"}
KINDS = ("robust", "coreset", "classical")
# On the way from one β to a larger one.
RUNGS = 4


class Fits(NamedTuple):
    """The three posteriors, and the robust parameters that scores are read at."""

    robust: Fit
    coreset: Fit
    classical: Fit
    scoring: Float[np.ndarray, " p"]
    rows: int


def fits_of(coreset: Coreset, table: Table) -> Fits:
    """Fit all rows robustly and classically, and the coreset as it is read."""
    model, origin = coreset.model, table.origin
    some = sampled(coreset.row_count, len(coreset.parameter_names))
    stands_for = coreset.row_count / len(some)
    y = None if origin.y is None else origin.y[some]
    everything = Fitting(model, origin.x[some], y, coreset.labels)
    trust = np.ones(len(some)) if coreset.covariate_scores is None else coreset.covariate_scores[some]
    read_beta = coreset.beta if coreset.readout == "beta" else 0.0
    with single_precision():
        kept, weights = Fitting(model, coreset.X, coreset.y, coreset.labels), coreset.weights
        if not len(coreset):
            # Nothing was kept, and the prior is all there is.
            kept, weights = everything.first(), np.zeros(1)
        small = kept.fit(weights, read_beta)
        # Of the modes that dirty rows make, the coreset is near the one that was chosen.
        robust = everything.fit(stands_for * trust, coreset.beta, small.mean)
        classical = everything.fit(np.full(len(some), stands_for), 0.0, robust.mean)
        scoring = robust.mean
        score_beta = float(coreset.info.settings.get("score_beta") or coreset.beta)
        if score_beta > coreset.beta:
            for beta in np.linspace(coreset.beta, score_beta, RUNGS + 1)[1:]:
                scoring = everything.fit(stands_for * trust, float(beta), scoring).mean
    return Fits(robust, small, classical, scoring, len(some))


def coefficients_section(coreset: Coreset, table: Table, fits: Fits) -> dict[str, Any]:
    """Return every parameter's estimates and intervals, in the units of the table and in comparable ones."""
    names = coreset.parameter_names
    shift = np.abs(fits.classical.mean - fits.robust.mean) / np.where(fits.robust.spread > 0, fits.robust.spread, 1.0)
    order = np.arange(len(names))
    if len(names) > MOST_PARAMETERS:
        order = np.sort(np.argsort(-shift, kind="stable")[:MOST_PARAMETERS])
    common, axis, unit = _in_common_units(coreset, table)
    scaled = {kind: _scaled(getattr(fits, kind), *common) for kind in KINDS}
    return {
        "total": len(names),
        "rows": fits.rows,
        "beta": coreset.beta,
        "weighted": coreset.info.settings.get("sample_weight") is not None,
        "converged": all(getattr(fits, kind).converged for kind in KINDS),
        "axis": axis,
        "unit": unit,
        "largest_shift": names[int(np.argmax(shift))] if len(names) else None,
        "parameters": [
            {
                "name": names[j],
                "shift": float(shift[j]),
                **{kind: _interval(getattr(fits, kind), j) for kind in KINDS},
                "scaled": {kind: _interval(scaled[kind], j) for kind in KINDS},
            }
            for j in order.tolist()
        ],
    }


def _interval(fit: Fit, j: int) -> dict[str, Any]:
    value, half = float(fit.mean[j]), 1.96 * float(fit.spread[j])
    low, high = value - half, value + half
    return {
        "value": value,
        "low": low,
        "high": high,
        "text": number(value),
        "interval": f"{number(low)} to {number(high)}",
    }


def _scaled(fit: Fit, matrix: np.ndarray, offset: np.ndarray) -> Fit:
    return Fit(matrix @ fit.mean + offset, matrix @ fit.covariance @ matrix.T, fit.converged)


def _in_common_units(coreset: Coreset, table: Table) -> tuple[tuple[np.ndarray, np.ndarray], str, str]:
    """Return the map to parameters that can be drawn on one axis, what it is called, and what that means."""
    model, p = coreset.model, len(coreset.parameter_names)
    matrix, offset = np.eye(p), np.zeros(p)
    x = table.origin.x
    centre, scale = robust_location_scale(x[:: -(-len(x) // 20_000)])
    if isinstance(model, (LinearPredictor, SeveralPredictors)):
        centre, scale = (model.covariates(part[None])[0] for part in (centre, scale))
        columns, intercept = len(centre), int(model.intercept)
        one = np.eye(columns + intercept)
        one[range(columns), range(columns)] = scale
        if intercept:
            one[-1, :columns] = centre
        whole = np.kron(np.eye(model.vectors if isinstance(model, SeveralPredictors) else 1), one)
        # Further parameters have no units.
        matrix[: len(whole), : len(whole)] = whole
        what = CHANGES.get(model.response, "the response")
        meaning = f"how far {what} changes when a column changes by its robust standard deviation" + (
            "; the intercept is that of a row of medians" if model.intercept else ""
        )
        return (matrix, offset), "coefficient in comparable units", meaning
    if isinstance(model, GaussianMean):
        meaning = "the mean's distance from the median of its column, in robust standard deviations"
        return (np.diag(1 / scale), -centre / scale), "mean in comparable units", meaning
    return (matrix, offset), "parameter", "the value of a parameter"
