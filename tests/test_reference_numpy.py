"""The NumPy yardstick in ``benchmarks/`` is checked before anything is checked against it."""

import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats
from threadpoolctl import threadpool_limits

FOLDER = str(Path(__file__).parents[1] / "benchmarks")
sys.path.insert(0, FOLDER)
try:
    reference, models = (importlib.import_module(name) for name in ("reference_numpy", "reference_models"))
finally:
    sys.path.remove(FOLDER)

QUICK = {"draws": 50, "steps": 60, "batch_select": 200, "batch_optimise": 50}
LOGISTIC = [models.Logistic(), models.TunedLogistic()]
GAUSSIAN = [models.GaussianMean(), models.TunedGaussianMean()]
EXACT = {"sampler_target": "classical", **QUICK}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Matrices this small only wait for the other threads of the BLAS, for long on a busy machine."""
    with threadpool_limits(1):
        yield


def correlated(dim=4):
    """A Gaussian whose covariances are neither diagonal nor alike, with a prior mean off zero."""
    a, b = np.random.default_rng(7).normal(size=(2, dim, dim))
    return models.GaussianMean(np.eye(dim) + a @ a.T, np.linspace(-1.0, 1.0, dim), 0.5 * np.eye(dim) + b @ b.T)


def labelled(count=400, dim=3, seed=0):
    """Rows and labels of a logistic regression."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, dim))
    chance = 1.0 / (1.0 + np.exp(-x @ np.linspace(1.0, 2.0, dim) + 0.5))
    return x, np.where(rng.uniform(size=count) < chance, 1, -1)


def reverse_kl(weights, rows, data):
    """KL(coreset posterior || posterior of `data`), both read classically, unit covariances."""
    ours, theirs = 1.0 + weights.sum(), 1.0 + len(data)
    gap = weights @ rows / ours - data.sum(axis=0) / theirs
    ratio = theirs / ours
    return 0.5 * (data.shape[1] * (ratio - 1.0 - np.log(ratio)) + theirs * gap @ gap)


@pytest.mark.parametrize("model", [*LOGISTIC, models.GaussianMean(), correlated()])
@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 1.3])
def test_derivatives_agree_with_finite_differences(model, beta):
    """Both targets: 0 is the classical one, the rest are β."""
    x, y = labelled(20, dim=3 if model in LOGISTIC else 4)
    rng = np.random.default_rng(1)
    theta, rows = rng.normal(size=4), model.rows(x, y if model in LOGISTIC else None)
    args = (rows, rng.gamma(1.0, size=20), beta)

    slope = optimize.approx_fprime(theta, lambda t: model.objective(t, *args)[0], 1e-7)
    np.testing.assert_allclose(model.objective(theta, *args)[1], slope, rtol=1e-5, atol=1e-5)
    curvature = optimize.approx_fprime(theta, lambda t: model.objective(t, *args)[1], 1e-7)
    np.testing.assert_allclose(model.hessian(theta, *args), curvature, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beta", [0.1, 0.7])
def test_logistic_likelihoods_are_the_stated_formula(beta):
    """``p^β / β`` less the power integral, written out naively; the plain one leaves out 1 - 1/β."""
    plain, tuned = LOGISTIC
    x, y = labelled(30)
    theta = np.random.default_rng(1).normal(size=(5, 4))
    chance = 1.0 / (1.0 + np.exp(-np.column_stack([x, np.ones(30)]) @ theta.T))
    own = np.where(y[:, None] > 0, chance, 1.0 - chance)
    integral = chance ** (1 + beta) + (1.0 - chance) ** (1 + beta)
    expected = np.expm1(beta * np.log(own)) / beta - (integral / (1 + beta) - 1.0)
    rows = plain.rows(x, y)
    np.testing.assert_allclose(tuned.likelihood(theta, rows, beta), expected, atol=1e-14)
    np.testing.assert_allclose(plain.likelihood(theta, rows, beta), expected - (1.0 - 1.0 / beta), atol=1e-14)


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 1.3])
def test_logistic_models_agree_at_extreme_margins(beta):
    """Values but for the constant, and gradients, without a warning or a NaN at ±1000."""
    margins = np.array([-1e3, -710.0, -400.0, -40.0, -1.0, 0.0, 1.0, 40.0, 400.0, 710.0, 1e3])
    rows, weights = margins[:, None], np.linspace(1.0, 2.0, len(margins))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, tuned = (m.likelihood(np.array([[1.0], [0.9]]), rows, beta) for m in LOGISTIC)
        np.testing.assert_allclose(reference.centre(plain), reference.centre(tuned), atol=1e-12)
        for theta in (np.zeros(1), np.ones(1)):
            slopes = [m.objective(theta, rows, weights, beta)[1] for m in LOGISTIC]
            np.testing.assert_allclose(*slopes, rtol=1e-10)
            assert np.isfinite(models.logistic_hessian(theta, rows, weights, beta)).all()


@pytest.mark.parametrize("beta", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_logistic_models_find_the_same_modes(beta, scale):
    """Cold and warm searches, as weights move; a mode is known to gradient over curvature."""
    plain, tuned = LOGISTIC
    rows, start = plain.rows(*labelled(60)), None
    rng = np.random.default_rng(2)
    weights = scale * rng.gamma(2.0, size=60)
    for _ in range(10):
        weights = np.maximum(weights + 0.1 * scale * rng.normal(size=60), 0.0)
        args = (rows, weights, 20, beta)
        cold, (mode, covariance) = plain.draw(np.random.default_rng(3), *args)
        warm, start = tuned.draw(np.random.default_rng(3), *args, start)
        np.testing.assert_allclose(start[0], mode, atol=1e-4)
        np.testing.assert_allclose(start[1], covariance, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(warm, cold, atol=1e-3)


@pytest.mark.parametrize("model", [*GAUSSIAN, correlated()])
def test_gaussian_likelihood_is_the_density_over_its_power_integral(model):
    """``p^β / (β c)`` with the powers of 2π and |Σ| in both p and c, nothing cancelled."""
    beta, dim = 0.3, 4
    covariance = np.linalg.inv(model.known(dim)[0]) if isinstance(model, models.GaussianMean) else np.eye(dim)
    rng = np.random.default_rng(0)
    x, theta = rng.normal(size=(6, dim)), rng.normal(size=(5, dim))
    log_density = np.stack([stats.multivariate_normal(t, covariance).logpdf(x) for t in theta], axis=1)
    log_c = -0.5 * beta * np.linalg.slogdet(2 * np.pi * covariance)[1] - 0.5 * dim * np.log1p(beta)
    expected = np.exp(beta * log_density - log_c) / beta
    np.testing.assert_allclose(model.likelihood(theta, x, beta), expected)


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_gaussian_objective_is_the_prior_and_the_weighted_likelihoods(beta):
    """Differences between parameters, as constants are left out; a weight is worth as many copies."""
    model, rng = correlated(), np.random.default_rng(0)
    x, theta = rng.normal(size=(6, 4)), rng.normal(size=(5, 4))
    weights = np.array([0, 1, 2, 3, 1, 2])
    prior = stats.multivariate_normal(model.given[1], model.given[2])
    expected = -prior.logpdf(theta) - model.likelihood(theta, x.repeat(weights, axis=0), beta).sum(axis=0)
    found = np.array([model.objective(t, x, weights, beta)[0] for t in theta])
    np.testing.assert_allclose(np.diff(found), np.diff(expected))


def test_gaussian_models_agree_for_the_classical_target():
    """Draws, then whole paths, to rounding; outliers included."""
    x = 1.0 + np.random.default_rng(0).normal(size=(400, 5))
    x[:80] += 9.0
    weights = np.random.default_rng(1).gamma(2.0, size=20)
    draws = [m.draw(np.random.default_rng(2), x[-20:], weights, 30, 0.0)[0] for m in GAUSSIAN]
    np.testing.assert_allclose(*draws, rtol=1e-12, atol=1e-12)
    for beta in (0.0, 0.05):
        plain, tuned = (reference.beta_cores(x, None, model=m, size=8, beta=beta, **EXACT) for m in GAUSSIAN)
        np.testing.assert_array_equal(plain.indices, tuned.indices)
        np.testing.assert_allclose(plain.weights, tuned.weights, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("model", [*LOGISTIC, *GAUSSIAN, correlated(3)])
def test_small_beta_gives_the_log_likelihood_vectors(model):
    """Centred over draws, as constants may differ; the error is linear in β."""
    x, y = labelled(50)
    rows = model.rows(x, y if model in LOGISTIC else None)
    theta = np.random.default_rng(1).normal(size=(30, rows.shape[1]))
    exact = reference.centre(model.likelihood(theta, rows, 0.0))
    error = [np.abs(reference.centre(model.likelihood(theta, rows, beta)) - exact).max() for beta in (1e-4, 1e-5)]
    assert error[1] < 1e-3
    assert error[1] == pytest.approx(error[0] / 10, rel=0.1)


@pytest.mark.parametrize("model", [*LOGISTIC, models.GaussianMean(), correlated()])
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_draws_have_the_mode_and_curvature_of_the_target(model, beta):
    """Moments of many draws; for the classical Gaussian both are exact, and it keeps no state."""
    x, y = labelled(30, dim=3 if model in LOGISTIC else 4)
    rows, weights = model.rows(x, y if model in LOGISTIC else None), np.full(30, 5.0)
    theta, state = model.draw(np.random.default_rng(0), rows, weights, 50_000, beta)
    mean = theta.mean(axis=0)
    mode = mean if state is None else state[0]
    covariance = np.linalg.inv(model.hessian(mode, rows, weights, beta))
    scale = np.sqrt(np.diag(covariance))
    # What is left of the gradient, as a distance to the exact mode.
    np.testing.assert_allclose(covariance @ model.objective(mode, rows, weights, beta)[1], 0, atol=0.02 * scale.max())
    if state is not None:
        np.testing.assert_allclose(model.objective(mode, rows, weights, beta)[1], 0, atol=1e-4)
        np.testing.assert_allclose(state[1], covariance)
    np.testing.assert_allclose(mean, mode, atol=0.02 * scale.max())
    np.testing.assert_allclose(np.cov(theta.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.03)


def test_indefinite_curvature_is_lifted_to_the_prior():
    """Eigenvalues 5 and -3 become 5 and 1; a definite matrix is left alone."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 2)))[0]
    for given, wanted in (([5.0, -3.0], [5.0, 1.0]), ([5.0, 0.5], [5.0, 0.5])):
        factor = models.cholesky((basis * given) @ basis.T)
        np.testing.assert_allclose(factor @ factor.T, (basis * wanted) @ basis.T, atol=1e-12)


@pytest.mark.parametrize("model", GAUSSIAN)
def test_far_outliers_with_vanishing_vectors_are_never_selected(model):
    """Half the rows are so far that their likelihoods do not depend on the draw."""
    x = np.random.default_rng(0).normal(size=(200, 5))
    x[:100] += 1e3
    path = reference.beta_cores(x, None, model=model, size=6, beta=0.1, **EXACT)
    assert (path.indices >= 100).all()


@pytest.mark.parametrize("model", LOGISTIC)
def test_hopelessly_mislabelled_rows_are_never_selected(model):
    """Their vectors are a constant, of which centring leaves rounding errors only."""
    members, weights = np.arange(30), np.full(30, 50.0)
    x, y = labelled(130)
    x[30:], y[30:] = 1e4, -1
    problem = reference.Problem(model, model.rows(x, y), 0.5, 0.5, 50)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        chosen, _ = reference.select(problem, rng, members, weights, None, 100)
        assert chosen < 30


@pytest.mark.parametrize("model", GAUSSIAN)
def test_nothing_is_selected_when_every_vector_vanishes(model):
    """An empty coreset, not the first row of 0/0."""
    path = reference.beta_cores(np.full((50, 5), 1e3), None, model=model, size=3, beta=0.5, **EXACT)
    assert path.indices.shape == (0,)
    assert path.weights.shape == (3, 0)


@pytest.mark.parametrize(("model", "target"), [(m, "classical") for m in GAUSSIAN] + [(GAUSSIAN[0], "beta")])
def test_optimised_weights_reduce_the_reverse_kl(model, target):
    """Exact KL to the posterior of the clean rows, with and without outliers."""
    settings = {"model": model, "size": 12, **QUICK, "sampler_target": target}
    clean = 1.0 + np.random.default_rng(0).normal(size=(500, 4))
    dirty = np.vstack([clean, 10.0 + np.random.default_rng(1).normal(size=(100, 4))])
    for data, beta in ((clean, 0.0), (clean, 0.05), (dirty, 0.05)):
        path = reference.beta_cores(data, None, beta=beta, **settings)
        empty = reverse_kl(np.zeros(len(path.indices)), data[path.indices], clean)
        divergence = [reverse_kl(w, data[path.indices], clean) for w in path.weights]
        assert divergence[0] < empty
        assert divergence[-1] < 0.05 * empty


@pytest.mark.parametrize("model", LOGISTIC)
def test_path_is_reproducible_and_well_formed(model):
    """One seed, one path; weights appear in order of insertion and never below zero."""
    x, y = labelled()
    for target in ("beta", "classical"):
        settings = {"model": model, "size": 5, "beta": 0.5, **QUICK}
        settings |= {"sampler_target": target}
        path, again, other = (reference.beta_cores(x, y, seed=s, **settings) for s in (3, 3, 4))
        np.testing.assert_array_equal(path.indices, again.indices)
        np.testing.assert_array_equal(path.weights, again.weights)
        assert not np.array_equal(path.weights, other.weights)
        assert len(set(path.indices)) == len(path.indices) == path.weights.shape[1]
        assert path.weights.shape[0] == 5
        assert (path.weights >= 0).all()
        assert (np.triu(path.weights, k=1) == 0).all()


def test_wrong_settings_are_refused_with_a_remedy():
    """Before any work begins."""
    x, y = labelled()
    with pytest.raises(ValueError, match="classical"):
        reference.beta_cores(x, None, model=models.TunedGaussianMean(), size=1, beta=0.1)
    with pytest.raises(ValueError, match="3 columns"):
        reference.beta_cores(x, None, model=correlated(4), size=1, beta=0.1)
    with pytest.raises(ValueError, match="y=None"):
        reference.beta_cores(x, y, model=models.GaussianMean(), size=1, beta=0.1)
    with pytest.raises(ValueError, match="sampler_target"):
        reference.beta_cores(x, y, model=models.Logistic(), size=1, beta=0.1, sampler_target="robust")
    with pytest.raises(ValueError, match="labels"):
        reference.beta_cores(x, (y + 1) // 2, model=models.Logistic(), size=1, beta=0.1)
