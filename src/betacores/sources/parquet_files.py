"""Which Parquet files are meant, and whether they fit together: found and checked before anything is read."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

ENDINGS = (".parquet", ".pq")


def found_files(paths: Any) -> tuple[list[str], str | None]:
    """Return the files that a path, a pattern or a list means, in order, and the folder that partitions count from."""
    if isinstance(paths, (list, tuple)):
        found = [name for one in paths for name in found_files(one)[0]]
        return found, None
    path = os.fspath(paths)
    if os.path.isdir(path):
        found = sorted(str(p) for ending in ENDINGS for p in Path(path).rglob(f"*{ending}") if _visible(p, path))
        if not found:
            raise FileNotFoundError(f"data: the folder {path} holds no Parquet file ({' or '.join(ENDINGS)}).")
        return found, path
    if os.path.exists(path):
        return [path], None
    found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    if not found:
        raise FileNotFoundError(f"data: there is no file {path}.")
    fixed = path[: min(path.find(letter) for letter in "*?[" if letter in path)]
    return found, os.path.dirname(fixed) or None


def _visible(place: Path, root: str) -> bool:
    return not any(part.startswith((".", "_")) for part in place.relative_to(root).parts)


def common_schema(files: list[str]) -> pa.Schema:
    """Return the schema of all files, or say which one has another."""
    first: pa.Schema | None = None
    for path in files:
        if os.path.getsize(path) == 0:
            raise ValueError(f"data: {path} is empty (0 bytes); remove it, or write it again.")
        try:
            schema = pq.read_schema(path).remove_metadata()
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(f"data: {path} is no whole Parquet file ({reason}); write or fetch it again.") from error
        if first is None:
            twice = [name for name in dict.fromkeys(schema.names) if schema.names.count(name) > 1]
            if twice:
                raise ValueError(f"data: {path} has columns of the same name twice ({listed(twice)}); rename them.")
            first = schema
        if schema.names != first.names:
            odd = sorted({*schema.names} ^ {*first.names}) or ["the order"]
            raise ValueError(
                f"data: {path} has other columns than {files[0]} ({listed(odd)}); all files must have the same."
            )
        for mine, theirs in zip(schema, first, strict=True):
            if mine.type != theirs.type:
                raise ValueError(
                    f"data: the column {mine.name!r} is {mine.type} in {path} and {theirs.type} in {files[0]}; write "
                    "them with the same types."
                )
    assert first is not None  # there is at least one file
    return first


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is one of numbers, or of truth."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def check_numeric(name: str, kind: pa.DataType) -> None:
    """Complain of a column that is not one of numbers."""
    if not is_number(kind):
        raise ValueError(
            f"data: column {name!r} is not numeric (it holds {kind}); leave it out with columns=[...], or encode it as "
            "numbers before."
        )


def check_filter(filter: Any, schema: pa.Schema) -> None:
    """Complain of a filter that is none, or not one for these columns."""
    if not isinstance(filter, ds.Expression):
        raise TypeError(f"filter: expected an expression such as pyarrow.dataset.field('year') > 2020, got {filter!r}.")
    try:
        schema.empty_table().filter(filter)
    except (pa.ArrowException, TypeError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        said = f"filter: {filter} does not fit the files ({reason}); they have {listed(schema.names)}."
        raise ValueError(said) from error


def listed(names: Sequence[str]) -> str:
    """Return names as a person lists them, not all if they are many."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(map(repr, names[:10])) + more
