"""``betacores summarize``: files in, a coreset out; a mistake is one line, exit code 2, and nothing written."""

import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import betacores as bc
from betacores.cli import main


def sales(rows: int = 3000) -> pa.Table:
    """A table of customers from six vendors, of which Elm has most answers wrong."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 3))
    vendor = random.choice(["Ash", "Birch", "Cedar", "Elm", "Fir", "Oak"], rows)
    bought = random.uniform(size=rows) < 1 / (1 + np.exp(-x @ [3.0, -2.0, 0.0]))
    bought = bought ^ ((vendor == "Elm") & (np.abs(x[:, 0]) > 0.5))
    answer = np.where(bought, "yes", "no")
    return pa.table({"age": x[:, 0], "income": x[:, 1], "visits": x[:, 2], "vendor": vendor, "bought": answer})


def refused(arguments: list[str], capsys, monkeypatch) -> str:
    """Return the one line that a mistake is told in."""
    monkeypatch.setattr(sys, "argv", ["betacores", "summarize", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.fixture
def file(tmp_path):
    pq.write_table(sales(200), tmp_path / "sales.parquet")
    return tmp_path / "sales.parquet"


def test_groups_of_a_csv_file(tmp_path):
    csv.write_csv(sales(), tmp_path / "sales.csv")
    command = [sys.executable, "-m", "betacores", "summarize", str(tmp_path / "sales.csv")]
    command += ["--target", "bought", "--groups", "vendor", "--max-groups", "3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    ranks = {row["group"]: row["rank"] for row in said["groups"]}
    assert sorted(ranks) == ["Ash", "Birch", "Cedar", "Elm", "Fir", "Oak"]
    assert ranks["Elm"] is None
    assert sum(rank is not None for rank in ranks.values()) == 3
    coreset = bc.load(tmp_path / "sales-coreset")
    assert len(coreset) == said["kept"]
    assert coreset.columns == ["age", "income", "visits"]
    assert coreset.groups == [group for group, rank in ranks.items() if rank]
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 2
    assert "use --force to replace it" in again.stderr


def test_rows_of_a_parquet_file(file, capsys, monkeypatch):
    asked = ["--target", "bought", "--drop", "vendor", "--size", "12", "--beta", "0.3"]
    monkeypatch.setattr(sys, "argv", ["betacores", "summarize", str(file), *asked, "--out", str(file.parent / "o")])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert "Coreset: " in printed
    assert "scores.parquet" in printed
    assert len(bc.load(file.parent / "o")) <= 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "nothing"], "--target: there is no column 'nothing'; there are 'age', 'income'"),
        (["--target", "bought"], "column 'vendor': expected numbers, got .* such as '.*'; encode it .* --drop vendor"),
        (["--target", "bought", "--groups", "shop"], "--groups: there is no column 'shop'"),
        (["--target", "bought", "--groups", "bought"], "--target: 'bought' cannot be a group or left out as well"),
        (["--target", "bought", "--drop", "vendor", "--size", "many"], "--size: expected a whole number or auto"),
        (["--target", "bought", "--drop", "vendor", "--method", "pursit"], "Did you mean 'pursuit'"),
        (["--target", "bought", "--drop", "vendor", "--max-groups", "2"], "max_groups: there are no groups"),
    ],
)
def test_mistakes_in_what_is_asked(arguments, message, file, capsys, monkeypatch):
    line = refused([str(file), *arguments], capsys, monkeypatch)
    assert re.search(message, line)
    assert [one.name for one in file.parent.iterdir()] == ["sales.parquet"]


def test_mistakes_in_the_file(tmp_path, capsys, monkeypatch):
    (tmp_path / "cut.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "heads.csv").write_text("a,b\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n3,4\n")
    (tmp_path / "table.xls").write_text("a")
    pq.write_table(pa.table({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]}), tmp_path / "holes.parquet")
    pq.write_table(pa.table({"b": [1.0, 2.0, 3.0]}), tmp_path / "alone.parquet")
    wrong = {
        "none.csv": "there is no such file",
        ".": "this is a folder",
        "cut.parquet": "cannot be read",
        "empty.csv": "cannot be read",
        "heads.csv": "it has no rows",
        "twice.csv": "the column 'a' is there twice",
        "table.xls": "the ending '.xls' is not known",
        "holes.parquet": "column 'a': 1 cells are missing, the first in row 1",
        "alone.parquet": "no column left to learn from",
    }
    for name, message in wrong.items():
        target = ["--target", "b"] if name.endswith((".parquet", "heads.csv")) else []
        assert message in refused([str(tmp_path / name), *target], capsys, monkeypatch)
    assert not list(tmp_path.glob("*-coreset"))
