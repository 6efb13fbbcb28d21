"""A table of three columns in units far apart."""

import numpy as np


def make_lines(rows, seed):
    """Return rows, and a response linear in them."""
    random = np.random.default_rng(seed)
    z = random.normal(size=(rows, 3))
    y = 500 + 100 * (z @ [1.0, -2.0, 0.5]) + 30 * random.normal(size=rows)
    return z * [1e3, 1e-2, 1.0] + [2e4, 0.3, -3.0], y
