"""Shapley values of groups against the definition: all coalitions of a small game, each fitted on its own."""

import functools
from itertools import combinations
from math import comb

import numpy as np
import pytest

from betacores.groups import Groups
from betacores.valuation import random_ranking, shapley_values

GROUPS, ROWS, WRONG = 5, 400, 2
LINE = np.array([1.5, -1.0, 0.5])


@functools.cache
def game():
    """Rows of five groups of unequal size, one with its labels flipped, and clean rows to predict."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS + 1000, 3))
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-x @ LINE))).astype(int)
    codes = rng.choice(GROUPS, ROWS, p=[0.1, 0.2, 0.2, 0.2, 0.3])
    labels = np.where(codes == WRONG, 1 - y[:ROWS], y[:ROWS])
    return x[:ROWS], labels, Groups(list("abcde"), codes), (x[ROWS:], y[ROWS:])


def features(x):
    return np.column_stack([x, np.ones(len(x))])


@functools.cache
def worth(coalition):
    """Accuracy of the posterior mode given the rows of a coalition, by Newton's method in double precision."""
    x, y, groups, (held, truth) = game()
    if not coalition:
        return 0.5
    mine = np.isin(groups.codes, list(coalition))
    z = features(x[mine]) * np.where(y[mine] == 1, 1, -1)[:, None]
    theta = np.zeros(4)
    for _ in range(30):
        wrong = 1 / (1 + np.exp(z @ theta))
        curvature = (z * (wrong * (1 - wrong))[:, None]).T @ z + np.eye(4)
        theta = theta + np.linalg.solve(curvature, z.T @ wrong - theta)
    return float(((features(held) @ theta > 0) == (truth == 1)).mean())


@functools.cache
def exact():
    values = np.zeros(GROUPS)
    for player in range(GROUPS):
        others = [k for k in range(GROUPS) if k != player]
        for size in range(GROUPS):
            for before in map(frozenset, combinations(others, size)):
                values[player] += (worth(before | {player}) - worth(before)) / (GROUPS * comb(GROUPS - 1, size))
    return values


@functools.cache
def estimated(permutations=1500, **settings):
    x, y, groups, test = game()
    return shapley_values(x, y, groups, test, permutations=permutations, first=None, most_rows=None, **settings)


def test_values_are_those_of_the_definition_within_their_errors():
    found = estimated()
    assert np.all(np.abs(found.values - exact()) < 4 * found.standard_errors + 0.002)
    assert np.all(found.standard_errors < 0.01)
    assert found.permutations == 1500


def test_values_add_up_to_what_all_groups_are_worth():
    everyone = worth(frozenset(range(GROUPS)))
    assert exact().sum() == pytest.approx(everyone - 0.5)
    assert estimated().values.sum() == pytest.approx(everyone - 0.5, abs=0.002)


def test_standard_errors_tell_the_spread_over_seeds():
    several = np.array([estimated(100, seed=seed).values for seed in range(30)])
    told = np.mean([estimated(100, seed=seed).standard_errors for seed in range(30)], axis=0)
    assert np.all(np.abs(several.std(0, ddof=1) / told - 1) < 0.5)


def test_a_group_of_false_labels_is_worth_least():
    assert estimated().ranking()[-1] == WRONG
    assert estimated().values[WRONG] < 0


def test_groups_beyond_the_first_of_an_order_add_nothing_to_them():
    x, y, groups, test = game()
    found = shapley_values(x, y, groups, test, permutations=400, first=1, most_rows=None)
    # Alone, and in one order of five first.
    alone = np.array([worth(frozenset({k})) - 0.5 for k in range(GROUPS)]) / GROUPS
    assert np.all(np.abs(found.values - alone) < 4 * found.standard_errors + 0.002)


def test_large_groups_enter_with_some_rows():
    x, y, groups, test = game()
    few = shapley_values(x, y, groups, test, permutations=50, first=None, most_rows=5)
    assert few.values.sum() < estimated().values.sum()


def test_the_search_ends_when_errors_are_small():
    found = estimated(1500, tolerance=0.02)
    assert 100 < found.permutations < 1500
    assert found.standard_errors.max() <= 0.02


def test_same_seed_same_values():
    x, y, groups, test = game()
    again = shapley_values(x, y, groups, test, permutations=100, first=None, most_rows=None, seed=3)
    assert again.values.tolist() == estimated(100, seed=3).values.tolist()
    assert again.values.tolist() != estimated(100, seed=4).values.tolist()


def test_progress_is_told():
    told = []
    x, y, groups, test = game()
    shapley_values(x, y, groups, test, permutations=120, progress=lambda *counts: told.append(counts))
    assert told == [(50, 120), (100, 120), (120, 120)]


def test_a_random_ranking_is_a_permutation():
    groups = game()[2]
    assert sorted(random_ranking(groups, 0)) == list(range(GROUPS))
    assert random_ranking(groups, 0).tolist() == random_ranking(groups, 0).tolist()
    assert len({tuple(random_ranking(groups, seed)) for seed in range(20)}) > 10


def test_labels_may_be_of_any_two_kinds():
    x, y, groups, (held, truth) = game()
    words = np.array(["no", "yes"])
    plan = {"permutations": 60, "first": None, "most_rows": None}
    by_words = shapley_values(x, words[y], groups, (held, words[truth]), **plan)
    by_rows = shapley_values(x, y, [np.flatnonzero(groups.codes == k) for k in range(GROUPS)], (held, truth), **plan)
    for found in (by_words, by_rows):
        np.testing.assert_array_equal(found.values, shapley_values(x, y, groups, (held, truth), **plan).values)


def test_nothing_is_known_of_a_group_that_was_not_looked_at():
    x, y, groups, test = game()
    found = shapley_values(x, y, groups, test, permutations=2, first=1)
    assert np.isinf(found.standard_errors).sum() >= 3


WRONG_INPUT = {
    "a cell is missing": (lambda x, y, g, t: (np.where(np.arange(3) == 1, np.nan, x), y, g, t), "x: .*row 0, column 1"),
    "one kind of label": (lambda x, y, g, t: (x, 0 * y, g, t), "y: expected labels of two kinds, got 1"),
    "labels too few": (lambda x, y, g, t: (x, y[1:], g, t), "y: expected a label for each of the 400 rows"),
    "other labels": (lambda x, y, g, t: (x, y, g, (t[0], t[1] + 5)), r"test\[1\]: expected the labels \[0, 1\], got"),
    "other columns": (lambda x, y, g, t: (x, y, g, (t[0][:, 1:], t[1])), "test: expected the 3 columns of x, got 2"),
    "nothing to predict": (lambda x, y, g, t: (x, y, g, (t[0][:0], t[1][:0])), r"test\[0\]: expected rows"),
    "groups of other rows": (lambda x, y, g, t: (x, y, g.codes[1:], t), "groups: expected a label for each"),
}


@pytest.mark.parametrize("wrong", WRONG_INPUT)
def test_wrong_input_is_told(wrong):
    changed, message = WRONG_INPUT[wrong]
    with pytest.raises(ValueError, match=message):
        shapley_values(*changed(*game()), permutations=2)


@pytest.mark.parametrize("setting", [{"permutations": 0}, {"first": 0}, {"most_rows": -1}, {"tolerance": 0.0}])
def test_wrong_settings_are_told(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        shapley_values(*game(), **{"permutations": 2, **setting})
