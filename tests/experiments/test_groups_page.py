"""The page of the group experiment says what its numbers say: made-up runs with a known answer."""

import csv

import numpy as np
import pytest

from betacores.experiments import groups, groups_figures, groups_page
from betacores.experiments import groups_table as numbers
from betacores.experiments.groups_claims import aims, claims
from betacores.experiments.groups_times import extrapolated

AGES = ("[50-60)", "[70-80)")
LABELS = [[age, "Caucasian", gender, q] for age in AGES for gender in ("Female", "Male") for q in range(3)]
LEVELS = {"pursuit": 0.56, "beta-cores": 0.54, "shapley": 0.55, "random": 0.52}
# By method, how many of the ten groups are contaminated.
DIRTY = {"pursuit": 0, "beta-cores": 2, "shapley": 4, "random": 7}


def made_up(accuracy=None, dirty=None, spearman=0.95, times=None, trials=3):
    """Results of every task, as one would have them but for what is given."""
    levels, counts = LEVELS | (accuracy or {}), DIRTY | (dirty or {})
    results = []
    for task in groups.tasks(trials, seed=0):
        if task["study"] == "times":
            found = {"pursuit_first": 8.0, "pursuit": 2.0, "shapley": 6.0, "nuts": {"1": 0.1, "20": 0.3}}
            results.append({**task, **found, **(times or {}), "task_seconds": 60.0})
            continue
        result = {"results": {}, "task_seconds": 60.0}
        for name in task["methods"]:
            sizes = np.arange(1, 11)
            clean, spoilt = [10 - counts[name], counts[name]]
            result["results"][name] = {
                "accuracy": (levels[name] - 0.001 * (10 - sizes)).tolist(),
                "accuracy_by_nuts": [levels[name] - 0.009 + 0.0012],
                "rows": (100 * sizes).tolist(),
                "dirty_rows": [0] * 10,
                "groups": sizes.tolist(),
                "dirty_groups": np.minimum(sizes, counts[name] if task["contaminated"] else 0).tolist(),
                "selected": [LABELS[0]] * clean + [LABELS[1]] * spoilt,
                "seconds": 3.0,
            }
        if "pursuit" in task["methods"]:
            estimates = {"estimated": [0.02, 0.11, 0.2], "true": [0.0, 0.19, 0.36], "beta": 0.7}
            if task["contaminated"]:
                estimates["spearman"] = spearman
            result |= {"clean groups": 0.565, "all groups": 0.53, "estimates": estimates}
            result["table"] = {"labels": LABELS, "rows": [10] * len(LABELS)}
        results.append({**task, **result})
    return results


def test_every_case_has_its_trials_and_times_come_first():
    wanted = groups.tasks(5, seed=3)
    assert wanted[0] == {"study": "times", "seed": 3}
    for case in groups.CASES:
        mine = [t for t in wanted[1:] if (t["contaminated"], t["as_published"]) == case]
        assert sorted(t["trial"] for t in mine if "pursuit" in t["methods"]) == list(range(5))
        assert {name for t in mine for name in t["methods"]} == set(groups.METHODS)
    assert len(groups.tasks(5, seed=0, quick=True)) == 1


def test_aims_that_are_reached_are_said_to_be():
    said = [line for line in aims(made_up()) if line.startswith("- ")]
    assert len(said) == 12
    assert all("56.00, 1.00 ahead of Shapley" in line for line in said[8:])
    assert all(": reached;" in line for line in said[:7])
    assert "10,000 times, 2,500 with compilation" in said[6]
    assert "**not reached**; 3.0 times" in said[7]


@pytest.mark.parametrize(
    ("changed", "aim", "told"),
    [
        ({"dirty": {"pursuit": 1}}, "no contaminated group", "3 of 30 groups"),
        ({"spearman": 0.89}, "rank correlation", "0.890 to 0.890"),
        ({"accuracy": {"pursuit": 0.552}}, "within 1 of inference from all clean groups", "55.20 and 56.50"),
        ({"accuracy": {"shapley": 0.57}}, "largest Shapley value", "56.00 and 57.00"),
        ({"times": {"nuts": {"1": 0.01}}}, "with a NUTS run for each", "500 times"),
    ],
)
def test_an_aim_that_is_missed_is_said_to_be(changed, aim, told):
    before = sum("**not reached**" in line for line in aims(made_up()))
    missed = [line for line in aims(made_up(**changed)) if "**not reached**" in line]
    assert len(missed) > before
    assert any(aim in line and told in line for line in missed)


def test_claims_are_confirmed_or_not_by_the_numbers():
    said = {line.split("*")[1]: line for line in claims(made_up()) if line.startswith("- ")}
    assert len(said) == 11
    assert "not confirmed; 53.2 %" in said["More than 75% accuracy from no more than two groups, published columns"]
    best = "β-Cores better than Shapley and random groups, published columns, ten groups"
    assert "not confirmed" in said[best]
    assert "; 6 of 30, in 3 trials" in "".join(line for name, line in said.items() if "without the answer" in name)
    assert (
        ": confirmed; 12 contaminated groups"
        in said["Shapley values treat outliers better than chance, published columns"]
    )
    better = {line.split("*")[1]: line for line in claims(made_up({"beta-cores": 0.8}, {"beta-cores": 0}))[4:] if line}
    confirmed = [line for line in better.values() if ": confirmed;" in line]
    assert len(confirmed) == 9


def test_selected_groups_are_counted_by_attribute():
    results = made_up()
    assert numbers.selected(results, (True, False), "shapley", "quality") == {0: 0.6, 1: 0.4}
    assert numbers.everyone(results, "gender") == {"Female": 0.5, "Male": 0.5}
    assert extrapolated(results[0]) == pytest.approx(100_000 * 0.2)


@pytest.mark.parametrize("quick", [False, True])
def test_page_table_and_figures_are_written(tmp_path, quick):
    results = made_up()
    if quick:
        parts = results[1], next(r for r in results if r.get("methods") == ["beta-cores"])
        both = {name: value for part in parts for name, value in part["results"].items()}
        short = {name: {k: v[:2] if isinstance(v, list) else v for k, v in of.items()} for name, of in both.items()}
        results = [{**parts[0], "study": "quick", "results": short}]
    pages = groups_page.write(tmp_path, results, 3, 0, quick=quick)
    text = pages[0].read_text(encoding="utf-8")
    wanted = ["reproduce groups --trials 3 --seed 0", "columns without the answer", "| β-Cores |", "| age | [50-60) |"]
    wanted += ["quick run"] if quick else ["## Aims", "published columns", "## Times", "the median difference is 0.12"]
    for words in wanted:
        assert words in " ".join(text.split("\n")), words
    assert ("## Aims" in text) is not quick
    for figure in groups_figures.draw(tmp_path, results):
        assert figure.stat().st_size > 15_000
    rows = list(csv.DictReader(pages[1].read_text(encoding="utf-8").splitlines()))
    one = [r for r in rows if (r["method"], r["groups"], r["measure"]) == ("shapley", "2", "accuracy")]
    assert float(one[0]["median"]) == pytest.approx(0.55 - 0.008)
