"""Medians over trials, against experiments that are made again."""

import numpy as np
import pytest

from betacores.experiments import trials as of_trials


def test_the_spread_of_a_figure_is_that_of_other_trials():
    """By resampling the trials of one experiment, and by making the experiment again; nothing where trials agree."""
    assert of_trials.excess_with_spread(np.full(9, 2.2), np.full(9, 2.0)) == "+10.0 ± 0.0 %"
    random = np.random.default_rng(3)

    def ratio(draw):
        return 100 * np.median(draw[0]) / np.median(draw[1])

    def made(trials):
        level = np.exp(0.2 * random.normal(size=trials))
        return level * np.exp(0.05 * random.normal(size=(2, trials)))

    truth = np.std([ratio(made(200)) for _ in range(400)])
    said = [float(of_trials.excess_with_spread(*made(200)).split()[2]) for _ in range(20)]
    assert np.mean(said) == pytest.approx(truth, rel=0.3)


def test_how_often_medians_fall_is_told_of_other_trials_too():
    random = np.random.default_rng(5)
    level = np.exp(0.3 * random.normal(size=(40, 1)))
    falling = level * np.exp(np.linspace(0, -1, 6))
    assert of_trials.share_that_falls(falling) == 1
    assert of_trials.share_that_falls(falling[:, ::-1]) == 0
    # Nothing but noise falls from one size to the next every other time.
    flat = np.exp(random.normal(size=(400, 2)))
    flat[:, 1] *= np.median(flat[:, 0]) / np.median(flat[:, 1])
    assert of_trials.share_that_falls(flat) == pytest.approx(0.5, abs=0.15)


def test_the_median_trial_compares_trials_with_themselves():
    # Medians of the columns are 2 and 3, but two trials of three fall.
    before, after = np.array([[1.0], [2.0], [9.0]]), np.array([[0.9], [3.0], [8.1]])
    np.testing.assert_allclose(of_trials.in_median_trial(after, before), [-10.0])
