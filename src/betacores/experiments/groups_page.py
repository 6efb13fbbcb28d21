"""The page that tells what the group experiment found: aims, claims, accuracy, who was selected, and times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from betacores.experiments import groups_table as numbers
from betacores.experiments.groups_claims import aims, claims
from betacores.experiments.groups_times import DRAWS as NUTS_DRAWS
from betacores.experiments.groups_times import extrapolated, shapley_fits
from betacores.experiments.page import made_by, minutes, paragraph, written
from betacores.experiments.runner import Task

# A difference in accuracy that asks for an explanation.
MUCH = 0.1


def write(out: Path, results: list[Task], trials: int, seed: int, quick: bool) -> list[Path]:
    """Write the page and the table of all numbers."""
    lines = [
        "# Which groups of patients to learn from",
        "",
        *paragraph(
            f"Made by {made_by('groups', trials, seed, quick)}: "
            f"{_several(len(results), 'task')} that took {minutes(results)} minutes together, each on one core."
        ),
        *_protocol(trials),
        "![Accuracy against number of groups and number of rows, for four cases](accuracy.png)",
        "",
        *(["This is the quick run: few steps, two groups, one trial. Its figures mean little.", ""] if quick else []),
        *(aims(results) if not quick else []),
        *(claims(results) if not quick else []),
        *_accuracies(results),
        *_dirt(results),
        *_estimates(results),
        *_selected(results),
        *_times(results),
        *_sampler(results),
    ]
    return [written(out, lines), numbers.write_table(out, results)]


def _protocol(trials: int) -> list[str]:
    few = max(trials // 2, 1)
    return [
        *paragraph(
            "The β-Cores paper's choice of subpopulations, on Hospital Readmissions: whether a diabetes patient comes "
            "back. Cells of age, race and gender with more than 40 patients are split at random in three parts, of "
            "quality 0, 1 and 2: 165 groups of 13 to 2,017 patients, 54,615 in all. In a group of quality q a share "
            "q · 10 % of the rows gets N(0, 5²) noise in half of the columns, drawn for each group, and an equal "
            "share, drawn independently, its labels flipped; so says the paper, the published script has N(0, 10²). "
            "Columns are ten principal components of unit variance; prior N(0, I); test rows are clean, half of each "
            f"label. {_several(trials, 'trial')} with groups, dirt and test rows of their own."
        ),
        *paragraph(
            "The published preparation puts the answer itself among the columns that the components are made of. Here "
            "the components are made without it; results with the published columns are shown beside, and say nothing "
            "about patients."
        ),
        *paragraph(
            "Each method selects up to ten groups. **pursuit**: `summarize(x, y, groups=..., max_groups=10)`, nothing "
            "else set. **β-Cores**: β = 0.6, 10 iterations, 200 draws, 500 steps, batches of 1,000 rows; as it takes "
            f"far longer than the others it has {_several(trials, 'trial')} in the first case and {few} in each of the "
            "other three. "
            "**Shapley**: the groups of largest Shapley value for the accuracy on the test rows, from 5,000 orders of "
            "which the first 20 groups are looked at, groups entering with no more than 50 rows. As published, the "
            "rows that groups are valued on are those that they are then measured on, which is in its favour. "
            "**random**: groups in random order. Rows have the weights that the method gives, or 1 for Shapley and "
            "random groups. Pursuit leaves rows that it does not believe out of the groups it selects."
        ),
        *paragraph(
            "Accuracy is that of the likelier label under each posterior draw, averaged over draws and test rows; 500 "
            "draws of Laplace's approximation of the classical posterior. *Clean groups* is inference from all rows of "
            "all groups that were not made dirty, *all groups* from all rows. A point is a percentage point. All "
            "numbers are in [table.csv](table.csv), the runs in runs.jsonl."
        ),
    ]


def _accuracies(results: list[Task]) -> list[str]:
    sizes = numbers.sizes(results)
    shown = [m for m in (1, 2, 3, 5, 7, 10) if m in sizes]
    lines = ["## Accuracy", "", "By number of groups: median over trials, with quartiles in brackets, in per cent.", ""]
    for case in numbers.cases(results):
        levels = [f"{name} {_spread(numbers.reference(results, case, name))}" for name in numbers.REFERENCES]
        lines += [
            f"**{numbers.case_name(case).capitalize()}**: {', '.join(levels)}.",
            "",
            "| method | trials | " + " | ".join(_several(m, "group") for m in shown) + " |",
            "|---" * (len(shown) + 2) + "|",
        ]
        for method in numbers.methods(results, case):
            values = numbers.curve(results, case, method)
            cells = " | ".join(_spread(values[:, sizes.index(m)]) for m in shown)
            lines.append(f"| {numbers.NAMES[method]} | {len(values)} | {cells} |")
        lines.append("")
        lead = numbers.curve(results, case, "pursuit")[:, -1] - numbers.reference(results, case, "all groups")
        if case == (False, True) and np.median(lead) > MUCH:
            lines += paragraph(
                "Pursuit is above inference from all rows here since there are two lines to be found. One reads the "
                "answer off most rows and is badly wrong about the rest; a likelihood that believes every row cannot "
                "afford it, while robust inference takes it, and takes the rest for outliers. Under contamination "
                "pursuit finds the other line."
            )
    return lines


def _dirt(results: list[Task]) -> list[str]:
    lines = [
        "## What entered",
        "",
        *paragraph(
            "At the largest number of groups, over all trials: groups selected, how many of them were contaminated, "
            "rows kept (median), and how many of these were dirty. Two groups in three are contaminated, and 18 % of "
            "all rows are dirty."
        ),
        "| case | method | groups | contaminated groups | rows | dirty rows |",
        "|---|---|---|---|---|---|",
    ]
    for case in numbers.cases(results):
        for method in numbers.methods(results, case):
            of = {name: numbers.curve(results, case, method, name)[:, -1] for name in numbers.MEASURES}
            share = of["dirty_rows"].sum() / max(of["rows"].sum(), 1)
            dirt = (f"{of['dirty_groups'].sum():.0f}", f"{100 * share:.1f} %") if case[0] else ("", "")
            lines.append(
                f"| {numbers.case_name(case)} | {numbers.NAMES[method]} | {of['groups'].sum():.0f} | {dirt[0]} | "
                f"{np.median(of['rows']):,.0f} | {dirt[1]} |"
            )
    return [*lines, ""]


def _estimates(results: list[Task]) -> list[str]:
    lines = [
        "## Estimated contamination",
        "",
        *paragraph(
            "Of all 165 groups, from `coreset.group_table()` of pursuit: mean estimate by quality, the true share of "
            "dirty rows in brackets, and the rank correlation (Spearman) of estimate and true share over groups, "
            "medians over trials. Labels can hardly be predicted from these columns, so that a flipped one cannot be "
            "told and estimates are below the truth; it is noise in the columns that gives groups away. On clean "
            "tables they are above it: rows far out in the tails of the components are not trusted."
        ),
        "| case | quality 0 | quality 1 | quality 2 | rank correlation |",
        "|---|---|---|---|---|",
    ]
    for case in numbers.cases(results):
        found = numbers.estimates(results, case)
        estimated, true = (100 * np.median([one[name] for one in found], axis=0) for name in ("estimated", "true"))
        cells = " | ".join(f"{a:.1f} % ({b:.1f} %)" for a, b in zip(estimated, true, strict=True))
        ranks = [one["spearman"] for one in found if "spearman" in one]
        lines.append(f"| {numbers.case_name(case)} | {cells} | {f'{np.median(ranks):.3f}' if ranks else ''} |")
    return [*lines, ""]


def _selected(results: list[Task]) -> list[str]:
    case = numbers.cases(results)[0]
    shown = numbers.methods(results, case)
    lines = [
        "## Who was selected",
        "",
        *paragraph(
            f"Contaminated, columns without the answer, {numbers.sizes(results)[-1]} groups, all trials: per cent of "
            "the selected groups by attribute, and how all groups and all rows divide."
        ),
        "![Attributes of the selected groups, by method](selected.png)",
        "",
        "| attribute | value | " + " | ".join(numbers.NAMES[m] for m in shown) + " | all groups | all rows |",
        "|---" * (len(shown) + 4) + "|",
    ]
    for attribute in numbers.ATTRIBUTES:
        found = [numbers.selected(results, case, method, attribute) for method in shown]
        groups, rows = (numbers.everyone(results, attribute, by_rows=by) for by in (False, True))
        for value in groups:
            cells = " | ".join(f"{100 * one.get(value, 0):.0f}" for one in [*found, groups, rows])
            lines.append(f"| {attribute} | {value} | {cells} |")
    return [*lines, ""]


def _times(results: list[Task]) -> list[str]:
    found = next((r for r in results if r["study"] == "times"), None)
    if found is None:
        return []
    slow = np.median([r["seconds"] for r in numbers.runs(results, numbers.cases(results)[0], "beta-cores")])
    theirs = extrapolated(found)
    runs = ", ".join(f"{seconds:.2f} ({_several(int(m), 'group')})" for m, seconds in found["nuts"].items())
    return [
        "## Times",
        "",
        *paragraph(
            "Processor seconds on one core, contaminated table of the first trial, columns without the answer; for "
            "β-Cores the median over trials. The published way is extrapolated, not run: the mean of "
            f"{len(found['nuts'])} NUTS runs of this package, each {NUTS_DRAWS:,} draws after {NUTS_DRAWS:,} of "
            f"warm-up, without compilation and without predicting the test rows ({runs} seconds), times "
            f"{shapley_fits():,} fits."
        ),
        "| what | seconds |",
        "|---|---|",
        f"| pursuit, the whole call, compiled before | {found['pursuit']:.2f} |",
        f"| pursuit, the first call, with compilation | {found['pursuit_first']:.1f} |",
        f"| β-Cores | {slow:.0f} |",
        f"| Shapley values, {shapley_fits():,} fits by Newton's method, as here | {found['shapley']:.1f} |",
        f"| Shapley values, {shapley_fits():,} fits by NUTS, the published way, extrapolated | {theirs:,.0f} |",
        "",
    ]


def _sampler(results: list[Task]) -> list[str]:
    """Say how far Laplace's approximation is from NUTS where rows are fewest."""
    of = [
        r
        for case in numbers.cases(results)
        for m in numbers.methods(results, case)
        for r in numbers.runs(results, case, m)
    ]
    apart = 100 * np.abs([r["accuracy_by_nuts"][0] - r["accuracy"][0] for r in of if "accuracy_by_nuts" in r])
    if not len(apart):
        return []
    return [
        "## The sampler",
        "",
        *paragraph(
            "Laplace's approximation is least sure where rows are few. The posteriors given one group were drawn from "
            f"by NUTS too (two chains of 250 after 200 of warm-up): of {len(apart)} accuracies the median difference "
            f"is {np.median(apart):.2f} points and the largest {apart.max():.2f}."
        ),
    ]


def _several(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _spread(values: np.ndarray) -> str:
    low, middle, high = 100 * np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"
