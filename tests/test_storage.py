"""Coresets on disk: an exact round trip, no pickle, and nothing half done."""

import datetime
import decimal
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import betacores as bc
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, gaussian_prior
from betacores.storage import FORMAT

ROWS, SIZE = 300, 4
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 3))
REAL = X @ [1.0, -2.0, 0.5] + rng.normal(size=ROWS)
TRUTH = REAL > 0

A = rng.normal(size=(4, 4))
FULL = A @ A.T + np.eye(4)
CASES = {
    "gaussian": (None, GaussianMean()),
    "gaussian, full covariance and prior": (
        None,
        GaussianMean(FULL[:3, :3], gaussian_prior([0.1, 0.2, 0.3], FULL[1:, 1:])),
    ),
    "gaussian, variances": (None, GaussianMean([0.1, 1 / 3, 7.0], gaussian_prior(0.1, [1.0, 2.0, 3.0]))),
    "linear": (REAL, LinearRegression(noise=1 / 3)),
    "linear, no intercept, full prior": (
        REAL,
        LinearRegression(0.1, intercept=False, prior=gaussian_prior(0, FULL[:3, :3])),
    ),
    "logistic": (TRUTH, LogisticRegression()),
    "logistic, full prior": (TRUTH, LogisticRegression(prior=gaussian_prior(np.arange(4.0), FULL))),
}


def make(data=X, y=None, **settings):
    """Uniform coresets need no compilation of their own; what is stored is the same."""
    return bc.summarize(data, y, method="uniform", size=SIZE, **settings)


def assert_equal(a, b):
    for name in ("indices", "weights", "X", "y", "scores", "labels", "path_X", "path_y"):
        left, right = getattr(a, name), getattr(b, name)
        if right is None:
            assert left is None, name
            continue
        assert left.dtype == right.dtype, name
        assert left.shape == right.shape, name
        assert np.array_equal(left, right), name
    assert np.array_equal(a.path.indices, b.path.indices)
    assert np.array_equal(a.path.weights, b.path.weights)
    for name in ("contamination", "method", "beta", "columns", "row_count"):
        assert getattr(a, name) == getattr(b, name), name
    assert a.info == b.info
    assert repr(a) == repr(b)


@pytest.mark.parametrize(("y", "model"), CASES.values(), ids=CASES)
def test_round_trip_is_exact(tmp_path, y, model):
    coreset = replace(make(y=y), model=model)
    folder = coreset.save(tmp_path / "out")
    loaded = bc.load(folder)
    assert_equal(loaded, coreset)
    assert type(loaded.model) is type(model)
    for name, value in vars(model).items():
        if name == "prior":
            assert np.array_equal(loaded.model.prior.mean, value.mean)
            assert np.array_equal(loaded.model.prior.precision, value.precision)
        else:
            assert np.array_equal(getattr(loaded.model, name), value), name
    assert np.array_equal(loaded.posterior(20).draws, coreset.posterior(20).draws)
    assert_equal(loaded.at(2), coreset.at(2))
    assert_equal(bc.load(str(folder)), coreset)


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([1, 2], np.int8),
        np.array([3, 2**63], np.uint64),
        np.array([0.1, 1 / 3]),
        np.array([0.1, 1 / 3], np.float32),
        np.array(["ä,\n\"'", "</script>"]),
        np.array([b"a", b"b"]),
        np.array([datetime.date(2001, 1, 1), datetime.date(2002, 2, 2)]),
        np.array(["2001-01-01T12:00", "2002-02-02"], "datetime64[ns]"),
        np.array([decimal.Decimal("0.10"), decimal.Decimal("0.20")]),
    ],
    ids=[
        "text",
        "objects",
        "bool",
        "int8",
        "uint64",
        "float64",
        "float32",
        "odd text",
        "bytes",
        "dates",
        "times",
        "exact",
    ],
)
def test_labels_of_any_dtype_come_back(tmp_path, labels):
    coreset = make(y=labels[TRUTH.astype(int)])
    loaded = bc.load(coreset.save(tmp_path / "out"))
    assert_equal(loaded, coreset)
    assert loaded.labels.tolist() == sorted(labels.tolist())


@pytest.mark.parametrize(
    "names",
    [
        ["weight", "row", "y"],
        ["y", "y_", "weight_"],
        ["<script>", "a b\n", "ünï"],
        ["", " ", "."],
        ["row_", "row", "score"],
    ],
)
@pytest.mark.parametrize("y", [None, TRUTH], ids=["density", "labels"])
def test_columns_may_have_any_name(tmp_path, names, y):
    coreset = make(pd.DataFrame(X, columns=names), y)
    loaded = bc.load(coreset.save(tmp_path / "out"))
    assert_equal(loaded, coreset)
    assert loaded.columns == names


def test_columns_may_share_a_name(tmp_path):
    coreset = replace(make(), columns=["a", "a", "a"])
    loaded = bc.load(coreset.save(tmp_path / "out"))
    assert loaded.columns == ["a", "a", "a"]
    assert np.array_equal(loaded.X, coreset.X)


def test_empty_coreset_comes_back(tmp_path):
    coreset = make(y=np.where(TRUTH, "yes", "no"))
    empty = replace(
        coreset,
        indices=coreset.indices[:0],
        weights=coreset.weights[:0],
        X=coreset.X[:0],
        y=coreset.y[:0],
        path=coreset.path._replace(indices=coreset.path.indices[:0], weights=coreset.path.weights[:, :0]),
        path_X=coreset.path_X[:0],
        path_y=coreset.path_y[:0],
    )
    assert_equal(bc.load(empty.save(tmp_path / "out")), empty)


def test_part_of_a_path_is_saved_with_the_whole_path(tmp_path):
    coreset = make()
    loaded = bc.load(coreset.at(2).save(tmp_path / "out"))
    assert_equal(loaded, coreset.at(2))
    assert_equal(loaded.at(SIZE), coreset)


def test_other_tools_can_read_the_files(tmp_path):
    coreset = make(pd.DataFrame(X, columns=["a", "b", "c"]), TRUTH)
    folder = coreset.save(tmp_path / "out")
    assert {p.name for p in folder.iterdir()} == {"coreset.parquet", "path.parquet", "scores.parquet", "summary.json"}
    frame = pd.read_parquet(folder / "coreset.parquet")
    assert list(frame.columns) == ["row", "y", "weight", "a", "b", "c"]
    assert frame["row"].tolist() == coreset.indices.tolist()
    assert frame["b"].tolist() == coreset.X[:, 1].tolist()
    assert pd.read_parquet(folder / "scores.parquet")["score"].tolist() == coreset.scores.tolist()
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["format"] == FORMAT
    assert summary["betacores"] == bc.__version__


def test_nothing_is_pickled():
    for file in Path(bc.__file__).parent.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for word in ("pickle", "joblib", "marshal", "np.load(", "np.save(", "eval("):
            assert word not in text, f"{word} in {file}"


class TestWriting:
    def test_parents_are_made(self, tmp_path):
        assert (make().save(tmp_path / "a" / "b") / "summary.json").is_file()

    def test_existing_folder_is_not_overwritten_unasked(self, tmp_path):
        first = make()
        first.save(tmp_path / "out")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            make(seed=1).save(tmp_path / "out")
        assert_equal(bc.load(tmp_path / "out"), first)

    def test_existing_coreset_is_overwritten_on_demand(self, tmp_path):
        make().save(tmp_path / "out")
        other = make(seed=1)
        other.save(tmp_path / "out", overwrite=True)
        assert_equal(bc.load(tmp_path / "out"), other)
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    @pytest.mark.parametrize(
        "content", [{}, {"notes.txt": "mine"}, {"summary.json": '{"epochs": 3}', "weights.bin": "x"}]
    )
    def test_folder_that_is_no_coreset_is_never_replaced(self, tmp_path, content):
        (tmp_path / "out").mkdir()
        for name, text in content.items():
            (tmp_path / "out" / name).write_text(text)
        with pytest.raises(FileExistsError, match="not a saved coreset"):
            make().save(tmp_path / "out", overwrite=True)
        assert {p.name for p in (tmp_path / "out").iterdir()} == set(content)

    def test_file_is_never_replaced(self, tmp_path):
        (tmp_path / "out").write_text("mine")
        with pytest.raises(FileExistsError):
            make().save(tmp_path / "out", overwrite=True)
        assert (tmp_path / "out").read_text() == "mine"

    @pytest.mark.parametrize("failing", [1, 2, 3])
    @pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
    def test_failure_midway_leaves_nothing_behind(self, tmp_path, monkeypatch, failing, error):
        first, second = make(), make(seed=1)
        first.save(tmp_path / "old")
        write, calls = pq.write_table, []

        def write_table(*args, **kwargs):
            calls.append(args)
            if len(calls) == failing:
                raise error
            return write(*args, **kwargs)

        monkeypatch.setattr(pq, "write_table", write_table)
        with pytest.raises(type(error)):
            second.save(tmp_path / "new")
        calls.clear()
        with pytest.raises(type(error)):
            second.save(tmp_path / "old", overwrite=True)
        assert [p.name for p in tmp_path.iterdir()] == ["old"]
        assert_equal(bc.load(tmp_path / "old"), first)


class TestReading:
    def test_missing_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"summary\.json is missing"):
            bc.load(tmp_path / "nowhere")

    def test_other_folder(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="no saved coreset"):
            bc.load(tmp_path)

    @pytest.mark.parametrize("version", [FORMAT + 1, None, "1"])
    def test_other_format(self, tmp_path, version):
        folder = make().save(tmp_path / "out")
        summary = json.loads((folder / "summary.json").read_text())
        summary["format"] = version
        (folder / "summary.json").write_text(json.dumps(summary))
        with pytest.raises(ValueError, match=rf"format {version!r}.*reads {FORMAT}"):
            bc.load(folder)

    def test_unknown_model_is_asked_for(self, tmp_path):
        class Own(bc.models.Model):
            name = "own"

            def parameter_count(self, columns):
                return columns

            def log_likelihood(self, theta, row):
                return -((row.x - theta) @ (row.x - theta))

            def log_prior(self, theta):
                return -(theta @ theta)

        coreset = replace(make(), model=Own())
        folder = coreset.save(tmp_path / "out")
        with pytest.raises(ValueError, match=r"'own' is not built in.*model="):
            bc.load(folder)
        mine = Own()
        loaded = bc.load(folder, model=mine)
        assert loaded.model is mine
        assert np.array_equal(loaded.weights, coreset.weights)
