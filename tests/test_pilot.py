"""The pilot's mode against SciPy's best of many starts, and on tables dirty enough to mislead a single start."""

import jax
import numpy as np
import pytest
from scipy import optimize, special

from betacores import pilot as module
from betacores.grid import grid_modes
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, SoftmaxRegression, gaussian_prior
from betacores.pilot import Pilot, curvature, pilot, search
from betacores.posteriors.derivatives import Derivatives
from betacores.sources import ArraySource

NOISE = 0.7
MODELS = {"gaussian": GaussianMean(), "linear": LinearRegression(NOISE), "logistic": LogisticRegression()}
KEY = jax.random.key(0)


def log_posterior(name, theta, x, y, beta):
    """`Σ_n f_n + log π0` in double precision, up to a constant; standard normal prior."""
    prior = -0.5 * theta @ theta
    x = np.asarray(x, np.float64)
    if name == "gaussian":
        square, d = ((x - theta) ** 2).sum(1), x.shape[1]
    else:
        eta, y = np.column_stack([x, np.ones(len(x))]) @ theta, np.asarray(y, np.float64)
        square, d = ((y - eta) / NOISE) ** 2, 1
    if name == "logistic":
        own = -np.logaddexp(0, -y * eta)
        if beta == 0:
            return own.sum() + prior
        integral = special.expit(eta) ** (1 + beta) + special.expit(-eta) ** (1 + beta)
        return (np.expm1(beta * own) / beta - integral / (1 + beta)).sum() + prior
    if beta == 0:
        return -0.5 * square.sum() + prior
    # p^β / (β c): the constants 2π and σ cancel between p^β and c.
    return ((1 + beta) ** (d / 2) * np.exp(-0.5 * beta * square) / beta).sum() + prior


def table(name, count=150, seed=0):
    """Clean rows of a model with two columns, and its true parameter."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2))
    if name == "gaussian":
        return x + np.array([1.0, -0.5]), None, np.array([1.0, -0.5])
    theta = np.array([1.0, -0.5, 0.4]) * (2.0 if name == "logistic" else 1.0)
    eta = x @ theta[:2] + theta[2]
    y = eta + NOISE * rng.normal(size=count)
    if name == "logistic":
        y = np.where(rng.random(count) < special.expit(eta), 1.0, -1.0)
    return x, y, theta


def as_source(x, y):
    return ArraySource(np.asarray(x, np.float32), None if y is None else np.asarray(y, np.float32))


def clean_mode(name, x, y, start):
    """Mode and standard deviations of the classical posterior, which on clean rows is the truth to aim at."""
    mode = optimize.minimize(lambda at: -log_posterior(name, at, x, y, 0.0), start, method="BFGS").x
    z = np.column_stack([x, np.ones(len(x))])
    sharpness = special.expit(z @ mode) * special.expit(-z @ mode) if name == "logistic" else np.full(len(z), NOISE**-2)
    return mode, np.sqrt(np.diag(np.linalg.inv(np.eye(len(mode)) + (z.T * sharpness) @ z)))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_mode_is_the_best_of_many_starts(name, beta):
    """A quarter of the rows forms a second mode."""
    x, y, _ = table(name)
    if name == "gaussian":
        x[::4] += [6.0, 6.0]
    elif name == "linear":
        y[::4] += 10.0
    else:
        x[::4, 0] += 6.0
        y[::4] = -1.0
    source = as_source(x, y)
    rng = np.random.default_rng(1)
    p = 2 if name == "gaussian" else 3
    runs = [
        optimize.minimize(lambda at: -log_posterior(name, at, source.x, source.y, beta), start, method="BFGS")
        for start in 4 * rng.normal(size=(15, p))
    ]
    best = min(runs, key=lambda run: run.fun)
    found = pilot(MODELS[name], source, beta, KEY)
    assert found.converged
    assert found.start in ("prior", "robust", "ladder", "middle")
    assert found.theta.shape == (p,)
    value = log_posterior(name, found.theta.astype(np.float64), source.x, source.y, beta)
    assert value >= -best.fun - 1e-3
    np.testing.assert_allclose(found.theta, best.x, atol=5e-3)


def test_the_reported_log_posterior_is_that_of_the_mode():
    x, y, _ = table("logistic")
    source = as_source(x, y)
    found = pilot(MODELS["logistic"], source, 0.0, KEY)
    expected = log_posterior("logistic", found.theta.astype(np.float64), source.x, source.y, 0.0)
    assert found.log_posterior == pytest.approx(expected, rel=1e-5)


def test_far_from_the_prior_mode_only_the_ladder_arrives():
    """An intercept of 300 under a wide prior: at zero every row counts nothing, and the search stays there."""
    x, y, _ = table("linear")
    y = y + 300.0
    y[::5] += 15.0
    wide = LinearRegression(NOISE, prior=gaussian_prior(0.0, 1e6))
    found = pilot(wide, as_source(x, y), 0.5, KEY)
    assert found.converged
    assert found.start == "ladder"
    clean = np.arange(len(x)) % 5 != 0
    z = np.column_stack([x, np.ones(len(x))])[clean]
    expected = np.linalg.lstsq(z, y[clean], rcond=None)[0]
    error = NOISE * np.sqrt(np.diag(np.linalg.inv(z.T @ z)))
    assert np.abs((found.theta - expected) / error).max() < 2.5


@pytest.mark.parametrize("name", MODELS)
def test_curvature_is_the_negative_hessian_over_all_rows(name):
    x, y, theta = table(name)
    source = as_source(x, y)
    at, units, h = theta + 0.1, np.eye(len(theta)), 2e-4

    def value(point):
        return log_posterior(name, point, source.x, source.y, 0.5)

    expected = [
        [-sum(s * t * value(at + h * (s * u + t * v)) for s in (1, -1) for t in (1, -1)) / (4 * h**2) for u in units]
        for v in units
    ]
    lanes = grid_modes(MODELS[name], source, at[None], np.array([0.5]), steps=0)
    there = Derivatives(*(part[0] for part in lanes.likelihood))
    found = Pilot(at.astype(np.float32), lanes.looked_at[0], there, 0.0, True, "prior")
    actual = curvature(MODELS[name], found)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(("fraction", "distance"), [(0.3, 5.0), (0.45, 5.0), (0.45, 1000.0)])
def test_gaussian_clusters_are_left_behind(fraction, distance):
    rng = np.random.default_rng(2)
    x = rng.normal(1.0, 1.0, size=(1000, 5))
    dirty = np.arange(1000) % 100 < 100 * fraction
    expected = x[~dirty].sum(0) / (1 + (~dirty).sum())
    x[dirty] += distance
    found = pilot(GaussianMean(), as_source(x, None), 0.3, KEY)
    assert found.converged
    # The β-estimate differs from the mean of the clean rows by about (β/(1+β))·√d of its standard error.
    assert np.abs(found.theta - expected).max() < 3 / np.sqrt((~dirty).sum())


@pytest.mark.parametrize("kind", ["shifted", "absurd"])
def test_linear_regression_survives_shifted_and_absurd_responses(kind):
    x, y, theta = table("linear", 600, seed=3)
    dirty = np.arange(600) % 10 < 3
    expected, error = clean_mode("linear", x[~dirty], y[~dirty], theta)
    shifted, broken = y + 15.0, np.where(np.arange(600) % 20 < 10, 1e12, -1e12)
    y = np.where(dirty, shifted if kind == "shifted" else np.where(np.arange(600) % 3, shifted, broken), y)
    found = pilot(MODELS["linear"], as_source(x, y), 0.5, KEY)
    assert found.converged
    assert np.abs((found.theta - expected) / error).max() < 2.5


@pytest.mark.parametrize("kind", ["leverage", "absurd"])
def test_logistic_regression_survives_leverage_and_absurd_covariates(kind):
    x, y, theta = table("logistic", 1000, seed=4)
    number = np.arange(1000)
    clean = np.ones(1000, bool)
    # Far along the model's own direction, with the label it finds impossible.
    dirty = number % 20 == 0
    side = np.where(number[dirty] % 40 == 0, 1.0, -1.0)
    x[dirty] = 8 * side[:, None] * theta[:2] / np.linalg.norm(theta[:2]) + 0.3 * x[dirty]
    y[dirty] = -side
    clean &= ~dirty
    if kind == "absurd":
        broken = number % 50 == 7
        x[broken] = np.where(number[broken] % 100 == 7, 1e12, -1e12)[:, None] * [1.0, 0.5]
        clean &= ~broken
    expected, error = clean_mode("logistic", x[clean], y[clean], theta)
    found = pilot(MODELS["logistic"], as_source(x, y), 0.5, KEY)
    assert found.converged
    assert np.abs((found.theta - expected) / error).max() < 2.5


@pytest.mark.parametrize("name", ["gaussian", "logistic"])
def test_blocks_change_nothing(name, monkeypatch):
    x, y, _ = table(name)
    if name == "gaussian":
        x[::5] += 8.0
    whole = pilot(MODELS[name], as_source(x, y), 0.3, KEY)
    monkeypatch.setattr("betacores.sources.arrays.BLOCK_ROWS", 64)
    parts = pilot(MODELS[name], as_source(x, y), 0.3, KEY)
    np.testing.assert_allclose(parts.theta, whole.theta, atol=2e-4)
    assert parts.log_posterior == pytest.approx(whole.log_posterior, rel=1e-5)


def test_a_search_on_a_sample_is_polished_on_all_rows(monkeypatch):
    name = "logistic"
    x, y, _ = table(name)
    whole = pilot(MODELS[name], as_source(x, y), 0.3, KEY)
    monkeypatch.setattr(module, "SAMPLE_ROWS", 64)
    sampled = pilot(MODELS[name], as_source(x, y), 0.3, KEY)
    assert sampled.converged
    np.testing.assert_allclose(sampled.theta, whole.theta, atol=1e-3)
    assert sampled.log_posterior == pytest.approx(whole.log_posterior, rel=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("outliers", [0, 10])
def test_without_beta_a_concave_model_s_one_mode_is_found_from_one_start(name, outliers):
    """Also where rows far out hold a search that has begun without them at a place that is no mode."""
    x, y, _ = table(name)
    x[:outliers] *= 1e3
    found = search(MODELS[name], as_source(x, y), 1.0, 0.0, 1.4)
    exact = optimize.minimize(lambda at: -log_posterior(name, at, x, y, 0.0), found.theta.astype(float), method="BFGS")
    np.testing.assert_allclose(found.theta, exact.x, rtol=1e-3, atol=1e-4)
    assert log_posterior(name, found.theta.astype(float), x, y, 0.0) == pytest.approx(-exact.fun, abs=0.01)


@pytest.mark.parametrize("name", MODELS)
def test_rungs_that_change_no_row_are_passed_over_and_are_not_missed(name, monkeypatch):
    x, y, _ = table(name, count=400)
    source, climbs = as_source(x, y), []
    made = module.grid_modes
    monkeypatch.setattr(module, "grid_modes", lambda *given, **more: climbs.append(1) or made(*given, **more))
    found = search(MODELS[name], source, 1.0, 0.3, 1.0)
    few, climbs[:] = len(climbs), []
    monkeypatch.setattr(module, "NO_CHANGE", 0.0)
    every = search(MODELS[name], source, 1.0, 0.3, 1.0)
    assert few <= len(climbs) - 4
    np.testing.assert_allclose(found.theta, every.theta, atol=1e-4)


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_who_descends_comes_down_step_by_step_whatever_the_ladder_leaves_out(beta, monkeypatch):
    x, y, _ = table("gaussian")
    asked, made = [], module.grid_modes
    monkeypatch.setattr(GaussianMean, "log_concave", False)
    monkeypatch.setattr(module, "grid_modes", lambda *given, **more: asked.append(given[3]) or made(*given, **more))
    search(GaussianMean(), as_source(x, y), 1.0, beta, 1.0)
    # The last lane; where the next β is the same it waits for the others.
    lanes = np.unique(np.array(asked)[:, -1])[::-1]
    np.testing.assert_allclose(lanes, beta + (1.0 - beta) * np.array([1.0, 0.5, 0.25, 0.1, 0.0]))
    ladder = np.array(asked)[:, 1]
    assert ladder[0] == 0
    assert ladder[-1] == beta
    assert (np.diff(ladder) >= 0).all()


def test_the_whole_search_is_made_where_a_row_is_at_the_floor():
    x, y, _ = table("linear")
    # Its likelihood is the same whatever the line is, so that nothing pulls.
    y[0] = 1e12
    found = search(MODELS["linear"], as_source(x, y), 1.0, 0.0)
    clean, error = clean_mode("linear", x[1:], y[1:], np.zeros(3))
    assert np.abs((found.theta - clean) / error).max() < 0.1


def test_wrong_labels_far_out_do_not_keep_the_search_from_the_better_mode():
    """A fifth of the rows of four classes; a mode as high as that which the clean rows lead to."""
    rng = np.random.default_rng(1)
    centres = 1.5 * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]])
    own, wrong = rng.integers(4, size=1500), rng.random(1500) < 0.2
    x = centres[own] * np.where(wrong, 2.5, 1.0)[:, None] + rng.normal(size=(1500, 3))
    source = as_source(x, np.where(wrong, (own + 1) % 4, own))
    model = SoftmaxRegression(4).bound(["a", "b", "c"], np.arange(4))
    found = search(model, source, 1.0, 1.0)
    # Four lanes, as the search has.
    betas = np.ones(4)
    led = grid_modes(model, source.weighted(np.where(wrong, 0, 1).astype(np.float32)), np.zeros((4, 12)), betas).thetas
    both = grid_modes(model, source, np.stack([found.theta, led[0], led[0], led[0]]), betas)
    heights = both.likelihood.value + np.array([model.log_prior(theta) for theta in both.looked_at])
    assert heights[0] > heights[1] - 0.05
    # The other starts end at a lower one.
    others = grid_modes(model, source, np.stack([np.zeros(12)] * 4), betas)
    assert others.likelihood.value[0] + model.log_prior(others.looked_at[0]) < heights[0] - 5
