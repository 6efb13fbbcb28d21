"""Poisson and negative binomial regression: log-probabilities against SciPy, power integrals against enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from finite_differences import check_against_slopes
from model_checks import check_finite, check_scores_average_one
from scipy import stats

import betacores as bc
from betacores.divergence import likelihood
from betacores.models import NegativeBinomialRegression, PoissonRegression, Rows, gaussian_prior
from betacores.models.negative_binomial_sum import power_sum as dispersed_sum
from betacores.models.poisson import power_sum

BETAS = (0.01, 0.1, 0.5, 1.0, 1.4)
MEANS = np.array([1e-6, 1e-3, 0.1, 1.0, 3.0, 9.99, 10.01, 14.0, 29.0, 31.5, 60.0, 300.0, 1e4, 1e6])
DISPERSIONS = (1e-6, 1e-3, 0.1, 1.0, 5.0)


def enumerated(mean, beta, dispersion=None):
    """Sum the powers of all probabilities that count, in double precision."""
    spread = np.sqrt(mean + (dispersion or 0.0) * mean**2)
    first = max(0, int(mean - 14 * spread)) if mean > 1e5 else 0
    counts = np.arange(first, int(mean + 60 * spread * max(1, (dispersion or 0.0) ** 0.5)) + 200)
    return np.exp((1 + beta) * law(mean, dispersion).logpmf(counts)).sum()


def law(mean, dispersion):
    if dispersion is None:
        return stats.poisson(mean)
    return stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))


@pytest.fixture(params=[True, False], ids=["double", "single"])
def double(request):
    with jax.enable_x64(request.param):
        yield request.param


def test_poisson_power_integral_is_the_sum_over_all_counts(double):
    for beta in BETAS:
        actual = jax.jit(power_sum)(jnp.log(jnp.asarray(MEANS, float)), jnp.asarray(beta, float))
        expected = [enumerated(mean, beta) for mean in MEANS]
        np.testing.assert_allclose(actual, expected, rtol=5e-7 if double else 4e-6)


def test_dispersed_power_integral_is_the_sum_over_all_counts(double):
    sums = jax.jit(dispersed_sum)
    for beta, dispersion in itertools.product((0.01, 0.5, 1.4), DISPERSIONS):
        # Enumerating a million counts of scatter a million takes too long.
        means = MEANS[MEANS * dispersion <= 1e4]
        actual = sums(jnp.log(jnp.asarray(means, float)), -jnp.log(jnp.asarray(dispersion, float)), beta)
        expected = [enumerated(mean, beta, dispersion) for mean in means]
        # Log-means of 14 have an error of 1e-6 in single precision, a thousandth of a standard deviation.
        np.testing.assert_allclose(actual, expected, rtol=1e-6 if double else 1e-4)


@pytest.mark.parametrize("beta", [0.01, 0.5, 1.4])
def test_power_integrals_have_the_derivatives_of_finite_differences(beta):
    step = 1e-4
    with jax.enable_x64(True):
        slope, bend = (
            jax.jit(jax.vmap(jax.grad(power_sum), (0, None))),
            jax.jit(jax.vmap(jax.grad(jax.grad(power_sum)), (0, None))),
        )
        eta = np.log(MEANS)
        around = [np.asarray(power_sum(jnp.asarray(eta + side * step), beta)) for side in (-1, 1)]
        slopes = [np.asarray(slope(jnp.asarray(eta + side * step), beta)) for side in (-1, 1)]
        scale = np.asarray(power_sum(jnp.asarray(eta), beta))
        np.testing.assert_allclose(slope(eta, beta) / scale, (around[1] - around[0]) / (2 * step) / scale, atol=3e-5)
        np.testing.assert_allclose(bend(eta, beta) / scale, (slopes[1] - slopes[0]) / (2 * step) / scale, atol=3e-5)


def test_dispersed_power_integral_has_the_derivatives_of_finite_differences():
    def at(v, beta):
        return dispersed_sum(v[0], v[1], beta)

    step = 1e-4
    with jax.enable_x64(True):
        value, slope, bend = jax.jit(at), jax.jit(jax.grad(at)), jax.jit(jax.hessian(at))
        for mean, dispersion, beta in itertools.product(
            (1e-3, 1.0, 10.0, 40.0, 1e3, 1e6), (1e-4, 0.1, 3.0), (0.05, 1.0)
        ):
            v = np.log([mean, 1 / dispersion])
            total = float(value(v, beta))
            first = [(value(v + step * e, beta) - value(v - step * e, beta)) / (2 * step) for e in np.eye(2)]
            second = [(slope(v + step * e, beta) - slope(v - step * e, beta)) / (2 * step) for e in np.eye(2)]
            # Terms as large as the information of a row cancel.
            information = 1 + 1 / (1 / mean + dispersion)
            np.testing.assert_allclose(slope(v, beta) / total, np.array(first) / total, atol=2e-6)
            np.testing.assert_allclose(bend(v, beta) / total, np.array(second) / total, atol=2e-5 * information)


def test_log_likelihoods_are_the_log_probabilities(double):
    rtol = 1e-7 if double else 4e-6
    for mean, dispersion in itertools.product((1e-3, 1.0, 30.0, 1e5), (None, 1e-6, 0.01, 1.0, 20.0)):
        counts = np.array([0, 1, 5, 200, 100_000])
        eta = jnp.log(jnp.asarray(mean, float)) + jnp.zeros(len(counts))
        y = jnp.asarray(counts, float)
        if dispersion is None:
            actual = PoissonRegression().response_log_likelihood(eta, y)
        else:
            actual = NegativeBinomialRegression(dispersion).response_log_likelihood([eta], y)
        expected = law(mean, dispersion).logpmf(counts)
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


MODELS = {
    "poisson": (PoissonRegression(), None),
    "known": (NegativeBinomialRegression(0.5), 0.5),
    "unknown": (NegativeBinomialRegression(), np.exp(-0.7)),
}


def model_rows(name, rows=4000, seed=0):
    """Rows drawn from a model, and its parameters."""
    model, dispersion = MODELS[name]
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    y = law(np.exp(x @ [0.6, -0.4] + 1.0), dispersion).rvs(rows, random_state=rng)
    theta = [0.6, -0.4, 1.0, *([-0.7] if name == "unknown" else [])]
    return model, Rows(jnp.asarray(x, float), jnp.asarray(y, float)), jnp.asarray(theta)


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_rows_from_the_model_average_one(name):
    model, rows, theta = model_rows(name)
    for beta in (0.1, 0.5, 1.0):
        check_scores_average_one(model, theta, rows, beta)


@pytest.mark.parametrize("name", MODELS)
def test_the_likelihood_of_a_small_beta_is_the_log_likelihood(name):
    with jax.enable_x64(True):
        model, rows, theta = model_rows(name, 20)
        each = jax.vmap(likelihood, (None, None, 0, None))
        near, at = each(model, theta, rows, jnp.asarray(1e-7)), each(model, theta, rows, None)
        np.testing.assert_allclose(near, at, rtol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_and_hessians_are_those_of_finite_differences(name):
    with jax.enable_x64(True):
        model, rows, theta = model_rows(name, 4)
        for beta in (None, jnp.asarray(0.4)):
            check_against_slopes(model, theta, rows, jnp.linspace(0.5, 2.0, 4), beta, rtol=1e-5, atol=(1e-6, 2e-5))


@pytest.mark.parametrize("name", ["poisson", "unknown"])
def test_single_precision_survives_absurd_numbers(name):
    model, _, theta = model_rows(name, 1)
    x = jnp.asarray([[1e12, 0.0], [-1e12, 1e12], [0.0, 0.0], [0.0, 1e-30]])
    rows = Rows(x, jnp.asarray([3.0, 0.0, 1e12, 0.0]))
    for beta in (None, jnp.float32(0.5)):
        check_finite(model, theta, rows, beta)


def test_exposure_multiplies_the_mean():
    columns = ["age", "days"]
    plain, exposed = PoissonRegression(), PoissonRegression(exposure="days").bound(columns, None)
    logged = PoissonRegression(offset=1).bound(columns, None)
    assert exposed.parameter_names(columns) == ["age", "intercept"]
    assert exposed.parameter_count(2) == 2
    y, theta = jnp.asarray(4.0), jnp.asarray([0.3, 1.0])
    expected = plain.log_likelihood(jnp.asarray([0.3, 1.0 + np.log(7.0)]), Rows(jnp.asarray([2.0]), y))
    for model, value in ((exposed, 7.0), (logged, np.log(7.0))):
        actual = model.log_likelihood(theta, Rows(jnp.asarray([2.0, value]), y))
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
    dispersed = NegativeBinomialRegression(1e-6, exposure="days").bound(columns, None)
    np.testing.assert_allclose(dispersed.log_likelihood(theta, Rows(jnp.asarray([2.0, 7.0]), y)), expected, rtol=1e-4)


@pytest.mark.slow
def test_exposure_is_found_by_name_and_recovered():
    rng = np.random.default_rng(0)
    x, days = rng.normal(size=(600, 1)), rng.uniform(1, 50, 600)
    y = rng.poisson(days * np.exp(0.5 * x[:, 0] - 1.0))
    table = np.column_stack([x, days])
    for model in (PoissonRegression(exposure=1), PoissonRegression(offset=1)):
        given = table if model.offset is None else np.column_stack([x, np.log(days)])
        coreset = bc.summarize(given, y, model=model, size=15, beta=0.1, guard=None)
        np.testing.assert_allclose(coreset.posterior(200).mean, [0.5, -1.0], atol=0.15)
        assert coreset.parameter_names == ["x0", "intercept"]


BAD = {
    "both": (lambda: PoissonRegression(exposure="a", offset="b"), "one of them"),
    "a number that is none": (lambda: PoissonRegression(exposure=1.5), r"exposure.*1\.5"),
    "negative dispersion": (lambda: NegativeBinomialRegression(-1.0), r"dispersion.*positive.*-1\.0"),
    "prior of a known number": (
        lambda: NegativeBinomialRegression(1.0, dispersion_prior=gaussian_prior()),
        "leave one",
    ),
    "prior of several": (lambda: NegativeBinomialRegression(dispersion_prior=gaussian_prior([0.0, 0.0])), "one number"),
    "unknown column": (lambda: PoissonRegression(exposure="b").bound(["a"], None), "no column 'b'.*'a'"),
    "no such number": (lambda: PoissonRegression(offset=3).bound(["a"], None), "no column 3"),
    "unbound": (lambda: PoissonRegression(exposure="a").parameter_count(2), "bound"),
    "prior too long": (
        lambda: NegativeBinomialRegression(prior=gaussian_prior([0.0] * 5)).parameter_count(2),
        "prior.*5",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_refused(what):
    make, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        make()


def test_exposures_must_be_positive():
    x = np.array([[1.0, 2.0], [2.0, 0.0], [3.0, 1.0]])
    with pytest.raises(ValueError, match=r"exposure.*above 0 in 'x1'; row 1 has 0"):
        bc.summarize(x, [1, 2, 3], model=PoissonRegression(exposure=1))


def test_responses_must_be_counts():
    x = np.random.default_rng(0).normal(size=(4, 1))
    with pytest.raises(ValueError, match=r"counts.*row 1 is -1"):
        bc.summarize(x, [0, -1, 2, 3], model="poisson")
    with pytest.raises(ValueError, match=r"counts.*row 2 is 2\.5"):
        bc.summarize(x, [0, 1, 2.5, 3], model="negative-binomial")


@pytest.mark.parametrize("name", MODELS)
def test_robust_start_is_near_despite_wild_counts(name):
    model, rows, theta = model_rows(name, 2000)
    y = np.asarray(rows.y).copy()
    y[:200] += 500
    start = model.robust_start(Rows(np.asarray(rows.x), y))
    assert len(start) == len(theta)
    np.testing.assert_allclose(start[:3], theta[:3], atol=0.4)
