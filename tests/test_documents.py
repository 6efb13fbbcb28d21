"""What the documents show is run: README snippets, and the examples of CONTRIBUTING."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import betacores as bc
from betacores.constructions import METHODS

ROOT = Path(__file__).parent.parent


def python_blocks(name: str) -> list[str]:
    return re.findall(r"```(?:\{code-cell\} )?python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def example_method():
    before = dict(METHODS)
    yield "most-believed"
    METHODS.clear()
    METHODS.update(before)


def test_readme_python_runs_and_does_what_its_comments_say(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = python_blocks("README.md")
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    names: dict = {}
    exec(block, names)
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2] == "0"
    assert float(printed[-1]) == pytest.approx(0.3, abs=0.02)
    assert len(bc.load("summary")) == len(names["coreset"])
    assert names["draws"].shape == (1000, 20)


def test_the_model_of_contributing_is_short_and_resists_outliers():
    definition, use = python_blocks("CONTRIBUTING.md")[:2]
    assert len(definition.splitlines()) < 40
    random = np.random.default_rng(0)
    times = random.exponential(1 / 3.0, (2000, 1))
    times[:200] = random.uniform(50, 100, (200, 1))
    names = {"times": times}
    exec(definition, names)
    exec(use, names)
    coreset = names["coreset"]
    assert coreset.contamination == pytest.approx(0.1, abs=0.03)
    assert not (coreset.indices < 200).any()
    rate = np.exp(coreset.posterior(sampler="laplace").mean[0])
    assert rate == pytest.approx(3.0, rel=0.5)
    classical = 2000 / times.sum()
    assert abs(rate - 3.0) < abs(classical - 3.0)


def test_the_model_of_contributing_has_the_right_power_integral():
    from scipy.integrate import quad

    names: dict = {}
    exec(python_blocks("CONTRIBUTING.md")[0], names)
    model = names["Exponential"]()
    for theta, beta in [(0.0, 0.3), (1.2, 0.5), (-0.7, 1.0)]:
        rate = np.exp(theta)
        exact, _ = quad(lambda t, rate=rate, beta=beta: (rate * np.exp(-rate * t)) ** (1 + beta), 0, np.inf)
        found = model.power_integral(np.array([theta]), bc.models.Rows(np.zeros(1)), beta)
        assert float(found) == pytest.approx(exact, rel=1e-5)


def test_the_construction_of_contributing_runs(example_method):
    block = python_blocks("CONTRIBUTING.md")[2]
    assert len(block.splitlines()) < 40
    exec(block, {})
    table = bc.datasets.contaminated_gaussian(0, 0.2, rows=300, columns=3)
    coreset = bc.summarize(table.x, method=example_method, size=10)
    assert len(coreset) == 10
    assert not table.outlier[coreset.indices].any()


def test_links_between_documents_lead_somewhere():
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{name} links to {target}"


def test_readme_shows_the_two_commands_the_makefile_has():
    readme, makefile = (ROOT / "README.md").read_text(encoding="utf-8"), (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in readme
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for target in ("test-slow", "bench", "reproduce", "lint"):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.mark.slow
def test_the_page_on_sources_does_what_it_says():
    names: dict = {}
    for block in python_blocks("docs/which-sources-to-keep.md"):
        exec(block, names)
    coreset, dirty, clean = names["coreset"], {"Cedar", "Hazel"}, [2.0, -1.5, 1.0, 0.0]
    assert len(coreset.groups) == 4
    assert not dirty & set(coreset.groups)
    table = coreset.group_table()
    assert set(table["group"][-2:]) == dirty
    assert (table["contamination"][-2:] > 0.1).all()
    assert (table["contamination"][:-2] < 0.02).all()
    (note,) = (note for note in coreset.info.notes if note.startswith("groups"))
    assert all(vendor in note for vendor in dirty)
    assert np.abs(names["kept"].coef_[0] - clean).max() < 0.25
    assert np.abs(names["everything"].coef_[0] - clean).max() > 1


def test_the_calculation_on_paper_starts_from_what_was_measured():
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    found = json.loads((ROOT / "docs" / "results" / "scale" / "per-row.json").read_text(encoding="utf-8"))
    states = iter(found["state_bytes"])
    for stage, passes in found["passes"].items():
        said = re.search(rf'"{stage}": \((\d+), ([\d.e-]+), ([\d_]+)\)', text)
        assert int(said[1]) == passes
        assert float(said[2]) == pytest.approx(found["core_seconds_per_row_and_pass"][stage], rel=0.01)
        given = int(said[3])
        assert given == 0 or {next(states) for _ in range(passes)} == {given}


@pytest.mark.parametrize("rows", ["1e8", "1e9"])
def test_the_page_on_gpus_says_what_was_measured(rows):
    text = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    found = json.loads((ROOT / "docs" / "results" / "scale" / f"gpu-{rows}.json").read_text(encoding="utf-8"))
    assert found["command"] in text
    (line,) = (line for line in text.splitlines() if line.startswith({"1e8": "| 100 m", "1e9": "| 1 b"}[rows]))
    said = [float(number) for number in re.findall(r"\d+\.\d+", line)]
    given, default = found["fixed beta, no guard"], found["default"]
    measured = [given["seconds"], default["seconds"], given["kl"][0], default["kl"][0]]
    for number, truth in zip(said, measured, strict=True):
        digits = 1 if truth > 2 else 2 if truth > 0.1 else 3
        assert number == round(truth, digits)
