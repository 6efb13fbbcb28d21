"""Reports: a coreset and its table told on one page, for people.

First a plain summary, one module a section, then one template. `Coreset.report` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betacores.coreset import Coreset

__all__ = ["Report", "make_report"]


@dataclass(frozen=True, eq=False)
class Report:
    """A report on a coreset. In Jupyter it shows itself.

    Attributes
    ----------
    summary
        All that the page tells, in plain values that JSON can hold.
    html
        The page: one HTML file that needs nothing else.
    """

    summary: dict[str, Any]
    html: str

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the page to a file, and return its path."""
        file = Path(path)
        if file.is_dir():
            raise IsADirectoryError(f"{file} is a folder; name a file in it, such as {file / 'report.html'}.")
        if file.exists() and not overwrite:
            raise FileExistsError(f"{file} exists already; pass overwrite=True to replace it.")
        file.parent.mkdir(parents=True, exist_ok=True)
        # Written under another name first: a broken run leaves nothing half done.
        draft = file.with_name(f".{file.name}.draft")
        try:
            draft.write_text(self.html, encoding="utf-8")
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
        return file

    def _repr_html_(self) -> str:
        return (
            '<iframe title="betacores report" sandbox="allow-scripts" '
            'style="width:100%;height:720px;border:1px solid #8884;border-radius:8px" '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )

    def __repr__(self) -> str:
        """Say the verdict."""
        return f"Report: {self.summary['headline']['verdict']}"


def make_report(
    coreset: Coreset,
    data: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
    suspicious: int = 200,
    command: str | None = None,
) -> Report:
    """Return the report of a coreset.

    Parameters
    ----------
    coreset
        The coreset.
    data, y
        The table it was made of and its response, rows in the same order; needed only for a coreset read from disk.
        An `Origin` tells more of a table with words.
    title
        Stands above the verdict.
    suspicious
        How many rows to list at most.
    command
        What was typed to make the coreset; by default the call of `summarize` is shown.
    """
    from betacores.report.page import render
    from betacores.report.summary import summary_of

    summary = summary_of(coreset, data, y, title=title, suspicious=suspicious, command=command)
    return Report(summary, render(summary))
