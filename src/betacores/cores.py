"""Keeping to one core.

Algorithm 1 is a loop of many small operations. With a pool of threads every one of them is handed over, and an idle
thread spins in wait: slower on an idle machine, and many times slower when another process wants the core. A process
that may use one core only runs everything in place.

Everything else has compiled programs for what is large, with threads of their own, and small matrices on the host in
between. Threads of linear algebra gain nothing there, and spin on the cores that the programs want.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


def cores() -> list[int]:
    """Return the numbers of the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def keep_to_one_core(number: int = -1) -> None:
    """Restrict this process to one of the cores it may use; call it before JAX is first used.

    Where the system cannot do that, JAX is at least told to use one thread.
    """
    if hasattr(os, "sched_setaffinity"):
        allowed = cores()
        os.sched_setaffinity(0, {allowed[number % len(allowed)]})
    else:
        os.environ.setdefault("NPROC", "1")
    if "numpy" in sys.modules:
        # Its linear algebra may have made its threads already, which would take turns on the one core.
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def linear_algebra_in_place() -> AbstractContextManager[Any]:
    """Let NumPy's and SciPy's linear algebra use no threads of its own for a while, if that can be told to it."""
    libraries = _libraries()
    return nullcontext() if libraries is None else libraries.limit(limits=1, user_api="blas")


@cache
def _libraries() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
