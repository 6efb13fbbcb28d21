"""The page as text: what it says, that it holds nothing but text of the table, and that it needs nothing else."""

import html.parser
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from report.hand_made import coreset_of, linear_table, logistic_table

import betacores as bc
from betacores.models import GaussianMean, LinearRegression, LogisticRegression
from betacores.origin import Origin
from betacores.quality import KLEstimate
from betacores.report.headline import headline_section

LABELS = np.array(["no", "yes"])
HOSTILE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "a\"b'c&d{{ 7*7 }}"]


class Elements(html.parser.HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.found, self.words = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def dirty():
    """Return a coreset of a linear table of which one row in ten is dirty."""
    x, y, theta = linear_table()
    y[:40] += 30.0
    groups = ["bad"] * 40 + ["good", "fair"] * 180
    curve = {"size": [1, 2, 3, 4], "remaining": [None, 10.0, 1.0, 0.05]}
    return coreset_of(LinearRegression(0.5), x, y, theta, groups=groups, info={"trace": curve})


@pytest.fixture(scope="module")
def report(dirty):
    return dirty.report(title="A table", command="betacores summarize t.csv --target y")


def test_the_first_screen_says_what_was_found(report, dirty):
    headline = report.summary["headline"]
    _low, high = dirty.contamination_interval
    assert headline["verdict"].startswith("About 1")
    assert f"{100 * high:.0f} %" in headline["verdict"]
    assert "30 weighted rows of 2 groups stand for the other" in headline["verdict"]
    assert headline["quality"]["curve"] == [[2, 10.0], [3, 1.0], [4, 0.05]]
    assert report.summary["suspicious"]["total"] == round(dirty.contamination * 400)
    assert {row["row"] for row in report.summary["suspicious"]["rows"][:35]} <= set(range(40))
    assert "betacores summarize t.csv --target y" in report.html
    assert "Quality for every size" in report.html
    json.dumps(report.summary, allow_nan=False)


def test_groups_are_ranked(report, dirty):
    rows = report.summary["groups"]["rows"]
    assert [row["group"] for row in rows] == [*dirty.groups, "bad"]
    assert rows[-1]["contamination"] > 0.9


@pytest.mark.parametrize(
    ("change", "verdict", "advice"),
    [
        ({}, "No rows stand out", "Use the coreset as it is"),
        ({"kl": 5.0}, "stand roughly for", "keep more rows"),
        ({"warnings": ["Beware."]}, "No rows stand out", "Read the warning first"),
        ({"contamination": 0.6}, "more than outliers can be", "another model"),
        ({"kl": None}, "No rows stand out", "Use the coreset"),
    ],
)
def test_the_verdict_is_honest(change, verdict, advice):
    x, _y, theta = linear_table()
    coreset = coreset_of(LinearRegression(0.5), x, x @ theta[:-1] + theta[-1], theta)
    if "kl" in change:
        coreset.info.kl_estimate = None if change["kl"] is None else KLEstimate(change["kl"], 0.1)
    coreset.info.warnings.extend(change.get("warnings", []))
    told = headline_section(replace(coreset, contamination=change.get("contamination", 0.0)))
    assert verdict in told["verdict"]
    assert advice in told["advice"]


def test_hostile_names_and_cells_stay_text():
    x, y, theta = logistic_table()
    labels = np.array(["<i>no</i>", "</script><script>alert(3)</script>"])
    words = np.where(y == "yes", labels[1], labels[0])
    frame = pd.DataFrame({HOSTILE[0]: x[:, 0], HOSTILE[1]: ["<!--<svg onload=alert(4)>"] * 400, HOSTILE[2]: x[:, 2]})
    trust = np.ones(400)
    trust[:9] = 0.0
    told = {"sources": HOSTILE, "target": "<u>target</u>", "frame": frame, "groups": HOSTILE[:2] * 200}
    coreset = coreset_of(
        LogisticRegression(), x, words, theta, columns=HOSTILE, trust=trust, labels=np.sort(labels), **told
    )  # fmt: skip
    coreset.info.warnings.append(HOSTILE[1])
    page = coreset.report(title=HOSTILE[1], command=HOSTILE[0]).html
    elements = Elements(page)
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == 1
    assert not {"img", "i", "u", "iframe", "object"} & set(tags)
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    text = "".join(elements.words)
    for one in (*HOSTILE, *labels, "<!--<svg onload=alert(4)>", "<u>target</u>"):
        assert one in text


def test_the_page_needs_nothing_else(report):
    elements = Elements(report.html)
    for tag, attributes in elements.found:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            link = attributes.get(name) or ""
            assert link.startswith("#") or link in ("", "data:,"), (tag, link)
    assert "url(" not in report.html
    assert "@import" not in report.html
    policy = next(a["content"] for t, a in elements.found if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_pictures_have_titles_and_ids_are_unique(report):
    elements = Elements(report.html)
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    charts = [attributes for tag, attributes in elements.found if tag == "svg" and attributes.get("role") == "img"]
    assert len(charts) == 4
    assert all(set(chart["aria-labelledby"].split()) <= set(ids) for chart in charts)
    anchors = [a["href"][1:] for t, a in elements.found if t == "a"]
    assert set(anchors) <= set(ids)


def test_every_number_in_a_picture_is_one(report):
    drawn = "".join(re.findall(r"<svg.*?</svg>", report.html, re.DOTALL))
    assert not re.search(r'"[^"]*\b(nan|inf|None)\b[^"]*"', drawn)


def test_it_is_saved_once(report, tmp_path):
    file = report.save(tmp_path / "new" / "report.html")
    assert file.read_text(encoding="utf-8") == report.html
    with pytest.raises(FileExistsError, match="overwrite=True"):
        report.save(file)
    report.save(file, overwrite=True)
    with pytest.raises(IsADirectoryError, match="name a file"):
        report.save(tmp_path)
    assert [one.name for one in file.parent.iterdir()] == ["report.html"]


def test_it_shows_itself_in_jupyter(report):
    ((tag, attributes),) = Elements(report._repr_html_()).found
    assert tag == "iframe"
    assert attributes["srcdoc"] == report.html
    assert report.summary["headline"]["verdict"] in repr(report)


def test_a_loaded_coreset_needs_its_table(dirty, tmp_path):
    dirty.save(tmp_path / "saved")
    loaded = bc.load(tmp_path / "saved")
    x, y = dirty.origin.x, dirty.origin.y
    with pytest.raises(ValueError, match=r"does not hold its table.*report\(data, y\)"):
        loaded.report()
    with pytest.raises(ValueError, match="pass it too"):
        loaded.report(x)
    with pytest.raises(ValueError, match="made of 400 rows, the table has 399"):
        loaded.report(x[1:], y[1:])
    with pytest.raises(ValueError, match="'x2'"):
        loaded.report(x[:, :2], y)
    frame = pd.DataFrame(x, columns=["x0", "x1", "x2"])[["x2", "x0", "x1"]]
    again = loaded.report(frame, y, command="c", title="A table").summary
    assert again["suspicious"]["rows"] == dirty.report(command="c", title="A table").summary["suspicious"]["rows"]
    assert loaded.report(Origin(x, y)).summary["headline"] == again["headline"]


def test_wrong_numbers_of_rows_are_refused(dirty):
    with pytest.raises(ValueError, match="suspicious: expected a whole number at least 0"):
        dirty.report(suspicious=-1)
    assert len(dirty.report(suspicious=3).summary["suspicious"]["rows"]) == 3
    assert dirty.report(suspicious=0).summary["suspicious"]["rows"] == []


def test_empty_coresets_and_cells_that_are_no_numbers_are_shown():
    x = np.random.default_rng(0).normal(size=(400, 1))
    coreset = coreset_of(GaussianMean(), x, None, np.zeros(1), kept=0)
    frame = pd.DataFrame({"x0": [float("inf"), float("-inf"), None, *x[3:, 0]]})
    page = replace(coreset, origin=Origin(x, None, frame, ["x0"])).report().html
    assert "Nothing was kept" in page


def test_far_rows_are_on_the_edge(dirty):
    y = dirty.origin.y.copy()
    y[0] = 1e9
    picture = replace(dirty, origin=Origin(dirty.origin.x, y)).report().summary["picture"]
    assert picture["up"][1] < 1e3
    edge = [point for point in picture["points"]["suspicious"] if point[3]]
    assert picture["beyond"] >= 1
    assert any(point[1] == 1.0 for point in edge)
    assert sum(map(len, picture["points"].values())) <= 2000


def test_the_histogram_counts_every_row(report, dirty):
    histogram = report.summary["histogram"]
    assert sum(histogram["clean"]) + sum(histogram["suspicious"]) == dirty.row_count
    assert sum(histogram["suspicious"]) == report.summary["suspicious"]["total"]


def test_a_large_table_makes_a_small_page():
    random = np.random.default_rng(0)
    x = random.normal(size=(100_000, 15))
    theta = random.normal(size=16)
    y = np.where(random.uniform(size=100_000) < 1 / (1 + np.exp(-x @ theta[:-1] - theta[-1])), "yes", "no")
    y[:5000] = np.where(y[:5000] == "yes", "no", "yes")
    coreset = coreset_of(LogisticRegression(), x, y, theta, kept=500, labels=LABELS)
    frame = pd.DataFrame(x, columns=[f"a rather long name {j}" for j in range(15)])
    coreset = replace(coreset, origin=Origin(x, y, frame, list(frame.columns)))
    page = coreset.report().html
    assert len(page.encode()) < 2_000_000


def test_the_call_that_is_shown_makes_the_same_coreset():
    x, y, _ = logistic_table()
    coreset = bc.summarize(x, y, method="uniform", size=20, seed=3, score_beta=0.7)
    shown = coreset.report().summary["settings"]["python"]
    assert "size=20" in shown
    assert "seed=3" in shown
    assert "score_beta=0.7" in shown
    names = {"data": x, "y": y}
    exec(shown, names)
    np.testing.assert_array_equal(names["coreset"].indices, coreset.indices)
    np.testing.assert_array_equal(names["coreset"].weights, coreset.weights)


def test_a_coreset_of_groups_read_from_disk_takes_the_table_it_was_made_of(tmp_path):
    x, y, _ = linear_table()
    frame = pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])]).assign(vendor=["u", "v"] * (len(x) // 2))
    coreset = bc.summarize(frame, y, groups="vendor", max_groups=1, method="uniform")
    coreset.save(tmp_path / "saved")
    page = bc.load(tmp_path / "saved").report(frame, y)
    assert page.summary["groups"]["total"] == 2
