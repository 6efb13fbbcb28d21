"""Rows in memory: canonical blocks, rows by number, and the two passes over all rows."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.models import LogisticRegression
from betacores.pilot import pilot
from betacores.scores import beliefs_over, row_scores
from betacores.sources import ArraySource, collect, reduce

ROWS = 25
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 2)).astype(np.float32)
Y = np.where(X[:, 0] + rng.normal(size=ROWS) > 0, 1.0, -1.0).astype(np.float32)


@pytest.fixture(params=[1, 7, 24, 25, 26, 1000])
def block_rows(request, monkeypatch):
    """Blocks of many lengths: single rows, a padded last block, exactly all, more than all."""
    monkeypatch.setattr(importlib.import_module("betacores.sources.arrays"), "BLOCK_ROWS", request.param)
    return request.param


@pytest.mark.parametrize("y", [None, Y], ids=["no response", "response"])
def test_blocks_hold_every_row_once_and_in_order(block_rows, y):
    blocks = list(ArraySource(X, y).blocks())
    kept = [np.asarray(b.weights) > 0 for b in blocks]
    assert np.array_equal(np.concatenate([b.rows.x[k] for b, k in zip(blocks, kept, strict=True)]), X)
    if y is None:
        assert all(b.rows.y is None for b in blocks)
    else:
        assert np.array_equal(np.concatenate([b.rows.y[k] for b, k in zip(blocks, kept, strict=True)]), Y)
    assert {b.rows.x.shape[0] for b in blocks} == {min(block_rows, ROWS)}
    assert {len(b.weights) for b in blocks} == {min(block_rows, ROWS)}


def test_padding_is_finite_and_marked_absent(block_rows):
    for block in ArraySource(X, Y).blocks():
        assert set(np.unique(block.weights)) <= {0.0, 1.0}
        assert np.isfinite(block.rows.x).all()
        assert np.isfinite(block.rows.y).all()


def test_reduce_is_the_sum_over_rows_in_double_precision(block_rows):
    def sums(rows, present):
        return present @ rows.x, present.sum()

    total, count = reduce(ArraySource(X, Y), sums)
    np.testing.assert_allclose(total, X.astype(np.float64).sum(0), rtol=1e-5)
    assert count == ROWS
    assert total.dtype == np.float64


def test_reduce_adds_blocks_up_in_double_precision(monkeypatch):
    """Small numbers added one by one to a large one would all be lost in single precision."""
    monkeypatch.setattr(importlib.import_module("betacores.sources.arrays"), "BLOCK_ROWS", 1)
    small = np.full((2000, 1), 1e-5, np.float32)
    small[0] = 1e3
    total = reduce(ArraySource(small), lambda rows, present: present @ rows.x)
    np.testing.assert_allclose(total[0], 1e3 + 1999e-5, rtol=1e-9)


def test_collect_returns_one_number_a_row_in_order(block_rows):
    found = collect(ArraySource(X, Y), lambda rows: jnp.asarray(rows.x[:, 0]) * 2 + jnp.asarray(rows.y))
    np.testing.assert_allclose(found, X[:, 0] * 2 + Y, rtol=1e-6)


def test_take_returns_rows_by_number():
    ids = np.array([3, 0, 24, 3])
    rows = ArraySource(X, Y).take(ids)
    assert np.array_equal(rows.x, X[ids])
    assert np.array_equal(rows.y, Y[ids])
    assert ArraySource(X).take(ids).y is None


def test_device_rows_are_all_rows():
    rows = ArraySource(X, Y).on_device
    assert np.array_equal(rows.x, X)
    assert np.array_equal(rows.y, Y)


def test_columns_get_names():
    assert ArraySource(X).columns == ["x0", "x1"]
    assert ArraySource(X, columns=["a", "b"]).columns == ["a", "b"]


def test_block_length_changes_neither_mode_nor_scores(monkeypatch):
    """Scores and contamination of rows read in padded blocks are those of rows read at once."""

    def results():
        source, model = ArraySource(X, Y), LogisticRegression()
        found = pilot(model, source, 0.5, jax.random.key(0))
        scores = row_scores(model, source, found.theta, 0.5)
        return found.theta, scores, beliefs_over(scores, None).contamination

    whole = results()
    monkeypatch.setattr(importlib.import_module("betacores.sources.arrays"), "BLOCK_ROWS", 7)
    for a, b in zip(results(), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
