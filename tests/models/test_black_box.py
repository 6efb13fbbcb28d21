"""Models of one's own: mistakes are told before any work, and what is right agrees with the built-in models."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import stats as of_jax
from scipy import stats

import betacores as bc
from betacores.divergence import likelihood
from betacores.models import BlackBox, LogisticRegression, MonteCarlo, Quadrature, Rows

ROWS, DIRTY = 300, 30


def gaussian_line(params, row):
    x, y = row
    return of_jax.norm.logpdf(y, x @ params["slope"] + params["level"], params["noise"])


def line_prior(params):
    wide = of_jax.norm.logpdf(params["slope"], 0.0, 10.0).sum() + of_jax.norm.logpdf(params["level"], 0.0, 10.0)
    # log-normal noise, a density of the noise itself
    return wide + of_jax.norm.logpdf(jnp.log(params["noise"]), 0.0, 2.0) - jnp.log(params["noise"])


def line_power(params, row, beta):
    return (2 * jnp.pi * params["noise"] ** 2) ** (-beta / 2) * (1 + beta) ** -0.5


PARAMETERS = {"slope": (2,), "level": (), "noise": ()}
POSITIVE = {"noise": "positive"}
LINE = BlackBox(
    gaussian_line, line_prior, line_power, parameters=PARAMETERS, constraints=POSITIVE, response="real", name="line"
)


def logistic(params, row):
    eta = row.x @ params[:2] + params[2]
    return jax.nn.log_sigmoid(jnp.where(row.y > 0.5, eta, -eta))


def standard_normal(params):
    return -0.5 * params @ params


LOGISTIC = BlackBox(logistic, standard_normal, "enumerate", dim=3, response="binary")


@jax.jit
def derivatives(model, theta, row, beta):
    def value(theta):
        return likelihood(model, theta, row, beta)

    return *jax.value_and_grad(value)(theta), jax.hessian(value)(theta)


@pytest.fixture(scope="module")
def lines():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 2))
    y = x @ [1.0, -2.0] + 0.5 + 0.3 * rng.normal(size=ROWS)
    y[:DIRTY] = 15 + rng.normal(size=DIRTY)
    return x, y


@pytest.fixture(scope="module")
def summary(lines):
    return bc.summarize(*lines, model=LINE, guard=None)


def test_a_line_of_unknown_noise_is_found_among_outliers(lines, summary):
    assert summary.beta > 0
    assert not (summary.indices < DIRTY).any()
    assert summary.contamination == pytest.approx(DIRTY / ROWS, abs=0.04)
    assert (summary.scores[:DIRTY] < 0.01).all()
    found = summary.model.named(summary.posterior(2000).draws)
    assert set(found) == set(PARAMETERS)
    assert found["slope"].shape == (2000, 2)
    # The answer of the clean rows, by least squares.
    z = np.column_stack([lines[0], np.ones(ROWS)])[DIRTY:]
    clean, (squares,) = np.linalg.lstsq(z, lines[1][DIRTY:], rcond=None)[:2]
    deviations = np.sqrt(squares / (len(z) - 3) * np.diag(np.linalg.inv(z.T @ z)))
    away = np.array([*found["slope"].mean(0), found["level"].mean()]) - clean
    assert np.all(np.abs(away) < 1.5 * deviations)
    assert found["noise"].mean() == pytest.approx(np.sqrt(squares / (len(z) - 3)), rel=0.15)
    # Clean rows count about one each, so that the posterior is about as wide as theirs.
    np.testing.assert_allclose(found["slope"].std(0), deviations[:2], rtol=0.6)


def test_free_parameters_have_names(summary):
    assert summary.parameter_names == ["level", "log(noise)", "slope[0]", "slope[1]"]


@pytest.mark.slow
def test_the_unit_makes_answers_free_of_the_responses_units(lines, summary):
    x, y = lines
    parameters = {"slope": (2,), "level": (), "noise": ()}

    def prior(params):
        return line_prior(jax.tree.map(lambda part: part / 1000.0, params))

    model = BlackBox(
        gaussian_line, prior, line_power, parameters=parameters, constraints=POSITIVE, response="real",
        start={"slope": np.zeros(2), "level": 0.0, "noise": 1000.0},
    )  # fmt: skip
    other = bc.summarize(x, 1000 * y, model=model, guard=None, beta=summary.beta, size=len(summary))
    assert other.model.log_unit - summary.model.log_unit == pytest.approx(np.log(1000), abs=0.01)
    np.testing.assert_allclose(other.scores, summary.scores, rtol=0.02, atol=1e-3)
    widths = [one.posterior(2000).draws[:, 2:].std(0) for one in (other, summary)]
    np.testing.assert_allclose(widths[0] / 1000, widths[1], rtol=0.3)


def test_saved_and_loaded_with_its_model(summary, tmp_path):
    summary.save(tmp_path / "saved")
    with pytest.raises(ValueError, match="'line' is not built in; pass it"):
        bc.load(tmp_path / "saved")
    back = bc.load(tmp_path / "saved", model=LINE)
    assert back.model.log_unit == summary.model.log_unit
    np.testing.assert_array_equal(back.posterior(50).draws, summary.posterior(50).draws)
    assert back.parameter_names == summary.parameter_names


def test_a_report_can_be_made(summary, lines):
    assert "line" in summary.report(*lines).html


@pytest.mark.parametrize("beta", [None, 0.4])
def test_likelihood_agrees_with_the_built_in_model(beta):
    model, built_in = LOGISTIC.bound(["a", "b"], np.array([0, 1])), LogisticRegression()
    rng = np.random.default_rng(0)
    traced = None if beta is None else jnp.float32(beta)
    for sign in (-1.0, 1.0):
        row = Rows(jnp.asarray(rng.normal(size=2), jnp.float32), jnp.float32(sign))
        theta = jnp.asarray(rng.normal(size=3), jnp.float32)
        own, truth = (derivatives(one, theta, row, traced) for one in (model, built_in))
        for part, expected in zip(own, truth, strict=True):
            np.testing.assert_allclose(part, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_coreset_is_that_of_the_built_in_model():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(ROWS, 2))
    y = np.where(rng.uniform(size=ROWS) < 1 / (1 + np.exp(-x @ [2.0, -1.0])), "yes", "no")
    asked = {"beta": 0.3, "size": 12, "guard": None}
    own, built_in = (bc.summarize(x, y, model=model, **asked) for model in (LOGISTIC, "logistic"))
    np.testing.assert_allclose(own.scores, built_in.scores, rtol=1e-3)
    np.testing.assert_allclose(own.posterior(4000).mean, built_in.posterior(4000).mean, atol=0.05)
    for method in ("uniform", "quasi-newton"):
        assert 0 < len(bc.summarize(x, y, model=LOGISTIC, method=method, size=10)) <= 10
    few = {"draws": 20, "steps": 20, "batch_select": 50, "batch_optimise": 50}
    assert 0 < len(bc.summarize(x, y, model=LOGISTIC, method="beta-cores", beta=0.3, size=5, **few)) <= 5
    assert own.posterior(100, "nuts", chains=2, warmup=100).chains.shape == (2, 100, 3)


def test_without_integral_only_zero_can_be_used():
    model = BlackBox(logistic, standard_normal, dim=3, response="binary")
    assert not hasattr(model, "power_integral")
    x = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.raises(ValueError, match=r"beta.*'black-box' has no power integral"):
        bc.summarize(x, x[:, 0] > 0, model=model, beta=0.1)
    assert bc.summarize(x, x[:, 0] > 0, model=model, method="uniform", size=5).beta == 0


def test_rows_out_of_reach_count_nothing_and_leave_gradients_finite():
    def counted(params, row):
        eta = row.x[0] * params[0]
        return row.y * eta - jnp.exp(eta) - jax.lax.lgamma(row.y + 1)

    model = BlackBox(counted, standard_normal, "enumerate", dim=1, response="count").bound(["a"], None)
    wild = Rows(jnp.asarray([1e12], jnp.float32), jnp.float32(3.0))
    for beta in (None, jnp.float32(0.5)):
        value, slope, bend = derivatives(model, jnp.ones(1), wild, beta)
        assert np.isfinite(value)
        assert slope == 0
        assert bend == 0


def test_the_prior_of_constrained_parameters_has_its_jacobian():
    model, noise = LINE.bound(["a", "b"], None), 0.4
    theta = jnp.asarray([0.1, np.log(noise), 0.2, 0.3], jnp.float32)
    normal = stats.norm(0, 10).logpdf([0.1, 0.2, 0.3]).sum()
    # log-normal noise is normal in its logarithm
    np.testing.assert_allclose(model.log_prior(theta), normal + stats.norm(0, 2).logpdf(np.log(noise)), rtol=1e-5)


def test_parameters_that_depend_on_the_table_are_settled_by_it(lines):
    def prior(params):
        return line_prior(params)

    model = BlackBox(
        gaussian_line,
        prior,
        parameters=lambda columns: {"slope": (columns,), "level": (), "noise": ()},
        constraints=POSITIVE,
        response="real",
    )
    assert model.parameter_count(5) == 7
    with pytest.raises(ValueError, match="number of columns, which is not known yet"):
        model.log_prior(jnp.zeros(7))
    assert model.bound(["a", "b"], None).parameter_names(["a", "b"])[-1] == "slope[1]"


def test_one_program_serves_all_units():
    traces = []

    @jax.jit
    def value(model, theta, row):
        traces.append(1)
        return model.log_likelihood(theta, row)

    model, row = LINE.bound(["a", "b"], None), Rows(jnp.ones(2), jnp.float32(1.0))
    values = [value(model.with_unit(unit), jnp.zeros(4), row) for unit in (0.0, 1.5)]
    value(LINE.bound(["a", "b"], None).with_unit(3.0), jnp.zeros(4), row)
    assert len(traces) == 1
    assert values[1] - values[0] == pytest.approx(1.5)


def like(function, **more):
    return lambda: BlackBox(function, standard_normal, dim=3, response="binary", **more)


MISTAKES = {
    "no function": (lambda: BlackBox(3, standard_normal, dim=3), TypeError, "log_likelihood: expected a function"),
    "three arguments": (like(lambda theta, x, y: 0.0), TypeError, r"of \(params, row\), got one of \(theta, x, y"),
    "prior of two": (lambda: BlackBox(logistic, lambda a, b: 0.0, dim=3), TypeError, r"log_prior: .*of \(params"),
    "neither": (lambda: BlackBox(logistic, standard_normal), TypeError, "dim, parameters: give one"),
    "no numbers": (lambda: BlackBox(logistic, standard_normal, dim=0), ValueError, "dim: expected a whole number"),
    "response": (lambda: BlackBox(logistic, standard_normal, dim=3, response="label"), ValueError, "response: 'label'"),
    "rule": (like(logistic, power_integral="quadratur"), ValueError, "Did you mean 'quadrature'"),
    "rule of another": (like(logistic, power_integral="quadrature"), ValueError, "real outcomes, .*is 'binary'"),
    "no sampler": (like(logistic, power_integral="monte-carlo"), ValueError, "needs sampler="),
    "a sampler for nothing": (like(logistic, sampler=len), ValueError, "sampler: it is for"),
    "flat prior": (
        lambda: BlackBox(gaussian_line, lambda p: -(p["slope"] @ p["slope"]) - p["level"] ** 2, parameters=PARAMETERS,
                         constraints=POSITIVE),
        ValueError, "log_prior: it does not depend on noise, so that the prior is flat",
    ),
    "an entry of the prior": (
        lambda: BlackBox(logistic, lambda p: -(p[0] ** 2) - p[2] ** 2, dim=3), ValueError, r"parameters \(entry 1\)"),
    "nan prior": (lambda: BlackBox(logistic, lambda p: jnp.log(p).sum(), dim=3), ValueError, "log_prior:.*-inf at"),
    "vector prior": (lambda: BlackBox(logistic, lambda p: -(p**2), dim=3), ValueError, r"log_prior.*shape \(3,\)"),
    "names": (lambda: BlackBox(logistic, standard_normal, dim=3, names=["a"]), ValueError, "names: expected 3"),
    "unit": (lambda: BlackBox(logistic, standard_normal, dim=3, unit=-1.0), ValueError, "unit.*above 0"),
    "start": (lambda: BlackBox(logistic, standard_normal, dim=3, start=np.zeros(2)), ValueError, r"start.*\(3,\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_at_once(name):
    make, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=message):
        make()


TRACED = {
    "vector": (
        lambda p, row: row.x * p[0],
        ValueError,
        r"log_likelihood: expected one number, got an array of shape \(2,\)",
    ),
    "none": (lambda p, row: None, TypeError, "log_likelihood: expected one number, got None"),
    "whole": (lambda p, row: jnp.int32(1), TypeError, "real number, got one of type int32"),
    "if": (lambda p, row: p[0] if row.y > 0 else p[1], TypeError, "log_likelihood: .*value of a traced argument"),
    "float": (lambda p, row: float(p[0]) * row.y, TypeError, "log_likelihood: .*value of a traced argument"),
    "numpy": (lambda p, row: np.log1p(np.asarray(p)).sum(), TypeError, "log_likelihood: it uses NumPy"),
    "shapes": (lambda p, row: row.x @ p, TypeError, r"log_likelihood: it failed on a row of 2 columns.*a vector of 3"),
    "keys": (lambda p, row: p["slope"], (TypeError, ValueError, IndexError), "log_likelihood: it failed on a row"),
    "nan": (lambda p, row: jnp.log(p[0] - 1.0) * row.x[0], ValueError, "log_likelihood: it is nan at row 0, x = "),
    "impossible": (lambda p, row: -jnp.inf + 0 * p[0], ValueError, "it is -inf at row 0.*all other rows"),
    "root": (lambda p, row: -jnp.sqrt(p[0] ** 2), ValueError, "its gradient is not finite at row 0"),
}


@pytest.mark.parametrize("name", TRACED)
def test_mistakes_in_the_likelihood_are_told_before_any_work(name):
    function, kind, message = TRACED[name]
    x = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(kind, match=f"(?s){message}"):
        bc.summarize(x, x[:, 0] > 0, model=like(function)())


def wide(y):
    return of_jax.norm.logpdf(y, 0, 100.0)


def real(rule, density=None):
    density = density or (lambda p, row: of_jax.norm.logpdf(row.y, p[0], 1.0))
    return BlackBox(density, standard_normal, rule, dim=1, response="real")


INTEGRALS = {
    "not normalised": (real("quadrature", lambda p, row: -0.5 * (row.y - p[0]) ** 2), "is 2.507 at .*constant"),
    "not an integral": (real(lambda p, row, beta: 2.0 + 0 * beta), "for β = 0 it must be 1, .*and is 2 at row 0"),
    "negative": (real(lambda p, row, beta: -1.0 + 0 * beta), "expected a positive number, got -1"),
    "vector": (real(lambda p, row, beta: jnp.ones(2)), r"power_integral: expected one number, .*shape \(2,\)"),
    "few draws": (
        real(MonteCarlo(lambda key, p, row: 100 * jax.random.normal(key), lambda p, row: wide(row.y), 50)),
        "for β = 0 it must be 1",
    ),
    "missed": (real(Quadrature(location=lambda p, row: 1e6, scale=lambda p, row: 1.0)), "power_integral"),
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGRALS)
def test_wrong_integrals_are_told_before_any_work(name):
    model, message = INTEGRALS[name]
    x = np.random.default_rng(0).normal(size=(50, 1))
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        bc.summarize(x, x[:, 0], model=model)


def test_quadrature_of_whole_rows_is_for_one_column():
    model = BlackBox(lambda p, row: -(row.x @ row.x) * p[0], standard_normal, "quadrature", dim=1)
    with pytest.raises(ValueError, match="over one real outcome, and rows have 2 columns"):
        bc.summarize(np.random.default_rng(0).normal(size=(50, 2)), model=model)
