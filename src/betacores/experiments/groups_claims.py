"""What was aimed at in the group experiment, what the paper claims of it, and how both stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from betacores.experiments import groups as study
from betacores.experiments import groups_table as numbers
from betacores.experiments.groups_times import extrapolated, shapley_fits
from betacores.experiments.runner import Task

CONTAMINATED, CLEAN = (True, False), (False, False)
AS_PUBLISHED = (True, True)
# Of the accuracies reported in the paper for its contaminated table.
CLAIMED = 0.75
# Who the paper says is preferred; by more than so much it is.
PREFERRED: tuple[tuple[str, str, Callable[[Any], bool]], ...] = (
    ("women", "gender", lambda gender: gender == "Female"),
    ("patients from 60 up", "age", lambda age: int(age[1:].split("-")[0]) >= 60),
    ("Caucasian and African-American patients", "race", lambda race: race in ("Caucasian", "AfricanAmerican")),
)
CLEARLY = 0.05


def aims(results: list[Task]) -> list[str]:
    """Say which aims are reached, on columns without the answer."""
    entered = int(numbers.curve(results, CONTAMINATED, "pursuit", "dirty_groups")[:, -1].sum())
    kept = int(numbers.curve(results, CONTAMINATED, "pursuit", "groups")[:, -1].sum())
    ranks = np.array([one["spearman"] for one in numbers.estimates(results, CONTAMINATED)])
    lines = [
        "## Aims",
        "",
        "On columns without the answer, medians over trials unless said otherwise; accuracies in points.",
        "",
        _held(
            "Contaminated: no contaminated group among the ten that pursuit selects, in any trial",
            entered == 0,
            f"{entered} of {kept} groups",
        ),
        _held(
            "Contaminated: rank correlation of estimated and true contamination of groups at least 0.9, in every trial",
            ranks.min() >= 0.9,
            f"{ranks.min():.3f} to {ranks.max():.3f}, median {np.median(ranks):.3f}",
        ),
    ]
    for case, name in ((CONTAMINATED, "Contaminated"), (CLEAN, "Clean")):
        ours = _last(results, case, "pursuit")
        level = 100 * float(np.median(numbers.reference(results, case, "clean groups")))
        shapley = _last(results, case, "shapley")
        lines += [
            _held(
                f"{name}: pursuit with ten groups within 1 of inference from all clean groups",
                level - ours <= 1,
                f"{ours:.2f} and {level:.2f}",
            ),
            _held(
                f"{name}: pursuit with ten groups at least as good as the ten of largest Shapley value",
                ours >= shapley,
                f"{ours:.2f} and {shapley:.2f}",
            ),
        ]
    return [*lines, *_speed(results), "", *behind(results)]


def _speed(results: list[Task]) -> list[str]:
    found = next(r for r in results if r["study"] == "times")
    theirs, ours, pursuit = extrapolated(found), found["shapley"], found["pursuit"]
    aim = "Pursuit at least 1,000 times faster than Shapley values at the paper's settings"
    return [
        _held(
            f"{aim}, with a NUTS run for each of the {shapley_fits():,} fits, as published, extrapolated from "
            f"{len(found['nuts'])} runs",
            theirs / pursuit >= 1000,
            f"{_ratio(theirs / pursuit)} times, {_ratio(theirs / found['pursuit_first'])} with compilation",
        ),
        _held(
            f"{aim}, with all {shapley_fits():,} fits made together by Newton's method, as this package does",
            ours / pursuit >= 1000,
            f"{_ratio(ours / pursuit)} times",
        ),
    ]


def claims(results: list[Task]) -> list[str]:
    """Say how the paper's claims stand."""
    lines = [
        "## How the paper's claims stand",
        "",
        "β-Cores with β = 0.6 and the published settings, medians over trials.",
        "",
    ]
    two = study.SIZES.index(2)
    for case, name in ((CONTAMINATED, "columns without the answer"), (AS_PUBLISHED, "published columns")):
        reached = {m: 100 * np.median(numbers.curve(results, case, m), axis=0) for m in numbers.methods(results, case)}
        rivals = {m: reached[m][-1] for m in reached if m != "pursuit"}
        curve = reached["beta-cores"]
        best = max(rivals, key=lambda m: rivals[m]) == "beta-cores"
        entered = numbers.curve(results, case, "beta-cores", "dirty_groups")[:, -1]
        of = numbers.curve(results, case, "beta-cores", "groups")[:, -1]
        shapley, random = (numbers.curve(results, case, m, "dirty_groups")[:, -1].sum() for m in ("shapley", "random"))
        lines += [
            _claim(
                f"More than {CLAIMED:.0%} accuracy from no more than two groups, {name}",
                curve[two] > 100 * CLAIMED,
                f"{curve[two]:.1f} %; inference from all clean groups reaches "
                f"{100 * float(np.median(numbers.reference(results, case, 'clean groups'))):.1f} %",
            ),
            _claim(
                f"β-Cores better than Shapley and random groups, {name}, ten groups",
                best,
                ", ".join(f"{numbers.NAMES[m]} {value:.1f}" for m, value in rivals.items()),
            ),
            _claim(
                f"Over all trials one contaminated group at most enters the summaries of β-Cores, {name}",
                entered.sum() <= 1,
                f"{int(entered.sum())} of {int(of.sum())}, in {len(of)} trials",
            ),
            _claim(
                f"Shapley values treat outliers better than chance, {name}",
                shapley < random,
                f"{int(shapley)} contaminated groups among the first ten of all trials, {int(random)} at random",
            ),
        ]
    for who, attribute, chosen in PREFERRED:
        own, base = (
            sum(share for value, share in shares.items() if chosen(value))
            for shares in (
                numbers.selected(results, CONTAMINATED, "beta-cores", attribute),
                numbers.everyone(results, attribute),
            )
        )
        told = f"{own:.0%} of the groups of β-Cores, {base:.0%} of all groups"
        lines.append(_claim(f"Groups of {who} are preferred, columns without the answer", own > base + CLEARLY, told))
    return [*lines, ""]


def behind(results: list[Task]) -> list[str]:
    """Say in every case which other method is best with ten groups, and how pursuit compares."""
    lines = ["Pursuit against the best other method, ten groups, medians over trials:", ""]
    for case in numbers.cases(results):
        ours = _last(results, case, "pursuit")
        others = {m: _last(results, case, m) for m in numbers.methods(results, case) if m != "pursuit"}
        best = max(others, key=lambda m: others[m])
        lead = ours - others[best]
        told = f"{abs(lead):.2f} {'ahead of' if lead >= 0 else 'behind'} {numbers.NAMES[best]}"
        lines.append(f"- {numbers.case_name(case)}: {ours:.2f}, {told}.")
    return [*lines, ""]


def _last(results: list[Task], case: numbers.Case, method: str) -> float:
    return 100 * float(np.median(numbers.curve(results, case, method)[:, -1]))


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _held(aim: str, reached: bool, told: str) -> str:
    return f"- {aim}: {'reached' if reached else '**not reached**'}; {told}."


def _claim(claim: str, holds: bool, told: str) -> str:
    return f"- *{claim}*: {'confirmed' if holds else 'not confirmed'}; {told}."
