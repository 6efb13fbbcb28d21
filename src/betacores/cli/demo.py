"""``betacores demo``: the whole story on an embedded, deliberately contaminated table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from betacores.cli import options as o


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files to look at.")] = Path("demo-output"),
    size: Annotated[int, typer.Option(help="Largest number of rows to keep.")] = 60,
    seed: Annotated[int, typer.Option(help="Seed of the data and of the coreset.")] = 0,
    force: o.Force = False,
) -> None:
    """Summarise an embedded, dirty table and compare with all rows and with a random subset.

    Example: betacores demo --out demo-output
    """
    from betacores.cli.cache import keep_compiled
    from betacores.cli.places import check_ours, check_place
    from betacores.cli.progress import progress_bar
    from betacores.cores import keep_to_one_core

    check_place(out, force=force)
    keep_to_one_core()
    keep_compiled()
    check_ours(out)
    from betacores.experiments.demo import run, story

    with progress_bar("Choosing rows") as progress:
        result = run(size=size, seed=seed, out=out, progress=progress)
    typer.echo(story(result))
    others = ", ".join(sorted(file.name for file in out.iterdir() if file.name != "report.html"))
    typer.echo(f"\nIn {out}: {others}\nOpen {out / 'report.html'}")
