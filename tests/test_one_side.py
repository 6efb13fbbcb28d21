"""Skewed noise is told of, with its side and about the distance of the mean; neither dirt nor heavy tails are."""

import re

import numpy as np
import pytest

import betacores as bc
from betacores.models import LinearRegression
from betacores.noise import told_of_one_side
from betacores.sources import ArraySource

THETA = np.array([1.0, -2.0, 0.5])


def source(noise, seed=0, rows=5000):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    y = x @ THETA[:2] + THETA[2] + noise(rng, rows)
    return ArraySource(x.astype(np.float32), y.astype(np.float32))


def skewed(rng, rows):
    """A normal bulk of deviation one; in every seventh row an exponential of mean three on top: 0.43 on average."""
    return rng.normal(size=rows) + (rng.random(rows) < 1 / 7) * rng.exponential(3.0, rows)


@pytest.mark.parametrize(("side", "where", "so"), [(1, "above", "higher"), (-1, "below", "lower")])
def test_skewed_noise_is_told_of_with_its_side(side, where, so):
    rows = source(lambda rng, count: side * skewed(rng, count))
    (said,) = told_of_one_side(LinearRegression(1.0), rows, THETA, 0.5)
    assert f"standard deviations {where} the fit" in said
    distance, word = re.search(r"means are ([\d.]+) (\w+) at least", said).groups()
    assert word == so
    # Rows more than six deviations off count as if they were six.
    assert float(distance) == pytest.approx(0.43, abs=0.1)
    assert told_of_one_side(LinearRegression(1.0), rows, THETA, 0.0) == [], "the ordinary fit follows the mean"


@pytest.mark.parametrize(
    "noise",
    [
        lambda rng, rows: rng.normal(size=rows),
        lambda rng, rows: rng.standard_t(2, size=rows),
        lambda rng, rows: rng.normal(size=rows) + 10.0 * (rng.random(rows) < 0.2),
        lambda rng, rows: rng.normal(size=rows) * np.where(rng.random(rows) < 0.2, 5.0, 1.0),
        lambda rng, rows: np.where(rng.random(rows) < 0.01, 1e30, rng.normal(size=rows)),
    ],
    ids=["normal", "heavy tails", "shifted dirt", "scattered dirt", "absurd"],
)
def test_normal_noise_heavy_tails_and_dirt_are_left_alone(noise):
    for seed in range(10):
        assert told_of_one_side(LinearRegression(1.0), source(noise, seed), THETA, 0.5) == []


def test_a_run_tells_of_it():
    rows = source(skewed, rows=2000)
    coreset = bc.summarize(rows.x, rows.y, model="linear", size=20, beta=0.5)
    assert sum(note.startswith("noise: skewed, ") for note in coreset.info.notes) == 1
