"""Disks that are full in mid-run: said in words, and what was noted down is of use once there is room."""

import subprocess
import tempfile

import pytest
from scale_tables import QUICK, arrow_table, assert_identical, logistic_table, written

import betacores as bc

X, Y = logistic_table()
# Numbers of rows take 560 kB, of which less than half fits.
LITTLE, ENOUGH = 200, 4000


@pytest.fixture
def rows(tmp_path):
    return written(arrow_table(X, y=Y), tmp_path / "rows.parquet")


def test_no_room_for_temporary_files(rows, disk_of, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(disk_of(LITTLE)))
    with pytest.raises(OSError, match=r"^data: a temporary file .* \(no space left on device\); make room .* TMPDIR"):
        bc.summarize(rows, target="y", **QUICK)
    monkeypatch.setattr(tempfile, "tempdir", str(disk_of(ENOUGH)))
    assert_identical(bc.summarize(rows, target="y", **QUICK), bc.summarize(X, Y, **QUICK))


def test_no_folder_for_temporary_files(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(OSError, match=r"^data: a temporary file .* \(no such file or directory\); .* TMPDIR"):
        bc.summarize(rows, target="y", **QUICK)


def test_a_checkpoint_without_room_goes_on_when_there_is_some(rows, disk_of):
    disk = disk_of(LITTLE)
    given = {"target": "y", "checkpoint": disk / "notes", **QUICK}
    with pytest.raises(OSError, match=r"^checkpoint: .* cannot be written \(no space left on device\); make room"):
        bc.summarize(rows, **given)
    assert any((disk / "notes").iterdir())
    subprocess.run(["mount", "-o", f"remount,size={ENOUGH}k", str(disk)], check=True)
    assert_identical(bc.summarize(rows, **given), bc.summarize(rows, target="y", **QUICK))
