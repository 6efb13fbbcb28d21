"""`summarize` takes its response from a column of the table, remembers both, and says what to do with words."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import betacores as bc

LIGHT = {"size": 10, "beta": 0.3, "guard": None, "draws": 50}


@pytest.fixture
def frame():
    random = np.random.default_rng(0)
    x = random.normal(size=(100, 3))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "price": x @ [1.0, 2.0, 0.5], "vendor": np.arange(100) % 4})


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_a_column_is_the_response(kind, frame):
    table = kind(frame)
    coreset = bc.summarize(table, target="price", **LIGHT)
    same = bc.summarize(frame.drop(columns="price"), frame["price"].to_numpy(), **LIGHT)
    np.testing.assert_array_equal(coreset.indices, same.indices)
    np.testing.assert_array_equal(coreset.weights, same.weights)
    origin = coreset.origin
    assert origin.frame is table
    assert (origin.target, origin.sources) == ("price", ["a", "b", "vendor"])
    np.testing.assert_array_equal(origin.x, frame[["a", "b", "vendor"]])
    np.testing.assert_array_equal(origin.y, frame["price"])


def test_words_can_be_the_response_and_series_have_names(frame):
    frame["dear"] = pd.Categorical(np.where(frame.pop("price") > 0, "yes", "no"))
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        coreset = bc.summarize(table, target="dear", groups="vendor", max_groups=2, method="uniform")
        assert coreset.labels.tolist() == ["no", "yes"]
        assert coreset.columns == coreset.origin.sources == ["a", "b"]
    uniform = {"method": "uniform", "size": 10}
    named = bc.summarize(frame[["a", "b"]], pd.Series(np.arange(100.0), name="rank"), **uniform)
    assert named.origin.target == "rank"
    unnamed = bc.summarize(frame[["a", "b"]].to_numpy(), np.arange(100.0), **uniform)
    assert (unnamed.origin.target, unnamed.origin.frame, unnamed.origin.sources) == (None, None, [])


def test_targets_that_cannot_be(frame):
    for arguments, message in (
        ({"target": "prise"}, "data has no column 'prise'; it has 'price'"),
        ({"target": "zzz"}, "data has no column 'zzz'; it has 'a', 'b', 'price', 'vendor'"),
        ({"target": "price", "y": frame["price"]}, "given as y already"),
        ({"target": "vendor", "groups": "vendor"}, "'vendor' names groups as well"),
        ({"target": "vendor", "groups": ["a", "vendor"]}, "'vendor' names groups as well"),
    ):
        with pytest.raises(ValueError, match=f"target: .*{message}"):
            bc.summarize(frame, **arguments)
    with pytest.raises(ValueError, match="target: 'a' names a column, and data has no names"):
        bc.summarize(frame.to_numpy(), target="a")


def test_words_and_missing_cells_are_refused_with_a_remedy_that_works(frame):
    frame["colour"] = ["red", "blue"] * 50
    with pytest.raises(ValueError, match=r"column 'colour' is not numeric.*bc.make_robust_preprocessor\(\)"):
        bc.summarize(frame, target="price")
    holes = frame[["a", "b"]].mask(frame["b"] > 1)
    with pytest.raises(ValueError, match=r"is nan.*bc.make_robust_preprocessor\(\).*bc.CoresetSelector"):
        bc.summarize(holes, frame["price"])
    made = bc.make_robust_preprocessor().set_output(transform="pandas").fit_transform(holes.join(frame["colour"]))
    assert bc.summarize(made, frame["price"], **LIGHT).columns == ["a", "a missing", "b", "b missing", "colour=red"]
