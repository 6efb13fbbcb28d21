"""What comes in: tables told apart, responses checked, columns that name groups taken out, rows taken from anything."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse

from betacores.groups import Groups, read_groups
from betacores.responses import is_missing
from betacores.tables.reading import as_frame


def take_groups(data: Any, groups: Any) -> tuple[Any, Groups | None, list[str]]:
    """Return the table without the columns that name groups, the groups, and those columns' names."""
    if groups is None:
        return data, None, []
    found, rest = read_groups(groups, data, len(data))
    kept = set(column_names(rest))
    return rest, found, [name for name in column_names(data) if name not in kept]


def without(data: Any, names: list[str]) -> Any:
    """Return a frame without some columns, if it has them."""
    there = [name for name in names if name in column_names(data)]
    return nw.from_native(data, eager_only=True).drop(there).to_native() if there else data


def is_plain(data: Any) -> bool:
    """Return whether a table holds nothing but finite numbers and truth values, and can be taken as it is.

    What is no table at all is plain too: scikit-learn has words for it.
    """
    frame = as_frame(data)
    if frame is not None:
        return all(_plain_column(series) for series in frame.iter_columns())
    if scipy.sparse.issparse(data):
        return True
    try:
        cells = np.asarray(data)
    except ValueError:
        return True
    if cells.ndim != 2 or not cells.size:
        return True
    if cells.dtype.kind in "OUST":
        try:
            cells = cells.astype(np.float64)
        except (TypeError, ValueError):
            return False
    return not (np.ma.is_masked(data) or (cells.dtype.kind == "f" and not _finite(cells)))


def take_response(y: Any) -> tuple[Any, str | None]:
    """Return a response as scikit-learn takes it, and its name if it has one; or say which rows have none."""
    series = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(series, nw.DataFrame):
        return y, str(series.columns[0]) if len(series.columns) == 1 else None
    if not isinstance(series, nw.Series):
        # A list of words and NaN would become words altogether.
        cells = np.array(y, object) if isinstance(y, (list, tuple)) and np.ndim(y) == 1 else np.asarray(y)
        _check_responses(_missing(cells))
        return y, None
    name = str(series.name) if series.name not in (None, "") else None
    _check_responses(series.is_null().to_numpy().astype(bool))
    if series.dtype == nw.Boolean:
        return series.to_numpy().astype(bool), name
    cells = np.asarray(y)
    _check_responses(_missing(cells))
    return cells, name


def take_rows(data: Any, rows: np.ndarray) -> Any:
    """Return some rows of a frame, series, array or list: of the same kind, names kept."""
    native = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, (nw.DataFrame, nw.Series)):
        return native[rows.tolist()].to_native()
    return np.asarray(data)[rows]


def column_names(data: Any) -> list[str]:
    """Return the names of a frame's columns; none if it is something else."""
    frame = as_frame(data)
    return [] if frame is None else [str(name) for name in frame.columns]


def _plain_column(series: Any) -> bool:
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean) or series.null_count():
        return False
    return not series.dtype.is_float() or _finite(series.to_numpy())


def _finite(cells: np.ndarray) -> bool:
    # Extremes are not finite if a cell is not, and need no second table.
    return not cells.size or bool(np.isfinite(cells.min()) and np.isfinite(cells.max()))


def _missing(cells: np.ndarray) -> np.ndarray:
    if cells.dtype.kind == "f" and cells.ndim == 1:
        return np.isnan(cells)
    if cells.dtype.kind == "O" and cells.ndim == 1:
        return np.array([is_missing(cell) for cell in cells], bool)
    return np.zeros(1, bool)


def _check_responses(missing: np.ndarray) -> None:
    if missing.any():
        raise ValueError(
            f"y: Input y contains NaN or other missing values, the first in row {missing.argmax()} ({missing.sum():,} "
            "in all); drop these rows, since a response cannot be made up."
        )
