"""The group experiment: dirt as it is meant to be, and the quick run of the command on the real table."""

import functools
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from betacores.experiments.groups_data import _made_dirty, grouped_table


def test_a_share_of_a_group_gets_noise_and_a_share_false_labels():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1000, 10)), rng.integers(0, 2, 1000)
    before_x, before_y = x.copy(), y.copy()
    members = np.arange(300, 700)
    dirty = _made_dirty(x, y, members, 0.2, rng)
    noisy, flipped = np.flatnonzero((x != before_x).any(1)), np.flatnonzero(y != before_y)
    assert len(noisy) == len(flipped) == 80
    assert np.array_equal(dirty, np.union1d(noisy, flipped))
    assert np.isin(dirty, members).all()
    columns = (x != before_x).any(0)
    assert columns.sum() == 5, "the same half of the columns for all rows of a group"
    assert x[np.ix_(noisy, columns)].std() == pytest.approx(5, rel=0.15)
    assert len(_made_dirty(x, y, members, 0.0, rng)) == 0


@functools.cache
def real(**settings):
    try:
        return grouped_table(0, **settings)
    except FileNotFoundError:
        pytest.skip("BETACORES_DATA does not hold hospital_readmissions.parquet")


@pytest.mark.slow
@pytest.mark.data
def test_the_table_has_groups_of_three_qualities():
    clean, dirty = real(contaminated=False), real(contaminated=True)
    assert len(clean.groups) == 165
    assert np.bincount(clean.quality).tolist() == [55, 55, 55]
    assert not clean.dirty.any()
    assert not clean.dirty_groups.any()
    assert np.array_equal(dirty.dirty_groups, dirty.quality > 0)
    share = dirty.groups.means(dirty.dirty.astype(float))
    # A share of noisy rows and one of flipped labels overlap by chance: 0.19 and 0.36.
    assert share[dirty.quality == 1].mean() == pytest.approx(0.19, abs=0.01)
    assert share[dirty.quality == 2].mean() == pytest.approx(0.36, abs=0.01)
    changed = (dirty.x != clean.x).any(1) | (dirty.y != clean.y)
    assert np.array_equal(changed, dirty.dirty)
    assert np.array_equal(dirty.test[0], clean.test[0])
    np.testing.assert_allclose(clean.x.std(0), 1, atol=0.02)
    assert dirty.test[1].mean() == 0.5


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("BETACORES_DATA"), reason="real data: BETACORES_DATA is not set")
def test_quick_experiment_runs_all_methods_on_the_real_table(tmp_path):
    out = tmp_path / "groups"
    command = [sys.executable, "-m", "betacores", "reproduce", "groups", "--quick", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert {f.name for f in out.iterdir()} == {"README.md", "table.csv", "accuracy.png", "selected.png", "runs.jsonl"}
    runs = [json.loads(line)["result"] for line in (out / "runs.jsonl").read_text().splitlines()]
    assert len(runs) == 1
    assert set(runs[0]["results"]) == {"pursuit", "beta-cores", "shapley", "random"}
    pursuit = runs[0]["results"]["pursuit"]
    assert pursuit["dirty_groups"] == [0, 0]
    assert pursuit["accuracy"][-1] > runs[0]["clean groups"] - 0.02
    assert all(0.4 < value < 0.7 for of in runs[0]["results"].values() for value in of["accuracy"])
    assert runs[0]["estimates"]["spearman"] > 0.85
    page = (out / "README.md").read_text(encoding="utf-8")
    for words in ("quick run", "| pursuit |", "| Shapley |", "![Attributes"):
        assert words in page


def test_the_experiment_says_that_it_lacks_its_file(tmp_path):
    missing = {**os.environ, "BETACORES_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "betacores", "reproduce", "groups", "--quick", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=missing)
    assert done.returncode == 2
    assert "hospital_readmissions.parquet was not found" in done.stderr
    assert not (tmp_path / "out").exists()
