"""The kinds of regression behind `CoresetRegressor`, each a function from a checked table to something that predicts.

To add one: a class with the fields and the method of `Regression`, a function that makes it, and its name in
`CoresetRegressor.fit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from betacores.coreset import Coreset
from betacores.estimators.base import Summary, Table
from betacores.estimators.prediction import Predictor, predictor
from betacores.estimators.scaling import Scaling, as_given
from betacores.models import LinearRegression, NegativeBinomialRegression

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# Beyond this a mean is no number of a table; its square still is one.
LARGEST_LOG_COUNT = 150.0
# Means and standard deviations, one of each a row.
Moments = tuple[np.ndarray, np.ndarray]


class Regression(Protocol):
    """What a fit leaves behind: rows, their weights, a score for every row, and predictions in the table's units."""

    @property
    def coreset(self) -> Coreset | None:
        """The coreset in the table's units, if it is one of a model of `betacores.models`."""

    @property
    def indices(self) -> Int[np.ndarray, " m"]:
        """Numbers of the chosen rows."""

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """Their weights."""

    @property
    def scores(self) -> Float[np.ndarray, " rows"] | None:
        """For every row how much the model believes it; None where the method does not ask."""

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups that were kept, in order of selection, if there were groups."""

    def predict(self, x: Float[np.ndarray, "n columns"]) -> Moments:
        """Return mean and standard deviation of new responses."""


@dataclass(frozen=True)
class OnCoreset:
    """What the regressions on a coreset have in common: its rows, the units of the table, and the posterior."""

    coreset: Coreset
    scaling: Scaling
    posterior: Predictor

    @property
    def indices(self) -> Int[np.ndarray, " m"]:
        """Numbers of the chosen rows."""
        return self.coreset.indices

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """Their weights."""
        return self.coreset.weights

    @property
    def scores(self) -> Float[np.ndarray, " rows"]:
        """For every row how much the model believes it."""
        return self.coreset.scores

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups that were kept, in order of selection, if there were groups."""
        return self.coreset.groups


@final
@dataclass(frozen=True)
class Linear(OnCoreset):
    """Bayesian linear regression on the coreset."""

    noise: float

    def predict(self, x: Float[np.ndarray, "n columns"]) -> Moments:
        """Return mean and standard deviation of new responses."""
        mean, variance = self.posterior.moments(self.scaling.table(x))
        return self.scaling.response_undone(mean), self.scaling.unit * np.sqrt(self.noise**2 + variance)


def linear(summary: Summary) -> Linear:
    """Return the regression that a coreset of a linear model makes."""
    model = summary.built.model
    assert isinstance(model, LinearRegression)  # checked before the coreset was built
    return Linear(summary.coreset, summary.scaling, predictor(summary.built), float(model.noise))


@final
@dataclass(frozen=True)
class Counting(OnCoreset):
    """Bayesian regression of counts on the coreset; ``dispersion`` is its mean under the posterior."""

    dispersion: float

    def predict(self, x: Float[np.ndarray, "n columns"]) -> Moments:
        """Return mean and standard deviation of new counts: their own scatter, and what is not known of the mean."""
        eta, variance = self.posterior.moments(self.scaling.table(x))
        mean = np.exp(np.clip(eta + 0.5 * variance, -LARGEST_LOG_COUNT, LARGEST_LOG_COUNT))
        # E[μ²] = E[μ]² e^v for a mean that is log-normal.
        square = mean**2 * np.exp(np.minimum(variance, LARGEST_LOG_COUNT))
        return mean, np.sqrt(mean + self.dispersion * square + square - mean**2)


def counting(summary: Summary) -> Counting:
    """Return the regression that a coreset of a model of counts makes."""
    model, posterior = summary.built.model, predictor(summary.built)
    dispersion = 0.0
    if isinstance(model, NegativeBinomialRegression):
        dispersion = model.dispersion or float(np.exp(posterior.mean[-1] + 0.5 * (posterior.factor[-1] ** 2).sum()))
    return Counting(summary.coreset, summary.scaling, posterior, dispersion)


@final
@dataclass(frozen=True)
class Neural:
    """Bayesian linear regression on the last layer of a network, whose rows were chosen batch by batch."""

    fit: Any
    scaling: Scaling
    coreset: None = None

    @property
    def indices(self) -> Int[np.ndarray, " m"]:
        """Numbers of the chosen rows."""
        return self.fit.indices

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """Their weights."""
        return self.fit.weights

    @property
    def scores(self) -> Float[np.ndarray, " rows"] | None:
        """For every row how much the model believes it; None where the method does not ask."""
        return self.fit.scores

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups that entered after the rows to begin with, in their order."""
        return list(self.fit.batches)

    def predict(self, x: Float[np.ndarray, "n columns"]) -> Moments:
        """Return mean and standard deviation of new responses."""
        mean, deviation = self.fit.predict(self.scaling.table(x))
        return self.scaling.response_undone(mean), self.scaling.unit * np.asarray(deviation, np.float64)


def neural(table: Table, y: np.ndarray, *, scaled: bool, arguments: Mapping[str, Any]) -> Neural:
    """Return a network with a Bayesian last layer, from `betacores.neural.fit_neural_linear` and its arguments."""
    from betacores.neural import fit_neural_linear

    if table.sample_weight is not None:
        raise ValueError("sample_weight: the model 'neural-linear' takes rows as they are; leave it out.")
    scaling = table.scaling(y) if scaled else as_given(table.x)
    fit = fit_neural_linear(scaling.table(table.x), scaling.response(y), batches=table.groups, **arguments)
    return Neural(fit, scaling)
