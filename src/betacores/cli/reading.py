"""Tables in files: CSV (also gzipped), Parquet and Feather in, an Arrow table out, or in one line what is wrong."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from betacores.cli.options import Options

DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET, FEATHER = (".parquet", ".pq"), (".feather", ".arrow", ".ipc")
GZIPPED = tuple(f"{ending}.gz" for ending in DELIMITERS)
KNOWN = (*DELIMITERS, *GZIPPED, *PARQUET, *FEATHER)
# Cells of a text file that say that there is nothing; `None` may be a word like any other.
NOTHING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
# Arrow guesses the type of a column by the first block, so that the whole file should be one.
LARGEST_BLOCK = 1 << 30
ZIPPED_BLOCK = 1 << 28


class Dialect(NamedTuple):
    """How a text file is written; None leaves it to the file's ending."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: Sequence[str] = ()


PLAIN = Dialect()


def read_file(path: Path, dialect: Dialect = PLAIN) -> pa.Table:
    """Return the table of a file; its ending tells the format."""
    ending = _ending(path)
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder; name a file, CSV or Parquet.")
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file.")
    if ending not in KNOWN:
        raise ValueError(f"{path}: the ending {ending!r} is not known; it can be {', '.join(KNOWN)}.")
    if not os.access(path, os.R_OK):
        raise ValueError(f"{path}: no permission to read it; ask for it, or copy the file.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty; is it the right one?")
    try:
        table = _read(path, ending, dialect)
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(
            f"{path}: it cannot be read ({reason}); is it a whole {ending} file? Write or fetch it again."
        ) from error
    (name, times), *_ = Counter(table.column_names).most_common(1) or [("", 0)]
    if times > 1:
        raise ValueError(f"{path}: the column {name!r} is there twice; rename one.")
    if not table.num_rows:
        raise ValueError(f"{path}: it has no rows, only the names of {table.num_columns} columns.")
    return table


def read_whole(files: list[Path], asked: Options, dialect: Dialect = PLAIN) -> tuple[pa.Table, list[str]]:
    """Return the rows meant of a file, of several, of a folder or pattern, or of arrays; and what there is to note."""
    from betacores.cli.files import is_array, is_one

    if is_array(files):
        return _meant(_of_arrays(files[0], asked), asked)
    if is_one(files):
        return _meant(read_file(files[0], dialect), asked)
    return _of_many(files, asked)


def _of_many(files: list[Path], asked: Options) -> tuple[pa.Table, list[str]]:
    from betacores.cli.files import stored
    from betacores.sources.parquet_files import common_schema

    found = stored(files)
    common_schema(found.files)
    try:
        table = found.dataset.to_table()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"{files[0]}: the files cannot be read ({reason}); write or fetch them again.") from error
    if not table.num_rows:
        raise ValueError(f"{files[0]}: the files have no rows, only the names of {table.num_columns} columns.")
    table, notes = _meant(table, asked)
    # What folders are called is no covariate, unless somebody says so.
    named = {*asked.groups, asked.target}
    kept = {name for name in found.partitions if any(fnmatchcase(name, pattern) for pattern in asked.keep)}
    return table.drop_columns([name for name in found.partitions if name not in named | kept]), notes


def _meant(table: pa.Table, asked: Options) -> tuple[pa.Table, list[str]]:
    """Return the rows that --where means."""
    if asked.where is None:
        return table, []
    from betacores.cli.where import parsed

    found = table.filter(parsed(asked.where, table.schema))
    if not found.num_rows:
        raise ValueError(f"--where: of the {table.num_rows:,} rows there is none with {asked.where}.")
    return found, [f"{found.num_rows:,} of {table.num_rows:,} rows pass --where; rows are numbered among them"]


def _of_arrays(file: Path, asked: Options) -> pa.Table:
    from betacores.sources.npy import NpyReader

    if asked.target is not None:
        raise ValueError(f"--target: {file} has no names of columns; name the array of responses, --y FILE.npy.")
    x, y = NpyReader(file, asked.y).table()
    columns = {f"x{j}": pa.array(np.ascontiguousarray(x[:, j])) for j in range(x.shape[1])}
    return pa.table(columns if y is None else columns | {"y": pa.array(y)})


def stem(path: Path) -> str:
    """Return a file's name without its ending."""
    return path.name[: -len(ending)] if (ending := _ending(path)) else path.name


def _ending(path: Path) -> str:
    name = path.name.lower()
    return next((ending for ending in GZIPPED if name.endswith(ending)), path.suffix.lower())


def _read(path: Path, ending: str, dialect: Dialect) -> pa.Table:
    if ending in PARQUET:
        import pyarrow.parquet as pq

        # As one file, not as a data set, whose folders would add columns.
        with pq.ParquetFile(path) as file:
            return file.read()
    if ending in FEATHER:
        from pyarrow import feather

        return feather.read_table(path)
    return _read_text(path, ending, dialect)


def _read_text(path: Path, ending: str, dialect: Dialect) -> pa.Table:
    from pyarrow import csv

    delimiter = _one_letter(dialect.delimiter or DELIMITERS[ending.removesuffix(".gz")])
    size = ZIPPED_BLOCK if ending in GZIPPED else min(path.stat().st_size + 1, LARGEST_BLOCK)
    try:
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(block_size=size, encoding=dialect.encoding),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                null_values=[*NOTHING, *dialect.missing], strings_can_be_null=True, decimal_point=dialect.decimal
            ),
        )
        names = table.column_names
    except LookupError:
        raise ValueError(f"--encoding: {dialect.encoding!r} is not known; try latin-1 or utf-16.") from None
    except UnicodeDecodeError as error:
        raise _not_utf8(path, dialect, f"byte {error.start}") from None
    except pa.ArrowInvalid as error:
        if "UTF" in str(error) or "utf" in str(error):
            raise _not_utf8(path, dialect, str(error).splitlines()[0]) from None
        _check_delimiter(path, ending, delimiter)
        raise
    if len(names) == 1:
        _check_delimiter(path, ending, delimiter)
    for name, column in zip(names, table.columns, strict=True):
        # What is no text, Arrow takes for bytes.
        if pa.types.is_binary(column.type):
            raise _not_utf8(path, dialect, f"column {name!r}")
    return table


def _not_utf8(path: Path, dialect: Dialect, where: str) -> ValueError:
    return ValueError(
        f"{path}: it is not written in {dialect.encoding} ({where}); say in what it is, for example --encoding latin-1."
    )


def _one_letter(delimiter: str) -> str:
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1:
        raise ValueError(f"--delimiter: expected one letter, or tab, got {delimiter!r}.")
    return delimiter


def _check_delimiter(path: Path, ending: str, used: str) -> None:
    """Say which delimiter the first line speaks for, if it is another one."""
    import gzip

    opened = gzip.open(path, "rb") if ending in GZIPPED else path.open("rb")
    with opened as file:
        line = file.readline(1 << 20).decode("latin-1")
    counts = {letter: line.count(letter) for letter in ",;\t|"}
    best = max(counts, key=lambda letter: counts[letter])
    if best != used and counts[best] > counts.get(used, 0):
        shown = {"\t": "tab"}.get(best, best)
        raise ValueError(
            f"{path}: with {used!r} between its columns it cannot be read, {best!r} seems right: --delimiter '{shown}'."
        )
