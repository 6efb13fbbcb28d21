"""What tells clean rows from dirty ones."""

import warnings

import jax
import numpy as np
import pytest

from betacores.neural.judging import by_the_batch, held_out_error, held_out_noise, likely_clean, rare, with_most


class TestWithMost:
    @pytest.mark.parametrize("share", [0.1, 0.3, 0.4])
    @pytest.mark.parametrize("seed", range(3))
    def test_a_cluster_apart_is_not(self, share, seed):
        random = np.random.default_rng(seed)
        apart = random.uniform(size=2000) < share
        y = np.where(apart, random.normal(15, 0.5, 2000), random.normal(0, 1, 2000))
        assert (with_most(y) == ~apart).mean() > 0.999

    @pytest.mark.parametrize("seed", range(5))
    def test_the_scale_is_that_of_most_though_two_in_five_are_apart(self, seed):
        random = np.random.default_rng(seed)
        apart = np.arange(446) < 0.43 * 446
        y = np.where(apart, random.normal(10, 0.5, 446), np.clip(random.normal(0, 1, 446), -3, 3))
        assert with_most(y).tolist() == (~apart).tolist()

    @pytest.mark.parametrize("draw", ["normal", "uniform", "exponential", "laplace"])
    def test_tails_are(self, draw):
        y = getattr(np.random.default_rng(0), draw)(size=3000)
        assert with_most(y).mean() > 0.999

    def test_single_responses_out_of_this_world_are_not(self):
        y = np.r_[np.random.default_rng(0).normal(size=100), 1e12, -1e12]
        assert with_most(y).tolist() == [True] * 100 + [False] * 2

    def test_where_half_are_the_same_all_are(self):
        assert with_most(np.r_[np.zeros(60), np.arange(40)]).all()
        assert with_most(np.zeros(1)).all()
        assert with_most(np.array([0.0, 1.0])).all()


class TestLikelyClean:
    random = np.random.default_rng(0)
    # Errors of clean rows have tails; of the other batches 70 % have errors of another kind.
    in_clean = np.arange(4000) < 2000
    dirty = ~in_clean & (random.uniform(size=4000) < 0.7)
    clean_error = np.abs(random.standard_t(3, 4000))

    def test_tails_of_clean_rows_are_told_from_dirt_that_is_far(self):
        error = np.where(self.dirty, self.random.uniform(20, 30, 4000), self.clean_error)
        likely = likely_clean(error, self.in_clean, ~self.in_clean)
        others = ~self.in_clean
        assert not likely[self.dirty].any()
        assert likely[others & ~self.dirty & (error < 8)].mean() > 0.98

    def test_dirt_that_is_as_far_as_tails_takes_them_along(self):
        error = np.where(self.dirty, self.random.uniform(2, 12, 4000), self.clean_error)
        likely = likely_clean(error, self.in_clean, ~self.in_clean)
        others = ~self.in_clean
        assert not likely[others & (error > 3)].any()
        assert likely[others & (error < 2)].all()

    def test_without_clean_batches_none_is(self):
        nowhere = np.zeros(4000, bool)
        assert not likely_clean(self.clean_error, nowhere, ~nowhere).any()


class TestRare:
    y = np.random.default_rng(0).uniform(-1, 1, 500)

    def found(self, count):
        impossible = np.arange(500) < count
        return rare(impossible, ~impossible, self.y), impossible

    def test_a_few_with_usual_responses_are(self):
        assert self.found(10)[0].tolist() == self.found(10)[1].tolist()
        assert not self.found(0)[0].any()

    def test_more_than_a_few_are_not(self):
        assert not self.found(11)[0].any()

    def test_responses_that_no_other_row_has_are_not(self):
        impossible = np.arange(500) < 4
        y = np.where(np.arange(500) < 2, [[-1.5], [1.5]], self.y)
        for one in y:
            assert np.flatnonzero(rare(impossible, ~impossible, one)).tolist() == [2, 3]

    def test_where_none_is_believed_none_is(self):
        assert not rare(np.arange(500) < 4, np.zeros(500, bool), self.y).any()


def test_dirt_comes_by_the_batch_or_is_everywhere():
    in_clean = np.arange(1000) < 400
    doubtful = np.random.default_rng(0).uniform(size=1000) < np.where(in_clean, 0.05, 0.7)
    assert by_the_batch(doubtful, in_clean)
    doubtful = np.random.default_rng(0).uniform(size=1000) < np.where(in_clean, 0.1, 0.25)
    assert not by_the_batch(doubtful, in_clean)
    assert not by_the_batch(doubtful, np.ones(1000, bool))


def test_errors_are_those_of_rows_outside():
    random = np.random.default_rng(0)
    predicted = random.normal(size=500)
    outside = np.arange(500) >= 200
    y = predicted + np.where(outside, random.normal(0, 0.5, 500), 0)
    assert held_out_error(predicted, y, outside) == pytest.approx(0.5, rel=0.1)
    assert held_out_noise(predicted, y, outside, jax.random.key(0)) == pytest.approx(0.5, rel=0.15)
    assert held_out_error(predicted, y, np.arange(500) >= 480) is None
    assert held_out_noise(predicted, y, np.arange(500) >= 480, jax.random.key(0)) is None


def test_without_errors_all_are_likely_clean_and_nothing_overflows():
    error, clean = np.zeros(40), np.arange(40) < 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert likely_clean(error, clean, ~clean).tolist() == (~clean).tolist()
