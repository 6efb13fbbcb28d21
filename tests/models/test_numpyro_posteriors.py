"""Coresets of models from NumPyro, read here and by NumPyro's NUTS, have the posterior of the clean rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

numpyro = pytest.importorskip("numpyro", reason="NumPyro is an optional package (betacores[numpyro]).")

import numpyro.distributions as dist  # noqa: E402
from numpyro.infer import MCMC, NUTS  # noqa: E402
from numpyro.infer.util import potential_energy  # noqa: E402

import betacores as bc  # noqa: E402

ROWS, DIRTY, GROUPS = 400, 40, 4


def line(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0).expand([x.shape[1]]).to_event(1))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ slope, sigma), obs=y)


def labels(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ slope), obs=y)


def levels(x, group, y=None):
    middle = numpyro.sample("middle", dist.Normal(0.0, 5.0))
    spread = numpyro.sample("spread", dist.HalfNormal(2.0))
    with numpyro.plate("groups", GROUPS):
        level = numpyro.sample("level", dist.Normal(middle, spread))
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(level[group] + slope * x, sigma), obs=y)


def drawn(model, **given):
    sampler = MCMC(NUTS(model), num_warmup=300, num_samples=800, progress_bar=False)
    sampler.run(jax.random.key(0), **given)
    return {name: np.asarray(values) for name, values in sampler.get_samples().items()}


def table(seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(ROWS, 2))


def agree(found, truth, names, within):
    for name in names:
        away = np.abs(found[name].mean(0) - truth[name].mean(0))
        assert np.all(away < within * truth[name].std(0)), name


def test_the_weighted_model_has_the_density_of_the_coreset():
    """Here the weighted sum by hand; what NumPyro makes of the user's model with its weights is the same."""
    rng, x = table()
    x, y, weights = x[:9], rng.normal(size=9), rng.uniform(1, 9, 9)
    own = bc.models.from_numpyro(line).bound(["a", "b"], None)
    weighted = own.weighted(bc.models.Rows(x, y), weights)
    theta = jnp.asarray([0.3, -0.2, 0.1])
    found = -potential_energy(numpyro.handlers.seed(weighted, 0), (), {}, own.layout(theta))
    free = own.layout(theta)
    mean = x @ np.asarray(free["slope"])
    sigma = float(np.exp(free["sigma"]))
    each = -0.5 * ((y - mean) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    assert found == pytest.approx(float(weights @ each + own.log_prior(theta)), rel=1e-4)


def test_models_of_plain_functions_go_to_numpyro_too():
    def log_likelihood(params, row):
        return -0.5 * (row.y - row.x @ params["slope"]) ** 2 / params["noise"] ** 2 - jnp.log(params["noise"])

    def log_prior(params):
        return -0.5 * params["slope"] @ params["slope"] - params["noise"]

    model = bc.models.BlackBox(
        log_likelihood, log_prior, parameters={"slope": (2,), "noise": ()}, constraints={"noise": "positive"},
        response="real",
    )  # fmt: skip
    rng, x = table()
    coreset = bc.summarize(x[:100], x[:100, 0] + rng.normal(size=100), model=model, method="uniform", size=9)
    theta = jnp.asarray([0.3, -0.2, 0.1])
    found = -potential_energy(numpyro.handlers.seed(coreset.to_numpyro(), 0), (), {}, {"theta": theta})
    params = coreset.model.layout(theta)
    away = (coreset.y - coreset.X @ np.asarray(params["slope"])) / float(params["noise"])
    each = -0.5 * away**2 - float(theta[0])
    expected = coreset.weights @ each - 0.5 * 0.05 - float(np.exp(0.3)) + 0.3
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_a_line():
    rng, x = table()
    y = x @ [1.0, -2.0] + 0.3 * rng.normal(size=ROWS)
    truth = drawn(line, x=jnp.asarray(x[DIRTY:]), y=jnp.asarray(y[DIRTY:]))
    y[:DIRTY] = 10 + rng.normal(size=DIRTY)
    dirty = drawn(line, x=jnp.asarray(x), y=jnp.asarray(y))
    coreset = bc.summarize(x, y, model=bc.models.from_numpyro(line), guard=None)
    assert not (coreset.indices < DIRTY).any()
    agree(coreset.model.named(coreset.posterior(2000).draws), truth, ["slope"], 1.0)
    again = drawn(coreset.to_numpyro())
    agree(again, truth, ["slope"], 1.0)
    np.testing.assert_allclose(again["slope"].std(0), truth["slope"].std(0), rtol=0.6)
    assert dirty["sigma"].mean() > 5 * again["sigma"].mean()


@pytest.mark.slow
def test_labels():
    rng, x = table(1)
    y = (rng.uniform(size=ROWS) < 1 / (1 + np.exp(-x @ [2.0, -1.0]))).astype(int)
    truth = drawn(labels, x=jnp.asarray(x), y=jnp.asarray(y))
    # On clean rows and with β = 0 the coreset's posterior is that of all rows.
    coreset = bc.summarize(x, np.where(y, "yes", "no"), model=bc.models.from_numpyro(labels), beta=0, guard=None)
    agree(coreset.model.named(coreset.posterior(4000).draws), truth, ["slope"], 0.4)
    agree(drawn(coreset.to_numpyro()), truth, ["slope"], 0.4)


@pytest.mark.slow
def test_levels_of_groups():
    rng, x = table(2)
    group = rng.integers(0, GROUPS, ROWS)
    y = np.array([1.0, 0.2, -0.5, 2.0])[group] + 0.8 * x[:, 0] + 0.4 * rng.normal(size=ROWS)
    clean = slice(DIRTY, None)
    truth = drawn(levels, x=jnp.asarray(x[clean, 0]), group=jnp.asarray(group[clean]), y=jnp.asarray(y[clean]))
    y[:DIRTY] = 12 + rng.normal(size=DIRTY)
    model = bc.models.from_numpyro(levels, {"x": "price", "group": "shop"}, integers=["group"])
    coreset = bc.summarize(pd.DataFrame({"shop": group, "price": x[:, 0]}), y, model=model, beta=0.3, guard=None)
    assert not (coreset.indices < DIRTY).any()
    names = ["level", "slope", "middle"]
    agree(coreset.model.named(coreset.posterior(2000).draws), truth, names, 1.0)
    agree(drawn(coreset.to_numpyro()), truth, names, 1.0)
