"""Simulation-based calibration of the coreset's classical posterior on clean rows.

Draw θ from the prior, a table given θ, and L draws from the posterior that the table's coreset has. If that posterior
is right, θ and the draws are exchangeable, so that the rank of θ among them is uniform on 0..L, parameter by parameter.
Ranks of many tables are put into bins of equal chance, and a χ² test tells whether they are uniform. The smallest p of
the parameters is multiplied by their number (Bonferroni).

Of 200 tables in 10 bins, each bin is expected to have 20 ± 4.2. Table k is made by the seed k, so that a result is the
same on every run; a calibrated posterior is refused for one choice of seeds in a hundred. What the test can see: draws
half as wide, off by half a standard deviation, or from weights that are a quarter of what they should be have p below
1e-4.

Reference: Talts, Betancourt, Simpson, Vehtari and Gelman, "Validating Bayesian inference algorithms with
simulation-based calibration", arXiv 1804.06788 (2018).
"""

import functools

import jax
import numpy as np
import pytest
from scipy import special, stats

import betacores as bc
from betacores.inputs import encode_rows
from betacores.models import (
    GaussianMean,
    GaussianRegression,
    LinearRegression,
    LogisticRegression,
    PoissonRegression,
    gaussian_prior,
)
from betacores.posteriors.weighted import padded
from betacores.precision import single_precision

TABLES, ROWS, DRAWS, BINS = 200, 240, 99, 10
# A prior of standard deviation ½ for every parameter: wider than the posterior, and no table is extreme.
WIDTH = 0.5
PRIOR = gaussian_prior(0.0, WIDTH**2)
REFUSED, HOPELESS = 0.01, 1e-4

MODELS = {
    "gaussian-mean": GaussianMean(prior=PRIOR),
    "linear": LinearRegression(noise=1.0, prior=PRIOR),
    "logistic": LogisticRegression(prior=PRIOR),
    "poisson": PoissonRegression(prior=PRIOR),
    # What is otherwise taken from the rows, and would make the prior depend on them, is given.
    "gaussian": GaussianRegression(prior=PRIOR, scale_prior=PRIOR, typical=1.0, clean=1.0),
}


def simulated(name, seed):
    """Draw parameters from the prior and a table from the model; return the parameters, covariates and responses."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(0, WIDTH, 4 if name == "gaussian" else 3)
    if name == "gaussian-mean":
        return theta, rng.normal(theta, 1, (ROWS, 3)), None
    x = rng.normal(size=(ROWS, 2))
    eta = x @ theta[:2] + theta[2]
    if name == "logistic":
        return theta, x, (rng.random(ROWS) < special.expit(eta)).astype(int)
    if name == "poisson":
        return theta, x, rng.poisson(np.exp(eta))
    return theta, x, eta + (np.exp(theta[3]) if name == "gaussian" else 1.0) * rng.normal(size=ROWS)


@functools.cache
def coresets(name, method="pursuit", size=40):
    """Return the parameters and the coresets of all tables. They have one shape, and share one compilation."""
    found = []
    own = {"guard": None} if method == "pursuit" else {}
    for seed in range(TABLES):
        theta, x, y = simulated(name, seed)
        coreset = bc.summarize(x, y, model=MODELS[name], method=method, size=size, beta=0.0, seed=seed, **own)
        found.append((theta, coreset))
    return found


def read(coreset, seed):
    return coreset.posterior(DRAWS, seed=seed).draws


def ranks(pairs, sampler=read):
    """Return the rank of the truth among draws, one row a table and one column a parameter."""
    return np.array([np.sum(sampler(coreset, seed) < theta, axis=0) for seed, (theta, coreset) in enumerate(pairs)])


def chance(ranks):
    """Return how likely ranks as uneven as these are for a calibrated posterior."""
    bins = ranks * BINS // (DRAWS + 1)
    counts = np.stack([np.bincount(column, minlength=BINS) for column in bins.T])
    smallest = min(stats.chisquare(one).pvalue for one in counts)
    return min(1.0, smallest * len(counts)), counts


def test_the_check_passes_exact_posteriors_and_refuses_others():
    """Means of normal rows under a normal prior, in closed form: no coreset, no sampler of the package."""
    rng = np.random.default_rng(0)
    theta = rng.normal(0, WIDTH, (TABLES, 3))
    variance = 1 / (1 / WIDTH**2 + ROWS)
    mean = variance * ROWS * (theta + rng.normal(0, ROWS**-0.5, theta.shape))
    noise = rng.normal(0, variance**0.5, (DRAWS, *theta.shape))
    assert chance((mean + noise < theta).sum(0))[0] > REFUSED
    for wrong in (mean + 0.5 * noise, mean + 2 * noise, mean + 0.5 * variance**0.5 + noise):
        assert chance((wrong < theta).sum(0))[0] < HOPELESS


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_posteriors_of_coresets_are_calibrated(name):
    pairs = coresets(name)
    # Few rows, and the divergence within what is asked for by default.
    assert max(len(coreset) for _, coreset in pairs) <= 40
    assert max(coreset.info.kl_estimate.value for _, coreset in pairs) < 0.1
    found, counts = chance(ranks(pairs))
    assert found > REFUSED, counts


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "logistic"])
def test_draws_by_nuts_are_calibrated(name):
    from betacores.posteriors.nuts import nuts

    def sampler(coreset, seed):
        with single_precision():
            rows = encode_rows(coreset.X, coreset.y, coreset.labels)
            # Padded to one number of rows, or every number would be a compilation.
            held = padded(rows, coreset.weights)
            # Every fifth draw: ranks are uniform only for draws that do not depend on each other.
            paths, _ = nuts(jax.random.key(seed), coreset.model, *held, draws=5 * DRAWS, chains=1, warmup=200)
        return np.asarray(paths)[0, ::5]

    found, counts = chance(ranks(coresets(name), sampler))
    assert found > REFUSED, counts


def narrow(coreset, seed):
    draws = read(coreset, seed)
    return draws.mean(0) + 0.5 * (draws - draws.mean(0))


def shifted(coreset, seed):
    draws = read(coreset, seed)
    return draws + 0.5 * draws.std(0)


@pytest.mark.slow
@pytest.mark.parametrize("broken", [narrow, shifted])
@pytest.mark.parametrize("name", MODELS)
def test_a_broken_sampler_is_refused(name, broken):
    assert chance(ranks(coresets(name), broken))[0] < HOPELESS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_weights_that_count_too_few_rows_are_refused(name):
    """A quarter of the weight is a posterior twice as wide, or less where the prior has a say."""

    def sampler(coreset, seed):
        from betacores.divergence import as_beta
        from betacores.posteriors.readout import Asked, read_out

        asked = Asked("laplace", DRAWS, 1, 1, seed)
        weights = coreset.weights / 4
        return read_out(coreset.model, coreset.X, coreset.y, coreset.labels, weights, as_beta(0.0), asked)[0][0]

    assert chance(ranks(coresets(name), sampler))[0] < HOPELESS


@pytest.mark.slow
def test_a_coreset_of_too_few_rows_is_refused():
    """Twenty rows by chance, each for twelve: as sure as all rows, and a good deal farther off."""
    assert chance(ranks(coresets("linear", "uniform", 20)))[0] < HOPELESS
