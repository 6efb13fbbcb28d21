"""Frank-Wolfe against its definition in plain NumPy: vertices, line search, polytope and rate of convergence."""

import numpy as np
import pytest
from closed_forms import exact_kl
from sums_of_vectors import DRAWS, ROWS, errors, problem, weights_at

import betacores as bc
from betacores.constructions.frank_wolfe import frank_wolfe

SIZE = 40


def vertices(vectors, total=None):
    """Corners of `{w ≥ 0, Σ w σ = total}` seen through the vectors: each row alone, made as long as the total."""
    lengths = np.linalg.norm(vectors, axis=1)
    return vectors / lengths[:, None] * (lengths.sum() if total is None else total)


@pytest.fixture(params=range(4))
def case(request):
    vectors, target = problem(request.param)
    return vectors, target, frank_wolfe(vectors, target, size=SIZE)


def test_every_size_is_on_the_polytope_with_at_most_so_many_rows(case):
    vectors, _, path = case
    lengths = np.linalg.norm(vectors, axis=1)
    assert len(path.weights) == SIZE
    assert np.all(path.weights >= 0)
    for m in range(1, SIZE + 1):
        assert weights_at(path, m) @ lengths == pytest.approx(lengths.sum(), rel=1e-9)
        assert 1 <= len(path.at(m)[0]) <= m
    assert len(set(path.indices.tolist())) == len(path.indices)


def test_first_row_is_the_nearest_vertex(case):
    vectors, target, path = case
    corners = vertices(vectors)
    nearest = int(np.argmin(np.linalg.norm(target - corners, axis=1)))
    (found,), (weight,) = path.at(1)
    assert found == nearest
    np.testing.assert_allclose(weight * vectors[found], corners[nearest], rtol=1e-9)


def test_every_step_goes_to_the_steepest_vertex_and_stops_at_the_nearest_point_on_the_way(case):
    vectors, target, path = case
    corners = vertices(vectors)
    lengths = np.linalg.norm(vectors, axis=1)
    moved = 0
    for m in range(1, SIZE):
        before, after = weights_at(path, m), weights_at(path, m + 1)
        here = before @ vectors
        goal = int(np.argmax(corners @ (target - here)))
        corner = np.zeros(ROWS)
        corner[goal] = lengths.sum() / lengths[goal]
        # The share of the way gone, by the weight of the others.
        share = 1 - after[np.arange(ROWS) != goal].sum() / before[np.arange(ROWS) != goal].sum()
        np.testing.assert_allclose(after, before + share * (corner - before), rtol=1e-7, atol=1e-9, err_msg=f"{m}")
        assert 0 <= share <= 1
        moved += share > 1e-3

        def error(part, here=here, corner=corners[goal]):
            return np.linalg.norm(target - here - part * (corner - here))

        least = error(share)
        assert least <= min(error(0), error(1))
        for part in (0.9 * share, 1.1 * share, 0.5 * share, 2 * share):
            assert least < error(part)
    assert moved > 20


def test_error_never_grows(case):
    vectors, target, path = case
    found = errors(path, vectors, target)
    assert np.all(np.diff(found) <= 1e-9 * np.linalg.norm(target))
    assert found[-1] < 0.5 * found[0]


def test_squared_error_is_at_most_the_squared_diameter_over_the_size(case):
    """With the target inside, `1/r² ` grows by `1/D²` a step at least, and starts there."""
    vectors, target, path = case
    corners = vertices(vectors)
    diameter = max(np.linalg.norm(corners - corner, axis=1).max() for corner in corners)
    found = errors(path, vectors, target)
    assert np.all(found**2 <= diameter**2 / np.arange(1, SIZE + 1))
    assert np.all(np.diff(found**-2.0) >= (1 - 1e-6) / diameter**2)


def test_a_target_that_is_a_vertex_is_reached_at_once():
    vectors, _ = problem(3)
    target = vertices(vectors)[11]
    path = frank_wolfe(vectors, target, size=5)
    for m in range(1, len(path.weights) + 1):
        np.testing.assert_allclose(weights_at(path, m) @ vectors, target, rtol=1e-6)


def test_another_total_is_another_polytope():
    vectors, target = problem(4)
    lengths = np.linalg.norm(vectors, axis=1)
    path = frank_wolfe(vectors, target, size=10, total=123.0)
    for m in range(1, 11):
        assert weights_at(path, m) @ lengths == pytest.approx(123.0, rel=1e-9)
    corners = vertices(vectors, 123.0)
    assert errors(path, vectors, target)[0] == pytest.approx(np.linalg.norm(target - corners, axis=1).min(), rel=1e-9)
    same = frank_wolfe(vectors, target, size=10, total=float(lengths.sum()))
    np.testing.assert_allclose(same.weights, frank_wolfe(vectors, target, size=10).weights, rtol=1e-9)


def test_a_longer_row_weighs_less_and_does_the_same_within_one_polytope():
    vectors, target = problem(6)
    scales = np.random.default_rng(0).uniform(0.1, 10, ROWS)
    total = float(np.linalg.norm(vectors, axis=1).sum())
    plain = frank_wolfe(vectors, target, size=20, total=total)
    scaled = frank_wolfe(scales[:, None] * vectors, target, size=20, total=total)
    assert scaled.indices.tolist() == plain.indices.tolist()
    np.testing.assert_allclose(scaled.weights * scales[scaled.indices], plain.weights, rtol=1e-6, atol=1e-12)


def test_rows_without_direction_are_never_taken():
    vectors, target = problem(5)
    with_nothing = np.concatenate([np.zeros((3, DRAWS)), vectors, np.zeros((3, DRAWS))])
    path, plain = frank_wolfe(with_nothing, target, size=SIZE), frank_wolfe(vectors, target, size=SIZE)
    assert (path.indices - 3).tolist() == plain.indices.tolist()
    np.testing.assert_allclose(path.weights, plain.weights, rtol=1e-9)


@pytest.mark.parametrize("total", [None, 2.0])
@pytest.mark.parametrize("target", [np.zeros(4), np.ones(4)], ids=["no target", "a target"])
def test_nothing_but_rows_without_direction_gives_nothing(target, total):
    path = frank_wolfe(np.zeros((5, 4)), target, size=3, total=total)
    assert not path.weights.any()
    assert path.weights.shape[1] == len(path.indices)
    assert path.warnings


def test_a_target_beyond_the_polytope_is_met_at_the_nearest_vertex():
    """There is nowhere to go from there: the method stands still, or stops, without a complaint from NumPy."""
    path = frank_wolfe(np.array([[1.0, 0.0]]), np.array([3.0, 0.0]), size=3)
    np.testing.assert_allclose(path.weights, 1.0)
    path = frank_wolfe(np.eye(3), np.array([9.0, 0.5, 0.5]), size=4)
    np.testing.assert_allclose(weights_at(path, 4, 3), [3.0, 0.0, 0.0], atol=1e-12)


def test_repeated_rows_change_nothing_but_who_is_taken():
    vectors, target = problem(8)
    repeated = np.repeat(vectors, 3, axis=0)
    plain, path = frank_wolfe(vectors, target, size=20), frank_wolfe(repeated, 3 * target, size=20)
    np.testing.assert_allclose(errors(path, repeated, 3 * target), 3 * errors(plain, vectors, target), rtol=1e-6)


def test_front_door_comes_closer_the_larger_the_coreset():
    """The exact divergence between conjugate posteriors of a Gaussian's mean, prior N(0, I)."""
    x = np.random.default_rng(0).normal(0.5, 1, (400, 3))
    coreset = bc.summarize(x, method="frank-wolfe", size=100)
    assert (coreset.method, coreset.beta) == ("frank-wolfe", 0)
    assert len(coreset) <= 100
    assert np.array_equal(coreset.X, x[coreset.indices])
    found = {m: exact_kl(coreset.at(m), x) for m in (1, 10, 100)}
    assert found[1] > 10 * found[10]
    # A random subset of m rows has a divergence of about 3N/2m.
    assert found[10] < 0.1 * 1.5 * 400 / 10
    assert found[100] < min(found[10], 0.1 * 1.5 * 400 / 100)
