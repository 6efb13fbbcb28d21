"""The gallery's pages do what they say: those of the families, and those on models of one's own."""

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # `make docs` runs them as well

PAGES = Path(__file__).parents[2] / "docs" / "gallery"


def run(page, tmp_path, monkeypatch):
    """Run the cells of a page in a folder of its own."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    for cell in re.findall(r"```\{code-cell\} python\n(.*?)```", text, re.DOTALL):
        exec(cell, names)
    pyplot.close("all")
    return names


def test_autoregression(tmp_path, monkeypatch):
    page = run("autoregression", tmp_path, monkeypatch)
    found = {"classical": page["classical"], "robust": page["found"].mean(0)}
    # The clean series, by least squares.
    series = page["series"]
    clean = np.linalg.lstsq(np.column_stack([series[1:-1], series[:-2]]), series[2:], rcond=None)[0]
    assert np.abs(found["robust"] - clean).max() < 0.12
    assert np.abs(found["classical"] - clean).max() > 0.5
    assert np.isin(page["faulty"], page["suspicious"]).mean() >= 0.9
    assert np.isin(page["suspicious"], page["spoiled"]).mean() > 0.8


def test_poisson_process(tmp_path, monkeypatch):
    page = run("poisson-process", tmp_path, monkeypatch)
    expected = page["expected"]
    rates = {"classical": page["classical"], "robust": page["rates"].mean(0)}
    off = {name: np.abs(rate / expected - 1).max() for name, rate in rates.items()}
    assert off["robust"] < 0.2
    assert off["classical"] > 0.4
    assert np.isin(page["burst"], page["found"]).all()
    assert (~np.isin(page["found"], page["burst"])).sum() <= 3
    assert page["robust"].contamination == pytest.approx(len(page["burst"]) / len(page["hours"]), abs=0.03)


def test_black_box(tmp_path, monkeypatch, capsys):
    page = run("black-box", tmp_path, monkeypatch)
    draws = page["draws"]
    for name, exact in page["truth"].items():
        assert abs(draws[name].mean() - exact) < 4 * draws[name].std() + 0.02
    assert abs(page["least_squares"][1] - 2.0) > 0.3
    suspicious, wrong = page["suspicious"], page["wrong"]
    assert (suspicious & wrong).sum() >= 0.95 * wrong.sum()
    assert (suspicious & ~wrong).sum() <= 6
    printed = capsys.readouterr().out
    assert "log_likelihood: expected one number, got an array of shape (1,)" in printed
    assert "normalising constant" in printed
    assert len(page["again"]) == len(page["robust"])


def test_numpyro_hierarchical(tmp_path, monkeypatch):
    pytest.importorskip("numpyro")
    page = run("numpyro-hierarchical", tmp_path, monkeypatch)
    robust, classical = page["sites"]["robust"], page["sites"]["classical"]
    np.testing.assert_allclose(robust["level"].mean(0), page["levels"], atol=0.25)
    assert robust["slope"].mean() == pytest.approx(-0.7, abs=0.08)
    assert robust["noise"].mean() == pytest.approx(0.3, abs=0.08)
    assert classical["noise"].mean() > 1
    assert (page["found"] & page["wrong"]).sum() >= 0.9 * page["wrong"].sum()
    draws = page["draws"]
    assert abs(draws["slope"].mean() - robust["slope"].mean()) < robust["slope"].std()


def test_noisy_logistic(tmp_path, monkeypatch):
    page = run("noisy-logistic", tmp_path, monkeypatch)
    truth, found = page["truth"], page["posterior"].mean[:4]
    plain = np.append(page["classical"].coef_, page["classical"].intercept_)
    assert np.linalg.norm(found - truth) < 0.3 * np.linalg.norm(plain - truth)
    flip, wrong, suspicious = page["flip"], page["wrong"], page["suspicious"]
    assert (suspicious & wrong).sum() > 0.4 * wrong.sum()
    assert wrong[suspicious].mean() > 0.75
    assert flip.mean() == pytest.approx(wrong.mean(), abs=0.05)
    # What squares follow, and a line does not.
    assert page["rates"].mean() < 0.02


# How much of what is wrong each page finds at least: labels of digits and heavy tails are the hard ones.
FAMILIES = {
    "softmax": 0.6,
    "poisson": 0.95,
    "negative-binomial": 0.95,
    "gamma": 0.95,
    "student-t": 0.7,
    "gaussian-noise": 0.95,
    "gaussian-density": 0.9,
    "gaussian-mixture": 0.95,
    "exponential": 0.95,
    "categorical": 0.9,
}


@pytest.mark.parametrize("page", FAMILIES)
def test_a_family_finds_its_dirty_rows(page, tmp_path, monkeypatch, capsys):
    run(page, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    counts = re.findall(r"(\d+) of (\d+) .*?found, (\d+) ", printed)
    assert counts
    for found, wrong, others in (map(int, count) for count in counts):
        assert found >= FAMILIES[page] * wrong
        assert others <= 5
    shares = re.findall(r"contamination about ([\d.]+)%, truly ([\d.]+)%", printed)
    assert len(shares) == len(counts)
    for estimate, truth in (map(float, share) for share in shares):
        assert abs(estimate - truth) < (10 if page == "softmax" else 4)
