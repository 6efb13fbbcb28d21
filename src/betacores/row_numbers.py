"""Numbers of all rows on disk, a Parquet file of one column each: written and read in pieces.

A table that memory does not hold has more scores than it should hold, too. They come as a map of a file, as a Dask
array whose parts are on workers, or as an array of a device, and only one piece of them is here at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from betacores.sources.numbers import Numbers

# Rows of a piece, and of a row group.
PIECE = 1 << 20
# Numbers of more rows than this come back as a map of a file.
MOST_HELD = 1 << 26


def write_numbers(place: Path, columns: Mapping[str, Any]) -> None:
    """Write columns of numbers, one a row, piece by piece; those that are None are left out."""
    given = {name: numbers for name, numbers in columns.items() if numbers is not None}
    count = len(next(iter(given.values())))

    def piece(start: int) -> pa.Table:
        return pa.table({name: _here(numbers[start : start + PIECE]) for name, numbers in given.items()})

    first = piece(0)
    if count <= PIECE:
        pq.write_table(first, place)
        return
    with pq.ParquetWriter(place, first.schema) as writer:
        writer.write_table(first)
        for start in range(PIECE, count, PIECE):
            writer.write_table(piece(start))


def read_numbers(place: Path) -> dict[str, np.ndarray]:
    """Return the columns of such a file by their names: arrays, or maps of files if there are very many rows."""
    with pq.ParquetFile(place) as file:
        count, names = file.metadata.num_rows, file.schema_arrow.names
        kinds = {name: file.schema_arrow.field(name).type.to_pandas_dtype() for name in names}
        if count <= MOST_HELD:
            table = file.read()
            return {name: table[name].to_numpy() for name in names}
        return {name: _mapped(file, name, np.dtype(kinds[name]), count) for name in names}


def _mapped(file: pq.ParquetFile, name: str, kind: np.dtype, count: int) -> np.ndarray:
    def parts(first: int) -> Iterator[np.ndarray]:
        del first
        for batch in file.iter_batches(PIECE, columns=[name]):
            yield batch.column(0).to_numpy()

    if kind == np.float32:
        return Numbers(None, count, PIECE).filled(parts).mapped()
    # Group codes are of another type, and belong to tables that memory holds.
    return np.concatenate(list(parts(0)))


def _here(numbers: Any) -> np.ndarray:
    """Return a piece of numbers as an array of this process."""
    if not hasattr(numbers, "dask"):
        return np.asarray(numbers)
    from distributed import Future

    # The parts are results on workers of a cluster that need not be the current one.
    futures = [value for value in dict(numbers.dask).values() if isinstance(value, Future)]
    clients = [future.client for future in futures]
    return np.asarray(clients[0].compute(numbers).result() if clients else numbers.compute())
