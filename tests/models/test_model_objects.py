"""Models as objects: likelihoods and priors against SciPy, errors at the door, pytrees that do not retrace."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from betacores.models import MODELS, GaussianMean, LinearRegression, LogisticRegression, Rows, gaussian_prior

COVARIANCE = np.array([[2.0, 0.7], [0.7, 0.5]])


@pytest.mark.parametrize("covariance", [1.7, [0.3, 4.0], COVARIANCE], ids=["number", "vector", "matrix"])
def test_gaussian_log_likelihood_is_the_log_density(covariance):
    full = np.diag(np.broadcast_to(covariance, 2)) if np.ndim(covariance) < 2 else covariance
    row, theta = jnp.asarray([1.0, -2.0]), jnp.asarray([0.3, 0.4])
    actual = GaussianMean(covariance).log_likelihood(theta, Rows(row))
    np.testing.assert_allclose(actual, stats.multivariate_normal([0.3, 0.4], full).logpdf([1.0, -2.0]), rtol=1e-5)


def test_regressions_put_the_intercept_last():
    row, theta = Rows(jnp.asarray([1.0, -2.0]), jnp.asarray(1.0)), jnp.asarray([0.3, 0.4, 5.0])
    eta = 0.3 - 0.8
    for intercept in (True, False):
        at, mean = (theta, eta + 5.0) if intercept else (theta[:2], eta)
        line = LinearRegression(0.8, intercept=intercept)
        np.testing.assert_allclose(line.log_likelihood(at, row), stats.norm.logpdf(1.0, mean, 0.8), rtol=1e-5)
        odds = LogisticRegression(intercept=intercept)
        np.testing.assert_allclose(odds.log_likelihood(at, row), stats.logistic.logcdf(mean), rtol=1e-5, atol=1e-7)
        opposite = Rows(row.x, -row.y)
        np.testing.assert_allclose(odds.log_likelihood(at, opposite), stats.logistic.logsf(mean), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("model", [LinearRegression, LogisticRegression])
def test_parameter_counts_and_names_go_together(model):
    assert model().parameter_names(["a", "b"]) == ["a", "b", "intercept"]
    assert model(intercept=False).parameter_names(["a", "b"]) == ["a", "b"]
    for intercept in (True, False):
        known = model(intercept=intercept)
        assert known.parameter_count(2) == len(known.parameter_names(["a", "b"]))


def test_gaussian_mean_names_its_parameters_after_the_columns():
    assert GaussianMean().parameter_count(3) == 3
    assert GaussianMean().parameter_names(["a", "b", "c"]) == ["a", "b", "c"]


@pytest.mark.parametrize("covariance", [2.5, [0.5, 3.0], COVARIANCE], ids=["number", "vector", "matrix"])
def test_prior_differences_are_those_of_the_density(covariance):
    prior = gaussian_prior([1.0, -1.0], covariance)
    full = np.diag(np.broadcast_to(covariance, 2)) if np.ndim(covariance) < 2 else covariance
    density = stats.multivariate_normal([1.0, -1.0], full)
    points = np.array([[0.0, 0.0], [2.0, 1.5], [-1.0, 0.25]], np.float32)
    actual = np.array([prior.log_density(jnp.asarray(at)) for at in points])
    expected = density.logpdf(points)
    np.testing.assert_allclose(actual - actual[0], expected - expected[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(prior.precision_matrix(2) @ full, np.eye(2), atol=1e-5)
    np.testing.assert_array_equal(prior.mean_vector(2), [1.0, -1.0])


def test_the_default_prior_is_standard_normal_in_any_dimension():
    prior = LogisticRegression().prior
    np.testing.assert_array_equal(prior.precision_matrix(3), np.eye(3))
    np.testing.assert_array_equal(prior.mean_vector(3), np.zeros(3))


BAD_COVARIANCES = {
    "negative": (-2.0, r"positive.*-2"),
    "zero in a vector": ([1.0, 0.0], r"positive.*0"),
    "not square": (np.ones((2, 3)), r"\(2, 3\)"),
    "not symmetric": ([[1.0, 0.5], [0.25, 1.0]], r"symmetric"),
    "not definite": ([[1.0, 2.0], [2.0, 1.0]], r"positive definite.*-1"),
    "singular": ([[1.0, 0.0], [0.0, 0.0]], r"positive definite"),
    "three dimensions": (np.ones((2, 2, 2)), r"\(2, 2, 2\)"),
    "nan": (np.nan, r"finite.*nan"),
    "infinite": ([[1.0, 0.0], [0.0, np.inf]], r"finite.*inf"),
}


@pytest.mark.parametrize("given", BAD_COVARIANCES)
def test_bad_covariances_are_refused_and_named(given):
    covariance, message = BAD_COVARIANCES[given]
    with pytest.raises(ValueError, match=f"(?s)^covariance.*{message}"):
        GaussianMean(covariance)
    with pytest.raises(ValueError, match=f"(?s)^prior covariance.*{message}"):
        gaussian_prior(0.0, covariance)


@pytest.mark.parametrize("noise", [0.0, -1.5, float("nan"), float("inf")])
def test_bad_noise_is_refused_and_named(noise):
    with pytest.raises(ValueError, match=f"noise.*positive.*{noise!r}"):
        LinearRegression(noise)


def test_bad_prior_means_are_refused():
    with pytest.raises(ValueError, match=r"prior mean.*\(1, 2\)"):
        gaussian_prior([[0.0, 1.0]])
    with pytest.raises(ValueError, match=r"prior mean.*finite"):
        gaussian_prior([0.0, np.nan])


def test_the_registry_knows_every_model_by_its_name():
    assert {name: cls().name for name, cls in MODELS.items()} == {name: name for name in MODELS}
    assert {"gaussian-mean", "linear", "logistic", "softmax", "poisson", "negative-binomial"} <= set(MODELS)
    assert "noisy-logistic" in MODELS
    assert {"none", "real", "binary", "classes", "count"} <= {cls.response for cls in MODELS.values()}


def test_arrays_and_floats_are_leaves_and_flags_are_not():
    model = LinearRegression(0.5, intercept=False, prior=gaussian_prior([1.0, 2.0], COVARIANCE))
    leaves, structure = jax.tree.flatten(model)
    shapes = sorted(np.shape(leaf) for leaf in leaves)
    assert shapes == [(), (2,), (2, 2)]
    back = jax.tree.unflatten(structure, leaves)
    assert isinstance(back, LinearRegression)
    assert (back.noise, back.intercept) == (0.5, False)
    assert structure != jax.tree.structure(LinearRegression(0.5, intercept=True, prior=model.prior))
    assert structure == jax.tree.structure(LinearRegression(7.0, intercept=False, prior=gaussian_prior()))
    doubled = jax.tree.map(lambda leaf: 2 * leaf, model)
    assert doubled.noise == 1.0


def test_new_settings_do_not_retrace_but_new_flags_do():
    traces = []

    @jax.jit
    def value(model, theta, row):
        traces.append(model)
        return model.log_likelihood(theta, row) + model.log_prior(theta)

    row = Rows(jnp.asarray([1.0, 2.0]), jnp.asarray(1.0))
    theta = jnp.asarray([0.5, 0.25, -1.0])
    for noise in (0.5, 1.0, 2.0):
        for variance in (1.0, 3.0):
            actual = value(LinearRegression(noise, prior=gaussian_prior(0.0, variance)), theta, row)
            prior = -0.5 * (0.25 + 0.0625 + 1.0) / variance
            np.testing.assert_allclose(actual, stats.norm.logpdf(1.0, 0.0, noise) + prior, rtol=1e-5)
    assert len(traces) == 1
    value(LinearRegression(1.0, intercept=False), theta[:2], row)
    assert len(traces) == 2
    for scale in (1.0, 2.0):
        value(GaussianMean(scale * COVARIANCE), theta[:2], Rows(row.x))
    assert len(traces) == 3


def test_repr_names_the_class_and_its_settings():
    assert repr(LinearRegression(0.25)).startswith("LinearRegression(intercept=True, noise=0.25, prior=")
    assert "intercept=False" in repr(LogisticRegression(intercept=False))
    assert "(2, 2)" in repr(GaussianMean(COVARIANCE)), "a matrix is shown by its shape"


def test_models_that_say_so_are_concave():
    """Likelihood and prior bend down at any parameter, in every direction."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(40, 3)), jnp.float32)
    numbers, labels, classes = rng.normal(size=40), rng.choice([-1.0, 1.0], 40), rng.integers(3, size=40)
    responses = {"real": numbers, "binary": labels, "classes": classes}
    concave = [kind for kind in MODELS.values() if kind.log_concave]
    assert len(concave) == 4
    for kind in concave:
        names = ["a", "b", "c"]
        model = kind(noise=0.5) if kind is LinearRegression else kind().bound(names, np.arange(3))
        y = responses.get(kind.response)
        rows = Rows(x, None if y is None else jnp.asarray(y, jnp.float32))

        def height(theta, model=model, rows=rows):
            each = jax.vmap(model.log_likelihood, (None, 0))(theta, rows)
            return each.sum() + model.log_prior(theta)

        for spread in (0.1, 1.0, 3.0):
            theta = jnp.asarray(spread * rng.normal(size=model.parameter_count(3)), jnp.float32)
            assert np.linalg.eigvalsh(jax.hessian(height)(theta)).max() < 0, kind.name
