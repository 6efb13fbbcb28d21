"""The first screen: what was done, how dirty the table is, how good the summary is, and a verdict in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from betacores.coreset import Coreset
from betacores.report.words import count, number, percent, percent_interval

# Divergences in nats: below the first nobody will notice, above the second the summary is rough.
CLOSE, ROUGH = 0.2, 1.0
# Less than this is no contamination to speak of; more than that is no contamination but another population.
NEGLIGIBLE, TOO_MUCH = 0.005, 0.4
# An interval up to here leaves open whether a table is clean.
UNSURE = 0.05


def headline_section(coreset: Coreset) -> dict[str, Any]:
    """Return the numbers of the first screen, and what they mean."""
    low, high = coreset.contamination_interval
    quality = _quality(coreset)
    verdict, advice = _verdict(coreset, low, high, quality)
    return {
        "rows": coreset.row_count,
        "columns": len(coreset.columns),
        "kept": len(coreset),
        "total_weight": float(coreset.weights.sum()),
        "contamination": {
            "value": coreset.contamination,
            "low": low,
            "high": high,
            "text": percent(coreset.contamination),
            "interval": percent_interval(low, high),
        },
        "quality": quality,
        "verdict": verdict,
        "advice": advice,
        "done": _done(coreset),
        "warnings": list(coreset.info.warnings),
        "notes": list(coreset.info.notes),
    }


def _done(coreset: Coreset) -> str:
    model = {
        "logistic": "a logistic regression",
        "noisy-logistic": "a logistic regression with labels flipped at random",
        "linear": "a linear regression",
        "softmax": "a softmax regression",
        "poisson": "a Poisson regression",
        "negative-binomial": "a negative binomial regression",
        "gaussian-mean": "a Gaussian around an unknown mean",
    }.get(coreset.model.name, f"the model {coreset.model.name}")
    if coreset.method == "merge":
        return (
            f"{count(len(coreset.info.sites or []))} summaries of {count(coreset.row_count)} rows of "
            f"{count(len(coreset.columns))} columns by {model} were merged into {count(len(coreset))} weighted rows."
        )
    robust = f"robustly (β = {number(coreset.beta)})" if coreset.beta > 0 else "with β = 0, which trusts every row"
    return (
        f"{count(coreset.row_count)} rows of {count(len(coreset.columns))} columns were read by {model}, {robust}, and "
        f"summarised by {count(len(coreset))} weighted rows with the method {coreset.method}."
    )


def _verdict(coreset: Coreset, low: float, high: float, quality: dict[str, Any]) -> tuple[str, str]:
    share, kept = coreset.contamination, count(len(coreset))
    interval = f"95 %: {percent_interval(low, high)}"
    rough = quality["level"] == "rough"
    stand = "stands" if len(coreset) == 1 else "stand"
    rows = "weighted row" if len(coreset) == 1 else "weighted rows"
    if coreset.grouping is not None:
        rows += f" of {count(len(coreset.groups))} groups"
    if not len(coreset):
        return (
            f"Nothing was kept: no row could be chosen. About {percent(share)} of the rows do not fit ({interval}).",
            "Read the warnings; check the units and the model.",
        )
    roughly = " roughly" if rough else ""
    if share > TOO_MUCH:
        verdict = (
            f"About {percent(share)} of the rows do not fit the model ({interval}): more than outliers can be, so that "
            "the model may be wrong for this table."
        )
        advice = "Look at the rows below for what they have in common; try another model, or split the table."
    elif high < NEGLIGIBLE or share < 1e-4 or low == 0:
        fits = (
            "the model fits the table" if high < UNSURE else "as far as so few rows can tell, the model fits the table"
        )
        bound = f" ({interval} of the rows do not fit)" if high > 0 else ""
        verdict = (
            f"No rows stand out: {fits}{bound}, and {kept} {rows} {stand}{roughly} for all {count(coreset.row_count)}."
        )
        advice = "Use the coreset as it is. The rows listed below are the least likely, which clean tables have too."
    else:
        verdict = (
            f"About {percent(share)} of the rows do not fit the rest ({interval}); {kept} {rows} {stand}{roughly} for "
            f"the other {percent(1 - share)}."
        )
        advice = (
            "Look at the least believed rows below and at the columns that give them away; use the coreset, with its "
            "weights, in place of the table."
        )
        if coreset.labels is not None:
            advice += " The share is a lower bound: a wrong label that is plausible anyway cannot be told."
    if rough:
        advice = f"{quality['advice']} {advice}"
    if coreset.info.warnings:
        advice = f"Read the {'warning' if len(coreset.info.warnings) == 1 else 'warnings'} first. {advice}"
    return verdict, advice


def _quality(coreset: Coreset) -> dict[str, Any]:
    """Return the estimated divergence and the size curve, as far as they are known."""
    estimate = coreset.info.kl_estimate if _is_whole(coreset) else None
    curve = _curve(coreset)
    told: dict[str, Any] = {"value": None, "standard_error": None, "curve": curve, "advice": ""}
    if estimate is None:
        return told | {"level": "unknown", "text": "not known", "meaning": "No estimate could be made."}
    value = float(estimate.value)
    told |= {"value": value, "standard_error": float(estimate.standard_error), "text": number(value, 2)}
    if value <= CLOSE:
        return told | {
            "level": "close",
            "meaning": "Inference from the coreset is that from all believed rows.",
        }
    if value <= ROUGH:
        return told | {
            "level": "fair",
            "meaning": "Close to inference from all believed rows; more bring it closer.",
        }
    return told | {
        "level": "rough",
        "meaning": "Inference from the coreset differs from that of all believed rows.",
        "advice": "The summary is rough: keep more rows (a larger size).",
    }


def _is_whole(coreset: Coreset) -> bool:
    # The estimate is that of the whole coreset, not of an earlier point of its path.
    return np.array_equal(coreset.weights, coreset.path.at(len(coreset.path.weights))[1])


def _curve(coreset: Coreset) -> list[list[float]]:
    """Return pairs of size and estimated divergence left, one for every size."""
    trace = coreset.info.trace
    pairs = zip(trace.get("size", []), trace.get("remaining", []), strict=False)
    known = {int(size): float(left) for size, left in pairs if left is not None and size > 0 and np.isfinite(left)}
    return [[size, left] for size, left in sorted(known.items())]
