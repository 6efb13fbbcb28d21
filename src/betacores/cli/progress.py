"""Progress on the terminal: the one place that draws what the library's callbacks report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
