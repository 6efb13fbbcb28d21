"""A round of training: the loss, AdaGrad's steps on it, and what must not enter."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from plain_network import forward, leaves, loss, numbers, slopes

from betacores.models.base import Rows
from betacores.neural import Training
from betacores.neural.network import Network
from betacores.neural.training import training_round

ROWS, COLUMNS, HIDDEN = 50, 3, 4


@pytest.fixture
def network():
    return Network(COLUMNS, HIDDEN, jax.random.key(3))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLUMNS))
    return Rows(jnp.asarray(x, jnp.float32), jnp.asarray(np.abs(x[:, 0]) + 0.3 * x[:, 1], jnp.float32))


def same(network, other):
    return all(np.array_equal(a, b) for a, b in zip(leaves(network), leaves(other), strict=True))


def by_hand(network, rows, ids, weights, key, training):
    """AdaGrad along central differences of the loss on the same minibatches, its sums of squares begun at 0.1.

    Returned is the average over the second half of the steps.
    """
    at, relative = numbers(network), np.asarray(weights, np.float64) / np.mean(weights)
    squares = [np.full_like(part, 0.1) for part in at]
    x, y, visited = np.asarray(rows.x, np.float64), np.asarray(rows.y, np.float64), []
    for one in jax.random.split(key, training.steps):
        places = np.asarray(jax.random.randint(one, (training.minibatch,), 0, len(ids)))
        some = ids[places], relative[places]
        slope = slopes(lambda at, some=some: loss(at, x[some[0]], y[some[0]], some[1], training.weight_decay), at)
        squares = [total + part**2 for total, part in zip(squares, slope, strict=True)]
        steps = [part / np.sqrt(total + 1e-7) for total, part in zip(squares, slope, strict=True)]
        at = [part - training.learning_rate * step for part, step in zip(at, steps, strict=True)]
        visited.append(at)
    return [np.mean(parts, axis=0) for parts in zip(*visited[training.steps // 2 :], strict=True)]


@pytest.mark.parametrize(("steps", "decay"), [(1, 0.0), (5, 0.3)])
def test_steps_are_adagrad_along_finite_differences_of_the_loss(network, rows, steps, decay):
    training = Training(steps=steps, learning_rate=0.2, weight_decay=decay, minibatch=16)
    ids = np.random.default_rng(1).permutation(ROWS)[:30]
    weights = np.random.default_rng(2).exponential(5, size=30)
    found = training_round(network, rows, ids, weights, jax.random.key(5), training)
    wanted = by_hand(network, rows, ids, weights, jax.random.key(5), training)
    moved = max(np.abs(a - b).max() for a, b in zip(wanted, numbers(network), strict=True))
    assert moved > 0.1
    for own, one in zip(numbers(found), wanted, strict=True):
        np.testing.assert_allclose(own, one, atol=2e-4)


def test_the_loss_on_all_rows_falls_and_the_response_is_learnt(network, rows):
    x, y = np.asarray(rows.x, np.float64), np.asarray(rows.y, np.float64)
    training, losses = Training(steps=300, learning_rate=0.05, weight_decay=0.0), []
    losses.append(loss(numbers(network), x, y, np.ones(ROWS), training.weight_decay))
    for number in range(3):
        network = training_round(network, rows, np.arange(ROWS), np.ones(ROWS), jax.random.key(number), training)
        losses.append(loss(numbers(network), x, y, np.ones(ROWS), training.weight_decay))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.2 * losses[0]
    *_, matrix, bias = numbers(network)
    z, _ = forward(numbers(network), x, np.ones(ROWS))
    assert np.corrcoef(z @ matrix[0] + bias[0], y)[0, 1] > 0.9


def test_decay_makes_matrices_small(network, rows):
    def size(decay):
        training = Training(steps=300, learning_rate=0.05, weight_decay=decay)
        found = numbers(training_round(network, rows, np.arange(ROWS), np.ones(ROWS), jax.random.key(0), training))
        return sum((found[k] ** 2).sum() for k in (0, 3, 6))

    assert size(1.0) < 0.5 * size(0.0)


def test_same_key_same_network_and_another_key_another(network, rows):
    training = Training(steps=20)
    ids, ones = np.arange(20), np.ones(20)
    first = training_round(network, rows, ids, ones, jax.random.key(0), training)
    assert same(first, training_round(network, rows, ids, ones, jax.random.key(0), training))
    assert not same(first, training_round(network, rows, ids, ones, jax.random.key(1), training))


def test_only_ratios_of_weights_count(network, rows):
    ids, weights = np.arange(20), np.random.default_rng(0).exponential(size=20)
    one, many = (
        training_round(network, rows, ids, factor * weights, jax.random.key(0), Training(steps=20))
        for factor in (1.0, 1e4)
    )
    for a, b in zip(leaves(one), leaves(many), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_rows_of_weight_zero_do_not_matter(network, rows):
    ids, weights, training = np.arange(20), np.where(np.arange(20) < 5, 0.0, 1.0), Training(steps=20)
    first = training_round(network, rows, ids, weights, jax.random.key(0), training)
    wrong = rows._replace(y=rows.y.at[:5].set(1e10))
    assert same(first, training_round(network, wrong, ids, weights, jax.random.key(0), training))
    wrong = rows._replace(x=rows.x.at[:5].set(20.0))
    assert same(first, training_round(network, wrong, ids, weights, jax.random.key(0), training))


def test_a_heavy_row_is_learnt_best(network, rows):
    y = np.asarray(rows.y).copy()
    y[0] = 5.0
    rows, weights = rows._replace(y=jnp.asarray(y)), np.ones(ROWS)
    training, errors = Training(steps=300, learning_rate=0.05, weight_decay=0.0), []
    for weight in (0.0, 1.0, 50.0):
        weights[0] = weight
        found = training_round(network, rows, np.arange(ROWS), weights, jax.random.key(0), training)
        errors.append(abs(float(found.responses(rows.x)[0]) - 5))
    assert errors[0] > errors[1] > errors[2]


def test_rows_outside_the_coreset_never_enter(network, rows):
    ids = np.arange(5, 25)
    clean = training_round(network, rows, ids, np.ones(20), jax.random.key(0), Training(steps=20))
    # Row 0 is what the numbers of rows are padded by.
    outside = np.setdiff1d(np.arange(ROWS), ids)
    broken = Rows(rows.x.at[outside].set(np.nan), rows.y.at[outside].set(np.nan))
    assert same(clean, training_round(network, broken, ids, np.ones(20), jax.random.key(0), Training(steps=20)))


def test_one_compilation_while_the_coreset_grows(network, rows, monkeypatch):
    traces, adagrad = [], optax.adagrad
    monkeypatch.setattr(optax, "adagrad", lambda rate: traces.append(rate) or adagrad(rate))
    training = Training(steps=3, minibatch=7)  # of this test alone
    for count in (1, 5, 20, ROWS):
        weights = np.random.default_rng(count).exponential(size=count)
        network = training_round(network, rows, np.arange(count), weights, jax.random.key(count), training)
    assert len(traces) == 1
    assert all(np.isfinite(leaf).all() for leaf in leaves(network))


def test_without_rows_the_network_stays_as_it_is(network, rows):
    assert same(network, training_round(network, rows, np.zeros(0, int), np.zeros(0), jax.random.key(0), Training()))


def test_without_weight_the_network_stays_finite(network, rows):
    found = training_round(network, rows, np.arange(5), np.zeros(5), jax.random.key(0), Training(steps=2))
    assert all(np.isfinite(leaf).all() for leaf in leaves(found))
