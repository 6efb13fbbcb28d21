"""How well posterior draws predict test rows, and how far they are from a posterior that is known.

With draws `θ_1 … θ_S` of a posterior and test rows `(x_n, y_n)`,

    accuracy           mean over n and s of  [y_n = argmax_y p(y | x_n, θ_s)],  a tie counting half
    log density        mean over n of  log (1/S) Σ_s p(y_n | x_n, θ_s)
    calibration error  Σ_b share_b |mean predicted − observed frequency|  over 15 equal bins of
                       `(1/S) Σ_s p(+1 | x_n, θ_s)`
    rmse               √ mean over n of  (y_n − (1/S) Σ_s η_n(θ_s))²

Test rows are taken in blocks and lanes one after the other, so that memory does not grow with either.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from betacores.divergence import likelihoods
from betacores.models import SoftmaxRegression
from betacores.models.base import LinearPredictor, Model, Rows
from betacores.posteriors.gaussian import gaussian_kl
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Array, Float

BINS = 15
# With 500 draws a block is a matrix of 8 MB.
BLOCK_ROWS = 4096


def measures(
    model: Model, draws: Float[np.ndarray, "lanes s p"] | Float[np.ndarray, "s p"], rows: Rows
) -> dict[str, np.ndarray]:
    """Return how well draws predict rows, by the kind of the model's response.

    Parameters
    ----------
    model
        The model of the rows.
    draws
        Draws of one posterior, or of several.
    rows
        Test rows as the model takes them; binary labels are −1 and +1.

    Returns
    -------
    measures
        One number a posterior: ``log_density`` always, ``accuracy`` and ``calibration_error`` for binary responses,
        ``accuracy`` for several classes, ``rmse`` for real ones of models with a linear predictor.
    """
    _check_rows(model, rows)
    with single_precision():
        each = [_by_row(model, lane, rows) for lane in _several(draws, np.float32)]
    if model.response == "binary":
        found = [_of_labels(parts, np.asarray(rows.y) > 0) for parts in each]
    elif "accuracy" in each[0]:
        found = [{name: parts[name].mean() for name in ("accuracy", "log_density")} for parts in each]
    elif "mean" in each[0]:
        found = [_of_line(parts, np.asarray(rows.y, np.float64)) for parts in each]
    else:
        found = [{"log_density": parts["log_density"].mean()} for parts in each]
    return {name: np.array([one[name] for one in found]) for name in found[0]}


def gaussian_divergence(
    draws: Float[np.ndarray, "lanes s p"] | Float[np.ndarray, "s p"],
    mean: Float[np.ndarray, " p"],
    covariance: Float[np.ndarray, "p p"],
) -> np.ndarray:
    """Return the KL divergence from the Gaussian with the draws' moments to a given one, in double precision.

    Parameters
    ----------
    draws
        Draws of one posterior, or of several; more of each than it has parameters.
    mean, covariance
        Of the Gaussian they are compared with, say the Laplace approximation of the clean rows.

    Returns
    -------
    divergence
        One a posterior. Of S independent draws of the given Gaussian itself it is about `p (p + 3) / (4 S)`, not zero.
    """
    several = _several(draws, np.float64)
    _, s, p = several.shape
    if s <= p:
        raise ValueError(f"draws: {s} draws of {p} parameters have no covariance of full rank; take more than {p}.")
    found = [
        gaussian_kl(lane.mean(0), np.atleast_2d(np.cov(lane, rowvar=False)), mean, np.atleast_2d(covariance))
        for lane in several
    ]
    return np.array(found)


def calibration_error(
    predicted: Float[np.ndarray, " n"], positive: Float[np.ndarray, " n"], bins: int = BINS
) -> np.floating:
    """Return the expected calibration error of predicted probabilities.

    Parameters
    ----------
    predicted
        Probabilities of the positive label.
    positive
        Whether the label was positive.
    bins
        Number of bins of equal width.
    """
    which = np.minimum((np.asarray(predicted, np.float64) * bins).astype(int), bins - 1)
    # share · |mean predicted − observed frequency| = |Σ (predicted − observed)| / n.
    return np.abs(np.bincount(which, np.asarray(predicted, np.float64) - positive, bins)).sum() / len(which)


def _several(draws: np.ndarray, dtype: type) -> Float[np.ndarray, "lanes s p"]:
    thetas: np.ndarray = np.asarray(draws, dtype)
    if thetas.ndim not in (2, 3) or 0 in thetas.shape:
        raise ValueError(f"draws: expected (draws, parameters) or (lanes, draws, parameters), got {thetas.shape}.")
    return thetas if thetas.ndim == 3 else thetas[None]


def _check_rows(model: Model, rows: Rows) -> None:
    if not len(rows.x):
        raise ValueError("rows: expected at least one test row, got none.")
    if (rows.y is None) != (model.response == "none"):
        needs = "no response" if model.response == "none" else "a response"
        raise ValueError(f"rows: the model {model.name!r} takes {needs}; got {'none' if rows.y is None else 'one'}.")
    if model.response == "binary" and not np.isin(rows.y, (-1, 1)).all():
        raise ValueError("rows: labels must be -1 and +1, as `inputs.encode_rows` makes them; got others.")


def _of_labels(parts: dict[str, np.ndarray], positive: np.ndarray) -> dict[str, np.floating]:
    return {
        "accuracy": parts["accuracy"].mean(),
        "log_density": parts["log_density"].mean(),
        "calibration_error": calibration_error(parts["positive"], positive),
    }


def _of_line(parts: dict[str, np.ndarray], y: np.ndarray) -> dict[str, np.floating]:
    return {"rmse": np.sqrt(((parts["mean"] - y) ** 2).mean()), "log_density": parts["log_density"].mean()}


def _by_row(model: Model, thetas: Float[np.ndarray, "s p"], rows: Rows) -> dict[str, np.ndarray]:
    """Return what the measures are made of, in double precision, by blocks of rows of the same length."""
    count = len(rows.x)
    block = min(BLOCK_ROWS, 1 << (count - 1).bit_length())
    parts = []
    for start in range(0, count, block):
        # The last block is filled up by repeating its last row: every length would be a compilation of its own.
        taken = np.minimum(np.arange(start, start + block), count - 1)
        held = Rows(*(None if a is None else np.asarray(a, np.float32)[taken] for a in rows))
        parts.append(jax.tree.map(lambda a: np.asarray(a, np.float64), _block(model, thetas, held)))
    return {name: np.concatenate([part[name] for part in parts])[:count] for name in parts[0]}


@jax.jit
def _block(model: Model, thetas: Float[Array, "s p"], rows: Rows) -> dict[str, Float[Array, " n"]]:
    mean_density = partial(logsumexp, axis=1, b=1 / len(thetas))
    if model.response == "binary":
        up, down = (likelihoods(model, thetas, Rows(rows.x, jnp.full_like(rows.y, y)), None) for y in (1, -1))
        positive = rows.y > 0
        own, other = (jnp.where(positive[:, None], *pair) for pair in ((up, down), (down, up)))
        right = (jnp.sign(own - other) + 1) / 2
        log_density = mean_density(own)
        density = jnp.exp(log_density)
        return {
            "accuracy": right.mean(1),
            "log_density": log_density,
            "positive": jnp.where(positive, density, 1 - density),
        }
    found = {"log_density": mean_density(likelihoods(model, thetas, rows, None))}
    if isinstance(model, SoftmaxRegression):
        codes = (-1.0, 1.0) if model.classes == 2 else range(model.vectors + 1)
        each = [mean_density(likelihoods(model, thetas, Rows(rows.x, jnp.full_like(rows.y, y)), None)) for y in codes]
        found["accuracy"] = (found["log_density"] >= jnp.stack(each).max(0)).astype(rows.x.dtype)
    if model.response == "real" and isinstance(model, LinearPredictor):
        found["mean"] = model.features(rows) @ thetas.mean(0)
    return found
