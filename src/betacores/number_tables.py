"""Tables of numbers, from arrays and DataFrames: their names, and every cell checked.

What is not a number, not finite, or the same in every row is refused, with its place and what to do.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import jax
import numpy as np


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


def check_not_constant(table: np.ndarray, names: list[str]) -> None:
    """Complain of columns of one value."""
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
