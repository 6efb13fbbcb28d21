"""Compiled programs kept between runs: where, when not, and that they are used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from betacores.cli.cache import folder


def test_the_folder_is_the_persons_cache_unless_told_otherwise(monkeypatch):
    monkeypatch.delenv("BETACORES_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    assert folder() == Path("/somewhere/cache/betacores/compiled")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert folder() == Path.home() / ".cache/betacores/compiled"
    monkeypatch.setenv("BETACORES_CACHE", "/elsewhere")
    assert folder() == Path("/elsewhere")
    monkeypatch.setenv("BETACORES_CACHE", "off")
    assert folder() is None


# The command line, and then what JAX says of the programs it compiled or read.
COUNTED = """
import json, sys
counts = {}
from jax import monitoring
monitoring.register_event_listener(lambda name, **_: counts.__setitem__(name, counts.get(name, 0) + 1))
from betacores.cli import main
try:
    main()
except SystemExit as ended:
    print(json.dumps({"code": ended.code, **counts}))
"""


@pytest.mark.slow
def test_a_second_run_compiles_nothing_again(tmp_path, nothing_compiled):
    x = np.random.default_rng(0).normal(size=(100, 2))
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1]}), tmp_path / "t.parquet")

    def counts(cache) -> dict:
        command = [sys.executable, "-c", COUNTED, "summarize", str(tmp_path / "t.parquet")]
        command += ["--size", "5", "--method", "uniform", "--no-report", "--quiet", "--force"]
        environment = {**os.environ, "BETACORES_CACHE": str(cache)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        assert done.stderr == ""
        said = json.loads(done.stdout)
        assert said["code"] == 0
        return {
            "hits": said.get("/jax/compilation_cache/cache_hits", 0),
            "misses": said.get("/jax/compilation_cache/cache_misses", 0),
        }

    first = counts(tmp_path / "kept" / "here")
    assert first["misses"] > 5
    assert counts(tmp_path / "kept" / "here") == {"hits": first["hits"] + first["misses"], "misses": 0}


def test_a_folder_that_cannot_be_written_to_is_no_error(tmp_path, nothing_compiled):
    (tmp_path / "file").write_text("in the way")
    code = "from betacores.cli.cache import keep_compiled; keep_compiled(); import jax; "
    code += "print(jax.config.jax_compilation_cache_dir)"
    for place, kept in (("file/here", "None"), ("here", str(tmp_path / "here"))):
        environment = {**os.environ, "BETACORES_CACHE": str(tmp_path / place)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        assert (done.returncode, done.stdout.strip()) == (0, kept), done.stderr
