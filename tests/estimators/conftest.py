"""Tables for the estimators, and programs that compile fast."""

import jax
import pytest
from lines_in_odd_units import make_lines

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


@pytest.fixture
def light():
    """Return settings that make a fit quick."""
    return {"size": 20, "beta": 0.3, "guard": None, "method_settings": {"draws": 100}}


@pytest.fixture
def lines():
    """Return a table of three columns in units far apart, and a response linear in them."""
    return make_lines(200, seed=0)


@pytest.fixture
def more_lines():
    """Return other rows of the same kind."""
    return make_lines(300, seed=1)
