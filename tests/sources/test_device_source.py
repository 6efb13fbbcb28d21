"""Rows on an accelerator, played by the processor: the same rows as from memory, in blocks of any length.

Blocks are larger there, so that sums are added up in another order: rows and their number must agree, weights nearly.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scale_tables import QUICK, logistic_table

import betacores as bc
from betacores.precision import single_precision
from betacores.sources import ArraySource, collect, reduce
from betacores.sources.choice import choose
from betacores.sources.device import DeviceSource, extremes

ROWS = 9_001
X, Y = logistic_table(ROWS)
SIGNS = (2 * Y - 1).astype(np.float32)
NAMES = ["x0", "x1", "x2"]


@pytest.fixture(params=[1 << 10, 1 << 12, 1 << 20], ids=["many blocks", "few blocks", "one block"])
def block_rows(request, monkeypatch):
    monkeypatch.setattr("betacores.sources.device._block_rows", lambda x: request.param)
    return request.param


@pytest.fixture
def accelerated(monkeypatch):
    monkeypatch.setattr("betacores.reading.on_accelerator", lambda data: isinstance(data, jnp.ndarray))


def device_source(rows=ROWS, trust=None):
    return DeviceSource(jnp.asarray(X[:rows]), jnp.asarray(SIGNS[:rows]), NAMES, trust=trust)


@pytest.mark.parametrize("rows", [1024, 1025, 2047, 4096, 9001])
def test_blocks_hold_every_row_once_and_in_order(block_rows, rows):
    """The last block is cut out farther back, and its own rows still come first."""
    trust = np.linspace(0, 1, rows, dtype=np.float32)
    blocks = list(device_source(rows, jnp.asarray(trust)).blocks())
    assert [block.start for block in blocks] == list(range(0, rows, min(block_rows, rows)))
    for name, expected in {"x": X, "y": SIGNS}.items():
        held = np.concatenate([np.asarray(getattr(b.rows, name))[: b.length] for b in blocks])
        assert np.array_equal(held, expected[:rows])
    assert np.array_equal(np.concatenate([np.asarray(b.trust)[: b.length] for b in blocks]), trust)
    assert np.array_equal(np.concatenate([np.asarray(b.weights)[: b.length] for b in blocks]), trust)
    assert all(np.asarray(b.weights)[b.length :].sum() == 0 for b in blocks)


def sums(rows, weights):
    return weights @ rows.x, weights @ (rows.x[:, 0] * rows.y)


def first_column(rows):
    return rows.x[:, 0] * rows.y


def far_out(rows, weights, trust, start, length):
    there = jnp.arange(rows.x.shape[0]) < length
    return (jnp.where(there, rows.x[:, 0] ** 2, -jnp.inf),), jnp.stack([weights.sum()])


def test_passes_give_what_memory_gives(block_rows):
    here, there = ArraySource(X, SIGNS), device_source()
    with single_precision():
        for mine, theirs in zip(reduce(there, sums), reduce(here, sums), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-3)
        assert np.array_equal(np.asarray(collect(there, first_column)), collect(here, first_column))
        asked = np.array([0, 1023, 1024, 5000, 9000])
        mine, theirs = (choose(source, far_out, (30,), asked) for source in (there, here))
    assert np.array_equal(mine.best[0].ids, np.sort(np.argsort(-(X[:, 0] ** 2), kind="stable")[:30]))
    for one, other in ((mine.best[0], theirs.best[0]), (mine.asked, theirs.asked)):
        assert np.array_equal(one.ids, other.ids)
        assert np.array_equal(one.rows.x, other.rows.x)
        assert np.array_equal(one.rows.y, other.rows.y)
    assert mine.sums == theirs.sums == [ROWS]


@pytest.mark.parametrize("rows", [5, 1023, 1024, 1025, 9001])
def test_extremes(rows):
    low, high = extremes(jnp.asarray(X[:rows]))
    assert np.array_equal(low, X[:rows].min(0))
    assert np.array_equal(high, X[:rows].max(0))
    with_hole = X[:rows].copy()
    with_hole[rows // 2, 1] = np.nan
    assert np.isnan(extremes(jnp.asarray(with_hole))[0]).tolist() == [False, True, False]


@pytest.mark.parametrize(
    "settings",
    [pytest.param(QUICK, marks=pytest.mark.slow), {**QUICK, "guard": "auto"}],
    ids=["no guard", "guard"],
)
def test_same_rows_as_from_memory(accelerated, monkeypatch, settings):
    monkeypatch.setattr("betacores.sources.device._block_rows", lambda x: 1 << 12)
    ours = bc.summarize(jnp.asarray(X), jnp.asarray(Y), **settings)
    memory = bc.summarize(X, Y, **settings)
    assert np.array_equal(ours.indices, memory.indices)
    assert np.array_equal(ours.X, memory.X)
    assert np.array_equal(ours.y, memory.y)
    np.testing.assert_allclose(ours.weights, memory.weights, rtol=2e-2)
    np.testing.assert_allclose(ours.scores, memory.scores, atol=1e-4)
    assert ours.contamination == pytest.approx(memory.contamination, abs=1e-4)


@pytest.mark.slow
def test_linear_and_no_response(accelerated, monkeypatch):
    monkeypatch.setattr("betacores.sources.device._block_rows", lambda x: 1 << 12)
    rng = np.random.default_rng(0)
    y = (X @ [1.0, 2.0, 0.0] + rng.normal(size=ROWS)).astype(np.float32)
    for response in (y, None):
        ours = bc.summarize(jnp.asarray(X), None if response is None else jnp.asarray(y), **QUICK)
        memory = bc.summarize(X, response, **QUICK)
        assert np.array_equal(ours.indices, memory.indices)
        assert np.array_equal(ours.y, memory.y)
        np.testing.assert_allclose(ours.weights, memory.weights, rtol=2e-2)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.where(np.arange(ROWS)[:, None] == 7000, np.nan, X), Y, r"row 7000, column 'x0' is nan"),
        (np.where(np.arange(ROWS)[:, None] == 9000, -np.inf, X), Y, r"row 9000, column 'x0' is -inf"),
        (X, np.where(np.arange(ROWS) == 8000, np.inf, Y), "y: row 8000 is inf"),
        (X, np.where(np.arange(ROWS) == 8000, np.nan, Y), "y: row 8000 is nan"),
        (np.column_stack([X, np.ones(ROWS)]), Y, "constant.*'x3'"),
        (X, Y[:-1], "got shapes"),
        (X[:, 0], Y, "got shapes"),
        (X[:1], Y[:1], "at least two rows"),
        (X, np.ones(ROWS), "y: "),
    ],
)
def test_what_is_wrong_is_said(accelerated, x, y, message):
    with pytest.raises(ValueError, match=message):
        bc.summarize(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), model="logistic", **QUICK)
