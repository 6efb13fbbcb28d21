"""Programs for scikit-learn: weights go in as ``sample_weight``, the prior as the matching penalty.

The mode of the posterior of `φ` in `θ = μ0 + S φ` is a fit with penalty `½‖φ‖²` to the columns `z S`. In scikit-learn's
terms that is ``C = 1`` for logistic and ``alpha = noise²`` for linear regression. An intercept of scikit-learn's own is
not penalised, that of the models is: it is a column of ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.export.reading import imports, opening, reading

if TYPE_CHECKING:
    from betacores.coreset import Coreset

_NOTE = """
# scikit-learn finds the mode of the posterior, and no more: no draws, no standard deviations, no intervals. For these
# use coreset.posterior(), Stan or NumPyro.
"""
_PLAIN = """\
# The penalty is the prior, {what}, which the intercept has too: a column of ones, not fit_intercept.
"""
_SHIFTED = """\
# The penalty is the prior: theta = prior_mean + prior_scale @ phi, and phi is penalised by half its square.
"""
_END = """for name, value in zip(names, theta):
    print(f"{name}: {value:.4g}")
"""


def program(coreset: Coreset, folder: str | Path) -> str:
    """Return a Python program that reads a saved coreset and fits it with scikit-learn."""
    name = coreset.model.name
    if name not in _ESTIMATORS:
        raise ValueError(f"tool: scikit-learn has no weighted model like {name!r}; choose 'stan' or 'numpyro'.")
    first = opening(coreset, "scikit-learn", "scikit-learn and pyarrow")
    if name == "logistic":
        _check_logistic(coreset)
    if name == "softmax":
        _check_softmax(coreset)
    if name == "poisson" and np.any(coreset.model.prior.mean):
        raise ValueError(_NO_MEAN.format(what="Poisson"))
    return (
        first
        + imports(coreset, f"from sklearn.linear_model import {_ESTIMATORS[name]}")
        + "\n"
        + reading(coreset, folder)
        + _NOTE
        + _WAYS[name](_is_plain(coreset))
        + _END
    )


def _is_plain(coreset: Coreset) -> bool:
    """Return whether the prior is N(0, a number), as scikit-learn's own penalties are."""
    prior = coreset.model.prior
    return np.ndim(prior.precision) == 0 and not np.any(prior.mean)


_NO_MEAN = (
    "prior: its mean is not zero, and scikit-learn's {what} regression knows no other; choose 'stan' or 'numpyro'."
)


def _check_softmax(coreset: Coreset) -> None:
    if coreset.model.units() is None:  # type: ignore[attr-defined]
        raise ValueError(
            "prior: it prefers some classes to others, and scikit-learn's penalty does not; choose 'stan' or 'numpyro'."
        )
    assert coreset.y is not None  # softmax regression has a response
    assert coreset.labels is not None
    missing = [label for label in coreset.labels.tolist() if label not in coreset.y.tolist()]
    if missing:
        raise ValueError(
            f"y: no row of the coreset has the label {missing[0]!r}, and scikit-learn needs all; "
            "choose 'stan' or 'numpyro', or a larger size."
        )


def _check_logistic(coreset: Coreset) -> None:
    if np.any(coreset.model.prior.mean):
        raise ValueError(_NO_MEAN.format(what="logistic"))
    assert coreset.y is not None  # logistic regression has a response
    if len(set(coreset.y.tolist())) < 2:
        raise ValueError(
            f"y: all rows of the coreset have the label {coreset.y.tolist()[0]!r}, and scikit-learn needs both; "
            "choose 'stan' or 'numpyro', or a larger size."
        )


def _logistic(plain: bool) -> str:
    fit = (
        'model = LogisticRegression(C={c}, fit_intercept=False, solver="newton-cholesky", tol=1e-10)\n'
        "model.fit({columns}, y, sample_weight=weights)\n"
    )
    if plain:
        what = _PLAIN.format(what="C = its variance")
        return what + fit.format(c="prior_scale[0, 0] ** 2", columns="z") + "theta = model.coef_[0]\n"
    return _SHIFTED + fit.format(c="1.0", columns="z @ prior_scale") + "theta = prior_scale @ model.coef_[0]\n"


def _linear(plain: bool) -> str:
    if plain:
        return _PLAIN.format(what="alpha = noise² / its variance") + (
            "model = Ridge(alpha=noise**2 / prior_scale[0, 0] ** 2, fit_intercept=False)\n"
            "model.fit(z, y, sample_weight=weights)\n"
            "theta = model.coef_\n"
        )
    return _SHIFTED + (
        "model = Ridge(alpha=noise**2, fit_intercept=False)\n"
        "model.fit(z @ prior_scale, y - z @ prior_mean, sample_weight=weights)\n"
        "theta = prior_mean + prior_scale @ model.coef_\n"
    )


def _mean(plain: bool) -> str:
    del plain  # one way serves all
    return (
        _SHIFTED
        + """# The weighted mean stands for all rows; divided by the rows' spread, its columns are independent.
centre = np.average(x, axis=0, weights=weights)
whiten = np.linalg.inv(spread)
model = Ridge(alpha=1.0, fit_intercept=False)
model.fit(whiten @ prior_scale, whiten @ (centre - prior_mean), sample_weight=np.full(len(names), weights.sum()))
theta = prior_mean + prior_scale @ model.coef_
"""
    )


def _softmax(plain: bool) -> str:
    del plain  # one way serves all
    return """# The penalty is the prior. Every class has coefficients here, and the model's are their differences
# to those of the first class: the prior of all of them has half the variance of that of a difference.
classes, width = len(labels) - 1, z.shape[1]
own = np.linalg.inv(prior_scale @ prior_scale.T)[:width, :width] * (classes + 1) / (2 * classes)
units = np.linalg.cholesky(np.linalg.inv(own))
model = LogisticRegression(C=0.5, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
model.fit(z @ units, y, sample_weight=weights)
theta = ((model.coef_[1:] - model.coef_[0]) @ units.T).ravel()
"""


def _poisson(plain: bool) -> str:
    del plain  # one way serves all
    return (
        _SHIFTED
        + """# An exposure divides the counts and multiplies the weights; the penalty is that of the mean over weights.
mass = weights * np.exp(log_exposure)
model = PoissonRegressor(alpha=1 / mass.sum(), fit_intercept=False, solver="newton-cholesky", tol=1e-10)
model.fit(z @ prior_scale, y / np.exp(log_exposure), sample_weight=mass)
theta = prior_scale @ model.coef_
"""
    )


_ESTIMATORS = {
    "gaussian-mean": "Ridge",
    "linear": "Ridge",
    "logistic": "LogisticRegression",
    "softmax": "LogisticRegression",
    "poisson": "PoissonRegressor",
}
_WAYS = {"gaussian-mean": _mean, "linear": _linear, "logistic": _logistic, "softmax": _softmax, "poisson": _poisson}
