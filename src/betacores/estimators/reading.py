"""What comes in: frames checked column by column, columns that name groups taken out, rows taken from anything."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from betacores.groups import read_groups


def take_groups(data: Any, groups: Any) -> tuple[Any, list[Any] | None, list[str]]:
    """Return the table without the columns that name groups, a label for every row, and those columns' names."""
    if groups is None:
        return data, None, []
    found, rest = read_groups(groups, data, len(data))
    kept = set(_names(rest))
    return rest, [found.labels[code] for code in found.codes], [name for name in _names(data) if name not in kept]


def without(data: Any, names: list[str]) -> Any:
    """Return a frame without some columns, if it has them."""
    there = [name for name in names if name in _names(data)]
    return nw.from_native(data, eager_only=True).drop(there).to_native() if there else data


def check_numeric(data: Any) -> None:
    """Name the first column of a frame that does not hold numbers."""
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return
    for name, series in zip(frame.columns, frame.iter_columns(), strict=True):
        if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
            present = series.drop_nulls()
            held = repr(present[0]) if len(present) else "nothing"
            raise ValueError(
                f"X: column {str(name)!r} is not numeric (it holds {held}); encode it as numbers, one-hot for "
                "categories, or leave it out."
            )


def take_rows(data: Any, rows: np.ndarray) -> Any:
    """Return some rows of a frame, series, array or list: of the same kind, names kept."""
    native = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, (nw.DataFrame, nw.Series)):
        return native[rows.tolist()].to_native()
    return np.asarray(data)[rows]


def _names(data: Any) -> list[str]:
    return [str(name) for name in getattr(data, "columns", [])]
