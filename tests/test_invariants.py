"""What every construction must keep to with every model, whatever the table: one suite for the whole registry."""

import functools
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import betacores as bc
from betacores.constructions import METHODS
from betacores.models import MODELS

ROWS, COLUMNS, SIZE = 300, 3, 6
QUICK = {"draws": 30, "steps": 20, "batch_select": 100, "batch_optimise": 50}
PUBLISHED = {"method": "beta-cores", **QUICK}
CLASSICAL = ("sparse-vi", "uniform")
MOVING = ("psvi",)  # what it keeps are points, not rows


def settings_of(method):
    """Settings that make a method quick, as far as it takes them, and a β if it is robust."""
    quick = {name: value for name, value in QUICK.items() if name in METHODS[method].check({})}
    return quick if method in CLASSICAL else {"beta": 0.2, **quick}


def response_of(model, x, rng):
    """Draw a response of the kind the model has, about as it says."""
    eta = x @ np.linspace(1, -2, x.shape[1])
    kind = MODELS[model].response
    if kind == "count":
        mean = np.exp(eta / 3 + 1)
        return rng.poisson(mean) if model == "poisson" else rng.negative_binomial(2, 2 / (2 + mean))
    if kind == "classes":
        slopes = np.column_stack([np.linspace(1, -1, x.shape[1]), np.linspace(-1, 2, x.shape[1]), np.zeros(x.shape[1])])
        return np.array(["ash", "beech", "cedar"])[(x @ slopes + rng.gumbel(size=(len(x), 3))).argmax(1)]
    if kind == "positive":
        return np.exp(eta / 3) * rng.gamma(2, 0.5, len(x))
    eta = eta + rng.normal(size=len(x))
    return {"none": None, "binary": np.where(eta > 0, "yes", "no"), "real": eta}[kind]


def cells_of(model, rng):
    """Draw rows of the kind the model describes; covariates, if it describes a response."""
    if model == "exponential":
        return rng.exponential([1.0, 2.0, 0.5], (ROWS, COLUMNS))
    if model == "categorical":
        return rng.choice(3, (ROWS, COLUMNS), p=[0.5, 0.3, 0.2])
    if model == "multinomial":
        return rng.multinomial(12, [0.5, 0.3, 0.2], ROWS)
    x = rng.normal(0.5, 1, (ROWS, COLUMNS))
    return x + 5 * rng.integers(0, 2, (ROWS, 1)) if model == "gaussian-mixture" else x


@functools.cache
def problem(model):
    rng = np.random.default_rng(0)
    x = cells_of(model, rng)
    return x, response_of(model, x, rng)


@functools.cache
def result(method, model, seed=0):
    return bc.summarize(*problem(model), model=model, method=method, size=SIZE, seed=seed, **settings_of(method))


def assert_sound(coreset, x, y, size):
    """Assert what holds of every coreset of every table."""
    moved = coreset.method in MOVING
    x = np.asarray(x)
    assert len(coreset) <= size
    assert len(coreset.indices) == len(coreset.weights) == len(coreset.X)
    assert np.issubdtype(coreset.indices.dtype, np.integer)
    assert len(set(coreset.indices.tolist())) == len(coreset)
    assert np.all((coreset.indices >= 0) & (coreset.indices < len(x)))
    assert np.all(coreset.weights > 0)
    assert np.isfinite(coreset.weights).all()
    assert moved or np.array_equal(coreset.X, x[coreset.indices])
    assert coreset.X.shape == (len(coreset), x.shape[1])
    assert np.isfinite(coreset.X).all()
    if y is None:
        assert coreset.y is None
    else:
        shifted = moved and coreset.model.response == "real"
        assert shifted or np.array_equal(coreset.y, np.asarray(y)[coreset.indices])
        assert coreset.y.dtype == np.asarray(y).dtype
    assert coreset.scores.shape == (len(x),)
    assert np.isfinite(coreset.scores).all()
    assert np.all(coreset.scores >= 0)
    assert 0 <= coreset.contamination <= 1
    # A construction may stop early, when nothing is left to gain.
    iterations, rows = coreset.path.weights.shape
    assert iterations <= size
    assert rows == len(coreset.path.indices)
    assert np.all(coreset.path.weights >= 0)
    if len(coreset) < min(size, KEPT):
        return  # Posteriors are compiled for every number of rows; a few numbers are enough.
    posterior = coreset.posterior(10)
    assert posterior.draws.shape == (10, coreset.model.parameter_count(x.shape[1]))
    assert np.isfinite(posterior.draws).all()
    assert posterior.names == coreset.parameter_names
    assert len(posterior.names) == posterior.draws.shape[1]


# Whose programs take long to compile: with these methods at every change, with the others in the slow suite.
HEAVY = {
    **{model: {"pursuit"} for model in ("softmax", "poisson", "gaussian", "exponential")},
    # One coreset of the first and the third at every change, and no more.
    **{model: set() for model in ("gamma", "gaussian-density", "categorical", "multinomial")},
    **{model: set() for model in ("student-t", "gaussian-mixture", "negative-binomial", "noisy-logistic")},
}
# Tables of any numbers are compiled for once more: of these, in the slow suite.
HEAVIEST = set(HEAVY) - {"poisson"}
# And with methods that are seldom chosen.
SELDOM = set(METHODS) - {"pursuit", "beta-cores", "uniform", "sparse-vi"}


ONCE = {("pursuit", model) for model in ("gamma", "categorical")}


def pair(method, model, heaviest=frozenset(), seldom=frozenset(), also=frozenset()):
    """Return a construction and a model, marked slow if the model is heavy and the construction not chosen for it."""
    quick = method in HEAVY.get(model, METHODS) and model not in heaviest and method not in seldom
    quick = quick or (method, model) in also
    return pytest.param(method, model, marks=[] if quick else [pytest.mark.slow])


PAIRS = [(method, model) for method in METHODS for model in MODELS if method not in MOVING or MODELS[model].movable]
# That coresets are sound, of all methods; the rest, of those that are chosen often.
RARE = SELDOM | {"sparse-vi"}
every = pytest.mark.parametrize(("method", "model"), [pair(*names, seldom=RARE) for names in PAIRS])


@pytest.mark.parametrize("model", ["categorical", "multinomial", "exponential"])
def test_points_are_not_moved_where_cells_are_of_a_kind(model):
    with pytest.raises(ValueError, match=rf"method: 'psvi' .* '{model}' .* choose 'pursuit'"):
        bc.summarize(*problem(model), model=model, method="psvi", size=SIZE)


@pytest.mark.parametrize(("method", "model"), [pair(*names, also=ONCE) for names in PAIRS])
def test_coreset_is_sound(method, model):
    assert_sound(result(method, model), *problem(model), SIZE)
    assert len(result(method, model)) >= 1


@every
def test_same_seed_same_coreset_and_another_seed_another(method, model):
    again = bc.summarize(*problem(model), model=model, method=method, size=SIZE, seed=0, **settings_of(method))
    one, other = result(method, model), result(method, model, seed=1)
    assert one.indices.tolist() == again.indices.tolist()
    assert one.weights.tolist() == again.weights.tolist()
    assert one.scores.tolist() == again.scores.tolist()
    assert one.indices.tolist() != other.indices.tolist()


@every
def test_coreset_comes_back_from_disk(method, model, tmp_path):
    coreset = result(method, model)
    loaded = bc.load(coreset.save(tmp_path / "out"))
    for name in ("indices", "weights", "X", "y", "scores"):
        assert np.array_equal(getattr(loaded, name), getattr(coreset, name)), name
    assert np.array_equal(loaded.path.weights, coreset.path.weights)
    assert (loaded.method, loaded.beta, loaded.contamination) == (coreset.method, coreset.beta, coreset.contamination)
    assert loaded.info == coreset.info
    assert np.array_equal(loaded.posterior(10).draws, coreset.posterior(10).draws)


@every
def test_scores_do_not_depend_on_the_construction(method, model):
    found, plain = result(method, model), result("uniform", model)
    assert found.info.settings["score_beta"] == plain.info.settings["score_beta"]
    # The guard may trust some rows a little less, which moves the mode by as much.
    rtol = 1e-3 if found.covariate_scores is None else 0.1
    np.testing.assert_allclose(found.scores, plain.scores, rtol=rtol, atol=1e-3)


@every
def test_clean_rows_score_one_on_average(method, model):
    scores = result(method, model).scores.astype(np.float64)
    assert scores.mean() == pytest.approx(1, abs=4 * scores.std() / np.sqrt(ROWS) + 0.02)
    assert result(method, model).contamination < 0.1


# Small tables of any numbers. One shape, so that all of them share their compilations.
FEW, WIDE, KEPT = 8, 2, 3
TINY = {"draws": 4, "steps": 3, "batch_select": 5, "batch_optimise": 3}

cells = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e3, 1e3, width=32),
    st.sampled_from([1e-30, 1e-8, -1e6, 1e12, 1e30, -1e30, 1e300]),
)
dtypes = st.sampled_from([np.float64, np.float32, np.int64, np.int8, np.bool_])


@st.composite
def tables(draw):
    dtype = draw(dtypes)
    elements = {np.int64: st.integers(-(2**40), 2**40), np.int8: st.integers(-128, 127), np.bool_: st.booleans()}
    table = draw(arrays(np.float64, (FEW, WIDE), elements=elements.get(dtype, cells)))
    if dtype is np.float32:
        table = np.clip(table, -3e38, 3e38)
    if draw(st.booleans()):
        table[FEW // 2 :] = table[: FEW - FEW // 2]
    return table.astype(dtype)


def as_cells(model, x):
    """Return a table of any numbers as one of the kind that the model describes."""
    sizes = np.minimum(np.abs(x.astype(np.float64)), 1e12)
    if model == "exponential":
        return np.maximum(sizes, 1e-12)
    if model == "multinomial":
        return np.floor(np.minimum(sizes, 1e6))
    if model == "categorical":
        # Always three codes, or every number of them would be a program of its own.
        return np.vstack([np.repeat([[0], [1], [2]], WIDE, axis=1), np.floor(sizes[3:]) % 3])
    return x


def small(model, method, x, y, size=KEPT):
    """Summarise a small table; the only complaints allowed are those that say what is odd about it."""
    given = {name: value for name, value in TINY.items() if name in METHODS[method].check({})}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        coreset = bc.summarize(x, y, model=model, method=method, size=size, **given)
    allowed = ("No row was selected", "No row passes the screen", "did not converge", "Another mode explains")
    assert all(any(a in str(w.message) for a in allowed) for w in caught), [str(w.message) for w in caught]
    return coreset


@pytest.mark.parametrize(
    ("method", "model"),
    # SparseVI is β-Cores at β = 0: one model is enough to compile for, the one whose likelihood falls fastest.
    [
        pair(method, model, HEAVIEST, set(METHODS) - {"pursuit"})
        for method, model in PAIRS
        if method != "sparse-vi" or model == "linear"
    ],
)
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],  # shrinking would compile for minutes
)
@given(x=tables(), signs=arrays(bool, FEW), numbers=arrays(np.float64, FEW, elements=cells))
def test_any_small_table_gives_a_sound_coreset(method, model, x, signs, numbers):
    kind = MODELS[model].response
    sizes = np.maximum(np.minimum(np.abs(numbers), 1e12), 1e-12)
    of_kind = {
        "none": None,
        "binary": signs,
        "real": numbers,
        "count": np.floor(sizes),
        "positive": sizes,
        # Always three labels, or every number of them would be a program of its own.
        "classes": np.append([0, 1, 2], (np.floor(sizes[3:]) % 3).astype(int)),
    }
    x, y = as_cells(model, x), of_kind[kind]
    as_read = x.astype(np.float64)
    assume(np.all(as_read.min(0) < as_read.max(0)))
    assume(kind != "binary" or (signs.any() and not signs.all()))
    assert_sound(small(model, method, x, y), as_read, y, KEPT)


@pytest.mark.parametrize(
    ("method", "model", "y"),
    [
        ("beta-cores", "logistic", np.array([0, 1])),
        ("uniform", "logistic", np.array(["a", "b"])),
        ("uniform", "gaussian-mean", None),
        ("uniform", "linear", np.array([0.5, 2.0])),
        ("uniform", "softmax", np.array(["a", "b"])),
        ("uniform", "poisson", np.array([0, 7])),
    ],
)
def test_two_rows_are_a_table(method, model, y):
    x = np.array([[0.0, 1.0], [1.0, -1.0]])
    assert_sound(small(model, method, x, y, size=2), x, y, 2)


def test_equal_rows_are_worth_the_same():
    """Every row three times: at most one of each three is needed, and scores are equal within the three."""
    x = np.repeat(np.random.default_rng(0).normal(size=(ROWS // 3, COLUMNS)), 3, axis=0)
    coreset = bc.summarize(x, size=SIZE, **PUBLISHED)
    scores = coreset.scores.reshape(-1, 3)
    assert np.array_equal(scores, np.repeat(scores[:, :1], 3, axis=1))
    assert_sound(coreset, x, None, SIZE)
