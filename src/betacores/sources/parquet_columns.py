"""Columns of Parquet files: which types are taken, as what they are read, and which of them a filter looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from betacores.sources.parquet_files import is_number, listed


def check_numeric(name: str, kind: pa.DataType) -> None:
    """Complain of a covariate that is not one of numbers."""
    if not is_number(kind):
        raise ValueError(
            f"data: column {name!r} is not numeric (it holds {kind}); leave it out with columns=[...], or encode it as "
            "numbers before."
        )


def check_response(name: str, kind: pa.DataType) -> None:
    """Complain of a response whose cells hold more than one value each."""
    if pa.types.is_nested(kind):
        raise ValueError(
            f"target: column {name!r} holds {kind}, and a response is one number or one label a row; write the part "
            "that is meant as a column of its own."
        )


def check_filter(filter: Any, schema: pa.Schema) -> None:
    """Complain of a filter that is none, or not one for these columns."""
    if not isinstance(filter, ds.Expression):
        raise TypeError(f"filter: expected an expression such as pyarrow.dataset.field('year') > 2020, got {filter!r}.")
    if "FieldPath(" in str(filter):
        raise ValueError(f"filter: {filter} numbers columns, and files may have them in any order; name them.")
    try:
        schema.empty_table().filter(filter)
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        said = f"filter: {filter} does not fit the files ({reason}); they have {listed(schema.names)}."
        raise ValueError(said) from error


def filtered_by(filter: Any, schema: pa.Schema) -> list[str]:
    """Return the columns that a filter, which fits the schema, looks at: those it does not fit without."""
    written = str(filter)
    # An expression does not tell its columns; but it writes out their names, those of letters and digits as they are.
    named = [name for name in schema.names if not name.replace("_", "").isalnum() or name in written]
    needed = []
    for name in named:
        others = pa.schema([schema.field(other) for other in named if other != name])
        try:
            others.empty_table().filter(filter)
        except (pa.ArrowException, TypeError):
            needed.append(name)
    return needed


def is_view(kind: pa.DataType) -> bool:
    """Return whether a type is one of words that few of Arrow's functions know."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def as_read(schema: pa.Schema) -> pa.Schema:
    """Return a schema with the types that columns have once they are read."""
    plain = {True: pa.string(), False: pa.binary()}
    return pa.schema(
        [(one.name, plain[pa.types.is_string_view(one.type)] if is_view(one.type) else one.type) for one in schema]
    )


def words_of(parts: list[pa.Array]) -> pa.ChunkedArray:
    """Return pieces of a column of words as one."""
    plain = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in parts]
    return pa.chunked_array(plain)


def numbers_of(column: pa.Array) -> np.ndarray:
    """Return a column of numbers as an array; missing ones are NaN."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    # Where there are nulls, whole numbers come as floating ones with NaN.
    return column.to_numpy(zero_copy_only=False)


def within(ids: np.ndarray, start: int, count: int) -> np.ndarray:
    """Return those of sorted numbers that are in a range."""
    return ids[slice(*np.searchsorted(ids, [start, start + count]))]
