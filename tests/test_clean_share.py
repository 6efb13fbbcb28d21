"""The share of clean rows, without which the scale comes out too large; robust lines and scatters to start from."""

import functools

import numpy as np
import pytest

import betacores as bc
from betacores.models import GaussianRegression
from betacores.noise import robust_line
from betacores.robust import robust_scatter


def line(rows=600, dirty=0.3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    bad = rng.random(rows) < dirty
    return x, np.where(bad, 9.0, x @ [1.0, -0.5] + 0.3) + 0.5 * rng.normal(size=rows), bad


@functools.cache
def summary(clean):
    x, y, _ = line()
    return bc.summarize(x, y, model=GaussianRegression(clean=clean), size=20, beta=1.0)


def test_the_share_makes_scale_and_contamination_right():
    """Both are far off without it."""
    bad = line()[2]
    told, untold = summary("auto"), summary(1.0)
    assert told.model.clean == pytest.approx(1 - bad.mean(), abs=0.03)
    assert told.contamination == pytest.approx(bad.mean(), abs=0.03)
    assert np.exp(told.posterior(1000).mean[-1]) == pytest.approx(0.5, rel=0.08)
    assert untold.contamination < 0.75 * bad.mean()
    assert np.exp(untold.posterior(1000).mean[-1]) > 0.57


def test_clean_rows_are_told_to_be_clean():
    x, y, _ = line(dirty=0.0)
    assert bc.summarize(x, y, model="gaussian", size=20, beta=0.5).model.clean > 0.97


@pytest.mark.parametrize("intercept", [True, False])
def test_a_robust_line_is_in_the_units_of_the_table(intercept):
    rng = np.random.default_rng(0)
    x = 100 + 1000 * rng.normal(size=(2000, 2))
    y = x @ [0.02, -0.01] + (7 if intercept else 0) + 3 * rng.normal(size=2000)
    y[:500] = 500.0
    theta, noise = robust_line(x, y, intercept)
    np.testing.assert_allclose(theta, [0.02, -0.01, 7][: 2 + intercept], rtol=0.1, atol=2e-4)
    assert noise == pytest.approx(3, rel=0.1)


def test_a_robust_scatter_is_that_of_most_rows():
    rng = np.random.default_rng(0)
    units = np.array([1.0, 1e4, 1e-3])
    covariance = np.array([[1, 0.8, 0.2], [0.8, 1, 0.3], [0.2, 0.3, 1]]) * units * units[:, None]
    x = rng.multivariate_normal([5, 5, 5] * units, covariance, 4000)
    x[:1200] = rng.normal(12, 0.3, (1200, 3)) * units
    x[:5] = 1e30
    centre, scatter = robust_scatter(x)
    np.testing.assert_allclose(centre / units, 5, atol=0.1)
    np.testing.assert_allclose(scatter / units / units[:, None], covariance / units / units[:, None], atol=0.12)


@pytest.mark.parametrize("rows", [2, 5, 40])
def test_a_robust_scatter_of_few_or_tied_rows_is_definite(rows):
    x = np.random.default_rng(0).integers(0, 2, (rows, 3)).astype(float)
    x[:, 2] = x[:, 0]
    assert np.linalg.eigvalsh(robust_scatter(x)[1]).min() > 0


@pytest.mark.slow
def test_many_rows_are_polished_over_all_of_them():
    """Beyond the sample the share and the scale get more exact, not only faster."""
    x, y, bad = line(rows=120_000, dirty=0.2)
    found = bc.summarize(x, y, model="gaussian", size=30)
    assert found.model.clean == pytest.approx(1 - bad.mean(), abs=0.004)
    assert found.posterior(1000).mean[-1] == pytest.approx(np.log(0.5), abs=0.01)
