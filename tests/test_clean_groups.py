"""Where some groups are dirty, the clean ones tell what covariates are like."""

import functools

import numpy as np
import pytest

import betacores as bc
from betacores.constructions.screening import doubts_more

ROWS = 4000
LEARNT = "that are clean tell what covariates are like"


def table(seed, *, wild=(), flipped=(), tail=None, other=None):
    """Rows of eight sources; wild ones have garbage in one column of 3 rows in 10, others wrong labels in 4 of 10."""
    random = np.random.default_rng(seed)
    source, x = random.integers(8, size=ROWS), random.normal(size=(ROWS, 3))
    if tail is not None:
        x[:, 1] = random.standard_t(tail, ROWS)
    if other is not None:
        x[source == other] = x[source == other] * [1, 3, 1] + [0, 4, 0]
    chance = 1 / (1 + np.exp(-x @ [2.0, -1.5, 1.0]))
    y = random.random(ROWS) < chance
    garbage = np.isin(source, wild) & (random.random(ROWS) < 0.3)
    x[garbage, 1] = random.normal(0, 25, garbage.sum())
    wrong = np.isin(source, flipped) & (random.random(ROWS) < 0.4)
    y[wrong] = chance[wrong] < 0.5
    return x, y, source, garbage | wrong


@functools.cache
def coreset(seed, **kind):
    x, y, source, dirty = table(seed, **kind)
    found = bc.summarize(x, y, groups=source, max_groups=4, seed=seed)
    contamination = found.group_table().set_index("group").contamination
    truth = np.array([dirty[source == k].mean() for k in range(8)])
    return found, contamination.loc[range(8)].to_numpy(), truth


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 8))])
@pytest.mark.parametrize("kind", [{"wild": (2,)}, {"wild": (2,), "flipped": (5,)}], ids=["wild", "wild and flipped"])
def test_wild_cells_of_one_column_are_told_from_a_heavy_tail_by_whose_they_are(kind, seed):
    """Of the garbage one cell in twelve is where any row may be; without groups most of it passes for a tail."""
    found, told, truth = coreset(seed, **kind)
    assert told[2] == pytest.approx(truth[2], abs=0.09)
    assert 2 not in found.groups
    clean = truth == 0
    assert told[clean].max() < 0.03
    assert any(LEARNT in note for note in found.info.notes)
    assert found.info.passes["guard"] == 2
    x, y, _, dirty = table(seed, **kind)
    distrusted = np.asarray(found.covariate_scores) < 0.5
    alone = np.asarray(bc.summarize(x, y, seed=seed).covariate_scores) < 0.5
    garbage = dirty & (np.abs(x[:, 1]) > 6)
    assert distrusted[garbage].mean() > 0.95
    assert distrusted[garbage].mean() > alone[garbage].mean() + 0.1


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 6))])
@pytest.mark.parametrize("kind", [{}, {"tail": 2}, {"other": 3}], ids=["plain", "heavy tail", "another country"])
def test_clean_groups_are_left_as_they_are(kind, seed):
    found, told, _ = coreset(seed, **kind)
    assert told.max() < 0.05
    assert found.info.passes["guard"] == 1
    assert not any(note.startswith("groups") for note in found.info.notes)


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 6))])
@pytest.mark.parametrize("kind", [{"tail": 2}, {"other": 3}], ids=["heavy tail", "another country"])
def test_beside_a_dirty_group_the_clean_ones_may_be_of_any_kind(kind, seed):
    found, told, truth = coreset(seed, flipped=(5,), **kind)
    assert 5 not in found.groups
    assert told[truth == 0].max() < 0.06


def test_groups_of_few_rows_tell_nothing():
    x, y, source, _ = table(0, wild=(2,), flipped=(5,))
    days = 20 * source[:400] + np.arange(400) % 20
    for groups in (np.arange(400), days):
        found = bc.summarize(x[:400], y[:400], groups=groups, max_groups=5)
        assert found.info.passes["guard"] == 1


def test_without_a_guard_there_is_nothing_to_learn():
    x, y, source, _ = table(0, wild=(2,))
    found = bc.summarize(x, y, groups=source, max_groups=4, guard=None)
    assert found.covariate_scores is None
    assert not any(LEARNT in note for note in found.info.notes)
    given = bc.summarize(x, y, groups=source, max_groups=4, guard=lambda rows: np.ones(len(rows)))
    assert not any(LEARNT in note for note in given.info.notes)


def test_what_is_said_is_said_once():
    """Preparation was done twice, and notes of the first time are not of this coreset."""
    found, _, _ = coreset(0, wild=(2,))
    heads = [note.partition(":")[0] for note in found.info.notes if not note.startswith("groups")]
    assert len(heads) == len(set(heads))
    assert sum(LEARNT in note for note in found.info.notes) == 1


@pytest.mark.parametrize(
    ("of_dirty", "of_clean", "more"),
    [
        (0.10, 0.00, True),
        # All alike, as where a rare kind of rows is in none of the groups that were taken for clean.
        (0.05, 0.05, False),
        (0.00, 0.05, False),
        # Too little to be worth it.
        (0.008, 0.00, False),
    ],
)
def test_a_guard_is_taken_for_what_it_tells_of_dirty_groups_beyond_the_others(of_dirty, of_clean, more):
    random = np.random.default_rng(0)
    dirty = np.arange(40_000) < 20_000
    before = random.random(40_000) < 0.1
    now = before | (random.random(40_000) < np.where(dirty, of_dirty, of_clean) / 0.9)
    assert doubts_more(before, now, dirty) is more


def test_a_row_or_two_of_a_dirty_group_are_chance():
    before, dirty = np.zeros(100, bool), np.arange(100) < 20
    now = before.copy()
    now[[3, 9]] = True
    assert not doubts_more(before, now, dirty)
    assert doubts_more(before, dirty, dirty)
    assert not doubts_more(before, dirty, np.zeros(100, bool))
    assert not doubts_more(before, dirty, np.ones(100, bool))
