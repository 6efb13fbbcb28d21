"""A fixture for folders of many tiny tables, each a program of its own: import it in a conftest."""

import pytest

import betacores.sources.arrays


@pytest.fixture(autouse=True)
def one_length_for_all_tables(monkeypatch):
    """Cut every table into blocks of one length, the last filled up: each number of rows would be a compilation."""
    monkeypatch.setattr(betacores.sources.arrays, "padded_length", lambda count: 256)
