"""Leverages against their formula, and what they are for: candidates that know of rare levels."""

import numpy as np
import pytest

import betacores as bc
from betacores.leverage import leverages
from betacores.models import GaussianMean, LinearRegression, LogisticRegression
from betacores.sources import ArraySource


@pytest.mark.parametrize("intercept", [True, False])
def test_they_are_the_variance_of_the_linear_predictor(intercept):
    random = np.random.default_rng(0)
    x = random.normal(size=(50, 3)).astype(np.float32)
    z = np.column_stack([x, np.ones(50)]) if intercept else x.astype(np.float64)
    root = random.normal(size=(z.shape[1], z.shape[1]))
    precision = root @ root.T + np.eye(z.shape[1])
    found = leverages(LinearRegression(1.0, intercept=intercept), ArraySource(x, x[:, 0]), precision)
    np.testing.assert_allclose(found, np.einsum("np,pq,nq->n", z, np.linalg.inv(precision), z), rtol=1e-4)


def test_a_model_without_a_linear_predictor_has_none():
    assert leverages(GaussianMean(), ArraySource(np.ones((4, 2), np.float32)), np.eye(2)) is None


def test_a_direction_without_curvature_leaves_them_finite():
    x = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float32)
    found = leverages(LogisticRegression(intercept=False), ArraySource(x, np.ones(20, np.float32)), np.diag([1.0, 0.0]))
    assert np.isfinite(found).all()


def test_a_rare_level_is_among_few_candidates():
    """One row in five hundred has a level of its own: hardly any of them is in a uniform sample of 300."""
    random = np.random.default_rng(1)
    x = random.normal(size=(10_000, 2))
    rare = np.arange(10_000) % 500 == 0
    y = x @ [1.0, -1.0] + 3.0 * rare + 0.5 * random.normal(size=10_000)
    table = np.column_stack([x, rare])
    settings = {"model": LinearRegression(0.5), "beta": 0.0, "guard": None, "size": 30, "candidates": 300}
    for seed in range(3):
        coreset = bc.summarize(table, y, seed=seed, **settings)
        assert coreset.posterior(2000).mean[2] == pytest.approx(3.0, abs=0.5)
        assert coreset.info.kl_estimate.value < 0.5
