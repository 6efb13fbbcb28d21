"""The door: what a person hands in, checked and turned into what the mathematics takes.

Every check is made before any work begins, and every error says what was received, what was expected and what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from betacores.checks import check_choice
from betacores.models import MODELS, Model, Rows
from betacores.models.prior import check_length
from betacores.number_tables import check_not_constant, read_table
from betacores.responses import (
    FEW_LABELS,
    all_numbers,
    check_few_labels,
    distinct_count,
    numeric_response,
    read_response,
    several_labels,
    two_labels,
)
from betacores.sources import ArraySource
from betacores.sources.cells import beyond, clipped, told_of_large_cells


@dataclass(frozen=True)
class Problem:
    """Checked input: the rows as given, the rows as the model takes them, and what was done to them.

    Of a table that stays where it is there are no rows as given: `source` finds them again.
    """

    model: Model
    source: Any
    x: Any
    y: np.ndarray | None
    labels: np.ndarray | None
    notes: tuple[str, ...]

    @property
    def weight(self) -> float | None:
        """How many rows the rows stand for in all; None if it is one for each."""
        weights = getattr(self.source, "weights", None)
        return None if weights is None or (weights == 1).all() else float(weights.sum(dtype=np.float64))


def read_problem(data: Any, y: Any, model: str | Model, weights: Any = None) -> Problem:
    """Check a table, its response and the weights of its rows, and choose the model if that was left open."""
    x, columns = read_table(data)
    weights = read_weights(weights, len(x))
    response = None if y is None else read_response(y, len(x))
    if response is None or model != "auto":
        model, note = chosen_model(model, None)
    else:
        words = not all_numbers(response)
        if words:
            check_few_labels(response)
        model, note = chosen_model(model, distinct_count(response), words=words)
    labels = None
    if response is not None and model.response in ("binary", "classes"):
        labels = two_labels(response) if model.response == "binary" else several_labels(response)
    check_not_constant(x, columns)
    model = bound_model(model, columns, labels, x, has_response=response is not None)
    large = beyond(x)
    if response is not None and labels is None:
        response = numeric_response(response, model.response)
        large += beyond(response)
    notes = [*([note] if note else []), *told_of_large_cells(large)]
    rows = encode_rows(x, response, labels)
    model.check(rows)
    return Problem(model, ArraySource(rows.x, rows.y, columns, weights), x, response, labels, tuple(notes))


def encode_rows(x: np.ndarray, y: np.ndarray | None, labels: np.ndarray | None) -> Rows:
    """Return rows as given turned into rows as the model takes them.

    Two labels become −1 and +1, more become their places.
    """
    if y is None or labels is None:
        return Rows(clipped(x), None if y is None else clipped(y))
    if len(labels) > 2:
        return Rows(clipped(x), np.searchsorted(labels, y).astype(np.float32))
    return Rows(clipped(x), np.where(y == labels[1], np.float32(1), np.float32(-1)))


def read_weights(weights: Any, rows: int) -> np.ndarray | None:
    """Return how many rows each row stands for; None if it is one, for all of them."""
    if weights is None:
        return None
    counts = np.asarray(weights)
    if counts.shape != (rows,):
        raise ValueError(
            f"sample_weight: expected one number for each of the {rows} rows of data, got shape {counts.shape}."
        )
    if counts.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight: expected numbers, got {counts.ravel()[:1].tolist()[0]!r}.")
    if not (np.isfinite(counts).all() and counts.min() >= 0):
        row = int((~np.isfinite(counts) | (counts < 0)).argmax())
        raise ValueError(f"sample_weight: expected finite numbers, 0 or more; row {row} has {counts[row]}.")
    if not counts.any():
        raise ValueError("sample_weight: every weight is zero; at least some rows must count.")
    return None if (counts == 1).all() else counts.astype(np.float32)


def chosen_model(model: str | Model, values: int | None, *, words: bool = False) -> tuple[Model, str]:
    """Return the model asked for, or one for a response of so many values or words, and what to say of the choice."""
    if isinstance(model, Model):
        return model, ""
    if model != "auto":
        return MODELS[check_choice("model", model, MODELS)](), ""
    if values is None:
        return MODELS["gaussian-mean"](), "model: 'gaussian-mean', since no response was given"
    if values == 2:
        return MODELS["logistic"](), "model: 'logistic', since the response has two values"
    if words:
        return MODELS["softmax"](), f"model: 'softmax', since the response has {values} labels"
    remedy = "; choose model='softmax' if they are codes of classes" if values <= FEW_LABELS else ""
    return MODELS["linear"](), f"model: 'linear', since the response has {values} values{remedy}"


def bound_model(
    model: Model, columns: list[str], labels: np.ndarray | None, x: np.ndarray | None, *, has_response: bool
) -> Model:
    """Return the model for a table, after checking that one fits the other; without `x`, its cells have been."""
    if has_response and model.response == "none":
        raise ValueError(f"y: the model {model.name!r} has no response; leave y out, or choose another model.")
    if not has_response and model.response != "none":
        raise ValueError(f"y: the model {model.name!r} needs a response; pass y, one value a row.")
    bound = model.bound(columns, labels)
    bound = bound if x is None else bound.check_rows(x, columns)
    check_length(getattr(bound, "prior", None), bound.parameter_count(len(columns)))
    return bound
