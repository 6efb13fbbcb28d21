"""``betacores summarize``: a file in, a coreset out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from betacores.coreset import Coreset


def summarize(
    file: Annotated[Path, typer.Argument(help="A table of numbers, CSV or Parquet.")],
    target: Annotated[str | None, typer.Option(help="Column of the response; none for the mean of rows.")] = None,
    model: Annotated[str, typer.Option(help="gaussian-mean, linear or logistic; auto looks at the target.")] = "auto",
    size: Annotated[str, typer.Option(help="Largest number of rows to keep.")] = "auto",
    beta: Annotated[str, typer.Option(help="Robustness; 0 trusts every row.")] = "auto",
    method: Annotated[str, typer.Option(help="How rows are chosen.")] = "pursuit",
    groups: Annotated[
        list[str] | None, typer.Option(help="Column that names groups to keep whole; repeatable.")
    ] = None,
    max_groups: Annotated[str, typer.Option(help="Largest number of groups to keep.")] = "auto",
    drop: Annotated[list[str] | None, typer.Option(help="Column to leave out; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same coreset.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the coreset; by default FILE-coreset.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the coreset of an earlier run.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say the result in JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")] = False,
) -> None:
    """Summarise a table by a few weighted rows, or by groups of rows, leaving its outliers behind."""
    from betacores.cli.tables import asked_for, read_file

    out = out or file.with_name(f"{file.stem}-coreset")
    if out.exists() and not force:
        raise FileExistsError(f"{out} exists already; use --force to replace it, or --out for another place.")
    numbers = {
        "size": _number("--size", size, int),
        "beta": _number("--beta", beta, float),
        "max_groups": _number("--max-groups", max_groups, int),
    }
    named = list(groups or [])
    asked = asked_for(read_file(file), target, named, list(drop or []))

    import warnings

    from betacores.cli.progress import progress_bar
    from betacores.front_door import summarize as summarized

    with warnings.catch_warnings(record=True) as caught, progress_bar("Choosing", hidden=quiet or as_json) as progress:
        warnings.simplefilter("always")
        coreset = summarized(
            asked.data,
            asked.y,
            model=model,
            method=method,
            groups=(named if len(named) > 1 else named[0]) if named else None,
            seed=seed,
            progress=progress,
            **numbers,
        )
    for warning in caught:
        typer.secho(f"betacores: {warning.message}", fg="yellow", err=True)
    coreset.save(out, overwrite=force)
    if as_json:
        typer.echo(_json(coreset, out))
    elif not quiet:
        typer.echo(str(coreset))
        if named:
            typer.echo("\n" + _group_lines(coreset))
        typer.echo(f"\nWritten to {out}: {', '.join(sorted(one.name for one in out.iterdir()))}")


def _number(option: str, given: str, kind: type) -> Any:
    if given == "auto":
        return "auto"
    try:
        return kind(given)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{option}: expected {wanted} or auto, got {given!r}.") from None


def _group_lines(coreset: Coreset) -> str:
    rows = coreset.group_records()
    shown = rows[:25]
    labels = [str(row["group"]) for row in shown]
    width = max(len("group"), *map(len, labels))
    lines = [f"{'group':<{width}}  rank  weight    rows  score  contamination"]
    for label, row in zip(labels, shown, strict=True):
        rank = "-" if row["rank"] is None else str(row["rank"])
        dirt = f"{row['contamination']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
        lines.append(
            f"{label:<{width}}  {rank:>4}  {row['weight']:>6.2f}  {row['rows']:>6,}  {row['score']:>5.2f}  {dirt}"
        )
    if len(rows) > len(shown):
        lines.append(f"... and {len(rows) - len(shown)} more groups")
    return "\n".join(lines)


def _json(coreset: Coreset, out: Path) -> str:
    import json

    low, high = coreset.contamination_interval
    said: dict[str, Any] = {
        "out": str(out),
        "rows": coreset.row_count,
        "kept": len(coreset),
        "method": coreset.method,
        "model": coreset.model.name,
        "beta": coreset.beta,
        "contamination": coreset.contamination,
        "contamination_interval": [low, high],
        "notes": coreset.info.notes,
        "warnings": coreset.info.warnings,
    }
    if coreset.grouping is not None:
        said["groups"] = [{**row, "group": _plain(row["group"])} for row in coreset.group_records()]
    return json.dumps(said, indent=2, default=str)


def _plain(label: Any) -> Any:
    return list(label) if isinstance(label, tuple) else label
