"""Where this file lies, `closed_forms` can be imported by the tests of every folder below.

Tests that run side by side get a core each: two programs with two threads each are slower than two with one. Three
quarters of their time is compilation, so compiled programs are kept for the next run, and for each other, and the
compiler is told to make less of an effort; `docs/conf.py` does the same. `make test-slow` and `make demo` have programs
as users do.
"""

import os
from pathlib import Path

import pytest

from betacores.cores import keep_to_one_core

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

if worker := os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"):
    keep_to_one_core(int(worker))


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    """Let compiled programs go before the process has as many pieces of memory as the system allows, and crashes."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_text().count("\n") > 20_000:
        import jax

        jax.clear_caches()
