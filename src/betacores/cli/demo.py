"""``betacores demo``: the whole story on an embedded, deliberately contaminated table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files to look at.")] = Path("demo-output"),
    size: Annotated[int, typer.Option(help="Largest number of rows to keep.")] = 60,
    seed: Annotated[int, typer.Option(help="Seed of the data and of the coreset.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the files of an earlier run.")] = False,
) -> None:
    """Summarise an embedded, dirty table and compare with all rows and with a random subset."""
    from betacores.cli.progress import progress_bar
    from betacores.cores import keep_to_one_core

    keep_to_one_core()
    from betacores.experiments.demo import run, story

    if out.exists() and not force:
        raise FileExistsError(f"{out} exists already; use --force to replace it.")
    with progress_bar("Choosing rows") as progress:
        result = run(size=size, seed=seed, out=out, progress=progress)
    typer.echo(story(result))
    typer.echo("\nFiles to look at:")
    for file in sorted(out.iterdir()):
        typer.echo(f"  {file}")
