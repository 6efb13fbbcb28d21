"""``betacores summarize``: a file in, a coreset and a report out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from betacores.cli import options as o
from betacores.cli.names import METHODS, one_of
from betacores.cli.options import Options, number_or_auto
from betacores.cli.outcome import INTERRUPTED, complain

if TYPE_CHECKING:
    from betacores.cli.columns import Asked
    from betacores.cli.interruption import Interruption
    from betacores.coreset import Coreset

# Points that are moved are no rows of the table.
CHOOSING = tuple(name for name in METHODS if name != "psvi")
# Loops of many small steps, which a pool of threads slows down.
STEP_BY_STEP = ("beta-cores", "sparse-vi")


def summarize(
    files: o.Files,
    target: o.Target = None,
    model: o.Model = "auto",
    size: Annotated[str, typer.Option(help="Largest number of rows to keep; auto for as many as needed.")] = "auto",
    beta: Annotated[str, typer.Option(help="Robustness; 0 trusts every row; auto chooses it.")] = "auto",
    method: Annotated[str, typer.Option(help="How rows are chosen.", autocompletion=one_of(*CHOOSING))] = "pursuit",
    groups: Annotated[
        list[str] | None, typer.Option(help="Column that names groups to keep whole; repeatable.")
    ] = None,
    max_groups: Annotated[str, typer.Option(help="Largest number of groups to keep.")] = "auto",
    drop: o.Drop = None,
    keep: o.Keep = None,
    where: o.Where = None,
    y: Annotated[Path | None, typer.Option(help="For an .npy file: the responses, another one.")] = None,
    words: o.Words = None,
    na: o.Na = None,
    missing: o.Missing = "impute",
    drop_missing_target: o.DropMissingTarget = False,
    guard: Annotated[bool, typer.Option(help="Whether rows with absurd covariates count less.")] = True,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = ".",
    encoding: o.Encoding = "utf-8",
    seed: o.Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the result; by default FILE-coreset.")] = None,
    force: o.Force = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where Ctrl-C ended an earlier run.")] = False,
    out_of_core: Annotated[
        bool | None,
        typer.Option(
            "--out-of-core/--in-memory",
            help="Read block by block, or hold the table; by default single files are held if memory is enough.",
            show_default=False,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder that notes passes down, so that a run that was killed goes on; removed at the end."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Compute with Dask: local, or a scheduler such as tcp://10.0.0.1:8786.")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.html.")] = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Summarise a table by a few weighted rows, or by groups of rows, leaving its outliers behind.

    Example: betacores summarize houses.csv --target price --drop id

    Ctrl-C keeps the rows found so far; --resume goes on from there.

    Larger than memory: betacores summarize rows/ --target y --checkpoint notes
    """
    from betacores.checkpoints import checkpoint_folder
    from betacores.cli.files import check_apart, default_place, way_of
    from betacores.cli.places import check_ours, check_place

    asked = Options(
        target=target,
        model=model,
        size=number_or_auto("--size", size, int),
        beta=number_or_auto("--beta", beta, float),
        method=method,
        groups=tuple(groups or ()),
        max_groups=number_or_auto("--max-groups", max_groups, int),
        drop=tuple(drop or ()),
        keep=tuple(keep or ()),
        words=tuple(words or ()),
        na=tuple(na or ()),
        missing=missing,
        drop_missing_target=drop_missing_target,
        guard=guard,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        seed=seed,
        where=where,
        y=None if y is None else str(y),
        out_of_core=out_of_core,
    )
    out = check_place(out or default_place(files), force=force or resume)
    check_ours(out)
    check_apart(out, files, checkpoint)
    if checkpoint is not None:
        checkpoint_folder(checkpoint, "--checkpoint")
    way = way_of(files, asked, cluster=cluster, checkpoint=checkpoint)
    writing = Writing(out, files, asked, with_report=not no_report, replacing=force or resume)
    hidden = quiet or as_json
    if way.streamed:
        if resume:
            raise ValueError(
                "--resume: it goes on with a table held in memory; a table read block by block goes on from its "
                "--checkpoint."
            )
        coreset, interrupted = _streamed(writing, way.why, cluster, checkpoint, hidden=hidden), False
    else:
        before = _earlier(out, files, asked) if resume and out.exists() else None
        coreset, interrupted = _held(writing, before, hidden=hidden)
    _say(coreset, writing, interrupted, as_json=as_json, quiet=quiet)


class Writing(NamedTuple):
    """What is written where: the files it is of, what was asked, and whether an earlier result may be replaced."""

    out: Path
    files: list[Path]
    asked: Options
    with_report: bool
    replacing: bool

    def write(self, coreset: Coreset, *, partial: bool = False, streamed: bool = False, read: Sequence[str]) -> None:
        """Write a coreset, and its report if its table is at hand."""
        from betacores.cli.report import page_of
        from betacores.storage import save

        command = self.asked.command(*self.files)
        run = {
            "file": _places(self.files),
            "bytes": sum(Path(file).stat().st_size for file in read),
            "command": command,
            "options": self.asked.as_record(),
            "interrupted": partial,
            "streamed": streamed,
        }
        shown = self.with_report and coreset.origin is not None
        extra = {"report.html": page_of(coreset, command)} if shown else {}
        save(coreset, self.out, overwrite=self.replacing, run=run, extra=extra)


def _streamed(writing: Writing, why: str, cluster: str | None, checkpoint: Path | None, *, hidden: bool) -> Coreset:
    """Return the coreset of a table that stays where it is, after writing it."""
    from betacores.cli.cache import keep_compiled
    from betacores.cli.interruption import Interruption
    from betacores.cli.streaming import GoingOn, coreset_of, forget, opened

    streamed = opened(writing.files, writing.asked, cluster)
    if why:
        streamed.notes[0] = why
    keep_compiled()
    with Interruption(), GoingOn(checkpoint):
        coreset = coreset_of(streamed, writing.asked, checkpoint, hidden=hidden)
        writing.write(coreset, streamed=True, read=streamed.files)
        if checkpoint is not None:
            forget(checkpoint)
    return coreset


def _held(writing: Writing, before: Coreset | None, *, hidden: bool) -> tuple[Coreset, bool]:
    """Return the coreset of a table in memory, after writing it, and whether Ctrl-C ended the choice."""
    asked = writing.asked
    table = asked.read(*writing.files)

    from betacores.cli.cache import keep_compiled
    from betacores.cli.interruption import Interruption
    from betacores.cores import keep_to_one_core

    if asked.method in STEP_BY_STEP:
        keep_to_one_core()
    keep_compiled()
    with Interruption() as interruption:
        coreset = _chosen(table, asked, interruption, hidden=hidden, before=before)
        writing.write(coreset, partial=interruption.heeded, read=_read(writing.files))
    return coreset, interruption.heeded


def _say(coreset: Coreset, writing: Writing, interrupted: bool, *, as_json: bool, quiet: bool) -> None:
    from betacores.cli.saying import for_machines, for_people

    out = writing.out
    if as_json:
        typer.echo(for_machines(coreset, out, interrupted=interrupted))
    elif not quiet:
        typer.echo(for_people(coreset, out))
        if writing.with_report and coreset.origin is None:
            typer.echo(
                "No report.html: it shows rows of the table, which was not held in memory. On a machine that can hold "
                f"it: betacores report {shlex.quote(str(out))}"
            )
    if interrupted:
        how = _how_to_go_on(writing.asked, writing.files, out)
        complain(f"interrupted at {len(coreset)} rows, which are in {out}. {how}", "yellow")
        raise typer.Exit(INTERRUPTED)


def _read(files: list[Path]) -> list[str]:
    from betacores.cli.files import is_one, stored

    return [str(files[0])] if is_one(files) else stored(files).files


def _places(files: list[Path]) -> str | list[str]:
    places = [str(file.resolve()) for file in files]
    return places[0] if len(places) == 1 else places


def _chosen(
    table: Asked, asked: Options, interruption: Interruption, *, hidden: bool, before: Coreset | None
) -> Coreset:
    """Return the coreset of a table, its warnings told."""
    import warnings

    from betacores.cli.columns import suited_model
    from betacores.cli.progress import progress_bar
    from betacores.estimators import CoresetSelector

    model, why = suited_model(asked.model, table.y, asked.target)
    settings: dict[str, Any] = {} if before is None else {"init": before.indices}
    with warnings.catch_warnings(record=True) as caught, progress_bar("Choosing rows", hidden=hidden) as progress:
        warnings.simplefilter("always")
        selector = CoresetSelector(
            model=model,
            size=asked.size,
            beta=asked.beta,
            method=asked.method,
            guard="auto" if asked.guard else None,
            max_groups=asked.max_groups,
            random_state=asked.seed,
            missing=asked.missing,
            method_settings={**settings, "progress": interruption.watched(progress)},
        ).fit(table.data, table.y, groups=table.groups)
    coreset = selector.coreset_
    assert coreset is not None
    assert coreset.origin is not None
    if not hidden:
        # What the coreset itself warns of is said with it.
        for line in {str(warning.message) for warning in caught} - {" ".join(coreset.info.warnings)}:
            complain(line, "yellow")
    coreset.info.notes[:0] = [note for note in (why, *table.notes) if note]
    return replace(coreset, origin=replace(coreset.origin, frame=table.whole, target=asked.target))


def _earlier(out: Path, files: list[Path], asked: Options) -> Coreset:
    """Return the coreset that an interrupted run left, if it is one of the same table and options."""
    from betacores.storage import load, read_run

    run = read_run(out)
    if run is None:
        raise ValueError(f"--resume: {out} was not written by betacores summarize; choose another place with --out.")
    if not run["interrupted"]:
        raise ValueError(f"--resume: the run in {out} is complete; use --force to make it again.")
    changed = asked.differences(Options.from_record(run["options"]))
    if changed:
        raise ValueError(
            f"--resume: {', '.join(changed)} {'is' if len(changed) == 1 else 'are'} not as in the run to go on with, "
            f"which was: {run['command']}; say the same, or begin again with --force."
        )
    there = run["file"] == _places(files) and (len(files) > 1 or files[0].exists())
    if not there or run["bytes"] != sum(Path(file).stat().st_size for file in _read(files)):
        raise ValueError(
            f"--resume: {files[0]} is not the table of {run['command']}, or has changed; begin with --force."
        )
    if not _can_go_on(asked):
        raise ValueError(f"--resume: {_CANNOT}; begin again with --force.")
    return load(out)


_CANNOT = "only --method pursuit without --groups can go on from rows it has"


def _can_go_on(asked: Options) -> bool:
    return asked.method == "pursuit" and not asked.groups


def _how_to_go_on(asked: Options, files: list[Path], out: Path) -> str:
    if not _can_go_on(asked):
        return f"They can be used as they are; {_CANNOT}."
    return f"To go on: {asked.command(*files)} --out {shlex.quote(str(out))} --resume"
