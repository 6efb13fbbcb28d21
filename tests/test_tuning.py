"""The choice of β: its criterion row by row in double precision, and the errors of the modes it picks."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import likelihood, source_of
from scipy import special

from betacores import datasets, tuning
from betacores.divergence import as_beta
from betacores.divergence import likelihood as package_likelihood
from betacores.grid import grid_modes, last_step
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Rows, SoftmaxRegression
from betacores.models.base import Model
from betacores.models.prior import GaussianPrior
from betacores.pilot import sampled
from betacores.pull import Alone, rows_inverse
from betacores.tuning import RESPONSE_GRID, Tuning, beta_grid, mean_products, mean_squared_error, tune

KEY = jax.random.key(0)
BETAS = np.array([0.0, 0.05, 0.2, 0.6])


class Classical(Model):
    """A Gaussian mean that knows no power integral."""

    name = "classical"
    response = "none"

    def parameter_count(self, columns):
        return columns

    def log_likelihood(self, theta, row):
        return -0.5 * ((row.x - theta) ** 2).sum()

    def log_prior(self, theta):
        return -0.5 * theta @ theta


class Endless(Classical):
    """A likelihood without a mode."""

    def log_likelihood(self, theta, row):
        return row.x @ theta

    def log_prior(self, theta):
        return 0.0 * theta.sum()


def gradients_of(name, x, y, theta, beta):
    return likelihood(name, np.asarray(theta, np.float64), x, y, beta)[1]


def brute_force(thetas, modes, curvatures, prior, gradients, weights):
    """Squared bias and variance of every lane, by the equations, one row after another.

    Modes of the posterior and of the likelihood alone, with curvatures and gradients at the latter.
    """
    metric, lanes = curvatures[-1], len(thetas)

    def influences(curvature, lane):
        return [np.linalg.solve(curvature, w * g) for w, g in zip(weights, gradients[lane], strict=True)]

    on_mode = [influences(curvatures[a], a) for a in range(lanes)]
    on_alone = [influences(curvatures[b] - prior, b) for b in range(lanes)]
    variance = np.array([sum(v @ metric @ v for v in on_mode[a]) for a in range(lanes)])
    bias2 = np.zeros(lanes)
    for a in range(lanes):
        for b in range(a, lanes):
            apart = [u - v for u, v in zip(on_mode[a], on_alone[b], strict=True)]
            chance = sum(v @ metric @ v for v in apart)
            # A Gaussian vector of covariance C has squared length of variance 2 tr((C M)²) in the metric M.
            covariance = sum(np.outer(v, v) for v in apart) @ metric
            sd = np.sqrt(2 * np.trace(covariance @ covariance))
            away = thetas[a] - modes[b]
            bias2[a] = max(bias2[a], away @ metric @ away - chance - 2 * sd)
    return bias2, variance


def unpulled(thetas, curvatures):
    """Return modes that no prior pulls at."""
    inverses = np.stack([rows_inverse(h, np.zeros_like(h)) for h in curvatures])
    return Alone(np.zeros_like(thetas), thetas, curvatures, inverses)


@pytest.fixture(scope="module")
def small():
    """Three columns, a quarter of the rows off, trust in some rows only; modes and curvatures of four β."""
    rng = np.random.default_rng(0)
    x = rng.normal(0.5, 1.0, (160, 3)).astype(np.float32)
    x[:30] += 3.0
    weights = rng.random(160).astype(np.float32)
    fit = grid_modes(GaussianMean(), source_of(x, weights=weights), np.full((4, 3), 0.5), BETAS)
    assert fit.converged.all()
    return x, weights, fit.thetas.astype(np.float64), np.eye(3) - fit.likelihood.hessian


@pytest.mark.parametrize("strength", [0.0, 1.0, 10.0])
def test_mean_squared_error_is_the_sum_over_rows_of_the_equations(small, strength):
    """The same curvatures, of which more and more is the prior's, and modes that it has pulled towards zero."""
    x, weights, modes, curvatures = small
    gradients = [gradients_of("gaussian", x, None, mode, beta) for mode, beta in zip(modes, BETAS, strict=True)]
    weighted = [g * weights[:, None] for g in gradients]
    products = np.array([[a.T @ b for b in weighted] for a in weighted])
    prior = strength * np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.0], [0.0, 0.0, 0.1]])
    assert all(np.linalg.eigvals(np.linalg.solve(h, h - prior)).min() > 0.5 for h in curvatures)
    thetas = np.stack([np.linalg.solve(h, (h - prior) @ mode) for h, mode in zip(curvatures, modes, strict=True)])
    alone = Alone(modes - thetas, modes, curvatures, np.stack([rows_inverse(h, prior) for h in curvatures]))
    bias2, variance = mean_squared_error(thetas, alone, products)
    expected_bias2, expected_variance = brute_force(thetas, modes, curvatures, prior, gradients, weights)
    assert expected_bias2[0] > 1
    # The most robust mode answers for nothing but its own pull.
    assert (expected_bias2[-1] > 1e-3) == (strength > 0)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-7)
    np.testing.assert_allclose(bias2, expected_bias2, rtol=1e-7, atol=1e-7)


def test_modes_no_farther_apart_than_chance_have_no_bias(small):
    x, weights, thetas, curvatures = small
    gradients = [
        gradients_of("gaussian", x, None, theta, beta) * weights[:, None]
        for theta, beta in zip(thetas, BETAS, strict=True)
    ]
    products = np.array([[a.T @ b for b in gradients] for a in gradients])
    thetas = np.tile(thetas[-1:], (4, 1))
    bias2, _ = mean_squared_error(thetas, unpulled(thetas, curvatures), products)
    np.testing.assert_array_equal(bias2, 0.0)


def test_a_lane_bent_the_wrong_way_has_no_estimate_and_spoils_no_other(small):
    x, weights, thetas, curvatures = small
    gradients = [
        gradients_of("gaussian", x, None, theta, beta) * weights[:, None]
        for theta, beta in zip(thetas, BETAS, strict=True)
    ]
    products = np.array([[a.T @ b for b in gradients] for a in gradients])
    bent = curvatures.copy()
    bent[1] = np.diag([1.0, -1.0, 1.0])
    bias2, variance = mean_squared_error(thetas, unpulled(thetas, bent), products)
    others = [0, 2, 3]
    products = products[np.ix_(others, others)]
    expected = mean_squared_error(thetas[others], unpulled(thetas[others], curvatures[others]), products)
    assert np.isnan(variance[1])
    np.testing.assert_allclose(bias2[others], expected[0])
    np.testing.assert_allclose(variance[others], expected[1])


def test_without_a_reference_there_is_no_estimate_at_all(small):
    _, _, thetas, curvatures = small
    bent = curvatures.copy()
    bent[-1] *= -1
    _, variance = mean_squared_error(thetas, unpulled(thetas, bent), np.zeros((4, 4, 3, 3)))
    assert np.isnan(variance).all()


@pytest.mark.parametrize("kind", ["gaussian", "logistic"])
def test_mean_products_are_those_of_a_loop_over_rows(kind):
    rng = np.random.default_rng(1)
    x, weights = rng.normal(size=(90, 2)).astype(np.float32), rng.random(90).astype(np.float32)
    y = None if kind == "gaussian" else rng.choice([-1.0, 1.0], 90)
    model = GaussianMean() if kind == "gaussian" else LogisticRegression()
    thetas = rng.normal(0, 0.5, (4, model.parameter_count(2))).astype(np.float32)
    found = mean_products(model, source_of(x, y, weights), thetas, BETAS)
    for a, first in enumerate(BETAS):
        for b, second in enumerate(BETAS):
            one, other = gradients_of(kind, x, y, thetas[a], first), gradients_of(kind, x, y, thetas[b], second)
            total = sum(float(w) ** 2 * np.outer(u, v) for w, u, v in zip(weights, one, other, strict=True))
            np.testing.assert_allclose(found[a, b], total / 90, rtol=1e-4, atol=1e-5)


def test_mean_products_of_many_rows_are_taken_from_some_of_them(monkeypatch):
    monkeypatch.setattr("betacores.tuning.PRODUCT_WORK", 1.0)
    monkeypatch.setattr("betacores.tuning.FEWEST_ROWS", 1000)
    x = np.random.default_rng(2).normal(size=(5000, 2)).astype(np.float32)
    thetas = np.zeros((2, 2), np.float32)
    found = mean_products(GaussianMean(), source_of(x), thetas, np.array([0.0, 0.3]))
    gradients = [gradients_of("gaussian", x, None, np.zeros(2), beta) for beta in (0.0, 0.3)]
    everything = np.array([[a.T @ b / 5000 for b in gradients] for a in gradients])
    np.testing.assert_allclose(found, everything, atol=0.15)
    assert np.abs(found - everything).max() > 1e-4


def test_classical_products_ask_no_power_integral_of_the_model():
    x = np.random.default_rng(3).normal(size=(50, 2)).astype(np.float32)
    found = mean_products(Classical(), source_of(x), np.zeros((1, 2), np.float32), np.zeros(1))
    np.testing.assert_allclose(found[0, 0], x.T.astype(float) @ x / 50, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("columns", [1, 2, 5, 20, 100, 1000])
def test_the_grid_for_whole_rows_grows_from_zero_to_where_variance_is_four_times_the_classical(columns):
    grid = beta_grid(GaussianMean(), columns)
    assert grid[0] == 0
    assert np.all(np.diff(grid) > 0)
    inflation = (1 + grid**2 / (1 + 2 * grid)) ** (columns / 2 + 1)
    assert inflation[-1] <= 4.0 * (1 + 1e-9)
    assert grid[-1] == max(RESPONSE_GRID) or inflation[-1] == pytest.approx(4.0)


def test_the_variance_of_a_gaussian_mode_grows_with_beta_as_the_grid_supposes():
    """Sandwich variance per row from simulated rows, against the closed form in the docstring."""
    columns, beta = 4, 0.5
    x = np.random.default_rng(4).normal(size=(200_000, columns))
    score = (1 + beta) ** (columns / 2) * np.exp(-0.5 * beta * (x**2).sum(1))
    curvature = np.mean(score * (1 - beta * x[:, 0] ** 2))
    sandwich = np.mean((score * x[:, 0]) ** 2) / curvature**2
    assert sandwich == pytest.approx((1 + beta**2 / (1 + 2 * beta)) ** (columns / 2 + 1), rel=0.03)


def test_the_grid_for_a_response_is_the_same_for_any_number_of_columns_and_without_power_integral_zero_alone():
    for model in (LogisticRegression(), LinearRegression(0.5)):
        np.testing.assert_array_equal(beta_grid(model, 3), RESPONSE_GRID)
        np.testing.assert_array_equal(beta_grid(model, 300), RESPONSE_GRID)
    assert np.all(np.diff(RESPONSE_GRID) > 0)
    np.testing.assert_array_equal(beta_grid(Classical(), 3), [0.0])


@pytest.fixture(scope="module")
def clean():
    grid = beta_grid(GaussianMean(), 20)
    tables = [datasets.contaminated_gaussian(seed, 0.0, rows=2000) for seed in range(5)]
    return [tuned(GaussianMean(), source_of(t.x), grid) for t in tables]


def test_clean_rows_need_no_robustness(clean):
    assert sum(found.beta == 0 for found in clean) >= 4


def test_the_choice_is_the_smallest_sum_of_bias_and_variance(clean):
    for found in clean:
        assert isinstance(found, Tuning)
        assert found.chosen == int(np.argmin(found.bias2 + found.variance))


def test_variance_on_clean_rows_is_the_number_of_parameters_and_grows_with_beta(clean):
    """In the metric of the classical posterior; that of the largest β is flatter by its curvature."""
    found = clean[0]
    inflation = (1 + found.betas**2 / (1 + 2 * found.betas)) ** 11
    np.testing.assert_allclose(found.variance / found.variance[0], inflation, rtol=0.25)


def test_tuning_of_clean_rows_is_reproducible(clean):
    table = datasets.contaminated_gaussian(0, 0.0, rows=2000)
    again = tuned(GaussianMean(), source_of(table.x), beta_grid(GaussianMean(), 20))
    np.testing.assert_array_equal(again.thetas, clean[0].thetas)
    assert again.chosen == clean[0].chosen


def test_the_error_with_far_rows_is_nearly_the_smallest_on_the_grid():
    grid = beta_grid(GaussianMean(), 20)
    for seed in range(3):
        table = datasets.contaminated_gaussian(seed, 0.2, rows=2000)
        found = tuned(GaussianMean(), source_of(table.x), grid)
        errors = np.linalg.norm(found.thetas - 1.0, axis=1)
        assert errors[0] > 1.0
        assert errors[found.chosen] < 1.3 * errors.min()


def test_the_error_with_shifted_responses_is_nearly_the_smallest_on_the_grid():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(2000, 5))
        truth = np.array([1.0, -1.0, 0.5, 0.0, 2.0, 0.3])
        y = x @ truth[:5] + truth[5] + 0.5 * rng.normal(size=2000)
        y[:400] += 5.0
        found = tuned(LinearRegression(0.5), source_of(x, y), np.asarray(RESPONSE_GRID))
        errors = np.linalg.norm(found.thetas - truth, axis=1)
        assert errors[0] > 0.5
        assert errors[found.chosen] < 2.0 * errors.min()
        assert errors[found.chosen] < 0.1


def test_on_clean_labels_the_choice_is_as_good_as_the_classical_mode_up_to_chance():
    """Squared errors in posterior standard deviations: the classical one is about the number of parameters."""
    chosen, classical = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(2000, 4))
        truth = np.array([1.5, -1.0, 0.5, 0.0, 0.3])
        z = np.column_stack([x, np.ones(2000)])
        y = np.where(rng.random(2000) < special.expit(z @ truth), 1.0, -1.0)
        found = tuned(LogisticRegression(), source_of(x, y), np.asarray(RESPONSE_GRID))
        sharpness = special.expit(z @ truth) * special.expit(-z @ truth)
        squares = np.einsum("kp,pq,kq->k", found.thetas - truth, (z.T * sharpness) @ z, found.thetas - truth)
        chosen.append(squares[found.chosen])
        classical.append(squares[0])
    # Four times five parameters: the mean square is one, its standard deviation a third.
    assert np.mean(chosen) / 5 < 2.5
    assert np.mean(chosen) < 1.5 * np.mean(classical) + 0.5


def labelled(seed, share, truth, far=0.0):
    """A thousand rows with labels, some of them wrong where the others leave no doubt; and what is true."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1000, len(truth) - 1))
    y = np.where(rng.random(1000) < special.expit(x @ truth[:-1] + truth[-1]), 1.0, -1.0)
    bad = rng.random(1000) < share
    x[bad] *= far
    return source_of(x, np.where(bad, np.where(x @ truth[:-1] + truth[-1] > 0, -1.0, 1.0), y))


@pytest.mark.parametrize("steepness", [1.0, 2.0])
def test_a_prior_that_pulls_is_not_taken_for_dirt(steepness):
    """N(0, 1) and coefficients at two and at four standard deviations: the most robust mode is the most pulled."""
    truth, betas, errors = steepness * np.array([2.0, -1.0, 0.5]), [], []
    for seed in range(20):
        found = tuned(LogisticRegression(), labelled(seed, 0.0, truth), np.asarray(RESPONSE_GRID))
        away = np.linalg.norm(found.thetas - truth, axis=1)
        betas.append(found.beta)
        errors.append((away[found.chosen], away[0], away[-1]))
    chosen, classical, robust = np.median(errors, axis=0)
    assert np.mean(np.array(betas) <= 0.1) >= 0.85
    assert chosen < 1.1 * classical
    assert robust > 1.5 * classical


def test_dirt_is_still_found_against_a_prior_that_pulls():
    truth, errors, betas = np.array([2.0, -1.0, 0.5]), [], []
    for seed in range(8):
        found = tuned(LogisticRegression(), labelled(seed, 0.1, truth, far=5.0), np.asarray(RESPONSE_GRID))
        away = np.linalg.norm(found.thetas - truth, axis=1)
        errors.append((away[found.chosen], away.min(), away[0]))
        betas.append(found.beta)
    chosen, best, classical = np.median(errors, axis=0)
    assert min(betas) >= 0.5
    assert chosen < 1.1 * best
    assert classical > 3 * best


def test_a_nearly_flat_prior_leaves_the_choice_to_the_distances_of_the_modes():
    """The criterion without anything said of the prior, from the same modes."""
    truth, grid = np.array([2.0, -1.0, 0.5]), np.asarray(RESPONSE_GRID)
    model = LogisticRegression(prior=GaussianPrior(np.zeros(()), np.asarray(1e-6)))
    for seed, share in ((0, 0.0), (1, 0.1), (2, 0.2)):
        source = labelled(seed, share, truth, far=5.0)
        found = tuned(model, source, grid)
        fit = grid_modes(model, source, found.thetas, grid)
        products = 1000 * mean_products(model, source, fit.looked_at, grid)
        bias2, variance = mean_squared_error(fit.thetas, unpulled(fit.thetas, -fit.likelihood.hessian), products)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-3)
        np.testing.assert_allclose(found.bias2, bias2, rtol=1e-3, atol=1e-3)
        assert found.chosen == int(np.argmin(bias2 + variance))


@pytest.mark.slow
def test_a_prior_that_pulls_at_several_classes_is_not_taken_for_dirt():
    model = SoftmaxRegression(3).bound(["a", "b"], np.arange(3))
    truth, betas = np.array([[0.0, 0.0, 0.0], [2.0, -1.0, 0.5], [-1.0, 2.0, 0.0]]), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(1000, 2))
        y = (x @ truth[:, :2].T + truth[:, 2] + rng.gumbel(size=(1000, 3))).argmax(1)
        betas.append(tuned(model, source_of(x, y), np.asarray(RESPONSE_GRID)).beta)
    assert np.mean(np.array(betas) <= 0.1) >= 0.85


def test_curve_is_plain_data_with_none_where_there_is_no_estimate():
    part = np.array([0.0, 0.5, 1.0])
    found = Tuning(part, np.zeros((3, 2)), part, np.array([1.0, np.nan, np.inf]), 0, None)
    curve = json.loads(json.dumps(found.curve(), allow_nan=False))
    assert curve == {
        "beta": [0.0, 0.5, 1.0],
        "bias2": [0.0, 0.5, 1.0],
        "variance": [1.0, None, None],
        "total": [1.0, None, None],
    }
    assert found.beta == 0.0


def test_modes_of_the_grid_can_be_asked_for_and_no_others(clean):
    found = clean[0]
    beta = float(found.betas[2])
    np.testing.assert_array_equal(found.mode(beta).theta, found.thetas[2])
    assert found.mode(beta + 1e-3) is None


def test_where_no_search_arrives_there_is_still_an_answer():
    x = np.random.default_rng(8).normal(size=(50, 2))
    found = tuned(Endless(), source_of(x), np.zeros(1))
    assert found.beta == 0.0
    assert found.curve()["total"] == [None]


def test_further_values_of_beta_get_a_mode_but_are_not_chosen():
    x = np.random.default_rng(5).normal(1.0, 1.0, (400, 2))
    found = tuned(GaussianMean(), source_of(x), np.array([0.3, 1.0]), (0.0, 0.5))
    np.testing.assert_allclose(found.betas, [0.0, 0.3, 0.5, 1.0])
    assert found.beta in (0.3, 1.0)
    np.testing.assert_allclose(found.mode(0.0).theta, x.sum(0) / 401, atol=1e-4)


def tuned(model, source, *grid):
    return tune(model, source, sampled(source, KEY), *grid)


def sampled_case(kind, count):
    """Rows of a model; of whole rows, some are off."""
    rng = np.random.default_rng(6)
    x, truth = rng.normal(size=(count, 3)), np.array([1.0, -0.5, 0.5, 0.2])
    eta = x @ truth[:3] + truth[3]
    if kind == "gaussian":
        x[: int(0.15 * count)] += 5.0
        return GaussianMean(), source_of(x)
    return LogisticRegression(), source_of(x, np.where(rng.random(count) < special.expit(eta), 1.0, -1.0))


def distances_to_modes(model, source, found):
    """How far the modes of a grid are from those over all rows, in posterior standard deviations."""
    fit = grid_modes(model, source, found.thetas, found.betas)
    assert fit.converged.all()
    precision, away = np.eye(fit.thetas.shape[1]) - fit.likelihood.hessian, found.thetas - fit.thetas
    return np.sqrt(np.einsum("kp,kpq,kq->k", away, precision, away))


@pytest.mark.parametrize(("kind", "count"), [("gaussian", 6000), ("logistic", 1500)])
def test_a_sample_gives_the_modes_over_all_rows_and_a_choice_as_good(kind, count, monkeypatch):
    model, source = sampled_case(kind, count)
    grid = beta_grid(model, 3)
    whole = tuned(model, source, grid)
    monkeypatch.setattr("betacores.pilot.SAMPLE_ROWS", 1000)
    part = tuned(model, source, grid)
    assert distances_to_modes(model, source, part).max() < 0.2
    # The choice may be another where the criterion is flat, not where it matters.
    total = whole.bias2 + whole.variance
    assert abs(part.chosen - whole.chosen) <= 1 or total[part.chosen] < 1.1 * total.min()
    # Where a mode explains just enough rows to count, the sample may find otherwise.
    both = np.isfinite(part.variance) & np.isfinite(whole.variance)
    assert both.sum() >= len(both) - 1
    np.testing.assert_allclose(part.variance[both], whole.variance[both], rtol=0.3)


def test_a_sample_of_a_sixth_gives_the_logistic_modes_over_all_rows(monkeypatch):
    model, source = sampled_case("logistic", 6000)
    monkeypatch.setattr("betacores.pilot.SAMPLE_ROWS", 1000)
    found = tuned(model, source, beta_grid(model, 3))
    assert distances_to_modes(model, source, found).max() < 0.2


@pytest.mark.parametrize(
    ("share", "also", "asked"),
    [(0.15, (0.5,), 5), (0.15, (0.05,), 11), (0.0, (0.5,), 10)],
    ids=["dirty", "low", "clean"],
)
def test_betas_that_a_sample_rules_out_are_spared_the_pass_over_all_rows(share, also, asked, monkeypatch):
    """Half of the grid, and none of it that may yet be chosen or was asked for; the choice is the same."""
    random = np.random.default_rng(4)
    x = random.normal(size=(40_000, 3)).astype(np.float32)
    y = np.where(random.random(len(x)) < special.expit(x @ [2.0, -1.0, 1.0]), 1.0, -1.0).astype(np.float32)
    x[random.random(len(x)) < share] *= 5.0
    y[random.random(len(x)) < share] *= -1.0
    source, order, passes = source_of(x, y), random.permutation(len(x)), []
    sample, larger = (source_of(x[ids], y[ids]) for ids in (order[:4000], order[:13_000]))

    def noted(model, source, fit, betas, first=0):
        passes.append(len(betas) - first)
        return last_step(model, source, fit, betas, first)

    monkeypatch.setattr(tuning, "last_step", noted)
    found = tune(LogisticRegression(), source, sample, np.array(RESPONSE_GRID), also, larger)
    monkeypatch.setattr(tuning, "SURELY", np.inf)
    whole = tune(LogisticRegression(), source, sample, np.array(RESPONSE_GRID), also, larger)
    assert passes == [asked, len(whole.betas)]
    assert found.beta == whole.beta
    np.testing.assert_allclose(found.thetas[-asked:], whole.thetas[-asked:], rtol=1e-5, atol=1e-6)


def test_only_modes_that_may_be_chosen_rule_others_out():
    """A mode of large β that stands apart rules the smaller out, unless it explains too few rows to be one."""
    thetas = np.array([[0.0], [0.1], [0.1], [50.0]])
    flat = np.ones((4, 1, 1))
    alone = Alone(modes=thetas, steps=np.zeros((4, 1)), curvatures=flat, inverses=flat)
    found = [
        tuning._first_in_question(np.array(valid), thetas, alone, np.ones((4, 4, 1, 1)), 2.0)
        for valid in ([True] * 4, [True, True, True, False], [True, True, False, False], [False, False, True, True])
    ]
    assert found == [2, 0, 0, 2]


def test_the_gradients_used_here_are_those_of_the_package():
    """The equations in `closed_forms` say the same as the package's likelihood differentiated by JAX."""
    rng = np.random.default_rng(7)
    x, y, theta = rng.normal(size=(6, 2)), rng.choice([-1.0, 1.0], 6), rng.normal(size=3)
    each = jax.vmap(jax.grad(package_likelihood, argnums=1), (None, None, 0, None))
    for beta in BETAS:
        rows = Rows(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
        found = each(LogisticRegression(), jnp.asarray(theta, jnp.float32), rows, as_beta(beta))
        np.testing.assert_allclose(found, gradients_of("logistic", x, y, theta, beta), atol=1e-4)
        found = each(GaussianMean(), jnp.asarray(theta[:2], jnp.float32), Rows(rows.x), as_beta(beta))
        np.testing.assert_allclose(found, gradients_of("gaussian", x, None, theta[:2], beta), atol=1e-4)
