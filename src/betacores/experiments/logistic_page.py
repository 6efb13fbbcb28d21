"""The page that tells what the logistic experiments found: aims, the paper's claims, and all methods side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from betacores.experiments import logistic as study
from betacores.experiments import logistic_table as numbers
from betacores.experiments.logistic_claims import aims, claims
from betacores.experiments.page import kept, made_by, minutes, paragraph, written
from betacores.experiments.runner import Task


def write(out: Path, results: list[Task], trials: int, seed: int, quick: bool) -> list[Path]:
    """Write the page and the table of all numbers."""
    lines = [
        "# Logistic regression on real, corrupted tables",
        "",
        f"Made by {made_by('logistic', trials, seed, quick)}: {len(results)} tasks that took",
        f"{minutes(results)} minutes together, each on one core.",
        "",
        *_protocol(trials),
        *kept(results),
        "![Accuracy against coreset size, corrupted tables above, clean ones below](accuracy.png)",
        "",
        *(["This is the quick run: few steps, few draws, one data set. Its figures mean little.", ""] if quick else []),
        *(aims(results) if not quick else []),
        *(claims(results) if not quick else []),
        *_accuracies(results),
        *_betas(results),
        *_measures(results),
        *_beyond(results),
        *_sampler(results),
    ]
    return [written(out, lines), numbers.write_table(out, results)]


def _protocol(trials: int) -> list[str]:
    return [
        *paragraph(
            f"The β-Cores paper's protocol, {trials} trials: ten principal components of unit variance (Adult, "
            "Phishing); a fraction F of the rows gets N(0, 5²) noise in half of the columns, another fraction F its "
            "labels flipped; prior N(0, I). Covertype, class 2 against the rest, with its 54 columns stands in for "
            "WebSpam, which cannot be had. Accuracy is that of the likelier label under each posterior draw, averaged "
            "over draws and clean test rows; draws by NUTS, two chains of 250 after 200 of warm-up. *Clean rows* and "
            "*all rows* are classical inference from the training rows without the corrupted ones, and from all of "
            "them. A point is a percentage point of accuracy. All numbers are in [table.csv](table.csv), the runs in "
            "runs.jsonl."
        ),
        *paragraph(
            "Adult is trained on one positive row in four and tested on a balanced set, as in the paper: there an "
            "intercept that is off can gain accuracy, and a coreset can do better than the rows it stands for."
        ),
    ]


def _accuracies(results: list[Task]) -> list[str]:
    lines = ["## Accuracy", "", "Median over trials, with quartiles in brackets, in per cent.", ""]
    for data, fraction in numbers.experiments(results):
        runs = numbers.of_paper(results, data, fraction)
        sizes = numbers.sizes_of(runs[0]["study"])
        shown = [m for m in (10, 30, 60, 100) if m in sizes]
        levels = {name: float(numbers.median(runs, name)[0]) for name in ("clean rows", "all rows")}
        said = ", ".join(f"{name} {100 * level:.1f}" for name, level in levels.items())
        lines += [
            f"**{numbers.NAMES[data]}, F = {fraction:g}**: {said}.",
            "",
            "| method | " + " | ".join(f"{m} points" for m in shown) + " | seconds |",
            "|---" * (len(shown) + 2) + "|",
        ]
        for label, method in shown_methods(results, data, fraction).items():
            cells = [_spread(numbers.curve(runs, method)[:, sizes.index(m)], _percent) for m in shown]
            seconds = np.median([r["methods"][method]["seconds"] for r in runs])
            lines.append(f"| {label} | " + " | ".join(cells) + f" | {seconds:.1f} |")
        lines.append("")
    return lines


def shown_methods(results: list[Task], data: str, fraction: float) -> dict[str, str]:
    """Return the methods to be shown, by what they are called there."""
    runs = numbers.of_paper(results, data, fraction)
    beta = numbers.chosen(results, data, fraction)
    best = numbers.best_beta(runs, numbers.sizes_of(runs[0]["study"]))
    robust = {f"beta-cores, β = {beta:g} by cross-validation": study.beta_cores(beta)}
    if len(numbers.betas(runs)) == 1:
        robust = {f"beta-cores, β = {beta:g}": study.beta_cores(beta)}
    elif best != beta:
        robust[f"beta-cores, β = {best:g}, best in hindsight"] = study.beta_cores(best)
    else:
        robust = {f"beta-cores, β = {beta:g} by cross-validation and in hindsight": study.beta_cores(beta)}
    return {"pursuit": "pursuit", **robust, **{name: name for name in study.BASELINES}}


def _betas(results: list[Task]) -> list[str]:
    shown = [one for one in numbers.experiments(results) if numbers.validated(results, *one)]
    if not shown:
        return []
    lines = [
        "## β of β-Cores",
        "",
        *paragraph(
            f"Left, accuracy by {study.FOLDS}-fold cross-validation on the first trial's table, on rows as dirty as "
            "those learned from, averaged over sizes from 30 up; right, median accuracy on clean test rows at the best "
            "size from 30 up."
        ),
        "| data | F | " + " | ".join(f"β = {beta:g}" for beta in study.BETAS) + " | chosen | best |",
        "|---" * (len(study.BETAS) + 4) + "|",
    ]
    for data, fraction in shown:
        runs = numbers.of_paper(results, data, fraction)
        found = numbers.validated(results, data, fraction)
        large = np.array(numbers.sizes_of("paper")) >= 30
        reached = {beta: numbers.median(runs, study.beta_cores(beta))[large].max() for beta in study.BETAS}
        cells = " | ".join(f"{_percent(found[beta])} / {_percent(reached[beta])}" for beta in study.BETAS)
        best = numbers.best_beta(runs, numbers.sizes_of("paper"))
        chosen = numbers.chosen(results, data, fraction)
        lines.append(f"| {numbers.NAMES[data]} | {fraction:g} | {cells} | {chosen:g} | {best:g} |")
    return [*lines, ""]


def _measures(results: list[Task]) -> list[str]:
    """Show the other measures at 60 points."""
    lines = [
        "## Other measures, 60 points",
        "",
        "Medians over trials: log predictive density of test rows, expected calibration error, divergence to the",
        "posterior of the clean rows (between Gaussians of the same moments), corrupted rows kept.",
        "",
        "| data | F | method | log density | calibration error | KL to clean | corrupted rows |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, fraction in numbers.experiments(results):
        runs = numbers.of_paper(results, data, fraction)
        at = numbers.sizes_of(runs[0]["study"]).index(60)
        begin = f"| {numbers.NAMES[data]} | {fraction:g} |"
        for label, method in shown_methods(results, data, fraction).items():
            log_density, error, kl, dirty = (
                float(numbers.median(runs, method, name)[at])
                for name in ("log_density", "calibration_error", "kl_to_clean", "dirty")
            )
            lines.append(f"{begin} {label} | {log_density:.3f} | {error:.3f} | {_number(kl)} | {dirty:g} |")
        for reference in ("clean rows", "all rows"):
            log_density, error = (
                float(numbers.median(runs, reference, name)[0]) for name in ("log_density", "calibration_error")
            )
            kl_cell = (
                _number(float(numbers.median(runs, reference, "kl_to_clean")[0])) if reference == "all rows" else ""
            )
            lines.append(f"{begin} {reference} | {log_density:.3f} | {error:.3f} | {kl_cell} | |")
    return [*lines, ""]


def _beyond(results: list[Task]) -> list[str]:
    """Show the studies beyond the paper's protocol."""
    dirt = numbers.where(results, study="other dirt")
    columns = numbers.where(results, study="all columns")
    if not (dirt and columns):
        return []
    methods = ("pursuit", study.beta_cores(study.MIDDLE_BETA), "psvi", "uniform")
    lines = [
        "## Beyond the paper's protocol",
        "",
        f"Median accuracy over {len({r['trial'] for r in dirt})} trials in per cent. β-Cores with β ="
        f" {study.MIDDLE_BETA:g}.",
        "",
        f"**Other dirt**, F = {study.FRACTION:g}, Adult by its components; see `betacores.datasets.contaminate`.",
        "",
        *_wide_table(
            "scheme",
            {scheme: numbers.where(dirt, scheme=scheme) for scheme in study.OTHER_DIRT},
            methods,
            study.OTHER_DIRT_SIZES,
        ),
        "",
        *paragraph(
            f"**All columns**, robustly centred and scaled, categories one-hot, the paper's corruption with F = "
            f"{study.FRACTION:g}: 88 parameters for Adult and 31 for Phishing. Fewer rows than parameters cannot stand "
            "for the posterior; pursuit tries to, with weights for all rows, where the small weights of β-Cores leave "
            "more to the prior."
        ),
        *_wide_table(
            "data",
            {numbers.NAMES[data]: numbers.where(columns, data=data) for data in study.ALL_COLUMNS},
            methods,
            study.ALL_COLUMNS_SIZES,
        ),
        "",
    ]
    return lines


def _wide_table(
    kind: str, groups: dict[str, list[Task]], methods: tuple[str, ...], sizes: tuple[int, ...]
) -> list[str]:
    lines = [
        f"| {kind} | clean rows | all rows | method | " + " | ".join(f"{m} points" for m in sizes) + " |",
        "|---" * (len(sizes) + 4) + "|",
    ]
    for name, runs in groups.items():
        clean, everything = (_percent(float(numbers.median(runs, row)[0])) for row in ("clean rows", "all rows"))
        for method in methods:
            cells = " | ".join(_percent(value) for value in numbers.median(runs, method))
            lines.append(f"| {name} | {clean} | {everything} | {method} | {cells} |")
    return lines


def _sampler(results: list[Task]) -> list[str]:
    """Say how well NUTS mixed."""
    r_hat = np.concatenate(
        [of["r_hat"] for r in results for of in r["methods"].values() if "r_hat" in of and r["study"] != "validation"]
    )
    divergences = np.concatenate(
        [of["divergences"] for r in results for of in r["methods"].values() if "divergences" in of]
    )
    return [
        "## The sampler",
        "",
        *paragraph(
            f"Of {len(r_hat):,} posteriors drawn from by NUTS, {np.mean(r_hat < 1.05):.1%} have an R-hat below 1.05 "
            f"in every parameter and {np.mean(r_hat < 1.1):.1%} below 1.1; {np.mean(divergences > 0):.1%} have a "
            "divergent step among their 500."
        ),
    ]


def _spread(values: np.ndarray, show: Callable[[float], str]) -> str:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{show(middle)} [{show(low)}, {show(high)}]"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
