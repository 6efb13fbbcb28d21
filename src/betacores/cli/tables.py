"""Tables in files, for the command line: CSV and Parquet in; numbers and a response out, or what is wrong in a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")


class Asked(NamedTuple):
    """A table of covariates, with the columns that name groups, and its response."""

    data: pa.Table
    y: np.ndarray | None


def read_file(path: Path) -> pa.Table:
    """Return the table of a file; its ending tells the format."""
    ending = path.suffix.lower()
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder; name a file, CSV or Parquet.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    if ending not in (*DELIMITERS, *PARQUET):
        known = ", ".join((*DELIMITERS, *PARQUET))
        raise ValueError(f"{path}: the ending {ending!r} is not known; it can be {known}.")
    try:
        if ending in PARQUET:
            import pyarrow.parquet as pq

            table = pq.read_table(path)
        else:
            from pyarrow import csv

            table = csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=DELIMITERS[ending]))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"{path}: it cannot be read ({reason}); is it a whole {ending} file?") from error
    twice = [name for name in table.column_names if table.column_names.count(name) > 1]
    if twice:
        raise ValueError(f"{path}: the column {twice[0]!r} is there twice; rename one.")
    if not table.num_rows:
        raise ValueError(f"{path}: it has no rows.")
    return table


def asked_for(table: pa.Table, target: str | None, groups: Sequence[str], drop: Sequence[str]) -> Asked:
    """Return the covariates as numbers, with the columns of groups as they are, and the response.

    Parameters
    ----------
    table
        The whole table.
    target
        The response's column, None for a model without one.
    groups
        Columns that name groups.
    drop
        Columns to leave out.
    """
    for option, names in (("--target", [target] if target else []), ("--groups", groups), ("--drop", drop)):
        for name in names:
            if name not in table.column_names:
                near = ", ".join(map(repr, table.column_names[:10]))
                raise ValueError(f"{option}: there is no column {name!r}; there are {near}.")
    if target in groups or target in drop:
        raise ValueError(f"--target: {target!r} cannot be a group or left out as well.")
    y = None if target is None else _response(table[target], target)
    columns: dict[str, Any] = {}
    for name in table.column_names:
        if name == target or name in drop:
            continue
        columns[name] = table[name] if name in groups else _numbers(table[name], name)
    if len(columns) == len(groups):
        raise ValueError("There is no column left to learn from beside the target, the groups and those left out.")
    return Asked(pa.table(columns), y)


def _numbers(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    _check_complete(column, name)
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.cast(column, pa.float64())
    raise ValueError(
        f"column {name!r}: expected numbers, got {kind} such as {column[0].as_py()!r}; "
        f"encode it as numbers, or leave it out with --drop {name}."
    )


def _response(column: pa.ChunkedArray, name: str) -> np.ndarray:
    _check_complete(column, name)
    values = column.to_numpy()
    return values.astype(str) if values.dtype == object else values


def _check_complete(column: pa.ChunkedArray, name: str) -> None:
    if column.null_count:
        row = int(np.argmax(pc.is_null(column).to_numpy()))
        raise ValueError(
            f"column {name!r}: {column.null_count} cells are missing, the first in row {row}; "
            "fill them, or leave rows or column out."
        )
