"""``betacores summarize`` of folders, patterns, arrays and clusters: rows that are never in memory all at once."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import betacores as bc
from betacores.cli import files as f
from betacores.cli import memory
from betacores.cli.options import Options
from betacores.cli.where import parsed

# More than one block, so that rows are really streamed; nothing is chosen by the data, so that little is compiled.
ROWS = 70_000
QUICK = ("--size", "6", "--beta", "0.3", "--no-guard")


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    x = random.normal(size=(ROWS, 2))
    y = (random.uniform(size=ROWS) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(np.int64)
    year = 2015 + np.arange(ROWS) % 10
    return pa.table({"a": x[:, 0], "b": x[:, 1], "y": y, "year": year, "city": np.where(y, "Rome", "Oslo")})


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    place = tmp_path_factory.mktemp("data") / "rows"
    place.mkdir()
    for k, start in enumerate(range(0, ROWS, 30_000)):
        pq.write_table(table.slice(start, 30_000), place / f"part-{k}.parquet", row_group_size=10_000)
    return place


@pytest.fixture(scope="module")
def truth(table):
    """The coreset of the same rows in memory."""
    x = np.column_stack([table["a"], table["b"]])
    return bc.summarize(x, table["y"].to_numpy(), size=6, beta=0.3, guard=None)


def same(out, truth):
    coreset = bc.load(out)
    assert np.array_equal(coreset.indices, truth.indices)
    assert np.allclose(coreset.weights, truth.weights, rtol=1e-4)
    assert np.allclose(coreset.scores, truth.scores, atol=1e-5)
    return coreset


def test_a_folder_gives_what_memory_gives(folder, run, truth, tmp_path, refused):
    out, notes = tmp_path / "out", tmp_path / "notes"
    words = ("summarize", folder, "--target", "y", "--out", out, "--checkpoint", notes, *QUICK)
    assert "no numbers cannot be read block by block: 'city' (string); leave them out with --drop" in refused(*words)
    assert not notes.exists()
    done = run(*words, "--keep", "a", "--keep", "b")
    assert done.code == 0, done.error
    assert done.error == ""
    assert {one.name for one in out.iterdir()} == {"coreset.parquet", "path.parquet", "scores.parquet", "summary.json"}
    # The journal has served.
    assert not notes.exists()
    coreset = same(out, truth)
    assert coreset.info.notes[0] == "read: 3 files, block by block, columns in their own units"
    assert coreset.columns == ["a", "b"]
    assert f"betacores report {out}" in done.out
    record = json.loads((out / "summary.json").read_text())["run"]
    assert record["streamed"]
    assert record["command"].startswith(f"betacores summarize {folder} --target y --size 6")
    assert record["bytes"] == sum(one.stat().st_size for one in folder.iterdir())
    done = run("report", out)
    assert done.code == 0, done.error
    assert "<html" in (out / "report.html").read_text(encoding="utf-8")


def test_a_pattern_some_rows_and_an_array(folder, run, table, truth, tmp_path):
    words = ("--target", "y", "--keep", "[ab]", "--where", "year > 2014", "--out", tmp_path / "pattern", "--json")
    done = run("summarize", f"{folder}/part-*.parquet", *words, *QUICK)
    assert done.code == 0, done.error
    assert json.loads(done.out)["rows"] == ROWS
    same(tmp_path / "pattern", truth)
    np.save(tmp_path / "x.npy", np.column_stack([table["a"], table["b"]]))
    np.save(tmp_path / "y.npy", table["y"].to_numpy())
    done = run("summarize", tmp_path / "x.npy", "--y", tmp_path / "y.npy", "--quiet", *QUICK)
    assert (done.code, done.out, done.error) == (0, "", "")
    same(tmp_path / "x-coreset", truth)


def test_files_may_differ_in_columns_that_are_not_read(table, run, truth, tmp_path, refused):
    rows = tmp_path / "rows"
    rows.mkdir()
    pq.write_table(table.slice(0, 30_000).drop_columns(["year"]), rows / "part-0.parquet")
    pq.write_table(table.slice(30_000).select(["y", "year", "b", "a"]), rows / "part-1.parquet")
    words = ("summarize", rows, "--target", "y", "--out", tmp_path / "out", *QUICK)
    assert "has other columns than" in refused(*words, "--in-memory")
    assert "('year'); all files must have the same of those that are read" in refused(*words, "--drop", "city")
    assert "('year'); all files" in refused(*words, "--keep", "[aby]*")
    done = run(*words, "--keep", "a", "--keep", "b")
    assert done.code == 0, done.error
    same(tmp_path / "out", truth)


def test_a_killed_run_goes_on(folder, run, truth, tmp_path):
    """Passes of a run that came to an end, the last of them cut, stand for one that was killed in it."""
    notes = tmp_path / "notes"
    bc.summarize(str(folder), target="y", columns=["a", "b"], size=6, beta=0.3, guard=None, checkpoint=notes)
    last = max(notes.glob("pass-*.state"))
    last.unlink()
    before = {one.name for one in notes.iterdir()}
    assert len(before) > 3
    (notes / "mine.txt").write_text("mine")
    words = ("--target", "y", "--keep", "a", "--keep", "b", "--checkpoint", notes, "--out", tmp_path / "out")
    done = run("summarize", folder, *words, *QUICK, "--seed", "1")
    assert done.code == 2
    assert "is of another run, which differs in settings" in done.error
    assert not (tmp_path / "out").exists()
    done = run("summarize", folder, *words, *QUICK)
    assert done.code == 0, done.error
    same(tmp_path / "out", truth)
    # Only what the journal wrote is removed.
    assert [one.name for one in notes.iterdir()] == ["mine.txt"]


def test_partition_folders_name_groups_in_memory(table, run, tmp_path):
    for vendor in ("Ash", "Elm", "Oak"):
        (tmp_path / "rows" / f"vendor={vendor}").mkdir(parents=True)
        pq.write_table(table.select(["a", "b", "y"]).slice(0, 60), tmp_path / "rows" / f"vendor={vendor}" / "0.parquet")
    done = run("summarize", tmp_path / "rows", "--target", "y", "--groups", "vendor", "--max-groups", 2, "--beta", 0.3)
    assert done.code == 0, done.error
    coreset = bc.load(tmp_path / "rows-coreset")
    assert coreset.columns == ["a", "b"]
    assert set(coreset.groups) <= {"Ash", "Elm", "Oak"}
    assert (tmp_path / "rows-coreset" / "report.html").exists()


def test_mistakes_are_told_before_any_work(folder, refused, tmp_path):
    base = ("summarize", folder, "--target", "y", "--drop", "city")
    out = ("--out", tmp_path / "out")
    cases = {
        "choose a place beside it": (*base, "--out", folder / "out"),
        "must not be inside each other": (*base, *out, "--checkpoint", tmp_path / "out" / "notes"),
        "no column 'town'": (*base, *out, "--drop", "town"),
        "'giga' needs the table in memory; choose pursuit or uniform": (*base, *out, "--method", "giga"),
        "expected local, or the address of a scheduler": (*base, *out, "--cluster", "ten"),
        "goes on from its --checkpoint": (*base, *out, "--resume"),
        "'year >' is not understood": (*base, *out, "--where", "year >"),
        "--words: it is for tables held in memory": (*base, *out, "--words", "year"),
        "leave --in-memory out": (*base, *out, "--in-memory", "--checkpoint", tmp_path / "n"),
        "--y: it is for an .npy file": (*base, *out, "--y", tmp_path / "y.npy"),
        "holds other files": (*base, *out, "--checkpoint", folder),
        "--checkpoint: " + str(folder / "part-0.parquet" / "n"): (
            *base,
            *out,
            "--checkpoint",
            folder / "part-0.parquet/n",
        ),
    }
    if sys.platform.startswith("linux"):
        cases["--checkpoint: /proc cannot be written to"] = (*base, *out, "--checkpoint", "/proc/xx")
    for words, arguments in cases.items():
        assert words in refused(*arguments)
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    assert "write it as Parquet" in refused("summarize", tmp_path / "t.csv", "--out-of-core")
    assert "each is Parquet" in refused("summarize", tmp_path / "t.csv", folder / "part-0.parquet")
    assert "there is no file" in refused("summarize", tmp_path / "no-*.parquet")
    assert {one.name for one in tmp_path.iterdir()} == {"t.csv"}


def test_a_file_too_large_for_memory_is_streamed_and_says_so(folder, monkeypatch):
    file = folder / "part-0.parquet"
    assert not f.way_of([file], Options(), cluster=None, checkpoint=None).streamed
    monkeypatch.setattr(f, "available", lambda: 1_000_000)
    way = f.way_of([file], Options(), cluster=None, checkpoint=None)
    assert way.streamed
    assert "would take about 10 MB of memory and 1 MB are free" in way.why
    assert not f.way_of([file], Options(out_of_core=False), cluster=None, checkpoint=None).streamed
    monkeypatch.undo()
    assert 1e6 < memory.available() < 1e14


def test_where_is_what_arrow_says(table):
    random = np.random.default_rng(1)
    small = table.take(random.permutation(ROWS)[:500])
    field = pc.field
    cases = {
        "year > 2020": field("year") > 2020,
        "2016 < year <= 2020 and city == 'Rome'": (field("year") > 2016)
        & (field("year") <= 2020)
        & (field("city") == "Rome"),
        "not (a < -0.5 or b >= 1)": ~((field("a") < -0.5) | (field("b") >= 1)),
        "city in ('Oslo', 'Bari')": field("city").isin(["Oslo", "Bari"]),
        "year not in [2015, 2016]": ~field("year").isin([2015, 2016]),
        "city is not None": field("city").is_valid(),
    }
    for text, expected in cases.items():
        found = small.filter(parsed(text, small.schema))
        assert 0 < found.num_rows
        assert found == small.filter(expected), text
    for text in ("__import__('os')", "a + 1 > 2", "a", "a > b", "a > 'x'", "city > 3", "none > 1", "", "a > (1).real"):
        with pytest.raises(ValueError, match="--where: "):
            parsed(text, small.schema)


@pytest.mark.faults
def test_interrupted_in_mid_pass_leaves_only_the_journal(folder, tmp_path):
    """A process of its own, and Ctrl-C as soon as the journal is there."""
    out, notes = tmp_path / "out", tmp_path / "notes"
    words = ["summarize", folder, "--target", "y", "--drop", "city", "--out", out, "--checkpoint", notes, "--no-guard"]
    process = subprocess.Popen(
        [sys.executable, "-m", "betacores", *map(str, words)], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    end = time.monotonic() + 120
    while not (notes / "journal.json").exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert f"the passes so far are in {notes}; the same command goes on from there." in error
    assert "interrupted; nothing was written" in error
    assert {one.name for one in tmp_path.iterdir()} == {"notes"}


@pytest.mark.slow
def test_a_local_cluster_gives_what_memory_gives(folder, truth, tmp_path):
    words = ["summarize", folder, "--target", "y", "--keep", "[ab]", "--cluster", "local", "--out", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-m", "betacores", *map(str, [*words, *QUICK])], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "by the workers of a cluster" in done.stdout
    same(tmp_path / "out", truth)
