"""What becomes of every kind of column, against values worked out by hand."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from betacores.tables import TableEncoder

MANY = 60


def encoded(columns, **parameters):
    """Return the encoder of a frame, and its columns by name."""
    frame = columns if isinstance(columns, pd.DataFrame) else pd.DataFrame(columns)
    encoder = TableEncoder(**parameters)
    made = encoder.fit_transform(frame)
    return encoder, dict(zip(encoder.get_feature_names_out().tolist(), made.T, strict=True))


def test_numbers_are_centred_and_scaled_by_medians():
    values = np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    _, made = encoded({"a": values, "b": values})
    # The deviations from 3 are 2, 1, 0, 1, 97: their median is 1.
    np.testing.assert_allclose(made["a"], (values - 3) / 1.4826)


def test_wild_cells_move_neither_centre_nor_scale():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(3.0, 2.0, (2000, 3)), columns=list("abc"))
    # Mostly zeros, as amounts are.
    frame["c"] = frame["c"] * (random.random(2000) < 0.2)
    clean = TableEncoder().fit(frame)
    dirty = frame.mask(random.random(frame.shape) < 0.05, 1e30)
    moved = TableEncoder().fit(dirty)
    rows = frame.head(200)
    # A twentieth of the cells: the median moves by 0.06 deviations, and the scale by as little.
    close = np.abs(moved.transform(rows) - clean.transform(rows))
    assert close[:, :2].max() < 0.35
    assert np.median(close[:, :2]) < 0.15
    # The cells that are not zero are few, and a quarter as many wild ones move their mean by more, but not away.
    ratio = moved.transform(rows)[:, 2].std() / clean.transform(rows)[:, 2].std()
    assert 0.2 < ratio < 1.0
    assert np.isfinite(moved.transform(dirty)).all()
    assert np.abs(moved.transform(dirty)).max() == 1e12


def test_units_can_be_left_alone():
    values = np.array([1.0, 2.0, 3.0, 4.0, 1e30])
    _, made = encoded({"a": values, "two": [5, 7, 5, 7, 7]}, scale=None)
    np.testing.assert_array_equal(made["a"], values)
    np.testing.assert_array_equal(made["two"], [5, 7, 5, 7, 7])


def test_two_values_and_truth_become_zero_and_one():
    _, made = encoded({"two": [5.0, 7.0, 5.0], "truth": [True, False, True], "text": ["3", "3", "4"]})
    np.testing.assert_array_equal(made["two"], [0, 1, 0])
    np.testing.assert_array_equal(made["truth"], [1, 0, 1])
    np.testing.assert_array_equal(made["text"], [0, 0, 1])


def test_dates_and_durations_become_days():
    moments = pd.to_datetime(["1970-01-02 12:00", "1970-01-11 00:00", None])
    columns = {
        "moment": moments,
        "rome": moments.tz_localize("UTC").tz_convert("Europe/Rome"),
        "date": [dt.date(1970, 1, 3), None, dt.date(1969, 12, 31)],
        "wait": pd.to_timedelta([36, -12, 0], "h"),
        "time": [dt.time(12), dt.time(6), dt.time(0)],
    }
    _, made = encoded(columns, scale=None)
    for name in ("moment", "rome"):
        np.testing.assert_array_equal(made[name], [1.5, 10.0, 5.75])
        np.testing.assert_array_equal(made[f"{name} missing"], [0, 0, 1])
    np.testing.assert_array_equal(made["date"], [2.0, 0.5, -1.0])
    np.testing.assert_array_equal(made["wait"], [1.5, -0.5, 0.0])
    np.testing.assert_array_equal(made["time"], [0.5, 0.25, 0.0])


def test_levels_get_a_column_each_but_for_the_most_frequent():
    words = ["b"] * 30 + ["a"] * 20 + ["c"] * 10
    for column in (words, pd.Categorical(words, categories=["z", "a", "b", "c"]), pd.Series(words, dtype=object)):
        encoder, made = encoded({"w": column})
        assert list(made) == ["w=a", "w=c"]
        np.testing.assert_array_equal(made["w=a"], np.array(words) == "a")
        np.testing.assert_array_equal(made["w=c"], np.array(words) == "c")
        assert encoder.notes_ == []
    # Of two that are as frequent, the first of the alphabet stands back.
    assert list(encoded({"w": ["d", "c"] * 10})[1]) == ["w=d"]


def test_rare_levels_are_pooled_and_new_ones_are_of_them():
    words = ["a"] * 40 + ["b"] * 14 + ["c"] * 4 + ["d", "e"]
    encoder, made = encoded({"w": words})
    assert list(made) == ["w=b", "w=other (rare)"]
    np.testing.assert_array_equal(made["w=other (rare)"], np.isin(words, ["c", "d", "e"]))
    (note,) = encoder.notes_
    assert (
        note
        == "column 'w': the 3 least frequent levels, in 10.00% of the rows that have one, counted as 'other (rare)'."
    )
    later = encoder.transform(pd.DataFrame({"w": ["new", "a", "b", "c"]}))
    np.testing.assert_array_equal(later, [[0, 1], [0, 0], [1, 0], [0, 1]])
    # Without rare ones, a new level counts as the most frequent.
    plain, _ = encoded({"w": ["a", "a", "b"] * 10})
    np.testing.assert_array_equal(plain.transform(pd.DataFrame({"w": ["new", "b", None]})), [[0], [1], [0]])


def test_no_more_levels_than_asked_for():
    words = [f"level {k % 30:02}" for k in range(300)] + ["level 29"] * 10
    _, made = encoded({"w": words}, max_levels=3)
    assert list(made) == ["w=level 00", "w=level 01", "w=level 02", "w=other (rare)"]
    assert made["w=other (rare)"].sum() == 310 - 20 - 30


def test_missing_numbers_get_the_median_and_a_column_that_tells():
    encoder, made = encoded({"a": [1.0, np.nan, 3.0, np.inf, 8.0], "b": [1, 2, 3, 4, 5]}, scale=None)
    assert list(made) == ["a", "a missing", "b"]
    np.testing.assert_array_equal(made["a"], [1, 3, 3, 3, 8])
    np.testing.assert_array_equal(made["a missing"], [0, 1, 0, 1, 0])
    assert encoder.sources_ == ["a", "a", "b"]
    (note,) = encoder.notes_
    assert note == (
        "column 'a': 2 of 5 cells missing (1 infinite among them), filled with the median, 3, and told by a column of "
        "their own."
    )
    # A column complete in fit gets the median later on, and no column.
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"a": [2.0], "b": [None]})), [[2, 0, 3]])


def test_missing_words_are_a_level():
    encoder, made = encoded({"w": ["a", None, "b", "a", " ", "b", "a", np.nan] * 5})
    assert list(made) == ["w=b", "w=missing"]
    np.testing.assert_array_equal(made["w=missing"], [0, 1, 0, 0, 1, 0, 0, 1] * 5)
    assert encoder.notes_ == ["column 'w': 15 of 40 cells missing, told by a column of their own."]


@pytest.mark.parametrize("empty", [None, np.nan, pd.NaT, pd.NA, float("inf")], ids=repr)
def test_everything_that_is_nothing_is_missing(empty):
    cells = pd.Series([1.0, 2.0, empty, 4.0], dtype=object)
    np.testing.assert_array_equal(encoded({"a": cells}, scale=None)[1]["a missing"], [0, 0, 1, 0])
    with pytest.raises(ValueError, match=r"column 'a' has 1, the first in row 2; fill them.*missing='impute'"):
        TableEncoder(missing="error").fit(pd.DataFrame({"a": cells}))


def test_missing_cells_can_be_refused_later_too():
    strict = TableEncoder(missing="error").fit(
        pd.DataFrame({"a": [1.0, 2.0], "w": ["x", "y"]}).sample(20, replace=True, random_state=0)
    )
    with pytest.raises(ValueError, match="column 'w' has 2, the first in row 1"):
        strict.transform(pd.DataFrame({"a": [1.0, 2.0, 2.0], "w": ["x", None, None]}))


def test_what_says_nothing_is_left_out_and_said():
    columns = {
        "flat": 3,
        "same": "x",
        "gone": None,
        "id": [f"row {k}" for k in range(MANY)],
        "list": [[k] for k in range(MANY)],
        "flat but for holes": [2.0, None] * (MANY // 2),
        "word but for holes": ["yes", None] * (MANY // 2),
        "a": range(MANY),
    }
    encoder, made = encoded(columns)
    assert list(made) == ["flat but for holes missing", "word but for holes=missing", "a"]
    said = "\n".join(encoder.notes_)
    for part in (
        "column 'flat': left out: every cell is 3.",
        "column 'same': left out: every cell is 'x'.",
        "column 'gone': left out: every cell is missing.",
        "column 'id': left out: it has 60 different words in 60 rows",
        "column 'list': left out: it holds values of the kind list",
        "column 'flat but for holes': left out but for its missing cells: every other is 2.",
    ):
        assert part in said
    assert encoder.transform(pd.DataFrame(columns).assign(flat="anything", gone=1.0)).shape == (MANY, 3)
    with pytest.raises(ValueError, match=r"no column is left to learn from.*'flat': left out: every cell is 3"):
        TableEncoder().fit(pd.DataFrame({"flat": [3, 3, 3]}))


def test_words_among_numbers_are_missing_cells():
    cells = [str(k) for k in range(38)] + ["1,234.5", "n/a"]
    for column in (cells, [int(c) if c.isdigit() else c for c in cells]):
        encoder, made = encoded({"a": column}, scale=None)
        np.testing.assert_array_equal(made["a"][:39], [*range(38), 1234.5])
        assert made["a"][39] == 19.0
        assert "(1 words, such as 'n/a' among them)" in encoder.notes_[0]
        np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"a": ["?", "7"]})), [[19, 1], [7, 0]])
        with pytest.raises(ValueError, match=r"words among numbers count as missing, such as 'n/a'"):
            TableEncoder(missing="error").fit(pd.DataFrame({"a": column}))


def test_many_words_among_numbers_codes_and_categories_are_words():
    assert list(encoded({"a": [1, "n/a", "n/a", 2] * 10})[1]) == ["a=1", "a=2"]
    assert list(encoded({"zip": ["00501", "94110"] * 10})[1]) == ["zip=94110"]
    assert list(encoded({"kind": pd.Categorical([1, 2] * 10)})[1]) == ["kind=2"]
    # Whole numbers are written alike, whether or not a missing cell made them real.
    encoder, _ = encoded({"kind": pd.Categorical([1, 2] * 10)})
    np.testing.assert_array_equal(encoder.transform(pd.DataFrame({"kind": [1.0, 2.0, np.nan]})), [[0], [1], [0]])


def test_another_kind_of_column_than_in_fit_is_an_error():
    encoder = TableEncoder().fit(pd.DataFrame({"a": [1.0, 2.0, 4.0]}))
    for cells, shown in (
        (["red", "2", "3"], "'red', which is not numeric"),
        ([[1], [2], [3]], "values of the kind list"),
    ):
        with pytest.raises(ValueError, match=f"column 'a' held numbers in fit, and now holds {shown}"):
            encoder.transform(pd.DataFrame({"a": cells}))
    np.testing.assert_allclose(encoder.transform(pd.DataFrame({"a": ["2", "2.0", Decimal("2.00")]})), 0.0)


def test_odd_types_have_an_answer():
    big = 2**70
    columns = {
        "decimal": [Decimal("1.5"), Decimal("2"), None],
        "big": pd.Series([big, 1, 2], dtype=object),
        "sparse": pd.arrays.SparseArray([0.0, 0.0, 1.0]),
        "unsigned": np.array([2**64 - 1, 0, 1], np.uint64),
        "half": np.array([1, 2, 3], np.float16),
    }
    _, made = encoded(columns, scale=None)
    np.testing.assert_array_equal(made["decimal"], [1.5, 2.0, 1.75])
    np.testing.assert_array_equal(made["big"], [float(big), 1, 2])
    np.testing.assert_array_equal(made["sparse"], [0, 0, 1])
    np.testing.assert_array_equal(made["unsigned"], [float(2**64 - 1), 0, 1])
    periods = pd.DataFrame(
        {"p": pd.period_range("2020-01", periods=2, freq="M").repeat(10), "i": pd.cut(np.arange(20), 2)}
    )
    assert TableEncoder().fit_transform(periods).shape == (20, 2)
    with pytest.raises(ValueError, match="Complex data not supported: column 'c'"):
        TableEncoder().fit(pd.DataFrame({"c": [1j, 2.0]}))


def test_arrays_are_read_alike():
    table = np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 7.0]])
    words = np.array([["a", 1, True], ["b", None, False], ["a", 3, True], ["b", 4, True]] * 5, object)
    made = TableEncoder(scale=None).fit_transform(table)
    np.testing.assert_array_equal(made, [[1, 6, 1], [2, 5, 0], [4, 7, 0]])
    encoder = TableEncoder(scale=None)
    np.testing.assert_array_equal(encoder.fit_transform(words)[1], [1, 3, 1, 0])
    assert encoder.get_feature_names_out().tolist() == ["x0=b", "x1", "x1 missing", "x2"]
    assert encoder.get_feature_names_out(["u", "v", "w"]).tolist() == ["u=b", "v", "v missing", "w"]
    masked = np.ma.MaskedArray(np.arange(6.0).reshape(3, 2), [[0, 0], [1, 0], [0, 0]])
    np.testing.assert_array_equal(TableEncoder(scale=None).fit_transform(masked), [[0, 0, 1], [2, 1, 3], [4, 0, 5]])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"missing": "drop"}, "missing: 'drop' is not known"),
        ({"scale": "standard"}, "scale: 'standard' is not known"),
        ({"max_levels": 0}, "max_levels: expected a whole number at least 1"),
    ],
)
def test_parameters_that_make_no_sense(parameters, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder(**parameters).fit(np.eye(3))


def test_tables_that_are_none():
    with pytest.raises(TypeError, match=r"expected a table in memory.*collect it"):
        TableEncoder().fit(pl.LazyFrame({"a": [1, 2]}))
    for empty in (pd.DataFrame({"a": [1.0]}), pa.table({"a": pa.array([], pa.float64())}), pl.DataFrame()):
        with pytest.raises(ValueError, match="expected at least 2 rows and one column"):
            TableEncoder().fit(empty)
    for twice in (
        pd.DataFrame([[1, 2]] * 3, columns=["a", "a"]),
        pa.Table.from_arrays([pa.array([1, 2])] * 2, ["a", "a"]),
    ):
        with pytest.raises(ValueError, match="the column 'a' is there twice"):
            TableEncoder().fit(twice)
