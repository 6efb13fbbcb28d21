"""Pseudo-points: their loss against the exact gradient of the divergence, and the divergence they reach."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import mean_divergence
from scipy.optimize import nnls

import betacores as bc
from betacores.constructions.psvi import loss, psvi
from betacores.models import GaussianMean, LinearRegression, Rows
from betacores.sources import ArraySource

# One shape for all small problems, so that they share their compilations.
QUICK = {"size": 8, "sizes": (4, 8), "draws": 30, "steps": 50, "batch_optimise": 50}


def at(path, size):
    """Points and weights at a size, and the rows the points started from."""
    weights = path.weights[size - 1]
    kept = weights > 0
    y = None if path.points.y is None else np.asarray(path.points.y)[kept]
    return Rows(np.asarray(path.points.x)[kept], y), weights[kept], path.indices[kept]


@functools.cache
def paper_table():
    return bc.datasets.contaminated_gaussian(seed=0, fraction=0.0).x


@functools.cache
def paper_path():
    source = ArraySource(paper_table().astype(np.float32))
    return psvi(GaussianMean(), source, jax.random.key(0), size=100, beta=0.0, sizes=(10, 100))


def test_few_points_carry_a_posterior_of_twenty_dimensions():
    x = paper_table()
    plain = {m: mean_divergence(x[:m], np.full(m, len(x) / m), x) for m in (10, 100)}
    assert min(plain.values()) > 100
    # At the published rate points travel by less than one scale in all: few of them may not get there.
    for m, most in ((10, 0.1 * plain[10]), (100, 10)):
        points, weights, _ = at(paper_path(), m)
        assert mean_divergence(points.x, weights, x) < most


def test_points_have_moved_away_from_the_rows_they_started_from():
    x = paper_table()
    for m in (10, 100):
        points, _, rows = at(paper_path(), m)
        assert np.all(np.linalg.norm(points.x - x[rows], axis=1) > 1e-3)
        # They are points of this table still: started from rows, not from nowhere.
        assert np.linalg.norm(points.x - x[rows], axis=1).mean() < np.linalg.norm(x[:500] - x[500:1000], axis=1).mean()


def test_points_do_better_than_the_best_weights_of_rows():
    """Ten rows in twenty dimensions cannot have the mean of all: only moving them gets there."""
    x = paper_table()
    points, weights, rows = at(paper_path(), 10)
    # Least squares of natural parameters in the metric of the posterior, a bound from below on the mean's part.
    best, _ = nnls(x[rows].T, x.sum(0))
    best *= len(x) / best.sum()
    assert mean_divergence(points.x, weights, x) < 0.2 * mean_divergence(x[rows], best, x)


def test_every_size_has_points_of_its_own_and_no_more_than_asked():
    path = paper_path()
    assert len(path.points.x) == len(path.indices) == path.weights.shape[1] == 110
    assert len(path.weights) == 100
    assert np.all(path.weights >= 0)
    assert np.isfinite(path.weights).all()
    assert np.isfinite(np.asarray(path.points.x)).all()
    for m in range(1, 101):
        assert (path.weights[m - 1] > 0).sum() <= m
    for m in range(10, 100):
        assert np.array_equal(path.weights[m - 1], path.weights[9])
    assert not np.any((path.weights[9] > 0) & (path.weights[99] > 0))
    for m in (10, 100):
        rows = at(path, m)[2]
        assert len(set(rows.tolist())) == len(rows)
        assert np.all((rows >= 0) & (rows < len(paper_table())))


ROWS, COLUMNS, POINTS = 400, 3, 5


@functools.cache
def small_table():
    return np.random.default_rng(0).normal(0.5, 1, (ROWS, COLUMNS)).astype(np.float32)


def exact_gradients(points, weights, x):
    """Central differences of the closed form, by points and by weights."""
    step = 1e-4
    by_points = np.zeros_like(points)
    for place in np.ndindex(points.shape):
        change = np.zeros_like(points)
        change[place] = step
        up, down = mean_divergence(points + change, weights, x), mean_divergence(points - change, weights, x)
        by_points[place] = (up - down) / (2 * step)
    steps = step * np.eye(len(weights))
    by_weights = [
        (mean_divergence(points, weights + e, x) - mean_divergence(points, weights - e, x)) / (2 * step) for e in steps
    ]
    return by_points, np.array(by_weights)


def test_loss_with_draws_held_fixed_has_the_gradient_of_the_divergence():
    """In expectation over draws of the coreset's own posterior, whatever constant the total has."""
    x = small_table()
    rng = np.random.default_rng(1)
    points = rng.normal(0.3, 1, (POINTS, COLUMNS))
    weights = np.array([40.0, 10.0, 80.0, 5.0, 90.0])
    own = 1 + weights.sum()
    mean = weights @ points / own
    model, beta = GaussianMean(), None

    @jax.jit
    def gradients(thetas):
        total = model.log_likelihoods(thetas, Rows(jnp.asarray(x))).sum(0)
        return jax.grad(lambda u, w: loss(model, Rows(u), w, thetas, total - total[0] + 50, beta), argnums=(0, 1))(
            jnp.asarray(points, jnp.float32), jnp.asarray(weights, jnp.float32)
        )

    sets, draws = 100, 2000
    noise = rng.normal(size=(sets, draws, COLUMNS))
    found = [gradients(jnp.asarray(mean + n / np.sqrt(own), jnp.float32)) for n in noise]
    for k, expected in enumerate(exact_gradients(points, weights, x.astype(np.float64))):
        each = np.array([np.asarray(f[k], np.float64) for f in found])
        error = each.std(axis=0) / np.sqrt(sets)
        assert np.all(np.abs(each.mean(axis=0) - expected) < 4.5 * error + 2e-3 * np.abs(expected))
        assert error.max() < 0.05 * np.abs(expected).max(), "the test has no teeth"


def test_loss_is_half_the_mean_square_of_the_centred_residual():
    x, rng = small_table(), np.random.default_rng(2)
    thetas = rng.normal(0.5, 0.1, (40, COLUMNS))
    points, weights = rng.normal(0.5, 1, (POINTS, COLUMNS)), rng.uniform(0, 100, POINTS)

    def values(rows):
        return -0.5 * ((rows[:, None] - thetas) ** 2).sum(-1)

    total = values(x.astype(np.float64)).sum(0)
    residual = total - weights @ values(points)
    expected = 0.5 * np.mean((residual - residual.mean()) ** 2)
    given = (jnp.asarray(part, jnp.float32) for part in (points, weights, thetas, total))
    points, weights, thetas, total = given
    found = loss(GaussianMean(), Rows(points), weights, thetas, total - total[0] + 50, None)
    assert float(found) == pytest.approx(expected, rel=1e-3)


def linear_divergence(z, y, weights, full_z, full_y, noise):
    """Divergence between the conjugate posteriors of a line, prior N(0, I)."""

    def posterior(z, y, weights):
        precision = np.eye(z.shape[1]) + (z.T * weights) @ z / noise**2
        return np.linalg.solve(precision, z.T @ (weights * y) / noise**2), precision

    mean, precision = posterior(z, y, weights)
    full_mean, full = posterior(full_z, full_y, np.ones(len(full_y)))
    away = mean - full_mean
    logs = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(full)[1]
    return 0.5 * (np.trace(np.linalg.solve(precision, full)) - len(mean) + away @ full @ away + logs)


@functools.cache
def front_door(kind, seed=0):
    rng = np.random.default_rng(5)
    x = small_table().astype(np.float64)
    eta = x @ [1.0, -1.0, 0.5] + 0.3 + 0.5 * rng.normal(size=ROWS)
    y = {"none": None, "labels": np.where(eta > 0, "yes", "no"), "real": eta, "whole": np.where(eta > 0, 1, 0)}[kind]
    # The labels go with the β-likelihood: one model is enough to compile for it.
    given = {"none": {}, "real": {"model": LinearRegression(noise=0.5), "steps": 500}}.get(kind, {"beta": 0.2})
    return x, y, bc.summarize(x, y, method="psvi", seed=seed, **{**QUICK, **given})


@pytest.mark.parametrize("kind", ["none", "labels", "real", "whole"])
def test_points_move_and_responses_are_of_the_right_kind(kind):
    x, y, coreset = front_door(kind)
    assert (coreset.method, coreset.beta) == ("psvi", 0.0 if kind in ("none", "real") else 0.2)
    assert 2 <= len(coreset) <= 8
    assert coreset.X.shape == (len(coreset), COLUMNS)
    assert np.isfinite(coreset.X).all()
    assert np.all(np.abs(coreset.X - x[coreset.indices]).max(1) > 1e-4)
    assert np.all(coreset.weights > 0)
    assert np.isfinite(coreset.weights).all()
    if y is None:
        assert coreset.y is None
        return
    assert coreset.y.shape == (len(coreset),)
    assert coreset.y.dtype == y.dtype
    if kind == "real":
        assert np.all(np.abs(coreset.y - y[coreset.indices]) > 1e-4)
    else:
        assert np.array_equal(coreset.y, y[coreset.indices])
        # What was optimised had these very labels: the second one is 1, the first −1.
        signs = np.where(y[coreset.path.indices] == coreset.labels[1], 1.0, -1.0)
        assert np.array_equal(coreset.path.points.y, signs)
    assert np.isfinite(coreset.posterior(10).draws).all()


def test_the_line_is_found():
    x, y, coreset = front_door("real")

    def features(x):
        return np.column_stack([np.asarray(x, np.float64), np.ones(len(x))])

    everything, rows = (features(x), y, 0.5), coreset.indices
    started = linear_divergence(features(x[rows]), y[rows], np.full(len(rows), ROWS / len(rows)), *everything)
    reached = linear_divergence(features(coreset.X), coreset.y, coreset.weights, *everything)
    assert started > 50
    assert reached < 0.05 * started


def test_same_seed_same_points():
    coreset, again = front_door("none")[2], front_door.__wrapped__("none")[2]
    assert np.array_equal(coreset.X, again.X)
    assert np.array_equal(coreset.weights, again.weights)
    assert not np.array_equal(coreset.X, front_door("none", seed=1)[2].X)


def test_smaller_sizes_of_one_run_have_their_own_points():
    x, _, coreset = front_door("none")
    for m in (4, 5, 8):
        smaller = coreset.at(m)
        assert 1 <= len(smaller) <= m
        assert smaller.X.shape == (len(smaller), COLUMNS)
        assert np.abs(smaller.X - x[smaller.indices]).max() > 1e-4
    assert np.array_equal(coreset.at(8).X, coreset.X)


@pytest.mark.parametrize("kind", ["none", "labels", "real"])
def test_points_come_back_from_disk(kind, tmp_path):
    _, _, coreset = front_door(kind)
    loaded = bc.load(coreset.save(tmp_path / "points"))
    for one, other in ((loaded, coreset), (loaded.at(4), coreset.at(4))):
        for name in ("indices", "weights", "X", "y"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert loaded.X.dtype == coreset.X.dtype
    assert np.array_equal(loaded.posterior(5).draws, coreset.posterior(5).draws)
