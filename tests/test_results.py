"""Pages under docs/results are what their commands make of the numbers stored beside them."""

import importlib
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from betacores.experiments import gaussian, groups, logistic, neural_linear, pursuit
from betacores.models import MODELS

RESULTS = Path(__file__).parent.parent / "docs" / "results"


EXPERIMENTS = {
    "gaussian": gaussian,
    "pursuit": pursuit,
    "logistic": logistic,
    "groups": groups,
    "neural-linear": neural_linear,
}


@pytest.mark.parametrize(("name", "experiment"), EXPERIMENTS.items())
def test_stored_runs_make_the_stored_page(name, experiment, tmp_path, monkeypatch):
    def missing(*_):
        pytest.fail("some runs are not stored: make them by the page's command, which may take hours")

    monkeypatch.setattr("betacores.experiments.runner.multiprocessing.get_context", missing)
    shutil.copytree(RESULTS / name, tmp_path / name)
    (tmp_path / name / "README.md").unlink()
    stored = {file.name: file.read_bytes() for file in (RESULTS / name).glob("*.jsonl")}
    experiment.reproduce(tmp_path / name)
    # Nothing had to be computed again, so the stored runs are those of the default command.
    assert {file.name: file.read_bytes() for file in (tmp_path / name).glob("*.jsonl")} == stored
    for page in ("README.md", "table.csv"):
        if (RESULTS / name / page).exists():
            assert (tmp_path / name / page).read_text() == (RESULTS / name / page).read_text()


def test_aims_of_pursuit_are_reached():
    page = (RESULTS / "pursuit" / "README.md").read_text(encoding="utf-8")
    assert page.count(": reached, ") >= 10
    assert "not reached" not in page


def test_stored_figures_of_scale_make_the_stored_page(monkeypatch):
    monkeypatch.syspath_prepend(str(RESULTS.parents[1] / "benchmarks"))
    scale_rows = importlib.import_module("scale_rows")
    assert scale_rows.whole_page(RESULTS / "scale") == (RESULTS / "scale" / "README.md").read_text(encoding="utf-8")


def test_stored_errors_of_the_families_make_the_stored_page():
    script = RESULTS.parent.parent / "benchmarks" / "families.py"
    spec = importlib.util.spec_from_file_location("families", script)
    families = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(families)
    stored = json.loads((RESULTS / "families" / "families.json").read_text(encoding="utf-8"))
    assert families.page(stored) == (RESULTS / "families" / "README.md").read_text(encoding="utf-8")
    assert {name.split(",")[0] for name in families.FAMILIES} == set(MODELS)
