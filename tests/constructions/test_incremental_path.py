"""What must hold of every path of Algorithm 1: padding, prefixes, limits, compilations, interruptions."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.constructions import Context
from betacores.constructions.incremental import _advance, incremental
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Model, Rows, gaussian_prior
from betacores.pilot import Pilot
from betacores.posteriors.derivatives import Derivatives
from betacores.preparation import Prepared
from betacores.sources import ArraySource
from betacores.target import direct_target

ROWS, COLUMNS, SIZE = 300, 3, 6
QUICK = {"draws": 30, "steps": 20, "batch_select": 100, "batch_optimise": 50}
KEY = jax.random.key(5)
MODELS = {"gaussian-mean": GaussianMean(), "linear": LinearRegression(noise=0.7), "logistic": LogisticRegression()}


def table(name, rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(0.3, 1, (rows, COLUMNS))
    y = x @ [1.0, -2.0, 0.5] + rng.normal(size=rows)
    y = np.sign(y) if name == "logistic" else y
    return Rows(jnp.asarray(x, jnp.float32), None if name == "gaussian-mean" else jnp.asarray(y, jnp.float32))


def build(name, key=KEY, *, size=SIZE, beta=0.3, **settings):
    return incremental(MODELS[name], table(name), key, size=size, beta=beta, **{**QUICK, **settings})


def assert_same_path(a, b, rtol=1e-3):
    assert a.indices.tolist() == b.indices.tolist()
    assert a.weights.shape == b.weights.shape
    np.testing.assert_allclose(a.weights, b.weights, rtol=rtol, atol=rtol * max(1.0, b.weights.max()))


@pytest.mark.parametrize("name", MODELS)
def test_path_holds_distinct_rows_and_nonnegative_weights(name):
    path = build(name)
    assert path.weights.shape == (SIZE, len(path.indices))
    assert 1 <= len(path.indices) <= SIZE
    assert len(set(path.indices.tolist())) == len(path.indices)
    assert np.all((path.indices >= 0) & (path.indices < ROWS))
    assert np.all(path.weights >= 0)
    assert np.isfinite(path.weights).all()
    assert path.weights.dtype == np.float64


@pytest.mark.parametrize("name", MODELS)
def test_rows_weigh_nothing_before_they_are_inserted(name):
    """Row k cannot be there before iteration k + 1, and rows come in the order of their first weight."""
    path = build(name)
    k = len(path.indices)
    assert not np.triu(path.weights[:k], 1).any()
    first = [int(np.argmax(path.weights[:, j] > 0)) for j in range(k) if path.weights[:, j].any()]
    assert first == sorted(first)


@pytest.mark.slow
def test_more_places_change_nothing():
    assert_same_path(build("logistic", capacity=11), build("logistic"), rtol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_shorter_run_is_the_beginning_of_a_longer_one(name):
    long, short = build(name), build(name, size=4, capacity=SIZE)
    assert long.indices[: len(short.indices)].tolist() == short.indices.tolist()
    assert np.array_equal(long.weights[:4, : len(short.indices)], short.weights)
    assert not long.weights[:4, len(short.indices) :].any()


def test_at_returns_rows_of_positive_weight_only():
    path = build("gaussian-mean")
    for m in range(1, SIZE + 1):
        indices, weights = path.at(m)
        assert np.all(weights > 0)
        assert dict(zip(indices, weights, strict=True)) == {
            i: w for i, w in zip(path.indices, path.weights[m - 1], strict=True) if w > 0
        }


@pytest.mark.parametrize("name", MODELS)
def test_sparse_vi_is_the_limit_of_small_beta(name):
    classical = build(name, beta=0.0)
    assert_same_path(build(name, beta=1e-9), classical, rtol=1e-2)


def test_same_key_same_path_and_another_key_another():
    one, two, other = build("gaussian-mean"), build("gaussian-mean"), build("gaussian-mean", jax.random.key(6))
    assert one.indices.tolist() == two.indices.tolist()
    assert np.array_equal(one.weights, two.weights)
    assert one.indices.tolist() != other.indices.tolist()


def test_only_eligible_rows_are_chosen():
    eligible = np.zeros(ROWS, bool)
    eligible[::20] = True
    path = build("gaussian-mean", eligible=eligible)
    assert set(path.indices.tolist()) <= set(np.flatnonzero(eligible).tolist())
    assert len(path.indices) >= 2


def test_no_eligible_row_gives_an_empty_path_and_a_warning():
    path = build("gaussian-mean", eligible=np.zeros(ROWS, bool))
    assert path.weights.shape == (SIZE, 0)
    assert any("No row was selected" in w for w in path.warnings)


def test_batches_larger_than_the_table_are_all_of_it():
    full = build("gaussian-mean", batch_select=None, batch_optimise=None)
    assert_same_path(build("gaussian-mean", batch_select=10**6, batch_optimise=ROWS), full, rtol=0)


def test_learning_rate_may_be_any_function_of_the_step():
    assert_same_path(build("gaussian-mean", learning_rate=lambda t: 0.5 / t), build("gaussian-mean", learning_rate=0.5))


def test_progress_is_told_of_every_outer_iteration():
    calls = []
    build("gaussian-mean", progress=lambda done, total: calls.append((done, total)))
    assert calls == [(m, SIZE) for m in range(1, SIZE + 1)]


class PlainGaussian(Model):
    """The mean of a Gaussian with nothing but what a model must give: no conjugacy, no fast path."""

    name = "plain-gaussian"
    traces = 0

    def __init__(self, scale=1.0):
        self.scale = float(scale)

    def parameter_count(self, columns):
        return columns

    def log_likelihood(self, theta, row):
        type(self).traces += 1
        away = (row.x - theta) / self.scale
        return -0.5 * away @ away - row.x.shape[-1] * (0.5 * jnp.log(2 * jnp.pi) + jnp.log(self.scale))

    def log_prior(self, theta):
        return -0.5 * theta @ theta

    def power_integral(self, theta, row, beta):
        d = row.x.shape[-1]
        return (2 * jnp.pi * self.scale**2) ** (-d * beta / 2) * (1 + beta) ** (-d / 2)


CLASSICAL = {**QUICK, "sampler_target": "classical"}


@pytest.mark.slow
def test_fast_paths_give_what_the_bare_model_gives():
    """Conjugacy, matrix products and temperature are short cuts: Adam and selection ignore the scale of f."""
    bare = incremental(PlainGaussian(), table("gaussian-mean"), KEY, size=SIZE, beta=0.3, **CLASSICAL)
    assert_same_path(bare, build("gaussian-mean", sampler_target="classical"), rtol=1e-2)


def test_one_compilation_whatever_the_seed_beta_rate_prior_or_iteration():
    rows, compiled = table("linear"), []
    for seed, beta, rate, noise in [(0, 0.1, 1.0, 1.0), (1, 0.7, 0.1, 2.0), (2, 1.3, lambda t: t**-0.5, 0.3)]:
        model = LinearRegression(noise=noise, prior=gaussian_prior(mean=noise, covariance=2 * noise))
        key = jax.random.key(seed)
        incremental(model, rows, key, size=SIZE, beta=beta, learning_rate=rate, **CLASSICAL)
        compiled.append(_advance.compiled._cache_size())
    assert compiled == compiled[:1] * 3


def test_new_shape_is_one_more_compilation():
    before = _advance.compiled._cache_size()
    for seed in range(3):
        key = jax.random.key(seed)
        incremental(MODELS["gaussian-mean"], table("gaussian-mean", rows=301), key, size=2, beta=0.0, **QUICK)
    assert _advance.compiled._cache_size() == before + 1


def test_model_is_traced_once():
    rows = table("gaussian-mean")
    incremental(PlainGaussian(), rows, KEY, size=SIZE, beta=0.2, **CLASSICAL)
    traced = PlainGaussian.traces
    assert traced > 0
    incremental(PlainGaussian(1.5), rows, jax.random.key(9), size=SIZE, beta=0.4, learning_rate=0.3, **CLASSICAL)
    assert PlainGaussian.traces == traced


@pytest.mark.parametrize("method", ["beta-cores", "sparse-vi"])
def test_registered_methods_pass_their_settings_on(method, monkeypatch):
    """Every setting reaches the construction, and the screen becomes a choice of eligible rows."""
    registry = importlib.import_module("betacores.constructions")
    seen = {}

    def spy(model, rows, key, **settings):
        seen.update(settings)
        return build("gaussian-mean")

    monkeypatch.setattr(registry, "incremental", spy)
    given = {**QUICK, "learning_rate": 0.2, "optimiser": "sgd", "sampler_target": "classical", "screen": 0.5}
    checked = registry.METHODS[method].check(given)
    source = ArraySource(np.asarray(table("gaussian-mean").x))
    beta = 0.3 if method == "beta-cores" else 0.0
    zero = np.zeros(COLUMNS, np.float32)
    nowhere = Derivatives(0.0, zero, np.zeros((COLUMNS, COLUMNS)))
    found = Pilot(zero, zero, nowhere, 0.0, True, "prior")
    prepared = Prepared(
        MODELS["gaussian-mean"],
        source,
        beta,
        found,
        0.5,
        np.ones(source.row_count),
        None,
        zero,
        source,
        np.arange(source.row_count),
        None,
    )
    context = Context(prepared, None, direct_target(MODELS["gaussian-mean"], source, beta), "classical")
    registry.METHODS[method].build(context, KEY, SIZE, checked)
    eligible = seen.pop("eligible")
    assert {k: seen[k] for k in given if k != "screen"} == {k: v for k, v in given.items() if k != "screen"}
    assert seen["size"] == SIZE
    if method == "sparse-vi":
        assert eligible is None
        return
    # The score r = p^β/I at θ = 0, from its definition; the normalisers cancel but for (1+β)^(d/2).
    scores = np.exp(-0.5 * 0.3 * (source.x.astype(np.float64) ** 2).sum(1)) * 1.3 ** (COLUMNS / 2)
    assert np.array_equal(eligible, scores >= 0.5)
