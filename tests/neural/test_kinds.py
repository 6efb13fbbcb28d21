"""Kinds of batches: how many can be told apart, the mixture that is fitted, and which batches are clean."""

import numpy as np
import pytest
from scipy.stats import binom

from betacores.neural.kinds import clean_as_others, clean_batches, kinds_of_batches


def drawn(rates, size, seed=0):
    rng = np.random.default_rng(seed)
    return rng.binomial(size, rates), np.full(len(rates), size)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [1, 10, 100])
def test_batches_that_are_alike_are_of_one_kind(size, seed):
    doubtful, sizes = drawn(np.full(60, 0.03), size, seed)
    kinds = kinds_of_batches(doubtful, sizes)
    assert kinds.chances.shape == (60, 1)
    assert kinds.rates[0] == pytest.approx(doubtful.sum() / sizes.sum())


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_row_or_two_leave_a_batch_clean_and_dirty_ones_are_told(seed):
    truth = np.where(np.arange(44) < 26, 0.03, 0.75)
    doubtful, sizes = drawn(truth, 10, seed)
    assert doubtful[:26].max() > 0
    kinds = kinds_of_batches(doubtful, sizes)
    np.testing.assert_allclose(kinds.rates, [0.03, 0.75], atol=0.06)
    assert clean_batches(doubtful, sizes).tolist() == (truth < 0.5).tolist()


def test_large_batches_show_three_kinds_of_which_the_lowest_is_clean():
    truth = np.repeat([0.02, 0.2, 0.7], 20)
    doubtful, sizes = drawn(truth, 200)
    np.testing.assert_allclose(kinds_of_batches(doubtful, sizes).rates, [0.02, 0.2, 0.7], atol=0.03)
    assert clean_batches(doubtful, sizes).tolist() == (truth < 0.1).tolist()


def test_rates_and_chances_are_those_of_the_largest_likelihood():
    doubtful, sizes = drawn(np.repeat([0.1, 0.6], [30, 10]), 12)
    rates, chances = kinds_of_batches(doubtful, sizes)

    def likelihood(low, high, share):
        parts = share * binom.pmf(doubtful, sizes, low), (1 - share) * binom.pmf(doubtful, sizes, high)
        return np.log(sum(parts)).sum(), parts[0] / sum(parts)

    share = chances[:, 0].mean()
    best, first = likelihood(*rates, share)
    np.testing.assert_allclose(first, chances[:, 0], atol=1e-6)
    for step in ((0.02, 0, 0), (0, 0.02, 0), (0, 0, 0.03)):
        for sign in (1, -1):
            low, high, part = np.array([*rates, share]) + sign * np.array(step)
            assert likelihood(low, high, part)[0] < best


def test_kinds_that_hardly_differ_are_clean_together():
    doubtful, sizes = drawn(np.repeat([0.02, 0.04], 40), 1000)
    assert kinds_of_batches(doubtful, sizes).chances.shape[1] >= 2
    assert clean_batches(doubtful, sizes).all()


def test_a_few_batches_without_doubt_are_not_the_measure_of_all():
    doubtful, sizes = np.array([0] * 4 + [30] * 40), np.full(44, 100)
    assert clean_batches(doubtful, sizes).all()


def test_rows_that_are_batches_of_their_own_are_as_clean_as_they_are():
    doubtful = np.array([0, 1, 0, 0, 1, 0, 0, 0])
    assert clean_batches(doubtful, np.ones(8, int)).tolist() == (doubtful == 0).tolist()


@pytest.mark.parametrize("value", [0, 5])
def test_batches_without_any_doubt_and_with_nothing_else(value):
    doubtful, sizes = np.full(6, value), np.full(6, 5)
    assert clean_batches(doubtful, sizes).tolist() == [value == 0] * 6
    assert np.isfinite(kinds_of_batches(doubtful, sizes).chances).all()


def test_order_does_not_matter_and_an_empty_batch_does_no_harm():
    doubtful, sizes = drawn(np.where(np.arange(40) < 25, 0.05, 0.7), 10)
    order = np.random.default_rng(1).permutation(40)
    clean = clean_batches(doubtful, sizes)
    assert clean_batches(doubtful[order], sizes[order]).tolist() == clean[order].tolist()
    assert clean_batches(np.append(doubtful, 0), np.append(sizes, 0))[:-1].tolist() == clean.tolist()


@pytest.mark.parametrize(("doubtful", "clean"), [(0, True), (1, True), (2, True), (5, False), (14, False)])
def test_a_start_with_a_rare_row_or_two_is_clean_and_one_with_many_is_not(doubtful, clean):
    assert clean_as_others(doubtful, 20, 0.03) == clean


def test_a_start_is_as_clean_as_others_by_the_criterion():
    for doubtful in range(51):
        own, rate = doubtful / 50, 0.05 + 0.03
        gain = binom.logpmf(doubtful, 50, own) - binom.logpmf(doubtful, 50, rate)
        assert clean_as_others(doubtful, 50, 0.05) == (own <= rate or gain <= 0.5 * np.log(50))
