"""Tables for the estimators, and programs that compile fast."""

import pytest
from lines_in_odd_units import make_lines
from small_programs import one_length_for_all_tables

__all__ = ["one_length_for_all_tables"]


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
