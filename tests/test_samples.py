"""Samples of rows, one within the other, and one Newton step from the larger to all rows."""

import jax
import numpy as np
import pytest

import betacores as bc
from betacores.models import LogisticRegression
from betacores.precision import single_precision
from betacores.samples import SAMPLE_ROWS, enough_for_one_step, large_sample, last_step_tolerance, small_sample
from betacores.sources import ArraySource


def test_short_tables_are_their_own_samples():
    """All rows, in order, twice."""
    ids = large_sample(jax.random.key(0), 300, 4)
    assert np.array_equal(ids, np.arange(300))
    assert np.array_equal(small_sample(jax.random.key(0), 300), np.arange(300))


@pytest.mark.parametrize(("rows", "columns"), [(10**6, 10), (10**7, 10), (10**9, 3), (10**7, 5000)])
def test_sizes(rows, columns):
    """Enough rows for one step where memory allows, and never fewer than are searched in."""
    ids = large_sample(jax.random.key(1), rows, columns)
    assert len(np.unique(ids)) == len(ids) >= SAMPLE_ROWS
    assert (np.diff(ids) > 0).all()
    assert enough_for_one_step(rows, len(ids)) == (columns < 5000)
    few = small_sample(jax.random.key(1), len(ids))
    assert len(few) == SAMPLE_ROWS
    assert few[-1] < len(ids)


def test_every_row_is_as_likely():
    """Rows of the sample are spread evenly: counts in tenths are binomial."""
    rows = 200_000
    counts = sum(
        np.bincount(large_sample(jax.random.key(k), rows, 3) * 10 // rows, minlength=10).astype(float) for k in range(5)
    )
    expected = counts.sum() / 10
    assert np.abs(counts - expected).max() < 5 * np.sqrt(expected)


def test_one_pass_for_tuning_and_one_for_the_mode():
    """A table much longer than the samples: and yet the mode is the one that many passes lead to."""
    random = np.random.default_rng(0)
    x = random.standard_normal((150_000, 3)).astype(np.float32)
    y = random.random(len(x)) < 1 / (1 + np.exp(-x @ np.array([2.0, -1.0, 0.5])))
    x[:15_000] *= -1
    seen = {}
    coreset = bc.summarize(x, y, size=20, guard=None, on_pass=lambda stage, *_: seen.setdefault(stage))
    assert coreset.info.passes["tuning"] == coreset.info.passes["mode"] == 1
    from betacores.grid import grid_modes, priors_at

    source = ArraySource(x, np.where(y, 1.0, -1.0).astype(np.float32))
    with single_precision():
        first = grid_modes(LogisticRegression(), source, np.zeros((1, 4)), np.array([coreset.beta]))
        once = grid_modes(
            LogisticRegression(), source, first.thetas + 0.005, np.array([coreset.beta]),
            tolerance=last_step_tolerance(len(x)),
        )  # fmt: skip
        precision = -(first.likelihood.hessian + priors_at(LogisticRegression(), first.looked_at).hessian)[0]
    off = (once.thetas - first.thetas)[0]
    assert np.sqrt(off @ precision @ off) < 0.01


def test_a_small_sample_that_would_be_nearly_the_large_one_is_the_large_one():
    key = jax.random.key(0)
    for rows, same in ((100_000, True), (150_000, True), (200_000, False)):
        large = large_sample(key, rows, 10)
        few = small_sample(key, len(large))
        assert (len(few) == len(large)) is same
        assert len(few) >= SAMPLE_ROWS
