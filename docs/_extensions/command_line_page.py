"""The page of the command line, written from the commands themselves at every build."""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PAGE = "command-line.md"
INTRODUCTION = """# Command line

Every command says more with `--help`. `betacores --install-completion` teaches the shell its commands and options.
"""


def write_page(app: Sphinx) -> None:
    """Write the page beside the others."""
    from typer.main import get_command

    from betacores.cli import app as commands

    root: Any = get_command(commands)
    parts = [INTRODUCTION]
    for name, command in root.commands.items():
        context = command.context_class(command, info_name=name)
        parts += [f"## `betacores {name}`", _help(command), _usage(command, context), _table(command, context)]
    text = "\n\n".join(parts) + "\n"
    page = Path(app.srcdir) / PAGE
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def _help(command: Any) -> str:
    # What is typed is shown as such.
    text = re.sub(r"^Example: (.*)$", r"Example: `\1`", command.help or "", flags=re.MULTILINE)
    return re.sub(r"(?<![`\w-])(--[a-z][a-z-]*)(?![^`\n]*`)", r"`\1`", text)


def _usage(command: Any, context: Any) -> str:
    pieces = [piece.strip("{}").upper() for piece in command.collect_usage_pieces(context)]
    return f"```sh\nbetacores {context.info_name} {' '.join(pieces)}\n```"


def _table(command: Any, context: Any) -> str:
    lines = ["| option | what it does |", "|---|---|"]
    for parameter in command.params:
        told = parameter.get_help_record(context)
        if told is None or parameter.name == "help":
            continue
        name, text = (part.replace("|", "\\|").replace("\n", " ") for part in told)
        lines.append(f"| `{name.strip()}` | {text} |")
    return "\n".join(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Have the page written before Sphinx looks for pages."""
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True}
