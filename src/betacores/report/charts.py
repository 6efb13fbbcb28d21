"""The report's pictures: scores, size curve, coefficients, and rows in a plane."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from betacores.report.drawing import (
    Scale,
    bottom_axis,
    canvas,
    dots,
    line,
    rectangle,
    text,
    ticks,
)
from betacores.report.words import count, number

WIDTH = 720.0
BINS = 48


def histogram_section(believed: np.ndarray, marked: np.ndarray) -> dict[str, Any]:
    """Return how many rows have which belief, the suspicious ones apart."""
    # Beliefs a little above 1 are usual, a few far above are not worth an empty picture.
    top = float(max(1.0, np.quantile(believed, 0.999))) * 1.0001
    edges = np.linspace(0.0, top, BINS + 1)
    held = np.clip(believed, 0.0, top)
    return {
        "edges": edges.tolist(),
        "clean": np.histogram(held[~marked], edges)[0].tolist(),
        "suspicious": np.histogram(held[marked], edges)[0].tolist(),
    }


def histogram(section: dict[str, Any]) -> str:
    """Draw the histogram of beliefs; heights are square roots, so that few suspicious rows show."""
    height, left, right, top, bottom = 300.0, 64.0, WIDTH - 16, 34.0, 246.0
    edges, clean, suspicious = section["edges"], section["clean"], section["suspicious"]
    most = max(map(sum, zip(clean, suspicious, strict=True)))
    across, up = Scale(0.0, edges[-1], left, right), Scale(0.0, math.sqrt(max(most, 1)) * 1.03, bottom, top)
    parts = []
    for value in _root_ticks(most):
        y = up(math.sqrt(value))
        parts += [line(left, y, right, y, "grid"), text(left - 8, y + 4, count(value), "end", "tick")]
    parts.append(text(left, top - 14, "rows (root scale)", "start", "axis"))
    for k, (good, bad) in enumerate(zip(clean, suspicious, strict=True)):
        x, width = across(edges[k]) + 0.75, across(edges[k + 1]) - across(edges[k]) - 1.5
        told = (
            f"belief {number(edges[k], 2)} to {number(edges[k + 1], 2)}: {count(good)} clean, {count(bad)} suspicious"
        )
        whole, part = up(math.sqrt(good + bad)), up(math.sqrt(bad))
        if bad:
            parts.append(rectangle(x, part, width, bottom - part, "suspicious fill", told))
        if good:
            parts.append(rectangle(x, whole, width, part - whole, "clean fill", told))
    parts += [
        line(left, bottom, right, bottom, "rule"),
        *bottom_axis(across, bottom, "belief: near 0, the model does not believe the row"),
    ]
    words = f"{count(sum(suspicious))} suspicious rows have the lowest beliefs; {count(sum(clean))} others follow."
    return canvas(WIDTH, height, "Histogram of beliefs", words, parts, "histogram")


def _root_ticks(most: int) -> list[int]:
    values = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]
    fine = [v for base in values for v in (base, 3 * base) if v <= most]
    # From the top down, no closer than a seventh of the height.
    kept: list[int] = []
    for value in reversed(fine):
        if not kept or math.sqrt(kept[-1]) - math.sqrt(value) > math.sqrt(most) / 7:
            kept.append(value)
    return kept


def size_curve(curve: list[list[float]]) -> str:
    """Draw the estimated divergence that is left at every size, on a logarithmic axis."""
    known = [(size, left) for size, left in curve if left > 0]
    if len(known) < 3:
        return ""
    height, left, right, top, bottom = 250.0, 64.0, WIDTH - 24, 34.0, 196.0
    logs = [math.log10(value) for _, value in known]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    high = high if high > low else low + 1
    across, up = Scale(0.0, float(max(size for size, _ in known)), left, right), Scale(low, high, bottom, top)
    parts = []
    every = max(1, math.ceil((high - low) / 4))
    for power in range(low, high + 1, every):
        parts.append(line(left, up(power), right, up(power), "grid"))
        parts.append(text(left - 8, up(power) + 4, number(10.0**power), "end", "tick"))
    parts.append(text(left, top - 14, "divergence left (KL, log scale)", "start", "axis"))
    places = [(across(size), up(value)) for (size, _), value in zip(known, logs, strict=True)]
    parts.append(f'<polyline class="selected stroke" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}"/>')
    parts.append(f'<circle cx="{places[-1][0]:.1f}" cy="{places[-1][1]:.1f}" r="5" class="selected fill"/>')
    parts += [line(left, bottom, right, bottom, "rule"), *bottom_axis(across, bottom, "rows kept")]
    ends = [f"{number(left)} at {size} rows" for size, left in (known[0], known[-1])]
    words = f"The estimated divergence goes from {ends[0]} to {ends[1]}."
    return canvas(WIDTH, height, "Quality for every size", words, parts, "sizes")


KINDS = (("robust", "clean"), ("coreset", "selected"), ("classical", "suspicious"))


def coefficient_plot(section: dict[str, Any]) -> str:
    """Draw every parameter's three estimates with their intervals."""
    rows = section["parameters"]
    if not rows:
        return ""
    inner = [v for row in rows for kind in ("robust", "coreset") for v in _ends(row["scaled"][kind])]
    inner = [v for v in inner if math.isfinite(v)] or [0.0]
    low, high = min(*inner, 0.0), max(*inner, 0.0)
    room = max(high - low, 1e-9)
    outer = [v for row in rows for v in _ends(row["scaled"]["classical"]) if math.isfinite(v)]
    # Classical estimates may be anywhere; what is far off is put on the edge.
    low = max(min([low, *outer]), low - room) - 0.04 * room
    high = min(max([high, *outer]), high + room) + 0.04 * room
    step, left, right, top = 40.0 if len(rows) <= 12 else 30.0, 190.0, WIDTH - 24, 14.0
    bottom = top + step * len(rows)
    across = Scale(low, high, left, right)
    parts = [*bottom_axis(across, bottom, section["axis"], grid_top=top)]
    if low < 0 < high:
        parts.append(line(across(0), top, across(0), bottom, "rule"))
    for place, row in enumerate(rows):
        middle = top + step * (place + 0.5)
        name = row["name"] if len(row["name"]) <= 24 else row["name"][:23] + "…"
        parts.append(text(left - 12, middle + 4, name, "end", "name"))
        for offset, (kind, colour) in zip((-0.22 * step, 0, 0.22 * step), KINDS, strict=True):
            parts += _interval(row["scaled"][kind], across, middle + offset, colour, f"{row['name']}, {kind}")
    words = f"{len(rows)} parameters, each as estimated robustly from all rows, from the coreset, and classically."
    return canvas(WIDTH, bottom + 52, "Coefficients with 95 % intervals", words, parts, "coefficients")


def _ends(interval: dict[str, Any]) -> tuple[float, float]:
    return interval["low"], interval["high"]


def _interval(interval: dict[str, Any], across: Scale, y: float, colour: str, name: str) -> list[str]:
    value, (low, high) = interval["value"], _ends(interval)
    if not all(math.isfinite(v) for v in (value, low, high)):
        return []
    told = f"<title>{escape(name)}: {number(value)} ({number(low)} to {number(high)})</title>"
    x = across.held(value)
    if across.inside(value):
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{colour} fill">{told}</circle>'
    else:
        side = 7 if value > across.high else -7
        mark = f'<path d="M{x + side:.1f} {y:.1f}l{-side} -5v10z" class="{colour} fill">{told}</path>'
    return [line(across.held(low), y, across.held(high), y, f"{colour} whisker"), mark]


def scatter(section: dict[str, Any]) -> str:
    """Draw clean, suspicious and selected rows in the plane; rows beyond the frame are dashes on its edge."""
    panels = section["panels"] or [""]
    left, right, top = 64.0, WIDTH - 16, 40.0
    each = 420.0 if len(panels) == 1 else 220.0
    gap = 34.0
    bottoms = [top + each + k * (each + gap) for k in range(len(panels))]
    across = Scale(section["across"][0], section["across"][1], left, right)
    parts = []
    for k, (name, bottom) in enumerate(zip(panels, bottoms, strict=True)):
        up = Scale(section["up"][0], section["up"][1], bottom, bottom - each)
        parts.append(rectangle(left, bottom - each, right - left, each, "frame"))
        parts += [
            line(left, up(v), right, up(v), "grid") + text(left - 8, up(v) + 4, number(v), "end", "tick")
            for v in ticks(up.low, up.high, 4)
        ]
        parts += [line(across(v), bottom - each, across(v), bottom, "grid") for v in ticks(across.low, across.high, 6)]
        if name:
            parts.append(text(right, bottom - each - 10, name, "end", "name"))
        if k == 0:
            parts.append(text(left, bottom - each - 10, section["up_label"], "start", "axis"))
    if section["diagonal"]:
        parts.append(line(left, bottoms[0], right, bottoms[0] - each, "rule"))
    for kind in ("clean", "suspicious"):
        points = [
            (left + u * (right - left), bottoms[p] - v * each, beyond) for u, v, p, beyond in section["points"][kind]
        ]
        parts.append(dots([(x, y) for x, y, beyond in points if not beyond], f"{kind} dots"))
        edge = [_dash(x, y, left, right) for x, y, beyond in points if beyond]
        if edge:
            parts.append(f'<path class="{kind} edge" d="{"".join(edge)}"/>')
    largest = max((weight for _, weight in section["selected"]), default=1.0)
    # Many circles are drawn smaller, or they would hide each other.
    widest = 9.5 * min(1.0, math.sqrt(60 / max(len(section["selected"]), 1)))
    for (u, v, p, beyond), (row, weight) in zip(section["points"]["selected"], section["selected"], strict=True):
        x, y = left + u * (right - left), bottoms[p] - v * each
        radius = 2.5 + widest * math.sqrt(weight / largest)
        told = f"<title>row {count(row)}, weight {number(weight)}{', beyond the frame' if beyond else ''}</title>"
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="selected ring">{told}</circle>')
    parts += bottom_axis(across, bottoms[-1], section["across_label"])
    shown = section["shown"]
    words = (
        f"{count(shown['clean'])} clean, {count(shown['suspicious'])} suspicious and {count(shown['selected'])} "
        f"selected rows; {section['across_label']} across, {section['up_label']} up."
    )
    return canvas(WIDTH, bottoms[-1] + 52, "Rows in a plane", words, parts, "picture")


def _dash(x: float, y: float, left: float, right: float) -> str:
    """Return a short line that points out of the frame."""
    if x <= left + 0.05 or x >= right - 0.05:
        return f"M{x - 4:.1f} {y:.1f}h8"
    return f"M{x:.1f} {y - 4:.1f}v8"
