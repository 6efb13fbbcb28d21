"""Tables that stay where they are: paths, memory maps, Dask collections. Which kind it is, and who reads it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from betacores.sources.reader import Reader


def stays(data: Any) -> bool:
    """Return whether data is not a table itself but says where one is."""
    if isinstance(data, (str, os.PathLike, np.memmap)):
        return True
    if isinstance(data, (list, tuple)):
        # A list of nothing is no table either: whoever opens it says so.
        return all(isinstance(one, (str, os.PathLike)) for one in data)
    return is_dask(data)


def is_dask(data: Any) -> bool:
    """Return whether data is a Dask DataFrame or Array, without importing Dask."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(data, "dask")


def opened(data: Any, y: Any, target: str | None, columns: Any, filter: Any, groups: Any = None) -> Reader:
    """Return who reads a table on disk.

    Parameters
    ----------
    data
        A path, several, or a memory map.
    y
        The response, if it is no column of the table.
    target, columns, filter
        For Parquet: the column of the response, the covariates, and which rows are meant.
    groups
        For Parquet, and tables that are read into memory: the column of the groups, or several.
    """
    if isinstance(data, np.memmap) or (not isinstance(data, (list, tuple)) and _ending(data) in (".npy", ".npz")):
        for name, value in (("target", target), ("columns", columns), ("filter", filter)):
            if value is not None:
                raise ValueError(f"{name}: an array has no names; pass y, an array or its path.")
        from betacores.sources.npy import NpyReader

        return NpyReader(data, y)
    if not isinstance(data, (list, tuple)) and _ending(data) in (".csv", ".tsv", ".gz", ".feather", ".arrow", ".ipc"):
        raise ValueError(
            f"data: {os.fspath(data)} is read by the command line, betacores summarize; here pass the table, or a "
            "Parquet file."
        )
    if y is not None and data != [] and data != ():
        raise ValueError("y: for files name the column of the response, target='...'.")
    from betacores.sources.parquet import ParquetReader

    columns = chosen_columns(columns, target)
    return ParquetReader(data, columns=columns, target=target, filter=filter, also=_named(groups))


def chosen_columns(columns: Any, target: str | None) -> list[str] | None:
    """Return the covariates that were asked for, checked but for whether they are there; None for all.

    Parameters
    ----------
    columns
        A list of names, or one name.
    target
        The column of the response, which is no covariate.
    """
    if columns is None:
        return None
    if not isinstance(columns, Iterable) or isinstance(columns, (bytes, set, frozenset)):
        raise TypeError(f"columns: expected a list of names, in order, got {columns!r}.")
    names = [columns] if isinstance(columns, str) else list(columns)
    if not names:
        raise ValueError(f"columns: expected one name at least, got {columns!r}; leave it out for all columns.")
    for k, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"columns: expected names, got {name!r}.")
        if name in names[:k]:
            raise ValueError(f"columns: {name!r} is named twice; name it once.")
        if name == target:
            raise ValueError(f"columns: {name!r} is the response, target={target!r}, and no covariate; leave one out.")
    return [str(name) for name in names]


def _named(groups: Any) -> list[str]:
    """Return the columns that name groups, if it is columns that do."""
    several = [groups] if isinstance(groups, str) else groups if isinstance(groups, (list, tuple)) else []
    return [name for name in several if isinstance(name, str)]


def _ending(data: Any) -> str:
    return os.path.splitext(os.fspath(data))[1].lower()
