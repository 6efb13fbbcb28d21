"""Centred and anchored likelihood vectors: the identities they stand on."""

import jax.numpy as jnp
import numpy as np
import pytest

from betacores.divergence import FLOOR, as_beta
from betacores.models import GaussianMean, LogisticRegression, Rows
from betacores.tangent import anchored, centred, gains, vectors


def values(rows=20, draws=31, seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(rows, draws)) * 10.0 ** rng.uniform(-2, 3, (rows, 1)), jnp.float32)


def test_centred_subtracts_the_mean_of_each_row():
    given = values()
    wide = np.asarray(given, np.float64)
    size = np.abs(wide).max(1, keepdims=True)
    np.testing.assert_allclose(centred(given) / size, (wide - wide.mean(1, keepdims=True)) / size, atol=1e-6)


def test_anchored_subtracts_the_first_draw():
    given = np.asarray(values())
    np.testing.assert_array_equal(anchored(jnp.asarray(given)), given - given[:, :1])


def test_anchoring_is_as_good_as_centring_against_a_centred_residual():
    """`ḡ·R = (g − g_1)·R` for every residual with `Σ R = 0`, and for no other."""
    given = values()
    residual = np.random.default_rng(1).normal(size=given.shape[1])
    residual -= residual.mean()
    by_centring = np.asarray(centred(given), np.float64) @ residual
    by_anchoring = np.asarray(anchored(given), np.float64) @ residual
    size = np.linalg.norm(given, axis=1) * np.linalg.norm(residual)
    np.testing.assert_allclose(by_centring / size, by_anchoring / size, atol=1e-6)
    np.testing.assert_allclose(by_centring / size, np.asarray(given, np.float64) @ residual / size, atol=1e-6)
    shifted = residual + 1.0
    assert np.abs(np.asarray(centred(given)) @ shifted - np.asarray(anchored(given)) @ shifted).max() > 1.0


@pytest.mark.parametrize("constant", [0.0, 0.1, -1 / 3, 1e-30, -1e6, FLOOR, 1e30])
@pytest.mark.parametrize("draws", [2, 100, 1001])
def test_constant_rows_become_exactly_zero(constant, draws):
    flat = jnp.full((3, draws), constant, jnp.float32)
    np.testing.assert_array_equal(centred(flat), 0.0)
    np.testing.assert_array_equal(anchored(flat), 0.0)


def test_rounding_is_not_a_direction_but_small_signals_are():
    rng = np.random.default_rng(2)
    last_bit = np.nextafter(np.float32(-1e4), np.float32(0)) + np.float32(1e4)
    noisy = np.full((1, 64), -1e4, np.float32) + last_bit * rng.integers(0, 2, (1, 64)).astype(np.float32)
    assert noisy.std() > 0
    np.testing.assert_array_equal(centred(jnp.asarray(noisy)), 0.0)
    signal = jnp.asarray(-1e4 + rng.normal(size=(1, 64)), jnp.float32)
    np.testing.assert_allclose(np.asarray(centred(signal)).std(), np.asarray(signal).std(), rtol=1e-3)


@pytest.mark.parametrize("model", [GaussianMean(), LogisticRegression()], ids=lambda m: m.name)
@pytest.mark.parametrize("beta", [0.0, 0.01, 0.5])
def test_vectors_of_absurd_rows_vanish_and_those_of_others_do_not(model, beta):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 2)).astype(np.float32)
    x[3:] = 1e12 * np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])
    y = None if model.response == "none" else jnp.asarray([1.0, -1.0] * 3, jnp.float32)
    # Draws with positive slopes: a row at 1e12 is then either certain or hopeless, under every draw alike.
    thetas = jnp.asarray(rng.uniform(1.0, 2.0, size=(40, model.parameter_count(2))), jnp.float32)
    if model.response == "binary":
        x[3:] = 1e12 * np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, 2.0]])
    rows = vectors(model, thetas, Rows(jnp.asarray(x), y), as_beta(beta))
    np.testing.assert_array_equal(rows[3:], 0.0)
    assert np.abs(rows[:3]).max(1).min() > 1e-3
    np.testing.assert_allclose(rows[:3].mean(1), 0.0, atol=1e-5)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.4])
@pytest.mark.parametrize("width", [1e-6, 1e-4, 1e-2, 1.0])
def test_gains_keep_their_digits_however_narrow_the_posterior(beta, width):
    """Differences of labels' likelihoods against double precision, where single precision has few digits left."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(200, 3)).astype(np.float32), rng.choice([-1.0, 1.0], 200).astype(np.float32)
    thetas = (np.array([1.0, -2.0, 0.5, 0.3]) + width * rng.normal(size=(40, 4))).astype(np.float32)
    found = gains(LogisticRegression(), jnp.asarray(thetas), Rows(jnp.asarray(x), jnp.asarray(y)), as_beta(beta))

    def likelihood(theta):
        u = y * (np.column_stack([x, np.ones(len(x))]).astype(np.float64) @ theta)
        log_p, log_q = -np.logaddexp(0, -u), -np.logaddexp(0, u)
        if beta == 0:
            return log_p
        return np.expm1(beta * log_p) / beta - (np.exp((1 + beta) * log_p) + np.exp((1 + beta) * log_q)) / (1 + beta)

    wide = thetas.astype(np.float64)
    exact = np.stack([likelihood(theta) - likelihood(wide[0]) for theta in wide], axis=1)
    size = np.abs(exact).max()
    np.testing.assert_allclose(found / size, exact / size, atol=1e-4 if width == 1e-2 else 2e-5)
