"""The estimated divergence against the exact one, where that is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import betacores as bc
from betacores.models import GaussianMean, LogisticRegression, Rows
from betacores.posteriors import gaussian_kl, laplace
from betacores.quality import kl_estimate
from betacores.sources import ArraySource
from betacores.target import direct_target

X = np.random.default_rng(0).normal(1.0, 1.0, (400, 3)).astype(np.float32)


def exact(weights):
    """Return the divergence from the posterior of weighted rows to that of all rows, in closed form."""
    full, total = 1 + len(X), 1 + weights.sum()
    mean = weights @ X[: len(weights)].astype(float) / total
    return gaussian_kl(mean, np.eye(3) / total, X.sum(0, dtype=float) / full, np.eye(3) / full)


@pytest.mark.parametrize("size", [400, 200, 100])
def test_estimate_is_within_its_error_of_the_exact_value_on_a_conjugate_model(size):
    weights = np.full(size, 400.0 / size)
    truth = exact(weights)
    source, rows = ArraySource(X), Rows(jnp.asarray(X[:size]))
    settings = {"read_beta": 0.0, "draws": 4000}
    found = [
        kl_estimate(
            GaussianMean(), direct_target(GaussianMean(), source, 0.0), rows, weights, jax.random.key(i), **settings
        )
        for i in range(8)
    ]
    z = [(estimate.value - truth) / np.hypot(estimate.standard_error, 1e-4) for estimate in found]
    assert np.abs(np.mean(z)) < 4 / np.sqrt(len(z)) + 0.5
    assert np.max(np.abs(z)) < 5
    if size < 400:
        assert truth > 0.02
        assert np.mean([estimate.value for estimate in found]) == pytest.approx(truth, rel=0.15)


def test_standard_error_is_that_of_repetition():
    weights = np.full(200, 2.0)
    rows, settings = Rows(jnp.asarray(X[:200])), {"read_beta": 0.0, "draws": 1000}
    found = [
        kl_estimate(
            GaussianMean(),
            direct_target(GaussianMean(), ArraySource(X), 0.0),
            rows,
            weights,
            jax.random.key(i),
            **settings,
        )
        for i in range(20)
    ]
    spread = np.std([estimate.value for estimate in found], ddof=1)
    assert np.mean([estimate.standard_error for estimate in found]) == pytest.approx(spread, rel=0.6)


def test_importance_weights_make_up_for_the_laplace_approximation():
    """All rows against themselves: the divergence is zero however wrong the Gaussian is that draws are made from."""
    random = np.random.default_rng(1)
    x = random.normal(size=(30, 2)).astype(np.float32)
    y = np.where(random.uniform(size=30) < 1 / (1 + np.exp(-3 * x[:, 0])), 1.0, -1.0).astype(np.float32)
    target, rows = direct_target(LogisticRegression(), ArraySource(x, y), 0.0), Rows(jnp.asarray(x), jnp.asarray(y))
    same = kl_estimate(LogisticRegression(), target, rows, np.ones(30), jax.random.key(0), read_beta=0.0, draws=2000)
    assert same.value == pytest.approx(0.0, abs=1e-4)
    fit, _ = laplace(LogisticRegression(), rows, jnp.ones(30))
    half = kl_estimate(
        LogisticRegression(), target, rows, np.full(30, 0.5), jax.random.key(0), read_beta=0.0, draws=2000
    )
    wide, _ = laplace(LogisticRegression(), rows, jnp.full(30, 0.5))
    rough = gaussian_kl(wide.mean, wide.covariance(), fit.mean, fit.covariance())
    assert half.value == pytest.approx(rough, rel=0.5)


def test_beta_target_and_beta_readout_agree_with_each_other():
    weights, target = np.ones(400), direct_target(GaussianMean(), ArraySource(X), 0.2)
    same = kl_estimate(GaussianMean(), target, Rows(jnp.asarray(X)), weights, jax.random.key(0), read_beta=0.2)
    assert same.value == pytest.approx(0.0, abs=1e-3)
    other = kl_estimate(GaussianMean(), target, Rows(jnp.asarray(X)), weights, jax.random.key(0), read_beta=0.0)
    assert other.value > 10 * max(same.value, 1e-4)


def test_a_billion_rows_leave_digits_enough():
    """Rows that stand for fifty thousand each: the posterior is 30,000 times narrower than the prior."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(20_000, 4))
    y = rng.random(len(x)) < 1 / (1 + np.exp(-x @ np.array([1.0, -1.0, 0.5, 2.0])))
    coreset = bc.summarize(x, y, size=60, beta=0.5, guard=None, sample_weight=np.full(len(x), 5e4))
    assert coreset.info.kl_estimate.value < 0.05
