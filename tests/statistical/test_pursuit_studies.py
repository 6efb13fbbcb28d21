"""What the page on pursuit claims, with as many seeds: medians, and no seed far from them."""

import numpy as np
import pytest

from betacores.experiments.pursuit import PAPER_BETA, run

pytestmark = pytest.mark.slow
SEEDS = range(10)


def runs(**task):
    return [run({"study": "test", "seed": seed, **task}) for seed in SEEDS]


@pytest.mark.parametrize("fraction", [0.0, 0.15, 0.30, 0.45])
@pytest.mark.parametrize(("beta", "most"), [(PAPER_BETA, 0.5), ("auto", 1.0)])
def test_gaussian_example(fraction, beta, most):
    found = runs(model="gaussian", kind="cluster at 10", fraction=fraction, beta=beta)
    assert np.median([r["coreset"] for r in found]) <= most
    assert max(r["coreset"] for r in found) <= 2 * most
    assert max(abs(r["contamination"] - fraction) for r in found) <= 0.02
    assert not any(r["outliers"] for r in found)


@pytest.mark.parametrize(("fraction", "most"), [(0.0, 0.002), (0.1, 0.005), (0.2, 0.005), (0.3, 0.01)])
def test_logistic_regression_with_the_papers_corruption(fraction, most):
    found = runs(model="logistic", kind="the paper's corruption", fraction=fraction, beta="auto")
    assert np.median([r["clean"] - r["coreset"] for r in found]) <= most


@pytest.mark.parametrize("kind", ["cluster at 1e6", "scatter", "Cauchy cloud"])
@pytest.mark.parametrize("fraction", [0.05, 0.45])
def test_far_outliers_of_any_kind_are_left_behind(kind, fraction):
    found = runs(model="gaussian", kind=kind, fraction=fraction, beta="auto")
    assert np.median([r["coreset"] for r in found]) <= 1


@pytest.mark.parametrize("fraction", [0.1, 0.4])
def test_shifted_responses_are_left_behind(fraction):
    found = runs(model="linear", kind="response shift of 10 sd", fraction=fraction, beta="auto")
    assert np.median([r["coreset"] for r in found]) <= 1.5
    assert max(abs(r["contamination"] - fraction) for r in found) <= 0.03


def test_a_start_made_of_outliers_does_no_harm():
    task = {"model": "gaussian", "kind": "cluster at 10", "fraction": 0.3, "beta": "auto"}
    scratch, outliers = runs(**task), runs(**task, init=True)
    assert np.median([r["coreset"] for r in outliers]) <= np.median([r["coreset"] for r in scratch]) + 0.05
    assert not any(r["outliers"] for r in outliers)
