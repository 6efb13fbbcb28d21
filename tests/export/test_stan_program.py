"""The Stan programs are right: their syntax by Stan's own compiler, their draws (slow) by Stan itself."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy import special, stats

NAMES = ["mean, own prior", "linear, own prior", "logistic through zero"]
FURTHER = ["softmax", "poisson", "dispersed", "known dispersion", "flipped", "known rate"]


@pytest.mark.filterwarnings("ignore:path is deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", [*NAMES, *FURTHER])
def test_the_compiler_takes_the_program(cases, name):
    compiler = pytest.importorskip("httpstan.compile", reason="Stan's compiler comes with httpstan, which is not here.")
    code, warnings = compiler.compile(cases[name].coreset.to_stan()[0], "program")
    assert "namespace" in code
    assert not warnings


@pytest.mark.parametrize("name", [*NAMES, *FURTHER])
def test_data_are_plain_and_give_the_density(cases, name):
    """The model's formulas with the data of the program, computed here, are the log-posterior."""
    case = cases[name]
    code, data = case.coreset.to_stan()
    data = {key: np.asarray(value) for key, value in json.loads(json.dumps(data, allow_nan=False)).items()}
    assert all(f" {key};" in code for key in data)
    assert "target += w[n] *" in code
    phi = np.random.default_rng(0).normal(size=(3, data["P"]))
    theta = data["prior_mean"] + phi @ data["prior_scale"].T
    if "x" in data:
        white = np.linalg.solve(data["spread"], (data["x"] - theta[:, None, :])[..., None])[..., 0]
        each = -0.5 * (white**2).sum(-1)
    elif "noise" in data:
        each = -0.5 * ((data["y"] - theta @ data["z"].T) / data["noise"]) ** 2
    elif "K" in data:
        logits = np.einsum("sqk,nq->snk", theta.reshape(3, data["K"] - 1, data["Q"]).swapaxes(1, 2), data["z"])
        whole = np.concatenate([np.zeros((3, len(data["z"]), 1)), logits], axis=2)
        each = special.log_softmax(whole, axis=2)[:, np.arange(len(data["y"])), data["y"] - 1]
    elif "log_exposure" in data:
        mean = np.exp(data["log_exposure"] + theta[:, : data["z"].shape[1]] @ data["z"].T)
        size = 1 / data["dispersion"] if "dispersion" in data else np.exp(-theta[:, -1:])
        each = stats.nbinom.logpmf(data["y"], size, size / (size + mean))
        each = stats.poisson.logpmf(data["y"], mean) if name == "poisson" else each
    elif name in ("flipped", "known rate"):
        rate = data.get("rate", 0.5 * special.expit(theta[:, -1:]))
        true = special.expit(theta[:, : data["z"].shape[1]] @ data["z"].T)
        observed = rate + (1 - 2 * rate) * true
        each = np.where(data["y"] == 1, np.log(observed), np.log(1 - observed))
    else:
        eta = theta @ data["z"].T
        each = data["y"] * eta - np.logaddexp(0, eta)
    found = each @ data["w"] - 0.5 * (phi**2).sum(1)
    np.testing.assert_allclose(found - found[0], case.loss(theta[0]) - case.loss(theta), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [*NAMES, *FURTHER, "mean", "mean, by column", "linear", "logistic"])
def test_program_reads_the_data_from_the_folder(cases, name, tmp_path):
    """All of the program but the sampling: what it would hand to Stan is what `to_stan` gives."""
    coreset = cases[name].coreset
    coreset.save(tmp_path / "here")
    before, drawing = coreset.snippet("stan", tmp_path / "here").split("\nposterior = stan.build(program, data=data")
    assert "sample(num_chains=4" in drawing
    names: dict = {}
    exec(before.replace("import stan\n", ""), names)
    code, data = coreset.to_stan()
    assert names["program"].strip() == code.strip()
    assert names["data"].keys() == data.keys()
    for key, value in data.items():
        np.testing.assert_allclose(names["data"][key], value, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *FURTHER])
def test_stan_draws_from_the_posterior(cases, name, tmp_path):
    pytest.importorskip("stan", reason="PyStan is not installed.")
    coreset = cases[name].coreset
    coreset.save(tmp_path / "coreset")
    text = coreset.snippet("stan") + '\nnp.save("draws.npy", theta)\n'
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    draws, (mean, deviation) = np.load(tmp_path / "draws.npy"), cases[name].moments
    assert draws.shape == (4000, len(mean))
    assert np.all(np.abs(draws.mean(0) - mean) < 5 * deviation / np.sqrt(1000))
    assert np.all(np.abs(draws.std(0) / deviation - 1) < 5 / np.sqrt(2 * 1000))
