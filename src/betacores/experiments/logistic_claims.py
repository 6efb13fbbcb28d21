"""What the logistic experiments decide: the aims of pursuit, and the paper's claims, each with its figures."""

from __future__ import annotations

import numpy as np

from betacores.experiments import logistic as study
from betacores.experiments import logistic_table as numbers
from betacores.experiments.runner import Task

CORRUPTED = (("adult", 0.1), ("phishing", 0.1))
CLEAN = (("adult", 0.0), ("phishing", 0.0))
PUBLISHED = ("sparse-vi", "psvi", "uniform")
# In points: what counts as a loss from corruption, and as the same.
COSTLY, ALIKE = 5.0, 1.0

LARGE = np.array(study.SIZES) >= 30
AT_60 = study.SIZES.index(60)


def aims(results: list[Task]) -> list[str]:
    """Say which aims are reached."""
    lines = ["## Aims", "", "Medians over trials, in points.", ""]
    for data, fraction in CORRUPTED:
        runs, name = _runs(results, data, fraction)
        lost = 100 * (_level(runs, "clean rows") - numbers.median(runs, "pursuit")[AT_60])
        lines.append(_held(f"{name}: pursuit at 60 points within 1 of the clean rows", lost <= 1, _apart(-lost)))
        ahead, rival, size = min(_leads(results, data, fraction))
        told = (
            f"nearest is {rival} at {size} points, {ahead:.2f} below"
            if ahead >= 0
            else (f"{rival} at {size} points is {-ahead:.2f} above")
        )
        lines.append(_held(f"{name}: pursuit not below any method at any size from 30 up", ahead >= 0, told))
        cost = 100 * (_level(runs, "clean rows") - _level(runs, "all rows"))
        if cost > COSTLY:
            own = numbers.median(runs, "pursuit")[AT_60]
            rivals = {m: 100 * (own - numbers.median(runs, m)[LARGE].max()) for m in study.BASELINES}
            worst = min(rivals, key=lambda m: rivals[m])
            aim = f"{name}, where corruption costs {cost:.1f}: pursuit at 60 points 3 above every non-robust method"
            lines.append(
                _held(f"{aim} at its best size from 30 up", rivals[worst] >= 3, f"{rivals[worst]:.1f} above {worst}")
            )
        else:
            lines.append(f"- {name}: corruption costs inference from all rows {cost:.1f}, too little to ask for more.")
    runs, name = _runs(results, "adult", 0.1)
    best = numbers.best_beta(runs, study.SIZES)
    lead = 100 * (numbers.median(runs, "pursuit")[AT_60] - numbers.median(runs, study.beta_cores(best))[LARGE].max())
    aim = f"{name}: pursuit at 60 points above beta-cores at its best β ({best:g}) and best size from 30 up"
    lines.append(_held(aim, lead > 0, _apart(lead)))
    for data, fraction in CLEAN:
        runs, name = _runs(results, data, fraction)
        level = 100 * (_level(runs, "clean rows") - numbers.median(runs, "pursuit")[AT_60])
        leads = _leads(results, data, fraction)
        published = [study.beta_cores(numbers.chosen(results, data, fraction)), *study.BASELINES]
        for kind, others in (
            ("β by cross-validation", [lead for lead in leads if lead[1] in published]),
            ("β in hindsight", leads),
        ):
            ahead, rival, size = min(others)
            aim = f"{name}, {kind}: pursuit no more than 0.3 below the best method at any size from 30 up"
            told = f"{rival} at {size} points is {-ahead:+.2f}, inference from all rows {level:+.2f}"
            lines.append(_held(aim, ahead >= -0.3, told))
    return [*lines, *(_beyond_aims(results, "covtype", fraction) for fraction in (0.0, 0.1)), ""]


def _beyond_aims(results: list[Task], data: str, fraction: float) -> str:
    """Say at which sizes pursuit is behind another method, where nothing was aimed at."""
    runs, name = _runs(results, data, fraction)
    best = np.max([numbers.median(runs, method) for method in _rivals(runs)], axis=0)
    behind = [str(study.SIZES[k]) for k in np.flatnonzero(numbers.median(runs, "pursuit") < best)]
    listed = f"at {', '.join(behind)} points" if behind else "at no size"
    return f"- {name}, 55 parameters, no aim: pursuit is behind the best other method {listed}."


def claims(results: list[Task]) -> list[str]:
    """Say how the paper's claims stand."""
    lines = [
        "## How the paper's claims stand",
        "",
        "β-Cores with the β that cross-validation chose. Figures are medians over trials, averaged over sizes from 30",
        "up unless said otherwise.",
        "",
    ]
    experiments = numbers.experiments(results)
    dirty = [one for one in experiments if one[1] > 0]
    clean = [one for one in experiments if one[1] == 0]
    average = {
        (one, method): 100 * float(numbers.median(_runs(results, *one)[0], _key(results, one, method))[LARGE].mean())
        for one in experiments
        for method in (numbers.CHOSEN, *PUBLISHED)
    }

    def told(one: tuple[str, float]) -> str:
        values = ", ".join(f"{method} {average[one, method]:.1f}" for method in (numbers.CHOSEN, *PUBLISHED))
        return f"{_runs(results, *one)[1]}: {values}"

    holds = [
        max(average[one, m] for m in ("sparse-vi", "psvi")) - average[one, numbers.CHOSEN] < ALIKE for one in clean
    ]
    lines += _claim("On par with SparseVI and PSVI on clean data", holds, [told(one) for one in clean])
    holds = [average[one, numbers.CHOSEN] >= max(average[one, m] for m in PUBLISHED) for one in dirty]
    lines += _claim("The best accuracy on corrupted data", holds, [told(one) for one in dirty])
    few = np.array([m in (10, 20, 30) for m in study.SIZES])
    small = {
        (one, m): 100 * float(numbers.median(_runs(results, *one)[0], m)[few].mean())
        for one in dirty
        for m in PUBLISHED
    }
    holds = [max(small[one, "sparse-vi"], small[one, "psvi"]) > small[one, "uniform"] for one in dirty]
    shown = [
        f"{_runs(results, *one)[1]}, 10 to 30 points: " + ", ".join(f"{m} {small[one, m]:.1f}" for m in PUBLISHED)
        for one in dirty
    ]
    lines += _claim("Small coresets of the other methods do better than random rows", holds, shown)
    costs = {}
    for data, fraction in dirty:
        for method in (numbers.CHOSEN, *PUBLISHED):
            costs[data, method] = average[(data, 0.0), method] - average[(data, fraction), method]
    holds = [all(costs[data, m] > COSTLY for m in ("sparse-vi", "psvi")) for data, _ in dirty]
    shown = [
        f"{_runs(results, data, f)[1]} against F = 0: "
        + ", ".join(f"{m} {costs[data, m]:.1f}" for m in (numbers.CHOSEN, *PUBLISHED))
        for data, f in dirty
    ]
    lines += _claim("Corruption costs the other methods more than five points", holds, shown)
    holds = [costs[data, numbers.CHOSEN] < ALIKE for data, _ in dirty]
    lines += _claim("It costs β-Cores next to nothing", holds, ["The first figure of each line above"])
    return [*lines, ""]


def _claim(claim: str, holds: list[bool], shown: list[str]) -> list[str]:
    verdict = "confirmed" if all(holds) else ("not confirmed" if not any(holds) else "confirmed in part")
    return [f"- *{claim}*: {verdict} ({sum(holds)} of {len(holds)}).", *(f"  - {line}." for line in shown)]


def _held(aim: str, reached: bool, told: str) -> str:
    return f"- {aim}: {'reached' if reached else '**not reached**'}; {told}."


def _apart(lead: float) -> str:
    return f"{abs(lead):.2f} {'above' if lead > 0 else 'below'}"


def _runs(results: list[Task], data: str, fraction: float) -> tuple[list[Task], str]:
    return numbers.of_paper(results, data, fraction), f"{numbers.NAMES[data]}, F = {fraction:g}"


def _level(runs: list[Task], reference: str) -> float:
    return float(numbers.median(runs, reference)[0])


def _key(results: list[Task], one: tuple[str, float], method: str) -> str:
    return study.beta_cores(numbers.chosen(results, *one)) if method == numbers.CHOSEN else method


def _rivals(runs: list[Task]) -> list[str]:
    return [method for method, of in runs[0]["methods"].items() if "beta" in of and method != "pursuit"]


def _leads(results: list[Task], data: str, fraction: float) -> list[tuple[float, str, int]]:
    """Return by how much pursuit is ahead of every other method at every size from 30 up."""
    runs, _ = _runs(results, data, fraction)
    own = numbers.median(runs, "pursuit")
    return [
        (float(100 * (own[k] - numbers.median(runs, method)[k])), method, study.SIZES[k])
        for method in _rivals(runs)
        for k in np.flatnonzero(LARGE)
    ]
