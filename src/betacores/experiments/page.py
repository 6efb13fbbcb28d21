"""What the pages of experiments have in common: how they were made, their paragraphs, and where they are written."""

from __future__ import annotations

import textwrap
from pathlib import Path

from betacores.experiments.runner import Task


def made_by(name: str, trials: int, seed: int, quick: bool) -> str:
    """Return the command that makes a page, and the version it was made with."""
    from betacores import __version__

    quickly = " --quick" if quick else ""
    return f"`betacores reproduce {name} --trials {trials} --seed {seed}{quickly}`, betacores {__version__}"


def minutes(results: list[Task]) -> str:
    """Return how long all tasks took, together, in minutes."""
    return f"{sum(result['task_seconds'] for result in results) / 60:.0f}"


def paragraph(text: str) -> list[str]:
    """Return text in lines that fit a page, and an empty line after it."""
    return [*textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False), ""]


def kept(results: list[Task]) -> list[str]:
    """Say where results were taken over from an earlier run."""
    taken = [result for result in results if result.get("kept")]
    if not taken:
        return []
    return paragraph(
        f"In {len(taken)} of the {len(results)} tasks, the results of all but pursuit, and the seconds of the task, "
        "are those of an earlier run: these methods have not changed since."
    )


def written(out: Path, lines: list[str]) -> Path:
    """Write a page, and return where."""
    page = out / "README.md"
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return page
