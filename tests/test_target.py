"""The target's cheap form, a quadratic and a sampled remainder, against the sum over all rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from betacores.models import GaussianMean, LinearRegression, LogisticRegression
from betacores.pilot import curvature, pilot, rows_of
from betacores.preparation import Prepared
from betacores.sources import ArraySource
from betacores.survey import survey
from betacores.target import DIRECT_ROWS, REMAINDER_ROWS, direct_target, remainder_rows, target_of

ROWS = 20_000
KEY = jax.random.key(0)
CASES = {
    "logistic, robust": ("logistic", 0.5),
    "logistic, classical": ("logistic", 0.0),
    "gaussian, robust": ("gaussian", 0.1),
}


def problem(kind, weights=None):
    """Rows of a model, a tenth of them off."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 4))
    if kind == "gaussian":
        x[: ROWS // 10] += 5.0
        return GaussianMean(), ArraySource(x.astype(np.float32), weights=weights)
    y = np.where(rng.random(ROWS) < special.expit(x @ [1.5, -1.0, 0.5, 0.0] + 0.3), 1.0, -1.0)
    y[: ROWS // 10] *= -1
    return LogisticRegression(), ArraySource(x.astype(np.float32), y.astype(np.float32), weights=weights)


def cheap(model, source, found, beta, key, direct_rows=0):
    """The target from rows that a survey picked."""
    everyone = np.arange(source.row_count)
    sample = rows_of(source, everyone)
    prepared = Prepared(model, source, beta, found, 0.5, None, None, found.theta, sample, everyone, None)
    picked = survey(prepared, key, candidates=None, screen=0.0, direct_rows=direct_rows)
    others = picked.others[0] if picked.others else None
    return target_of(model, found, beta, source=source, far=picked.far, others=others)


class Case:
    """A mode over all rows, and draws from the Laplace approximation there."""

    def __init__(self, kind, beta, weights=None):
        self.model, self.source = problem(kind, weights)
        self.beta, self.found = beta, pilot(self.model, self.source, beta, KEY)
        assert self.found.converged
        self.factor = np.linalg.cholesky(np.linalg.inv(curvature(self.model, self.found)))
        self.direct = direct_target(self.model, self.source, beta)

    def draws(self, count, seed=1, reach=1.0):
        noise = np.random.default_rng(seed).normal(size=(count, len(self.factor)))
        return jnp.asarray(self.found.theta + reach * noise @ self.factor.T, jnp.float32)

    def cheap(self, key):
        return cheap(self.model, self.source, self.found, self.beta, key)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return Case(*CASES[request.param])


def reference(case, thetas):
    """`Σ_n w_n f_n` at draws in double precision, less its value at the first."""
    x, thetas, beta = case.source.x.astype(np.float64), np.asarray(thetas, np.float64), case.beta
    if case.source.y is None:
        square = (x**2).sum(1)[:, None] - 2 * x @ thetas.T + (thetas**2).sum(1)
        values = (1 + beta) ** (x.shape[1] / 2) * np.exp(-0.5 * beta * square) / beta
    else:
        eta, y = np.column_stack([x, np.ones(len(x))]) @ thetas.T, case.source.y.astype(np.float64)[:, None]
        values = -np.logaddexp(0, -y * eta)
        if beta:
            p, q = special.expit(eta), special.expit(-eta)
            values = np.expm1(beta * values) / beta - (p ** (1 + beta) + q ** (1 + beta)) / (1 + beta)
    total = case.source.weights.astype(np.float64) @ values
    return total - total[0]


def test_the_direct_target_is_the_sum_over_all_rows(case):
    thetas = case.draws(60)
    np.testing.assert_allclose(case.direct.over(thetas), reference(case, thetas), atol=0.01)
    assert case.direct.source.row_count == ROWS


@pytest.mark.parametrize("seed", range(3))
def test_the_cheap_target_is_the_direct_one_where_the_posterior_is(case, seed):
    thetas = case.draws(200, seed)
    wanted = case.direct.over(thetas)
    away = case.cheap(jax.random.key(seed)).over(thetas) - wanted
    assert wanted.std() > 1
    assert np.std(away) < 0.02


def test_the_cheap_target_evaluates_a_fraction_of_the_rows(case):
    cheap = case.cheap(KEY)
    assert cheap.source.row_count <= 1.5 * REMAINDER_ROWS < ROWS / 4
    assert cheap.source.weights.sum() == pytest.approx(ROWS, rel=1e-4)


def test_it_starts_from_the_first_draw(case):
    assert case.cheap(KEY).over(case.draws(5))[0] == pytest.approx(0, abs=1e-4)
    assert case.direct.over(case.draws(5))[0] == pytest.approx(0, abs=1e-4)


def test_without_the_quadratic_part_the_same_rows_would_be_far_off(case):
    """The control variate is what makes a sample of rows enough."""
    thetas, cheap = case.draws(200), case.cheap(KEY)
    alone = cheap._replace(rest=None).over(thetas) - case.direct.over(thetas)
    assert np.std(alone) > 0.5


def test_the_average_over_samples_is_the_direct_sum_far_from_the_mode(case):
    """Thirty posterior standard deviations away the remainder matters; sampled, it is right on average."""
    directions = np.random.default_rng(2).normal(size=(4, len(case.factor)))
    directions *= 30 / np.linalg.norm(directions, axis=1, keepdims=True)
    ends = case.found.theta + directions @ case.factor.T
    thetas = jnp.asarray(np.concatenate([case.found.theta[None], ends]), jnp.float32)
    wanted = reference(case, thetas)[1:]
    samples = np.array([case.cheap(key).over(thetas)[1:] for key in jax.random.split(KEY, 40)])
    errors = samples.std(0, ddof=1) / np.sqrt(len(samples))
    assert np.all(np.abs(samples.mean(0) - wanted) < 4 * errors + 0.02)
    # The remainder of third order is there: the quadratic alone would not do.
    at = case.found.looked_at.astype(np.float64)
    gradient, hessian = case.found.likelihood.gradient, case.found.likelihood.hessian

    def quadratic(theta):
        return gradient @ (theta - at) + 0.5 * (theta - at) @ hessian @ (theta - at)

    flat = np.array([quadratic(t) - quadratic(thetas[0]) for t in np.asarray(thetas[1:], np.float64)])
    assert np.abs(flat - wanted).max() > 5 * np.abs(samples.mean(0) - wanted).max()


@pytest.mark.parametrize(("kind", "beta"), [("logistic", 0.5), ("gaussian", 0.1)])
def test_trust_in_rows_is_kept_by_either_form(kind, beta):
    weights = np.random.default_rng(3).random(ROWS).astype(np.float32)
    weights[: ROWS // 4] = 0.0
    case = Case(kind, beta, weights)
    thetas = case.draws(200)
    wanted = reference(case, thetas)
    np.testing.assert_allclose(case.direct.over(thetas), wanted, atol=0.01)
    for seed in range(2):
        assert np.std(case.cheap(jax.random.key(seed)).over(thetas) - wanted) < 0.02


def test_few_rows_are_summed_directly():
    model, source = problem("logistic")
    found = pilot(model, source, 0.5, KEY)
    few = ArraySource(source.x[:1000], source.y[:1000])
    for rows, settings in ((few, {"direct_rows": DIRECT_ROWS}), (source, {"direct_rows": ROWS})):
        same = cheap(model, rows, found, 0.5, KEY, **settings)
        assert same.source is rows
        assert same.rest is None
    beyond = cheap(model, source, found, 0.5, KEY, direct_rows=ROWS - 1)
    assert beyond.source.row_count == 1.5 * REMAINDER_ROWS
    assert beyond.rest is not None


def test_a_sample_of_all_rows_is_exact(case, monkeypatch):
    monkeypatch.setattr("betacores.target.REMAINDER_ROWS", 10 * ROWS)
    everything = case.cheap(KEY)
    assert everything.source.row_count == ROWS
    thetas = case.draws(200, reach=5.0)
    np.testing.assert_allclose(everything.over(thetas), case.direct.over(thetas), atol=0.02)


def test_rows_far_out_in_the_covariates_are_not_left_to_chance():
    """A few rows of a heavy-tailed column swing with the posterior, and a sample has too many of them or none."""
    random = np.random.default_rng(5)
    x = random.normal(size=(ROWS, 2)).astype(np.float32)
    x[:, 1] = random.standard_cauchy(ROWS)
    y = (x @ [1.0, 0.001] + random.normal(size=ROWS)).astype(np.float32)
    model, source = LinearRegression(1.0), ArraySource(x, y)
    found = pilot(model, source, 1.0, KEY)
    factor = np.linalg.cholesky(np.linalg.inv(curvature(model, found)))
    noise = np.random.default_rng(1).normal(size=(200, 3))
    thetas = jnp.asarray(found.theta + noise @ factor.T, jnp.float32)
    whole = direct_target(model, source, 1.0).over(thetas)
    errors = [np.std(cheap(model, source, found, 1.0, jax.random.key(seed)).over(thetas) - whole) for seed in range(5)]
    assert max(errors) < 0.05 * np.std(whole)


def test_many_parameters_have_a_larger_sample():
    assert remainder_rows(11) == REMAINDER_ROWS
    assert remainder_rows(100) > 10_000
