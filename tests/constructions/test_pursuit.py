"""Pursuit: the target it regresses on, and the posteriors its coresets give."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import betacores as bc
from betacores.divergence import as_beta, likelihood
from betacores.experiments.gaussian import posterior, reverse_kl
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Rows
from betacores.posteriors import gaussian_kl, laplace
from betacores.sources import ArraySource
from betacores.tangent import target_over

compiled_laplace = jax.jit(laplace)


def kl_to_clean(table, indices, weights):
    clean = table.x[~table.outlier]
    return reverse_kl(*posterior(table.x[indices], weights), *posterior(clean, np.ones(len(clean))))


@pytest.mark.parametrize("model", [GaussianMean(), LogisticRegression(), LinearRegression(1.0)], ids=lambda m: m.name)
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_target_is_the_sum_over_all_rows(model, beta, monkeypatch):
    monkeypatch.setattr("betacores.sources.arrays.BLOCK_ROWS", 64)
    random = np.random.default_rng(0)
    x, y = random.normal(size=(300, 3)).astype(np.float32), random.choice([-1.0, 1.0], 300).astype(np.float32)
    source = ArraySource(x, None if model.name == "gaussian-mean" else y)
    thetas = jnp.asarray(random.normal(size=(7, model.parameter_count(3))), jnp.float32)
    found = target_over(source, model, thetas, as_beta(beta))
    rows = Rows(x, source.y)
    each = jax.vmap(jax.vmap(likelihood, (None, None, 0, None)), (None, 0, None, None))
    direct = np.asarray(each(model, thetas, rows, as_beta(beta)), np.float64).sum(1)
    np.testing.assert_allclose(found, direct - direct[0], rtol=2e-5, atol=2e-3)


@pytest.mark.parametrize("fraction", [0.0, 0.15, 0.30, 0.45])
def test_gaussian_coreset_of_twenty_rows_is_the_clean_posterior(fraction):
    table = bc.datasets.contaminated_gaussian(0, fraction)
    coreset = bc.summarize(table.x, method="pursuit", size=20, beta=0.01)
    assert kl_to_clean(table, coreset.indices, coreset.weights) < 0.5
    assert not table.outlier[coreset.path.indices].any()
    assert coreset.contamination == pytest.approx(fraction, abs=0.02)


def test_without_beta_and_with_enough_rows_it_is_the_full_posterior():
    table = bc.datasets.contaminated_gaussian(1, 0.0, rows=2000, columns=5)
    coreset = bc.summarize(table.x, method="pursuit", size=10, beta=0.0)
    # The tangent space has 5 means and one square: with 6 directions or more the fit is exact.
    assert kl_to_clean(table, coreset.indices, coreset.weights) < 1e-3


READ = {
    "gaussian-mean": (bc.datasets.contaminated_gaussian(0, 0.2, rows=4000, columns=8), 0.1, 60),
    "linear": (bc.datasets.shifted_linear(0, 0.2, rows=4000, columns=30), 1.4, 250),
    "logistic": (bc.datasets.contaminated_logistic(0, 0.06, rows=4000, columns=4), 0.5, 60),
}


@pytest.mark.parametrize("name", [n if n == "logistic" else pytest.param(n, marks=pytest.mark.slow) for n in READ])
def test_classical_inference_on_a_classical_coreset_is_the_robust_posterior_and_on_a_beta_coreset_is_not(name):
    table, beta, size = READ[name]
    settings = {"model": name, "size": size, "beta": beta, "guard": None}
    built = {reader: bc.summarize(table.x, table.y, readout=reader, **settings) for reader in ("classical", "beta")}
    model = built["classical"].model

    def encoded(x, y):
        signs = np.where(y == "yes", 1.0, -1.0) if name == "logistic" else y
        return Rows(jnp.asarray(x, jnp.float32), None if y is None else jnp.asarray(signs, jnp.float32))

    start = jnp.asarray(built["classical"].posterior(100).mean, jnp.float32)
    rows = encoded(table.x, table.y)
    robust, info = compiled_laplace(model, rows, jnp.ones(len(table.x)), as_beta(beta), start)
    assert info.converged

    def divergence(coreset, likelihood):
        held = encoded(coreset.X, coreset.y)
        read = as_beta(beta if likelihood == "beta" else 0.0)
        fit, _ = compiled_laplace(model, held, jnp.asarray(coreset.weights, jnp.float32), read, robust.mean)
        return gaussian_kl(fit.mean, fit.covariance(), robust.mean, robust.covariance())

    assert divergence(built["classical"], "classical") < 1
    assert divergence(built["beta"], "beta") < 1
    assert divergence(built["beta"], "classical") > 1
    assert built["beta"].readout == "beta"
    assert built["beta"].posterior(10).beta == beta
    assert built["beta"].posterior(10, likelihood="classical").beta == 0.0
    assert built["classical"].posterior(10).beta == 0.0


def test_path_gives_every_size():
    table = bc.datasets.contaminated_gaussian(2, 0.2, rows=1000, columns=4)
    coreset = bc.summarize(table.x, method="pursuit", size=8, beta=0.05)
    divergences = [kl_to_clean(table, *coreset.path.at(m)) for m in range(1, len(coreset.path.weights) + 1)]
    assert divergences[-1] < 0.1 < divergences[0]
    assert [len(coreset.at(m)) for m in (1, 2, 3)] == [1, 2, 3]


def test_candidates_may_be_a_sample():
    table = bc.datasets.contaminated_gaussian(3, 0.2, rows=3000, columns=4)
    coreset = bc.summarize(table.x, method="pursuit", size=10, beta=0.05, candidates=300)
    assert kl_to_clean(table, coreset.indices, coreset.weights) < 0.5
