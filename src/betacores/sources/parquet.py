"""Parquet: one file, several, or a folder of them, with partition columns, some columns and some rows of it.

Row groups whose statistics rule the filter out are not read, nor are columns that nobody asked for. What is held is one
batch of one row group, whatever the sizes of files and row groups are.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from betacores.sources.base import BLOCK_ROWS
from betacores.sources.parquet_files import check_filter, check_numeric, common_schema, found_files, is_number, listed
from betacores.sources.reader import Cut, Cutter, Raw, Reader, as_numpy, stamp_of

# Rows decoded at once: longer batches are decoded faster, where a few columns of them take little memory.
BATCH_ROWS, NARROW = 2 * BLOCK_ROWS, 64


class Piece(NamedTuple):
    """Row groups of one file that are to be read, the values of its partition columns, and where its rows begin."""

    path: str
    row_groups: list[int]
    values: dict[str, Any]
    start: int
    rows: int


class ParquetReader(Reader):
    """Rows of Parquet files.

    Parameters
    ----------
    paths
        A file, a folder, a pattern, or a list of files.
    columns
        The covariates; by default all columns but the response and partition columns.
    target
        The response; None if there is none.
    filter
        Which rows are meant, an expression of `pyarrow.dataset`; by default all.
    also
        Columns of any type that are no covariates, and come along in a table in memory; names of none are let go.
    """

    decodes = True

    def __init__(
        self,
        paths: Any,
        *,
        columns: Sequence[str] | None = None,
        target: str | None = None,
        filter: Any = None,
        also: Sequence[str] = (),
    ):
        self.files, root = found_files(paths)
        self._stamps = {path: stamp_of(path) for path in self.files}
        self.schema = common_schema(self.files)
        self._dataset = ds.dataset(
            self.files, format="parquet", partitioning=ds.partitioning(flavor="hive"), partition_base_dir=root
        )
        partitions = [name for name in self._dataset.schema.names if name not in self.schema.names]
        self.schema = self._dataset.schema
        for what, names in {"columns": columns or (), "target": () if target is None else [target]}.items():
            for name in (name for name in names if name not in self.schema.names):
                raise ValueError(f"{what}: the files have no column {name!r}; they have {listed(self.schema.names)}.")
        self.target = target
        self.columns = [
            name
            for name in columns or self.schema.names
            if name not in (target, *also) and (columns or name not in partitions)
        ]
        self._also = [name for name in also if name != target and name in self.schema.names]
        for name in self.columns:
            check_numeric(name, self.schema.field(name).type)
        self.single = all(_is_single(self.schema.field(name).type) for name in self.columns)
        if target is not None:
            self.response = "numbers" if is_number(self.schema.field(target).type) else "words"
        if filter is not None:
            check_filter(filter, self.schema)
        self._filter = filter
        self._filtered_by = [] if filter is None else _named_in(filter, self.schema.names)
        self._pieces = self._found_pieces()
        self.row_count = sum(piece.rows for piece in self._pieces)

    def _found_pieces(self) -> list[Piece]:
        pieces, start = [], 0
        for fragment in self._dataset.get_fragments(filter=self._filter):
            if self._filter is None:
                groups, rows = list(range(fragment.metadata.num_row_groups)), fragment.metadata.num_rows
            else:
                parts = fragment.split_by_row_group(filter=self._filter, schema=self._dataset.schema)
                groups = [part.row_groups[0].id for part in parts]
                rows = fragment.scanner(schema=self._dataset.schema, filter=self._filter).count_rows()
            values = ds.get_partition_keys(fragment.partition_expression)
            if rows:
                pieces.append(Piece(fragment.path, groups, values, start, rows))
                start += rows
        return pieces

    def cuts(self, first: int = 0, *, double: bool = False) -> Iterator[Cut]:
        """Yield all rows in canonical blocks."""
        self.check_unchanged()
        skipped = first * BLOCK_ROWS
        names = self.columns if self.target is None else [*self.columns, self.target]
        cutter = Cutter(first, double, np.concatenate if self.response == "numbers" else _chunked)
        for piece in self._pieces:
            if piece.start + piece.rows <= skipped:
                continue
            leave = max(skipped - piece.start, 0)
            for batch in self._batches(piece, names):
                if leave >= batch.num_rows:
                    leave -= batch.num_rows
                    continue
                batch, leave = batch.slice(leave), 0
                columns = [_numbers(batch.column(name)) for name in self.columns]
                y = None if self.target is None else batch.column(self.target)
                if y is not None and self.response == "numbers":
                    y = _numbers(y)
                yield from cutter.add(columns, y, batch.num_rows)
        yield from cutter.rest()

    def rows(self, ids: np.ndarray) -> Raw:
        """Return some rows by their numbers, in double precision; in the order of the table."""
        self.check_unchanged()
        ids = np.unique(ids)
        names = self.columns if self.target is None else [*self.columns, self.target]
        found = []
        for piece in self._pieces:
            if not len(_within(ids, piece.start, piece.rows)):
                continue
            start = piece.start
            for batch in self._batches(piece, names):
                # Nothing is made of the others: this costs no more than reading them.
                here = _within(ids, start, batch.num_rows)
                if len(here):
                    found.append(batch.select(names).take(pa.array(here - start)))
                start += batch.num_rows
        table = pa.Table.from_batches(found)
        columns = [np.concatenate([_numbers(part) for part in table.column(name).chunks]) for name in self.columns]
        y: Any = None
        if self.target is not None:
            parts = table.column(self.target).chunks
            y = np.concatenate([_numbers(part) for part in parts]) if self.response == "numbers" else _chunked(parts)
        return Raw(np.column_stack(columns).astype(np.float64, copy=False), None if y is None else as_numpy(y), -1)

    def _batches(self, piece: Piece, names: list[str]) -> Iterator[pa.RecordBatch]:
        stored = [name for name in dict.fromkeys([*names, *self._filtered_by]) if name not in piece.values]
        seen, most = 0, BATCH_ROWS if len(stored) <= NARROW else BLOCK_ROWS
        try:
            with pq.ParquetFile(piece.path, pre_buffer=False, buffer_size=1 << 20) as file:
                for batch in file.iter_batches(most, row_groups=piece.row_groups, columns=stored):
                    for name, value in piece.values.items():
                        kind = self.schema.field(name).type
                        batch = batch.append_column(name, pa.repeat(pa.scalar(value, kind), batch.num_rows))
                    if self._filter is not None:
                        table = pa.Table.from_batches([batch]).filter(self._filter).combine_chunks()
                        seen += table.num_rows
                        yield from table.to_batches()
                    else:
                        seen += batch.num_rows
                        yield batch
        except (OSError, pa.ArrowException) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            gone = "is gone" if not os.path.exists(piece.path) else f"cannot be read any further ({reason})"
            raise OSError(f"data: {piece.path} {gone}; it was whole when the run began. Run again.") from error
        if seen != piece.rows:
            raise OSError(f"data: {piece.path} has {seen} rows and had {piece.rows} when the run began; run again.")

    def where(self, row: int) -> str:
        """Say which file a row is in, and which of its rows it is."""
        piece = next(piece for piece in reversed(self._pieces) if piece.start <= row)
        among = "" if self._filter is None else " of those that pass the filter"
        return f"{piece.path}, row {row - piece.start}{among}"

    def identity(self) -> Any:
        """Return paths, sizes and times of the files, and what is read of them."""
        return {
            "files": [[path, *self._stamps[path]] for path in self.files],
            "columns": self.columns,
            "target": self.target,
            "filter": None if self._filter is None else str(self._filter),
        }

    def check_unchanged(self) -> None:
        """Complain if a file is gone or is not what it was."""
        for path, stamp in self._stamps.items():
            if not os.path.exists(path):
                raise FileNotFoundError(f"data: {path} is gone; it was there when the run began.")
            if stamp_of(path) != stamp:
                raise OSError(f"data: {path} has changed since the run began; run again when it is at rest.")

    def table(self) -> pa.Table:
        """Return everything that was asked for, in memory."""
        names = [*self.columns, *([] if self.target is None else [self.target]), *self._also]
        return self._dataset.to_table(columns=names, filter=self._filter)


def _is_single(kind: pa.DataType) -> bool:
    narrow = pa.types.is_floating(kind) or pa.types.is_integer(kind)
    return pa.types.is_boolean(kind) or (narrow and bool(np.can_cast(kind.to_pandas_dtype(), np.float32)))


def _chunked(parts: list[pa.Array]) -> pa.ChunkedArray:
    plain = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
    return pa.chunked_array(plain)


def _within(ids: np.ndarray, start: int, count: int) -> np.ndarray:
    """Return those of sorted numbers that are in a range."""
    return ids[slice(*np.searchsorted(ids, [start, start + count]))]


def _named_in(filter: Any, names: Sequence[str]) -> list[str]:
    """Return the columns that a filter looks at, and perhaps some more: those whose names it writes out."""
    written = str(filter)
    return [name for name in names if not name.replace("_", "").isalnum() or name in written]


def _numbers(column: pa.Array) -> np.ndarray:
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    # Where there are nulls, whole numbers come as floating ones with NaN.
    return column.to_numpy(zero_copy_only=False)
