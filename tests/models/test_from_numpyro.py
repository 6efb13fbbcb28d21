"""Models from NumPyro: densities are NumPyro's own, and what cannot be summarised is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

numpyro = pytest.importorskip("numpyro", reason="NumPyro is an optional package (betacores[numpyro]).")

import numpyro.distributions as dist  # noqa: E402
from numpyro.infer.util import constrain_fn, potential_energy  # noqa: E402

import betacores as bc  # noqa: E402
from betacores.models import Quadrature, Rows, from_numpyro  # noqa: E402

ROWS, GROUPS = 40, 4


def line(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0).expand([x.shape[1]]).to_event(1))
    level = numpyro.sample("level", dist.Normal(0.0, 5.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    numpyro.deterministic("precision", sigma**-2)
    mean = numpyro.deterministic("mean", x @ slope + level)
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(mean, sigma), obs=y)


def labels(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ slope), obs=y)


def groups(x, group, count, y=None):
    middle = numpyro.sample("middle", dist.Normal(0.0, 5.0))
    spread = numpyro.sample("spread", dist.HalfCauchy(1.0))
    with numpyro.plate("groups", count):
        level = numpyro.sample("level", dist.Normal(middle, spread))
    slope = numpyro.sample("slope", dist.Normal(0.0, 5.0))
    top = numpyro.sample("top", dist.Uniform(0.0, 1.0 + spread))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.StudentT(4.0, level[group] + slope * x, 0.5 + top), obs=y)


def mixture(x, y=None):
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
    rates = numpyro.sample(
        "rates",
        dist.TransformedDistribution(dist.Normal(0.0, 1.0).expand([3]).to_event(1), dist.transforms.OrderedTransform()),
    )
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.MixtureSameFamily(dist.Categorical(probs=shares), dist.Poisson(jnp.exp(rates))), obs=y)


def cloud(x):
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.LogNormal(0.0, 1.0).expand([2]).to_event(1))
    corr = numpyro.sample("corr", dist.LKJCholesky(2, 1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("x", dist.MultivariateNormal(mean, scale_tril=scale[:, None] * corr), obs=x)


def table():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3)).astype(np.float32)
    x[:, 2] = np.arange(ROWS) % GROUPS
    return x


def hierarchical():
    return from_numpyro(groups, {"x": 0, "group": "g"}, constants={"count": GROUPS}, integers="group")


NAMES = ["a", "b", "g"]
CASES = {
    "line": (lambda: from_numpyro(line), "real", lambda x: {"x": x}),
    "labels": (lambda: from_numpyro(labels), "binary", lambda x: {"x": x}),
    "groups": (hierarchical, "real", lambda x: {"x": x[:, 0], "group": x[:, 2].astype(int), "count": GROUPS}),
    "mixture": (lambda: from_numpyro(mixture), "count", lambda x: {"x": x}),
    "cloud": (lambda: from_numpyro(cloud, {"x": ["a", "b"]}), "none", lambda x: {"x": x[:, :2]}),
}
RESPONSES = {
    "real": np.random.default_rng(1).normal(size=ROWS),
    "binary": np.arange(ROWS) % 2,
    "count": np.arange(ROWS) % 7,
    "none": None,
}
PROGRAMS = {"line": line, "labels": labels, "groups": groups, "mixture": mixture, "cloud": cloud}


@pytest.mark.parametrize("name", CASES)
def test_density_and_gradient_are_those_of_numpyro(name):
    make, kind, arguments = CASES[name]
    model = make()
    assert model.response == kind
    model = model.bound(NAMES, np.array([0, 1]) if kind == "binary" else None)
    x, y = table(), RESPONSES[kind]
    inside = None if y is None else jnp.asarray(2 * y - 1 if kind == "binary" else y, jnp.float32)
    given = arguments(x) | ({} if y is None else {"y": jnp.asarray(y)})

    def own(theta):
        every = jax.vmap(model.log_likelihood, (None, 0))(theta, Rows(jnp.asarray(x), inside))
        return every.sum() + model.log_prior(theta)

    def theirs(theta):
        return -potential_energy(PROGRAMS[name], (), given, model.layout(theta))

    thetas = jnp.asarray(0.5 * np.random.default_rng(2).normal(size=(3, model.parameter_count(3))), jnp.float32)
    found, truth = (jax.jit(jax.vmap(jax.value_and_grad(function)))(thetas) for function in (own, theirs))
    np.testing.assert_allclose(found[0], truth[0], rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(found[1], truth[1], rtol=1e-4, atol=2e-3)


def test_draws_go_back_to_named_sites():
    model = hierarchical().bound(NAMES, None)
    draws = np.random.default_rng(0).normal(size=(2, 5, model.parameter_count(3)))
    found = model.named(draws)
    assert found["level"].shape == (2, 5, GROUPS)
    given = {"x": jnp.zeros(1), "group": jnp.zeros(1, int), "count": GROUPS}
    exact = constrain_fn(numpyro.handlers.seed(groups, 0), (), given, model.layout(jnp.asarray(draws[1, 3])))
    for name, value in exact.items():
        np.testing.assert_allclose(found[name][1, 3], value, rtol=1e-5)
    assert (found["top"] < 1 + found["spread"]).all()
    assert model.parameter_names(NAMES) == [
        *(f"level[{k}]" for k in range(GROUPS)), "middle", "slope", "log(spread)", "free(top)"
    ]  # fmt: skip


def test_deterministic_sites_come_along_unless_they_belong_to_rows():
    model = from_numpyro(line).bound(["a"], None)
    found = model.named(np.array([[0.0, np.log(0.5), 0.0]]))
    assert set(found) == {"slope", "level", "sigma", "precision"}
    assert found["precision"][0] == pytest.approx(4.0)


def test_the_search_starts_from_the_middle_of_the_prior():
    def far(x, y=None):
        level = numpyro.sample("level", dist.Normal(1000.0, 3.0))
        numpyro.sample("y", dist.Normal(level + 0 * x[:, 0], 1.0), obs=y)

    start = from_numpyro(far).bound(["a"], None).robust_start(None)
    assert start == pytest.approx(1000.0, abs=3)


def test_what_is_not_known_is_integrated_numerically():
    def skew(x, y=None):
        level = numpyro.sample("level", dist.Normal(0.0, 5.0))
        numpyro.sample("y", dist.Gumbel(level + 0 * x[:, 0], 2.0), obs=y)

    model = from_numpyro(skew).bound(["a"], None)
    assert isinstance(model.rule, Quadrature)
    from scipy import integrate, stats

    exact, _ = integrate.quad(lambda v: stats.gumbel_r.pdf(v, 0.7, 2) ** 1.5, -20, 60)
    found = jax.jit(model.power_integral)(jnp.asarray([0.7]), Rows(jnp.zeros(1), jnp.float32(0.0)), jnp.float32(0.5))
    assert found == pytest.approx(exact, rel=1e-5)


def local(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", x.shape[0]):
        shift = numpyro.sample("shift", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(level + shift, 1.0), obs=y)


def local_without_plate(x, y=None):
    shift = numpyro.sample("shift", dist.Normal(0.0, 1.0).expand([x.shape[0]]).to_event(1))
    numpyro.sample("y", dist.Normal(shift, 1.0), obs=y)


def subsampled(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", x.shape[0], subsample_size=2) as rows:
        numpyro.sample("y", dist.Normal(level, 1.0), obs=y[rows])


def two_outcomes(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(level, 1.0), obs=y)
        numpyro.sample("z", dist.Normal(level, 1.0), obs=x[:, 0])


def two_plates(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", x.shape[0], dim=-1), numpyro.plate("twice", 2, dim=-2):
        numpyro.sample("y", dist.Normal(level, 1.0), obs=jnp.stack([y, y]))


def fixed_plate(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", 1):
        numpyro.sample("y", dist.Normal(level, 1.0), obs=y[:1])


def nothing_observed(x, y=None):
    numpyro.sample("level", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))


def discrete(x, y=None):
    kind = numpyro.sample("kind", dist.Bernoulli(0.5))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(kind, 1.0), obs=y)


def no_parameters(x, y=None):
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


def optimised(x, y=None):
    level = numpyro.param("level", 0.0)
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(level, 1.0), obs=y)


def one_number(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(level, 1.0).expand([x.shape[0]]).to_event(1), obs=y)


REFUSED = {
    "local": (local, "'shift' has a value for every row"),
    "local without plate": (local_without_plate, "log-probabilities of shape|every row"),
    "subsampled": (subsampled, "plate 'rows' takes 2 of 5 rows at random"),
    "two outcomes": (two_outcomes, "one observed site.*found 'y', 'z'"),
    "two plates": (two_plates, "'y' is in 2 plates"),
    "fixed plate": (fixed_plate, "'rows' has size 1 whatever the rows are"),
    "nothing observed": (nothing_observed, "found none; hand the argument 'y' on to obs="),
    "discrete": (discrete, "'kind' is discrete"),
    "no parameters": (no_parameters, "no sample site that is not observed"),
    "optimised": (optimised, "'level' is a param"),
    "one number": (one_number, r"log-probabilities of shape \(\) for 5 rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_are_not_of_independent_rows_are_refused(name):
    program, message = REFUSED[name]
    with pytest.raises(ValueError, match=f"^model: .*{message}"):
        from_numpyro(program)


def centred(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(slope * (x[:, 0] - x[:, 0].mean()), 1.0), obs=y)


def empirical(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0 + jnp.abs(x[0, 0])))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(level, 1.0), obs=y)


def no_constant(x, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(jnp.where(x[:, 0] > 1, jnp.nan, level), 1.0), obs=y)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (centred, "Rows must be independent given the parameters"),
        (empirical, "the prior depends on the rows"),
        (no_constant, "log_likelihood: it is nan at row 0"),
    ],
)
def test_rows_tell_what_shapes_cannot(program, message):
    x = table()[:, :1] + 3.0
    with pytest.raises(ValueError, match=message):
        bc.summarize(x, x[:, 0], model=from_numpyro(program))


def test_arguments_must_be_accounted_for():
    with pytest.raises(ValueError, match=r"data_args: which columns.*'x', 'group', 'count'"):
        from_numpyro(groups)
    with pytest.raises(ValueError, match="nothing is said of the model's argument 'count'"):
        from_numpyro(groups, {"x": 0, "group": 1})
    with pytest.raises(ValueError, match=r"data_args: the model has no argument 'z'"):
        from_numpyro(line, {"z": 0})
    with pytest.raises(ValueError, match=r"constants: the model has no argument 'z'"):
        from_numpyro(line, constants={"z": 0})
    with pytest.raises(ValueError, match="named in integers="):
        from_numpyro(groups, {"x": 0, "group": 1}, constants={"count": GROUPS})
    with pytest.raises(ValueError, match="'group' gets column 'g', and data has none of that name"):
        hierarchical().bound(["a", "b"], None)
    with pytest.raises(TypeError, match="power_integral: expected 'auto'"):
        from_numpyro(line, power_integral="closed")


def test_classes_must_be_as_many_as_labels():
    def three(x, y=None):
        level = numpyro.sample("level", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("y", dist.Categorical(logits=level), obs=y)

    model = from_numpyro(three)
    assert model.response == "classes"
    with pytest.raises(ValueError, match="y: the model is of 3 classes, the response has 4 labels"):
        model.bound(["a"], np.arange(4))
    bound = model.bound(["a"], np.arange(3))
    row = Rows(jnp.zeros(1), jnp.float32(2.0))
    assert bound.log_likelihood(jnp.asarray([0.0, 0.0, 1.0]), row) == pytest.approx(1 - np.log(2 + np.e), abs=1e-5)
