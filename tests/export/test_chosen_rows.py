"""Chosen rows as a pandas DataFrame: as the model saw them and as the table was handed in."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from betacores.origin import Origin


@pytest.fixture
def table():
    """A table as people have it."""
    random = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "town": pd.Categorical(random.choice(["Ulm", "Bonn"], 250)),
            "<script>": random.choice(["a", None], 250),
            "weight": random.normal(size=250),
            "note": [f"row {i}" for i in range(250)],
        }
    )


def with_origin(coreset, frame, target=None):
    y = np.array([f"answer {i}" for i in range(250)])
    return replace(coreset, origin=Origin(np.zeros((250, 2)), y, frame, target=target))


def test_frame_has_names_as_encoded_and_words_as_labels(cases):
    coreset = replace(cases["logistic"].coreset, columns=["town=Ulm", "y"])
    frame = coreset.to_frame()
    assert list(frame.columns) == ["town=Ulm", "y", "weight", "y_"]
    assert frame["y_"].tolist() == coreset.y.tolist()
    np.testing.assert_array_equal(frame["weight"], coreset.weights)
    assert frame.index.tolist() == coreset.indices.tolist()


@pytest.mark.parametrize(
    "kind", [lambda t: t, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "pyarrow"]
)
def test_original_rows_come_back_as_handed_in(cases, table, kind):
    coreset = with_origin(cases["logistic"].coreset, kind(table), "<b>target</b>")
    frame = coreset.to_frame(original=True)
    expected = table.iloc[coreset.indices]
    assert list(frame.columns) == [*table.columns, "<b>target</b>", "weight_"]
    assert frame.index.name == "row"
    assert frame.index.tolist() == coreset.indices.tolist()
    for name in ("town", "weight", "note"):
        assert frame[name].tolist() == expected[name].tolist()
    assert frame["<script>"].isna().tolist() == expected["<script>"].isna().tolist()
    np.testing.assert_array_equal(frame["weight_"], coreset.weights)
    assert frame["<b>target</b>"].tolist() == [f"answer {i}" for i in coreset.indices]


def test_response_in_the_table_is_not_told_twice_and_names_of_rows_are_kept(cases, table):
    table.index = pd.Index([f"customer {i}" for i in range(250)], name="customer")
    frame = with_origin(cases["logistic"].coreset, table, "note").to_frame(original=True)
    assert list(frame.columns) == ["customer", *table.columns, "weight_"]
    assert frame["customer"].tolist() == [f"customer {i}" for i in frame.index]


def test_array_has_no_other_original(cases):
    coreset = with_origin(cases["linear"].coreset, None)
    pd.testing.assert_frame_equal(coreset.to_frame(original=True), coreset.to_frame())


def test_originals_that_are_not_there_are_refused(cases):
    coreset = cases["linear"].coreset
    with pytest.raises(ValueError, match=r"read from disk.*coreset\.indices"):
        replace(coreset, origin=None).to_frame(original=True)
    moved = replace(coreset, path=coreset.path._replace(points=coreset.path_X), method="psvi")
    with pytest.raises(ValueError, match=r"'psvi' are no rows"):
        moved.to_frame(original=True)
