"""Units: tables come in any, the models' default prior N(0, 1) is for columns of about one.

A column becomes `(x − centre) / scale` with its median and robust scale, a column of two values becomes 0 and 1, a real
response becomes `(y − level) / unit`. With coefficients `θ` and intercept `b` there, those of the table as given are

    coefficient_j = unit · θ_j / scale_j,     intercept = level + unit · (b − Σ_j θ_j centre_j / scale_j),

and the noise is `unit` times as large. The prior goes along: for rows as given it is the same belief in other words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from betacores.models import (
    GaussianMean,
    GaussianPrior,
    LinearRegression,
    LogisticRegression,
    Model,
    PoissonRegression,
    ScaledPredictor,
    SoftmaxRegression,
)
from betacores.models.one_further import OneFurther
from betacores.robust import robust_location_scale
from betacores.sources.base import LARGEST_CELL
from betacores.tables.columns import SEEN_ROWS

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True)
class Scaling:
    """Where columns and response are centred, and in what units they are measured.

    ``varies`` tells the columns that are not constant, which alone are kept; ``centre`` and ``scale`` are theirs.
    """

    varies: Bool[np.ndarray, " columns"]
    centre: Float[np.ndarray, " kept"]
    scale: Float[np.ndarray, " kept"]
    level: float = 0.0
    unit: float = 1.0

    def table(self, x: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, "n kept"]:
        """Return rows in these units."""
        return _within(_columns(x, self.varies), self.centre, self.scale)

    def response(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return a real response in these units."""
        return _within(np.asarray(y, np.float64), self.level, self.unit)

    def undone(self, x: Float[np.ndarray, "n kept"]) -> Float[np.ndarray, "n kept"]:
        """Return rows in the units they were given in."""
        return np.asarray(x, np.float64) * self.scale + self.centre

    def response_undone(self, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return a real response in the units it was given in."""
        return np.asarray(y, np.float64) * self.unit + self.level

    def model(self, model: Model) -> Model:
        """Return a model of rows in these units, with its default prior, as one of rows as they were given."""
        if self.is_identity:
            return model
        if isinstance(model, GaussianMean):
            return GaussianMean(self.scale**2, GaussianPrior(self.centre, self.scale**-2.0))
        if isinstance(model, LogisticRegression):
            return LogisticRegression(prior=self._prior())
        if isinstance(model, PoissonRegression):
            return PoissonRegression(prior=self._prior())
        if isinstance(model, OneFurther):
            return model.moved(self._prior(), np.linalg.inv(self._way_back()))
        if isinstance(model, SoftmaxRegression):
            return model.with_units(self._prior().precision)
        if isinstance(model, ScaledPredictor):
            # A shape has no units; a scale has those of the response.
            units = {"typical": float(model.typical) * self.unit} if model.escapes_upwards else {}
            return model.replaced(coefficient_prior=self._prior(), **units)
        assert isinstance(model, LinearRegression)  # models of other kinds are taken as they are
        return LinearRegression(float(model.noise) * self.unit, prior=self._prior())

    @property
    def is_identity(self) -> bool:
        """Whether nothing is moved and nothing is scaled."""
        return bool((self.centre == 0).all() and (self.scale == 1).all() and self.level == 0 and self.unit == 1)

    def _prior(self) -> GaussianPrior:
        """Return the prior N(0, 1) of coefficients and intercept as one of those of the table as given."""
        back = self._way_back()
        return GaussianPrior(np.append(np.zeros(len(self.scale)), self.level), back.T @ back)

    def _way_back(self) -> Float[np.ndarray, "q q"]:
        """Return what turns parameters for the table as given into those for these units, less the level's part."""
        # θ_j = coefficient_j scale_j / unit, b = (intercept − level + Σ_j coefficient_j centre_j) / unit.
        columns = len(self.scale)
        back = np.zeros((columns + 1, columns + 1))
        back[range(columns), range(columns)] = self.scale / self.unit
        back[columns] = np.append(self.centre, 1.0) / self.unit
        return back


def as_given(x: Float[np.ndarray, "n columns"]) -> Scaling:
    """Return the units the table is in; constant columns, which no model can use, are left out."""
    varies = _varying(x)
    return Scaling(varies, np.zeros(varies.sum()), np.ones(varies.sum()))


def robust_scaling(x: Float[np.ndarray, "n columns"], y: Float[np.ndarray, " n"] | None = None) -> Scaling:
    """Return units in which columns, and a real response if there is one, are of about one.

    Up to half of the cells of a column may be garbage.
    """
    varies = _varying(x)
    kept = _columns(x, varies)
    some = slice(None, None, -(-len(kept) // SEEN_ROWS))
    low, high = kept.min(0), kept.max(0)
    two_valued = ((kept == low) | (kept == high)).all(0)
    with np.errstate(over="ignore"):
        centre, scale = robust_location_scale(kept[some])
        centre, scale = np.where(two_valued, low, centre), np.where(two_valued, high - low, scale)
        level, unit = (0.0, 1.0) if y is None else robust_location_scale(np.asarray(y)[some, None])
    scale, unit = (np.where(np.isfinite(part), part, 1.0) for part in (scale, unit))
    return Scaling(varies, centre, scale, np.asarray(level).item(), np.asarray(unit).item())


def _varying(x: Float[np.ndarray, "n columns"]) -> Bool[np.ndarray, " columns"]:
    varies = x.min(0) < x.max(0)
    if not varies.any():
        raise ValueError("X: every column is constant, and says nothing about the rows; pass one that varies.")
    return varies


def _columns(x: np.ndarray, varies: np.ndarray) -> np.ndarray:
    return np.asarray(x if varies.all() else x[:, varies], np.float64)


def _within(values: np.ndarray, centre: np.ndarray | float, scale: np.ndarray | float) -> np.ndarray:
    # What single precision can take; absurd cells stay absurd.
    with np.errstate(over="ignore"):
        return np.clip((values - centre) / scale, -LARGEST_CELL, LARGEST_CELL)
