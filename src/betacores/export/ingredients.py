"""What any tool needs to read a coreset as its model does: rows, weights, noise, and the prior as `θ = μ0 + S φ`.

The prior `N(μ0, Σ0)` is handed on as its mean and the Cholesky factor `S` of its covariance, `Σ0 = S Sᵀ`, so that
`φ ~ N(0, 1)` whatever the prior is. Samplers like that: in the estimators' coresets, which are in the units of the
table, `φ` are the coefficients of the robustly scaled columns, none of which is large or tied to the intercept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from betacores.models import (
    MODELS,
    GaussianMean,
    GaussianPrior,
    LinearRegression,
    Model,
    NegativeBinomialRegression,
    PoissonRegression,
)
from betacores.models.one_further import OneFurther

if TYPE_CHECKING:
    from jaxtyping import Float

    from betacores.coreset import Coreset


# The models there are programs for.
EXPORTED = ("gaussian-mean", "linear", "logistic", "noisy-logistic", "softmax", "poisson", "negative-binomial")


@dataclass(frozen=True, eq=False)
class Ingredients:
    """The numbers of a weighted posterior, in double precision.

    Attributes
    ----------
    z
        What multiplies the parameters: the covariates, followed by a one if there is an intercept. The rows themselves
        for a model of the mean.
    y
        The response; the place of the label, from zero, if it is one; None if there is none.
    weights
        One a row.
    prior_mean, prior_scale
        `μ0` and `S`.
    noise
        Standard deviation of a real response.
    spread
        Cholesky factor of the covariance of rows around their mean.
    log_exposure
        Logarithm of the exposures of counts; zero if there are none.
    dispersion
        Of counts, if it is known.
    rate
        Of flipped labels, if it is known.
    """

    z: Float[np.ndarray, "m p"]
    y: np.ndarray | None
    weights: Float[np.ndarray, " m"]
    prior_mean: Float[np.ndarray, " p"]
    prior_scale: Float[np.ndarray, "p p"]
    noise: float | None = None
    spread: Float[np.ndarray, "p p"] | None = None
    log_exposure: Float[np.ndarray, " m"] | None = None
    dispersion: float | None = None
    rate: float | None = None


def ingredients(coreset: Coreset) -> Ingredients:
    """Return the numbers of the posterior of a coreset of a built-in model, read with the ordinary likelihood."""
    check_exportable(coreset)
    model, x = coreset.model, np.asarray(coreset.X, np.float64)
    weights = np.asarray(coreset.weights, np.float64)
    p = model.parameter_count(x.shape[1])
    mean, scale = prior_factors(model, p)
    if isinstance(model, GaussianMean):
        whitener = np.asarray(model.whitener, np.float64)
        precision = whitener.T @ whitener if whitener.ndim == 2 else whitener**2
        return Ingredients(x, None, weights, mean, scale, spread=factor_of_inverse(precision, p))
    offset, own = np.zeros(len(x)), x
    if isinstance(model, COUNTS):
        offset, own = model.with_offset(offset, x), model.covariates(x)
    z = np.column_stack([own, np.ones(len(x))]) if has_intercept(coreset) else own
    if isinstance(model, COUNTS):
        dispersion = getattr(model, "dispersion", None)
        counts = np.asarray(coreset.y).astype(np.int64)
        return Ingredients(z, counts, weights, mean, scale, log_exposure=offset, dispersion=dispersion)
    if isinstance(model, LinearRegression):
        return Ingredients(z, np.asarray(coreset.y, np.float64), weights, mean, scale, noise=float(model.noise))
    assert coreset.labels is not None  # the other models have a response of labels
    rate = getattr(model, "rate", None)
    return Ingredients(z, places_of(np.asarray(coreset.y), coreset.labels), weights, mean, scale, rate=rate)


def places_of(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the places of labels, from zero."""
    return (y[:, None] == labels).argmax(1)


COUNTS = (PoissonRegression, NegativeBinomialRegression)


def prior_factors(model: Model, p: int) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, "p p"]]:
    """Return mean and factor of the prior of all parameters."""
    prior = prior_of(model)
    extra = model if isinstance(model, OneFurther) and model.further else None
    own = p - (extra is not None)
    mean = np.broadcast_to(np.asarray(prior.mean, np.float64), (own,))
    scale = factor_of_inverse(prior.precision, own)
    if extra is None:
        return mean, scale
    last, width = further_prior(extra)
    whole = np.zeros((p, p))
    whole[:own, :own], whole[-1, -1] = scale, width
    return np.append(mean, last), whole


def prior_of(model: Model) -> GaussianPrior:
    """Return the prior of the coefficients."""
    return model.coefficient_prior if isinstance(model, OneFurther) else model.prior


def further_prior(model: OneFurther) -> tuple[float, float]:
    """Return mean and standard deviation of the prior of the parameter that is no coefficient."""
    mean, precision = (float(np.asarray(part).ravel()[0]) for part in model.further_prior)
    return mean, precision**-0.5


def check_exportable(coreset: Coreset) -> None:
    """Refuse a coreset that an ordinary weighted program would read wrongly, or not at all."""
    check_readable(coreset)
    if coreset.model.name not in EXPORTED or type(coreset.model) is not MODELS[coreset.model.name]:
        raise ValueError(
            f"model: there is no program for {coreset.model.name!r}, only for the built-in models "
            f"({', '.join(map(repr, EXPORTED))}); write one from coreset.to_frame(), with the weight of a row times "
            "its log-likelihood."
        )


def check_readable(coreset: Coreset) -> None:
    """Refuse a coreset whose weights are not for the ordinary likelihood, or which has none."""
    if coreset.readout == "beta" and coreset.beta != 0:
        raise ValueError(
            f"readout: the coreset was built to be read with the β-likelihood (readout='beta', β = {coreset.beta:g}), "
            "and its weights are wrong for the ordinary likelihood of other tools; build it with readout='classical', "
            "or draw with coreset.posterior()."
        )
    if not len(coreset):
        raise ValueError("The coreset is empty, and its posterior the prior; there is nothing to hand on.")


def has_intercept(coreset: Coreset) -> bool:
    """Return whether the last parameter is a constant of the linear predictor."""
    return bool(getattr(coreset.model, "intercept", False))


def factor_of_inverse(precision: np.ndarray | float, p: int) -> Float[np.ndarray, "p p"]:
    """Return the Cholesky factor of the covariance whose inverse is a number, one a parameter, or a matrix."""
    precision = np.asarray(precision, np.float64)
    if precision.ndim == 2:
        try:
            return np.linalg.cholesky(np.linalg.inv(precision))
        except np.linalg.LinAlgError:
            raise ValueError(
                "prior: its covariance has no digits left; a column whose values are a hundred million times as large "
                "as they differ does that. Subtract a typical value from it before summarising."
            ) from None
    return np.diag(np.broadcast_to(precision**-0.5, (p,)))
