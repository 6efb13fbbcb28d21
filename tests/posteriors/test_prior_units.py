"""Posteriors in the units of the table, against the same in double precision."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

import betacores as bc
from betacores.divergence import as_beta
from betacores.inputs import encode_rows
from betacores.models import GaussianMean, LinearRegression, LogisticRegression
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.posteriors.prior_units import in_prior_units
from betacores.posteriors.weighted import weighted_posterior


def tied_prior(centre: float, scale: float, level: float = 0.0) -> GaussianPrior:
    """N(0, 1) of a coefficient and an intercept for `(x - centre) / scale`, as one for `x`."""
    back = np.array([[scale, 0.0], [centre, 1.0]])
    return GaussianPrior(np.array([0.0, level]), back.T @ back)


@pytest.fixture
def times():
    random = np.random.default_rng(0)
    return 1.7e9 + 1e6 * random.normal(size=40)


def test_a_line_through_times_keeps_its_digits(times):
    random = np.random.default_rng(1)
    y = 50 + 2 * (times - 1.7e9) / 1e6 + 0.5 * random.normal(size=40)
    model = LinearRegression(0.5, prior=tied_prior(1.7e9, 1e6))
    coreset = bc.summarize(
        ((times - 1.7e9) / 1e6)[:, None], y, model=LinearRegression(0.5), size=20, beta=0, guard=None
    )

    inside = coreset.indices
    far = replace(coreset, X=times[inside, None], model=model)
    z = np.column_stack([times[inside], np.ones(len(inside))])
    precision = model.prior.precision + (z.T * far.weights) @ z / 0.25
    mean = np.linalg.solve(precision, z.T @ (far.weights * y[inside]) / 0.25)
    spread = np.sqrt(np.diag(np.linalg.inv(precision)))
    draws = far.posterior(4000).draws
    assert draws.mean(0) == pytest.approx(mean, abs=0, rel=0.01)
    assert draws.std(0) == pytest.approx(spread, rel=0.1)
    # Where single precision in the table's own units is off by more than its spread.
    assert abs(draws.mean(0)[0] - mean[0]) < 0.1 * spread[0]


def log_posterior_double(model, x, signs, weights, theta):
    z = np.column_stack([x, np.ones(len(x))])
    away = theta - model.prior.mean
    return -weights @ np.logaddexp(0, -signs * (z @ theta)) - 0.5 * away @ model.prior.precision @ away


def test_log_odds_of_years_have_their_mode():
    random = np.random.default_rng(2)
    year = 2000 + 10 * random.normal(size=200)
    signs = np.where(random.uniform(size=200) < 1 / (1 + np.exp(-(year - 2000) / 5)), 1, -1)
    model = LogisticRegression(prior=tied_prior(2000.0, 10.0, level=0.3))
    posed = in_prior_units(model, year[:, None], signs)

    rows = encode_rows(posed.x, posed.y, np.array([-1, 1]))
    fit, converged = weighted_posterior(posed.model, rows, np.ones(200), as_beta(0.0))
    assert converged
    mode = posed.back(np.asarray(fit.mean))
    own = np.array([[10.0, 0.0], [2000.0, 1.0]])

    def less(phi):
        return -log_posterior_double(model, year[:, None], signs, np.ones(200), np.linalg.solve(own, phi))

    best = np.linalg.solve(own, minimize(less, np.zeros(2), tol=1e-10).x)
    assert mode == pytest.approx(best, rel=1e-3)


def test_a_mean_far_from_zero_keeps_its_digits():
    random = np.random.default_rng(3)
    x = 1e6 + random.normal(size=(50, 2))
    model = GaussianMean(np.ones(2), GaussianPrior(np.full(2, 1e6), np.ones(2)))
    posed = in_prior_units(model, x, None)
    assert posed.back(np.zeros(2)) == pytest.approx([1e6, 1e6])
    assert posed.x == pytest.approx(x - 1e6)


@pytest.mark.parametrize(
    "model",
    [LinearRegression(1.0), LogisticRegression(), GaussianMean(), LinearRegression(1.0, prior=gaussian_prior(1.0))],
)
def test_a_prior_of_independent_parameters_changes_nothing(model):
    x, y = np.ones((3, 2)), np.array([0.0, 1.0, 1.0])
    posed = in_prior_units(model, x, y)
    assert posed.model is model
    assert posed.x is x
    draws = np.ones((2, 3), np.float32)
    assert posed.back(draws) is draws
