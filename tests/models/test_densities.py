"""Models of whole rows: densities, power integrals and derivatives against independent computations; and whole
summaries of clean and dirty tables."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from finite_differences import check_derivatives
from model_checks import check_beta_zero, check_finite, check_scores_average_one, check_small_betas
from scipy import integrate, special, stats

import betacores as bc
from betacores.divergence import as_beta, likelihoods
from betacores.models import (
    CategoricalDensity,
    ExponentialDensity,
    GaussianDensity,
    GaussianMixture,
    MultinomialDensity,
    Rows,
    gaussian_prior,
)
from betacores.models.gaussian import parameters_of
from betacores.models.multinomial import SUMMED

MEAN, COVARIANCE = np.array([1.0, -2.0]), np.array([[2.0, 0.9], [0.9, 0.6]])
RATES = np.array([0.5, 4.0])
CHANCES = [np.array([0.7, 0.2, 0.1]), np.array([0.6, 0.4])]
SHARES = np.array([0.5, 0.3, 0.2])
MIXED = {"weight": np.array([0.4, 0.6]), "mean": np.array([[0.0, 0.0], [5.0, 3.0]]), "scale": [[1.0, 0.5], [0.7, 1.0]]}

MODELS = {
    "gaussian-density": GaussianDensity(),
    "exponential": ExponentialDensity(),
    "categorical": CategoricalDensity((3, 2)),
    "multinomial": MultinomialDensity(),
    "gaussian-mixture": GaussianMixture(),
}
every = pytest.mark.parametrize("name", MODELS)


def log_odds(chances):
    return np.log(chances[1:] / chances[0])


PARAMETERS = {
    "gaussian-density": parameters_of(MEAN, COVARIANCE),
    "exponential": np.log(RATES),
    "categorical": np.concatenate([log_odds(c) for c in CHANCES]),
    "multinomial": log_odds(SHARES),
    "gaussian-mixture": np.concatenate(
        [log_odds(MIXED["weight"]), MIXED["mean"].ravel(), np.log(MIXED["scale"]).ravel()]
    ),
}


def simulated(name, rows, seed=0):
    rng = np.random.default_rng(seed)
    if name == "gaussian-density":
        return rng.multivariate_normal(MEAN, COVARIANCE, rows)
    if name == "exponential":
        return rng.exponential(1 / RATES, (rows, 2))
    if name == "categorical":
        return np.column_stack([rng.choice(len(c), rows, p=c) for c in CHANCES]).astype(float)
    if name == "multinomial":
        return rng.multinomial(rng.integers(5, 20, rows), SHARES).astype(float)
    which = (rng.random(rows) > 0.4).astype(int)
    return MIXED["mean"][which] + np.asarray(MIXED["scale"])[which] * rng.normal(size=(rows, 2))


def log_density(name, x):
    if name == "gaussian-density":
        return stats.multivariate_normal(MEAN, COVARIANCE).logpdf(x)
    if name == "exponential":  # of the logarithms
        return (stats.expon(scale=1 / RATES).logpdf(x) + np.log(x)).sum(1)
    if name == "categorical":
        return sum(np.log(c)[x[:, j].astype(int)] for j, c in enumerate(CHANCES))
    if name == "multinomial":
        return stats.multinomial.logpmf(x, x.sum(1).astype(int), SHARES)
    parts = [stats.norm(m, s).logpdf(x).sum(1) for m, s in zip(MIXED["mean"], MIXED["scale"], strict=True)]
    return special.logsumexp(np.stack(parts) + np.log(MIXED["weight"])[:, None], axis=0)


@every
def test_log_likelihood_is_the_log_density(name):
    x = simulated(name, 20)
    with jax.enable_x64(True):
        actual = likelihoods(MODELS[name], jnp.asarray(PARAMETERS[name])[None], Rows(jnp.asarray(x)), None)[:, 0]
    np.testing.assert_allclose(actual, log_density(name, x), rtol=1e-7, atol=1e-7)


@jax.jit
def integral(model, theta, row, beta):
    return model.power_integral(theta, row, beta)


def power_integral(name, beta, row=None, model=None, theta=None):
    """Return the model's power integral in double precision."""
    with jax.enable_x64(True):
        at = jnp.asarray(PARAMETERS[name] if theta is None else theta)
        given = Rows(jnp.ones(2) if row is None else jnp.asarray(row, float))
        return float(integral(model or MODELS[name], at, given, jnp.asarray(beta)))


BETAS = pytest.mark.parametrize("beta", [0.1, 0.5, 1.4])


@BETAS
def test_gaussian_power_integral(beta):
    (a, b), (_, c) = np.linalg.inv(COVARIANCE)
    norm = 1 / (2 * np.pi * np.sqrt(np.linalg.det(COVARIANCE)))
    # Over a square lattice: exact for a Gaussian far beyond the digits compared.
    u = np.linspace(-25, 25, 1501)
    powers = (norm * np.exp(-0.5 * (a * u[:, None] ** 2 + 2 * b * u[:, None] * u + c * u**2))) ** (1 + beta)
    np.testing.assert_allclose(power_integral("gaussian-density", beta), powers.sum() * (u[1] - u[0]) ** 2, rtol=1e-6)


@BETAS
def test_exponential_power_integral(beta):
    parts = [
        integrate.quad(lambda v, r=r: (r * np.exp(v - r * np.exp(v))) ** (1 + beta), -200, 8, limit=500, epsabs=1e-14)[
            0
        ]
        for r in RATES
    ]
    np.testing.assert_allclose(power_integral("exponential", beta), np.prod(parts), rtol=1e-6)


@BETAS
def test_categorical_power_integral(beta):
    expected = sum((p * q) ** (1 + beta) for p in CHANCES[0] for q in CHANCES[1])
    np.testing.assert_allclose(power_integral("categorical", beta), expected, rtol=1e-9)


@BETAS
@pytest.mark.parametrize("total", [0, 1, 7, 30])
def test_multinomial_power_integral(beta, total):
    rows = np.array([(i, j, total - i - j) for i in range(total + 1) for j in range(total + 1 - i)])
    expected = (stats.multinomial.pmf(rows, total, SHARES) ** (1 + beta)).sum()
    np.testing.assert_allclose(power_integral("multinomial", beta, [total, 0, 0]), expected, rtol=1e-8)


def test_multinomial_power_integral_is_continued_to_large_totals():
    for total in (SUMMED + 1, 3 * SUMMED):
        i = np.arange(total + 1)
        rows = np.array([(a, b, total - a - b) for a, b in itertools.product(i, i) if a + b <= total])
        expected = (stats.multinomial.pmf(rows, total, SHARES) ** 1.5).sum()
        np.testing.assert_allclose(power_integral("multinomial", 0.5, [total, 0, 0]), expected, rtol=5e-3)


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0, 1.4])
@pytest.mark.parametrize(
    ("means", "scales"), [((0.0, 6.0), (1.0, 1.0)), ((0.0, 0.5), (1.0, 3.0)), ((0.0, 3.0), (0.4, 2.0))]
)
def test_mixture_power_integral_in_one_column(beta, means, scales):
    theta = np.array([0.7, *means, *np.log(scales)])
    weight = special.softmax([0.0, 0.7])

    def density(v):
        return weight[0] * stats.norm.pdf(v, means[0], scales[0]) + weight[1] * stats.norm.pdf(v, means[1], scales[1])

    # The trapezium rule with a fine step: exact far beyond the digits compared.
    grid = np.linspace(-40, 40, 20_001)
    expected = (density(grid) ** (1 + beta)).sum() * (grid[1] - grid[0])
    actual = power_integral("gaussian-mixture", beta, [0.0], theta=theta)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    if beta <= 1:
        low, high = MODELS["gaussian-mixture"].integral_bounds(jnp.asarray(theta, jnp.float32), 1, beta)
        assert float(low) * (1 - 1e-5) <= expected <= float(high) * (1 + 1e-5)


@BETAS
def test_mixture_power_integral_in_two_columns_and_three(beta):
    u, v = np.linspace(-9, 14, 400), np.linspace(-9, 14, 401)
    grid = np.stack(np.meshgrid(u, v, indexing="ij"), -1).reshape(-1, 2)
    expected = (np.exp(log_density("gaussian-mixture", grid)) ** (1 + beta)).sum() * (u[1] - u[0]) * (v[1] - v[0])
    np.testing.assert_allclose(power_integral("gaussian-mixture", beta), expected, rtol=1e-4)
    # A third column with the same law in both components is a factor.
    mean, scale = np.c_[MIXED["mean"], [1.0, 1.0]], np.c_[MIXED["scale"], [2.0, 2.0]]
    theta = np.concatenate([log_odds(MIXED["weight"]), mean.ravel(), np.log(scale).ravel()])
    factor = (8 * np.pi) ** (-beta / 2) * (1 + beta) ** -0.5
    actual = power_integral("gaussian-mixture", beta, [0.0, 0.0, 0.0], theta=theta)
    np.testing.assert_allclose(actual, expected * factor, rtol=2e-2)


@every
def test_the_beta_likelihood_tends_to_the_log_likelihood(name):
    with jax.enable_x64(True):
        rows, theta = Rows(jnp.asarray(simulated(name, 30))), jnp.asarray(PARAMETERS[name])[None]
        check_small_betas(MODELS[name], theta, rows)


@every
def test_at_traced_beta_zero_single_precision_has_the_log_likelihood(name):
    rows, theta = Rows(jnp.asarray(simulated(name, 30), jnp.float32)), jnp.asarray(PARAMETERS[name], jnp.float32)[None]
    check_beta_zero(MODELS[name], theta, rows)


@every
@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_derivatives_against_finite_differences(name, beta):
    model = MODELS[name] if name == "exponential" else MODELS[name].replaced(clean=0.8)
    with jax.enable_x64(True):
        rows = Rows(jnp.asarray(simulated(name, 12)))
        check_derivatives(model, PARAMETERS[name] + 0.1, rows, jnp.linspace(0.5, 2, 12), as_beta(beta))


@every
@pytest.mark.parametrize("beta", [0.1, 0.5])
def test_scores_of_rows_from_the_model_average_one(name, beta):
    rows = Rows(jnp.asarray(simulated(name, 10_000), jnp.float32))
    theta = jnp.asarray(PARAMETERS[name], jnp.float32)
    check_scores_average_one(MODELS[name], theta, rows, beta)


@every
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_absurd_cells_leave_everything_finite(name, beta):
    x = jnp.asarray([[1e12, -1e12], [0.0, 0.0], [1.0, 1e12], [-1e12, 1e-30]])
    if name == "multinomial":
        x = jnp.column_stack([x, x[:, :1]])
    for shift in (0.0, 8.0, -30.0):
        theta = jnp.asarray(PARAMETERS[name] + shift, jnp.float32)
        check_finite(MODELS[name], theta, Rows(x), as_beta(beta))


WRONG = {
    "exponential": ([[1.0, 2.0], [3.0, -4.0]], r"above 0; row 1, column 'x1' is -4 \(1 such cells"),
    "categorical": ([[1.0, 2.0], [0.5, 0.0]], r"whole numbers from 0; row 1, column 'x0' is 0\.5"),
    "multinomial": ([[1.0, 2.0], [3.0, -4.0]], r"counts.*row 1, column 'x1' is -4"),
}


@pytest.mark.parametrize("name", WRONG)
def test_cells_of_another_kind_are_refused_and_named(name):
    cells, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        bc.summarize(np.array(cells), model=name)


def test_settings_that_cannot_be_are_refused_and_named():
    with pytest.raises(ValueError, match=r"components.*0"):
        GaussianMixture(0)
    with pytest.raises(ValueError, match=r"levels: every column needs at least two.*\(3, 1\)"):
        CategoricalDensity((3, 1))
    with pytest.raises(ValueError, match=r"codes below 3; row 2, column 'x0' is 7"):
        bc.summarize(np.array([[0.0], [1.0], [7.0]]), model=CategoricalDensity((3,)))
    with pytest.raises(ValueError, match="at least two columns"):
        bc.summarize(np.array([[0.0], [1.0], [7.0]]), model="multinomial")
    for model in (GaussianDensity(gaussian_prior(np.zeros(7))), GaussianMixture(2, gaussian_prior(np.zeros(7)))):
        with pytest.raises(ValueError, match="prior: it is for 7 parameters, the model has"):
            bc.summarize(simulated("gaussian-density", 20), model=model)


@every
def test_names_and_priors_go_with_the_parameters(name):
    columns = ["a", "b", "c"] if name == "multinomial" else ["a", "b"]
    count = MODELS[name].parameter_count(len(columns))
    assert len(MODELS[name].parameter_names(columns)) == count == len(PARAMETERS[name])
    near, far = (MODELS[name].log_prior(jnp.asarray(at * np.ones(count), jnp.float32)) for at in (0.1, 20.0))
    assert far < near - 1


def test_levels_grow_block_by_block():
    model = CategoricalDensity()
    for block in (np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[4.0, 0.0]]), np.array([[0.0, 2.0]])):
        model = model.check_rows(block, ["a", "b"])
    assert model.levels == (5, 3)
    assert model.parameter_names(["a", "b"]) == ["a = 1", "a = 2", "a = 3", "a = 4", "b = 1", "b = 2"]


def test_mean_and_covariance_come_back_from_the_parameters():
    mean, covariance = GaussianDensity().moments(PARAMETERS["gaussian-density"])
    np.testing.assert_allclose(mean, MEAN)
    np.testing.assert_allclose(covariance, COVARIANCE, rtol=1e-12)
    guess = GaussianDensity(typical=(MEAN, COVARIANCE)).first_guess(2)
    np.testing.assert_allclose(guess, PARAMETERS["gaussian-density"], rtol=1e-5)


def test_components_are_put_in_order_without_changing_the_density():
    model, theta = GaussianMixture(3), np.random.default_rng(0).normal(size=(4, 14))
    ordered = model.ordered(theta)
    assert np.all(np.diff(ordered[:, 2:8:2], axis=1) > 0)
    rows = Rows(jnp.asarray(np.random.default_rng(1).normal(size=(6, 2)), jnp.float32))
    before, after = (likelihoods(model, jnp.asarray(at, jnp.float32), rows, None) for at in (theta, ordered))
    np.testing.assert_allclose(before, after, rtol=1e-5)


def dirty(name, rows=600, share=0.2):
    x, rng = simulated(name, rows), np.random.default_rng(1)
    bad = rng.random(rows) < share
    x[bad] = {
        "gaussian-density": lambda n: rng.normal(12, 1, (n, 2)),
        "exponential": lambda n: rng.exponential(200 / RATES, (n, 2)),
        "categorical": lambda n: np.tile([2.0, 1.0], (n, 1)),
        "multinomial": lambda n: rng.multinomial(12, [0.02, 0.03, 0.95], n),
        "gaussian-mixture": lambda n: rng.normal([0, 14], 1, (n, 2)),
    }[name](bad.sum())
    return x, bad


slow = pytest.mark.slow
SUMMARISED = [
    "exponential",
    *(pytest.param(n, marks=slow) for n in ("gaussian-density", "categorical", "multinomial")),
]


@pytest.mark.parametrize("name", [*SUMMARISED, pytest.param("gaussian-mixture", marks=slow)])
def test_a_dirty_table_gives_a_sound_coreset_near_the_truth(name, tmp_path):
    x, bad = dirty(name)
    coreset = bc.summarize(x, model=name, size=25)
    assert 2 <= len(coreset) <= 25
    assert np.all(coreset.weights > 0)
    assert np.array_equal(coreset.X, x[coreset.indices])
    again = bc.summarize(x, model=name, size=25)
    assert again.indices.tolist() == coreset.indices.tolist()
    assert again.weights.tolist() == coreset.weights.tolist()
    loaded = bc.load(coreset.save(tmp_path / "out"))
    assert np.array_equal(loaded.posterior(10).draws, coreset.posterior(10).draws)
    posterior = coreset.posterior(2000)
    assert posterior.names == coreset.parameter_names
    if name == "categorical":
        return  # Rows of two rare codes are no outliers of a table of two columns.
    assert not bad[coreset.indices].any()
    assert coreset.contamination == pytest.approx(bad.mean(), abs=0.05)
    away = np.abs(posterior.mean - PARAMETERS[name]) / posterior.draws.std(0)
    assert np.all(away < 4), away


@slow
def test_rows_of_several_rare_codes_are_let_go():
    rng = np.random.default_rng(0)
    chances = np.array([0.85, 0.1, 0.05])
    x = rng.choice(3, (4000, 6), p=chances).astype(float)
    bad = rng.random(4000) < 0.15
    x[bad] = 2.0
    coreset = bc.summarize(x, model="categorical", size=60)
    found = coreset.posterior(1000).mean.reshape(6, 2)
    classical = np.log((x == 2).mean(0) / (x == 0).mean(0))
    assert np.abs(found[:, 1] - np.log(0.05 / 0.85)).mean() < 0.3 * np.abs(classical - np.log(0.05 / 0.85)).mean()
    assert coreset.contamination == pytest.approx(0.15, abs=0.03)


@slow
def test_the_papers_example_fitted_by_a_single_gaussian_and_by_two():
    """Rows around 1, 15 % around 10: one Gaussian finds the first cluster, a mixture finds both."""
    rng = np.random.default_rng(0)
    bad = rng.random(3000) < 0.15
    x = rng.normal(np.where(bad, 10.0, 1.0)[:, None], 1.0, (3000, 2))
    single = bc.summarize(x, model="gaussian-density", size=30)
    mean, covariance = single.model.moments(single.posterior(2000).mean)
    np.testing.assert_allclose(mean, 1.0, atol=0.08)
    np.testing.assert_allclose(covariance, np.eye(2), atol=0.12)
    assert single.contamination == pytest.approx(0.15, abs=0.02)
    both = bc.summarize(x, model=GaussianMixture(2), size=40)
    found = both.posterior(2000).mean
    np.testing.assert_allclose(found[1:5], [1, 1, 10, 10], atol=0.3)
    np.testing.assert_allclose(np.exp(found[5:]), 1.0, atol=0.15)
    assert special.expit(found[0]) == pytest.approx(0.15, abs=0.03)
    assert both.contamination < 0.03
