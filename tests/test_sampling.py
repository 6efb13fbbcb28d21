"""Random subsets: distinct, in range, reproducible, and uniform by chi-square tests with fixed seeds."""

import functools
import math

import jax
import numpy as np
import pytest
from scipy import stats

from betacores.sampling import LARGEST, random_subset, sample_by, sample_of

KEYS = 20_000


@functools.cache
def many(population, size):
    """Subsets for many keys, one a row."""
    keys = jax.random.split(jax.random.key(population), KEYS)
    return np.asarray(jax.vmap(lambda key: random_subset(key, population, size))(keys))


def chi_square_p_value(observed, expected):
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1)


# Primes, squares and a neighbour of one; populations small enough to shuffle, and larger ones for the network.
SIZES = {2: 1, 3: 2, 5: 4, 9: 8, 16: 8, 1031: 40}


@pytest.mark.parametrize("population", SIZES)
def test_numbers_are_distinct_and_in_range_for_every_key(population):
    found = np.sort(many(population, SIZES[population]), axis=1)
    assert found.min() == 0
    assert found.max() == population - 1
    assert (np.diff(found, axis=1) > 0).all()


@pytest.mark.parametrize("population", SIZES)
def test_every_position_is_uniform(population):
    p_values = [
        chi_square_p_value(np.bincount(column, minlength=population), KEYS / population)
        for column in many(population, SIZES[population]).T
    ]
    # With six populations in two tests, a false alarm once in some eighty choices of the seeds.
    assert min(p_values) > 0.001 / len(p_values)


@pytest.mark.parametrize("population", [n for n in SIZES if n > 2])
def test_every_pair_of_positions_is_uniform(population):
    """Ordered pairs, positions a row or a column of the network's rectangle apart among them."""
    found = many(population, SIZES[population])
    last = found.shape[1] - 1
    width = -(-population // (math.isqrt(population - 1) + 1))
    # Numbers fall into at most 30 bins, so that every cell of the table of pairs expects many.
    bins = min(population, 30)
    sizes = np.bincount(np.arange(population) * bins // population)
    expected = KEYS * (np.outer(sizes, sizes) - np.diag(sizes)) / (population * (population - 1))
    p_values = []
    for first, second in {(0, 1), (0, min(width, last)), (last - 1, last)}:
        cell = (found[:, first] * bins // population) * bins + found[:, second] * bins // population
        observed = np.bincount(cell, minlength=bins**2).reshape(bins, bins)
        possible = expected > 0
        assert observed[~possible].sum() == 0
        p_values.append(chi_square_p_value(observed[possible], expected[possible]))
    assert min(p_values) > 0.001 / len(p_values)


@pytest.mark.parametrize("population", [65_537, 2**31 - 1])
def test_large_populations_do_not_overflow(population):
    size = min(population - 1, 2000)
    found = np.asarray(random_subset(jax.random.key(1), population, size)).astype(np.int64)
    assert len(np.unique(found)) == size
    assert found.min() >= 0
    assert found.max() < population
    assert stats.kstest(found / population, "uniform").pvalue > 1e-3


def test_too_large_populations_are_refused():
    with pytest.raises(ValueError, match=f"{LARGEST}.*{LARGEST + 1}"):
        random_subset(jax.random.key(0), LARGEST + 1, 5)


@pytest.mark.parametrize(("population", "size"), [(1, 5), (3, 7), (100, 100)])
def test_asking_for_everything_gives_a_permutation(population, size):
    found = np.asarray(random_subset(jax.random.key(3), population, size))
    np.testing.assert_array_equal(np.sort(found), np.arange(population))


def test_a_key_decides_the_subset():
    subset = jax.jit(random_subset, static_argnums=(1, 2))
    one, again, other = (np.asarray(subset(jax.random.key(k), 5000, 200)) for k in (7, 7, 8))
    np.testing.assert_array_equal(one, again)
    assert len(np.intersect1d(one, other)) < 25, "8 are expected in common, with standard deviation 2.7"
    np.testing.assert_array_equal(random_subset(jax.random.key(7), 5000, 200), one)


def test_the_sum_over_a_subset_has_the_variance_of_sampling_without_replacement():
    """What minibatches are for: mean and variance of `Σ_b v_b`, with the finite-population correction."""
    population, size = 1100, 100
    v = np.random.default_rng(0).normal(size=population) + np.linspace(-2, 2, population)
    sums = v[many(population, size)].sum(1)
    expected = size * v.var(ddof=1) * (1 - size / population)
    assert abs(sums.mean() - size * v.mean()) < 4 * np.sqrt(expected / KEYS)
    # Sums of 100 are close to normal, so that the variance of their variance is 2/n.
    assert abs(sums.var(ddof=1) / expected - 1) < 4 * np.sqrt(2 / KEYS)


def test_a_sample_by_importance_has_each_row_as_often_as_it_should():
    """For one row the chance is known: half of an equal share, and half of its share of importance."""
    eligible = np.ones(6, bool)
    eligible[0] = False
    importance = np.array([100.0, 1.0, 1.0, 1.0, 1.0, 6.0])
    drawn = np.concatenate([sample_by(jax.random.key(seed), eligible, importance, 1) for seed in range(4000)])
    share = np.bincount(drawn, minlength=6) / 4000
    expected = np.where(eligible, 0.5 / 5 + 0.5 * importance / 10, 0)
    np.testing.assert_allclose(share, expected, atol=5 * 0.5 / np.sqrt(4000))


def test_a_sample_by_importance_is_in_order_and_without_repetition():
    importance = np.random.default_rng(0).exponential(size=1000)
    ids = sample_by(jax.random.key(0), np.arange(1000) % 2 == 0, importance, 100)
    assert len(ids) == 100
    assert (np.diff(ids) > 0).all()
    assert (ids % 2 == 0).all()


@pytest.mark.parametrize("importance", [np.zeros(10), np.full(10, np.inf), np.full(10, np.nan)])
def test_without_any_importance_the_sample_is_uniform(importance):
    key, eligible = jax.random.key(3), np.ones(10, bool)
    np.testing.assert_array_equal(sample_by(key, eligible, importance, 4), sample_of(key, eligible, 4))
