"""Dask DataFrames and Arrays: checked where they are, and made canonical blocks on the workers."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.responses import MOST_LABELS, is_missing
from betacores.sources.base import BLOCK_ROWS, LARGEST_CELL
from betacores.sources.cells import clipped
from betacores.sources.cluster import Chunk, ClusterSource, in_order
from betacores.sources.workers import check_workers

if TYPE_CHECKING:
    from distributed import Client


class Spec(NamedTuple):
    """What is read of a partition: covariates, and the response; None for arrays, which have no names."""

    columns: list[str] | None
    target: str | None


class Found(NamedTuple):
    """What a partition is like.

    ``bad`` is the first row and column that is no finite number, or None; ``values`` are the response's different
    values, None if there are many; ``low`` and ``high`` are the extremes of each column; ``sum`` tells the bytes from
    others.
    """

    rows: int
    bad: tuple[int, int, str] | None
    missing: int | None
    low: np.ndarray
    high: np.ndarray
    values: list | None
    words: bool
    whole: bool
    beyond: int
    sum: int


class Part(NamedTuple):
    """A partition on a worker, as numbers; the response as it is."""

    x: np.ndarray
    y: np.ndarray | None


class Known(NamedTuple):
    """Number of a partition, and the sum of its bytes when it was looked at."""

    number: int
    sum: int


class DaskTable:
    """A Dask collection whose partitions are known.

    Parameters
    ----------
    client
        The cluster.
    data, y
        A DataFrame, with the response among its columns; or an Array and another one of responses.
    target, columns
        The response's column, and the covariates; by default all others.
    """

    def __init__(self, client: Client, data: Any, y: Any, target: str | None, columns: Any):
        self.client = client
        check_workers(client)
        named = hasattr(data, "columns")
        if named:
            self._check_names(data, y, target, columns)
            names = [str(name) for name in columns or data.columns if str(name) != target]
            spec, delayed = Spec(names, target), [(part,) for part in data.to_delayed()]
        else:
            spec, delayed = Spec(None, None), _array_parts(data, y, target, columns)
            names = [f"x{j}" for j in range(data.shape[1])]
        self.columns, self._delayed, self._spec = names, delayed, spec
        self.has_response = y is not None or target is not None
        # Made again from the collection if a worker is lost.
        self._parts = client.compute([_later(_part)(spec, *part) for part in delayed])
        self.found: list[Found] = list(in_order(client, [client.submit(_look, part) for part in self._parts]))
        self.offsets = np.concatenate([[0], np.cumsum([found.rows for found in self.found])]).astype(np.int64)
        self.row_count = int(self.offsets[-1])

    @staticmethod
    def _check_names(data: Any, y: Any, target: str | None, columns: Any) -> None:
        if y is not None:
            raise ValueError("y: for a Dask DataFrame name the column of the response, target='...'.")
        known = [str(name) for name in data.columns]
        for name in [*(columns or ()), *([] if target is None else [target])]:
            if name not in known:
                raise ValueError(f"data: there is no column {name!r}; there are {', '.join(map(repr, known[:10]))}.")
        for name in columns or known:
            if name != target and not _is_number(data.dtypes[name]):
                raise ValueError(
                    f"data: column {name!r} is not numeric (it holds {data.dtypes[name]}); leave it out with "
                    "columns=[...], or encode it as numbers before."
                )

    def source(self, encode: Callable[[Any], np.ndarray]) -> ClusterSource:
        """Return the rows in canonical blocks, their responses encoded."""
        chunks, firsts, submit = [], [], self.client.submit
        starts = np.arange(0, self.row_count, BLOCK_ROWS)
        for k in range(len(self.found)):
            mine = starts[(starts >= self.offsets[k]) & (starts < self.offsets[k + 1])]
            if not len(mine):
                continue
            begin, end = int(mine[0]), min(int(mine[-1]) + BLOCK_ROWS, self.row_count)
            pieces = []
            for j in range(k, len(self.found)):
                low, high = max(begin, self.offsets[j]), min(end, self.offsets[j + 1])
                if low < high:
                    known, within = Known(j, self.found[j].sum), slice(low - self.offsets[j], high - self.offsets[j])
                    pieces.append(submit(_piece, self._parts[j], known, within))
            chunks.append(submit(_chunk, pieces, encode, begin, pure=False))
            firsts.append(begin // BLOCK_ROWS)
        about = {
            "rows": self.row_count,
            "columns": self.columns,
            "partitions": self.offsets.tolist(),
            "sums": [found.sum for found in self.found],
        }
        for _ in in_order(self.client, [submit(_rows_of, chunk, pure=False) for chunk in chunks]):
            pass
        self._parts = []
        return ClusterSource(self.client, chunks, firsts, self.row_count, self.columns, about, self._given)

    def _given(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows as the collection has them: their partitions are made once more."""
        asked = []
        for k, part in enumerate(self._delayed):
            first, last = np.searchsorted(ids, self.offsets[k : k + 2])
            if last > first:
                known, rows = Known(k, self.found[k].sum), ids[first:last] - self.offsets[k]
                asked.append(_later(_piece)(_later(_part)(self._spec, *part), known, rows))
        found = list(in_order(self.client, self.client.compute(asked)))
        y = None if not self.has_response else np.concatenate([part.y for part in found])
        return np.concatenate([part.x for part in found]), y


def _later(function: Callable[..., Any]) -> Any:
    from dask import delayed

    return delayed(function, pure=False)


def _array_parts(data: Any, y: Any, target: Any, columns: Any) -> list[tuple]:
    for name, value in (("target", target), ("columns", columns)):
        if value is not None:
            raise ValueError(f"{name}: an array has no names; pass y, another array, and the columns wanted.")
    if data.ndim != 2:
        raise ValueError(f"data: expected two dimensions (rows, columns), got shape {data.shape}.")
    whole = data.rechunk({1: -1})
    parts = [row[0] for row in whole.to_delayed()]
    if y is None:
        return [(part,) for part in parts]
    if not hasattr(y, "rechunk"):
        import dask.array as da

        y = da.from_array(np.asarray(y), chunks=(whole.chunks[0],))
    if y.ndim != 1 or (not np.isnan(y.shape[0]) and y.shape[0] != data.shape[0]):
        raise ValueError(f"y: expected one value for each of the {data.shape[0]} rows of data, got shape {y.shape}.")
    return list(zip(parts, y.rechunk((whole.chunks[0],)).to_delayed().tolist(), strict=True))


def _part(spec: Spec, table: Any, y: Any = None) -> Part:
    """Return a partition as numbers; on a worker."""
    if spec.columns is None:
        return Part(np.asarray(table), None if y is None else np.asarray(y))
    x = np.column_stack([_numbers(table[name]) for name in spec.columns])
    if spec.target is None:
        return Part(x, None)
    response = table[spec.target]
    if response.dtype.kind in "fiub":
        return Part(x, response.to_numpy())
    if _is_number(response.dtype):
        return Part(x, _numbers(response))
    return Part(x, np.array([None if is_missing(value) else value for value in response], object))


def _is_number(kind: Any) -> bool:
    """Tell whether a column of a pandas type holds numbers, exact ones and categories that are numbers among them."""
    kind = getattr(getattr(kind, "categories", None), "dtype", kind)
    return kind.kind in "fiub" or str(kind).startswith("decimal")


def _numbers(column: Any) -> np.ndarray:
    if hasattr(column.dtype, "categories"):
        column = column.astype(column.dtype.categories.dtype)
    if str(column.dtype).startswith("decimal"):
        # To the nearest number by the same rule as from files.
        column = column.astype("float64[pyarrow]")
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def _look(part: Part) -> Found:
    x, y = part
    bad = None
    if x.size and not (np.isfinite(x.min()) and np.isfinite(x.max())):
        row, column = np.argwhere(~np.isfinite(x))[0]
        bad = int(row), int(column), str(x[row, column])
    nobody = np.zeros(x.shape[1])
    low, high = (x.min(0), x.max(0)) if len(x) else (nobody + np.inf, nobody - np.inf)
    beyond = int((np.abs(x) > LARGEST_CELL).sum()) if len(x) else 0
    if y is None or not len(y):
        return Found(len(x), bad, None, low, high, [], False, True, beyond, _sum(x, y))
    words = y.dtype.kind not in "fiub"
    if words:
        missing = np.array([value is None for value in y])
    else:
        missing = ~np.isfinite(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)
    values = sorted(set(y[~missing].tolist())) if words else np.unique(y[~missing]).tolist()
    return Found(
        len(x),
        bad,
        int(missing.argmax()) if missing.any() else None,
        low,
        high,
        values if len(values) <= MOST_LABELS else None,
        words,
        bool(words or np.all(y == np.floor(y))),
        beyond,
        _sum(x, y),
    )


def _sum(x: np.ndarray, y: np.ndarray | None) -> int:
    total = zlib.crc32(np.ascontiguousarray(x).data)
    if y is None:
        return total
    return zlib.crc32("\n".join(map(repr, y)).encode() if y.dtype.kind == "O" else np.ascontiguousarray(y).data, total)


def _piece(part: Part, known: Known, rows: Any) -> Part:
    """Return rows of a partition, which may have been made again since it was looked at: it must be the same."""
    if _sum(part.x, part.y) != known.sum:
        raise ValueError(
            f"data: partition {known.number} has other rows than when it was looked at. Either what it is made from "
            "has changed in mid-run, or it is not made the same way twice, as by a random step without a seed; write "
            "the collection to files and read it from there."
        )
    return Part(np.asarray(part.x[rows]), None if part.y is None else part.y[rows])


def _chunk(pieces: list[Part], encode: Callable[[Any], np.ndarray], start: int) -> Chunk:
    x = np.concatenate([clipped(piece.x) for piece in pieces])
    y = None if pieces[0].y is None else np.concatenate([encode(_plain(piece.y)) for piece in pieces])
    return Chunk(x, y, start)


def _plain(y: Any) -> np.ndarray:
    return np.array(y.tolist()) if y.dtype.kind == "O" else y


def _rows_of(chunk: Chunk) -> int:
    return len(chunk.x)
