"""``betacores reproduce``: the paper's experiments and our own, figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def reproduce(
    experiment: Annotated[str, typer.Argument(help="Which experiment: gaussian, pursuit or logistic.")],
    out: Annotated[Path | None, typer.Option(help="Folder for figures and tables.")] = None,
    trials: Annotated[int | None, typer.Option(help="Number of trials; by default 5 (gaussian) or 10.")] = None,
    size: Annotated[int, typer.Option(help="Outer iterations M (gaussian).")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the first trial.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Little of it: a trial run of the command.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
) -> None:
    """Run an experiment and write its figures and tables; what an earlier run finished is kept."""
    from betacores.cli.progress import progress_bar
    from betacores.experiments import gaussian, logistic, pursuit
    from betacores.inputs import check_choice, check_number

    check_choice("experiment", experiment, ("gaussian", "pursuit", "logistic"))
    if trials is not None:
        check_number("trials", trials, at_least=1, whole=True)
    check_number("size", size, at_least=1, whole=True)
    trials = trials or (5 if experiment == "gaussian" else 10)
    if quick:
        trials, size = min(trials, 2 if experiment == "gaussian" else 1), min(size, 20)
    settings: dict[str, Any] = {"trials": trials, "seed": seed, "jobs": jobs}
    out = out or (Path("quick-results") if quick else Path("docs/results")) / experiment
    with progress_bar("Runs") as progress:
        if experiment == "gaussian":
            files = gaussian.reproduce(out, size=size, progress=progress, **settings)
        elif experiment == "logistic":
            files = logistic.reproduce(out, quick=quick, progress=progress, **settings)
        else:
            files = pursuit.reproduce(out, progress=progress, **settings)
    typer.echo("\n".join(str(file) for file in files))
