"""Labels of groups of every kind that people have come back from disk as they were."""

import datetime
import decimal
import json
import uuid

import numpy as np
import pandas as pd
import pytest

import betacores as bc
from betacores.labels import as_json, from_json

LABELS = [
    *("north", "", 3, -2, True, 0.25, float("inf"), float("-inf")),
    datetime.datetime(2020, 1, 5, 12, 30, 0, 7),
    datetime.datetime(2020, 1, 5, tzinfo=datetime.UTC),
    datetime.date(2020, 1, 5),
    datetime.time(23, 59),
    datetime.timedelta(days=-1, microseconds=3),
    b"\xff\x00a",
    decimal.Decimal("0.10"),
    uuid.UUID(int=7),
    ("north", datetime.date(2020, 1, 5)),
    ((4, "b"), b"a"),
]


@pytest.mark.parametrize("label", LABELS, ids=repr)
def test_a_label_comes_back(label):
    back = from_json(json.loads(json.dumps(as_json(label), allow_nan=False)))
    assert back == label
    assert type(back) is type(label)


def test_labels_of_other_libraries_come_back_as_what_they_equal_or_as_text():
    moment = pd.Timestamp("2020-01-05 12:30")
    assert from_json(as_json(moment)) == moment
    assert from_json(as_json(np.int8(3))) == 3
    assert from_json(as_json(pd.Interval(0, 2))) == "(0, 2]"


def test_a_coreset_of_days_is_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(5, size=200), unit="D")
    frame = frame.assign(day=days, site=rng.choice(["x", "y"], 200))
    for table, groups in ((frame.drop(columns="site"), "day"), (frame, ["site", "day"])):
        coreset = bc.summarize(table, frame["a"] + 1, groups=groups, max_groups=2, method="uniform")
        coreset.save(tmp_path / "saved", overwrite=True)
        back = bc.load(tmp_path / "saved")
        assert back.groups == coreset.groups
        assert back.group_scores == coreset.group_scores
