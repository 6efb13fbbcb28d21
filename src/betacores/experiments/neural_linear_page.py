"""The page that tells what the neural linear experiments found: aims, errors by size, dirty rows, times."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.experiments import neural_linear as study
from betacores.experiments.page import kept, made_by, minutes, paragraph, written
from betacores.experiments.runner import Task
from betacores.experiments.trials import (
    RESAMPLES,
    excess_with_spread,
    in_median_trial,
    resampled_medians,
    share_that_falls,
)

if TYPE_CHECKING:
    from jaxtyping import Float

# Rounds that tables show, and at which the aims are asked for.
SHOWN = (0, 5, 10, 15, 20, 25, 30, 35, 40)
SECONDS = {"boston_housing": 10, "songs": 60}
Case = tuple[str, str, float, str]


def write(out: Path, results: list[Task], trials: int, seed: int, quick: bool) -> list[Path]:
    """Write the page and the table of all numbers."""
    lines = [
        "# Neural linear regression on poisoned batches",
        "",
        f"Made by {made_by('neural-linear', trials, seed, quick)}: {len(results)} tasks that",
        f"took {minutes(results)} minutes together, each on one core.",
        "",
        *_protocol(results),
        "![Test error against coreset size](rmse.png)",
        "",
        *(["This is the quick run: few rounds of one case. Its figures mean little.", ""] if quick else []),
        *([] if quick else _aims(results)),
        *_errors(results),
        *_dirt(results),
        *_times(results),
    ]
    return [written(out, lines), _write_table(out, results)]


def cases(results: list[Task]) -> list[Case]:
    """Return the cases that were run, Housing first."""
    found = dict.fromkeys((r["data"], r["dirt"], r["fraction"], r["start"]) for r in results)
    return sorted(found, key=lambda case: list(study.SETTINGS).index(case[0]))


def of_case(results: list[Task], case: Case, *, alone: bool = False) -> list[Task]:
    """Return the trials of a case with all methods; with those of pursuit alone too, if asked for."""
    among = [r for r in results if alone or "only" not in r]
    return [r for r in among if (r["data"], r["dirt"], r["fraction"], r["start"]) == case]


def curve(runs: list[Task], method: str, measure: str = "rmse") -> Float[np.ndarray, "trials rounds"]:
    """Return a measure of one method by trial and round."""
    return np.array([r["methods"][method][measure] for r in runs], float)


def median(runs: list[Task], method: str, measure: str = "rmse") -> Float[np.ndarray, " rounds"]:
    """Return the median over trials, by round."""
    return np.median(curve(runs, method, measure), axis=0)


def geometric_mean(runs: list[Task], method: str) -> Float[np.ndarray, " rounds"]:
    """Return the geometric mean over trials of an error, after every round."""
    return np.exp(np.log(curve(runs, method)).mean(0))


def title(case: Case) -> str:
    """Return what a case is called."""
    data, dirt, fraction, start = case
    dirty = f"{fraction:.0%} of the batches poisoned ({dirt})" if fraction else "nothing poisoned"
    return f"{study.SETTINGS[data].name}, {dirty}, start from {start}"


def _rounds(runs: list[Task]) -> list[int]:
    last = curve(runs, "uniform").shape[1] - 1
    return [number for number in SHOWN if number <= last]


def _protocol(results: list[Task]) -> list[str]:
    trials = {
        study.SETTINGS[d].name: max(len(of_case(results, c)) for c in cases(results) if c[0] == d)
        for d in dict.fromkeys(r["data"] for r in results)
    }
    counted = " and ".join(f"{count} trials of {name}" for name, count in trials.items())
    return [
        *paragraph(
            f"The β-Cores paper's protocol, at most {counted}. A network of two hidden layers with batch "
            "normalisation is trained on the coreset, 1,000 steps of AdaGrad a round; Bayesian linear regression "
            "on its last layer predicts; then one more batch enters. Housing: 446 rows to learn from, 50 to test, "
            "an initial coreset of 20, batches of 10, 30 hidden units. Songs: a subset of 8,162 of the 515,345 "
            "rows, as the whole file was not at hand; 7,346 and 816 rows, 200, 100, 100. Rows are standardised, "
            "then a share F of the batches is poisoned: 70 % of the rows of each are replaced. *Shifted*, as in "
            "the published code: half of the columns are N(1, 1), the response N(10, 0.5²), in standard "
            "deviations. *Scattered*, as the paper says it: both are noise, N(0, 5²). The coreset starts from "
            "clean rows, as published, or from a random sample in which as many rows are dirty as in the table, "
            "the harder and more honest case."
        ),
        *paragraph(
            "`beta-cores` and `sparse-vi` are Algorithm 1 over batches (100 draws, 100 steps a round, a weight "
            "for every row) with the noise of the response, one standard deviation, as published. `pursuit` "
            "leaves out rows it does not believe, estimates the noise from rows outside the coreset, gives the rows "
            "weights on each last layer with which they stand for all it believes, and averages five networks, each "
            "trained as the one of the others, with one of them, by turns, as it was after each earlier round in which "
            "the coreset had at least half as many rows; batches enter on the basis of the first. With *one network*, "
            "averaged over those rounds, it is shown beside; averaging would help the others too. *Clean rows only* is "
            "the same network, one, trained on all clean rows with as many steps. Errors are root mean squares on "
            "clean test rows, in 1,000 dollars (Housing) and years (Songs). All numbers are in [table.csv](table.csv), "
            "the runs in runs.jsonl."
        ),
        *_further(results),
        *kept(results),
    ]


def _further(results: list[Task]) -> list[str]:
    if not any("only" in r for r in results):
        return []
    counts = {study.SETTINGS[c[0]].name: len(of_case(results, c, alone=True)) for c in cases(results) if c[2] > 0}
    said = " and ".join(f"{count} of {name}" for name, count in counts.items())
    return paragraph(f"With pursuit alone every poisoned case has more trials, {said}, the others among them.")


def _aims(results: list[Task]) -> list[str]:
    lines = ["## Aims", ""]
    lines += paragraph(
        "For pursuit, by medians over trials, at the sizes of the tables below and half way between. After ±, the "
        f"standard deviation of a figure over {RESAMPLES:,} resamples of its trials. A median over trials also jumps "
        "where one trial passes another; their geometric mean does not. *In the median trial*: errors on the same "
        "table are compared, trial by trial, and the median of these comparisons is told, the worst of all sizes and "
        "baselines. That is how changes from size to size are told from none, which are small late in a run against "
        "how far trials differ. *At every size in so many of the resamples*: how often that would come out so at "
        "every size if the trials were drawn again; where the share is in between, which of the two came out is "
        "chance. Pursuit alone has further trials for that reason."
    )
    for case in cases(results):
        runs = of_case(results, case)
        shown = _rounds(runs)
        own = median(runs, "pursuit")[shown]
        others = {m: median(runs, m)[shown] for m in study.BASELINES}
        best = np.min(list(others.values()), axis=0)
        excess = 100 * (own / best - 1)
        worst = int(excess.argmax())
        rival = min(others, key=lambda m: others[m][worst])
        sizes = _sizes(case, shown)
        means = geometric_mean(runs, "pursuit")[shown]
        of_means = 100 * (means / np.min([geometric_mean(runs, m)[shown] for m in study.BASELINES], axis=0) - 1)
        errors, its = (curve(runs, method)[:, shown] for method in ("pursuit", rival))
        of_pairs = np.max([in_median_trial(errors, curve(runs, m)[:, shown]) for m in study.BASELINES], axis=0)
        told = (
            f"worst at {sizes[worst]} rows, {excess_with_spread(errors[:, worst], its[:, worst])} against {rival}; by "
            f"geometric means over trials, {of_means.max():+.1f} % at worst; in the median trial, "
            f"{of_pairs.max():+.1f} %"
        )
        lines.append(f"- **{title(case)}**")
        if case[2] == 0:
            lines.append(_held("within 2 % of the best baseline at every size", excess.max() <= 2, told))
            end = (
                f"{own[-1]:.2f} against {best[-1]:.2f}, {excess[-1]:+.1f} %; by geometric means over trials, "
                f"{of_means[-1]:+.1f} %; in the median trial, {of_pairs[-1]:+.1f} %"
            )
            lines.append(_held("at the full budget within 2 % of the best baseline", excess[-1] <= 2, end))
            continue
        every = of_case(results, case, alone=True)
        lines += _falls(every, runs, shown, sizes)
        lines.append(_held("no worse than every baseline at every size", excess.max() <= 0, told))
        clean = float(median(runs, study.CLEAN)[0])
        over = 100 * (own[-1] / clean - 1)
        at_end = f"{own[-1]:.2f} against {clean:.2f}, {over:+.1f} %"
        lines.append(_held("at the full budget within 5 % of training on clean rows only", over <= 5, at_end))
    return [*lines, ""]


def _falls(every: list[Task], runs: list[Task], shown: list[int], sizes: list[int]) -> list[str]:
    """Say whether pursuit's errors fall from every size to the next: their medians, and trial by trial."""
    errors = curve(every, "pursuit")[:, shown]
    changes = errors[:, 1:] / errors[:, :-1]
    medians, means = in_median_trial(errors[:, 1:], errors[:, :-1]), np.exp(np.log(changes).mean(0))
    again = 100 * (resampled_medians(changes) - 1)
    where = int(medians.argmax())
    figures = (
        f"least from {sizes[where]} to {sizes[where + 1]} rows, {medians[where]:+.1f} ± {again[:, where].std():.1f} %, "
        f"at every size in {np.mean(np.all(again <= 0, axis=1)):.0%} of the resamples; of the geometric mean over "
        f"trials, {100 * (means.max() - 1):+.1f} %"
    )
    aim = f"the error decreases from size to size in the median trial, {len(every)} trials"
    both = [_median_falls(trials, shown, sizes) for trials in (every, runs)]
    return [*dict.fromkeys(both), _held(aim, bool(medians.max() <= 0), figures)]


def _median_falls(runs: list[Task], shown: list[int], sizes: list[int]) -> str:
    errors = curve(runs, "pursuit")[:, shown]
    own = np.median(errors, axis=0)
    rises = 100 * (own[1:] / own[:-1] - 1)
    where = int(rises.argmax())
    figures = (
        f"largest change from {sizes[where]} to {sizes[where + 1]} rows, "
        f"{excess_with_spread(errors[:, where + 1], errors[:, where])}, at every size in "
        f"{share_that_falls(errors):.0%} of the resamples"
    )
    return _held(f"the median of the errors decreases, {len(runs)} trials", bool(rises.max() <= 0), figures)


def _held(aim: str, reached: bool, figures: str) -> str:
    return f"  - {aim}: {'reached' if reached else '**not reached**'}, {figures}."


def _sizes(case: Case, rounds: list[int]) -> list[int]:
    return [study.SETTINGS[case[0]].initial + study.SETTINGS[case[0]].batch * number for number in rounds]


def _errors(results: list[Task]) -> list[str]:
    lines = ["## Error by coreset size", ""]
    lines += paragraph(
        "Median over trials, with quartiles in brackets, by the number of rows of the batches that have entered "
        "(pursuit keeps fewer of them where they are dirty)."
    )
    for case in cases(results):
        runs = of_case(results, case)
        shown = [number for number in _rounds(runs) if number % 10 == 0 or number == 5]
        clean = float(median(runs, study.CLEAN)[0])
        heads = [str(size) for size in _sizes(case, shown)]
        lines += [
            f"**{title(case)}**, {len(runs)} trials; clean rows only: {clean:.2f}.",
            "",
            f"| rows | {' | '.join(heads)} |",
            f"|---|{'---|' * len(heads)}",
        ]
        for method in study.METHODS:
            low, middle, high = np.quantile(curve(runs, method)[:, shown], (0.25, 0.5, 0.75), axis=0)
            cells = [f"{m:.2f} ({a:.2f}–{b:.2f})" for a, m, b in zip(low, middle, high, strict=True)]
            lines.append(f"| {method} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def _dirt(results: list[Task]) -> list[str]:
    poisoned = [case for case in cases(results) if case[2] > 0]
    lines = [
        *("## Dirty rows in the coreset", ""),
        *("Mean over trials, a quarter of the way and at the end.", ""),
        f"| | {' | '.join(study.METHODS)} |",
        f"|---|{'---|' * len(study.METHODS)}",
    ]
    for case in poisoned:
        runs = of_case(results, case)
        last = curve(runs, "uniform").shape[1] - 1
        cells = []
        for method in study.METHODS:
            dirty = curve(runs, method, "dirty").mean(0)
            cells.append(f"{dirty[last // 4]:.1f}, {dirty[last]:.1f}")
        lines.append(f"| {title(case)} | {' | '.join(cells)} |")
    return [*lines, ""]


def _times(results: list[Task]) -> list[str]:
    lines = ["## Time", ""]
    told = "Processor seconds of a trial on one core, median over trials (the first compile, which counts)."
    if any(r.get("kept") for r in results):
        told += " Those of results of an earlier run are by the clock."
    lines += paragraph(told)
    for data in dict.fromkeys(r["data"] for r in results):
        runs = [r for r in results if r["data"] == data and "only" not in r]
        each = {m: float(np.median([r["methods"][m]["seconds"] for r in runs])) for m in study.METHODS}
        whole = float(np.median([r["task_seconds"] for r in runs]))
        told = ", ".join(f"{m} {seconds:.1f}" for m, seconds in each.items())
        slowest = max(each.values())
        aim = f"a trial of any method under {SECONDS[data]} s"
        lines.append(f"- {study.SETTINGS[data].name}: {told}; all of them and the clean rows {whole:.1f}.")
        lines.append(_held(aim, slowest < SECONDS[data], f"the slowest takes {slowest:.1f} s"))
    return lines


def _write_table(out: Path, results: list[Task]) -> Path:
    path = out / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(["data", "dirt", "fraction", "start", "method", "round", "measure", "q25", "median", "q75"])
        for case in cases(results):
            runs = of_case(results, case)
            every = of_case(results, case, alone=True)
            further = [("pursuit", every, f"pursuit, {len(every)} trials")] if len(every) > len(runs) else []
            for method, trials, name in [*((m, runs, m) for m in (*study.METHODS, study.CLEAN)), *further]:
                for measure in ("rmse", "log_density", "rows", "dirty"):
                    for number, row in enumerate(
                        np.quantile(curve(trials, method, measure), (0.25, 0.5, 0.75), axis=0).T
                    ):
                        numbers: list[Any] = [f"{value:.5g}" for value in row]
                        writer.writerow([*case, name, number, measure, *numbers])
    return path
