"""A plane to look at the rows in.

For a linear regression: what the model predicts, against what was seen. For a regression of counts: their logarithms,
after adding one to each. For a logistic regression: the fitted log-odds,
and the direction across it in which rows differ most, a panel for each label. For other models: the two directions in
which believed rows differ most. A frame around the believed rows holds the picture; rows beyond are put on its edge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.coreset import Coreset
from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import LinearPredictor
from betacores.models.predictors import has_one_predictor, linear_predictor
from betacores.report.table import Table
from betacores.report.words import cell
from betacores.robust import robust_location_scale

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

CLEAN, SUSPICIOUS, SELECTED = 1100, 600, 300
# Responses that are drawn as predicted against seen.
DIAGONAL = ("real", "count")
REFERENCE_ROWS = 5000
# The frame holds all but so many of the believed rows on either side, and in units of their span a margin; towards
# the other rows it goes farther, so far on both sides together.
TAIL, MARGIN, FARTHEST = 0.005, 0.12, 1.8


class Plane(NamedTuple):
    """Two numbers for every row, and what they are called."""

    across: Float[np.ndarray, " n"]
    up: Float[np.ndarray, " n"]
    across_label: str
    up_label: str


def picture_section(
    coreset: Coreset, table: Table, theta: np.ndarray, believed: np.ndarray, marked: Bool[np.ndarray, " rows"]
) -> dict[str, Any]:
    """Return a sample of points of each kind, in units of the frame."""
    random = np.random.default_rng(0)
    chosen = np.zeros(len(believed), bool)
    chosen[coreset.indices] = True
    heavy = np.argsort(-coreset.weights, kind="stable")[:SELECTED]
    clean = _some(random, np.flatnonzero(~marked & ~chosen), CLEAN)
    suspicious = _some(random, np.flatnonzero(marked & ~chosen), SUSPICIOUS)
    ids = np.concatenate([clean, suspicious])
    look = np.flatnonzero(~marked)[:: max(1, -(-int((~marked).sum()) // REFERENCE_ROWS))]
    x, y = table.origin.x, table.origin.y
    moved = coreset.path.points is not None
    shown_x = np.concatenate([x[ids], coreset.X[heavy] if moved else x[coreset.indices[heavy]]])
    shown_y = None if y is None or coreset.y is None else np.concatenate([y[ids], coreset.y[heavy]])
    beliefs = np.concatenate([believed[ids], believed[coreset.indices[heavy]]])
    everyone = np.concatenate([shown_x, x[look]])
    responses = None if shown_y is None or y is None else np.concatenate([shown_y, y[look]])
    plane = _plane(coreset, table, theta, everyone, responses, np.concatenate([beliefs, believed[look]]), len(shown_x))
    panels: list[str] = []
    panel = np.zeros(len(shown_x), int)
    if coreset.labels is not None and len(coreset.labels) == 2 and shown_y is not None:
        # The second label has the large log-odds, and the upper panel.
        panels = [f"{table.target}: {cell(label)}" for label in coreset.labels[::-1].tolist()]
        panel = np.where(shown_y == coreset.labels[1], 0, 1)
    odd = slice(len(clean), len(ids))
    frames = [_frame(values[len(shown_x) :], values[odd]) for values in (plane.across, plane.up)]
    if coreset.model.response in DIAGONAL:
        # Predicted and seen have one unit, and a row that fits is on the diagonal.
        both = (min(frames[0][0], frames[1][0]), max(frames[0][1], frames[1][1]))
        frames = [both, both]
    places = np.column_stack([plane.across[: len(shown_x)], plane.up[: len(shown_x)]])
    lows, highs = np.array(frames).T
    unit = (places - lows) / (highs - lows)
    beyond = ((unit < 0) | (unit > 1)).any(1)
    unit = np.clip(np.nan_to_num(unit, nan=1.0), 0, 1)
    kinds = np.repeat([0, 1, 2], [len(clean), len(suspicious), len(heavy)])
    rows = np.concatenate([ids, coreset.indices[heavy]])
    weights = coreset.weights[heavy]
    return {
        "across_label": plane.across_label,
        "up_label": plane.up_label,
        "across": [float(v) for v in frames[0]],
        "up": [float(v) for v in frames[1]],
        "panels": panels,
        "diagonal": coreset.model.response in DIAGONAL,
        "shown": {"clean": len(clean), "suspicious": len(suspicious), "selected": len(heavy)},
        "totals": {
            "clean": int((~marked & ~chosen).sum()),
            "suspicious": int((marked & ~chosen).sum()),
            "selected": len(coreset),
        },
        "beyond": int(beyond.sum()),
        "points": {
            name: [
                [round(float(u), 4), round(float(v), 4), int(p), bool(b)]
                for (u, v), p, b in zip(unit[kinds == k], panel[kinds == k], beyond[kinds == k], strict=True)
            ]
            for k, name in enumerate(("clean", "suspicious", "selected"))
        },
        "selected": [[int(r), float(w)] for r, w in zip(rows[kinds == 2], weights, strict=True)],
    }


def _some(random: np.random.Generator, ids: np.ndarray, most: int) -> np.ndarray:
    return ids if len(ids) <= most else np.sort(random.choice(ids, most, replace=False))


def _frame(values: np.ndarray, odd: np.ndarray) -> tuple[float, float]:
    """Return the ends of an axis: around the believed rows, and as far towards the others as leaves room for them."""
    values, odd = values[np.isfinite(values)], odd[np.isfinite(odd)]
    if not values.size:
        return 0.0, 1.0
    low, high = (float(v) for v in np.quantile(values, (TAIL, 1 - TAIL)))
    if low == high:
        return low - 1.0, high + 1.0
    span = high - low
    near, far = np.quantile(odd, (0.02, 0.98)) if odd.size else (low, high)
    wanted = np.array([max(MARGIN, 1.1 * away / span) for away in (low - near, far - high)])
    reach = np.minimum(wanted, max(FARTHEST - wanted.min(), FARTHEST / 2))
    return low - reach[0] * span, high + reach[1] * span


def _plane(
    coreset: Coreset, table: Table, theta: np.ndarray, x: np.ndarray, y: Any, believed: np.ndarray, first: int
) -> Plane:
    """Return the plane of rows; those after the first so many are believed, and decide its directions."""
    model, names = coreset.model, coreset.columns
    centre, scale = robust_location_scale(x[first:])
    with np.errstate(over="ignore"):
        u = np.clip((np.asarray(x, np.float64) - centre) / scale, -1e6, 1e6)
    # The directions are those of cells that are not far off.
    core = np.clip(u[first:], -4, 4)
    if model.response == "count" and y is not None:
        assert isinstance(model, (LinearPredictor, SeveralPredictors))
        mean = np.exp(np.clip(linear_predictor(model, x, theta), -40, 40))
        seen = np.log1p(np.asarray(y, np.float64))
        return Plane(np.log1p(mean), seen, f"log(1 + {table.target}), predicted", f"log(1 + {table.target}), seen")
    if not has_one_predictor(model):
        if len(names) == 1:
            return Plane(np.asarray(x[:, 0], np.float64), believed, names[0], "belief")
        directions = _principal(core)[:2]
        labels = [
            f"{where} direction of spread ({_loaded(d, names)})"
            for where, d in zip(("1st", "2nd"), directions, strict=True)
        ]
        return Plane(u @ directions[0], u @ directions[1], *labels)
    eta = linear_predictor(model, x, theta)
    if model.response == "real" and y is not None:
        return Plane(eta, np.asarray(y, np.float64), f"{table.target}, predicted", f"{table.target}, seen")
    label = "" if coreset.labels is None else f" of {cell(coreset.labels[1])}"
    along = theta[: len(names)] * scale
    if len(names) == 1 or not along.any():
        return Plane(eta, believed, f"fitted log-odds{label}", "belief")
    along = along / np.linalg.norm(along)
    across = _principal(core - np.outer(core @ along, along))[0]
    return Plane(eta, u @ across, f"fitted log-odds{label}", f"across ({_loaded(across, names)})")


def _principal(u: np.ndarray) -> np.ndarray:
    """Return directions in which rows differ, most first."""
    spread = np.cov(u, rowvar=False).reshape(u.shape[1], -1)
    directions = np.linalg.eigh(spread)[1].T[::-1]
    return directions * np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(1)])[:, None]


def _loaded(direction: np.ndarray, names: list[str]) -> str:
    """Name the columns that a direction is mostly made of."""
    order = np.argsort(-np.abs(direction), kind="stable")[:3]
    told = [f"{'−' if direction[j] < 0 else '+'} {_short(names[j])}" for j in order if abs(direction[j]) > 0.3]
    told = told or [f"+ {_short(names[order[0]])}"]
    return "mostly " + " ".join(told).removeprefix("+ ")


def _short(name: str) -> str:
    return name if len(name) <= 18 else name[:17] + "…"
