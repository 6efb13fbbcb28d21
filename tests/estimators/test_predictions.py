"""Predictions against independent computations."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from betacores import CoresetClassifier, CoresetRegressor
from betacores.estimators.prediction import Predictor, mean_sigmoid
from betacores.models import LinearRegression, LogisticRegression, gaussian_prior


def with_ones(x):
    return np.column_stack([x, np.ones(len(x))])


def test_regressor_predicts_by_the_closed_form_posterior_of_its_coreset(light):
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    y = x @ [1.0, -2.0, 0.5] + 0.4 + 0.7 * random.normal(size=200)
    model = LinearRegression(noise=0.7, prior=gaussian_prior(0.1, 4.0))
    fitted = CoresetRegressor(model=model, **light).fit(x, y)
    z = with_ones(x[fitted.sample_indices_])
    weighted = z * fitted.sample_weight_[:, None] / 0.7**2
    covariance = np.linalg.inv(np.eye(4) / 4.0 + weighted.T @ z)
    centre = covariance @ (0.1 / 4.0 + weighted.T @ y[fitted.sample_indices_])
    mean, deviation = fitted.predict(x, return_std=True)
    rows = with_ones(x)
    np.testing.assert_allclose(mean, rows @ centre, atol=1e-4)
    np.testing.assert_allclose(deviation, np.sqrt(0.49 + np.einsum("np,pq,nq->n", rows, covariance, rows)), rtol=1e-4)
    np.testing.assert_array_equal(fitted.predict(x), mean)


def test_a_model_without_intercept_predicts_without_one(light):
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    model = LinearRegression(noise=0.1, intercept=False)
    fitted = CoresetRegressor(model=model, **light).fit(x, x @ [1.0, -2.0, 0.5] + 0.1 * random.normal(size=200))
    assert fitted.predict(np.zeros((1, 3))) == 0.0


def test_predictive_deviations_hold_as_many_responses_as_they_should(lines, more_lines, light):
    mean, deviation = CoresetRegressor(**light).fit(*lines).predict(more_lines[0], return_std=True)
    inside = np.abs(more_lines[1] - mean) < 1.96 * deviation
    assert inside.mean() == pytest.approx(0.95, abs=0.04)


def test_probabilities_are_those_averaged_over_draws_of_the_posterior(light):
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    y = random.random(200) < expit(x @ [1.0, -2.0, 0.5])
    fitted = CoresetClassifier(model=LogisticRegression(), **light).fit(x, y)
    draws = fitted.coreset_.posterior(20_000).draws.astype(np.float64)
    each = expit(with_ones(x) @ draws.T)
    error = 5 * each.std(1) / np.sqrt(len(draws))
    probabilities = fitted.predict_proba(x)
    assert (np.abs(probabilities[:, 1] - each.mean(1)) < error + 1e-4).all()
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    np.testing.assert_allclose(expit(fitted.decision_function(x)), probabilities[:, 1], atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(x), probabilities[:, 1] > 0.5)


@pytest.mark.parametrize("mean", [-30.0, -3.0, 0.0, 0.7, 12.0])
@pytest.mark.parametrize("width", [0.0, 0.1, 1.0, 3.0, 13.9, 14.1, 40.0])
def test_mean_sigmoid_is_the_integral(mean, width):
    (found,) = mean_sigmoid(np.array([mean]), np.array([width**2]))
    wanted = expit(mean)
    if width:
        ends = (mean - 12 * width, mean + 12 * width)
        wanted = quad(lambda eta: expit(eta) * norm.pdf(eta, mean, width), *ends, points=[0, mean], limit=500)[0]
    assert found == pytest.approx(wanted, abs=1e-5)


def test_moments_do_not_depend_on_blocks(monkeypatch):
    random = np.random.default_rng(0)
    predictor = Predictor(random.normal(size=4), random.normal(size=(4, 4)), LogisticRegression())
    x = random.normal(size=(50, 3))
    whole = predictor.moments(x)
    monkeypatch.setattr("betacores.estimators.prediction.BLOCK_ROWS", 7)
    np.testing.assert_allclose(predictor.moments(x), whole, rtol=1e-12)
    covariance = predictor.factor @ predictor.factor.T
    np.testing.assert_allclose(whole[1], np.einsum("np,pq,nq->n", with_ones(x), covariance, with_ones(x)))
