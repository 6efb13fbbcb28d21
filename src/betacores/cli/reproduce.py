"""``betacores reproduce``: the paper's experiments and our own, figures and tables."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from betacores.cli.names import one_of


class Experiment(NamedTuple):
    """Trials by default and in a trial run, and the options that not every experiment takes."""

    trials: int
    quick_trials: int = 1
    takes: tuple[str, ...] = ()


# By name; the module of an experiment is called like it.
EXPERIMENTS = {
    "gaussian": Experiment(trials=5, quick_trials=2, takes=("size",)),
    "pursuit": Experiment(trials=10),
    "logistic": Experiment(trials=10, takes=("quick",)),
    "groups": Experiment(trials=5, takes=("quick",)),
    "neural-linear": Experiment(trials=30, takes=("quick",)),
}


def reproduce(
    experiment: Annotated[
        str,
        typer.Argument(help=f"Which experiment: {', '.join(EXPERIMENTS)}.", autocompletion=one_of(*EXPERIMENTS)),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for figures and tables.")] = None,
    trials: Annotated[int | None, typer.Option(help="Number of trials; by default 5 to 30.")] = None,
    size: Annotated[int, typer.Option(help="Outer iterations M (gaussian).")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the first trial.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Little of it: a trial run of the command.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes; by default one a core.")] = None,
) -> None:
    """Run an experiment and write its figures and tables; what an earlier run finished is kept.

    Example: betacores reproduce gaussian --quick
    """
    from betacores.checks import check_choice, check_number
    from betacores.cli.progress import progress_bar

    check_choice("experiment", experiment, tuple(EXPERIMENTS))
    if trials is not None:
        check_number("trials", trials, at_least=1, whole=True)
    check_number("size", size, at_least=1, whole=True)
    chosen = EXPERIMENTS[experiment]
    trials = trials or chosen.trials
    if quick:
        trials, size = min(trials, chosen.quick_trials), min(size, 20)
    options = {"size": size, "quick": quick}
    own: dict[str, Any] = {name: options[name] for name in chosen.takes}
    out = out or (Path("quick-results") if quick else Path("docs/results")) / experiment
    module = import_module(f"betacores.experiments.{experiment.replace('-', '_')}")
    with progress_bar("Runs", before="Beginning") as progress:
        files = module.reproduce(out, trials=trials, seed=seed, jobs=jobs, progress=progress, **own)
    typer.echo("\n".join(str(file) for file in files))
