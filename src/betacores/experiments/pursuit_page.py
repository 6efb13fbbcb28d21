"""The page and the figure that tell what the studies of pursuit found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from betacores.experiments import pursuit as study
from betacores.experiments.page import made_by, written
from betacores.experiments.runner import Task

# A method has broken down when its divergence is more than this share of that of classical inference from all rows.
BROKEN = 0.1
# And for accuracy, when it has lost more than half of what classical inference from all rows loses, and a point.
LOST_POINTS = 1.0
MEASURES = (("gaussian", "KL"), ("linear", "KL"), ("logistic", "accuracy"), ("logistic", "log density"))


def write(out: Path, results: list[Task], trials: int, seed: int) -> Path:
    """Write the page."""
    lines = [
        "# What robust pursuit reaches, and where it breaks",
        "",
        f"Made by {made_by('pursuit', trials, seed, quick=False)}.",
        f"Medians over {trials} seeds, with the smallest and the largest in brackets. Settings are the defaults, with",
        "the number of rows fixed and β as said. KL is the reverse KL divergence from the coreset's classical",
        "posterior to the posterior of the clean rows.",
        "",
        *_verdicts(results),
        *_gaussian(results),
        *_kinds(results),
        *_logistic(results),
        *_regret(results),
        *_init(results),
    ]
    return written(out, lines)


def _verdicts(results: list[Task]) -> list[str]:
    """Say which of the aims are reached, with the figures that decide."""

    def worst(values: dict[Any, list[float]]) -> float:
        return max(float(np.median(v)) for v in values.values())

    def held(aim: str, reached: float, limit: float, show: Callable[[float], str]) -> str:
        verdict = "reached" if reached <= limit else "**not reached**"
        return f"- {aim}: {verdict}, {show(reached)} against {show(limit)}."

    example = _where(results, study="gaussian")
    fixed, auto = (
        {f: [r["coreset"] for r in _where(example, fraction=f, beta=beta)] for f in study.GAUSSIAN_FRACTIONS}
        for beta in (study.PAPER_BETA, "auto")
    )
    losses = {
        f: [r["clean"] - r["coreset"] for r in _where(results, study="logistic", fraction=f)]
        for f in study.LOGISTIC_FRACTIONS
    }
    few = {f: loss for f, loss in losses.items() if 0 < f <= 0.2}
    lines = [
        "## Aims",
        "",
        "Worst median over the contaminations, unless said otherwise.",
        "",
        held(f"Gaussian example, β = {study.PAPER_BETA}, KL", worst(fixed), 0.5, number),
        held("Gaussian example, automatic β, KL", worst(auto), 1.0, number),
        held(
            "Gaussian example, error of the contamination, worst seed",
            max(abs(r["contamination"] - r["truth"]) for r in example),
            0.02,
            lambda v: f"{v:.3f}",
        ),
        held("Gaussian example, outliers kept, worst seed", max(r["outliers"] for r in example), 0, lambda v: f"{v:g}"),
        held("Logistic regression, clean, points lost", float(np.median(losses[0.0])), 0.002, _points),
        held("Logistic regression, F ≤ 0.2, points lost", worst(few), 0.005, _points),
        held("Logistic regression, F = 0.3, points lost", float(np.median(losses[0.3])), 0.01, _points),
    ]
    for model in ("gaussian", "linear"):
        shares = {f: _shares(*regrets(results, model, f, "KL")) for f in study.REGRET_FRACTIONS}
        aim = f"Automatic β, {model}, regret in KL as a share of the span"
        lines.append(held(aim, worst(shares), 0.1, lambda v: f"{v:.1%}"))
    points = {f: regrets(results, "logistic", f, "accuracy")[0] for f in study.REGRET_FRACTIONS}
    lines.append(held("Automatic β, logistic, regret in accuracy, points", worst(points), 0.003, _points))
    starts = [
        [_losses(_where(results, study="init", model=model, init=init))[0] for init in (False, True)]
        for model in ("gaussian", "logistic")
    ]
    worse = max(float(np.median(after) - np.median(before)) / float(np.median(before)) for before, after in starts)
    lines.append(held("A start made of outliers, by how much worse", worse, 0.05, lambda v: f"{v:.1%}"))
    return [*lines, ""]


def _shares(regret: list[float], span: list[float]) -> list[float]:
    return [max(r, 0.0) / s if s > 0 else 0.0 for r, s in zip(regret, span, strict=True)]


def _where(results: list[Task], **wanted: object) -> list[Task]:
    return [r for r in results if all(r.get(name) == value for name, value in wanted.items())]


def _spread(values: list[float], show: Callable[[float], str]) -> str:
    return f"{show(float(np.median(values)))} [{show(min(values))}, {show(max(values))}]"


def number(value: float) -> str:
    """Return a positive number as people write it."""
    if value >= 1e4:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:.0f}" if value >= 100 else f"{value:.2g}"


def _points(value: float) -> str:
    return f"{100 * value:+.2f}"


def _gaussian(results: list[Task]) -> list[str]:
    lines = [
        "## The Gaussian example of the β-Cores paper",
        "",
        f"d = 20, N = 5,000, clean rows N(1, I), a fraction F replaced by N(10, I); {study.SIZES['gaussian']} points.",
        "",
        "| F | β | β used | KL | KL, all rows | contamination − F | outliers kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for fraction in study.GAUSSIAN_FRACTIONS:
        for beta in (study.PAPER_BETA, "auto"):
            runs = _where(results, study="gaussian", fraction=fraction, beta=beta)
            lines.append(
                f"| {fraction:.0%} | {beta} | {_spread([r['chosen'] for r in runs], number)} "
                f"| {_spread([r['coreset'] for r in runs], number)} "
                f"| {number(float(np.median([r['all rows'] for r in runs])))} "
                f"| {_spread([r['contamination'] - r['truth'] for r in runs], lambda v: f'{v:+.3f}')} "
                f"| {max(r['outliers'] for r in runs)} at most |"
            )
    return [*lines, ""]


def _kinds(results: list[Task]) -> list[str]:
    header = " | ".join(f"{f:.0%}" for f in study.BREAKDOWN_FRACTIONS)
    lines = [
        "## Other contaminations, and where the method breaks",
        "",
        "β is chosen from the data. Gaussian mean: d = 20, N = 5,000, 20 points. Linear regression: 10 columns,",
        "N = 5,000, 30 points, noise estimated. Both in KL; *broken* is a median above "
        f"{BROKEN:.0%} of that of classical inference",
        "from all rows. Logistic regression: 10 columns, N = 30,000, 60 points; accuracy lost against clean-rows",
        "inference, in points; *broken* when that is above one point and above half of what classical inference loses.",
        "",
        f"| contamination | {header} | all rows, at {study.BREAKDOWN_FRACTIONS[-1]:.0%} | breaks at |",
        "|---" * (len(study.BREAKDOWN_FRACTIONS) + 3) + "|",
    ]
    kinds = list(dict.fromkeys((r["model"], r["kind"]) for r in _where(results, study="kinds")))
    for model, kind in kinds:
        cells, breaks = [], "not seen"
        for fraction in study.BREAKDOWN_FRACTIONS:
            runs = _where(results, study="kinds", model=model, kind=kind, fraction=fraction)
            mine, without = _losses(runs)
            cells.append(_spread(mine, _points if model == "logistic" else number))
            if breaks == "not seen" and _broken(model, mine, without):
                breaks = f"{fraction:.0%}"
        last = float(np.median(without))
        shown = _points(last) if model == "logistic" else number(last)
        lines.append(f"| {model}: {kind} | {' | '.join(cells)} | {shown} | {breaks} |")
    return [
        *lines,
        "",
        "Two kinds break it from small fractions on, for the same reason: the model finds the dirt likely. A tight",
        "cluster at a distance of 4, where a clean row is 4.5 from the mean on average, is denser than anything else;",
        "robust modes move towards it, and further than the plain mean does. A warning says so from some fraction on:",
        "rows then fit better than the model allows. Labels all flipped in one region are the labels of another",
        "logistic model, and nothing but knowledge from outside tells such rows from clean ones.",
        "",
    ]


def _losses(runs: list[Task]) -> tuple[list[float], list[float]]:
    """Return what the coreset and what classical inference from all rows lose."""
    if runs[0]["model"] == "logistic":
        return [r["clean"] - r["coreset"] for r in runs], [r["clean"] - r["all rows"] for r in runs]
    return [r["coreset"] for r in runs], [r["all rows"] for r in runs]


def _broken(model: str, mine: list[float], without: list[float]) -> bool:
    if model == "logistic":
        return bool(np.median(mine) > max(LOST_POINTS / 100, 0.5 * np.median(without)))
    return bool(np.median(mine) > BROKEN * np.median(without))


def _logistic(results: list[Task]) -> list[str]:
    lines = [
        "## Logistic regression with the paper's corruption",
        "",
        f"10 columns, N = 30,000, {study.SIZES['logistic']} points: half of the columns are noise N(0, 5²) in a",
        "fraction F of the rows, labels flipped in another. Accuracy on clean test rows; the loss is against",
        "clean-rows inference, in points.",
        "",
        "| F | β used | clean rows | all rows | coreset | loss | dirty rows kept |",
        "|---|---|---|---|---|---|---|",
    ]
    for fraction in study.LOGISTIC_FRACTIONS:
        runs = _where(results, study="logistic", fraction=fraction)
        accuracies = [f"{np.median([r[name] for r in runs]):.4f}" for name in ("clean", "all rows", "coreset")]
        lines.append(
            f"| {fraction:g} | {_spread([r['chosen'] for r in runs], number)} | {' | '.join(accuracies)} "
            f"| {_spread([r['clean'] - r['coreset'] for r in runs], _points)} "
            f"| {_spread([r['outliers'] for r in runs], lambda v: f'{v:g}')} |"
        )
    return [*lines, ""]


def regrets(results: list[Task], model: str, fraction: float, measure: str) -> tuple[list[float], list[float]]:
    """Return for every seed the regret of the automatic β against the best of the grid, and worst minus best."""
    sign = 1 if measure == "KL" else -1
    name = "coreset, log density" if measure == "log density" else "coreset"
    runs = _where(results, study="regret", model=model, fraction=fraction)
    regret, span = [], []
    for seed in dict.fromkeys(r["seed"] for r in runs):
        own = _where(runs, seed=seed)
        loss = {r["beta"]: sign * r[name] for r in own}
        auto = loss.pop("auto")
        regret.append(auto - min(loss.values()))
        span.append(max(loss.values()) - min(loss.values()))
    return regret, span


def _regret(results: list[Task]) -> list[str]:
    lines = [
        "## The automatic β against the best one on the grid",
        "",
        "Regret: how much worse than with the β of the grid that is best in hindsight, by the KL, by the accuracy in",
        "points, or by the mean log predictive density of clean test rows; the span is from the worst β to the best.",
        "Contaminations as above: N(10, I), a response shift of 10 sd, the paper's corruption.",
        "",
        "| model | measure | F | β chosen | regret | span, median | regret / span, median | worst seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for model, measure in MEASURES:
        for fraction in study.REGRET_FRACTIONS:
            regret, span = regrets(results, model, fraction, measure)
            chosen = [r["chosen"] for r in _where(results, study="regret", model=model, fraction=fraction, beta="auto")]
            show = _points if measure == "accuracy" else number
            positive = [max(r, 0.0) for r in regret]
            shares = _shares(regret, span)
            lines.append(
                f"| {model} | {measure} | {fraction:.0%} | {_spread(chosen, number)} | {_spread(positive, show)} "
                f"| {show(float(np.median(span)))} | {np.median(shares):.1%} | {max(shares):.1%} |"
            )
    return [*lines, ""]


def _init(results: list[Task]) -> list[str]:
    lines = [
        "## A start made of outliers only",
        "",
        "`init=` hands in as many outliers as rows are asked for, at F = 30 %. Gaussian: KL; logistic: accuracy lost",
        "against clean-rows inference, in points.",
        "",
        "| model | from scratch | from outliers | outliers kept |",
        "|---|---|---|---|",
    ]
    for model in ("gaussian", "logistic"):
        cells = []
        for init in (False, True):
            runs = _where(results, study="init", model=model, init=init)
            cells.append(_spread(_losses(runs)[0], _points if model == "logistic" else number))
        kept = [r["outliers"] for r in runs]
        lines.append(f"| {model} | {' | '.join(cells)} | {_spread(kept, lambda v: f'{v:g}')} |")
    return [*lines, ""]


def draw(out: Path, results: list[Task]) -> list[Path]:
    """Draw divergence or loss against the contamination, one line a kind."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    for model, kind in dict.fromkeys((r["model"], r["kind"]) for r in _where(results, study="kinds")):
        axis = right if model == "logistic" else left
        curves = [
            _losses(_where(results, study="kinds", model=model, kind=kind, fraction=f))
            for f in study.BREAKDOWN_FRACTIONS
        ]
        scale = 100 if model == "logistic" else 1
        middle = [scale * np.median(mine) for mine, _ in curves]
        (line,) = axis.plot(study.BREAKDOWN_FRACTIONS, middle, marker="o", label=f"{model}: {kind}")
        without = [scale * np.median(other) for _, other in curves]
        axis.plot(study.BREAKDOWN_FRACTIONS, without, linestyle=":", color=line.get_color(), alpha=0.7)
    left.set(xlabel="contamination", ylabel="KL to the posterior of the clean rows", yscale="log")
    right.set(xlabel="contamination", ylabel="accuracy lost, points")
    # Between the lines of far outliers taken in and the others, where nothing is drawn.
    left.legend(fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0.84))
    right.legend(fontsize=7)
    figure.suptitle("Pursuit (lines) and classical inference from all rows (dotted)", fontsize=10)
    path = out / "breakdown.png"
    figure.savefig(path, dpi=130)
    return [path]
