"""The new rows of a stream, brought into the columns of before: tables in memory, files, and Dask collections.

Columns that have names are found by them. Files of no more than one block of rows are read, since a day of few rows is
looked at more closely; larger ones, and collections, stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.coreset import Coreset
from betacores.examination import check_held
from betacores.number_tables import is_device_array, is_frame
from betacores.opening import is_dask, opened, stays
from betacores.responses import named_response, read_response
from betacores.sources.base import BLOCK_ROWS

if TYPE_CHECKING:
    from betacores.sources.reader import Reader


class NewRows(NamedTuple):
    """New rows with their columns in the order of before.

    Attributes
    ----------
    data, y
        What to summarise; a response in a file or collection is named in ``reading``.
    rows
        How many there are; None if nobody knows yet.
    reading
        How to read them where they are: arguments of `betacores.summarize`.
    columns
        What their columns are called, if they have no names of their own.
    """

    data: Any
    y: Any
    rows: int | None
    reading: dict[str, Any]
    columns: list[str] | None


def new_rows(present: Coreset, data: Any, y: Any, target: str | None, how: dict[str, Any]) -> NewRows:
    """Return new rows as they are to be summarised; takes what says how to read them out of the settings."""
    groups, columns, filter = how.get("groups"), how.pop("columns", None), how.pop("filter", None)
    if present.y is not None and y is None and target is None:
        raise ValueError(f"y: the model {present.model.name!r} needs a response; pass y, one value a row, or target=.")
    if is_dask(data):
        return _on_cluster(present, data, y, target, columns, filter)
    # A memory map is an array as any other, and is not read before it is looked at.
    if stays(data) and not isinstance(data, np.memmap):
        reader = _reader(present, data, y, target, columns, filter, groups)
        if reader.row_count > BLOCK_ROWS:
            named = hasattr(reader, "schema")
            reading = {"target": target, "filter": filter, "columns": reader.columns if named else None}
            return NewRows(data, y, reader.row_count, reading, list(present.columns))
        held = reader.table()
        check_held(reader, held, present.model)
        data, y = held if isinstance(held, tuple) else (held, None)
    else:
        for name, value in (("columns", columns), ("filter", filter)):
            if value is not None:
                raise ValueError(f"{name}: it is for files; choose the columns and rows of a table before.")
    data, y, _ = named_response(data, y, target, groups)
    data, names = _aligned(data, present, groups)
    rows = len(data) if hasattr(data, "__len__") else None
    if rows == 0 and y is not None:
        read_response(y, 0)
    if rows == 1 and is_device_array(data):
        data = np.asarray(data)
    return NewRows(data, y, rows, {}, names)


def _on_cluster(present: Coreset, data: Any, y: Any, target: str | None, columns: Any, filter: Any) -> NewRows:
    reading: dict[str, Any] = {"target": target, "filter": filter, "columns": columns}
    if hasattr(data, "columns"):
        names = [str(name) for name in (columns or data.columns) if name != target]
        _check_names(names, names, present, "columns")
        reading["columns"] = list(present.columns)
    else:
        _check_width(data.shape[1], present)
    return NewRows(data, y, None, reading, list(present.columns))


def _reader(present: Coreset, data: Any, y: Any, target: str | None, columns: Any, filter: Any, groups: Any) -> Reader:
    """Return who reads files, with the columns in the order of before."""
    reader = opened(data, y, target, columns, filter, groups)
    schema = getattr(reader, "schema", None)
    if schema is None:
        _check_width(len(reader.columns), present)
        return reader
    # Folders may name columns too, which are covariates only if somebody says so, as somebody did before.
    held = reader.columns if columns is not None else [name for name in schema.names if name != target]
    _check_names(held, reader.columns, present, "columns")
    if reader.columns == present.columns:
        return reader
    return opened(data, y, target, list(present.columns), filter, groups)


def _aligned(data: Any, present: Coreset, groups: Any) -> tuple[Any, list[str] | None]:
    """Return a table with columns as those before, and the names of columns if it has none."""
    if isinstance(data, (np.ndarray, list, tuple)):
        table = np.asarray(data)
        if table.ndim == 2:
            _check_width(table.shape[1], present)
        return table, list(present.columns)
    if not is_frame(data):
        return data, None
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, eager_only=True)
    names = [str(name) for name in frame.columns]
    grouped = [groups] if isinstance(groups, str) else list(groups) if isinstance(groups, (list, tuple)) else []
    _check_names(names, [name for name in names if name not in grouped], present)
    order = [frame.columns[names.index(name)] for name in present.columns]
    return frame.select(order + [name for name in frame.columns if str(name) in grouped]).to_native(), None


def _check_width(columns: int, present: Coreset) -> None:
    if columns != len(present.columns):
        raise ValueError(f"data: expected the {len(present.columns)} columns of before, got {columns}.")


def _check_names(held: Sequence[str], taken: Sequence[str], present: Coreset, argument: str | None = None) -> None:
    """Complain of columns that are missing among those held, or are new among those taken."""
    before = f"pass the columns of before: {', '.join(present.columns)}"
    for name in (name for name in present.columns if name not in held):
        raise ValueError(f"data: the new rows have no column {name!r}; {before}.")
    for name in (name for name in taken if name not in present.columns):
        remedy = before if argument is None else f"pass {argument}={list(present.columns)}"
        raise ValueError(
            f"data: the new rows have a column that was not there before, {name!r}; {remedy}, or groups={name!r} too "
            "if it names groups."
        )
