"""Medians over the trials of an experiment, and how far they would be elsewhere if the trials were drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

RESAMPLES = 2000


def excess_with_spread(one: Float[np.ndarray, " trials"], other: Float[np.ndarray, " trials"]) -> str:
    """Say how much the median of errors is above that of others in the same trials, and how far chance moves that."""
    trials = np.random.default_rng(0).integers(len(one), size=(RESAMPLES, len(one)))
    spread = np.std(100 * np.median(one[trials], axis=1) / np.median(other[trials], axis=1))
    return f"{100 * (np.median(one) / np.median(other) - 1):+.1f} ± {spread:.1f} %"


def resampled_medians(values: Float[np.ndarray, "trials sizes"]) -> Float[np.ndarray, "resamples sizes"]:
    """Return medians over trials that are drawn from those there are."""
    trials = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    return np.median(values[trials], axis=1)


def share_that_falls(errors: Float[np.ndarray, "trials sizes"]) -> float:
    """Return in which share of resamples of the trials the median falls, or stays, from every size to the next."""
    return float(np.mean(np.all(np.diff(resampled_medians(errors)) <= 0, axis=1)))


def in_median_trial(
    one: Float[np.ndarray, "trials sizes"], other: Float[np.ndarray, "trials sizes"]
) -> Float[np.ndarray, " sizes"]:
    """Return by how many per cent errors are above others in the median trial: trial is compared with trial."""
    return 100 * (np.median(one / other, axis=0) - 1)
