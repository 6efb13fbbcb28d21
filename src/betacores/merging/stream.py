"""Streams: a coreset and new rows.

New rows are summarised in the way the coreset was, with the next seed, and the two are merged. What is kept of the
stream is as large after a thousand days as after one. Each day is a site of its own, so that a day of garbage is
recognised by its contradicting all that came before, whose votes are as many as the rows they stand for; and since what
has been built up is not to be lost to one delivery, tenfold.

Where few rows are new they may be too much alike to be summarised: a column is constant among them, or a label is
missing; of a single row that is always so. They are then taken as they are, each weighed by its score under what is
known so far: the row's part in the β-likelihood, to first order. A day without rows changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from betacores.checks import check_number, check_seed
from betacores.constructions.path import Path
from betacores.constructions.settings import checked
from betacores.coreset import Coreset
from betacores.divergence import as_beta, has_power_integral
from betacores.front_door import summarize
from betacores.info import Info
from betacores.inputs import encode_rows, read_weights
from betacores.merging.agreement import common_ground
from betacores.merging.joining import DEFAULTS, merged
from betacores.merging.made import how_made
from betacores.merging.new_rows import NewRows, new_rows
from betacores.models import LinearRegression, Model
from betacores.number_tables import is_frame, read_table
from betacores.posteriors.prior_units import in_prior_units
from betacores.posteriors.weighted import weighted_posterior
from betacores.precision import single_precision
from betacores.quality import ROUNDING, KLEstimate
from betacores.responses import numeric_response, read_response
from betacores.scores import beliefs_over, default_score_beta, row_scores
from betacores.sources import ArraySource

# By what the votes of all that came before are multiplied.
STANDING = 10.0
# Rows a parameter from which the noise of new rows is estimated anew.
NOISE_ROWS = 10
# Columns whose prior scales are farther apart, in ratio, are in odd units.
ODD_UNITS = 1e3
# Rows of a smaller score are left out.
SCREEN = 0.05
SO_FAR, NEW = "so far", "new rows"
ADVICE = (
    " If it is the new rows that are right, begin anew with bc.summarize of them; to keep both, use "
    "bc.merge([...], trust=None)."
)


def update(
    coreset: Coreset,
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    size: int | Literal["auto"] | None = None,
    spread: float | Literal["auto"] = "auto",
    keep_scores: bool = True,
    tolerance: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Coreset:
    """Return the coreset of all that a coreset stands for and new rows, itself if there are none.

    See `Coreset.update`.
    """
    asked, made = coreset.info.settings, how_made(coreset)
    if size is None:
        size = made.get("size", "auto")
    if size != "auto":
        check_number("size", size, at_least=1, whole=True)
    if spread != "auto":
        check_number("spread", spread, at_least=0)
    own = checked({} if tolerance is None else {"tolerance": tolerance}, DEFAULTS)
    updates, first_seed = int(asked.get("updates", 0)), check_seed(asked.get("first_seed", asked.get("seed", 0)))
    seed = (first_seed + updates + 1) % 2**32
    how = {**made, "seed": seed}
    if how.get("method", "pursuit") == "pursuit":
        # What single days lack may all be of one kind, and adds up.
        how["tolerance"] = min(how.get("tolerance", own["tolerance"]), own["tolerance"])
    day = _summary(coreset, data, y, target, {**how, **settings})
    if day is None:
        return coreset
    common = common_ground([coreset, day], [SO_FAR, NEW], None)
    result = merged(
        [coreset, day],
        [SO_FAR, NEW],
        common,
        {"size": size, "spread": spread, "seed": seed, **own},
        standing=np.array([STANDING, 1.0]),
        keep_scores=keep_scores,
        progress=progress,
        advice=ADVICE,
        stacklevel=4,
    )
    result.info.settings |= {"updates": updates + 1, "first_seed": first_seed, "summaries": made}
    return result


def _summary(present: Coreset, data: Any, y: Any, target: str | None, how: dict[str, Any]) -> Coreset | None:
    """Return the summary of new rows, made as that of the earlier ones; None if there are none."""
    _check_units(present)
    new = new_rows(present, data, y, target, how)
    if new.rows == 0:
        return None
    if isinstance(how.get("guard"), str) and how["guard"] != "auto":
        raise ValueError(f"guard: the function {how['guard']!r} is not kept on disk; pass guard= again.")
    noise = how.pop("noise", None)
    if how.get("groups") is None and (odd := _too_much_alike(present, new)) is not None:
        return _weighed(present, *odd, how.get("sample_weight"))
    model = present.model
    if noise == "auto" and isinstance(model, LinearRegression):
        enough = new.rows is None or new.rows >= NOISE_ROWS * model.parameter_count(len(present.columns))
        model = LinearRegression("auto", model.intercept, model.prior) if enough else model
    if isinstance(how.get("size"), int) and new.rows is not None:
        how["size"] = min(how["size"], new.rows)
    if how.get("groups") is not None:
        how.pop("size", None)
    day = summarize(new.data, new.y, model=model, **new.reading, **how)
    return replace(day, columns=new.columns or day.columns, origin=None)


def _check_units(present: Coreset) -> None:
    """Refuse tables in odd units, which the estimators scale before they hand them over."""
    scale = in_prior_units(present.model, present.X, present.y).scale
    if scale is not None and np.linalg.cond(scale) > ODD_UNITS:
        raise ValueError(
            "data: the coreset is in units that single precision cannot compute with, as an estimator's may be; fit "
            "the estimator to the new rows and use bc.merge([coreset, estimator.coreset_], prior=coreset.model.prior)."
        )


def _too_much_alike(present: Coreset, new: NewRows) -> tuple[np.ndarray, np.ndarray | None] | None:
    """Return rows and responses that cannot be summarised by themselves; None if they can."""
    if new.reading or not (isinstance(new.data, np.ndarray) or is_frame(new.data)):
        return None
    # A table has two rows or more: a single one is read twice.
    table = read_table(_twice(new.data) if new.rows == 1 else new.data)[0][: new.rows]
    response = None if new.y is None else read_response(new.y, len(table))
    labels = present.labels
    alike = bool((table == table[0]).all(0).any())
    if response is not None and labels is not None:
        unknown = ~np.isin(response, labels)
        if unknown.any():
            known = ", ".join(map(repr, labels.tolist()[:5]))
            raise ValueError(
                f"y: row {int(unknown.argmax())} is {response[unknown].tolist()[0]!r}, which is none of the labels "
                f"before: {known}."
            )
        alike |= len(np.unique(response)) < len(labels)
        response = response.astype(labels.dtype)
    elif response is not None:
        response = numeric_response(response, present.model.response)
    return (table, response) if alike else None


def _twice(data: Any) -> Any:
    """Return a table and itself once more below."""
    if isinstance(data, np.ndarray):
        return np.concatenate([data, data])
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, eager_only=True)
    return nw.concat([frame, frame]).to_native()


def _weighed(present: Coreset, x: np.ndarray, y: np.ndarray | None, sample_weight: Any = None) -> Coreset:
    """Return new rows as they are, weighed by their scores under what is known."""
    model: Model = present.model
    rows = encode_rows(x, y, present.labels)
    scores, score_beta = np.ones(len(x), np.float32), default_score_beta(model, x.shape[1])
    if has_power_integral(model):
        with single_precision():
            known = encode_rows(present.X, present.y, present.labels)
            beta = as_beta(present.beta if present.readout == "beta" else 0.0)
            theta = np.asarray(weighted_posterior(model, known, present.weights, beta)[0].mean)
            scores = row_scores(model, ArraySource(rows.x, rows.y), theta, score_beta)
    kept = np.flatnonzero(scores >= SCREEN)
    weights = np.minimum(scores[kept], 1.0).astype(np.float64)
    if (counts := read_weights(sample_weight, len(x))) is not None:
        kept, weights = kept[counts[kept] > 0], (weights * counts[kept])[counts[kept] > 0]
    info = Info(
        settings={"method": "pursuit", "readout": present.readout, "beta": present.beta, "score_beta": score_beta},
        notes=["rows: taken as they are, since they are too much alike to be summarised by themselves"],
        kl_estimate=KLEstimate(0.0, ROUNDING),
    )
    response = None if y is None else y[kept]
    return Coreset(
        indices=kept,
        weights=weights,
        X=x[kept],
        y=response,
        scores=scores,
        covariate_scores=None,
        contamination=beliefs_over(scores, None).contamination,
        contamination_interval=beliefs_over(scores, None).interval,
        model=model,
        method="pursuit",
        beta=present.beta,
        info=info,
        columns=list(present.columns),
        labels=present.labels,
        path=Path(kept, weights[None]),
        path_X=x[kept],
        path_y=response,
    )
