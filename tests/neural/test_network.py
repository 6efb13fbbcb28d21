"""The network's basis and moments, against a forward pass in NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_network import forward, leaves, numbers

from betacores.neural.network import Network, basis, moments_of

ROWS, COLUMNS, HIDDEN = 40, 3, 6


@pytest.fixture
def network():
    """Return a network whose scales and shifts are no longer ones and zeros."""
    made = Network(COLUMNS, HIDDEN, jax.random.key(0))
    random = np.random.default_rng(0)

    def moved(layer):
        scale, shift = random.normal(1, 0.5, HIDDEN), random.normal(0, 0.5, HIDDEN)
        changed = jnp.asarray(scale, jnp.float32), jnp.asarray(shift, jnp.float32)
        return eqx.tree_at(lambda one: (one.scale, one.shift), layer, changed)

    return eqx.tree_at(lambda one: one.layers, made, tuple(moved(layer) for layer in made.layers))


@pytest.fixture
def x():
    """Return rows with cells inside and outside of what the network sees."""
    x = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype(np.float32)
    x[3, 0], x[5, 1], x[7, 2] = 29.0, 1e12, -3e38
    return x


def test_shapes_and_start():
    network = Network(COLUMNS, HIDDEN, jax.random.key(0))
    assert [one.shape for one in numbers(network)] == [(6, 3), (6,), (6,), (6, 6), (6,), (6,), (1, 6), (1,)]
    assert [leaf.dtype for leaf in leaves(network)] == [np.float32] * 8
    assert all((layer.scale == 1).all() and (layer.shift == 0).all() for layer in network.layers)
    other = Network(COLUMNS, HIDDEN, jax.random.key(1))
    assert not np.allclose(other.layers[0].linear.weight, network.layers[0].linear.weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_and_basis_are_those_of_a_plain_forward_pass(network, x, weighted):
    weights = np.random.default_rng(2).exponential(size=ROWS).astype(np.float32) if weighted else np.ones(ROWS)
    found = moments_of(network, jnp.asarray(x), jnp.asarray(weights, jnp.float32))
    z, wanted = forward(numbers(network), x, weights)
    for own, (mean, variance) in zip(found, wanted, strict=True):
        np.testing.assert_allclose(own.mean, mean, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(own.variance, variance, rtol=1e-5, atol=1e-5)
    assert (z == 0).any()
    assert (z > 0).any()
    np.testing.assert_allclose(basis(network, found, jnp.asarray(x)), z, rtol=1e-4, atol=1e-5)


def test_the_basis_by_the_moments_of_other_rows(network, x):
    others = np.random.default_rng(3).normal(2, 3, size=(ROWS, COLUMNS)).astype(np.float32)
    moments = moments_of(network, jnp.asarray(others), jnp.ones(ROWS))
    z, _ = forward(numbers(network), x, None, moments)
    np.testing.assert_allclose(basis(network, moments, jnp.asarray(x)), z, rtol=1e-4, atol=1e-5)


def test_the_head_follows_the_basis_of_the_batch_itself(network, x):
    z, _ = forward(numbers(network), x, np.ones(ROWS))
    *_, matrix, bias = numbers(network)
    np.testing.assert_allclose(network.responses(jnp.asarray(x)), z @ matrix[0] + bias[0], rtol=1e-4, atol=1e-4)


def test_rows_of_weight_zero_do_not_matter(network, x):
    weights = np.where(np.arange(ROWS) % 3, 2.0, 0.0).astype(np.float32)
    changed = np.where(weights[:, None] > 0, x, 17.0).astype(np.float32)
    alone = moments_of(network, jnp.asarray(x[weights > 0]), jnp.ones(int((weights > 0).sum())))
    for rows in (x, changed):
        for own, wanted in zip(moments_of(network, jnp.asarray(rows), jnp.asarray(weights)), alone, strict=True):
            np.testing.assert_allclose(own.mean, wanted.mean, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(own.variance, wanted.variance, rtol=1e-5, atol=1e-5)


def test_all_weights_times_a_number_change_nothing(network, x):
    some = jnp.asarray(np.random.default_rng(2).exponential(size=ROWS), jnp.float32)
    for own, wanted in zip(
        moments_of(network, jnp.asarray(x), 1e4 * some), moments_of(network, jnp.asarray(x), some), strict=True
    ):
        np.testing.assert_allclose(own.variance, wanted.variance, rtol=1e-5)


def test_the_basis_of_a_row_does_not_depend_on_its_company(network, x):
    moments = moments_of(network, jnp.asarray(x), jnp.ones(ROWS))
    together = np.asarray(basis(network, moments, jnp.asarray(x)))
    alone = np.concatenate([np.asarray(basis(network, moments, jnp.asarray(x[i : i + 1]))) for i in range(0, ROWS, 9)])
    np.testing.assert_allclose(alone, together[::9], rtol=1e-5, atol=1e-6)
    company = x.copy()
    company[1:] = 1e30
    np.testing.assert_array_equal(basis(network, moments, jnp.asarray(company))[0], together[0])


def test_cells_beyond_thirty_count_as_thirty(network, x):
    moments = moments_of(network, jnp.asarray(x), jnp.ones(ROWS))
    inside = np.asarray(basis(network, moments, jnp.asarray(np.clip(x, -30, 30))))
    np.testing.assert_array_equal(basis(network, moments, jnp.asarray(x)), inside)
    assert np.isfinite(inside).all()


def test_a_unit_that_is_the_same_for_all_rows_stays_finite(network):
    same = jnp.ones((ROWS, COLUMNS))
    moments = moments_of(network, same, jnp.ones(ROWS))
    np.testing.assert_allclose(moments[0].variance, 0, atol=1e-6)
    assert np.isfinite(basis(network, moments, same)).all()
