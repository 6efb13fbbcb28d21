"""``betacores compare``: methods side by side on a table as people have them."""

import json

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def file(tmp_path):
    """A real response in odd units, a column of words, and one row in ten shifted far away."""
    random = np.random.default_rng(0)
    x, city = random.normal(50, 20, 200), random.choice(["Bari", "Oslo"], 200)
    y = 3000 * (x - 50) + 40_000 * (city == "Oslo") + random.normal(0, 5000, 200)
    y[:20] += 1e6
    pq.write_table(pa.table({"x": x, "city": city, "y": y}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_methods_side_by_side(file, run):
    asked = ["--target", "y", "--methods", "pursuit,uniform", "--sizes", "5,15"]
    done = run("compare", file, *asked)
    assert done.code == 0, done.error
    assert "Prediction of rows not seen" in done.out
    assert "draws by laplace, quick and approximate" in done.out
    out = file.parent / "t-comparison"
    assert str(out / "comparison.png") in done.out
    frame = pandas.read_csv(out / "comparison.csv")
    assert set(zip(frame["method"], frame["size"], strict=True)) == {
        *(("pursuit", 5), ("pursuit", 15), ("uniform", 5), ("uniform", 15), ("all rows", 160))
    }
    # In the units of the table, held out rows that are shifted included.
    best = frame[frame["method"] == "pursuit"]["rmse"].iloc[-1]
    assert 1e4 < best < 1e6
    assert (out / "comparison.png").read_bytes()[:4] == b"\x89PNG"
    assert "exists already" in run("compare", file, *asked).error
    # By the names that the options have in summarize, too.
    singly = [{"--methods": "--method", "--sizes": "--size"}.get(word, word) for word in asked]
    again = run("compare", file, *singly, "--force", "--json")
    said = json.loads(again.out)
    assert said["files"] == ["comparison.csv", "comparison.png"]
    assert [row["rmse"] for row in said["rows"]] == pytest.approx(frame["rmse"].tolist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "pursit"], "Did you mean 'pursuit'"),
        (["--sizes", "5,many"], "--sizes: expected whole numbers with commas between, got 'many'"),
        (["--sampler", "gibbs"], "--sampler: 'gibbs' is not known"),
        (["--trials", "0"], "trials: expected a whole number at least 1"),
    ],
)
def test_mistakes(arguments, message, file, refused):
    assert message in refused("compare", file, "--target", "y", *arguments)
    assert [one.name for one in file.parent.iterdir()] == ["t.parquet"]
