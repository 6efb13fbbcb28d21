"""Statistics that a few wild cells do not move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from jaxtyping import Float

# The scatter is sought on so many rows, with so many steps; cells beyond so many scales are brought in.
SCATTER_ROWS, CONCENTRATIONS, FARTHEST, RIDGE = 5000, 15, 1e6, 1e-6


def quantiles(x: Float[np.ndarray, "rows ..."], shares: tuple[float, ...]) -> Float[np.ndarray, "shares ..."]:
    """Return quantiles of every column, linear between cells, as NumPy's own are.

    Those are sought one by one in columns that are not laid side by side; one sort of columns that are is many times
    quicker.
    """
    ordered = np.sort(np.ascontiguousarray(np.transpose(x)), axis=-1)
    places = (ordered.shape[-1] - 1) * np.asarray(shares)
    low, high = np.floor(places).astype(int), np.ceil(places).astype(int)
    below, above = ordered[..., low], ordered[..., high]
    with np.errstate(invalid="ignore"):
        between = below + (places - low) * (above - below)
    return np.moveaxis(np.where(above == below, below, between), -1, 0).astype(ordered.dtype)


def medians(x: Float[np.ndarray, "rows ..."]) -> Float[np.ndarray, " ..."]:
    """Return the median of every column."""
    return quantiles(x, (0.5,))[0]


def robust_location_scale(
    x: Float[np.ndarray, "rows columns"],
) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, " columns"]]:
    """Return each column's median and robust scale.

    The scale is 1.4826 times the median absolute deviation. Where more than half of the cells are equal that is zero,
    and 1.2533 times the mean absolute deviation from the median takes its place; constant columns get scale 1. Both
    factors make it the standard deviation of normal cells.
    """
    x = np.asarray(x, np.float64)
    centre = medians(x)
    away = np.abs(x - centre)
    scale = 1.4826 * medians(away)
    scale = np.where(scale > 0, scale, 1.2533 * away.mean(0))
    return centre, np.where(scale > 0, scale, 1.0)


def robust_scatter(
    x: Float[np.ndarray, "rows columns"],
) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, "columns columns"]]:
    """Return a location and a covariance that fewer than half of the rows do not move.

    The half of the rows with the smallest covariance is sought, by concentration steps from two starts, columns brought
    in and columns apart; then the rows that are near by that measure are taken. Distances are scaled by their median,
    to make it the covariance of normal rows. A small ridge keeps it definite.

    Reference: Hubert, Rousseeuw and Verdonck, "A deterministic algorithm for robust location and scatter", Journal of
    Computational and Graphical Statistics 21 (2012).
    """
    x = np.asarray(x, np.float64)[:: max(len(x) // SCATTER_ROWS, 1)]
    middle, unit = robust_location_scale(x)
    u = np.clip((x - middle) / unit, -FARTHEST, FARTHEST)
    rows, columns = u.shape
    ridge = RIDGE * np.eye(columns)
    brought_in = np.clip(u, -2.0, 2.0)
    starts = [np.eye(columns), np.cov(brought_in.T).reshape(columns, columns) + ridge]
    half = min((rows + columns + 1) // 2, rows)
    found = [_concentrated(u, scatter, half, ridge) for scatter in starts]
    centre, scatter = min(found, key=lambda fit: np.linalg.slogdet(fit[1])[1])
    distances = _distances(u, centre, scatter)
    scatter = scatter * max(np.median(distances) / (2 * special.gammaincinv(columns / 2, 0.5)), RIDGE)
    near = _distances(u, centre, scatter) <= 2 * special.gammaincinv(columns / 2, 0.99)
    if near.sum() > 2 * columns:
        centre, scatter = u[near].mean(0), np.cov(u[near].T).reshape(columns, columns) + ridge
    return middle + unit * centre, scatter * unit * unit[:, None]


def _concentrated(
    u: Float[np.ndarray, "rows columns"], scatter: Float[np.ndarray, "columns columns"], half: int, ridge: np.ndarray
) -> tuple[Float[np.ndarray, " columns"], Float[np.ndarray, "columns columns"]]:
    centre = np.zeros(u.shape[1])
    for _ in range(CONCENTRATIONS):
        nearest = np.argpartition(_distances(u, centre, scatter), half - 1)[:half]
        centre, scatter = u[nearest].mean(0), np.cov(u[nearest].T).reshape(scatter.shape) + ridge
    return centre, scatter


def _distances(u: np.ndarray, centre: np.ndarray, scatter: np.ndarray) -> Float[np.ndarray, " rows"]:
    return np.square(np.linalg.solve(np.linalg.cholesky(scatter), (u - centre).T)).sum(0)
