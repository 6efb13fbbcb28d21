"""Cells planted one at a time: the report must name that column, and what was to be expected there."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from report.hand_made import coreset_of, linear_table, logistic_table

from betacores.models import GaussianMean, LinearRegression, LogisticRegression
from betacores.report.summary import summary_of

LABELS = np.array(["no", "yes"])
NAMES = ["age", "income", "visits"]


def rows_of(coreset, **options):
    found = summary_of(coreset, None, None, **({"title": None, "suspicious": 200, "command": None} | options))
    return {entry["row"]: entry for entry in found["suspicious"]["rows"]}


def doubt(rows, *doubted):
    trust = np.ones(rows)
    trust[list(doubted)] = 0.01
    return trust


@pytest.mark.parametrize("column", range(3))
def test_a_far_cell_is_named_with_its_usual_range(column):
    x, y, theta = linear_table()
    x[5, column] = 40.0
    coreset = coreset_of(LinearRegression(0.5), x, y, theta, trust=doubt(400, 5), columns=NAMES)
    reason = rows_of(coreset)[5]["reasons"][0]
    assert reason["column"] == NAMES[column]
    assert reason["seen"] == "40"
    low, high = (float(part.replace("−", "-")) for part in reason["expected"].split(" to "))
    # The range is that of rows that are believed: about 98 % of them.
    inside = (x[:, column] >= low - 0.02) & (x[:, column] <= high + 0.02)
    assert 0.96 < inside.mean() < 1
    assert high < 5


def test_a_cell_that_only_disagrees_with_its_row_is_named_with_what_the_row_predicts():
    x, y, theta = linear_table()
    x[5] = [-1.0, 1.2, 0.0]  # each usual by itself, but the first two go together
    coreset = coreset_of(LinearRegression(0.5), x, y, theta, trust=doubt(400, 5), columns=NAMES)
    reasons = rows_of(coreset)[5]["reasons"]
    assert reasons[0]["kind"] == "joint"
    assert reasons[0]["column"] in ("age", "income")  # of two that disagree nobody can tell which
    expected = float(reasons[0]["expected"].split(",")[0].removeprefix("about ").replace("−", "-"))
    other = -1.0 if reasons[0]["column"] == "income" else 1.2
    assert expected == pytest.approx(other, abs=0.3)


def test_among_many_columns_the_joint_one_is_found():
    random = np.random.default_rng(3)
    base = random.normal(size=(500, 1))
    x = base + 0.2 * random.normal(size=(500, 6))
    x[9] = [1.9, 2.0, 2.1, 2.0, 0.0, 1.9]  # the odd one is the most usual by itself
    theta = np.append(np.zeros(6), 0.0)
    y = random.normal(size=500)
    coreset = coreset_of(LinearRegression(1.0), x, y, theta, trust=doubt(500, 9))
    assert rows_of(coreset)[9]["reasons"][0]["column"] == "x4"


def test_an_odd_response_is_told_with_what_the_model_expects():
    x, y, theta = linear_table()
    y[8] = 50.0
    coreset = coreset_of(LinearRegression(0.5), x, y, theta, target="price")
    (reason,) = rows_of(coreset)[8]["reasons"]
    clean = np.delete(np.arange(400), 8)
    z = np.column_stack([x, np.ones(400)])
    line = np.linalg.lstsq(z[clean], y[clean], rcond=None)[0]
    expected, reach = reason["expected"].split(" ± ")
    assert (reason["column"], reason["seen"]) == ("price", "50")
    assert float(expected) == pytest.approx(z[8] @ line, abs=0.2)
    assert float(reach) == pytest.approx(0.98)


def test_an_unlikely_label_is_told_with_its_chance():
    x, y, theta = logistic_table()
    x[4], y[4] = [2.0, -1.0, 0.0], "no"  # log-odds of "yes" about 5.5
    coreset = coreset_of(LogisticRegression(), x, y, theta, labels=LABELS, target="bought")
    (reason,) = rows_of(coreset)[4]["reasons"]
    assert (reason["kind"], reason["column"], reason["seen"]) == ("label", "bought", "no")
    chance = float(reason["expected"].removeprefix("the model gives it ").removesuffix(" %"))
    assert 0.1 < chance < 2


def test_a_far_cell_that_explains_the_response_comes_first():
    # The guard trusts the row; but with the cell as it should be, the response would fit.
    x, y, theta = linear_table()
    x[6, 2] = 60.0
    reasons = rows_of(coreset_of(LinearRegression(0.5), x, y, theta, columns=NAMES))[6]["reasons"]
    assert [reason["column"] for reason in reasons] == ["visits", "response"]


@pytest.mark.parametrize("column", range(3))
def test_means_name_the_planted_column(column):
    x = np.random.default_rng(0).normal(size=(400, 3))
    x[11, column] = 9.0
    coreset = coreset_of(GaussianMean(), x, None, np.zeros(3), columns=NAMES)
    reasons = rows_of(coreset)[11]["reasons"]
    assert [reason["column"] for reason in reasons] == [NAMES[column]]


def test_rows_with_many_odd_cells_say_so():
    x = np.random.default_rng(0).normal(size=(400, 6))
    x[11] = 9.0
    reasons = rows_of(coreset_of(GaussianMean(), x, None, np.zeros(6)))[11]["reasons"]
    assert len(reasons) == 4
    assert reasons[-1]["text"] == "and 3 more cells"


def test_clean_tables_blame_nobody():
    x, y, theta = linear_table()
    y = x @ theta[:-1] + theta[-1]
    rows = rows_of(coreset_of(LinearRegression(0.5), x, y, theta))
    assert len(rows) == 20
    assert not any(entry["reasons"] or entry["marked"] for entry in rows.values())


def words_table():
    """Return a function from a kind of table to a coreset of one with words, as an estimator makes it."""
    x, y, theta = logistic_table()
    school = np.where(x[:, 1] > 0, "Bachelors", "Masters").astype(object)
    school[[3, 7]] = "Preschool"
    city: list = ["<b>Rome</b>"] * 400
    city[3] = None
    frame = {"city": city, "age": x[:, 0], "school": school.tolist(), "bought": y.tolist()}
    coded = np.column_stack([x[:, 0], (school == "Preschool").astype(float), [c is None for c in city]])
    told = {"sources": ["age", "school", "city"], "target": "bought"}
    columns = ["age", "school=Preschool", "city is missing"]
    trust = doubt(400, 3, 7)
    options = {"columns": columns, "trust": trust, "labels": LABELS, **told}
    return lambda kind: coreset_of(LogisticRegression(), coded, y, theta, frame=kind(frame), **options)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_words_are_told_as_they_were_handed_in(kind):
    coreset = words_table()(kind)
    found = summary_of(coreset, None, None, title=None, suspicious=200, command=None)
    rows = {entry["row"]: entry for entry in found["suspicious"]["rows"]}
    assert found["suspicious"]["columns"] == ["city", "age", "school"]  # the response has a column of its own
    told = {reason["column"]: reason for reason in rows[7]["reasons"]}
    assert told["school"]["seen"] == "Preschool"
    assert told["school"]["expected"] == "found in 0.5 % of the rows"
    also = {reason["column"]: reason for reason in rows[3]["reasons"]}
    assert also["city"]["seen"] == "missing"
    assert rows[3]["cells"][0] == {"text": "missing", "missing": True}
    assert rows[7]["cells"][0] == {"text": "<b>Rome</b>"}


def test_a_named_column_is_shown_however_many_come_before_it():
    random = np.random.default_rng(0)
    x = random.normal(size=(300, 40))
    x[2, 35] = 50.0
    coreset = coreset_of(LinearRegression(1.0), x, random.normal(size=300), np.zeros(41), trust=doubt(300, 2))
    found = summary_of(coreset, None, None, title=None, suspicious=50, command=None)["suspicious"]
    assert found["columns"] == [*(f"x{j}" for j in range(12)), "x35"]
    assert found["more_columns"] == 27
