"""Which Parquet files are meant, and whether they fit together: found and checked before anything is read."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from betacores.sources.reader import check_local

ENDINGS = (".parquet", ".pq")


def found_files(paths: Any) -> tuple[list[str], str | None]:
    """Return the files that a path, a pattern or a list means, in order, and the folder that partitions count from."""
    found, root = _found(paths)
    _check_once(found)
    return found, root


def _found(paths: Any) -> tuple[list[str], str | None]:
    if isinstance(paths, (list, tuple)):
        if not paths:
            raise ValueError(f"data: the list names no files, got {paths!r}; name at least one, or pass a table.")
        return [name for one in paths for name in _found(one)[0]], None
    path = os.fspath(paths)
    check_local("data", path)
    if os.path.isdir(path):
        found = _within(path)
        if not found:
            raise FileNotFoundError(f"data: the folder {path} holds no Parquet file ({' or '.join(ENDINGS)}).")
        return found, path
    if os.path.exists(path):
        return [path], None
    matched = glob.glob(path, recursive=True)
    if not matched:
        raise FileNotFoundError(f"data: there is no file {path}.")
    fixed = path[: min(path.find(letter) for letter in "*?[" if letter in path)]
    root = os.path.dirname(fixed)
    files = {os.path.normpath(name): name for name in matched if os.path.isfile(name)}
    # A pattern may match a folder and what is in it, which is meant once all the same.
    for folder in (name for name in matched if os.path.isdir(name) and _visible(Path(name), root)):
        for name in _within(folder):
            files.setdefault(os.path.normpath(name), name)
    if not files:
        raise FileNotFoundError(
            f"data: {path} matches folders only, and they hold no Parquet file ({' or '.join(ENDINGS)})."
        )
    return sorted(files.values()), root or None


def _within(folder: str) -> list[str]:
    return sorted(str(p) for ending in ENDINGS for p in Path(folder).rglob(f"*{ending}") if _is_part(p, folder))


def _is_part(place: Path, folder: str) -> bool:
    return place.is_file() and _visible(place, folder)


def _visible(place: Path, root: str) -> bool:
    return not any(part.startswith((".", "_")) for part in place.relative_to(root).parts)


def _check_once(files: list[str]) -> None:
    """Complain of a file that is there twice: its rows would count twice, and nobody would be told."""
    seen: dict[str, str] = {}
    for path in files:
        place = os.path.realpath(path)
        if place in seen:
            again = "" if seen[place] == path else f", as {seen[place]} too"
            raise ValueError(f"data: {path} is named twice{again}; its rows would count twice. Name it once.")
        seen[place] = path


def common_schema(files: list[str], read: Callable[[str], bool] | None = None) -> pa.Schema:
    """Return the schema of the first file, or say which other one does not fit it.

    Parameters
    ----------
    files
        The files.
    read
        Whether a column, by its name, is one of those that are read, which must be the same in all files, of the same
        types and in any order; by default all are.
    """
    first = _schema(files[0])
    wanted = set(filter(read, first.names) if read else first.names)
    for path in files[1:]:
        schema = _schema(path)
        odd = sorted(wanted.symmetric_difference(filter(read, schema.names) if read else schema.names))
        if odd:
            expected = "the same" if read is None else "the same of those that are read"
            raise ValueError(
                f"data: {path} has other columns than {files[0]} ({listed(odd)}); all files must have {expected}."
            )
        for name in (name for name in first.names if name in wanted):
            mine, theirs = schema.field(name).type, first.field(name).type
            if mine != theirs:
                raise ValueError(
                    f"data: the column {name!r} is {mine} in {path} and {theirs} in {files[0]}; write them with the "
                    "same types."
                )
    return first


def _schema(path: str) -> pa.Schema:
    if os.path.getsize(path) == 0:
        raise ValueError(f"data: {path} is empty (0 bytes); remove it, or write it again.")
    try:
        schema = pq.read_schema(path).remove_metadata()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"data: {path} is no whole Parquet file ({reason}); write or fetch it again.") from error
    twice = [name for name in dict.fromkeys(schema.names) if schema.names.count(name) > 1]
    if twice:
        raise ValueError(f"data: {path} has columns of the same name twice ({listed(twice)}); rename them.")
    return schema


def is_number(kind: pa.DataType) -> bool:
    """Return whether a type is one of numbers, or of truth."""
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(test(kind) for test in tests)


def listed(names: Sequence[str]) -> str:
    """Return names as a person lists them, not all if they are many."""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(map(repr, names[:10])) + more
