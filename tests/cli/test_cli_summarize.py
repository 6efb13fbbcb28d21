"""``betacores summarize``: files in, a coreset and its report out."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather

import betacores as bc
from betacores.cli.columns import Wanted, asked_for, suited_model
from betacores.cli.names import METHODS, MODELS
from betacores.cli.options import Options
from betacores.cli.reading import Dialect, read_file, stem

FILES = {"coreset.parquet", "path.parquet", "scores.parquet", "summary.json", "report.html"}


def sales(rows: int = 400) -> pa.Table:
    """A table of customers from six vendors, of which Elm has most answers wrong."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 3))
    vendor = random.choice(["Ash", "Birch", "Cedar", "Elm", "Fir", "Oak"], rows)
    bought = random.uniform(size=rows) < 1 / (1 + np.exp(-x @ [5.0, -3.0, 0.0]))
    bought = bought ^ ((vendor == "Elm") & (np.abs(x[:, 0]) > 0.3))
    answer = np.where(bought, "yes", "no")
    return pa.table({"age": x[:, 0], "income": x[:, 1], "visits": x[:, 2], "vendor": vendor, "bought": answer})


@pytest.fixture
def file(tmp_path, people):
    pq.write_table(people, tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def test_a_table_as_people_have_them(file, run, people):
    done = run("summarize", file, "--target", "bought", "--size", "20")
    assert done.code == 0, done.error
    out = file.parent / "people-coreset"
    assert {one.name for one in out.iterdir()} == FILES
    assert {one.name for one in file.parent.iterdir()} == {file.name, out.name}
    assert "model: 'logistic', since 'bought' has two values, 'no' and 'yes'" in done.out
    assert str(out / "report.html") in done.out
    coreset = bc.load(out)
    assert len(coreset) <= 20
    assert coreset.row_count == people.num_rows
    assert coreset.columns == ["age", "income", "income missing", *coreset.columns[3:5], "member"]
    assert all(name.startswith("city=") for name in coreset.columns[3:5])
    # Rows of the file, in its units.
    assert np.allclose(coreset.X[:, 0], people["age"].to_numpy()[coreset.indices])
    run_record = json.loads((out / "summary.json").read_text())["run"]
    assert run_record["file"] == str(file)
    assert run_record["command"] == f"betacores summarize {file} --target bought --size 20"
    assert not run_record["interrupted"]
    page = (out / "report.html").read_text(encoding="utf-8")
    for words in ("Rome", "bought", "income", run_record["command"]):
        assert words in page

    # What is there is not replaced unasked; the report is made again, the same, from the folder and the file.
    again = run("summarize", file, "--target", "bought", "--size", "20")
    assert (again.code, again.error.count("\n")) == (2, 1)
    assert "use --force to replace it" in again.error
    assert "--force" in run("report", out).error
    made = run("report", out, "--out", file.parent / "again.html")
    assert made.out.strip() == str(file.parent / "again.html")
    assert (file.parent / "again.html").read_text(encoding="utf-8") == page

    # Another table, or none, is told.
    pq.write_table(people.slice(0, 100), file)
    other = run("report", out, "--force")
    assert other.code == 2
    assert "it has 100 rows, the coreset was made of 240" in other.error
    file.rename(file.with_name("moved.parquet"))
    assert "say where it is with --data" in run("report", out, "--force").error
    pq.write_table(people.drop_columns(["city"]), file)
    assert "it gives no column 'city=" in run("report", out, "--force").error
    assert (out / "report.html").read_text(encoding="utf-8") == page


def test_groups_of_a_zipped_csv_file_in_json(tmp_path, run):
    csv.write_csv(sales(), tmp_path / "sales.csv")
    (tmp_path / "sales.csv.gz").write_bytes(gzip.compress((tmp_path / "sales.csv").read_bytes()))
    asked = ["--target", "bought", "--groups", "vendor", "--max-groups", "3", "--no-guard", "--no-report", "--json"]
    done = run("summarize", tmp_path / "sales.csv.gz", *asked)
    assert done.code == 0, done.error
    said = json.loads(done.out)
    ranks = {row["group"]: row["rank"] for row in said["groups"]}
    assert sorted(ranks) == ["Ash", "Birch", "Cedar", "Elm", "Fir", "Oak"]
    assert ranks["Elm"] is None
    assert sum(rank is not None for rank in ranks.values()) == 3
    assert set(said["files"]) == FILES - {"report.html"}
    coreset = bc.load(tmp_path / "sales-coreset")
    assert len(coreset) == said["kept"]
    assert coreset.columns == ["age", "income", "visits"]
    assert coreset.groups == [group for group, rank in ranks.items() if rank]
    assert coreset.covariate_scores is None


def test_numbers_are_a_linear_model_and_quiet_is_quiet(tmp_path, run):
    table = bc.datasets.shifted_linear(0, 0.1, rows=200, columns=2)
    feather.write_feather(pa.table({"a": table.x[:, 0], "b": table.x[:, 1], "y": table.y}), tmp_path / "t.feather")
    done = run("summarize", tmp_path / "t.feather", "--target", "y", "--size", "10", "--out", tmp_path / "o", "--quiet")
    assert (done.code, done.out) == (0, "")
    coreset = bc.load(tmp_path / "o")
    assert coreset.model.name == "linear"
    assert coreset.info.notes[0] == "model: 'linear', since 'y' is a number with 200 values"
    assert not table.outlier[coreset.indices].any()


def test_models_are_guessed_from_the_target():
    assert suited_model("auto", None, None)[0] == "gaussian-mean"
    assert suited_model("auto", np.array([0, 1, 1]), "y")[0] == "logistic"
    assert suited_model("auto", np.array([True, False]), "y")[0] == "logistic"
    for numbers, remedy in (
        ([0.0, 1.0, 2.0], "3 values; choose --model softmax if they are codes of classes"),
        (np.arange(30), "30 values; choose --model negative-binomial if they are counts"),
        ([0.5, 1.0, 2.0], "3 values"),
        ([-1, 0, 1], "3 values"),
    ):
        model, said = suited_model("auto", np.array(numbers), "y")
        assert model == "linear"
        assert said.endswith(remedy)


def test_a_command_is_said_again_with_what_was_asked(tmp_path):
    asked = Options(target="the price", drop=("a", "b"), guard=False, size=7, drop_missing_target=True)
    words = asked.command(tmp_path / "t.csv").removeprefix(f"betacores summarize {tmp_path}/t.csv ")
    assert words == "--target 'the price' --size 7 --drop a --drop b --drop-missing-target --no-guard"
    assert Options.from_record(json.loads(json.dumps(asked.as_record()))) == asked
    assert asked.differences(Options(target="the price", drop=("a", "b"), size=7)) == [
        "--drop-missing-target",
        "--guard",
    ]


def test_columns_by_pattern_words_and_holes_in_the_target():
    table = pa.table({"x1": [1, 2, 1, 2], "x2": [5, 6, 5, 6], "z": [1, 1, 2, 2], "y": [1.0, None, 2.0, float("nan")]})
    asked = asked_for(table, Wanted("y", keep=["x*"], words=["x2"], drop_missing_target=True))
    assert asked.data.column_names == ["x1", "x2"]
    assert pa.types.is_dictionary(asked.data["x2"].type)
    assert asked.y.tolist() == [1.0, 2.0]
    assert asked.whole.num_rows == 2
    assert "2 rows without 'y' were left out" in asked.notes[0]
    assert asked_for(table, Wanted(None, groups=["z", "x1"], drop=["y"])).groups == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_two_words_in_several_spellings_are_two():
    table = pa.table({"x": [1, 2, 3, 4, 5], "y": [">50K", "<=50K.", "<=50K", ">50K.", ">50k "]})
    asked = asked_for(table, Wanted("y"))
    assert asked.y.tolist() == [">50K", "<=50K.", "<=50K.", ">50K", ">50K"]
    assert "taken for one, such as '<=50K' and '<=50K.'" in asked.notes[0]
    three = pa.table({"x": [1, 2, 3], "y": ["a", "A", None]})
    with pytest.raises(ValueError, match="1 of 3 cells of 'y' are missing"):
        asked_for(three, Wanted("y"))
    several = asked_for(pa.table({"x": [1, 2, 3, 4], "y": ["a", "b", "c", "C"]}), Wanted("y"))
    assert several.y.tolist() == ["a", "b", "c", "c"]
    many = pa.table({"x": range(30), "y": [f"{j}th" for j in range(30)]})
    with pytest.raises(ValueError, match=r"holds 30 different words.*at most 20"):
        asked_for(many, Wanted("y"))


def test_the_model_suits_the_target():
    words, counts = np.array(["a", "b", "c"]), np.array([0, 3, 7])
    assert suited_model("auto", words, "y")[0] == "softmax"
    assert suited_model("auto", counts, "y")[0] == "linear"
    for model in ("poisson", "negative-binomial", "softmax"):
        assert suited_model(model, counts, "y") == (model, "")
    for model, y, message in (
        ("poisson", words, "'poisson' is for numbers, 'y' holds 'a'; use 'softmax'"),
        ("poisson", counts - 1, "'poisson' is for counts, 'y' holds -1; use 'linear'"),
        ("negative-binomial", counts + 0.5, "is for counts, 'y' holds 0.5"),
        ("logistic", words, "'logistic' is for two values, 'y' has 3; use 'softmax'"),
        ("logistic", counts, "'y' has 3; use 'linear'"),
    ):
        with pytest.raises(ValueError, match=message):
            suited_model(model, y, "y")


def test_text_files_in_other_dialects(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name;cost;left\nÅse;1,5;-\nÖzil;2,5;3\n", encoding="latin-1")
    table = read_file(path, Dialect(";", ",", "latin-1", ("-",)))
    assert table.to_pydict() == {"name": ["Åse", "Özil"], "cost": [1.5, 2.5], "left": [None, 3]}
    path.write_text('a,b\n"one\nline",1\nNone,NA\n')
    assert read_file(path).to_pydict() == {"a": ["one\nline", "None"], "b": [1, None]}
    # Types are those of the whole column, not of its first rows.
    path.write_text("a\n" + "1\n" * 400_000 + "1.5\n")
    assert read_file(path)["a"][-1].as_py() == 1.5
    assert stem(tmp_path / "t.old.csv.gz") == "t.old"


def test_names_for_the_shell_are_those_of_the_library():
    from betacores.cli import names
    from betacores.cli.names import several_of
    from betacores.constructions import METHODS as BUILT
    from betacores.datasets import simulated
    from betacores.datasets.files import FILES as DATA

    assert tuple(BUILT) == METHODS
    assert MODELS == ("auto", *bc.models.MODELS)
    assert tuple(DATA) == names.DATASETS
    assert all(hasattr(simulated, name) for name in names.SIMULATED)
    assert several_of("giga", "pursuit")("pursuit,g") == ["pursuit,giga"]
