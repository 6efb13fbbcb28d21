"""The command line, one file a command."""

from __future__ import annotations

import os

import typer

from betacores import __version__
from betacores.cli import compare, datasets, demo, report, reproduce, summarize
from betacores.cli.outcome import TRACEBACK, told

app = typer.Typer(
    name="betacores",
    help="Robust Bayesian coresets: a huge, dirty table turned into a small, weighted, cleansed summary.\n\n"
    "Begin with: betacores summarize table.csv --target price",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("summarize")(told(summarize.summarize))
app.command("report")(told(report.report))
app.command("compare")(told(compare.compare))
app.command("datasets")(told(datasets.datasets))
app.command("demo")(told(demo.demo))
app.command("reproduce")(told(reproduce.reproduce))


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    traceback: bool = typer.Option(False, "--traceback", help=f"Show where an error came from; also {TRACEBACK}=1."),
) -> None:
    if version:
        typer.echo(f"betacores {__version__}")
        raise typer.Exit
    if traceback:
        # For processes that are started, too.
        os.environ[TRACEBACK] = "1"


def main() -> None:
    """Run the command line."""
    app()
