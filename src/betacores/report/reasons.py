"""Why a row is suspicious, in words: which column, what was expected, what was seen."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from betacores.coreset import Coreset
from betacores.models import LinearRegression, Model, NegativeBinomialRegression
from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import LinearPredictor
from betacores.models.predictors import has_one_predictor, linear_predictor, linear_predictors
from betacores.report.cells import Odd, Reference, is_discrete, odd_cells, reference_of
from betacores.report.table import Table
from betacores.report.words import cell, count, is_number, number, percent

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# Rows believed, or trusted, less than this are doubted.
DOUBT = 0.5


# A cell so many standard deviations off is told of even where the guard takes no offence: tails may be heavy.
FAR = 4.0
# Log-odds above which a label is no surprise: three in ten.
LIKELY = float(np.log(3 / 7))


class Reason(TypedDict):
    """One reason: the column it speaks of (None for the row as a whole), and what was expected and seen there."""

    kind: str
    column: str | None
    seen: str
    expected: str


TOGETHER = Reason(
    kind="together",
    column=None,
    seen="no cell is odd on its own",
    expected="together they are far from the other rows",
)


class Reasons:
    """Reasons for the rows of one table.

    Parameters
    ----------
    coreset, table
        The coreset, and the table it was made of.
    theta
        Robust estimate of the parameters, which expectations are read from.
    believed
        How far every row is believed.
    """

    def __init__(
        self, coreset: Coreset, table: Table, theta: Float[np.ndarray, " p"], believed: Float[np.ndarray, " rows"]
    ):
        self.coreset, self.table, self.theta = coreset, table, theta
        self.reference: Reference = reference_of(table.origin.x, believed >= DOUBT, coreset.model, theta)
        # Words are counted once, however many rows hold them.
        self._counts: dict[str, Counter[Any]] = {}

    def of(self, rows: Int[np.ndarray, " n"]) -> list[list[Reason]]:
        """Return the reasons against some rows, the strongest first."""
        x = np.asarray(self.table.origin.x[rows], np.float64)
        odd, more = odd_cells(self.reference, x)
        trust = np.ones(len(rows)) if self.coreset.covariate_scores is None else self.coreset.covariate_scores[rows]
        responses = self._responses(rows, x)
        mended = self._mended(rows, x, odd)
        reasons = []
        for place, row in enumerate(rows.tolist()):
            doubted = bool(self.coreset.scores[row] < DOUBT)
            absurd = trust[place] < DOUBT or (doubted and not responses)
            found: list[Reason] = []
            if absurd:
                # Expectations of a row whose covariates are absurd say nothing.
                found = self._cells(row, x[place], odd[place]) or [TOGETHER]
                found += [_further(int(more[place]))] if more[place] else []
            elif doubted:
                far = [one for one in odd[place] if one.alone and one.size > FAR]
                cells = self._cells(row, x[place], [*mended[place], *(one for one in far if one not in mended[place])])
                found = [*cells, responses[place]] if mended[place] else [responses[place], *cells]
            reasons.append(found)
        return reasons

    def _mended(self, rows: np.ndarray, x: np.ndarray, odd: list[list[Odd]]) -> list[list[Odd]]:
        """Return the odd cells that, put to what the rest of the row predicts, make the response one that fits."""
        model, y = self.coreset.model, self.table.origin.y
        if not has_one_predictor(model) or model.response == "count" or y is None:
            return [[] for _ in odd]
        eta = linear_predictor(model, x, self.theta)
        found = []
        for place, cells in enumerate(odd):
            seen = y[rows[place]]
            found.append([one for one in cells if self._fits(eta[place], one, x[place, one.column], seen)])
        return found

    def _fits(self, eta: float, odd: Odd, x: float, seen: Any) -> bool:
        """Tell whether a response would fit if an odd cell were what the rest of the row says, give or take."""
        model, labels, slope = self.coreset.model, self.coreset.labels, self.theta[odd.column]
        eta, slack = eta + slope * (odd.expected - x), abs(slope) * odd.spread
        if isinstance(model, LinearRegression):
            return abs(float(seen) - eta) < 2 * np.hypot(float(model.noise), slack)
        return labels is not None and (eta if seen == labels[1] else -eta) + slack > LIKELY

    def _responses(self, rows: np.ndarray, x: np.ndarray) -> list[Reason]:
        model, table = self.coreset.model, self.table
        if not isinstance(model, (LinearPredictor, SeveralPredictors)) or table.origin.y is None:
            return []
        eta, seen = linear_predictors(model, x, self.theta)[:, 0], table.origin.y[rows]
        if model.response == "count":
            expected = [f"{number(low)} to {number(high)}" for low, high in usual_counts(model, eta, self.theta)]
        elif model.response == "classes":
            expected = [f"the model gives it {percent(p)}" for p in self._chances(x, seen)]
        elif isinstance(model, LinearRegression):
            reach = f" ± {number(1.96 * float(model.noise))}"
            expected = [number(float(value)) + reach for value in eta]
        elif self.coreset.labels is not None:
            sign = np.where(seen == self.coreset.labels[1], 1.0, -1.0)
            chance = 1 / (1 + np.exp(np.clip(-sign * eta, -700, 700)))
            expected = [f"the model gives it {percent(float(p))}" for p in chance]
        else:
            expected = ["the model finds it unlikely"] * len(rows)
        kind = "label" if self.coreset.labels is not None else "response"
        return [
            Reason(kind=kind, column=table.target, seen=cell(value), expected=said)
            for value, said in zip(seen.tolist(), expected, strict=True)
        ]

    def _chances(self, x: np.ndarray, seen: np.ndarray) -> list[float]:
        """Return the probabilities of labels, of which there are several."""
        model, labels = self.coreset.model, self.coreset.labels
        assert isinstance(model, SeveralPredictors)
        assert labels is not None
        eta = linear_predictors(model, x, self.theta)
        logits = np.column_stack([np.zeros(len(x)), eta])
        logits -= logits.max(1, keepdims=True)
        own = np.exp(logits)[seen[:, None] == labels]
        return (own / np.exp(logits).sum(1)).tolist()

    def _cells(self, row: int, x: np.ndarray, odd: list[Odd]) -> list[Reason]:
        told: dict[str, Reason] = {}
        for one in odd:
            name = self.table.sources[one.column]
            # Several columns of numbers may come from one column of words.
            if name not in told:
                told[name] = self._cell(row, name, float(x[one.column]), one)
        return list(told.values())

    def _cell(self, row: int, name: str, x: float, odd: Odd) -> Reason:
        value = self.table.cells(name, np.array([row]))[0]
        reference, j = self.reference, odd.column
        low, high = number(reference.low[j]), number(reference.high[j])
        itself = is_number(value) and np.isclose(float(value), x, rtol=1e-6)
        if not itself:
            share = self._share(name, value)
            said = f"found in {percent(share)} of the rows"
            return Reason(kind="label", column=name, seen=cell(value), expected=said)
        elif odd.alone:
            said = f"{low} to {high}" if low != high else low
        elif is_discrete(reference, j):
            said = f"one of its usual values, {low} to {high}"
        else:
            said = f"about {number(odd.expected)}, given the rest of the row"
        return Reason(kind="cell" if odd.alone else "joint", column=name, seen=cell(value), expected=said)

    def _share(self, name: str, value: Any) -> float:
        """Return the share of rows that have the same cell."""
        if name not in self._counts:
            self._counts[name] = Counter(cell(one) for one in self.table.column(name))
        return self._counts[name][cell(value)] / self.table.row_count


def usual_counts(model: Model, eta: np.ndarray, theta: np.ndarray) -> list[tuple[int, int]]:
    """Return the central 95 % of counts at log-means."""
    from scipy import stats

    mean = np.exp(np.clip(eta, -40, 40))
    if isinstance(model, NegativeBinomialRegression):
        dispersion = model.dispersion or float(np.exp(np.clip(theta[-1], -20, 20)))
        law = stats.nbinom(1 / dispersion, 1 / (1 + dispersion * mean))
    else:
        law = stats.poisson(mean)
    return list(zip(law.ppf(0.025).astype(int).tolist(), law.ppf(0.975).astype(int).tolist(), strict=True))


def _further(cells: int) -> Reason:
    more = "cell" if cells == 1 else "cells"
    return Reason(kind="more", column=None, seen=f"and {count(cells)} more {more}", expected="")


def in_words(reason: Reason) -> str:
    """Return a reason as one sentence."""
    column = f"{reason['column']}: " if reason["column"] is not None else ""
    if reason["kind"] == "more":
        return reason["seen"]
    if reason["kind"] in ("together", "label"):
        return f"{column}{reason['seen']}; {reason['expected']}"
    return f"{column}{reason['seen']} (expected {reason['expected']})"


def counted(reasons: list[list[Reason]]) -> list[dict[str, Any]]:
    """Return how many rows each column speaks against, most first."""
    total: dict[str, int] = {}
    for found in reasons:
        for name in {reason["column"] for reason in found if reason["column"] is not None}:
            total[name] = total.get(name, 0) + 1
    order = sorted(total.items(), key=lambda item: -item[1])
    return [{"column": name, "rows": rows, "rows_text": count(rows)} for name, rows in order]
