"""The response: found in the table or beside it, one value a row, checked, and told to be numbers, counts or labels."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from betacores.number_tables import is_device_array, is_frame

# A response of more labels is hardly one of classes; words of more kinds are not taken for classes unasked.
MOST_LABELS, FEW_LABELS = 1000, 20


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


def read_response(y: Any, rows: int) -> np.ndarray:
    """Return the response as a vector, one value a row."""
    response = np.asarray(y)
    if response.ndim == 2 and response.shape[1] == 1:
        response = response[:, 0]
    if response.ndim != 1 or len(response) != rows:
        raise ValueError(f"y: expected one value for each of the {rows} rows of data, got shape {response.shape}.")
    if response.dtype.kind in "iub":
        return response
    if response.dtype.kind == "f":
        missing = np.isnan(response)
    else:
        missing = np.array([is_missing(v) for v in response.tolist()])
    if missing.any():
        raise ValueError(
            f"y: row {int(missing.argmax())} is missing ({missing.sum()} in all); drop or fill these rows."
        )
    if response.dtype.kind == "f" and np.isinf(response).any():
        row = int(np.isinf(response).argmax())
        raise ValueError(f"y: row {row} is {response[row]}; drop or replace it.")
    return response


def numeric_response(response: np.ndarray, kind: str) -> np.ndarray:
    """Return a response of numbers, after checking that they are of the kind that the model describes."""
    if not all_numbers(response):
        words = [v for v in response.tolist() if not isinstance(v, numbers.Real)]
        raise ValueError(
            f"y: expected numbers, got {words[0]!r}; for two labels choose model='logistic', for more 'softmax'."
        )
    if response.dtype.kind not in "fiub":
        response = response.astype(np.float64)
    check_numbers(response, kind, lambda row: f"row {row}")
    return response


def check_numbers(response: np.ndarray, kind: str, where: Callable[[int], str]) -> None:
    """Check that numbers are of the kind that a model describes.

    Parameters
    ----------
    response, kind
        The numbers, and what they should be; see `betacores.models.base.Response`.
    where
        Says what to call a row.
    """
    if kind == "count":
        wrong = (response < 0) | (response != np.floor(response))
        expected, remedy = "counts: whole numbers, 0 or more", "choose model='linear' for other numbers"
    elif kind == "positive":
        wrong = response <= 0
        expected, remedy = "numbers above 0", "drop these rows, or choose model='linear'"
    else:
        return
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"y: expected {expected}; {where(row)} is {response[row]:g} ({wrong.sum()} such rows in all); {remedy}."
        )


def two_labels(response: np.ndarray) -> np.ndarray:
    """Return the two values of a response, in order."""
    if response.dtype.kind in "iubf" and distinct_count(response) == 2:
        return np.array([response.min(), response.max()], response.dtype)
    labels = _label_values(response)
    if len(labels) != 2:
        shown = ", ".join(repr(v) for v in labels[:5].tolist())
        remedy = (
            "rows of both classes are needed"
            if len(labels) < 2
            else "choose model='softmax' for several labels, 'linear' for a real response"
        )
        raise ValueError(f"y: expected two label values, got {len(labels)}: {shown}; {remedy}.")
    return labels


def several_labels(response: np.ndarray) -> np.ndarray:
    """Return the values of a response, two or more, in order."""
    labels = _label_values(response)
    if len(labels) < 2:
        raise ValueError(f"y: expected two label values or more, got one: {labels[0]!r}; rows of others are needed.")
    if len(labels) > MOST_LABELS:
        raise ValueError(
            f"y: {len(labels)} different labels are too many (at most {MOST_LABELS}); choose model='linear' for a real "
            "response, or put rare labels together."
        )
    return labels


def _label_values(response: np.ndarray) -> np.ndarray:
    try:
        return np.unique(response)
    except TypeError:
        raise TypeError("y: the label values are of different types; use one type, strings or numbers.") from None


def check_few_labels(response: np.ndarray) -> None:
    """Refuse words of so many kinds that they are hardly classes, unless the model was named."""
    kinds = distinct_count(response)
    if kinds > FEW_LABELS:
        shown = ", ".join(map(repr, sorted(set(map(str, response.tolist())))[:3]))
        raise ValueError(
            f"y: expected numbers, or words of at most {FEW_LABELS} kinds, got {kinds} different ones, such as "
            f"{shown}; put rare ones together, or say model='softmax' if they are classes."
        )


def all_numbers(response: np.ndarray) -> bool:
    """Return whether every value is a number."""
    return response.dtype.kind in "fiub" or all(isinstance(v, numbers.Real) for v in response.tolist())


def distinct_count(y: np.ndarray) -> int:
    """Return the number of different values."""
    if y.dtype.kind not in "iubf":
        return len(set(y.tolist()))
    low, high = y.min(), y.max()
    # Two labels are told without sorting a million of them.
    if np.all((y == low) | (y == high)):
        return 1 + int(low != high)
    return len(np.unique(y))


def is_missing(value: Any) -> bool:
    """Return whether a cell holds nothing: None, NaN, NaT, pandas.NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        # pandas.NA will not be compared.
        return True


def _among(name: str, groups: Any) -> bool:
    return isinstance(groups, (list, tuple)) and any(isinstance(one, str) and one == name for one in groups)
