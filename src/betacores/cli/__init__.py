"""The command line, one file a command."""

from __future__ import annotations

import typer

from betacores import __version__
from betacores.cli import demo, reproduce, summarize

app = typer.Typer(
    name="betacores",
    help="Robust Bayesian coresets: a huge, dirty table turned into a small, weighted, cleansed summary.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("summarize")(summarize.summarize)
app.command("demo")(demo.demo)
app.command("reproduce")(reproduce.reproduce)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version:
        typer.echo(f"betacores {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; a mistake of the caller's is one line and exit code 2."""
    import sys

    try:
        app()
    except (ValueError, TypeError, FileExistsError, FileNotFoundError) as error:
        typer.secho(f"betacores: {error}", fg="red", err=True)
        sys.exit(2)
