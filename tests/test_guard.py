"""The covariate guard: clean tables of every kind keep their weight, absurd rows lose it, nothing crashes."""

import json

import jax
import numpy as np
import pytest

from betacores.guard import Guard, explain, fit_guard, trust

ROWS = 600
compiled_trust = jax.jit(trust)


def trust_of(guard, x):
    """Trust as a NumPy array, through the compiled function and float32."""
    with np.errstate(over="ignore"):
        return np.asarray(compiled_trust(guard, np.asarray(x).astype(np.float32)))


def one_hot(rng, shares):
    return np.eye(len(shares))[rng.choice(len(shares), ROWS, p=shares)]


def clean_table(name, seed):
    """Clean tables that a careless guard would punish."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=(ROWS, 8))
    tables = {
        "gaussian": lambda: normal @ rng.normal(size=(8, 8)),
        "lognormal": lambda: np.exp(normal),
        "two clusters": lambda: normal + 6 * (rng.random((ROWS, 1)) < 0.5),
        "heavy columns": lambda: rng.standard_t(2, size=(ROWS, 8)),
        "heavy rows": lambda: normal / np.sqrt(rng.chisquare(2, size=(ROWS, 1)) / 2),
        "one Cauchy column": lambda: np.column_stack([normal, rng.standard_cauchy(ROWS)]),
        "counts": lambda: rng.poisson(0.3, size=(ROWS, 8)).astype(float),
        "levels": lambda: one_hot(rng, [0.5, 0.3, 0.1, 0.05, 0.045, 0.005]),
        "mostly zero": lambda: np.where(rng.random((ROWS, 8)) < 0.8, 0, np.exp(normal)),
        "duplicated": lambda: np.column_stack([normal, normal]),
        "wide": lambda: rng.normal(size=(ROWS, 40)) @ rng.normal(size=(40, 40)),
    }
    return tables[name]()


def damaged_gaussian(share, seed, *, rows=ROWS, scale=5.0, same_half=True):
    """Standard normal rows, a share of which has half its cells replaced by wide noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 10))
    bad = rng.random(rows) < share
    half = np.arange(10) < 5 if same_half else rng.permuted(np.tile(np.arange(10) < 5, (rows, 1)), axis=1)
    return np.where(bad[:, None] & half, scale * rng.normal(size=x.shape), x), bad


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("gaussian", 0.99), ("lognormal", 0.97), ("two clusters", 0.97), ("heavy columns", 0.97), ("heavy rows", 0.95),
        ("one Cauchy column", 0.97), ("counts", 0.99), ("levels", 0.99), ("mostly zero", 0.95), ("duplicated", 0.97),
        ("wide", 0.97),
    ],
)  # fmt: skip
def test_clean_rows_are_trusted(name, least):
    x = clean_table(name, seed=1)
    assert trust_of(fit_guard(x), x).mean() >= least


@pytest.mark.parametrize(
    ("share", "same_half", "seed"), [(0.05, True, 0), (0.1, True, 1), (0.3, True, 2), (0.3, False, 3)]
)
def test_damaged_rows_lose_their_weight_and_others_do_not(share, same_half, seed):
    # Noise in any half of the cells also looks like rows with a scale of their own: it takes more rows to tell.
    x, bad = damaged_gaussian(share, seed, rows=ROWS if same_half else 2000, same_half=same_half)
    h = trust_of(fit_guard(x), x)
    assert h[bad].mean() <= 0.15
    assert h[~bad].mean() >= 0.95


@pytest.mark.parametrize("scale", [1e2, 1e12])
def test_absurd_rows_are_not_trusted_at_all(scale):
    x, bad = damaged_gaussian(0.05, 3, scale=scale)
    h = trust_of(fit_guard(x), x)
    assert h[bad].max() <= 0.01
    assert h[~bad].min() >= 0.9


def test_absurd_rows_the_fit_never_saw_are_not_trusted():
    x = clean_table("gaussian", 0)
    h = trust_of(fit_guard(x), x + 1e3 * (np.arange(ROWS)[:, None] < 10))
    assert h[:10].max() <= 0.01
    assert h[10:].mean() >= 0.99


def test_one_absurd_cell_among_many_columns_is_seen():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 40))
    guard = fit_guard(x)
    x[:20, 3] = 30.0
    h = trust_of(guard, x)
    assert h[:20].max() <= 0.05
    assert h[20:].mean() >= 0.99


def test_rare_level_is_trusted_and_a_cell_that_is_no_level_is_not():
    x = one_hot(np.random.default_rng(0), [0.6, 0.395, 0.005])
    guard = fit_guard((x - x.mean(axis=0)) / x.std(axis=0))
    assert np.all(np.asarray(guard.discrete) == 1)
    noise = x.copy()
    noise[:20] = np.random.default_rng(1).normal(size=(20, 3))
    h = trust_of(guard, (noise - x.mean(axis=0)) / x.std(axis=0))
    assert h[20:].min() >= 0.95
    assert h[:20].mean() <= 0.1


def test_noise_in_the_sample_does_not_hide_levels():
    rng = np.random.default_rng(0)
    x = (rng.random((ROWS, 6)) < 0.4).astype(float)
    bad = rng.random(ROWS) < 0.3
    x[bad, :3] = 5 * rng.normal(size=(bad.sum(), 3))
    h = trust_of(fit_guard(x), x)
    assert h[bad].mean() <= 0.05
    assert h[~bad].mean() >= 0.97


def test_a_code_such_as_999_is_no_level():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.integers(0, 5, ROWS), rng.normal(size=(ROWS, 3))])
    bad = rng.random(ROWS) < 0.05
    x[bad, 0] = -999
    h = trust_of(fit_guard(x), x)
    assert h[bad].mean() <= 0.1
    assert h[~bad].mean() >= 0.97


@pytest.mark.parametrize("seed", range(3))
def test_known_sound_rows_tell_damage_that_would_pass_for_a_population(seed):
    rng = np.random.default_rng(seed)
    # Twelve columns behind which there are three; damage breaks them apart and is far in none of them.
    x = rng.normal(size=(450, 3)) @ rng.normal(size=(3, 12)) + 0.5 * rng.normal(size=(450, 12))
    x /= x.std(axis=0)
    bad, sound = rng.random(450) < 0.42, np.zeros(450, bool)
    x[bad, :6] = rng.normal(1, 1, (bad.sum(), 6))
    sound[rng.choice(np.flatnonzero(~bad), 150, replace=False)] = True
    assert (trust_of(fit_guard(x), x)[bad] < 0.5).mean() < 0.2
    h = trust_of(fit_guard(x, sound=sound), x)
    assert (h[bad] < 0.5).mean() > 0.8
    assert (h[~bad] > 0.5).mean() > 0.97


@pytest.mark.parametrize("name", ["gaussian", "lognormal", "heavy rows", "counts", "levels", "mostly zero"])
def test_where_some_rows_are_known_to_be_sound_others_like_them_are(name):
    for seed in range(2):
        x = clean_table(name, seed)[:450]
        sound = np.arange(450) % 5 < 2
        assert (trust_of(fit_guard(x, sound=sound), x)[~sound] > 0.5).mean() > 0.97


def test_trust_does_not_depend_on_units_or_the_order_of_rows():
    x, _ = damaged_gaussian(0.1, 0)
    h = trust_of(fit_guard(x), x)
    units = x * np.logspace(-3, 4, 10) + np.linspace(-5, 5, 10) * np.logspace(-3, 4, 10)
    assert np.abs(trust_of(fit_guard(units), units) - h).mean() <= 0.01
    order = np.random.default_rng(0).permutation(ROWS)
    assert np.abs(trust_of(fit_guard(x[order]), x) - h).mean() <= 0.02


def test_fit_is_deterministic_and_one_compilation_serves_all_fits():
    guards = [fit_guard(damaged_gaussian(share, 0, rows=200)[0]) for share in (0.0, 0.0, 0.2)]
    assert all(np.array_equal(a, b) for a, b in zip(guards[0], guards[1], strict=True))
    traces = []
    counted = jax.jit(lambda guard, x: traces.append(1) or trust(guard, x))
    x = np.zeros((7, 10), np.float32)
    answers = [counted(guard, x) for guard in guards]
    assert len(traces) == 1
    assert all(answer.dtype == np.float32 and answer.shape == (7,) for answer in answers)


@pytest.mark.parametrize("name", ["counts", "one Cauchy column"])
def test_no_cell_makes_trust_undefined(name):
    x = clean_table(name, 0)[:200]
    guard = fit_guard(x)
    x[:8, 0] = [1e12, -1e12, 1e30, -1e30, np.inf, -np.inf, np.nan, 1e-30]
    x[8] = 1e12
    h = trust_of(guard, x)
    assert np.all((h >= 0) & (h <= 1))
    assert h[8] <= 0.01
    assert np.all(np.isfinite(trust_of(fit_guard(x), x)))


@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (5, 3), (5, 40), (60, 70)])
def test_few_rows_or_many_columns_are_no_trouble(rows, columns):
    x = np.random.default_rng(0).normal(size=(rows, columns))
    h = trust_of(fit_guard(x), x)
    assert h.shape == (rows,)
    assert h.mean() >= 0.95


def test_constant_columns():
    rng = np.random.default_rng(0)
    x = np.column_stack([np.zeros(400), np.full(400, 7.0), rng.normal(size=400)])
    guard = fit_guard(x)
    assert trust_of(guard, x).min() >= 0.95
    x[0, 0], x[1, 0] = 1.0, 1e6
    h = trust_of(guard, x)
    assert h[0] >= 0.5  # a level too rare for the sample
    assert h[1] <= 0.01


def test_explain_names_the_columns_that_give_rows_away():
    x, bad = damaged_gaussian(0.15, 0)
    x = np.column_stack([x, np.random.default_rng(0).random(ROWS) < 0.5])
    guard = fit_guard(x)
    assert isinstance(guard, Guard)
    names = [f"c{j}" for j in range(11)]
    report = explain(guard, x[trust_of(guard, x) < 0.1], names)
    assert json.loads(json.dumps(report)) == report
    assert {entry["column"] for entry in report["columns"][:5]} == set(names[:5])
    counts = [entry["rows"] for entry in report["columns"]]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] >= 0.5 * report["rows"] >= 0.4 * bad.sum()
    low, high = report["columns"][0]["typical"]
    assert -4 < low < -1.5
    assert 1.5 < high < 4
    assert report["kinds"] == {"continuous": 10, "discrete": 1}
    assert explain(guard, x[:0], names)["columns"] == []
