"""Greedy iterative geodesic ascent against Algorithm 2 of its paper in plain NumPy, and what the paper promises."""

import numpy as np
import pytest
from closed_forms import exact_kl
from scipy.optimize import nnls
from sums_of_vectors import DRAWS, ROWS, errors, problem, weights_at

import betacores as bc
from betacores.constructions.giga import giga

SIZE = 40


def unit(vector):
    return vector / np.linalg.norm(vector)


def paper(vectors, target, size):
    """Algorithm 2 of Campbell and Broderick (2018), line by line; the weights of all rows at every size."""
    lengths = np.linalg.norm(vectors, axis=1)
    directions, goal = vectors / lengths[:, None], unit(target)
    w, at = np.zeros(len(vectors)), np.zeros(len(goal))
    path = []
    for _ in range(size):
        towards = unit(goal - (goal @ at) * at)
        scores = np.full(len(vectors), -np.inf)
        for n, direction in enumerate(directions):
            away = direction - (direction @ at) * at
            if np.linalg.norm(away) > 1e-7:
                scores[n] = towards @ unit(away)
        best = int(np.argmax(scores))
        z0, z1, z2 = goal @ directions[best], goal @ at, directions[best] @ at
        rate = (z0 - z1 * z2) / ((z0 - z1 * z2) + (z1 - z0 * z2))
        w = (1 - rate) * w
        w[best] += rate
        scale = np.linalg.norm(w @ directions)
        w, at = w / scale, w @ directions / scale
        path.append(w / lengths * np.linalg.norm(target) * (goal @ at))
    return np.array(path)


@pytest.fixture(params=range(4))
def case(request):
    vectors, target = problem(request.param)
    return vectors, target, giga(vectors, target, size=SIZE)


def test_weights_are_those_of_the_paper(case):
    vectors, target, path = case
    expected = paper(vectors, target, SIZE)
    assert len(path.weights) == SIZE
    for m in range(1, SIZE + 1):
        found = weights_at(path, m)
        np.testing.assert_allclose(found, expected[m - 1], rtol=1e-6, atol=1e-9, err_msg=f"size {m}")


def test_a_size_has_at_most_so_many_rows_and_none_of_negative_weight(case):
    _, _, path = case
    assert len(set(path.indices.tolist())) == len(path.indices)
    assert np.isfinite(path.weights).all()
    assert np.all(path.weights >= 0)
    assert all(1 <= len(path.at(m)[0]) <= m for m in range(1, len(path.weights) + 1))


def test_error_never_grows(case):
    vectors, target, path = case
    found = errors(path, vectors, target)
    assert np.all(np.diff(found) <= 1e-9 * np.linalg.norm(target))
    assert found[-1] < 0.1 * found[0]


def test_one_row_is_the_best_of_all_single_ones(case):
    vectors, target, path = case
    best = min(np.linalg.norm(target - max(0, target @ v / (v @ v)) * v) for v in vectors)
    assert errors(path, vectors, target)[0] == pytest.approx(best, rel=1e-9)


def test_second_row_is_the_best_to_go_to_from_the_first():
    """All points between the directions of two rows are the cone of both, and its best is their least squares."""
    vectors, target = problem(5)
    path = giga(vectors, target, size=2)
    (first,), _ = path.at(1)
    best = min(nnls(vectors[[first, n]].T, target)[1] for n in range(ROWS) if n != first)
    assert errors(path, vectors, target)[1] == pytest.approx(best, rel=1e-9)


def test_no_other_scale_of_the_weights_is_better(case):
    vectors, target, path = case
    for m in range(1, SIZE + 1):
        fit = weights_at(path, m) @ vectors
        assert abs(fit @ (target - fit)) < 1e-9 * target @ target


def test_error_falls_geometrically_when_the_target_is_inside_the_cone():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(400, 6))
    target = rng.uniform(size=400) @ vectors
    found = errors(giga(vectors, target, size=60), vectors, target) / np.linalg.norm(target)
    usable = found > 1e-10
    sizes, logs = np.arange(1, len(found) + 1)[usable], np.log(found[usable])
    slope, level = np.polyfit(sizes, logs, 1)
    assert slope < -0.1
    assert found[-1] < 1e-4
    # A straight line: a power of the size, as of a random subset, would bend away from it.
    halves = [
        np.polyfit(part, values, 1)[0]
        for part, values in zip(np.array_split(sizes, 2), np.array_split(logs, 2), strict=True)
    ]
    assert halves[1] < 0.3 * halves[0]
    assert np.abs(logs - (slope * sizes + level)).max() < 4


def test_few_dimensions_and_many_rows_reach_the_target():
    vectors, target = problem(2, rows=500, draws=3)
    path = giga(vectors, target, size=60)
    assert errors(path, vectors, target)[-1] < 1e-6 * np.linalg.norm(target)
    assert np.isfinite(path.weights).all()


def test_a_target_along_one_row_is_recovered_by_that_row_alone():
    vectors, _ = problem(3)
    target = 7.5 * vectors[11]
    path = giga(vectors, target, size=5)
    for m in range(1, len(path.weights) + 1):
        np.testing.assert_allclose(weights_at(path, m)[11], 7.5, rtol=1e-6)
        assert errors(path, vectors, target)[m - 1] < 1e-6 * np.linalg.norm(target)


def test_rows_without_direction_are_never_taken():
    vectors, target = problem(4)
    vectors = np.concatenate([np.zeros((3, DRAWS)), vectors, np.zeros((3, DRAWS))])
    path = giga(vectors, target, size=SIZE)
    assert np.isfinite(path.weights).all()
    assert set(path.indices.tolist()) <= set(range(3, 3 + ROWS))
    plain = giga(vectors[3:-3], target, size=SIZE)
    assert (path.indices - 3).tolist() == plain.indices.tolist()
    np.testing.assert_allclose(path.weights, plain.weights, rtol=1e-9)


def test_a_longer_row_weighs_less_and_does_the_same():
    vectors, target = problem(6)
    scales = np.random.default_rng(0).uniform(0.1, 10, ROWS)
    plain, scaled = giga(vectors, target, size=20), giga(scales[:, None] * vectors, target, size=20)
    assert scaled.indices.tolist() == plain.indices.tolist()
    np.testing.assert_allclose(scaled.weights * scales[scaled.indices], plain.weights, rtol=1e-6, atol=1e-12)


def test_weights_grow_with_the_target():
    vectors, target = problem(7)
    plain, larger = giga(vectors, target, size=20), giga(vectors, 1000 * target, size=20)
    assert larger.indices.tolist() == plain.indices.tolist()
    np.testing.assert_allclose(larger.weights, 1000 * plain.weights, rtol=1e-6, atol=1e-9)


def test_repeated_rows_change_nothing_but_who_is_taken():
    vectors, target = problem(8)
    plain, repeated = giga(vectors, target, size=20), giga(np.repeat(vectors, 3, axis=0), target, size=20)
    np.testing.assert_allclose(
        errors(repeated, np.repeat(vectors, 3, axis=0), target), errors(plain, vectors, target), rtol=1e-6
    )


def test_nothing_to_reach_gives_nothing_and_says_so():
    vectors, _ = problem(9)
    path = giga(vectors, np.zeros(DRAWS), size=5)
    assert path.warnings
    assert not path.weights.any()
    assert path.weights.shape[1] == len(path.indices)
    assert np.isfinite(path.weights).all()


@pytest.mark.parametrize(
    ("vectors", "target"),
    [(np.zeros((5, 4)), np.ones(4)), (np.ones((3, 4)), -np.ones(4)), (np.eye(4)[:2], np.eye(4)[3])],
    ids=["no directions", "all point away", "all at right angles"],
)
def test_a_target_that_no_row_points_to_is_left_alone(vectors, target):
    path = giga(vectors, target, size=3)
    assert not path.weights.any()
    assert path.weights.shape[1] == len(path.indices)


def test_front_door_comes_far_closer_than_a_random_subset():
    """The exact divergence between conjugate posteriors of a Gaussian's mean, prior N(0, I)."""
    x = np.random.default_rng(0).normal(0.5, 1, (400, 3))
    coreset = bc.summarize(x, method="giga", size=30)
    assert (coreset.method, coreset.beta) == ("giga", 0)
    assert len(coreset) <= 30
    assert np.array_equal(coreset.X, x[coreset.indices])
    # A random subset of m rows has a divergence of about 3N/2m.
    assert exact_kl(coreset, x) < 0.02 * 1.5 * 400 / 30
