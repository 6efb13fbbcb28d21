"""Fits against the posterior written out and maximised by SciPy."""

import numpy as np
import pytest
from report.hand_made import coreset_of, linear_table, logistic_table
from scipy import optimize

from betacores.models import GaussianMean, LinearRegression, LogisticRegression
from betacores.models.prior import GaussianPrior
from betacores.precision import single_precision
from betacores.report.coefficients import coefficients_section, fits_of
from betacores.report.fits import Fitting, sampled
from betacores.report.table import Table

LABELS = np.array(["no", "yes"])


def classical_linear(x, y, weights, noise):
    """Return mean and covariance of the conjugate posterior under N(0, 1)."""
    z = np.column_stack([x, np.ones(len(x))])
    covariance = np.linalg.inv(z.T @ (weights[:, None] * z) / noise**2 + np.eye(z.shape[1]))
    return covariance @ z.T @ (weights * y) / noise**2, covariance


def test_classical_linear_is_the_conjugate_posterior():
    x, y, _ = linear_table()
    weights = np.random.default_rng(1).uniform(0, 2, len(x))
    with single_precision():
        fit = Fitting(LinearRegression(0.5), x, y, None).fit(weights, 0.0)
    mean, covariance = classical_linear(x, y, weights, 0.5)
    np.testing.assert_allclose(fit.mean, mean, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-3, atol=1e-7)
    assert fit.converged


def test_robust_logistic_is_the_maximum_of_the_beta_posterior():
    x, y, theta = logistic_table()
    y[:20] = np.where(y[:20] == "yes", "no", "yes")
    beta, sign = 0.5, np.where(y == "yes", 1.0, -1.0)

    def negative(at):
        p = 1 / (1 + np.exp(-sign * (x @ at[:-1] + at[-1])))
        likelihood = (p**beta - 1) / beta - ((p ** (1 + beta) + (1 - p) ** (1 + beta)) / (1 + beta) - 1)
        return -likelihood.sum() + 0.5 * at @ at

    with single_precision():
        fit = Fitting(LogisticRegression(), x, y, LABELS).fit(np.ones(len(x)), beta, theta)
    found = optimize.minimize(negative, theta, method="BFGS", options={"gtol": 1e-8})
    np.testing.assert_allclose(fit.mean, found.x, atol=2e-4)
    numeric = np.array(
        [
            optimize.approx_fprime(found.x, lambda at, k=k: optimize.approx_fprime(at, negative, 1e-5)[k], 1e-4)
            for k in range(4)
        ]
    )
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(numeric), rtol=0.02, atol=1e-4)


def test_units_that_single_precision_cannot_hold():
    # Longitudes beside populations: in single precision the Hessian cannot be inverted.
    x, y, _ = linear_table()
    centre, scale = np.array([-119.5, 1e6, 35.0]), np.array([1e-2, 3e5, 1e-3])
    prior = GaussianPrior(np.zeros(4), np.eye(4) * 1e-9)
    with single_precision():
        fit = Fitting(LinearRegression(0.5, prior=prior), centre + scale * x, y, None).fit(np.ones(len(x)), 0.0)
    z = np.column_stack([x, np.ones(len(x))])
    plain = np.linalg.lstsq(z, y, rcond=None)[0]
    np.testing.assert_allclose(fit.mean[:3] * scale, plain[:3], rtol=2e-3, atol=2e-3)
    spread = 0.5 * np.sqrt(np.linalg.inv(z.T @ z).diagonal())
    np.testing.assert_allclose(fit.spread[:3] * scale, spread[:3], rtol=1e-2)


def test_the_three_fits_agree_on_clean_rows_and_not_on_dirty_ones():
    x, y, theta = linear_table()
    dirty = y.copy()
    dirty[:40] += 30.0
    coreset = coreset_of(LinearRegression(0.5), x, dirty, theta, kept=100)
    fits = fits_of(coreset, Table(coreset, coreset.origin))
    clean, _ = classical_linear(x[40:], y[40:], np.ones(360), 0.5)
    np.testing.assert_allclose(fits.robust.mean, clean, atol=0.35)
    np.testing.assert_allclose(fits.scoring, fits.robust.mean)
    assert abs(fits.classical.mean[-1] - 13) < 0.3
    np.testing.assert_allclose(fits.classical.mean, classical_linear(x, dirty, np.ones(400), 0.5)[0], atol=1e-3)
    mean, covariance = classical_linear(x[coreset.indices], dirty[coreset.indices], coreset.weights, 0.5)
    np.testing.assert_allclose(fits.coreset.mean, mean, atol=1e-3)
    section = coefficients_section(coreset, Table(coreset, coreset.origin), fits)
    intercept = section["parameters"][-1]
    assert intercept["name"] == section["largest_shift"] == "intercept"
    assert intercept["coreset"]["high"] - intercept["coreset"]["low"] == pytest.approx(
        2 * 1.96 * np.sqrt(covariance[-1, -1]), rel=1e-2
    )


def test_means_take_the_usual_way():
    x = np.random.default_rng(0).normal(3.0, 1.0, (400, 3))
    x[:40] += 50
    coreset = coreset_of(GaussianMean(), x, None, np.full(3, 3.0), kept=50)
    fits = fits_of(coreset, Table(coreset, coreset.origin))
    np.testing.assert_allclose(fits.robust.mean, x[40:].mean(0), atol=0.15)
    np.testing.assert_allclose(fits.classical.mean, x.sum(0) / 401, rtol=1e-4)
    np.testing.assert_allclose(fits.classical.spread, 1 / np.sqrt(401), rtol=1e-3)


def test_wide_tables_show_the_parameters_that_moved_most():
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 45))
    theta = np.append(np.zeros(45), 0.0)
    y = 0.5 * random.normal(size=300)
    y[:30] += 20 * x[:30, 7]
    coreset = coreset_of(LinearRegression(0.5), x, y, theta, kept=100)
    table = Table(coreset, coreset.origin)
    section = coefficients_section(coreset, table, fits_of(coreset, table))
    assert section["total"] == 46
    assert len(section["parameters"]) == 40
    assert section["largest_shift"] == "x7"
    assert "x7" in [one["name"] for one in section["parameters"]]


def test_large_problems_look_at_some_rows():
    assert len(sampled(1000, 10)) == 1000
    some = sampled(1_000_000, 1000)
    assert len(some) == 10_000
    assert some[0] == 0
    assert some[-1] == 999_999
