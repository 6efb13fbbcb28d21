"""Linear predictors of rows in double precision, for what is done once and needs the digits: starts, notes, reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import LinearPredictor, Model

if TYPE_CHECKING:
    from jaxtyping import Float


def features_of(model: LinearPredictor | SeveralPredictors, x: np.ndarray) -> Float[np.ndarray, "n q"]:
    """Return `z` of rows: the covariates, and a one for the intercept."""
    own = model.covariates(x)
    return np.column_stack([own, np.ones(len(x))]) if model.intercept else own


def linear_predictors(
    model: LinearPredictor | SeveralPredictors, x: np.ndarray, theta: np.ndarray
) -> Float[np.ndarray, "n m"]:
    """Return `z·θ` of rows, one column a vector of coefficients, in double precision."""
    x = np.asarray(x, np.float64)
    z = features_of(model, x)
    vectors = model.vectors if isinstance(model, SeveralPredictors) else 1
    coefficients = np.asarray(theta)[: vectors * z.shape[1]].reshape(vectors, -1)
    return model.with_offset((z @ coefficients.T).T, x).T


def linear_predictor(
    model: LinearPredictor | SeveralPredictors, x: np.ndarray, theta: np.ndarray
) -> Float[np.ndarray, " n"]:
    """Return the only linear predictor of rows in double precision."""
    return linear_predictors(model, x, theta)[:, 0]


def has_one_predictor(model: Model) -> TypeGuard[LinearPredictor | SeveralPredictors]:
    """Tell whether a number or one of two labels depends on a row through one linear predictor."""
    return isinstance(model, LinearPredictor) or (isinstance(model, SeveralPredictors) and model.response == "binary")
