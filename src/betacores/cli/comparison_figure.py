"""The picture of a comparison: how well coresets predict, by their size, one line a method."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

MEASURES = {
    "accuracy": "accuracy",
    "rmse": "root mean squared error",
    "log_density": "log density of a row",
}


def drawn(frame: pandas.DataFrame) -> bytes:
    """Return the picture of a comparison as a PNG file."""
    from matplotlib.figure import Figure

    told = [name for name in MEASURES if name in frame and frame[name].notna().any()]
    figure = Figure(figsize=(5 * len(told), 4), layout="constrained")
    panels = figure.subplots(1, len(told), squeeze=False)[0]
    for panel, measure in zip(panels, told, strict=True):
        _draw(panel, frame, measure)
    panels[0].legend(fontsize="small")
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=130)
    return sink.getvalue()


def _draw(panel: Any, frame: pandas.DataFrame, measure: str) -> None:
    from betacores.evaluation.trial import ALL_ROWS, CLEAN_ROWS

    for method, own in frame.groupby("method", sort=False):
        if method in (ALL_ROWS, CLEAN_ROWS):
            panel.axhline(own[measure].mean(), linestyle="--", color="#888888", label=method)
            continue
        by_size = own.groupby("size")[measure].agg(["mean", "min", "max"])
        (line,) = panel.plot(by_size.index, by_size["mean"], marker="o", label=method)
        panel.fill_between(by_size.index, by_size["min"], by_size["max"], alpha=0.15, color=line.get_color())
    panel.set(xscale="log", xlabel="rows kept, at most", ylabel=MEASURES[measure])
    panel.grid(alpha=0.3)
