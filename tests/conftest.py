"""Where this file lies, `closed_forms` can be imported by the tests of every folder below.

Tests that run side by side get a core each: two programs with two threads each are slower than two with one.
"""

import os

from betacores.cores import keep_to_one_core

if worker := os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw"):
    keep_to_one_core(int(worker))
