"""The network, its loss and its last layer written out in NumPy, in double precision; and tables to try it on."""

import jax
import numpy as np

from betacores.groups import Groups


def numbers(network):
    """All parameters, layer after layer: matrix, scale, shift; then the head's matrix and bias."""
    layers = [part for layer in network.layers for part in (layer.linear.weight, layer.scale, layer.shift)]
    return [np.asarray(part, np.float64) for part in (*layers, network.head.weight, network.head.bias)]


def forward(parameters, x, weights, moments=None):
    """Return the last hidden layer, and mean and variance of the units of each layer over weighted rows."""
    z, seen = np.clip(np.asarray(x, np.float64), -30, 30), []
    weights = np.asarray(weights, np.float64)
    for place in range(2):
        matrix, scale, shift = parameters[3 * place : 3 * place + 3]
        units = z @ matrix.T
        if moments is None:
            mean = np.average(units, axis=0, weights=weights)
            variance = np.average((units - mean) ** 2, axis=0, weights=weights)
        else:
            mean, variance = (np.asarray(one, np.float64) for one in moments[place])
        z = np.maximum((units - mean) / np.sqrt(variance + 1e-5) * scale + shift, 0)
        seen.append((mean, variance))
    return z, seen


def loss(parameters, x, y, weights, decay):
    """Weighted mean squared error of a minibatch, and the squares of all matrices."""
    z, _ = forward(parameters, x, np.ones(len(x)))
    error = z @ parameters[6][0] + parameters[7][0] - y
    return np.mean(weights * error**2) + decay * sum((parameters[k] ** 2).sum() for k in (0, 3, 6))


def slopes(function, parameters, width=1e-6):
    """Central differences."""
    found = [np.zeros_like(part) for part in parameters]
    for part, slope in zip(parameters, found, strict=True):
        for place in np.ndindex(part.shape):
            middle = part[place]
            part[place] = middle + width
            above = function(parameters)
            part[place] = middle - width
            slope[place] = (above - function(parameters)) / (2 * width)
            part[place] = middle
    return found


def last_layer(z, y, weights, noise):
    """Mean and covariance of the last layer with its intercept, prior N(0, I)."""
    z = np.column_stack([z, np.ones(len(z))])
    covariance = np.linalg.inv(np.eye(z.shape[1]) + (z.T * weights) @ z / noise**2)
    return covariance @ (z.T @ (weights * y)) / noise**2, covariance


def leaves(network):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(network)]


def curve(seed, rows=600, columns=5):
    """A smooth function of two of the columns, and noise; both in units of about one."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    return x, (np.sin(2 * x[:, 0]) + x[:, 1] ** 2 - 1 + 0.1 * rng.normal(size=rows)) / 1.6


def in_batches(rows, size):
    codes = np.arange(rows) // size
    return Groups([f"batch {k}" for k in range(codes[-1] + 1)], codes)


def poisoned(y, batches, share, kind, seed):
    """Spoil 70 % of the rows of some batches, or 10 % of all rows; return the responses and which rows are dirty."""
    rng = np.random.default_rng(1000 + seed)
    dirty = np.zeros(len(y), bool)
    if kind == "everywhere":
        dirty = rng.random(len(y)) < 0.1
        return y + 10 * y.std() * dirty * rng.choice([-1, 1], len(y)), dirty
    for batch in rng.choice(len(batches), round(share * len(batches)), replace=False):
        members = np.flatnonzero(batches.codes == batch)
        dirty[rng.choice(members, round(0.7 * len(members)), replace=False)] = True
    wrong = y + 10 * y.std() if kind == "shifted" else 10 * y.std() * rng.normal(size=len(y))
    return np.where(dirty, wrong, y), dirty


def columns_that_go_together(random, rows):
    """Return twelve columns behind which there are three, of unit spread."""
    x = random.normal(size=(rows, 3)) @ random.normal(size=(3, 12)) + 0.5 * random.normal(size=(rows, 12))
    return (x / x.std(0)).astype(np.float32)
