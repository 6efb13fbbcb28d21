"""The text of a complete program that reads a saved coreset with another tool."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from betacores.checks import check_choice
from betacores.export import numpyro_model, scikit_learn, stan
from betacores.export.ingredients import ingredients

if TYPE_CHECKING:
    from betacores.coreset import Coreset

TOOLS = {"stan": stan.program, "numpyro": numpyro_model.program, "scikit-learn": scikit_learn.program}


def snippet(coreset: Coreset, tool: str, folder: str | Path = "coreset") -> str:
    """Return a Python program that reads the coreset from a folder with another tool."""
    write = TOOLS[check_choice("tool", tool, TOOLS)]
    ingredients(coreset)  # refuses what no program can read
    return write(coreset, folder)
