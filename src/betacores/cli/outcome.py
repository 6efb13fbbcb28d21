"""How a command ends: 0, or one line on stderr and an exit code that says whose fault it was.

====  ==============================================================
0     done
1     a bug of ours; the line asks for a report
2     a mistake of the caller's, or of the machine; the line says what to do
130   interrupted by Ctrl-C
====  ==============================================================
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from opcode import opmap
from types import TracebackType
from typing import Any

import typer

BUG, MISTAKE, INTERRUPTED = 1, 2, 130
TRACEBACK = "BETACORES_TRACEBACK"
ISSUES = "the project's issue tracker"
# What these raise on purpose is about what they were given.
SPEAKERS = ("betacores", "sklearn", "narwhals")
RAISE = opmap["RAISE_VARARGS"]


class Ended(BaseException):
    """Ctrl-C, where nothing is to be kept."""


def told(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose errors are told in one line."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except (KeyboardInterrupt, Ended):
            _shown_if_asked()
            complain("interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            _shown_if_asked()
            code, line = explained(error)
            complain(line)
            raise typer.Exit(code) from None

    return run


def explained(error: Exception) -> tuple[int, str]:
    """Return the exit code, and in one line what is wrong and what to do."""
    text = " ".join(str(error).split())
    ours = _on_purpose(error.__traceback__)
    if isinstance(error, OSError):
        return MISTAKE, text if ours else _of_the_system(error, text)
    if isinstance(error, MemoryError):
        return MISTAKE, "there is not enough memory; leave columns out with --drop, or take fewer rows."
    if isinstance(error, (ValueError, TypeError, ImportError, RuntimeError)) and ours:
        return MISTAKE, text
    return BUG, f"a bug: {type(error).__name__}: {text} Please tell us in {ISSUES}, with what {TRACEBACK}=1 shows."


def complain(line: str, colour: str = "red") -> None:
    """Say a line on stderr, in the program's name."""
    typer.secho(f"betacores: {line}", fg=colour, err=True)


def _of_the_system(error: OSError, text: str) -> str:
    place = "" if error.filename is None else f"{error.filename}: "
    if error.errno == errno.ENOSPC or "No space left" in text:
        return f"{place}the disk is full; nothing was written. Make room, or choose another place with --out."
    if error.errno in (errno.EFBIG, errno.EDQUOT):
        return f"{place}the system allows no file of this size; nothing was written. Choose another place with --out."
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return f"{place}no permission; choose another place with --out, or another file."
    return text


def _on_purpose(trace: TracebackType | None) -> bool:
    """Return whether an error was raised by a statement of those who check input, and did not just happen to them."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    speaker = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0]
    return speaker in SPEAKERS and trace.tb_frame.f_code.co_code[trace.tb_lasti] == RAISE


def _shown_if_asked() -> None:
    if os.environ.get(TRACEBACK, "") not in ("", "0"):
        import traceback

        traceback.print_exc()
