"""The files a person names: one, several, a folder or a pattern; and whether they are held in memory or streamed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from betacores.cli.memory import available, in_words, taken_by
from betacores.cli.reading import PARQUET, stem

if TYPE_CHECKING:
    import pyarrow.dataset as ds

    from betacores.cli.options import Options

LETTERS = "*?["


class Stored(NamedTuple):
    """Parquet files as one table, the files themselves, and the columns that are named by their folders."""

    dataset: ds.Dataset
    files: list[str]
    partitions: list[str]


class Way(NamedTuple):
    """Whether rows are streamed, and why, if nobody asked."""

    streamed: bool
    why: str = ""


def is_one(files: list[Path]) -> bool:
    """Return whether a single file is named, and no folder or pattern."""
    return len(files) == 1 and not files[0].is_dir() and not is_pattern(files[0])


def is_pattern(file: Path) -> bool:
    """Return whether a name means the files that look like it."""
    return any(letter in str(file) for letter in LETTERS) and not file.exists()


def is_array(files: list[Path]) -> bool:
    """Return whether an array is named."""
    return len(files) == 1 and files[0].suffix.lower() == ".npy"


def stored(files: list[Path]) -> Stored:
    """Return Parquet files as one table with the columns of the first; whether the others fit it is not looked at."""
    import pyarrow.dataset as ds

    from betacores.sources.parquet_files import common_schema, found_files

    for file in files:
        odd = not file.is_dir() and file.suffix.lower() not in PARQUET
        if odd and (is_pattern(file) or file.exists()):
            raise ValueError(f"{file}: of several files each is Parquet; write them so, or name one file.")
    found, root = found_files([str(file) for file in files] if len(files) > 1 else str(files[0]))
    names = common_schema(found[:1]).names
    hive = ds.partitioning(flavor="hive")
    dataset = ds.dataset(found, format="parquet", partitioning=hive, partition_base_dir=root)
    return Stored(dataset, found, [name for name in dataset.schema.names if name not in names])


def default_place(files: list[Path]) -> Path:
    """Return where the result is written if nobody says: beside a file or folder; here, by the name of its folder."""
    if is_one(files):
        return files[0].with_name(f"{stem(files[0])}-coreset")
    if len(files) == 1 and files[0].is_dir():
        folder = files[0].resolve()
        return folder.with_name(f"{folder.name}-coreset")
    above = files[0].absolute().parent
    while is_pattern(above):
        above = above.parent
    return Path(f"{above.name or 'table'}-coreset")


def check_apart(out: Path, files: list[Path], checkpoint: Path | None) -> None:
    """Refuse a result inside of what is read, where the next run would read it, or one that mixes with its journal."""
    for file in files:
        if file.is_dir() and out.resolve().is_relative_to(file.resolve()):
            raise ValueError(f"--out: {out} is inside {file}, which is read; choose a place beside it.")
    if checkpoint is None:
        return
    ours, theirs = out.resolve(), checkpoint.resolve()
    if ours.is_relative_to(theirs) or theirs.is_relative_to(ours):
        raise ValueError(f"--checkpoint: {checkpoint} and the result, {out}, must not be inside each other.")
    if checkpoint.is_file():
        raise FileExistsError(f"--checkpoint: {checkpoint} is a file; name a folder.")
    if checkpoint.is_dir() and any(checkpoint.iterdir()) and not any(checkpoint.glob("*journal.json*")):
        raise FileExistsError(f"--checkpoint: {checkpoint} holds other files; name a new or empty folder.")


def way_of(files: list[Path], asked: Options, *, cluster: str | None, checkpoint: Path | None) -> Way:
    """Return whether rows are to be streamed: asked for, or needed."""
    told = {"--cluster": cluster is not None, "--checkpoint": checkpoint is not None}
    option = next((name for name, given in told.items() if given), None)
    if asked.y is not None and not is_array(files):
        raise ValueError("--y: it is for an .npy file; of a table name the response's column, --target.")
    if option is not None and asked.out_of_core is False:
        raise ValueError(f"{option}: it is for tables that are not held in memory; leave --in-memory out.")
    if is_one(files) and files[0].suffix.lower() not in (*PARQUET, ".npy"):
        option = option or ("--out-of-core" if asked.out_of_core else None)
        if option is not None:
            raise ValueError(f"{option}: {files[0]} is read whole; write it as Parquet, and name that.")
        return Way(False)
    if asked.out_of_core is not None or option is not None:
        return Way(asked.out_of_core is not False)
    if asked.groups:
        return Way(False)
    return _needed(files[0]) if is_one(files) and not is_array(files) else Way(True)


def _needed(file: Path) -> Way:
    """Return whether a single Parquet file is too large for the memory there is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(file)
    except (OSError, pa.ArrowException):
        # Whoever reads it says what is wrong.
        return Way(False)
    wanted, free = taken_by(about.num_rows, about.num_columns), available()
    if free is None or wanted <= free:
        return Way(False)
    return Way(
        True,
        f"read: block by block, since {file} would take about {in_words(wanted)} of memory and {in_words(free)} are "
        "free; --in-memory holds it all the same",
    )
