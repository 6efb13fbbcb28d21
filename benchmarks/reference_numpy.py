"""Algorithm 1 of the β-Cores paper in plain NumPy and SciPy: the yardstick of the compiled version.

Problem: choose M of N rows and weights ``w >= 0`` so that the coreset posterior
``π_w ∝ exp(Σ_m w_m f_m) π_0`` has a small reverse KL divergence to the full β-posterior.

Update: centre the rows' β-likelihoods over S draws from ``π_w`` (``ḡ``), estimate what the
coreset still misses on a minibatch of B rows (the residual ``R = N/B Σ_b ḡ_b - Σ_m w_m ḡ_m``),
add the row most correlated with ``R``, then take T projected Adam steps along ``ḡ·R / S``.

Reference: Manousakas & Mascolo, *β-Cores: Robust Large-Scale Bayesian Data Summarization in the
Presence of Outliers*, WSDM 2021. Its formulas differ in the sign and scale of the β-likelihood; here
both are those with which it tends to the log-likelihood as β → 0.
Its M is ``size``, S ``draws``, T ``steps``, B ``batch_select`` and ``batch_optimise``, c0
``learning_rate``. The models, plain and tuned, are in ``reference_models.py``.
"""

from typing import NamedTuple

import numpy as np
from reference_models import GaussianMean, Logistic, TunedGaussianMean, TunedLogistic

Model = Logistic | TunedLogistic | GaussianMean | TunedGaussianMean
TARGETS = ("beta", "classical")
TINY = np.sqrt(np.finfo(float).tiny)


class Path(NamedTuple):
    """Rows in order of insertion, shape (k,); weights after each iteration, shape (size, k)."""

    indices: np.ndarray
    weights: np.ndarray


class Problem(NamedTuple):
    """What stays fixed while a coreset is built; `target` is the β of the posterior drawn from."""

    model: Model
    rows: np.ndarray
    beta: float
    target: float
    draws: int


def beta_cores(
    x: np.ndarray,
    y: np.ndarray | None,
    *,
    model: Model,
    size: int,
    beta: float,
    draws: int = 100,
    steps: int = 500,
    batch_select: int = 1000,
    batch_optimise: int = 200,
    learning_rate: float = 1.0,
    sampler_target: str = "beta",
    seed: int = 0,
) -> Path:
    """Build a coreset by Algorithm 1 and return its whole path.

    Parameters
    ----------
    x : array, shape (N, d)
        Covariates, or observations of the Gaussian.
    y : array of {-1, +1}, shape (N,), or None
        Labels; None for the Gaussian.
    model : Logistic, TunedLogistic, GaussianMean or TunedGaussianMean
        What is assumed of a row.
    size, draws, steps : int
        Outer iterations M, so the most rows the coreset can hold; parameter draws S for every
        estimate; weight updates T in every outer iteration.
    beta : float
        Robustness; 0 is the log-likelihood, hence SparseVI.
    batch_select, batch_optimise : int
        Minibatch rows for a selection and for a weight update, at most N.
    learning_rate : float
        c0 of the rate c0 / t.
    sampler_target : {"beta", "classical"}
        Likelihood of the coreset posterior that is drawn from. The vectors are β either way.
    seed : int
        Seed of every random choice.

    Returns
    -------
    Path
        Indices in order of insertion, fewer than `size` if a member was chosen again, and the
        weights after every outer iteration, zero before insertion.
    """
    if sampler_target not in TARGETS:
        raise ValueError(f"sampler_target must be one of {TARGETS}, got {sampler_target!r}")
    if beta < 0.0:
        raise ValueError(f"beta must be at least 0, got {beta}")
    if beta > 0.0 and sampler_target == "beta" and isinstance(model, TunedGaussianMean):
        raise ValueError("TunedGaussianMean cannot draw with sampler_target='beta'; use 'classical' or GaussianMean")
    rng = np.random.default_rng(seed)
    target = beta if sampler_target == "beta" else 0.0
    problem = Problem(model, model.rows(x, y), beta, target, draws)
    members, weights, start = np.zeros(0, dtype=int), np.zeros(0), None
    path = np.zeros((size, size))
    for m in range(size):
        chosen, start = select(problem, rng, members, weights, start, batch_select)
        if chosen is not None and chosen not in members:
            members, weights = np.append(members, chosen), np.append(weights, 0.0)
        if len(members):
            weights, start = reweight(problem, rng, members, weights, start, batch_optimise, steps, learning_rate)
        path[m, : len(members)] = weights
    return Path(members, path[:, : len(members)])


def select(problem, rng, members, weights, start, batch_size):
    """Row most correlated with the residual, or None if no row can be told from a constant.

    A member wins by its absolute correlation, as both a lower and a higher weight may help.
    """
    model, rows, beta, target, draws = problem
    theta, start = model.draw(rng, rows[members], weights, draws, target, start)
    batch = rng.choice(len(rows), min(batch_size, len(rows)), replace=False, shuffle=False)
    pool, held = np.concatenate([members, batch]), len(members)
    values = model.likelihood(theta, rows[pool], beta)
    vectors = centre(values)
    residual = len(rows) / len(batch) * vectors[held:].sum(axis=0) - weights @ vectors[:held]
    norm = np.linalg.norm(vectors, axis=1)
    score = vectors @ residual / np.maximum(norm, TINY)
    score[:held] = np.abs(score[:held])
    # A row whose likelihood is the same under every draw has a centred vector of rounding errors
    # (or one whose square underflows): its direction means nothing.
    rounding = 4.0 * np.finfo(float).eps * np.sqrt(draws) * np.abs(values).max(axis=1)
    score[norm <= np.maximum(rounding, TINY)] = -np.inf
    # A member met again in the minibatch already has its score, the absolute one.
    score[held:][np.isin(batch, members)] = -np.inf
    best = np.argmax(score)
    return (pool[best] if np.isfinite(score[best]) else None), start


def reweight(problem, rng, members, weights, start, batch_size, steps, learning_rate):
    """Projected Adam steps on the weights, at rate ``learning_rate / t``, from fresh moments."""
    model, rows, beta, target, draws = problem
    inside = rows[members]
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for t in range(1, steps + 1):
        theta, start = model.draw(rng, inside, weights, draws, target, start)
        batch = rng.choice(len(rows), min(batch_size, len(rows)), replace=False, shuffle=False)
        # Centring is linear: the minibatch is summed first and centred once.
        whole = model.likelihood(theta, rows[batch], beta).sum(axis=0)
        vectors = centre(model.likelihood(theta, inside, beta))
        residual = len(rows) / len(batch) * centre(whole) - weights @ vectors
        gradient = -(vectors @ residual) / draws
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        step = (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        weights = np.maximum(weights - learning_rate / t * step, 0.0)
    return weights, start


def centre(values):
    """Subtract the mean over draws, the last axis."""
    return values - values.mean(axis=-1, keepdims=True)
