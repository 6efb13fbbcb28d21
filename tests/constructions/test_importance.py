"""Importance sampling: rows drawn in proportion to their length, whose weighted sums are unbiased."""

import jax
import numpy as np
import pytest

import betacores as bc
from betacores.constructions.importance import importance

ROWS, SIZE, SEEDS = 40, 16, 1000
LENGTHS = np.random.default_rng(0).lognormal(0, 1, ROWS)


def weights_of(path, rows=ROWS):
    """Weights of all rows at every size."""
    weights = np.zeros((len(path.weights), rows))
    weights[:, path.indices] = path.weights
    return weights


def counts_of(path, lengths):
    """How often each row was drawn for each size, by the weights."""
    weights, sizes = weights_of(path, len(lengths)), np.arange(1, len(path.weights) + 1)[:, None]
    return weights * lengths * sizes / lengths.sum()


@pytest.fixture(scope="module")
def paths():
    return [importance(LENGTHS, jax.random.key(seed), size=SIZE) for seed in range(SEEDS)]


def test_weights_are_counts_of_nested_draws(paths):
    for path in paths[:50]:
        assert path.weights.shape == (SIZE, len(path.indices))
        assert len(set(path.indices.tolist())) == len(path.indices) <= SIZE
        counts = counts_of(path, LENGTHS)
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-4)
        np.testing.assert_allclose(counts.sum(axis=1), np.arange(1, SIZE + 1), rtol=1e-5)
        # One draw more for every size: a single count grows, by one.
        grown = np.round(np.diff(counts, axis=0, prepend=0))
        assert np.array_equal(np.sort(grown, axis=1)[:, -1], np.ones(SIZE))
        assert np.array_equal(np.abs(grown).sum(axis=1), np.ones(SIZE))


def test_every_weight_is_that_of_the_definition(paths):
    for path in paths[:50]:
        for m in (1, 5, SIZE):
            indices, weights = path.at(m)
            times = weights * m * LENGTHS[indices] / LENGTHS.sum()
            assert len(indices) <= m
            np.testing.assert_allclose(weights, np.round(times) / m * LENGTHS.sum() / LENGTHS[indices], rtol=1e-5)


def test_rows_are_drawn_in_proportion_to_their_length(paths):
    shares = np.array([counts_of(path, LENGTHS)[-1] for path in paths]) / SIZE
    expected = LENGTHS / LENGTHS.sum()
    error = np.sqrt(expected * (1 - expected) / (SEEDS * SIZE))
    assert np.all(np.abs(shares.mean(axis=0) - expected) < 4 * error)
    # A uniform draw would be seen.
    assert np.abs(1 / ROWS - expected).max() > 20 * error.max()


def test_draws_are_independent(paths):
    """The variance of the estimate is that of independent draws, falling with the size."""
    values = np.random.default_rng(1).normal(1, 1, ROWS)
    sums = np.array([weights_of(path) @ values for path in paths])
    chance = LENGTHS / LENGTHS.sum()
    one = (chance * (values / chance) ** 2).sum() - values.sum() ** 2
    for m in (2, SIZE):
        # The estimate's fourth moment is not far from a Gaussian's: two parts in √1000 and a margin.
        assert sums[:, m - 1].var() == pytest.approx(one / m, rel=0.3)


def test_weighted_sums_are_unbiased_for_every_size(paths):
    """For vectors of these lengths, and for functions that a wrong weighting would betray."""
    rng = np.random.default_rng(2)
    vectors = rng.normal([1.0, 0, 0, 0], 1, (ROWS, 4))
    vectors *= (LENGTHS / np.linalg.norm(vectors, axis=1))[:, None]
    values = np.column_stack([vectors, np.ones(ROWS), LENGTHS**2])
    sums = np.array([weights_of(path) @ values for path in paths])
    error = sums.std(axis=0) / np.sqrt(SEEDS)
    away = np.abs(sums.mean(axis=0) - values.sum(axis=0))
    # Sizes share their draws and so their luck. The count of all rows is far too skewed at small sizes.
    often = [0, 1, 2, 3, 5]
    assert np.all(away[:, often] < 4 * error[:, often])
    assert away[-1, 4] < 4 * error[-1, 4]
    # The test has teeth: weights N/m for the same rows would be found out.
    plain = np.array([counts_of(path, LENGTHS)[-1] for path in paths]) * ROWS / SIZE @ values
    assert np.abs(plain.mean(axis=0) - values.sum(axis=0))[5] > 10 * plain.std(axis=0)[5] / np.sqrt(SEEDS)


def test_rows_of_no_length_are_never_drawn():
    lengths = LENGTHS.copy()
    lengths[::2] = 0
    for seed in range(100):
        path = importance(lengths, jax.random.key(seed), size=SIZE)
        assert np.all(path.indices % 2 == 1)
        assert np.isfinite(path.weights).all()
        np.testing.assert_allclose(counts_of(path, lengths).sum(axis=1), np.arange(1, SIZE + 1), rtol=1e-5)


def test_equal_lengths_give_equal_weights_to_equal_counts():
    path = importance(np.full(ROWS, 3.7), jax.random.key(0), size=SIZE)
    for m in range(1, SIZE + 1):
        _, weights = path.at(m)
        times = weights * m / ROWS
        np.testing.assert_allclose(times, np.round(times), rtol=1e-5)
        assert times.sum() == pytest.approx(m, rel=1e-5)


def test_the_unit_of_length_does_not_matter():
    one, two = (importance(scale * LENGTHS, jax.random.key(3), size=SIZE) for scale in (1.0, 1024.0))
    assert one.indices.tolist() == two.indices.tolist()
    np.testing.assert_allclose(one.weights, two.weights, rtol=1e-5)


def test_a_single_row_of_any_length_is_drawn_always_and_stands_for_itself():
    lengths = np.zeros(ROWS)
    lengths[7] = 0.3
    path = importance(lengths, jax.random.key(0), size=SIZE)
    assert path.indices.tolist() == [7]
    np.testing.assert_allclose(path.weights, 1.0, rtol=1e-6)


def test_another_key_gives_other_draws():
    one, two = (importance(LENGTHS, jax.random.key(k), size=SIZE).indices.tolist() for k in (3, 4))
    assert one != two


def test_front_door_draws_longer_rows_more_often_and_keeps_the_total_about_right():
    """In the Gaussian's mean, rows far from it have the longer vectors."""
    x = np.random.default_rng(0).normal(0.5, 1, (400, 3))
    coreset = bc.summarize(x, method="importance", size=200)
    assert (coreset.method, coreset.beta) == ("importance", 0)
    assert len(coreset) <= 200
    assert np.array_equal(coreset.X, x[coreset.indices])
    assert coreset.weights.sum() == pytest.approx(400, rel=0.3)
    distance = np.linalg.norm(x - x.mean(0), axis=1)
    assert distance[coreset.indices].mean() > distance.mean() + 0.1
    # Weights fall as distances grow, at equal counts.
    near, far = distance[coreset.indices] < 1, distance[coreset.indices] > 2.5
    assert np.median(coreset.weights[near]) > 1.5 * np.median(coreset.weights[far])
