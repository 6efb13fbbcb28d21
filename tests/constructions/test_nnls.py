"""Sparse non-negative regression against SciPy's solver and the definition of every quantity."""

import numpy as np
import pytest
from scipy.optimize import nnls

from betacores.constructions.nnls import Passive, sparse_nonnegative


@pytest.fixture(params=range(4))
def problem(request):
    random = np.random.default_rng(request.param)
    vectors = random.normal(size=(60, 25))
    # A target outside the cone's comfortable middle, so that rows have to be dropped on the way.
    return vectors, vectors[:30].sum(0) + 3 * random.normal(size=25)


def test_every_refit_is_the_exact_non_negative_least_squares_solution(problem):
    vectors, target = problem
    path = list(sparse_nonnegative(vectors, target, 30))
    assert len(path) > 10
    dropped = 0
    ever: set[int] = set()
    for places, weights, _ in path:
        ever.update(places.tolist())
        dropped += len(ever) > len(places)
        expected, _ = nnls(vectors[places].T, target)
        np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-9)
        assert (weights > 0).all()
        assert len(set(places.tolist())) == len(places)
    assert dropped, "no row was ever dropped: the test does not reach that code"


def test_residual_never_grows(problem):
    vectors, target = problem
    path = list(sparse_nonnegative(vectors, target, 30))
    lengths = [np.linalg.norm(target - weights @ vectors[places]) for places, weights, _ in path]
    assert np.all(np.diff(lengths) <= 1e-9)


def test_first_choice_is_the_row_of_largest_correlation(problem):
    vectors, target = problem
    ((places, _, _),) = sparse_nonnegative(vectors, target, 1)
    assert places[0] == np.argmax(vectors @ target / np.linalg.norm(vectors, axis=1))


def test_factor_stays_the_cholesky_factor_through_additions_and_drops():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(20, 30))
    passive = Passive(vectors, vectors.sum(0))
    for step in range(60):
        if passive.places and random.uniform() < 0.4:
            passive.drop(int(random.integers(len(passive.places))))
        else:
            free = [i for i in range(20) if i not in passive.places]
            if free:
                assert passive.add(int(random.choice(free)))
        gram = vectors[passive.places] @ vectors[passive.places].T
        np.testing.assert_allclose(passive.factor @ passive.factor.T, gram, atol=1e-10, err_msg=f"step {step}")
        np.testing.assert_array_equal(passive.factor, np.tril(passive.factor))


def test_rows_without_direction_and_rows_that_repeat_are_never_taken_twice():
    random = np.random.default_rng(1)
    vectors = np.repeat(random.normal(size=(4, 12)), 3, axis=0)
    vectors = np.vstack([np.zeros((2, 12)), vectors])
    path = list(sparse_nonnegative(vectors, vectors.sum(0), 14))
    places, weights, _ = path[-1]
    assert len(places) <= 4
    assert (places >= 2).all()
    np.testing.assert_allclose(weights @ vectors[places], vectors.sum(0), atol=1e-8)


def test_target_that_no_row_points_to_gives_an_empty_path():
    assert list(sparse_nonnegative(np.ones((3, 4)), -np.ones(4), 3)) == []


def test_as_many_rows_as_dimensions_reach_a_target_inside_the_cone_exactly():
    random = np.random.default_rng(2)
    vectors = random.normal(size=(500, 10))
    target = random.uniform(size=500) @ vectors
    places, weights, _ = list(sparse_nonnegative(vectors, target, 40))[-1]
    assert np.linalg.norm(target - weights @ vectors[places]) < 1e-8 * np.linalg.norm(target)
