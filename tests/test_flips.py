"""Whether labels look flipped at random: told with about the right share, and not told of clean labels or far ones."""

import numpy as np
import pytest

from betacores.flips import told_of_flips
from betacores.models import LinearRegression, LogisticRegression
from betacores.sources import ArraySource

THETA = np.array([2.0, -1.5, 1.0, 0.5])


def sample(rate, seed, rows=5000, far=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    # The ends of the curve are what tells.
    true = rng.random(rows) < 1 / (1 + np.exp(-(x @ THETA[:3] + THETA[3])))
    y = np.where(true ^ (rng.random(rows) < rate), 1.0, -1.0)
    x[:far], y[:far] = -6 * THETA[:3], 1.0
    return ArraySource(x.astype(np.float32), y.astype(np.float32))


def fitted(source):
    """Return the mode of a logistic model, of flipped labels too flat a one."""
    z, y, theta = np.column_stack([source.x, np.ones(len(source.x))]).astype(float), source.y, np.zeros(4)
    for _ in range(25):
        p = 1 / (1 + np.exp(-y * (z @ theta)))
        theta = theta + np.linalg.solve((z * (p * (1 - p))[:, None]).T @ z + np.eye(4), z.T @ (y * (1 - p)) - theta)
    return theta


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_flips_are_told_of_with_about_their_share(rate):
    source = sample(rate, seed=1)
    (said,) = told_of_flips(LogisticRegression(), source, fitted(source), 0.0)
    assert said.startswith("labels: about ")
    share = float(said.removeprefix("labels: about ").split("%")[0]) / 100
    assert share == pytest.approx(rate, abs=0.04)
    assert "'noisy-logistic'" in said


def test_clean_labels_are_not_told_of():
    for seed in range(20):
        source = sample(0.0, seed)
        assert told_of_flips(LogisticRegression(), source, fitted(source), 0.0) == []


def test_dirt_that_was_seen_and_other_models_are_left_alone():
    source = sample(0.0, seed=2, far=250)
    assert told_of_flips(LogisticRegression(), source, THETA, 0.0) != []
    assert told_of_flips(LogisticRegression(), source, THETA, 0.05) == []
    assert told_of_flips(LinearRegression(1.0), source, THETA, 0.0) == []
    assert told_of_flips(LogisticRegression(), source, np.full(4, np.nan), 0.0) == []
