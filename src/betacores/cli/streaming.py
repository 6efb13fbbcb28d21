"""``betacores summarize`` of a table that memory does not hold: Parquet files or arrays, read block by block.

Rows are taken as `betacores.summarize` takes them: finite numbers, in their own units. What needs the whole table at
once, words and missing cells for example, is said to need memory before any row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from betacores.cli.columns import Wanted, check_there, matching
from betacores.cli.files import Stored, is_array, stored
from betacores.cli.options import Options
from betacores.cli.outcome import Ended, complain

if TYPE_CHECKING:
    from betacores.coreset import Coreset

LOCAL = "local"
# What the journal writes, and nothing else, goes when it has served.
NOTED = ("journal.json", ".journal.json.*", "pass-*.state", "pass-*.f32", "pass-*.sums", "pass-*.json", ".pass-*")


class Streamed(NamedTuple):
    """What `betacores.summarize` is called with, the files that are read, and what there is to note."""

    data: Any
    arguments: dict[str, Any]
    files: list[str]
    notes: list[str]


def opened(files: list[Path], asked: Options, cluster: str | None) -> Streamed:
    """Return what is to be streamed, after checking all that can be checked without reading rows."""
    _check_options(asked, cluster)
    if is_array(files):
        return _array(files[0], asked, cluster)
    from betacores.sources.parquet_files import common_schema

    found = stored(files)
    columns, target = _columns(found, asked)
    # Those of --where are looked at by who reads the rows.
    common_schema(found.files, partial(_meant, asked=asked) if asked.keep or asked.drop else None)
    where = None
    if asked.where is not None:
        from betacores.cli.where import parsed

        where = parsed(asked.where, found.dataset.schema)
    notes = [f"read: {_told(found.files)}, block by block, columns in their own units"]
    if asked.where is not None:
        notes.append(f"rows are numbered among those that pass --where {asked.where!r}")
    if cluster is None:
        data: Any = [str(file) for file in files] if len(files) > 1 else str(files[0])
        return Streamed(data, {"columns": columns, "target": target, "filter": where}, found.files, notes)
    try:
        import dask.dataframe as dd
        import distributed  # noqa: F401
    except ImportError:
        raise ImportError("--cluster: it needs Dask: pip install 'betacores[dask]'.") from None
    notes[0] = f"read: {_told(found.files)}, by the workers of a cluster, columns in their own units"
    names = columns if target is None else [*columns, target]
    arguments = {"target": target, "client": None if cluster == LOCAL else cluster}
    return Streamed(dd.read_parquet(found.files, columns=names), arguments, found.files, notes)


def coreset_of(streamed: Streamed, asked: Options, checkpoint: Path | None, *, hidden: bool) -> Coreset:
    """Return the coreset, its warnings told."""
    import warnings

    import betacores as bc
    from betacores.cli.progress import passes_bar

    budget: dict[str, Any] = {"size": asked.size, "beta": asked.beta}

    with warnings.catch_warnings(record=True) as caught, passes_bar(hidden) as (on_pass, on_step):
        warnings.simplefilter("always")
        # Files of numbers are closed when nobody holds them any longer.
        warnings.simplefilter("ignore", ResourceWarning)
        coreset = bc.summarize(
            streamed.data,
            model=asked.model,
            **budget,
            method=asked.method,
            guard="auto" if asked.guard else None,
            checkpoint=checkpoint,
            seed=asked.seed,
            on_pass=on_pass,
            progress=on_step,
            **streamed.arguments,
        )
    if not hidden:
        for line in {str(warning.message) for warning in caught} - {" ".join(coreset.info.warnings)}:
            complain(line, "yellow")
    coreset.info.notes[:0] = streamed.notes
    return coreset


def forget(checkpoint: Path) -> None:
    """Remove the journal of a run whose result is in place; other files that somebody put there stay."""
    for pattern in NOTED:
        for file in checkpoint.glob(pattern):
            file.unlink(missing_ok=True)
    if checkpoint.is_dir() and not any(checkpoint.iterdir()):
        checkpoint.rmdir()


class GoingOn:
    """Says how to go on when a run with a checkpoint is interrupted."""

    def __init__(self, checkpoint: Path | None):
        self.checkpoint = checkpoint

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, *rest: object) -> None:
        stopped = kind is not None and issubclass(kind, (Ended, KeyboardInterrupt))
        if stopped and self.checkpoint is not None and self.checkpoint.is_dir():
            complain(f"the passes so far are in {self.checkpoint}; the same command goes on from there.", "yellow")


def _array(file: Path, asked: Options, cluster: str | None) -> Streamed:
    for option, given in (("--target", asked.target), ("--keep", asked.keep), ("--drop", asked.drop)):
        if given:
            instead = "name the array of responses, --y FILE.npy" if option == "--target" else "leave it out"
            raise ValueError(f"{option}: {file} has no names of columns; {instead}.")
    if asked.where is not None:
        raise ValueError(f"--where: {file} has no names of columns; leave it out.")
    if cluster is not None:
        raise ValueError(f"--cluster: it reads Parquet files, and {file} is an array; leave it out.")
    files = [str(file), *([] if asked.y is None else [asked.y])]
    return Streamed(str(file), {"y": asked.y}, files, [f"read: {file}, block by block, columns in their own units"])


def _columns(found: Stored, asked: Options) -> tuple[list[str], str | None]:
    """Return the covariates and the response."""
    from betacores.sources.parquet_files import is_number

    schema, wanted = found.dataset.schema, Wanted(asked.target, (), asked.drop, asked.keep)
    names = schema.names
    dropped = {name for pattern in wanted.drop for name in matching("--drop", pattern, names)}
    kept = {name for pattern in wanted.keep for name in matching("--keep", pattern, names)}
    if wanted.target is not None:
        check_there("--target", wanted.target, names)
        if wanted.target in dropped:
            raise ValueError(f"--target: {wanted.target!r} cannot be left out as well.")
    # What folders are called is no covariate, unless somebody says so.
    kept = kept or set(names) - set(found.partitions)
    chosen = [name for name in names if name in kept and name not in dropped and name != wanted.target]
    if not chosen:
        raise ValueError("There is no column left to learn from beside the target and those left out.")
    words = [name for name in chosen if not is_number(schema.field(name).type)]
    if words:
        shown = ", ".join(f"{name!r} ({schema.field(name).type})" for name in words[:5])
        more = f" and {len(words) - 5} more" if len(words) > 5 else ""
        raise ValueError(
            f"columns that hold no numbers cannot be read block by block: {shown}{more}; leave them out with --drop, "
            "or read the whole table with --in-memory."
        )
    return chosen, wanted.target


def _meant(name: str, asked: Options) -> bool:
    """Return whether a column is one of those to be read, by what is said of its name."""

    def said(patterns: Sequence[str]) -> bool:
        return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)

    return name == asked.target or ((not asked.keep or said(asked.keep)) and not said(asked.drop))


def _check_options(asked: Options, cluster: str | None) -> None:
    from betacores.checks import check_choice
    from betacores.cli.names import MODELS
    from betacores.constructions import METHODS

    check_choice("--model", asked.model, MODELS)
    plain, remedy = Options(), "read the whole table with --in-memory, or leave it out."
    for name in ("groups", "max_groups", "words", "na", "delimiter", "decimal", "encoding", "drop_missing_target"):
        if getattr(asked, name) != getattr(plain, name):
            raise ValueError(f"--{name.replace('_', '-')}: it is for tables held in memory; {remedy}")
    if not METHODS[check_choice("--method", asked.method, METHODS)].streams:
        able = " or ".join(name for name, one in METHODS.items() if one.streams)
        raise ValueError(
            f"--method: {asked.method!r} needs the table in memory; choose {able}, or read it whole with --in-memory."
        )
    if cluster is None:
        return
    if cluster != LOCAL and "://" not in cluster:
        raise ValueError(
            f"--cluster: expected local, or the address of a scheduler such as tcp://10.0.0.1:8786, got {cluster!r}."
        )
    if asked.where is not None:
        raise ValueError("--where: on a cluster all rows of the files are read; leave it out, or leave --cluster out.")


def _told(files: list[str]) -> str:
    return files[0] if len(files) == 1 else f"{len(files):,} files"
