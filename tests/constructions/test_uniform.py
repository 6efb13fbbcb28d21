"""Uniform subsampling: nested subsets of equal weights, whose sums are unbiased."""

import jax
import numpy as np
import pytest

from betacores.constructions.uniform import uniform

ROWS = 60


@pytest.mark.parametrize("size", [1, 7, ROWS])
def test_subsets_are_nested_and_every_row_weighs_the_same(size):
    path = uniform(ROWS, jax.random.key(1), size=size)
    assert path.weights.shape == (size, size)
    assert len(set(path.indices.tolist())) == size
    assert np.all((path.indices >= 0) & (path.indices < ROWS))
    for m in range(1, size + 1):
        indices, weights = path.at(m)
        assert indices.tolist() == path.indices[:m].tolist()
        np.testing.assert_allclose(weights, ROWS / m, rtol=1e-12)


def test_all_rows_weigh_one():
    indices, weights = uniform(ROWS, jax.random.key(2), size=ROWS).at(ROWS)
    assert sorted(indices.tolist()) == list(range(ROWS))
    assert np.array_equal(weights, np.ones(ROWS))


def test_weighted_sums_are_unbiased_for_every_subset_size():
    """Mean over seeds of `Σ w f`, for a function that a preference for early, late or large rows would betray."""
    rng = np.random.default_rng(0)
    values = np.stack(
        [np.arange(ROWS), rng.exponential(size=ROWS), (np.arange(ROWS) == 0) * 1.0, rng.normal(size=ROWS)]
    )
    size, seeds = 12, 400
    sums = np.empty((seeds, size, len(values)))
    for seed in range(seeds):
        path = uniform(ROWS, jax.random.key(seed), size=size)
        sums[seed] = path.weights @ values[:, path.indices].T
    error = sums.std(axis=0) / np.sqrt(seeds)
    away = np.abs(sums.mean(axis=0) - values.sum(axis=1))
    # Sizes share their rows and so their luck: 4.5 errors for each of the 48 numbers.
    rare = 2  # the indicator of one row is seldom hit at all by small subsets
    often = [0, 1, 3]
    assert np.all(away[:, often] < 4.5 * error[:, often])
    assert away[-1, rare] < 4.5 * error[-1, rare]


def test_another_key_gives_another_subset():
    one, two = (uniform(ROWS, jax.random.key(k), size=10).indices.tolist() for k in (3, 4))
    assert one != two
