"""Parquet: one file, several, or a folder of them, with partition columns, some columns and some rows of it.

Row groups whose statistics rule the filter out are not read, nor are columns that nobody asked for. What is held is one
batch of one row group, whatever the sizes of files and row groups are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from betacores.sources.base import BLOCK_ROWS
from betacores.sources.parquet_columns import (
    as_read,
    check_filter,
    check_numeric,
    check_response,
    filtered_by,
    is_view,
    numbers_of,
    within,
    words_of,
)
from betacores.sources.parquet_files import common_schema, found_files, is_number, listed
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

    decodes, remedy = True, "drop or fill such cells, or leave those rows out with filter="

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
        stored = common_schema(self.files[:1])
        hive: Any = {"partitioning": ds.partitioning(flavor="hive"), "partition_base_dir": root}
        found = ds.dataset(self.files, format="parquet", **hive)
        self.schema = as_read(found.schema)
        same = self.schema.equals(found.schema)
        self._dataset = found if same else ds.dataset(self.files, self.schema, format="parquet", **hive)
        self._partitions = [name for name in self.schema.names if name not in stored.names]
        for what, names in {"columns": columns or (), "target": () if target is None else [target]}.items():
            for name in (name for name in names if name not in self.schema.names):
                raise ValueError(f"{what}: {self.files[0]} has no column {name!r}; it has {listed(self.schema.names)}.")
        self.target = target
        self.columns = [
            name
            for name in columns or self.schema.names
            if name not in (target, *also) and (columns or name not in self._partitions)
        ]
        self._read = [*self.columns, *([] if target is None else [target])]
        self._also = [name for name in also if name != target and name in self.schema.names]
        if filter is not None:
            check_filter(filter, self.schema)
        self._filter = filter
        self._filtered_by = [] if filter is None else filtered_by(filter, self.schema)
        wanted = {*self._read, *self._also, *self._filtered_by}.difference(self._partitions)
        common_schema(self.files, None if columns is None else wanted.__contains__)
        for name in self.columns:
            check_numeric(name, self.schema.field(name).type)
        if target is not None:
            check_response(target, self.schema.field(target).type)
            self.response = "numbers" if is_number(self.schema.field(target).type) else "words"
        self._by_hand = any(is_view(found.schema.field(name).type) for name in self._filtered_by)
        self._pieces = self._found_pieces()
        self.row_count = sum(piece.rows for piece in self._pieces)

    def _found_pieces(self) -> list[Piece]:
        pieces, start = [], 0
        # As they were named: a dataset may write their paths in another way.
        named = {part.path: path for part, path in zip(self._dataset.get_fragments(), self.files, strict=True)}
        for fragment in self._dataset.get_fragments(filter=self._filter):
            path, keys = named[fragment.path], ds.get_partition_keys(fragment.partition_expression)
            values = {**dict.fromkeys(self._partitions), **keys}
            try:
                groups, rows = self._counted(fragment, Piece(path, [], values, start, 0))
            except OSError as error:
                raise self._broken(path, error) from error
            except pa.ArrowException as error:
                reason = str(error).splitlines()[0].rstrip(".")
                raise ValueError(
                    f"filter: {self._filter} fails on the rows of {path} ({reason}); choose another."
                ) from error
            if rows:
                pieces.append(Piece(path, groups, values, start, rows))
                start += rows
        return pieces

    def _counted(self, fragment: Any, piece: Piece) -> tuple[list[int], int]:
        """Return the row groups of a file that are to be read, and how many of its rows are meant."""
        groups = list(range(fragment.metadata.num_row_groups))
        if self._filter is None:
            return groups, fragment.metadata.num_rows
        if self._by_hand:
            return groups, sum(batch.num_rows for batch in self._decoded(piece._replace(row_groups=groups), []))
        parts = fragment.split_by_row_group(filter=self._filter, schema=self.schema)
        rows = fragment.scanner(schema=self.schema, filter=self._filter).count_rows()
        return [part.row_groups[0].id for part in parts], rows

    def cuts(self, first: int = 0) -> Iterator[Cut]:
        """Yield all rows in canonical blocks."""
        self.check_unchanged()
        pieces = [piece for piece in self._pieces if piece.start + piece.rows > first * BLOCK_ROWS]
        leave = first * BLOCK_ROWS - pieces[0].start if pieces else 0
        batches = (batch for piece in pieces for batch in self._batches(piece, self._read))
        yield from self._cut(batches, leave, first)

    def cuts_of(self, held: pa.Table) -> Iterator[Cut]:
        """Yield what `table` gave in canonical blocks."""
        yield from self._cut(held.to_batches(BLOCK_ROWS), 0, 0)

    def _cut(self, batches: Iterable[pa.RecordBatch], leave: int, first: int) -> Iterator[Cut]:
        """Yield rows in canonical blocks, of which `first` is the next, without some rows at the beginning."""
        cutter = Cutter(first, np.concatenate if self.response == "numbers" else words_of)
        for batch in batches:
            if leave >= batch.num_rows:
                leave -= batch.num_rows
                continue
            batch, leave = batch.slice(leave), 0
            columns = [numbers_of(batch.column(name)) for name in self.columns]
            y = None if self.target is None else batch.column(self.target)
            if y is not None and self.response == "numbers":
                y = numbers_of(y)
            yield from cutter.add(columns, y, batch.num_rows)
        yield from cutter.rest()

    def rows(self, ids: np.ndarray) -> Raw:
        """Return some rows by their numbers, in double precision; in the order of the table."""
        self.check_unchanged()
        ids = np.unique(ids)
        found = []
        for piece in self._pieces:
            if not len(within(ids, piece.start, piece.rows)):
                continue
            start = piece.start
            for batch in self._batches(piece, self._read):
                # Nothing is made of the others: this costs no more than reading them.
                here = within(ids, start, batch.num_rows)
                if len(here):
                    found.append(batch.select(self._read).take(pa.array(here - start)))
                start += batch.num_rows
        table = pa.Table.from_batches(found)
        columns = [np.concatenate([numbers_of(part) for part in table.column(name).chunks]) for name in self.columns]
        y: Any = None
        if self.target is not None:
            parts = table.column(self.target).chunks
            y = np.concatenate([numbers_of(part) for part in parts]) if self.response == "numbers" else words_of(parts)
        return Raw(np.column_stack(columns).astype(np.float64, copy=False), None if y is None else as_numpy(y), -1)

    def _batches(self, piece: Piece, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file, and complain where they are not those that were counted."""
        seen = 0
        try:
            for batch in self._decoded(piece, names):
                seen += batch.num_rows
                yield batch
        except (OSError, pa.ArrowException) as error:
            raise self._broken(piece.path, error) from error
        if seen != piece.rows:
            raise self._broken(piece.path, f"it has {seen} rows and said that there are {piece.rows}")

    def _decoded(self, piece: Piece, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield rows of a file that pass the filter: columns in the same order and of the same types for all files."""
        wanted = pa.schema([self.schema.field(name) for name in dict.fromkeys([*names, *self._filtered_by])])
        stored = [name for name in wanted.names if name not in piece.values]
        most = BATCH_ROWS if len(stored) <= NARROW else BLOCK_ROWS
        with pq.ParquetFile(piece.path, pre_buffer=False, buffer_size=1 << 20) as file:
            for batch in file.iter_batches(most, row_groups=piece.row_groups, columns=stored):
                columns = []
                for name, kind in zip(wanted.names, wanted.types, strict=True):
                    if name in piece.values:
                        columns.append(pa.repeat(pa.scalar(piece.values[name], kind), batch.num_rows))
                    else:
                        column = batch.column(name)
                        columns.append(column if column.type == kind else column.cast(kind))
                batch = pa.RecordBatch.from_arrays(columns, schema=wanted)
                if self._filter is None:
                    yield batch
                else:
                    yield from pa.Table.from_batches([batch]).filter(self._filter).combine_chunks().to_batches()

    def _broken(self, path: str, reason: Any) -> OSError:
        """Return what to say of a file that cannot be read: whether it changed in mid-run, or was broken before."""
        reason = str(reason).splitlines()[0].rstrip(".")
        if not os.path.exists(path):
            return OSError(f"data: {path} is gone; it was there when the run began. Put it back, and run again.")
        if stamp_of(path) != self._stamps[path]:
            return OSError(f"data: {path} has changed since the run began ({reason}); run again when it is at rest.")
        return OSError(
            f"data: {path} is damaged: it has not changed since the run began, and its rows cannot be read ({reason}); "
            "write or fetch it again, or leave it out."
        )

    def where(self, row: int, *, response: bool = False) -> str:
        """Say which file a row is in, and which of its rows it is."""
        del response  # it is in the same row
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
        self.check_unchanged()
        names = [*self._read, *self._also]
        schema = pa.schema([self.schema.field(name) for name in names])
        batches = [batch.select(names) for piece in self._pieces for batch in self._batches(piece, names)]
        return pa.Table.from_batches(batches, schema)
