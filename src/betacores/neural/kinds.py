"""Kinds of batches, by how many of their rows are doubtful.

Model: a batch is of one of a few kinds, and the rows of a batch of kind `k` are doubtful with probability `r_k`, each
for itself, so that of `n` rows `d` are with probability `Σ_k s_k Binomial(d | n, r_k)`.

Update: begin with one kind. Add one more at the rate at which it would raise the likelihood fastest, fit all by EM, and
keep it if the likelihood rises by more than what the Bayesian information criterion asks for two parameters.

With no more kinds than can be told, a batch with one or two doubtful rows is of the same kind as those that happen to
have none: what is doubtful there is what is rare, and not dirt.

Reference: Lindsay, "The geometry of mixture likelihoods", Annals of Statistics, 1983.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

MOST_KINDS, EM_STEPS = 5, 200
# Rates at which a further kind is looked for, closer to each other near zero, and how near to 0 and 1 a rate can be.
RATES = np.linspace(0.01, 0.995, 120) ** 2
SMALLEST_RATE = 1e-4
# The clean kinds hold this share of the rows at least; those with hardly more doubtful rows are clean too.
CLEANEST, RATE_SLACK = 0.25, 0.03


class Kinds(NamedTuple):
    """Rates of doubtful rows, from the lowest, and how likely a batch is to be of each kind."""

    rates: Float[np.ndarray, " kinds"]
    chances: Float[np.ndarray, "batches kinds"]


def kinds_of_batches(doubtful: Int[np.ndarray, " batches"], sizes: Int[np.ndarray, " batches"]) -> Kinds:
    """Return the kinds that can be told apart."""
    rates, shares = np.array([doubtful.sum() / max(sizes.sum(), 1)]), np.ones(1)
    rates, shares, joint = _fit(rates, shares, doubtful, sizes)
    price = math.log(max(int(np.count_nonzero(sizes)), 2))
    while len(rates) < MOST_KINDS:
        held = logsumexp(joint, axis=1)
        slope = np.exp(_log_likelihood(RATES, doubtful, sizes) - held[:, None]).mean(0)
        part = 1 / (len(sizes) + 1)
        further = _fit(np.append(rates, RATES[slope.argmax()]), np.append(shares * (1 - part), part), doubtful, sizes)
        if logsumexp(further[2], axis=1).sum() - held.sum() < price:
            break
        rates, shares, joint = further
    order = np.argsort(rates)
    chances = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return Kinds(rates[order], chances[:, order])


def clean_batches(
    doubtful: Int[np.ndarray, " batches"], sizes: Int[np.ndarray, " batches"]
) -> Bool[np.ndarray, " batches"]:
    """Return which batches are more likely of a clean kind than not; those with mostly doubtful rows never are.

    Of batches of a row or two, kinds cannot be told.
    """
    rates, chances = kinds_of_batches(doubtful, sizes)
    held = np.cumsum(sizes @ chances)
    usual = rates[np.searchsorted(held, CLEANEST * sizes.sum() * (1 - 1e-6))]
    return (chances[:, rates <= usual + RATE_SLACK].sum(1) > 0.5) & (2 * doubtful <= sizes)


def clean_as_others(doubtful: int, size: int, rate: float) -> bool:
    """Tell whether rows are as clean as others, of which a share is doubtful, by the Bayesian information criterion.

    A rate of their own must raise the likelihood by more than half the logarithm of their number.
    """
    rate, own = rate + RATE_SLACK, doubtful / size
    if own <= rate:
        return True
    both = _log_likelihood(np.array([own, rate]), np.array([doubtful]), np.array([size]))[0]
    return bool(both[0] - both[1] <= 0.5 * math.log(size))


def _fit(rates: np.ndarray, shares: np.ndarray, doubtful: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return rates and shares by EM, and the logarithm of each kind's part in the likelihood of each batch."""
    for _ in range(EM_STEPS):
        joint = np.log(shares) + _log_likelihood(rates, doubtful, sizes)
        chances = np.exp(joint - joint.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        rates = (doubtful @ chances) / np.maximum(sizes @ chances, 1e-300)
        shares = np.maximum(chances.mean(0), 1e-300)
    return rates, shares, np.log(shares) + _log_likelihood(rates, doubtful, sizes)


def _log_likelihood(rates: np.ndarray, doubtful: np.ndarray, sizes: np.ndarray) -> Float[np.ndarray, "batches kinds"]:
    """Return the log-probability of the doubtful rows of batches, less what is the same for all rates."""
    rates = np.clip(rates, SMALLEST_RATE, 1 - SMALLEST_RATE)
    return doubtful[:, None] * np.log(rates) + (sizes - doubtful)[:, None] * np.log1p(-rates)
