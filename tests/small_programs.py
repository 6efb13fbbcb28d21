"""Fixtures for folders of many tiny tables, each a program of its own: import them in a conftest."""

import jax
import pytest

import betacores.sources.arrays


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Skip the compiler's optimisations: the tables are tiny, and there is a program for every number of columns."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(autouse=True)
def one_length_for_all_tables(monkeypatch):
    """Cut every table into blocks of one length, the last filled up: each number of rows would be a compilation."""
    monkeypatch.setattr(betacores.sources.arrays, "padded_length", lambda count: 256)
