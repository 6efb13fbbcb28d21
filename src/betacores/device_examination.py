"""The first look at a table on an accelerator, taken there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.examination import Findings, check_size, settle, wanted_response
from betacores.inputs import Problem
from betacores.responses import MOST_LABELS
from betacores.sources.base import LARGEST_CELL
from betacores.sources.device import DeviceSource, as_taken, extremes

if TYPE_CHECKING:
    from jaxtyping import Array

    from betacores.models import Model


def examined_on_device(x: Any, y: Any, model: str | Model) -> Problem:
    """Return the problem of arrays on an accelerator, with a response of numbers or without."""
    if x.ndim != 2 or (y is not None and y.shape != x.shape[:1]):
        got = "" if y is None else f" and {y.shape}"
        raise ValueError(f"data: expected rows and columns, and one response a row, got shapes {x.shape}{got}.")
    columns = [f"x{j}" for j in range(x.shape[1])]
    check_size(len(x), columns)
    low, high = (np.asarray(a, np.float64) for a in extremes(x))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        column = int(np.argmax(~np.isfinite(low) | ~np.isfinite(high)))
        row = int(jnp.argmax(~jnp.isfinite(x[:, column])))
        raise ValueError(f"data: row {row}, column {columns[column]!r} is {x[row, column]}; drop or fill such cells.")
    beyond = 0
    if max(-low.min(), high.max()) > LARGEST_CELL:
        beyond = int((jnp.abs(x) > LARGEST_CELL).sum())
    values, words = (None, None) if y is None else (_values(y, wanted_response(model)), False)
    settled = settle(columns, Findings(low, high, values, words, beyond), model)
    rows = x if x.dtype == jnp.float32 and not beyond else as_taken(x)
    response = None if y is None else _encoded(jnp.asarray(y), settled.labels)
    return Problem(settled.model, DeviceSource(rows, response, columns, y), None, None, settled.labels, settled.notes)


def _values(y: Any, response: str) -> np.ndarray | None:
    """Return the response's different values, in order; None if there are many."""
    values = jnp.asarray(y)
    low, high, two, whole, finite = (np.asarray(part) for part in _told(values))
    if not finite:
        row = int(jnp.argmax(~jnp.isfinite(values)))
        raise ValueError(f"y: row {row} is {values[row]}; drop or replace it.")
    if (response == "count" and (low < 0 or not whole)) or (response == "positive" and low <= 0):
        expected = "counts: whole numbers, 0 or more" if response == "count" else "numbers above 0"
        raise ValueError(f"y: expected {expected}; the smallest is {low}. Drop others, or choose another model.")
    if two:
        return np.unique(np.array([low, high]))
    # Sorting a billion numbers to count them would take longer than all the rest; whole ones in a short range do not.
    if whole and float(high) - float(low) <= MOST_LABELS:
        places = (values - low).astype(jnp.int32)
        counts = np.asarray(jnp.bincount(places, length=int(high) - int(low) + 1))
        return (np.flatnonzero(counts) + int(low)).astype(np.asarray(low).dtype)
    return None


@jax.jit
def _told(y: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return the extremes of the response, and whether there are no others, all are whole numbers, all are finite."""
    low, high = y.min(), y.max()
    return low, high, ((y == low) | (y == high)).all(), (y == jnp.floor(y)).all(), jnp.isfinite(y).all()


def _encoded(y: Any, labels: np.ndarray | None) -> Any:
    if labels is None:
        return as_taken(y)
    if len(labels) == 2:
        return jnp.where(y == labels[1], 1.0, -1.0).astype(jnp.float32)
    return jnp.searchsorted(jnp.asarray(labels), y).astype(jnp.float32)
