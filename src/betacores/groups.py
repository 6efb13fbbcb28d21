"""Groups of rows: sources, vendors, batches, cells of a population. Decisions are then about groups, not rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.labels import in_microseconds
from betacores.responses import is_missing

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


class Members(NamedTuple):
    """Rows in the order of their groups, and how many of them each group has."""

    rows: Int[np.ndarray, " m"]
    sizes: Int[np.ndarray, " groups"]

    def rows_of(self, groups: Int[np.ndarray, " k"]) -> Int[np.ndarray, " n"]:
        """Return the rows of groups, group after group, each in the order of rows."""
        ends = np.cumsum(self.sizes)
        return np.concatenate([np.zeros(0, int), *(self.rows[ends[g] - self.sizes[g] : ends[g]] for g in groups)])


@dataclass(frozen=True)
class Groups:
    """Which group every row belongs to.

    Attributes
    ----------
    labels
        Of the groups, in the order of their first rows; tuples where several columns make a group.
    codes
        For every row the place of its group among the labels.
    """

    labels: list[Any]
    codes: Int[np.ndarray, " rows"]

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.labels)

    @cached_property
    def sizes(self) -> Int[np.ndarray, " groups"]:
        """Number of rows of each group."""
        return np.bincount(self.codes, minlength=len(self.labels))

    def members(self, groups: Int[np.ndarray, " k"]) -> Int[np.ndarray, " m"]:
        """Return the rows of groups, group after group, each in the order of rows."""
        return self.among(np.ones(len(self.codes), bool)).rows_of(groups)

    def among(self, counted: Bool[np.ndarray, " rows"]) -> Members:
        """Return the members of every group among some rows."""
        rows = np.flatnonzero(counted)
        codes = self.codes[rows]
        return Members(rows[np.argsort(codes, kind="stable")], np.bincount(codes, minlength=len(self.labels)))

    def means(self, values: np.ndarray) -> np.ndarray:
        """Return the mean of a number of every row over each group."""
        return np.bincount(self.codes, values, minlength=len(self.labels)) / self.sizes


def read_groups(groups: Any, data: Any, rows: int) -> tuple[Groups, Any]:
    """Return the groups of a table's rows, and the table without the columns that name them.

    Parameters
    ----------
    groups
        One label a row; the name of a column, or of several, whose combinations are the groups; lists of row numbers,
        one a group; or `Groups` that were read before.
    data
        The table.
    rows
        Its number of rows.
    """
    if isinstance(groups, Groups):
        _check_count(len(groups.codes), rows)
        return groups, data
    names = _column_names(groups, data, rows)
    if names:
        columns, data = _taken_out(data, names)
        labels = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
        return _from_labels(labels, rows), data
    if _holds_rows(groups):
        return _from_rows([np.asarray(one) for one in groups], rows), data
    return _from_labels(_labels(groups), rows), data


def _check_count(labels: int, rows: int) -> None:
    if labels != rows:
        raise ValueError(f"groups: expected a label for each of the {rows} rows, got {labels}.")


def _column_names(groups: Any, data: Any, rows: int) -> list[str]:
    """Return the columns that groups are named by; none if they are given otherwise."""
    if isinstance(groups, str):
        asked = [groups]
    elif isinstance(groups, (list, tuple)) and groups and all(isinstance(name, str) for name in groups):
        asked = list(groups)
    else:
        return []
    columns = [str(name) for name in getattr(data, "column_names", getattr(data, "columns", []))]
    if isinstance(groups, str) and not columns:
        raise ValueError(f"groups: {groups!r} names a column, and data has no names; pass a DataFrame, or the labels.")
    unknown = [name for name in asked if name not in columns]
    # Labels of rows may be called like columns; names of columns are not said twice.
    if not isinstance(groups, str) and len(asked) == rows and (unknown or len(set(asked)) < rows):
        return []
    if unknown and columns:
        raise ValueError(f"groups: data has no column {unknown[0]!r}; it has {', '.join(map(repr, columns[:10]))}.")
    return [] if unknown else list(dict.fromkeys(asked))


def _taken_out(data: Any, names: list[str]) -> tuple[list[list], Any]:
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, eager_only=True)
    return [_cells(frame[name]) for name in names], frame.drop(names).to_native()


def _cells(series: Any) -> list[Any]:
    """Return the cells of a narwhals series, with None where there is nothing."""
    empty = series.is_null().to_list()
    return [None if nothing else cell for cell, nothing in zip(series.to_list(), empty, strict=True)]


def _labels(groups: Any) -> list[Any]:
    """Return labels as plain values, whatever holds them."""
    import narwhals.stable.v2 as nw

    native = nw.from_native(groups, allow_series=True, pass_through=True)
    if isinstance(native, (nw.DataFrame, nw.LazyFrame)) or isinstance(groups, dict) or not np.iterable(groups):
        raise TypeError(
            "groups: expected a label for each row, the names of columns of data, or lists of row numbers, got "
            f"{type(groups).__name__}."
        )
    if isinstance(native, nw.Series):
        return _cells(native)
    if not hasattr(groups, "tolist"):
        return list(groups)
    shape = np.asarray(groups).shape
    if len(shape) != 1:
        raise ValueError(
            f"groups: expected one label a row, got shape {shape}; pass a tuple of labels for each row where several "
            "make a group."
        )
    return (in_microseconds(groups) if isinstance(groups, np.ndarray) else groups).tolist()


def _holds_rows(groups: Any) -> bool:
    # A tuple is a label of several parts.
    given = isinstance(groups, (list, tuple)) and bool(groups)
    return given and all(
        isinstance(one, (list, range)) or (hasattr(one, "__array__") and np.ndim(one) == 1) for one in groups
    )


def _from_labels(labels: Sequence[Any], rows: int) -> Groups:
    _check_count(len(labels), rows)
    places: dict[Any, int] = {}
    codes = np.empty(rows, np.int64)
    for row, label in enumerate(labels):
        parts = label if isinstance(label, tuple) else (label,)
        if any(is_missing(part) for part in parts):
            raise ValueError(f"groups: row {row} is in no group (its label is {label!r}); give it one, or drop it.")
        try:
            codes[row] = places.setdefault(label, len(places))
        except TypeError:
            raise TypeError(
                f"groups: the label of row {row} is a {type(label).__name__}, which cannot name a group; pass text, a "
                "number, or a tuple of these."
            ) from None
    return Groups(list(places), codes)


def _from_rows(members: list[np.ndarray], rows: int) -> Groups:
    codes = np.full(rows, -1)
    for place, ids in enumerate(members):
        if not ids.size:
            raise ValueError(f"groups: group {place} has no rows; leave it out.")
        if ids.dtype.kind not in "iu":
            raise TypeError(f"groups: group {place} must be numbers of rows, got {ids[:3].tolist()}.")
        if ids.min() < 0 or ids.max() >= rows:
            wrong = ids.min() if ids.min() < 0 else ids.max()
            raise ValueError(f"groups: rows are numbered from 0 to {rows - 1}, got {wrong} in group {place}.")
        taken = codes[ids]
        if (taken >= 0).any() or len(set(ids.tolist())) < len(ids):
            row = int(ids[taken >= 0][0]) if (taken >= 0).any() else int(ids[0])
            raise ValueError(f"groups: row {row} is in two groups or twice in one; every row belongs to one.")
        codes[ids] = place
    if (codes < 0).any():
        raise ValueError(
            f"groups: row {int((codes < 0).argmax())} is in no group ({(codes < 0).sum()} such rows); "
            "put them in a group of their own, or drop them."
        )
    return Groups(list(range(len(members))), codes)
