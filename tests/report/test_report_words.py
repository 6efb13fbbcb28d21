import datetime
import json

import numpy as np
import pandas as pd
import pytest

from betacores.report.words import cell, number, percent, percent_interval, plain, seconds


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0, "0"),
        (1.0, "1"),
        (0.1234, "0.123"),
        (-2.3456, "−2.35"),
        (21.34, "21.3"),
        (999.6, "1000"),
        (1234.5, "1234"),
        (123456.7, "123,457"),
        (1.5e12, "1.5e12"),
        (-3e-7, "−3e-7"),
        (float("nan"), "not known"),
        (float("-inf"), "−∞"),
        (None, "not known"),
    ],
)
def test_numbers_have_three_digits_and_separators(value, said):
    assert number(value) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0, "0 %"),
        (0.06, "6 %"),
        (0.0564, "5.6 %"),
        (0.94, "94 %"),
        (0.00031, "0.03 %"),
        (1e-6, "<0.01 %"),
        (1, "100 %"),
        (0.9995, ">99.9 %"),
    ],
)
def test_shares_are_in_percent(share, said):
    assert percent(share) == said


def test_an_interval_says_its_unit_once():
    assert percent_interval(0.056, 0.064) == "5.6–6.4 %"
    assert percent_interval(0.0, 0.0) == "0 %"


@pytest.mark.parametrize("nothing", [None, float("nan"), np.nan, pd.NaT, pd.NA])
def test_missing_cells_are_called_missing(nothing):
    assert cell(nothing) == "missing"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (2024, "2024"),
        (48842, "48,842"),
        (np.int64(-12345), "−12,345"),
        (-122.2345, "−122.2"),
        (float("inf"), "∞"),
        (True, "True"),
        (np.float32(0.5), "0.5"),
        ("  two\nlines ", "two lines"),
        ("", "''"),
        (b"bytes", "bytes"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
    ],
)
def test_cells_are_shown_as_they_are(value, said):
    assert cell(value) == said


def test_long_cells_are_cut():
    assert len(cell("x" * 1000)) == 80


def test_durations():
    assert [seconds(value) for value in (0.001, 1.234, 45, 300)] == ["<0.01 s", "1.23 s", "45 s", "5.0 min"]


def test_plain_values_are_json():
    value = {"a": np.arange(3), 1: (np.float32(0.5), np.nan), "f": max, "n": None, "d": datetime.date(2020, 1, 2)}
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == {
        "a": [0, 1, 2], "1": [0.5, None], "f": "max", "n": None, "d": "2020-01-02",
    }  # fmt: skip
