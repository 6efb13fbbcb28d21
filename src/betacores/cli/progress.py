"""Progress on the terminal: the one place that draws what the library's callbacks report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

# What passes over the rows are for.
STAGES = {
    "check": "Checking all rows",
    "guard": "Judging covariates",
    "noise": "Estimating noise",
    "tuning": "Choosing beta",
    "mode": "Finding the mode",
    "scores": "Scoring all rows",
    "survey": "Picking candidates",
}


@contextmanager
def progress_bar(
    description: str, hidden: bool = False, *, before: str = "Looking at all rows"
) -> Iterator[Callable[[int, int], None]]:
    """Yield a callback that draws finished and remaining work, with the time left; one that draws nothing if hidden.

    It draws on stderr, so that what a command says can be piped, and only if that is a terminal.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as bar:
        task = bar.add_task(before, total=None)
        yield lambda done, total: bar.update(task, description=description, completed=done, total=total)


@contextmanager
def passes_bar(hidden: bool = False) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[int, int], None]]]:
    """Yield two callbacks that draw passes over the rows, with what each is for, and steps of the choice after them."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=hidden or not console.is_terminal) as bar:
        task = bar.add_task("Looking at all rows", total=None, told="")

        def on_pass(stage: str, rows: int, total: int) -> None:
            told = f"{rows:,} of {total:,} rows" if total else ""
            description = STAGES.get(stage, stage).ljust(max(map(len, STAGES.values())))
            bar.update(task, description=description, completed=rows, total=total or None, told=told)

        def on_step(done: int, total: int) -> None:
            bar.update(task, description="Choosing rows", completed=done, total=total, told=f"{done} of {total}")

        yield on_pass, on_step
