"""Pictures as SVG text: axes, ticks and a canvas. Colours are classes, so that the page's theme decides them."""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

from betacores.report.words import number


class Scale(NamedTuple):
    """From numbers to places on the canvas."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a number."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def inside(self, value: float) -> bool:
        """Tell whether a number is on the canvas."""
        return self.low <= value <= self.high

    def held(self, value: float) -> float:
        """Return the place of a number, or of the nearest on the canvas."""
        return self(min(max(value, self.low), self.high))


def ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers between two."""
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * 0.75)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "") -> str:
    """Return a piece of text."""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """Return a line."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def rectangle(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """Return a rectangle, with a title for those who point at it."""
    told = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{kind}">{told}</rect>'


def dots(places: list[tuple[float, float]], kind: str) -> str:
    """Return many dots as one path: lines of no length with round ends."""
    if not places:
        return ""
    return f'<path class="{kind}" d="{"".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)}"/>'


def bottom_axis(scale: Scale, y: float, label: str, wanted: int = 6, grid_top: float | None = None) -> list[str]:
    """Return ticks below, and what they measure."""
    parts = []
    for value in ticks(scale.low, scale.high, wanted):
        if grid_top is not None:
            parts.append(line(scale(value), grid_top, scale(value), y, "grid"))
        parts.append(text(scale(value), y + 20, number(value), kind="tick"))
    return [*parts, text((scale.start + scale.end) / 2, y + 44, label, kind="axis")]


def canvas(width: float, height: float, title: str, description: str, parts: list[str], name: str) -> str:
    """Return a picture with a title and a description for those who cannot see it."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="{name}-chart-title {name}-chart-words" '
        f'class="chart" preserveAspectRatio="xMidYMid meet">'
        f'<title id="{name}-chart-title">{escape(title)}</title>'
        f'<desc id="{name}-chart-words">{escape(description)}</desc>'
        + "".join(part for part in parts if part)
        + "</svg>"
    )
