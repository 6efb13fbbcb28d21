"""From the summary to one HTML file that needs nothing else: no network, no fonts, no files beside it.

Everything from the table goes through the template's escaping, and the page forbids itself every script but its own,
by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from betacores.report import charts
from betacores.report.words import count, fixed, number, percent, unbroken

TEMPLATES = Path(__file__).parent / "templates"


def render(summary: dict[str, Any]) -> str:
    """Return the page of a summary."""
    from markupsafe import Markup

    headline, picture = summary["headline"], summary["picture"]
    pictures = {
        "histogram": charts.histogram(summary["histogram"]),
        "sizes": charts.size_curve(headline["quality"]["curve"]),
        "coefficients": charts.coefficient_plot(summary["coefficients"]),
        "scatter": charts.scatter(picture),
    }
    script, style = (_read(name) for name in ("report.js", "report.css"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template("report.html")
        .render(
            **summary,
            charts={name: Markup(drawn) for name, drawn in pictures.items()},
            script=Markup(script),
            style=Markup(style),
            script_hash=digest,
        )
    )


@cache
def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise ImportError("Reports need the package jinja2; install it: pip install jinja2.") from None
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": number, "count": count, "fixed": fixed, "percent": percent, "unbroken": unbroken}
    return environment


@cache
def _read(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
