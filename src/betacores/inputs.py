"""The door: what a person hands in, checked and turned into what the mathematics takes.

Every check is made before any work begins, and every error says what was received, what was expected and what to do.
"""

from __future__ import annotations

import difflib
import math
import numbers
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from betacores.checks import check_choice
from betacores.models import MODELS, Model, Rows
from betacores.responses import (
    all_numbers,
    check_few_labels,
    distinct_count,
    numeric_response,
    read_response,
    several_labels,
    two_labels,
)
from betacores.sources import ArraySource
from betacores.sources.base import LARGEST_CELL
from betacores.sources.cells import beyond, clipped


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
    _check_not_constant(x, columns)
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


def read_table(data: Any) -> tuple[np.ndarray, list[str]]:
    """Return a table of finite numbers and its column names."""
    if data is None or isinstance(data, (str, bytes)):
        raise TypeError(f"data: expected a table of numbers (array or DataFrame), got {data!r}.")
    names, table = _frame(data)
    if names is None:
        if isinstance(data, np.ma.MaskedArray) and data.mask.any():
            data = np.where(np.ma.getmaskarray(data), np.nan, np.ma.getdata(data).astype(np.float64))
        table = np.asarray(data)
        if table.ndim != 2:
            hint = " For one column use data.reshape(-1, 1)." if table.ndim == 1 else ""
            raise ValueError(f"data: expected two dimensions (rows, columns), got shape {table.shape}.{hint}")
        names = [f"x{i}" for i in range(table.shape[1])]
        table = _numbers(table, names)
    rows, columns = table.shape
    if rows < 2 or columns < 1:
        raise ValueError(f"data: expected at least two rows and one column, got {rows} rows and {columns} columns.")
    _check_finite(table, names)
    return table, names


def is_device_array(data: Any) -> bool:
    """Return whether an array is JAX's."""
    return isinstance(data, jax.Array)


def is_frame(data: Any) -> bool:
    """Return whether a table is a DataFrame: pandas, polars, pyarrow."""
    if isinstance(data, np.ndarray) or is_device_array(data):
        return False
    import narwhals.stable.v2 as nw

    return isinstance(nw.from_native(data, eager_only=True, pass_through=True), nw.DataFrame)


def named_response(data: Any, y: Any, target: str | None, groups: Any = None) -> tuple[Any, Any, str | None]:
    """Return the table without its response, the response, and its name if it has one.

    Parameters
    ----------
    data, y
        The table, and the response if it is no column of it.
    target
        The column of the response otherwise.
    groups
        As of `summarize`: a column cannot be both.
    """
    if target is None and (y is None or isinstance(y, np.ndarray) or is_device_array(y)):
        return data, y, None
    import narwhals.stable.v2 as nw

    if target is None:
        series = nw.from_native(y, series_only=True, pass_through=True)
        called = isinstance(series, nw.Series) and isinstance(series.name, str) and series.name
        return data, y, series.name if called else None
    if y is not None:
        raise ValueError(f"target: the response was given as y already; leave out y, or target={target!r}.")
    if not is_frame(data):
        raise ValueError(f"target: {target!r} names a column, and data has no names; pass a DataFrame, or y.")
    frame = nw.from_native(data, eager_only=True)
    if target not in frame.columns:
        columns = [str(name) for name in frame.columns]
        near = difflib.get_close_matches(str(target), columns, n=3) or columns[:10]
        raise ValueError(f"target: data has no column {target!r}; it has {', '.join(map(repr, near))}.")
    named = [groups] if isinstance(groups, str) else [name for name in frame.columns if _among(name, groups)]
    # A list of words may be labels of rows, one of which is the name of a column by chance.
    if target in named and (isinstance(groups, str) or len(named) == len(groups)):
        raise ValueError(f"target: {target!r} names groups as well; a column is the response or names groups.")
    return frame.drop([target]).to_native(), frame[target].to_native(), str(target)


def _among(name: str, groups: Any) -> bool:
    return isinstance(groups, (list, tuple)) and any(isinstance(one, str) and one == name for one in groups)


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
    return MODELS["linear"](), f"model: 'linear', since the response has {values} values"


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
    _check_prior(bound, len(columns))
    return bound


def told_of_large_cells(count: int) -> list[str]:
    """Return what to say of cells that are too large."""
    if not count:
        return []
    return [
        f"{count} cells beyond ±{LARGEST_CELL:g} were computed with as ±{LARGEST_CELL:g}; "
        "the rows are kept as given. If they are not errors, rescale the columns."
    ]


def _frame(data: Any) -> tuple[list[str] | None, np.ndarray]:
    """Return names and numbers of a pandas or polars DataFrame; no names if it is something else."""
    if not is_frame(data):
        return None, np.empty((0, 0))
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, eager_only=True)
    names = [str(name) for name in frame.columns]
    columns = []
    for name, series in zip(names, frame.iter_columns(), strict=True):
        present = series.drop_nulls()
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            raise ValueError(_not_numeric(name, present[0] if len(present) else None))
        column = np.full(len(series), np.nan)
        column[~series.is_null().to_numpy()] = present.to_numpy()
        columns.append(column)
    return names, np.column_stack(columns) if columns else np.empty((len(frame), 0))


def _numbers(table: np.ndarray, names: list[str]) -> np.ndarray:
    if table.dtype in (np.float32, np.float64):
        return table
    if table.dtype.kind in "fiub":
        return table.astype(np.float64)
    if table.dtype.kind == "c":
        raise ValueError("data: complex numbers cannot be summarised; pass real and imaginary parts as columns.")
    for j, name in enumerate(names):
        for value in table[:, j].tolist():
            if isinstance(value, (str, bytes)) or not isinstance(value, (numbers.Real, type(None))):
                raise ValueError(_not_numeric(name, value))
    return np.array([[math.nan if v is None else float(v) for v in row] for row in table.tolist()]).reshape(table.shape)


def _not_numeric(name: str, value: Any) -> str:
    return (
        f"data: column {name!r} is not numeric (it holds {value!r}); encode it as numbers, one-hot for categories, or "
        "leave it out. bc.make_robust_preprocessor().fit_transform(data) does so, and the estimators, such as "
        "bc.CoresetSelector, take the table as it is."
    )


def _check_prior(model: Model, columns: int) -> None:
    parameters = model.parameter_count(columns)
    for part in getattr(model, "prior", None) or ():
        if np.ndim(part) and len(part) != parameters:
            raise ValueError(f"prior: it is for {len(part)} parameters, the model has {parameters} for these columns.")


def _check_finite(table: np.ndarray, names: list[str]) -> None:
    # Extremes are not finite if a cell is not, and need no second table.
    if np.isfinite(table.min()) and np.isfinite(table.max()):
        return
    bad = ~np.isfinite(table)
    row, column = np.argwhere(bad)[0]
    raise ValueError(
        f"data: row {row}, column {names[column]!r} is {table[row, column]} ({bad.sum()} such cells in all, in "
        f"{bad.any(1).sum()} rows); drop those rows or fill the cells: bc.make_robust_preprocessor() fills them and "
        "tells where, and so do the estimators, such as bc.CoresetSelector."
    )


def _check_not_constant(table: np.ndarray, names: list[str]) -> None:
    # Few columns are constant over the first rows, and only those have to be looked at whole.
    suspects = np.flatnonzero((table[:1000] == table[0]).all(0))
    constant = np.array([j for j in suspects if (table[:, j] == table[0, j]).all()], int)
    complain_of_constant(names, constant, table[0], "drop")


def complain_of_constant(names: list[str], constant: np.ndarray, values: np.ndarray, remedy: str) -> None:
    """Complain of columns, by their numbers, that hold one value each; `remedy` says what to do with them."""
    if constant.size:
        listed = ", ".join(f"{names[j]!r} (always {values[j]:g})" for j in constant[:5])
        more = f" and {constant.size - 5} more" if constant.size > 5 else ""
        raise ValueError(f"data: constant columns say nothing about rows; {remedy} {listed}{more}.")
