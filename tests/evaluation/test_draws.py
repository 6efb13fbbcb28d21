"""Draws of many coresets at once, against exact posteriors within Monte-Carlo error.

All NUTS runs but one have the same shapes, so that they share a program.
"""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from betacores.divergence import as_beta, likelihoods
from betacores.evaluation import posterior_draws
from betacores.evaluation.lanes import laplace_lanes, nuts_lanes
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Rows, gaussian_prior
from betacores.posteriors import Gaussian
from betacores.posteriors.nuts import whitened
from betacores.posteriors.weighted import weighted_posterior

COVARIANCE = np.array([[2.0, 0.7], [0.7, 0.5]])
PRIOR_MEAN, PRIOR_COVARIANCE = np.array([0.5, -1.0]), np.array([[1.5, -0.4], [-0.4, 0.8]])
MODEL = GaussianMean(COVARIANCE, gaussian_prior(PRIOR_MEAN, PRIOR_COVARIANCE))
KEY = jax.random.key(3)
SETTINGS = {"draws": 500, "chains": 2, "warmup": 200, "lanes": 4}


def coreset(size, total, seed=0):
    """Rows of the model with uneven weights of a given sum."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(1.0, size=size) if size else np.zeros(0)
    return Rows(rng.normal(size=(size, 2)) @ np.linalg.cholesky(COVARIANCE).T + 2.0), weights * (
        total / max(weights.sum(), 1e-9)
    )


CORESETS = [coreset(100, 30_000.0, 1), coreset(7, 12.5, 2), coreset(0, 0.0), coreset(1, 1e6, 3), coreset(128, 50.0, 4)]


def draw(coresets, **settings):
    return posterior_draws(MODEL, coresets, KEY, **SETTINGS | settings)


def exact(rows, weights):
    """Mean and covariance by Bayes' rule in double precision."""
    prior, row = np.linalg.inv(PRIOR_COVARIANCE), np.linalg.inv(COVARIANCE)
    covariance = np.linalg.inv(prior + weights.sum() * row)
    return covariance @ (prior @ PRIOR_MEAN + row @ (weights @ rows.x)), covariance


def assert_moments(thetas, size, mean, covariance):
    """By z-tests; squares are taken to mix half as well as the draws themselves."""
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (np.asarray(thetas, np.float64) - mean).T)
    assert (np.abs(whitened.mean(1)) < 4 / np.sqrt(size)).all()
    assert (np.abs(np.cov(whitened) - np.eye(len(mean))) < 4 * np.sqrt(2 / (size / 2))).all()


@pytest.fixture(scope="module")
def together():
    """Five coresets of different sizes in two calls of four lanes."""
    return draw(CORESETS)


def test_shapes_are_as_promised(together):
    assert len(together) == 5
    assert together.thetas.shape == (5, 1000, 2)
    assert together.thetas.dtype == np.float32
    for diagnostic in (together.r_hat, together.effective_sample_size, together.divergences):
        assert diagnostic.shape == (5,)


@pytest.mark.parametrize("lane", range(len(CORESETS)))
def test_nuts_has_the_moments_of_the_exact_posterior(together, lane):
    """With no rows at all it is the prior; with weights of a million single precision still has digits to spare."""
    rows, weights = CORESETS[lane]
    size = min(together.effective_sample_size[lane], together.thetas.shape[1])
    assert_moments(together.thetas[lane], size, *exact(rows, weights))
    if not len(weights):
        np.testing.assert_allclose(exact(rows, weights)[1], PRIOR_COVARIANCE)


def test_diagnostics_are_good_where_the_posterior_is(together):
    assert (together.r_hat < 1.03).all()
    assert (together.effective_sample_size > 200).all()
    assert (together.divergences == 0).all()


def test_the_same_key_gives_the_same_draws_and_another_one_does_not(together):
    np.testing.assert_array_equal(draw(CORESETS).thetas, together.thetas)
    other = posterior_draws(MODEL, CORESETS[:1], jax.random.key(4), **SETTINGS)
    assert np.abs(other.thetas[0] - together.thetas[0]).max() > 1e-3


def test_a_lane_does_not_depend_on_the_others(together):
    """Neither on their rows nor on how many there are, in its own call or in others."""
    changed = draw([coreset(3, 1.0, 9), CORESETS[1], coreset(90, 1e5, 8)])
    np.testing.assert_array_equal(changed.thetas[1], together.thetas[1])
    assert changed.r_hat[1] == together.r_hat[1]
    np.testing.assert_array_equal(draw(CORESETS[:1]).thetas[0], together.thetas[0])


def test_equal_coresets_in_different_lanes_have_different_draws():
    twice = draw([CORESETS[1], CORESETS[1]])
    assert np.abs(twice.thetas[0] - twice.thetas[1]).max() > 0.1


def test_rows_of_weight_zero_change_nothing(together):
    """Not even rows far off."""
    rows, weights = CORESETS[1]
    far = Rows(np.concatenate([rows.x, np.full((20, 2), 1e3)]))
    longer = draw([CORESETS[0], (far, np.concatenate([weights, np.zeros(20)]))])
    np.testing.assert_array_equal(longer.thetas[1], together.thetas[1])


def test_all_sizes_share_one_program(together):
    programs = nuts_lanes._cache_size()
    for sizes in ([5], [128, 0], [1, 2, 3, 4, 50, 60]):
        draw([coreset(size, 10.0) for size in sizes])
    draw([coreset(20, 10.0)], capacity=100)
    posterior_draws(GaussianMean(COVARIANCE * 2, MODEL.prior), [coreset(20, 10.0)], KEY, **SETTINGS)
    assert nuts_lanes._cache_size() == programs


@pytest.mark.slow
def test_chains_in_different_modes_are_reported():
    """A large β believes in one of two clusters of rows: chains that begin near both never meet."""
    model = GaussianMean(1.0, gaussian_prior(0.0, 100.0))
    rows = Rows(np.repeat([-5.0, 5.0], 10)[:, None])
    found = posterior_draws(
        model, [(rows, np.full(20, 2.0))] * 8, KEY, beta=0.5, draws=50, chains=2, warmup=50, lanes=8
    )
    means = found.thetas.reshape(8, 2, 50).mean(2)
    apart = np.abs(means[:, 0] - means[:, 1]) > 8
    assert apart.any()
    assert not apart.all()
    assert (found.r_hat[apart] > 1.5).all()
    assert (found.effective_sample_size[apart] < 10).all()
    assert (found.r_hat[~apart] < 1.2).all()


def logistic_coresets():
    rng = np.random.default_rng(0)
    made = []
    for size in (60, 10, 0):
        x = rng.normal(size=(size, 2))
        made.append((Rows(x, np.where(x[:, 0] + rng.normal(size=size) > 0, 1.0, -1.0)), rng.uniform(0, 4, size)))
    return made


def test_laplace_draws_have_the_moments_of_each_approximation():
    model, coresets = LogisticRegression(), logistic_coresets()
    found = posterior_draws(model, coresets, KEY, sampler="laplace", draws=2000, chains=2, lanes=2)
    assert found.thetas.shape == (3, 4000, 3)
    assert found.r_hat is found.effective_sample_size is found.divergences is None
    for thetas, (rows, weights) in zip(found.thetas, coresets, strict=True):
        fit, converged = weighted_posterior(model, rows, weights, None)
        assert converged
        assert_moments(thetas, 4000, np.asarray(fit.mean), np.asarray(fit.covariance()))
    programs = laplace_lanes._cache_size()
    posterior_draws(model, coresets[::-1], KEY, sampler="laplace", draws=2000, chains=2, lanes=2)
    assert laplace_lanes._cache_size() == programs


def heavy_logistic(seed):
    """25 rows that a line separates, each standing for more than a thousand."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(25, 10))
    weights = rng.gamma(1.0, size=25)
    y = np.where(x @ rng.normal(size=10) + rng.normal(size=25) > 0, 1.0, -1.0)
    return Rows(x.astype(np.float32), y), weights * (30_000 / weights.sum())


def test_laplace_has_the_curvature_at_the_mode_under_large_weights():
    """Where single precision can hardly tell which step is better, the search must settle all the same."""
    coresets = [heavy_logistic(seed) for seed in range(16)]
    found = posterior_draws(LogisticRegression(), coresets, KEY, sampler="laplace", draws=1000, lanes=16)
    settled = [weighted_posterior(LogisticRegression(), *pair, None)[1] for pair in coresets]
    assert all(settled)
    for thetas, (rows, weights) in zip(found.thetas, coresets, strict=True):
        z, mode = np.column_stack([rows.x, np.ones(25)]).astype(np.float64), thetas.mean(0, dtype=np.float64)
        for _ in range(100):
            down = special.expit(-rows.y * (z @ mode))
            precision = np.eye(11) + (z.T * (weights * down * (1 - down))) @ z
            mode = mode + np.linalg.solve(precision, z.T @ (weights * rows.y * down) - mode)
        assert_moments(thetas, 2000, mode, np.linalg.inv(precision))


@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize("name", ["linear", "logistic", "gaussian"])
def test_the_whitened_log_posterior_is_the_posterior_of_the_parameters(name, beta):
    """Up to the value at the mode; both paths, with and without a linear predictor."""
    rows, weights = logistic_coresets()[0]
    model = {"linear": LinearRegression(0.7), "logistic": LogisticRegression(), "gaussian": GaussianMean(2.0)}[name]
    rows = Rows(*(None if a is None or (name == "gaussian" and a is rows.y) else jnp.asarray(a) for a in rows))
    p = model.parameter_count(2)
    rng = np.random.default_rng(1)
    mean, root = rng.normal(size=p), np.tril(rng.normal(size=(p, p))) + 3 * np.eye(p)
    approximation = Gaussian(jnp.asarray(mean, jnp.float32), jnp.asarray(root, jnp.float32))
    log_density = whitened(model, rows, jnp.asarray(weights), as_beta(beta), approximation)

    def log_posterior(theta):
        each = likelihoods(model, jnp.asarray(theta, jnp.float32)[None], rows, as_beta(beta))[:, 0]
        return float(np.asarray(each, np.float64) @ weights) - 0.5 * theta @ theta

    assert float(log_density(jnp.zeros(p))) == 0.0
    for phi in rng.normal(size=(5, p)):
        theta = mean + np.linalg.solve(root.T, phi)
        expected = log_posterior(theta) - log_posterior(mean)
        assert float(log_density(jnp.asarray(phi, jnp.float32))) == pytest.approx(expected, rel=1e-4, abs=1e-3)


@pytest.mark.parametrize(
    ("coresets", "settings", "message"),
    [
        ([], {}, "coresets: expected at least one"),
        (CORESETS, {"capacity": 100}, "a coreset has 128 rows"),
        (CORESETS, {"sampler": "nut"}, "Did you mean 'nuts'"),
        (CORESETS, {"beta": -1.0}, "beta: expected"),
        (CORESETS, {"draws": 2}, "draws: expected"),
        (CORESETS, {"chains": 0}, "chains: expected"),
        (CORESETS, {"lanes": 0}, "lanes: expected"),
        ([(CORESETS[0][0], np.ones(3))], {}, "one weight a row"),
        ([CORESETS[0], logistic_coresets()[0]], {}, "response"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(coresets, settings, message):
    with pytest.raises(ValueError, match=message):
        draw(coresets, **settings)


def test_the_package_is_imported_without_the_sampler():
    script = "import sys, betacores.evaluation; print('blackjax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
