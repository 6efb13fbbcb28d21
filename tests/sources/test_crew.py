"""Blocks computed side by side come out in order, stop at the first error, and are all ended when nobody wants more."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.sources import crew


@pytest.fixture(params=[1, 3])
def at_once(request, monkeypatch):
    monkeypatch.setattr(crew, "hands", lambda: request.param)
    return request.param


def test_results_come_in_order_though_later_blocks_are_faster(at_once):
    def work(block, scale):
        time.sleep(0.02 * (block % 3 == 0))
        return scale * block

    found = list(crew.side_by_side(work, range(5, 17), (10,), first=5))
    assert found == [(block + 1, 10 * block) for block in range(5, 17)]


def test_no_more_blocks_are_held_than_are_computed_and_one_more(at_once):
    given = []

    def blocks():
        for block in range(20):
            given.append(block)
            yield block

    for done, _ in crew.side_by_side(lambda block: block, blocks(), ()):
        assert len(given) <= done + at_once + 1


def test_an_error_comes_out_where_it_happened(at_once):
    def work(block):
        if block == 4:
            raise OSError("block 4 cannot be read")
        return block

    seen = []
    with pytest.raises(OSError, match="block 4"):
        seen.extend(done for done, _ in crew.side_by_side(work, range(9), ()))
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) <= 4


def test_nothing_goes_on_when_nobody_wants_more(at_once):
    begun, ended = [], []

    def work(block):
        begun.append(block)
        time.sleep(0.01)
        ended.append(block)
        return block

    blocks = crew.side_by_side(work, iter(range(1000)), ())
    assert [next(blocks), next(blocks)] == [(1, 0), (2, 1)]
    blocks.close()
    assert len(begun) <= 2 + at_once + 1
    assert sorted(begun) == sorted(ended)
    time.sleep(0.05)
    assert len(begun) == len(ended) <= 2 + at_once + 1


def test_passes_share_their_threads(monkeypatch):
    """Every new thread would take memory that is not given back."""
    monkeypatch.setattr(crew, "hands", lambda: 2)
    seen = set()
    for _ in range(10):
        list(crew.side_by_side(lambda block: seen.add(threading.get_ident()), range(6), ()))
    assert len(seen - {threading.get_ident()}) <= 2


def test_threads_compute_in_the_caller_s_precision(at_once):
    def work(block):
        return jnp.asarray(np.full(2, block, np.float64)) * 2

    with jax.enable_x64(True):
        wide = [part.dtype for _, part in crew.side_by_side(work, range(4), ())]
    narrow = [part.dtype for _, part in crew.side_by_side(work, range(4), ())]
    assert {str(kind) for kind in wide} == {"float64"}
    assert {str(kind) for kind in narrow} == {"float32"}


def test_one_core_computes_one_block_at_a_time(monkeypatch):
    monkeypatch.setenv("NPROC", "1")
    assert crew.hands() == 1
