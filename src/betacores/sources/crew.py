"""Blocks computed side by side, one a core, and handed on in their order: results do not depend on how many at once."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import jax

# Every block in work is held; more cores than this gain little, since one thread reads for all.
MOST = 8


def hands() -> int:
    """Return how many blocks to compute at once: the cores we may use; one where an accelerator computes."""
    if jax.default_backend() != "cpu":
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # The number of threads that XLA was told to have, see `betacores.cores`.
    told = os.environ.get("NPROC", "")
    return max(1, min(allowed, int(told) if told.isdigit() else MOST, MOST))


def side_by_side(
    work: Callable[..., Any], blocks: Iterable[Any], arguments: tuple, first: int = 0
) -> Iterator[tuple[int, Any]]:
    """Yield, block by block, the number of blocks done and what `work(block, *arguments)` gave.

    Parameters
    ----------
    work, arguments
        What is done with every block.
    blocks
        The blocks, of which as many are held as are computed at once, and one more.
    first
        Number of the first one.
    """
    numbered = enumerate(blocks, first)
    at_once = hands()
    if at_once == 1:
        # One block behind: the next is read while a device computes this one.
        waiting = None
        for number, block in numbered:
            result = work(block, *arguments)
            if waiting is not None:
                yield waiting
            waiting = number + 1, result
        if waiting is not None:
            yield waiting
        return
    # The first by itself: what it compiles is there for the others.
    for number, block in numbered:
        yield number + 1, work(block, *arguments)
        break
    config: Any = jax.config
    settings = config.jax_enable_x64, config.jax_default_matmul_precision, config.jax_default_device

    def done(block: Any) -> Any:
        # A thread of its own has settings of its own.
        with jax.enable_x64(settings[0]), jax.default_matmul_precision(settings[1]), jax.default_device(settings[2]):
            return jax.block_until_ready(work(block, *arguments))

    under_way: deque[tuple[int, Future]] = deque()
    crew = _crew(at_once, os.getpid())
    try:
        for number, block in numbered:
            under_way.append((number + 1, crew.submit(done, block)))
            if len(under_way) > at_once:
                until, result = under_way.popleft()
                yield until, result.result()
        while under_way:
            until, result = under_way.popleft()
            yield until, result.result()
    finally:
        for _, result in under_way:
            result.cancel()
        wait(result for _, result in under_way)


@cache
def _crew(at_once: int, process: int) -> ThreadPoolExecutor:
    """Return the threads of a process, the same for every pass: what new ones take of memory is not given back."""
    del process  # threads do not survive a fork
    return ThreadPoolExecutor(at_once, thread_name_prefix="betacores-block")
