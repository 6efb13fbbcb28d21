"""Where this file lies, `closed_forms` can be imported by the tests of every folder below.

Tests that run side by side get a core each: two programs with two threads each are slower than two with one. Three
quarters of their time is compilation, so compiled programs are kept for the next run, and for each other, and the
compiler is told to make less of an effort; `docs/conf.py` does the same. `make test-slow` and `make demo` have programs
as users do.
"""

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from betacores.cores import keep_to_one_core

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false")

if worker := os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"):
    keep_to_one_core(int(worker))


# Pieces of memory after which compiled programs are let go: at the end of a module, where the next has little use for
# them, and in its midst, long before the system's limit of 65,530. To count them takes a while; not at every test.
AFTER_MODULE, AT_ONCE, EVERY = 20_000, 40_000, 25
tests_done = itertools.count(1)


def make_room(most):
    """Let compiled programs go before the process has as many pieces of memory as the system allows, and crashes."""
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > most:
        import jax

        jax.clear_caches()


@pytest.fixture(autouse=True, scope="module")
def room_for_programs():
    yield
    make_room(AFTER_MODULE)


@pytest.fixture(autouse=True)
def room_for_programs_of_long_modules():
    yield
    if next(tests_done) % EVERY == 0:
        make_room(AT_ONCE)


@pytest.fixture
def disk_of(tmp_path):
    """Makes disks of so many kilobytes, each an empty folder."""
    disks = []

    def made(kilobytes):
        disk = tmp_path / f"disk-{len(disks)}"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(disk)]
        try:
            mounted = subprocess.run(mount, capture_output=True).returncode == 0
        except OSError:
            mounted = False
        if not mounted:
            pytest.skip("no small disk can be mounted here: that takes root")
        disks.append(disk)
        return disk

    yield made
    for disk in disks:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
