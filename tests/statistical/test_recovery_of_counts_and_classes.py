"""Coefficients and classes are found beside wild counts and wrong labels, where classical fits lose them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import betacores as bc
from betacores import CoresetClassifier
from betacores.divergence import FLOOR

TRUTH = np.array([0.6, -0.4, 0.3, 1.5])
SEEDS = range(3)


def counts(seed, share, dispersion=0.0, rows=2000):
    """Return rows, counts of which a share is wild where means are large, and which these are."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    mean = np.exp(x @ TRUTH[:3] + TRUTH[3])
    y = rng.poisson(mean * (rng.gamma(1 / dispersion, dispersion, rows) if dispersion else 1.0))
    wild = rng.random(rows) < share * 2 * (x[:, 0] > 0)
    return x, np.where(wild, 5 * y + 40, y), wild


def errors(model, seed, share, **setup):
    x, y, wild = counts(seed, share, **setup)
    coreset = bc.summarize(x, y, model=model, size=40)
    classical = PoissonRegressor(alpha=1e-6, max_iter=1000).fit(x, y)
    robust = coreset.posterior(2000).mean[:4]
    return (
        np.linalg.norm(robust - TRUTH),
        np.linalg.norm([*(classical.coef_ - TRUTH[:3]), classical.intercept_ - TRUTH[3]]),
        coreset,
        wild,
    )


@pytest.mark.slow
def test_one_table_of_wild_counts():
    robust, classical, coreset, wild = errors("poisson", 0, 0.1, rows=600)
    assert robust < 0.25 * classical
    assert abs(coreset.contamination - wild.mean()) < 0.05
    assert coreset.scores[wild].mean() < 0.1
    assert coreset.scores.min() >= np.exp(FLOOR)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The estimated KL:UserWarning")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
def test_poisson_counts(share):
    found = [errors("poisson", seed, share) for seed in SEEDS]
    robust, classical = (np.array([one[place] for one in found]) for place in (0, 1))
    assert (robust < 0.08).all()
    if share:
        assert (robust < 0.2 * classical).all()
        assert all(abs(one[2].contamination - one[3].mean()) < 0.04 for one in found)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The estimated KL:UserWarning")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
def test_dispersed_counts(share):
    found = [errors("negative-binomial", seed, share, dispersion=0.3) for seed in SEEDS]
    robust, classical = (np.array([one[place] for one in found]) for place in (0, 1))
    assert (robust < 0.25).all()
    if share:
        assert (robust < 0.5 * classical).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dispersed_counts_under_a_poisson_model_do_not_ruin_the_coefficients():
    """The model is wrong, and says that rows do not fit; the slopes are still there."""
    for seed in SEEDS:
        robust, _, coreset, _ = errors("poisson", seed, 0.0, dispersion=0.3)
        assert robust < 0.5
        slopes = coreset.posterior(2000).mean[:3]
        assert np.linalg.norm(slopes - TRUTH[:3]) < 0.15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.2])
def test_wrong_labels(share):
    centres = 1.5 * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]])
    gains = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        own, held = rng.integers(4, size=1500), rng.integers(4, size=4000)
        wrong = rng.random(1500) < share
        x = centres[own] * np.where(wrong, 2.5, 1.0)[:, None] + rng.normal(size=(1500, 3))
        y = np.where(wrong, (own + 1) % 4, own)
        test = centres[held] + rng.normal(size=(4000, 3))
        robust = CoresetClassifier(size=60, beta=1.0, guard=None).fit(x, y).score(test, held)
        gains.append(robust - LogisticRegression().fit(x, y).score(test, held))
    assert min(gains) > {0.0: -0.01, 0.1: 0.03, 0.2: 0.1}[share]
