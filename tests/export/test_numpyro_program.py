"""The NumPyro program and model draw from the posterior of the coreset."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

pytest.importorskip("numpyro", reason="NumPyro is an optional package (betacores[numpyro]).")
pytestmark = pytest.mark.slow

NAMES = ["mean, own prior", "linear", "logistic, own prior", "softmax", "poisson", "dispersed", "flipped"]
FURTHER = ["softmax", "poisson", "dispersed", "known dispersion", "flipped", "known rate"]
# One interpreter runs all programs, as a person would run each, and keeps their draws.
RUN_ALL = """
import runpy, sys
import numpy as np
for number in range({count}):
    found = runpy.run_path(f"program{{number}}.py")
    np.save(f"draws{{number}}.npy", found["theta"])
assert "betacores" not in sys.modules
"""


@pytest.fixture(scope="module")
def programs(cases, tmp_path_factory):
    """What the programs of all cases drew and printed."""
    folder = tmp_path_factory.mktemp("programs")
    for number, name in enumerate(NAMES):
        coreset = cases[name].coreset
        coreset.save(folder / f"saved {number}")
        (folder / f"program{number}.py").write_text(coreset.snippet("numpyro", f"saved {number}"), encoding="utf-8")
    (folder / "run_all.py").write_text(RUN_ALL.format(count=len(NAMES)))
    quick = {**os.environ, "JAX_DISABLE_MOST_OPTIMIZATIONS": "true"}
    done = subprocess.run([sys.executable, "run_all.py"], cwd=folder, env=quick, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: np.load(folder / f"draws{number}.npy") for number, name in enumerate(NAMES)}, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_program_draws_from_the_posterior(cases, programs, name):
    agrees(programs[0][name], *cases[name].moments)


def test_program_prints_one_line_a_parameter(cases, programs):
    for name in NAMES:
        for parameter in cases[name].coreset.parameter_names:
            assert f"{parameter}: " in programs[1]
    assert programs[1].count(" ± ") == sum(len(cases[name].prior_mean) for name in NAMES)


def test_exact_posterior_and_program_agree(cases, programs):
    exact = cases["linear"].coreset.posterior(20_000)
    agrees(programs[0]["linear"], exact.mean, np.sqrt(np.diag(exact.covariance)))


@pytest.mark.parametrize(
    "name", ["mean, own prior", "linear, own prior", "logistic through zero", "table units", *FURTHER]
)
def test_model_has_the_density_of_the_posterior(cases, name):
    """Differences of the log-density between parameters are those of the posterior, constants aside."""
    from numpyro.infer.util import log_density

    case = cases[name]
    model = case.coreset.to_numpyro()
    factor = np.linalg.cholesky(case.prior_covariance)
    phis = np.random.default_rng(0).normal(size=(4, len(factor)))
    found = np.asarray(jax.jit(jax.vmap(lambda phi: log_density(model, (), {}, {"phi": phi})[0]))(phis))
    expected = np.array([-case.loss(case.prior_mean + factor @ phi) for phi in phis])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-4, atol=1e-3)
    trace = parameters(model, phis[0])
    np.testing.assert_allclose(trace, case.prior_mean + factor @ phis[0], rtol=1e-5)


def parameters(model, phi):
    from numpyro import handlers

    with handlers.block(), handlers.trace() as trace, handlers.substitute(data={"phi": phi}), handlers.seed(rng_seed=0):
        model()
    return trace["theta"]["value"]


def agrees(draws, mean, deviation):
    """Four chains of a thousand: at least a thousand independent draws' worth."""
    assert draws.shape == (4000, len(mean))
    assert np.all(np.abs(draws.mean(0) - mean) < 5 * deviation / np.sqrt(1000))
    assert np.all(np.abs(draws.std(0) / deviation - 1) < 5 / np.sqrt(2 * 1000))
