"""Regressions with unknown scale: densities, power integrals and derivatives against independent computations; and
whole summaries of clean and dirty tables."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from finite_differences import check_derivatives
from model_checks import check_beta_zero, check_finite, check_scores_average_one, check_small_betas
from scipy import integrate, special, stats

import betacores as bc
from betacores.divergence import as_beta
from betacores.models import GammaRegression, GaussianRegression, Rows, StudentTRegression, gaussian_prior
from betacores.models.gamma import _excess, _height

MODELS = {
    "gaussian": GaussianRegression(),
    "student-t": StudentTRegression(),
    "gamma": GammaRegression(),
    "student-t, known": StudentTRegression(3.0, scale=0.7),
    "gamma, known": GammaRegression(shape=2.5),
}
every = pytest.mark.parametrize("name", MODELS)
betas = pytest.mark.parametrize("beta", [0.05, 0.5, 1.3])


def law(name, eta, a):
    """Return the law of the response, or of its logarithm, as SciPy has it."""
    if name == "gaussian":
        return stats.norm(eta, np.exp(a))
    if name.startswith("student"):
        return stats.t(4.0, eta, np.exp(a)) if name == "student-t" else stats.t(3.0, eta, 0.7)
    shape = np.exp(a) if name == "gamma" else 2.5
    return stats.loggamma(shape, eta - np.log(shape), 1.0)


def simulated(name, rows=400, dirty=0.0, seed=0):
    """Rows of a model with σ = 0.5 or k = 4, a share of them with a response far off."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    eta = x @ [1.0, -0.5] + 0.3
    bad = rng.random(rows) < dirty
    if name.startswith("gamma"):
        y = rng.gamma(4.0, size=rows) * np.exp(eta) / 4
        return x, np.where(bad, 60 * np.exp(0.3 * rng.normal(size=rows)), y), bad
    noise = rng.normal(size=rows) if name == "gaussian" else rng.standard_t(4, size=rows)
    return x, np.where(bad, 9 + rng.normal(size=rows), eta + 0.5 * noise), bad


def parameters(name):
    theta = [1.0, -0.5, 0.3, np.log(4.0) if name == "gamma" else np.log(0.5)]
    return np.array(theta[:3] if "known" in name else theta)


@every
def test_log_likelihood_is_the_log_density(name):
    x, y, _ = simulated(name, rows=20)
    theta = parameters(name)
    expected = law(name, x @ theta[:2] + theta[2], theta[-1]).logpdf(np.log(y) if name.startswith("gamma") else y)
    with jax.enable_x64(True):
        rows = Rows(jnp.asarray(x), jnp.asarray(y))
        one = [MODELS[name].log_likelihood(jnp.asarray(theta), Rows(rows.x[n], rows.y[n])) for n in range(20)]
        many = MODELS[name].log_likelihoods(jnp.asarray(theta)[None], rows)[:, 0]
    np.testing.assert_allclose(one, expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(many, expected, rtol=1e-7, atol=1e-7)


@betas
@every
@pytest.mark.parametrize("scale", [0.2, 1.0, 6.0])
def test_power_integral_against_quadrature(name, beta, scale):
    theta = parameters(name)
    if "known" not in name:
        theta[-1] = np.log(scale)
    density = law(name, 0.3, theta[-1])
    width = np.ptp(density.ppf([0.25, 0.75]))
    reach = np.array([-400.0, -30.0, -3.0, 0.0, 3.0, 30.0, 400.0])
    ends = 0.3 + width * (np.minimum(reach, 6.0 / width) if name.startswith("gamma") else reach)
    parts = itertools.pairwise(ends)
    expected = sum(
        integrate.quad(lambda v: density.pdf(v) ** (1 + beta), *ends, limit=300, epsabs=1e-13)[0] for ends in parts
    )
    with jax.enable_x64(True):
        actual = MODELS[name].power_integral(jnp.asarray(theta), Rows(jnp.ones(2), jnp.ones(())), jnp.asarray(beta))
    # The tails of t beyond the last end are not summed.
    np.testing.assert_allclose(actual, expected, rtol=1e-6 if beta > 0.1 or "student" not in name else 1e-5)


@every
def test_at_beta_zero_the_density_integrates_to_one(name):
    theta, row = jnp.asarray(parameters(name)), Rows(jnp.ones(2), jnp.ones(()))
    np.testing.assert_allclose(MODELS[name].power_integral(theta, row, jnp.float32(0.0)), 1.0, rtol=2e-6)


@every
def test_the_beta_likelihood_tends_to_the_log_likelihood(name):
    x, y, _ = simulated(name, rows=30)
    with jax.enable_x64(True):
        rows, theta = Rows(jnp.asarray(x), jnp.asarray(y)), jnp.asarray(parameters(name))[None]
        check_small_betas(MODELS[name], theta, rows)


@every
def test_at_traced_beta_zero_single_precision_has_the_log_likelihood(name):
    x, y, _ = simulated(name, rows=30)
    rows, theta = Rows(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32)), parameters(name).astype(np.float32)
    check_beta_zero(MODELS[name], theta[None], rows)


@pytest.mark.parametrize("name", ["gaussian", "student-t", "gamma", "gamma, known"])
@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_derivatives_against_finite_differences(name, beta):
    x, y, _ = simulated(name, rows=12, dirty=0.2)
    model = MODELS[name].replaced(clean=0.8)
    with jax.enable_x64(True):
        rows, weights = Rows(jnp.asarray(x), jnp.asarray(y)), jnp.linspace(0.5, 2, 12)
        check_derivatives(model, parameters(name), rows, weights, as_beta(beta))


@every
@pytest.mark.parametrize("beta", [0.1, 0.5])
def test_scores_of_rows_from_the_model_average_one(name, beta):
    rng = np.random.default_rng(3)
    x, theta = rng.normal(size=(20_000, 2)), parameters(name)
    drawn = law(name, x @ theta[:2] + theta[2], theta[-1]).rvs(random_state=rng)
    y = np.exp(drawn) if name.startswith("gamma") else drawn
    rows = Rows(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    check_scores_average_one(MODELS[name], jnp.asarray(theta, jnp.float32), rows, beta)


@every
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_absurd_cells_leave_everything_finite(name, beta):
    x = jnp.asarray([[1e12, -1e12], [0.0, 0.0], [1.0, 1e12], [-1e12, 1e12]])
    y = jnp.asarray([1e12, 0.0, 1e-12, 1e-30]) * (1.0 if name.startswith("gamma") else -1.0)
    for theta in (parameters(name), 8 * np.ones(len(parameters(name))), -30 * np.ones(len(parameters(name)))):
        check_finite(MODELS[name], jnp.asarray(theta, jnp.float32), Rows(x, y), as_beta(beta))


def test_the_height_of_the_gamma_density_in_single_precision():
    k = np.geomspace(1e-3, 1e7, 200)
    expected = k * np.log(k) - k - special.gammaln(k)
    expected[k > 1e4] = (0.5 * np.log(k / (2 * np.pi)) - 1 / (12 * k))[k > 1e4]  # where the difference has no digits
    np.testing.assert_allclose(_height(jnp.asarray(k, jnp.float32)), expected, rtol=1e-5, atol=2e-5)
    v = np.concatenate([np.geomspace(1e-6, 30, 100), -np.geomspace(1e-6, 30, 100)])
    exact = np.where(np.abs(v) < 1e-2, v**2 / 2 + v**3 / 6 + v**4 / 24 + v**5 / 120, np.expm1(v) - v)
    np.testing.assert_allclose(_excess(jnp.asarray(v, jnp.float32)), exact, rtol=2e-6)


def test_settings_that_cannot_be_are_refused_and_named():
    with pytest.raises(ValueError, match=r"scale: expected a positive number, got -1"):
        StudentTRegression(scale=-1)
    with pytest.raises(ValueError, match=r"degrees: expected a positive number, got 0"):
        StudentTRegression(0)
    with pytest.raises(ValueError, match=r"typical: .*'wide'"):
        GaussianRegression(typical="wide")
    with pytest.raises(ValueError, match=r"clean: .*1\.5"):
        GaussianRegression(clean=1.5)
    with pytest.raises(ValueError, match="scale_prior: it is of one number"):
        GaussianRegression(scale_prior=gaussian_prior([0.0, 1.0]))
    x, y, _ = simulated("gaussian", rows=50)
    with pytest.raises(ValueError, match=r"prior: it is for 7 coefficients, the model has 3"):
        bc.summarize(x, y, model=GaussianRegression(prior=gaussian_prior(np.zeros(7))))
    with pytest.raises(ValueError, match="y: expected numbers above 0"):
        bc.summarize(x, y, model="gamma")


def test_priors_are_those_asked_for():
    model = GaussianRegression(prior=gaussian_prior(1.0, 4.0), scale_prior=gaussian_prior(-2.0, 0.25))
    at = np.array([0.5, 2.0, 1.0, -1.0], np.float32)
    expected = stats.norm(1, 2).logpdf(at[:3]).sum() + stats.norm(-2, 0.5).logpdf(at[3])
    there = stats.norm(1, 2).logpdf(1.0) * 3 + stats.norm(-2, 0.5).logpdf(-2.0)
    np.testing.assert_allclose(model.log_prior(jnp.asarray(at)), expected - there, rtol=1e-5)
    np.testing.assert_allclose(model.prior_mean(4), [1, 1, 1, -2])
    names = model.parameter_names(["a", "b"])
    assert names == ["a", "b", "intercept", "log_scale"]
    assert StudentTRegression(scale=2.0).parameter_names(["a"]) == ["a", "intercept"]
    assert GammaRegression(intercept=False).parameter_names(["a"]) == ["a", "log_shape"]


slow = pytest.mark.slow
UNKNOWN = ("gaussian", *(pytest.param(name, marks=slow) for name in ("gamma", "student-t")))


@functools.cache
def summary(name, dirty=0.2, seed=0):
    x, y, _ = simulated(name, rows=600, dirty=dirty)
    return bc.summarize(x, y, model=name, size=20, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNKNOWN)
def test_a_dirty_table_gives_a_sound_coreset(name, tmp_path):
    x, y, bad = simulated(name, rows=600, dirty=0.2)
    coreset = summary(name)
    assert 5 <= len(coreset) <= 20
    assert np.all(coreset.weights > 0)
    assert not bad[coreset.indices].any()
    assert np.array_equal(coreset.X, x[coreset.indices])
    assert coreset.contamination == pytest.approx(bad.mean(), abs=0.04)
    again = bc.summarize(x, y, model=name, size=20)
    assert again.indices.tolist() == coreset.indices.tolist()
    assert again.weights.tolist() == coreset.weights.tolist()
    loaded = bc.load(coreset.save(tmp_path / "out"))
    assert np.array_equal(loaded.posterior(10).draws, coreset.posterior(10).draws)
    assert loaded.model.typical == coreset.model.typical
    assert coreset.posterior(10).names[-1] == ("log_shape" if name == "gamma" else "log_scale")
    with pytest.raises(ValueError, match="no program for"):
        coreset.to_stan()


@pytest.mark.parametrize("name", UNKNOWN)
def test_the_posterior_of_a_dirty_table_is_that_of_its_clean_rows(name):
    """Within a few posterior standard deviations; the ordinary fit of all rows is many away."""
    x, y, _ = simulated(name, rows=600, dirty=0.2)
    robust = summary(name).posterior(2000)
    truth = parameters(name)
    spread = robust.draws.std(0)
    assert np.all(np.abs(robust.mean - truth) < 3.5 * spread)
    every_row = bc.summarize(x, y, model=name, size=60, beta=0, guard=None).posterior(2000)
    assert np.abs(every_row.mean - truth)[-1] > 5 * np.abs(robust.mean - truth)[-1]
    assert spread[-1] < 0.12


@slow
def test_units_of_the_response_change_nothing_but_the_scale():
    x, y, _ = simulated("gaussian", rows=600, dirty=0.2)
    small, large = (
        bc.summarize(x, s * y, model=GaussianRegression(prior=gaussian_prior(0.0, 25.0 * s**2)), beta=0.5, size=20)
        for s in (1.0, 1e4)
    )
    np.testing.assert_allclose(small.scores, large.scores, atol=2e-3)
    assert small.contamination == pytest.approx(large.contamination, abs=2e-3)
    a, b = small.posterior(4000), large.posterior(4000)
    np.testing.assert_allclose(b.mean[:3] / 1e4, a.mean[:3], atol=0.02)
    assert b.mean[3] - a.mean[3] == pytest.approx(np.log(1e4), abs=0.05)
    np.testing.assert_allclose(b.draws.std(0)[3], a.draws.std(0)[3], rtol=0.2)
