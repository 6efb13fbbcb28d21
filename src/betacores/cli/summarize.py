"""``betacores summarize``: a file in, a coreset and a report out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    file: o.File,
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
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.html.")] = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Summarise a table by a few weighted rows, or by groups of rows, leaving its outliers behind.

    Example: betacores summarize houses.csv --target price --drop id

    Ctrl-C keeps the rows found so far; --resume goes on from there.
    """
    from betacores.cli.places import check_ours, check_place
    from betacores.cli.reading import stem

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
    )
    out = check_place(out or file.with_name(f"{stem(file)}-coreset"), force=force or resume)
    check_ours(out)
    before = _earlier(out, file, asked) if resume and out.exists() else None
    table = asked.read(file)

    from betacores.cli.cache import keep_compiled
    from betacores.cli.interruption import Interruption
    from betacores.cli.saying import for_machines, for_people
    from betacores.cores import keep_to_one_core

    if asked.method in STEP_BY_STEP:
        keep_to_one_core()
    keep_compiled()
    with Interruption() as interruption:
        coreset = _chosen(table, asked, interruption, hidden=quiet or as_json, before=before)
        _save(coreset, out, file, asked, interruption.heeded, with_report=not no_report, replacing=force or resume)
    if as_json:
        typer.echo(for_machines(coreset, out, interrupted=interruption.heeded))
    elif not quiet:
        typer.echo(for_people(coreset, out))
    if interruption.heeded:
        complain(f"interrupted at {len(coreset)} rows, which are in {out}. {_how_to_go_on(asked, file, out)}", "yellow")
        raise typer.Exit(INTERRUPTED)


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


def _save(
    coreset: Coreset, out: Path, file: Path, asked: Options, partial: bool, *, with_report: bool, replacing: bool
) -> None:
    from betacores.cli.report import page_of
    from betacores.storage import save

    command = asked.command(file)
    run = {
        "file": str(file.resolve()),
        "bytes": file.stat().st_size,
        "command": command,
        "options": asked.as_record(),
        "interrupted": partial,
    }
    extra = {"report.html": page_of(coreset, command)} if with_report else {}
    save(coreset, out, overwrite=replacing, run=run, extra=extra)


def _earlier(out: Path, file: Path, asked: Options) -> Coreset:
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
    if run["file"] != str(file.resolve()) or not file.exists() or run["bytes"] != file.stat().st_size:
        raise ValueError(f"--resume: {file} is not the table of {run['command']}, or has changed; begin with --force.")
    if not _can_go_on(asked):
        raise ValueError(f"--resume: {_CANNOT}; begin again with --force.")
    return load(out)


_CANNOT = "only --method pursuit without --groups can go on from rows it has"


def _can_go_on(asked: Options) -> bool:
    return asked.method == "pursuit" and not asked.groups


def _how_to_go_on(asked: Options, file: Path, out: Path) -> str:
    import shlex

    if not _can_go_on(asked):
        return f"They can be used as they are; {_CANNOT}."
    return f"To go on: {asked.command(file)} --out {shlex.quote(str(out))} --resume"
