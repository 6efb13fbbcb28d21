"""Bad input: every mistake is answered before any work begins, with what was received, where, and what to do."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import betacores as bc

ROWS = 12
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 2))
LABELS = np.where(X[:, 0] > 0, "yes", "no")
RESPONSE = X @ [1.0, 2.0] + rng.normal(size=ROWS)


@pytest.fixture(autouse=True)
def _no_work(monkeypatch):
    """Nothing may be computed: the first thing any run does is to prepare for a construction."""

    def fail(*_, **__):
        pytest.fail("work began before the input was checked")

    monkeypatch.setattr("betacores.running.prepare", fail)


def refused(error, *parts, data=X, y=None, **settings):
    """Assert that a call is refused with an error whose message says all of `parts`."""
    settings.setdefault("size", 3)
    settings.setdefault("method", "beta-cores")
    with pytest.raises(error) as caught:
        bc.summarize(data, y, **settings)
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


def with_cell(value, row=4, column=1, dtype=np.float64):
    table = X.astype(dtype)
    table[row, column] = value
    return table


def frame(value=None):
    table = pd.DataFrame(X, columns=["age", "net income"])
    if value is not None:
        table.loc[4, "net income"] = value
    return table


class TestData:
    @pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
    def test_cell_that_is_not_finite_is_named(self, value, shown):
        refused(ValueError, "row 4", "column 'x1'", shown, "1 such cells", "drop", data=with_cell(value))

    def test_none_in_an_object_array_is_a_missing_cell(self):
        refused(ValueError, "row 4", "column 'x1'", "nan", data=with_cell(None, dtype=object))

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_cell_of_a_frame_is_named_by_its_column(self, value):
        refused(ValueError, "row 4", "column 'net income'", str(value), "drop", data=frame(value))
        refused(ValueError, "row 4", "column 'net income'", str(value), data=pl.from_pandas(frame(value)))

    def test_nulls_of_frames_are_missing_cells(self):
        column = [None if i == 4 else float(i) for i in range(ROWS)]
        refused(ValueError, "row 4", "'b'", "nan", data=pl.DataFrame({"a": X[:, 0], "b": column}))
        whole = pd.array([None if v is None else int(v) for v in column], dtype="Int64")
        refused(ValueError, "row 4", "'b'", "nan", data=pd.DataFrame({"a": X[:, 0], "b": whole}))
        truth = pd.array([None if v is None else v > 5 for v in column], dtype="boolean")
        refused(ValueError, "row 4", "'b'", "nan", data=pd.DataFrame({"a": X[:, 0], "b": truth}))

    def test_masked_cells_are_missing_cells(self):
        mask = np.zeros(X.shape, bool)
        mask[4, 1] = True
        refused(ValueError, "row 4", "'x1'", data=np.ma.masked_array(X, mask))

    def test_all_bad_cells_are_counted(self):
        table = with_cell(np.nan)
        table[7] = np.inf
        refused(ValueError, "3 such cells", "2 rows", data=table)

    @pytest.mark.parametrize(
        ("data", "parts"),
        [
            (np.empty((0, 2)), ["at least two rows", "0 rows"]),
            (np.empty((5, 0)), ["one column", "0 columns"]),
            (pd.DataFrame(), ["0 rows"]),
            (X[:1], ["at least two rows", "1 rows"]),
            (X[:, 0], ["two dimensions", "(12,)", "reshape(-1, 1)"]),
            (X.reshape(2, 3, 4), ["two dimensions", "(2, 3, 4)"]),
            (np.float64(3.0), ["two dimensions", "()"]),
            ([[1.0, 2.0], [3.0]], []),
            (X + 1j, ["complex", "real and imaginary"]),
        ],
        ids=["empty", "no columns", "empty frame", "one row", "vector", "cube", "number", "ragged", "complex"],
    )
    def test_table_of_the_wrong_shape(self, data, parts):
        refused(ValueError, *parts, data=data)

    @pytest.mark.parametrize("data", [b"data.csv", None])
    def test_what_is_no_table(self, data):
        refused(TypeError, "table of numbers", repr(data), data=data)

    @pytest.mark.parametrize("data", ["data.csv", Path("data.CSV"), "rows.feather"])
    def test_files_that_are_not_read_here(self, data):
        refused(ValueError, "data: ", str(data), "pass the table", "Parquet", data=data)

    @pytest.mark.parametrize("data", ["nowhere.parquet", Path("nowhere"), "nowhere/*.parquet", ["nowhere.parquet"]])
    def test_path_that_leads_nowhere(self, data):
        with pytest.raises(FileNotFoundError, match="data: there is no file nowhere"):
            bc.summarize(data, target="y")

    def test_column_that_is_not_numeric_is_named(self):
        remedy = ["not numeric", "encode", "one-hot"]
        refused(ValueError, "'x1'", "'blue'", *remedy, data=with_cell("blue", dtype=object))
        refused(ValueError, "'x0'", *remedy, data=X.astype(str))
        for table in (pd.DataFrame({"a": X[:, 0], "colour": LABELS}), pl.DataFrame({"a": X[:, 0], "colour": LABELS})):
            refused(ValueError, "'colour'", *remedy, data=table)
        dated = pd.DataFrame({"a": X[:, 0], "when": pd.date_range("2020-01-01", periods=ROWS)})
        refused(ValueError, "'when'", *remedy, data=dated)
        refused(ValueError, "'c'", *remedy, data=pd.DataFrame({"a": X[:, 0], "c": pd.Categorical(LABELS)}))

    def test_constant_columns_are_named(self):
        table = pd.DataFrame({"a": X[:, 0], "flat": 3.5, "b": X[:, 1], "zero": 0.0})
        refused(ValueError, "constant", "'flat' (always 3.5)", "'zero' (always 0)", "drop", data=table)
        refused(ValueError, "constant", "'x0'", data=np.ones((5, 1)))


class TestResponse:
    @pytest.mark.parametrize("y", [RESPONSE[:5], RESPONSE.reshape(4, 3), [], "income", 3.0])
    def test_one_value_a_row_is_asked_for(self, y):
        refused(ValueError, "y:", "12 rows", y=y)

    @pytest.mark.parametrize(
        "y",
        [
            np.where(np.arange(ROWS) == 4, np.nan, RESPONSE),
            [None if i == 4 else "a" for i in range(ROWS)],
            pd.Series([None if i == 4 else i for i in range(ROWS)], dtype="Int64"),
            pd.Series([None if i == 4 else "ab"[i % 2] for i in range(ROWS)], dtype="string"),
            pd.Series([None if i == 4 else i > 2 for i in range(ROWS)], dtype="boolean"),
            pl.Series([None if i == 4 else i for i in range(ROWS)]),
            pl.Series([None if i == 4 else "ab"[i % 2] for i in range(ROWS)]),
        ],
        ids=["nan", "None", "pandas Int64", "pandas string", "pandas boolean", "polars int", "polars string"],
    )
    def test_missing_value_is_named(self, y):
        refused(ValueError, "y:", "row 4", "missing", "drop", y=y)

    def test_infinite_value_is_named(self):
        refused(ValueError, "y:", "row 4", "inf", y=np.where(np.arange(ROWS) == 4, np.inf, RESPONSE))

    def test_labels_of_one_class(self):
        refused(ValueError, "two label values", "1", "'a'", "both classes", y=["a"] * ROWS, model="logistic")

    def test_labels_of_three_classes(self):
        refused(ValueError, "two label values", "3", "'a', 'b', 'c'", "linear", y=list("abc") * 4, model="logistic")

    def test_labels_that_cannot_be_ordered(self):
        mixed = np.array([1, "a"] * 6, dtype=object)
        refused((TypeError, ValueError), "y:", "label", y=mixed, model="logistic")

    def test_density_model_takes_no_response(self):
        refused(ValueError, "gaussian-mean", "no response", "leave y out", y=RESPONSE, model="gaussian-mean")

    @pytest.mark.parametrize("model", ["linear", "logistic"])
    def test_regression_needs_a_response(self, model):
        refused(ValueError, model, "needs a response", "pass y", model=model)

    def test_words_are_no_real_response(self):
        refused(ValueError, "expected numbers", "logistic", y=LABELS, model="linear")
        refused(ValueError, "expected numbers", y=list("abc") * 4, model="linear")
        refused(
            ValueError, "at most 20 kinds", "softmax", data=np.arange(30.0)[:, None], y=[f"{j}th" for j in range(30)]
        )


class TestSettings:
    @pytest.mark.parametrize("size", [0, -1])
    def test_size_below_one(self, size):
        refused(ValueError, "size", "at least 1", str(size), size=size)

    @pytest.mark.parametrize("size", [1.5, True, "10", None, 3.0])
    def test_size_that_is_no_whole_number(self, size):
        refused(TypeError, "size", "whole number", repr(size), size=size)

    def test_size_beyond_the_rows(self):
        refused(ValueError, "size", "12 rows", "13", "fewer", size=13)

    @pytest.mark.parametrize("name", ["beta", "score_beta"])
    @pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, -np.inf])
    def test_beta_out_of_range(self, name, value):
        refused(ValueError, name, "finite number", repr(value), **{name: value})

    @pytest.mark.parametrize("value", ["x", None, True, [0.1], 1j])
    def test_beta_that_is_no_number(self, value):
        refused(TypeError, "beta", "finite number", repr(value), beta=value)

    @pytest.mark.parametrize("name", ["beta", "score_beta"])
    def test_beta_beyond_single_precision(self, name):
        refused(ValueError, name, "1e+39", **{name: 1e39})

    def test_score_beta_of_zero(self):
        refused(ValueError, "score_beta", "above 0", score_beta=0)

    def test_sparse_vi_has_no_beta(self):
        refused(ValueError, "beta", "0.5", "beta-cores", beta=0.5, method="sparse-vi")

    @pytest.mark.parametrize(
        ("name", "value", "nearest"),
        [
            ("model", "logistc", "logistic"),
            ("model", "gaussian-meen", "gaussian-mean"),
            ("method", "betacores", "beta-cores"),
            ("method", "sparsevi", "sparse-vi"),
            ("method", "unifrom", "uniform"),
            ("optimiser", "adamw", "adam"),
            ("sampler_target", "classic", "classical"),
        ],
    )
    def test_unknown_name_is_answered_with_the_nearest(self, name, value, nearest):
        refused(ValueError, f"{name}: {value!r}", f"Did you mean {nearest!r}", "Choose from", **{name: value})

    @pytest.mark.parametrize("value", [None, 3, bc.models.GaussianMean])
    def test_model_that_is_no_model(self, value):
        refused((TypeError, ValueError), "model", model=value)

    def test_model_for_another_number_of_columns(self):
        refused(ValueError, "covariance", "3", "2", model=bc.models.GaussianMean([1.0, 2.0, 3.0]))
        prior = bc.models.gaussian_prior(np.zeros(5))
        refused(ValueError, "prior", "5", "3", y=LABELS, model=bc.models.LogisticRegression(prior=prior))

    @pytest.mark.parametrize("rate", [lambda t: -1.0, lambda t: float("nan"), lambda t: 0.0, lambda t: "fast"])
    def test_learning_rates_that_are_no_rates(self, rate):
        refused((TypeError, ValueError), "learning_rate", learning_rate=rate)

    @pytest.mark.parametrize(
        ("name", "value", "bound"),
        [
            ("screen", -0.1, "at least 0"),
            ("screen", 1.0, "below 1"),
            ("screen", np.nan, "finite"),
            ("draws", 1, "at least 2"),
            ("steps", 0, "at least 1"),
            ("batch_select", 0, "at least 1"),
            ("batch_optimise", -3, "at least 1"),
            ("learning_rate", 0, "above 0"),
            ("learning_rate", -1.0, "above 0"),
            ("learning_rate", np.inf, "finite"),
            ("seed", -1, "at least 0"),
        ],
    )
    def test_number_out_of_its_bounds(self, name, value, bound):
        refused(ValueError, f"{name}:", bound, repr(value), **{name: value})

    @pytest.mark.parametrize("name", ["draws", "steps", "batch_select", "batch_optimise", "seed"])
    @pytest.mark.parametrize("value", [2.5, True, "7"])
    def test_count_that_is_no_whole_number(self, name, value):
        refused(TypeError, f"{name}:", "whole number", repr(value), **{name: value})

    def test_seed_too_large_for_a_key(self):
        refused(ValueError, "seed", seed=2**64)

    @pytest.mark.parametrize("method", ["beta-cores", "sparse-vi", "uniform"])
    @pytest.mark.parametrize("name", ["weights", "sample_weight"])
    def test_weights_of_input_rows_are_not_supported(self, name, method):
        refused(TypeError, name, "not supported", method=method, **{name: np.ones(ROWS)})

    @pytest.mark.parametrize(
        ("name", "nearest"), [("optimizer", "optimiser"), ("draw", "draws"), ("lerning_rate", "learning_rate")]
    )
    def test_unknown_keyword_is_answered_with_the_nearest(self, name, nearest):
        refused(TypeError, repr(name), f"Did you mean {nearest!r}", "It takes", **{name: 1})

    def test_unknown_keyword_without_a_neighbour(self):
        refused(TypeError, "'zzz'", "It takes: draws, steps", zzz=1)

    def test_uniform_has_no_settings(self):
        refused(TypeError, "'draws'", "no settings", method="uniform", draws=50)

    def test_third_positional_argument(self):
        with pytest.raises(TypeError, match="positional"):
            bc.summarize(X, LABELS, "logistic")
