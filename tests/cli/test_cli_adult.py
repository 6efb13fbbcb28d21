"""The census table as it comes, with nothing said but the target: quick enough, and planted mistakes are found."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import betacores as bc
from betacores.scores import beliefs

PLANTED = 0.05


def used():
    """Return the processor's seconds of the programs that were run; a neighbour's do not count."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("BETACORES_DATA"), reason="real data: BETACORES_DATA is not set")
def test_flipped_labels_of_the_census_table_are_found(tmp_path, nothing_compiled):
    table = pq.read_table(Path(os.environ["BETACORES_DATA"]) / "adult.parquet")
    # One half of the file has its labels written with a dot.
    label = np.char.rstrip(np.array(table["income"].to_pylist()), ".")
    flipped = np.zeros(len(label), bool)
    flipped[np.random.default_rng(0).permutation(len(label))[: round(PLANTED * len(label))]] = True
    label[flipped] = np.where(label[flipped] == ">50K", "<=50K", ">50K")
    table = table.set_column(table.column_names.index("income"), "income", pa.array(label))
    pq.write_table(table, tmp_path / "adult.parquet")

    before = used()
    command = [sys.executable, "-m", "betacores", "summarize", str(tmp_path / "adult.parquet"), "--target", "income"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert used() - before < 60

    out = tmp_path / "adult-coreset"
    coreset = bc.load(out)
    suspicious = np.argsort(beliefs(coreset.scores, coreset.covariate_scores), kind="stable")[:500]
    assert flipped[suspicious].mean() >= 3 * PLANTED
    assert (out / "report.html").stat().st_size < 2_000_000
