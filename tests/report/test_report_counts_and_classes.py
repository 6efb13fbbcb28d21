"""Reports on counts and on several classes: what was expected is told in their terms."""

import numpy as np
import pytest
from scipy import optimize, stats

import betacores as bc
from betacores.models import PoissonRegression
from betacores.report.fits import Fitting

QUICK = {"size": 12, "beta": 0.3, "guard": None}


def counts(rng, rows=400):
    x = rng.normal(size=(rows, 2))
    days = rng.uniform(1, 10, rows)
    y = rng.poisson(days * np.exp(0.6 * x[:, 0] - 0.2))
    y[:30] += 60
    return np.column_stack([x[:, 0], days]), y


@pytest.fixture(scope="module")
def counted():
    x, y = counts(np.random.default_rng(0))
    coreset = bc.summarize(x, y, model=PoissonRegression(exposure=1), **QUICK)
    return coreset, coreset.report().summary


def test_expected_counts_are_told(counted):
    coreset, summary = counted
    worst = summary["suspicious"]["rows"][0]
    assert worst["row"] < 30
    said = [reason for reason in worst["reasons"] if reason["kind"] == "response"]
    low, high = map(int, said[0]["expected"].split(" to "))
    theta = coreset.posterior(500).mean
    mean = coreset.origin.x[worst["row"], 1] * np.exp(theta[0] * coreset.origin.x[worst["row"], 0] + theta[1])
    assert abs(low - stats.poisson.ppf(0.025, mean)) <= 2
    assert abs(high - stats.poisson.ppf(0.975, mean)) <= 2
    assert summary["picture"]["diagonal"]
    assert "log(1 + " in summary["picture"]["across_label"]
    assert [one["name"] for one in summary["coefficients"]["parameters"]] == ["x0", "intercept"]
    assert "logarithm of the mean" in summary["coefficients"]["unit"]
    assert "a Poisson regression" in summary["headline"]["done"]


def test_classical_coefficients_are_the_mode_with_the_exposure_in_its_place(counted):
    coreset, summary = counted
    x, y = coreset.origin.x, coreset.origin.y

    def loss(theta):
        mean = x[:, 1] * np.exp(theta[0] * x[:, 0] + theta[1])
        return -stats.poisson.logpmf(y, mean).sum() + 0.5 * theta @ theta

    expected = optimize.minimize(loss, np.zeros(2)).x
    found = [one["classical"]["value"] for one in summary["coefficients"]["parameters"]]
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_chances_of_labels_are_told():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2)) * 3
    labels = np.array(["low", "mid", "high"])[(x @ [[1, 0, -1], [0, 1.5, 0]] + rng.gumbel(size=(400, 3))).argmax(1)]
    labels[:20] = np.where(x[:20, 0] > 0, "high", "low")
    coreset = bc.summarize(x, labels, **QUICK)
    summary = coreset.report().summary
    worst = summary["suspicious"]["rows"][0]
    assert worst["row"] < 20
    said = [reason for reason in worst["reasons"] if reason["kind"] == "label"]
    assert "the model gives it" in said[0]["expected"]
    assert summary["picture"]["panels"] == []
    names = [one["name"] for one in summary["coefficients"]["parameters"]]
    assert names == coreset.parameter_names
    assert "log-odds" in summary["coefficients"]["unit"]
    assert "a softmax regression" in coreset.report().html


@pytest.mark.slow
def test_dispersed_counts_are_fitted_in_double_precision():
    rng = np.random.default_rng(0)
    x = rng.normal(5000, 100, size=(300, 1))
    mean = np.exp((x[:, 0] - 5000) / 200 + 2)
    y = rng.negative_binomial(2, 2 / (2 + mean))
    model = bc.models.NegativeBinomialRegression().bound(["x0"], None)

    def loss(theta):
        size, at = np.exp(-theta[2]), np.exp(theta[0] * x[:, 0] + theta[1])
        prior = 0.5 * (theta[:2] @ theta[:2] + (theta[2] + 1) ** 2 / 4)
        return -stats.nbinom.logpmf(y, size, size / (size + at)).sum() + prior

    fit = Fitting(model, x, y, None).fit(np.ones(300), 0.0, np.array([0.0, 2.0, 0.0]))
    assert fit.converged
    assert loss(fit.mean) <= min(loss(fit.mean + step) for step in np.diag([1e-5, 1e-2, 1e-1])) + 1e-6
    coreset = bc.summarize((x - 5000) / 100, y, model="negative-binomial", size=15, beta=0.1, guard=None)
    assert coreset.report().summary["coefficients"]["parameters"][-1]["name"] == "log dispersion"
