"""``betacores report``: the report of a saved coreset, made again from it and its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betacores.cli import options as o
from betacores.cli.options import Options

if TYPE_CHECKING:
    from betacores.coreset import Coreset

# The most rows that a report lists.
SUSPICIOUS = 500


def report(
    folder: Annotated[Path, typer.Argument(help="What betacores summarize wrote.")],
    data: Annotated[Path | None, typer.Option(help="The table, if it is no longer where it was.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; by default report.html in the folder.")] = None,
    force: o.Force = False,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    quiet: o.Quiet = False,
) -> None:
    """Make the report of a saved coreset again, as one HTML file.

    Example: betacores report houses-coreset --force --open
    """
    from betacores.cli.places import check_place, write_whole

    run = _run_of(folder)
    out = check_place(out or folder / "report.html", force=force)
    if out.is_dir():
        raise IsADirectoryError(f"--out: {out} is a folder; name a file, such as {out / 'report.html'}.")
    coreset = with_table(folder, _files(data or run["file"]), Options.from_record(run["options"]))
    write_whole(out, page_of(coreset, run["command"]).encode("utf-8"))
    if not quiet:
        typer.echo(str(out))
    if open_it:
        import webbrowser

        webbrowser.open(out.resolve().as_uri())


def page_of(coreset: Coreset, command: str) -> str:
    """Return the report as HTML."""
    return coreset.report(command=command, suspicious=SUSPICIOUS).html


def _files(given: Any) -> list[Path]:
    return [Path(one) for one in given] if isinstance(given, list) else [Path(given)]


def with_table(folder: Path, files: list[Path], asked: Options) -> Coreset:
    """Return a saved coreset together with the table it was made of."""
    from betacores.cli.files import is_pattern

    file = files[0]
    gone = next((one for one in files if not one.exists() and not is_pattern(one)), None)
    if gone is not None:
        raise FileNotFoundError(f"{gone}: the table is not there any more; say where it is with --data.")
    table = asked.read(*files)

    from betacores.cli.cache import keep_compiled
    from betacores.storage import load
    from betacores.tables import TableEncoder

    keep_compiled()
    coreset = load(folder)
    if len(table.whole) != coreset.row_count:
        raise ValueError(
            f"{file}: it has {len(table.whole):,} rows, the coreset was made of {coreset.row_count:,}; "
            "name the table as it was with --data."
        )
    encoder = TableEncoder(missing=asked.missing, scale=None)
    x = encoder.fit_transform(table.data)
    place = {name: j for j, name in enumerate(encoder.get_feature_names_out())}
    lost = [name for name in coreset.columns if name not in place]
    if lost:
        raise ValueError(
            f"{file}: it gives no column {lost[0]!r}, which the coreset has; name the table as it was with --data."
        )
    chosen = [place[name] for name in coreset.columns]

    from betacores.origin import Origin

    sources = [str(encoder.sources_[j]) for j in chosen]
    return replace(coreset, origin=Origin(x[:, chosen], table.y, table.whole, sources, asked.target))


def _run_of(folder: Path) -> dict[str, Any]:
    from betacores.storage import read_run

    if not (folder / "summary.json").is_file():
        raise FileNotFoundError(f"{folder}: there is no saved coreset (summary.json is missing).")
    run = read_run(folder)
    if run is None:
        raise ValueError(f"{folder}: it does not say which table it is of; it was not written by betacores summarize.")
    return run
