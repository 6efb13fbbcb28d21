"""Threads of linear algebra, while compiled programs want the cores."""

import sys

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

import betacores as bc
from betacores import cores


def blas_threads():
    return {library.num_threads for library in ThreadpoolController().select(user_api="blas").lib_controllers}


def test_linear_algebra_has_one_thread_for_a_while_and_its_own_again():
    with threadpool_limits(2, "blas"):
        with cores.linear_algebra_in_place():
            assert blas_threads() == {1}
        assert blas_threads() == {2}


def test_a_summary_is_made_with_one_and_leaves_as_many_as_there_were():
    seen = []
    x = np.random.default_rng(0).standard_normal((300, 2))
    with threadpool_limits(2, "blas"):
        bc.summarize(x, size=5, progress=lambda done, total: seen.append(blas_threads()))
        assert blas_threads() == {2}
    assert seen
    assert all(threads == {1} for threads in seen)


def test_nothing_is_told_to_it_where_that_is_not_possible(monkeypatch):
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    cores._libraries.cache_clear()
    try:
        with cores.linear_algebra_in_place():
            assert np.linalg.norm(np.eye(2)) > 0
    finally:
        cores._libraries.cache_clear()
