"""Importing the package is quick, quiet and without side effects."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import betacores as bc


def fresh(code, **environment):
    """Run code in a new interpreter and return what it prints as JSON."""
    source = str(Path(bc.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": source, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert run.stderr == ""
    return json.loads(run.stdout)


def test_import_takes_less_than_two_seconds():
    code = """
import json, time
started = time.perf_counter()
import betacores
betacores.summarize, betacores.load, betacores.models.MODELS
print(json.dumps(time.perf_counter() - started))
"""
    # The best of several: a busy machine is no fault of the package.
    assert any(fresh(code) < 2.0 for _ in range(5))


def test_import_does_not_touch_the_configuration_of_jax():
    code = """
import json, os, sys, logging, warnings, random
import jax
import numpy as np
import scipy.special  # sets a filter for its own warnings
before = dict(jax.config.values), dict(os.environ), list(warnings.filters), logging.root.level, str(np.geterr())
state = np.random.get_state()[1].tolist(), random.getstate()
import betacores
betacores.summarize, betacores.load, betacores.models, betacores.Coreset
after = dict(jax.config.values), dict(os.environ), list(warnings.filters), logging.root.level, str(np.geterr())
same = [a == b for a, b in zip(before, after)]
same.append(state == (np.random.get_state()[1].tolist(), random.getstate()))
print(json.dumps({"same": same, "x64": jax.config.jax_enable_x64}))
"""
    assert fresh(code) == {"same": [True] * 6, "x64": False}
    assert fresh(code, JAX_ENABLE_X64="1")["x64"] is True


def test_import_brings_in_no_optional_package():
    """Neither the network nor plotting, neither other samplers nor other frames."""
    code = """
import json, sys
import betacores
betacores.summarize, betacores.load, betacores.models
optional = ["pandas", "polars", "arviz", "blackjax", "matplotlib", "jinja2", "numpyro", "rich", "typer", "stan"]
optional += ["requests", "urllib3", "httpx"]
print(json.dumps([name for name in optional if name in sys.modules]))
"""
    assert fresh(code) == []


def test_public_names_are_all_there():
    assert set(bc.__all__) <= set(dir(bc))
    assert all(getattr(bc, name) is not None for name in bc.__all__)
    assert {"Coreset", "__version__", "load", "models", "summarize"} <= set(bc.__all__)


def test_package_prints_nothing():
    """Library code never prints; what is for people goes through a callback or the command line."""
    for file in Path(bc.__file__).parent.rglob("*.py"):
        if "cli" in file.parts or file.name == "__main__.py":
            continue
        calls = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
        assert not any(isinstance(call.func, ast.Name) and call.func.id == "print" for call in calls), file
