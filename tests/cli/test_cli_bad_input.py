"""Bad input: each is told in one line with its remedy, exit code 2, and nothing is written."""

import errno
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import betacores.cli.columns
from betacores.cli.outcome import explained
from betacores.cli.places import check_place


def names(folder) -> set[str]:
    return {one.name for one in folder.rglob("*")}


FILES = {
    "empty.csv": (b"", "the file is empty; is it the right one"),
    "empty.parquet": (b"", "the file is empty"),
    "heads.csv": (b"a,y\n", "it has no rows, only the names of 2 columns"),
    "alone.csv": (b"y\n1\n2\n", "no column left to learn from"),
    "semicolons.csv": (b"a;y\n1;2\n3;4\n", "';' seems right: --delimiter ';'"),
    "decimals.csv": (b"a;b;y\n1,5;2;2\n3;4,5;4\n", "';' seems right: --delimiter ';'"),
    "tabs.csv": (b"a\ty\n1\t2\n3\t4\n", "--delimiter 'tab'"),
    "ragged.csv": (b"a,y\n1,2\n3\n", "it cannot be read (CSV parse error: Expected 2 columns, got 1"),
    "latin.csv": ("a,y\nZürich,1\nBern,2\n".encode("latin-1"), "it is not written in utf-8 (column 'a'); say in what"),
    "latin_head.csv": ("ä,y\n1,1\n3,2\n".encode("latin-1"), "--encoding latin-1"),
    "cut.parquet": (b"PAR1 and then nothing", "it cannot be read"),
    "cut.csv.gz": (b"\x1f\x8b\x08\x00 and then nothing", "it cannot be read"),
    "twice.csv": (b"a,a,y\n1,2,3\n3,4,5\n", "the column 'a' is there twice; rename one"),
    "table.xls": (b"a", "the ending '.xls' is not known; it can be .csv"),
    "constant.csv": (b"a,y\n1,3\n2,3\n", "--target: column 'y' is constant, always 3; there is nothing to learn"),
    "holes.csv": (b"a,y\n1,3\n2,\n4,5\n", "1 of 3 cells of 'y' are missing, the first in row 1; fill them, or leave"),
    "untold.csv": (b"a,y\n1,\n2,\n", "cells of 'y' are missing"),
    "classes.csv": (
        b"a,y\n" + b"".join(b"%d,word%d\n" % (j, j) for j in range(25)),
        "'y' holds 25 different words, such as 'word0', 'word1', 'word2', 'word3'; a response has at most 20",
    ),
    "dates.csv": (b"a,y\n1,2020-01-01\n2,2020-01-02\n", "column 'y' holds date32[day]; expected numbers, or words"),
    "typed.csv": (
        b"a,y\n1,1\n2,2\n3,3\n4,bad\n",
        "75.0% of the cells of 'y' are numbers, the others words",
    ),
    "strange.csv": (b"b,c\n1,2\n3,4\n", "--target: there is no column 'y'; there are 'b', 'c'"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_summarised(name, tmp_path, refused):
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    assert message in refused("summarize", tmp_path / name, "--target", "y")
    assert names(tmp_path) == {name}


def test_a_truncated_parquet_file(tmp_path, refused):
    pq.write_table(pa.table({"a": np.arange(1000.0), "y": np.arange(1000.0)}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[:-100])
    assert "is it a whole .parquet file? Write or fetch it again" in refused("summarize", tmp_path / "t.parquet")
    # The end is there, and says where the columns should be.
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 3] + whole[-800:])
    assert "cannot be read" in refused("summarize", tmp_path / "t.parquet")


def test_no_file_a_folder_and_no_columns(tmp_path, refused):
    assert "there is no such file" in refused("summarize", tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "holds no Parquet file" in refused("summarize", tmp_path / "folder.csv")
    assert names(tmp_path) == {"folder.csv"}


def test_mixed_columns_name_the_word_and_three_remedies(tmp_path, refused):
    cells = [str(row) if row % 3 else f"about {row}" for row in range(200)]
    pq.write_table(pa.table({"a": cells, "y": np.arange(200.0)}), tmp_path / "t.parquet")
    line = refused("summarize", tmp_path / "t.parquet", "--target", "y")
    assert "column 'a': 66% of its cells are numbers, the others words such as 'about 0'" in line
    for remedy in ("--na 'about 0'", "--words a", "--drop a"):
        assert remedy in line


def test_ten_thousand_columns_are_refused_before_any_work(tmp_path, refused):
    pq.write_table(pa.table({f"x{j}": [1.0, 2.0, 3.0] for j in range(10_000)}), tmp_path / "t.parquet")
    line = refused("summarize", tmp_path / "t.parquet", "--target", "x0")
    assert "9,999 columns, words told apart, are more than can be fitted (2,000)" in line
    assert "--keep" in line
    words = {f"w{j}": [f"{row}th" for row in range(30)] for j in range(100)}
    pq.write_table(pa.table(words), tmp_path / "t.parquet")
    assert "2,200 columns, words told apart" in refused("summarize", tmp_path / "t.parquet")


ASKED = {
    "--target nothing": "--target: there is no column 'nothing'; there are 'age', 'income'",
    "--target bougt": "Did you mean 'bought'?",
    "--target bought --groups shop": "--groups: there is no column 'shop'",
    "--target bought --groups bought": "--target: 'bought' cannot be a group or left out as well",
    "--target bought --drop z*": "--drop: there is no column 'z*'",
    "--target bought --size many": "--size: expected a whole number or auto, got 'many'",
    "--target bought --size 0": "size: expected a whole number at least 1, got 0",
    "--target bought --method pursit": "Did you mean 'pursuit'",
    "--target bought --method psvi": "'psvi' moves points away from the rows",
    "--target bought --model logit": "Did you mean 'logistic'",
    "--target bought --max-groups 2": "--max-groups: there are no groups; name their column with --groups",
    "--target bought --missing no": "missing: 'no' is not known",
    "--target bought --missing error": "income",
    "--target age --model logistic": "--model: 'logistic' is for two values, 'age' has 240; use 'linear'",
    "--target bought --model linear": "--model: 'linear' is for numbers, 'bought' holds 'yes'; use 'logistic'",
    "--model linear": "--model: 'linear' needs a response; name its column with --target",
    "--target age --model gaussian-mean": "leave --target out",
    "--target bought --seed -1": "seed: expected a whole number at least 0",
}


@pytest.mark.parametrize("arguments", ASKED)
def test_mistakes_in_what_is_asked(arguments, people, tmp_path, refused):
    pq.write_table(people, tmp_path / "people.parquet")
    assert ASKED[arguments] in refused("summarize", tmp_path / "people.parquet", *arguments.split())
    assert names(tmp_path) == {"people.parquet"}


@pytest.mark.parametrize("command", ["summarize", "compare"])
def test_places_that_cannot_be_written_to_are_told_before_the_table_is_read(command, tmp_path, refused, monkeypatch):
    def read(*arguments):
        raise AssertionError("the table was read")

    monkeypatch.setattr(betacores.cli.columns, "asked_for", read)
    (tmp_path / "t.csv").write_text("a,y\n1,2\n3,4\n5,7\n")
    (tmp_path / "file").write_text("mine")
    wanted = {
        tmp_path / "file" / "out": "is a file, not a folder; choose another place with --out",
        tmp_path / "file": "exists already; use --force to replace it, or --out for another place",
        "/proc/out": "/proc: it cannot be written to",
    }
    for out, message in wanted.items():
        assert message in refused(command, tmp_path / "t.csv", "--target", "y", "--out", out)
    assert names(tmp_path) == {"t.csv", "file"}
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_of_somebody_elses_is_not_replaced_even_by_force(people, tmp_path, refused):
    pq.write_table(people, tmp_path / "t.parquet")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    asked = ["--target", "bought", "--size", "5", "--out", tmp_path / "out", "--force"]
    assert "is not a saved coreset and will not be replaced" in refused("summarize", tmp_path / "t.parquet", *asked)
    assert names(tmp_path) == {"t.parquet", "out", "thesis.txt"}


def test_a_full_disk(people, tmp_path, disk_of, refused):
    small_disk = disk_of(16)
    pq.write_table(people, tmp_path / "people.parquet")
    asked = ["--target", "bought", "--size", "5", "--out", small_disk / "out"]
    line = refused("summarize", tmp_path / "people.parquet", *asked)
    assert "the disk is full; nothing was written. Make room, or choose another place with --out" in line
    assert names(small_disk) == set()
    assert "the disk is full" in refused("datasets", "contaminated_gaussian", "--out", small_disk / "t.csv")
    assert names(small_disk) == set()


def test_what_the_system_says_is_one_line():
    assert "the disk is full" in explained(OSError(errno.ENOSPC, "No space left on device"))[1]
    code, line = explained(PermissionError(errno.EACCES, "Permission denied", "/there"))
    assert (code, line) == (2, "/there: no permission; choose another place with --out, or another file.")
    assert explained(MemoryError())[0] == 2


def test_a_place_is_left_as_it_was(tmp_path):
    assert check_place(tmp_path / "a" / "b" / "out", force=False) == tmp_path / "a" / "b" / "out"
    assert names(tmp_path) == set()


def test_a_bug_of_ours_is_told_apart_from_a_mistake(tmp_path):
    """In a process of its own, with a library that is broken on purpose."""
    (tmp_path / "t.csv").write_text("a,y\n1,2\n3,4\n5,7\n")
    breaking = (
        "import sys, betacores.cli.columns as c\n"
        "c.asked_for = lambda *a: None + 1\n"
        "from betacores.cli import main\n"
        "main()"
    )

    def run(*before):
        command = [sys.executable, "-c", breaking, *before, "summarize", str(tmp_path / "t.csv"), "--target", "y"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    done = run()
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert re.match("betacores: a bug: TypeError: .* Please tell us .* BETACORES_TRACEBACK=1", line)
    shown = run("--traceback")
    assert shown.returncode == 1
    assert "Traceback" in shown.stderr
    assert names(tmp_path) == {"t.csv"}


def test_budgets_of_rows_and_of_groups_are_told_apart(tmp_path, refused):
    rows = "".join(f"{j % 7},{'uv'[j % 2]},{j % 5}\n" for j in range(40))
    (tmp_path / "t.csv").write_text("a,vendor,y\n" + rows)
    told = refused("summarize", tmp_path / "t.csv", "--target", "y", "--groups", "vendor", "--size", "5")
    assert "--size: with --groups the budget is --max-groups" in told
