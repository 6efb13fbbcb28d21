"""``betacores reproduce``: the paper's experiments, figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    experiment: Annotated[str, typer.Argument(help="Which experiment: gaussian.")],
    out: Annotated[Path | None, typer.Option(help="Folder for figures and tables.")] = None,
    trials: Annotated[int, typer.Option(help="Number of trials.")] = 5,
    size: Annotated[int, typer.Option(help="Outer iterations M.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the first trial.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Two trials and 20 outer iterations.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
) -> None:
    """Run one of the β-Cores paper's experiments and write its figures and table."""
    from betacores.cli.progress import progress_bar
    from betacores.experiments import gaussian
    from betacores.inputs import check_choice, check_number

    check_choice("experiment", experiment, ("gaussian",))
    check_number("trials", trials, at_least=1, whole=True)
    check_number("size", size, at_least=1, whole=True)
    if quick:
        trials, size = min(trials, 2), min(size, 20)
    out = out or Path("docs/results") / experiment
    with progress_bar("Runs") as progress:
        files = gaussian.reproduce(out, trials=trials, size=size, seed=seed, jobs=jobs, progress=progress)
    typer.echo("\n".join(str(file) for file in files))
