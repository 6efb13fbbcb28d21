"""``betacores datasets``: what is known, where it is, and a table as a file."""

import json
import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

import betacores as bc
from betacores.datasets.files import FILES


def test_all_are_listed_with_where_and_how(run, tmp_path, monkeypatch):
    monkeypatch.setenv("BETACORES_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "phishing.parquet").write_bytes(b"")
    shown = run("datasets").out
    for name, known in FILES.items():
        assert name in shown
        assert known.source in shown
    assert str(tmp_path / "phishing.parquet") in shown
    assert "not there: adult.parquet" in shown
    assert "CC BY 4.0" in shown
    listed = {one["name"]: one for one in json.loads(run("datasets", "--json").out)}
    assert listed["phishing"]["present"]
    assert not listed["adult"]["present"]
    assert listed["contaminated_gaussian"]["kind"] == "simulated"


def test_simulated_tables_are_written_as_they_are_made(run, tmp_path, refused):
    made = bc.datasets.contaminated_logistic(3, 0.1, rows=50)
    asked = ["contaminated_logistic", "--seed", "3", "--fraction", "0.1", "--rows", "50"]
    assert run("datasets", *asked, "--out", tmp_path / "t.csv").code == 0
    table = csv.read_csv(tmp_path / "t.csv")
    assert np.allclose(np.column_stack([table[f"x{j}"] for j in range(10)]), made.x)
    assert table["y"].to_pylist() == made.y.tolist()
    assert table["dirty"].to_pylist() == made.outlier.tolist()
    assert "exists already" in refused("datasets", *asked, "--out", tmp_path / "t.csv")
    said = json.loads(run("datasets", *asked, "--out", tmp_path / "t.parquet", "--json").out)
    assert said["rows"] == pq.read_table(tmp_path / "t.parquet").num_rows == 50


def test_mistakes(refused, tmp_path, monkeypatch):
    monkeypatch.setenv("BETACORES_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "Did you mean 'adult'?" in refused("datasets", "adullt")
    assert "ends in .csv or .parquet" in refused("datasets", "adult", "--out", tmp_path / "a.xls")
    assert "adult.parquet was not found in" in refused("datasets", "adult", "--out", tmp_path / "a.csv")
    assert "fraction: expected" in refused("datasets", "shifted_linear", "--fraction", "2", "--out", tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("BETACORES_DATA"), reason="real data: BETACORES_DATA is not set")
def test_a_real_table(run, tmp_path):
    assert run("datasets", "boston_housing", "--out", tmp_path / "b.csv").code == 0
    assert csv.read_csv(tmp_path / "b.csv").shape == (506, 14)
