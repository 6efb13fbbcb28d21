"""Groups of rows: who belongs where, sums over them, and whole groups chosen in place of rows."""

import datetime
import functools

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import betacores as bc
from betacores.constructions import units
from betacores.constructions.screening import surely_dirty
from betacores.constructions.units import WholeGroups, doubt_rates
from betacores.groups import Groups, read_groups
from betacores.models import LogisticRegression
from betacores.sources import ArraySource
from betacores.tangent import row_vectors

ROWS, VENDORS, DIRTY = 2000, 12, (3, 7)
QUICK = {"draws": 30, "steps": 40, "batch_select": 100, "batch_optimise": 50}
PLANS = {
    "pursuit": {},
    "beta-cores": {"method": "beta-cores", "beta": 0.5, **QUICK},
    "sparse-vi": {"method": "sparse-vi", **QUICK},
    "uniform": {"method": "uniform"},
}


@functools.cache
def table():
    """Rows of twelve vendors of unequal size, of which two are dirty: half their covariates noise, labels flipped."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 3))
    vendor = rng.choice(VENDORS, ROWS, p=np.linspace(1, 3, VENDORS) / np.linspace(1, 3, VENDORS).sum())
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-x @ [2.0, -1.0, 0.5]))).astype(int)
    dirty = np.isin(vendor, DIRTY)
    hit, flipped = dirty & (rng.random(ROWS) < 0.5), dirty & (rng.random(ROWS) < 0.5)
    x[hit, :2] = rng.normal(0, 5, (hit.sum(), 2))
    y[flipped] = 1 - y[flipped]
    return x, y, vendor


@functools.cache
def chosen(method, weights_by=None):
    x, y, vendor = table()
    return bc.summarize(x, y, groups=vendor, max_groups=4, weights_by=weights_by, **PLANS[method])


class TestReading:
    def test_labels_are_numbered_in_the_order_of_their_first_rows(self):
        groups, data = read_groups(["b", "a", "b", "c"], "as it was", 4)
        assert groups.labels == ["b", "a", "c"]
        assert groups.codes.tolist() == [0, 1, 0, 2]
        assert groups.sizes.tolist() == [2, 1, 1]
        assert groups.members(np.array([2, 0])).tolist() == [3, 0, 2]
        assert groups.members(np.zeros(0, int)).tolist() == []
        assert groups.means(np.array([1.0, 5.0, 3.0, 7.0])).tolist() == [2.0, 5.0, 7.0]
        assert data == "as it was"

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_a_column_or_several_make_groups_and_are_covariates_no_longer(self, frame):
        data = frame({"x": [1.0, 2.0, 3.0], "who": ["a", "b", "a"], "when": [1, 1, 2]})
        one, rest = read_groups("who", data, 3)
        assert (one.labels, one.codes.tolist()) == (["a", "b"], [0, 1, 0])
        assert list(rest.columns) == ["x", "when"]
        both, rest = read_groups(["who", "when"], data, 3)
        assert both.labels == [("a", 1), ("b", 1), ("a", 2)]
        assert list(rest.columns) == ["x"]
        assert isinstance(rest, frame)

    def test_lists_of_rows_make_groups(self):
        groups, _ = read_groups([[2, 0], np.array([1])], None, 3)
        assert groups.labels == [0, 1]
        assert groups.codes.tolist() == [0, 1, 0]

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (["a", "b"], "expected a label for each of the 3 rows, got 2"),
            (["a", None, "b"], r"row 1 is in no group \(its label is None\)"),
            (np.array([1.0, 2.0, np.nan]), "row 2 is in no group"),
            ([("a", 1), ("a", float("nan")), ("b", 1)], "row 1 is in no group"),
            ([[0], [2]], "row 1 is in no group .1 such rows"),
            ([[0, 1], [1, 2]], "row 1 is in two groups"),
            ([[0, 0, 1], [2]], "row 0 is in two groups or twice in one"),
            ([[0, 1, 2], [3]], "rows are numbered from 0 to 2, got 3 in group 1"),
            ([[0, 1, 2], []], "group 1 has no rows"),
            ("vendor", "'vendor' names a column, and data has no names"),
        ],
    )
    def test_a_row_in_no_group_or_in_two_is_named(self, groups, message):
        with pytest.raises(ValueError, match=message):
            read_groups(groups, np.zeros((3, 1)), 3)

    @pytest.mark.parametrize("groups", ["vendors", ["vendor", "year"]])
    def test_columns_that_are_not_there_are_named(self, groups):
        with pytest.raises(ValueError, match=r"groups: data has no column '(vendors|year)'; it has 'x', 'vendor'"):
            read_groups(groups, pd.DataFrame({"x": [1.0], "vendor": ["a"]}), 1)

    def test_labels_may_be_called_like_columns(self):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0.0, 1.0, 0.5]})
        for labels in (["x", "y", "x"], ["x", "z", "y"]):
            groups, rest = read_groups(labels, frame, 3)
            assert [groups.labels[code] for code in groups.codes] == labels
            assert list(rest.columns) == ["x", "y"]

    def test_groups_that_were_read_are_taken_as_they_are(self):
        groups, rest = read_groups(["a", "b", "a"], None, 3)
        assert read_groups(groups, rest, 3)[0] is groups
        with pytest.raises(ValueError, match="a label for each of the 4 rows, got 3"):
            read_groups(groups, rest, 4)

    @pytest.mark.parametrize(
        "labels",
        [
            pa.chunked_array([["a", None], ["b"]]),
            pd.Series(["a", None, "b"], dtype="string"),
            pd.Series([1, None, 2], dtype="Int64"),
            pl.Series(["a", None, "b"]),
            np.array(["2020-01-01", "NaT", "2020-01-02"], "datetime64[ns]"),
            [1, pd.NA, 2],
        ],
        ids=lambda labels: f"{type(labels).__module__.split('.')[0]} {getattr(labels, 'dtype', '')}",
    )
    def test_missing_labels_are_named_whatever_holds_them(self, labels):
        with pytest.raises(ValueError, match="groups: row 1 is in no group"):
            read_groups(labels, None, 3)

    def test_labels_are_plain_values_whatever_holds_them(self):
        days = np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]")
        assert read_groups(days, None, 2)[0].labels == [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 2)]
        assert read_groups(pa.chunked_array([[3], [4]]), None, 2)[0].labels == [3, 4]
        assert read_groups(pd.Categorical(["b", "a"]), None, 2)[0].labels == ["b", "a"]
        rows = list(pd.Series(range(4)).groupby([0, 1, 0, 1]).groups.values())
        assert read_groups(rows, None, 4)[0].codes.tolist() == [0, 1, 0, 1]

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (5, "lists of row numbers, got int"),
            ({"a": [0, 1, 2]}, "got dict"),
            (pd.DataFrame({"a": [0, 1, 2]}), "got DataFrame"),
            (np.zeros((3, 2)), r"one label a row, got shape \(3, 2\)"),
            ([{1}, {2}, {3}], "the label of row 0 is a set"),
        ],
    )
    def test_what_cannot_name_groups_is_told(self, groups, message):
        with pytest.raises((TypeError, ValueError), match=f"groups: .*{message}"):
            read_groups(groups, np.zeros((3, 1)), 3)


class TestUnits:
    @pytest.mark.parametrize("together", [7, 10_000])
    def test_the_vector_of_a_group_is_the_sum_of_its_rows(self, together, monkeypatch):
        monkeypatch.setattr(units, "TOGETHER", together)
        rng = np.random.default_rng(1)
        codes = np.repeat([0, 1, 2, 3], [1, 40, 3, 16])[rng.permutation(60)]
        x, y = rng.normal(size=(60, 3)).astype(np.float32), rng.choice([-1.0, 1.0], 60).astype(np.float32)
        source, model = ArraySource(x, y), LogisticRegression()
        thetas = jax.random.normal(jax.random.key(0), (5, 4))
        each = row_vectors(model, thetas, source, np.arange(60), None)
        wanted = np.stack([each[codes == k].sum(0) for k in (3, 0, 1)])
        found = WholeGroups(Groups([0, 1, 2, 3], codes)).vectors(model, thetas, source, np.array([3, 0, 1]), None)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)

    def test_groups_with_too_few_rows_that_may_be_chosen_may_not_be(self):
        codes = np.repeat(np.arange(4), 400)
        share = np.array([1.0, 0.98, 0.85, 0.0])
        rows = (np.arange(1600) % 400) / 400 < share[codes]
        groups = Groups(list("abcd"), codes)
        assert WholeGroups(groups, rows).eligible().tolist() == [True, True, False, False]
        assert WholeGroups(groups).eligible() is None

    def test_a_small_group_is_judged_by_what_groups_are_like(self):
        # Sixty groups of ten rows: a doubtful row in some of them is chance where one in fifty rows is doubtful.
        small = np.repeat(np.arange(60), 10)
        rng = np.random.default_rng(0)
        alike = WholeGroups(Groups(list(range(60)), small), rng.random(600) > 0.02)
        assert (alike.members.sizes < 10).sum() > 5
        assert alike.eligible()[alike.members.sizes >= 9].all()
        # Where every second large group is dirty, ten rows without a doubtful one are no proof.
        codes = np.concatenate([np.repeat(np.arange(40), 500), 40 + small])
        rate = np.where(np.arange(100) % 2, 0.15, 0.01)[codes]
        apart = WholeGroups(Groups(list(range(100)), codes), rng.random(len(codes)) > rate)
        assert apart.eligible()[:40].tolist() == [True, False] * 20
        assert not apart.eligible()[41::2].any()

    def test_rates_are_those_that_groups_were_drawn_with(self):
        rng = np.random.default_rng(1)
        sizes = rng.integers(20, 400, 300)
        true = np.where(np.arange(300) < 100, 0.01, 0.2)
        rates, chances = doubt_rates(rng.binomial(sizes, true), sizes)
        np.testing.assert_allclose(chances.sum(1), 1)
        found = chances @ rates
        assert np.abs(found - true)[sizes > 50].max() < 0.06
        assert chances.mean(0)[rates < 0.05].sum() == pytest.approx(1 / 3, abs=0.03)

    def test_groups_of_one_row_are_eligible_as_rows_are(self):
        counted = np.random.default_rng(2).random(500) > 0.3
        assert WholeGroups(Groups(list(range(500)), np.arange(500)), counted).eligible().tolist() == counted.tolist()

    def test_rows_that_do_not_count_are_left_out_of_their_groups(self):
        groups = WholeGroups(Groups(["a", "b"], np.array([0, 1, 0, 1, 0])), np.array([True, True, False, False, True]))
        members, weights = groups.rows(np.array([1, 0]), np.array([2.0, 3.0]))
        assert members.tolist() == [1, 0, 4]
        assert weights.tolist() == [2.0, 3.0, 3.0]


# SparseVI is β-Cores at β = 0.
@pytest.mark.parametrize("method", [pytest.param(m, marks=pytest.mark.slow) if m == "sparse-vi" else m for m in PLANS])
class TestEveryMethod:
    def test_groups_of_one_row_are_rows(self, method):
        x, y, _ = table()
        rows = bc.summarize(x, y, size=5, **PLANS[method])
        groups = bc.summarize(x, y, groups=[f"row {i}" for i in range(ROWS)], max_groups=5, **PLANS[method])
        assert groups.indices.tolist() == rows.indices.tolist()
        assert groups.weights.tolist() == rows.weights.tolist()
        assert groups.groups == [f"row {i}" for i in rows.indices]
        assert groups.group_weights.tolist() == rows.weights.tolist()

    def test_whole_groups_are_kept(self, method):
        coreset, vendor = chosen(method), table()[2]
        assert 1 <= len(coreset.groups) <= 4
        assert len(set(coreset.groups)) == len(coreset.groups)
        assert coreset.path.weights.shape[0] <= 4
        entered = set(vendor[coreset.path.indices].tolist())
        whole = np.isin(vendor, list(entered))
        if method == "pursuit":
            whole &= (coreset.scores >= 0.05) & (coreset.covariate_scores >= 0.5)
        assert sorted(coreset.path.indices.tolist()) == np.flatnonzero(whole).tolist()
        assert list(dict.fromkeys(vendor[coreset.indices].tolist())) == coreset.groups
        for m in range(1, len(coreset.path.weights) + 1):
            assert len(coreset.at(m).groups) <= m

    def test_weights_of_groups_are_the_means_of_their_rows(self, method):
        coreset, vendor = chosen(method), table()[2]
        for label, weight in zip(coreset.groups, coreset.group_weights, strict=True):
            mine = coreset.weights[vendor[coreset.indices] == label]
            assert weight == pytest.approx(mine.sum() / (vendor == label).sum())
            if method in ("pursuit", "uniform"):
                assert len(set(mine)) == 1

    def test_groups_come_back_from_disk(self, method, tmp_path):
        coreset = chosen(method)
        loaded = bc.load(coreset.save(tmp_path / "out"))
        assert loaded.groups == coreset.groups
        assert loaded.group_weights.tolist() == coreset.group_weights.tolist()
        assert loaded.group_scores == coreset.group_scores
        pd.testing.assert_frame_equal(loaded.group_table(), coreset.group_table())


def test_dirty_groups_score_low_and_pursuit_keeps_none_of_them():
    coreset = chosen("pursuit")
    scores = coreset.group_scores
    assert set(scores) == set(range(VENDORS))
    assert max(scores[k] for k in DIRTY) < 0.8 < 0.9 < min(scores[k] for k in range(VENDORS) if k not in DIRTY)
    assert not set(coreset.groups) & set(DIRTY)
    assert set(chosen("sparse-vi").groups) & set(DIRTY), "a method without robustness should be drawn to them"


def test_groups_that_are_all_a_little_dirty_are_cleansed():
    table = bc.datasets.corrupted_logistic(0, 0.1, rows=4000)
    coreset = bc.summarize(table.x, table.y, groups=np.arange(4000) % 20, max_groups=8)
    assert len(coreset.groups) >= 4
    assert table.outlier[coreset.indices].mean() < 0.6 * table.outlier.mean()


def test_scores_of_groups_are_means_of_those_of_rows():
    coreset, vendor = chosen("pursuit"), table()[2]
    believed = coreset.scores.astype(float) * coreset.covariate_scores
    for label, score in coreset.group_scores.items():
        assert score == pytest.approx(believed[vendor == label].mean())


def test_the_table_shows_all_groups_and_the_kept_ones_first():
    coreset, vendor = chosen("pursuit"), table()[2]
    frame = coreset.group_table()
    kept = len(coreset.groups)
    assert list(frame.columns) == ["group", "rank", "weight", "rows", "score", "contamination", "low", "high"]
    assert frame.group.tolist()[:kept] == coreset.groups
    assert frame["rank"].tolist()[:kept] == list(range(1, kept + 1))
    assert frame["rank"][kept:].isna().all()
    assert (frame.weight[kept:] == 0).all()
    assert sorted(frame.group) == list(range(VENDORS))
    assert frame.rows.tolist() == [(vendor == label).sum() for label in frame.group]
    assert frame.group.tolist()[-2:] in ([3, 7], [7, 3])
    assert ((frame.low <= frame.contamination) & (frame.contamination <= frame.high)).all()
    # Three rows in four of a dirty vendor are dirty; flipped labels that are plausible anyway cannot be told.
    assert frame.contamination.tolist()[-1] > 0.3


def test_rows_of_a_group_share_a_weight_if_asked_to():
    vendor = table()[2]
    own, shared = chosen("beta-cores", "row"), chosen("beta-cores", "group")
    assert own.weights.tolist() == chosen("beta-cores").weights.tolist()
    assert all(len(set(shared.weights[vendor[shared.indices] == label])) == 1 for label in shared.groups)
    assert any(len(set(own.weights[vendor[own.indices] == label])) > 1 for label in own.groups)


def test_random_groups_stand_for_all_rows():
    coreset = chosen("uniform")
    for m in range(1, 5):
        assert coreset.at(m).weights.sum() == pytest.approx(ROWS)
        assert len(coreset.at(m).groups) == m


def test_groups_by_name_are_those_by_label():
    x, y, vendor = table()
    frame = pd.DataFrame(x, columns=["a", "b", "c"]).assign(vendor=vendor, year=2020 + vendor % 2)
    named = bc.summarize(frame.drop(columns="year"), y, groups="vendor", max_groups=4)
    assert named.columns == ["a", "b", "c"]
    assert named.groups == chosen("pursuit").groups
    assert named.weights == pytest.approx(chosen("pursuit").weights, rel=1e-4)
    several = bc.summarize(frame, y, groups=["vendor", "year"], max_groups=4)
    assert [label[0] for label in several.groups] == named.groups


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 5}, "size: with groups the budget is max_groups"),
        ({"max_groups": 0}, "max_groups: .*at least 1"),
        ({"max_groups": 13}, "max_groups: at most the 12 groups of data can be kept, got 13"),
        ({"method": "giga"}, "groups: the method 'giga' chooses rows only; choose from: 'pursuit', 'beta-cores'"),
        ({"weights_by": "cell"}, "weights_by: 'cell' is not known"),
        ({"weights_by": "row", "method": "uniform"}, "weights_by: the method 'uniform' gives one weight to all rows"),
        ({"init": [1]}, "init: with groups it is not supported"),
        ({"groups": None, "max_groups": 3}, "max_groups: there are no groups"),
        ({"groups": None, "weights_by": "row"}, "weights_by: there are no groups"),
    ],
)
def test_mistakes_are_named(settings, message):
    x, y, vendor = table()
    with pytest.raises(ValueError, match=message):
        bc.summarize(x, y, **{"groups": vendor, **settings})


def test_a_coreset_of_rows_has_no_groups():
    x, y, _ = table()
    coreset = bc.summarize(x, y, size=5, method="uniform")
    for ask in (lambda: coreset.groups, lambda: coreset.group_scores, coreset.group_table):
        with pytest.raises(ValueError, match="the coreset was made of rows; pass groups= to summarize"):
            ask()


class TestDirtyBeyondDoubt:
    def belief(self, sizes, levels, spread=0.2, seed=0):
        groups = read_groups(np.repeat(np.arange(len(sizes)), sizes), None, sum(sizes))[0]
        noise = np.random.default_rng(seed).normal(0, spread, sum(sizes))
        return np.repeat(levels, sizes) + noise, groups

    def test_a_group_that_is_believed_much_less_than_the_cleanest_is(self):
        believed, groups = self.belief([500, 500, 500, 500], [1.0, 0.97, 0.7, 1.0])
        assert surely_dirty(believed, groups).tolist() == [False, False, True, False]

    def test_few_rows_prove_nothing(self):
        believed, groups = self.belief([500, 500, 20], [1.0, 1.0, 0.2])
        assert not surely_dirty(believed, groups).any()
        believed, groups = self.belief([1] * 50, np.linspace(0, 1, 50))
        assert not surely_dirty(believed, groups).any()

    def test_groups_that_are_all_alike_stay(self):
        believed, groups = self.belief([300] * 10, [0.6] * 10)
        assert not surely_dirty(believed, groups).any()

    def test_the_cleanest_quarter_is_enough_to_tell(self):
        believed, groups = self.belief([300] * 10, [1.0] * 3 + [0.5] * 7)
        assert surely_dirty(believed, groups).tolist() == [False] * 3 + [True] * 7

    # Four groups with one weight each are not always enough for the tolerance, and it is told.
    @pytest.mark.filterwarnings("ignore:The estimated KL divergence is .* groups, above the tolerance")
    @pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
    def test_its_plausible_lies_do_not_bend_the_posterior(self, seed):
        random = np.random.default_rng(seed)
        x, theta = random.normal(size=(4000, 3)), np.array([2.0, -1.5, 0.0])
        chance, group = 1 / (1 + np.exp(-x @ theta)), random.integers(0, 5, 4000)
        y = random.uniform(size=4000) < chance
        lies = (group == 2) & (random.uniform(size=4000) < 0.5)
        y[lies] = chance[lies] < 0.5
        coreset = bc.summarize(x, y, groups=group, model=LogisticRegression(intercept=False), seed=seed)
        assert 2 not in coreset.groups
        assert any("groups: 2 set aside whole" in note for note in coreset.info.notes)
        assert np.abs(coreset.posterior().mean - theta).max() < 0.4


class TestRowWeightsOfPursuit:
    def test_rows_of_the_same_groups_get_weights_of_their_own(self):
        by_group, by_row = chosen("pursuit"), chosen("pursuit", "row")
        assert set(by_row.groups) <= set(by_group.groups)
        assert np.isin(by_row.indices, by_group.indices).all()
        assert len(np.unique(by_row.weights.round(6))) > len(by_row.groups)
        assert len(by_row) < len(by_group)

    def test_they_come_closer_to_the_posterior_that_is_aimed_at(self):
        by_group, by_row = chosen("pursuit"), chosen("pursuit", "row")
        assert by_row.info.kl_estimate.value < by_group.info.kl_estimate.value + 0.1

    def test_every_number_of_groups_has_its_coreset(self):
        whole = chosen("pursuit", "row")
        for m in range(1, len(whole.path.weights) + 1):
            part = whole.at(m)
            assert 1 <= len(part.groups) <= m
            assert (part.weights > 0).all()
