"""Programs that compile fast: every number of rows or columns is one of its own here."""

import jax
import pytest

import betacores.sources.arrays


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """Skip the compiler's optimisations: the tables are tiny."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(autouse=True)
def one_length_for_all_tables(monkeypatch):
    """Cut every table into blocks of one length, the last filled up."""
    monkeypatch.setattr(betacores.sources.arrays, "padded_length", lambda count: 256)
