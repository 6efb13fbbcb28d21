"""Vectors whose sum is to be approximated by a few of them, and what a path makes of it."""

import numpy as np

ROWS, DRAWS = 80, 12


def problem(seed, rows=ROWS, draws=DRAWS):
    """Vectors of very different lengths, and the sum of all of them."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, draws)) + rng.normal(size=draws)
    vectors *= rng.lognormal(0, 1, size=(rows, 1))
    return vectors, vectors.sum(0)


def weights_at(path, size, rows=ROWS):
    """Weights of all rows at a size; after an early stop, those it stopped with."""
    weights = np.zeros(rows)
    np.add.at(weights, path.indices, path.weights[min(size, len(path.weights)) - 1])
    return weights


def errors(path, vectors, target):
    """How far the sum is from the target at every size."""
    fits = [weights_at(path, m, len(vectors)) @ vectors for m in range(1, len(path.weights) + 1)]
    return np.linalg.norm(target - np.array(fits), axis=1)
