"""The front door: what is accepted, and what must not change the result."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import betacores as bc
from betacores.constructions.incremental import _advance
from betacores.grid import _block_derivatives
from betacores.inputs import read_problem
from betacores.pilot import pilot
from betacores.sources import ArraySource

ROWS, COLUMNS, SIZE = 300, 3, 6
QUICK = {"size": SIZE, "draws": 30, "steps": 20, "batch_select": 100, "batch_optimise": 50}
PUBLISHED = {"method": "beta-cores", **QUICK}
FULL_BATCH = {**PUBLISHED, "batch_select": None, "batch_optimise": None}

rng = np.random.default_rng(0)
X = rng.normal(0.5, 1, (ROWS, COLUMNS))
REAL = X @ [1.0, -2.0, 0.5] + rng.normal(size=ROWS)
DIRTY = X.copy()
DIRTY[::7] += 8
TRUTH = REAL > 0
RESPONSES = {"gaussian-mean": None, "linear": REAL, "logistic": TRUTH}


def same(a, b, rtol=0.0):
    """Tell whether two coresets hold the same rows with the same weights, in the same order."""
    return a.indices.tolist() == b.indices.tolist() and np.allclose(a.weights, b.weights, rtol=rtol, atol=0)


class TestAccepted:
    """Tables of all kinds; only read, not summarised."""

    @pytest.mark.parametrize(
        "table",
        [
            X.tolist(),
            np.asfortranarray(X),
            X.astype(object),
            pd.DataFrame(X, columns=["a", "b", "c"]),
            pl.DataFrame(X, schema=["a", "b", "c"]),
            pa.table({name: X[:, j] for j, name in enumerate("abc")}),
            pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(ROWS)[::-1]),
        ],
        ids=["lists", "Fortran order", "objects", "pandas", "polars", "arrow", "odd index"],
    )
    def test_table_is_read_as_it_is(self, table):
        problem = read_problem(table, None, "auto")
        assert np.array_equal(problem.x, X)
        assert problem.source.columns in (["a", "b", "c"], ["x0", "x1", "x2"])
        np.testing.assert_array_equal(problem.source.x, X.astype(np.float32))

    def test_frame_whose_columns_are_numbered(self):
        """What `pandas.DataFrame(array)` gives."""
        problem = read_problem(pd.DataFrame(X), None, "auto")
        assert problem.source.columns == ["0", "1", "2"]
        assert np.array_equal(problem.x, X)

    @pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.float32, bool])
    def test_numbers_of_any_kind(self, dtype):
        table = (10 * np.abs(X)).astype(dtype)
        table[0] = 0
        assert np.array_equal(read_problem(table, None, "auto").x, table.astype(np.float64))
        frame = pd.DataFrame(table, columns=["a", "b", "c"])
        assert np.array_equal(read_problem(frame, None, "auto").x, table.astype(np.float64))

    def test_response_as_one_column_is_a_vector(self):
        for y in (REAL.reshape(-1, 1), pd.Series(REAL), pl.Series(REAL), pd.DataFrame({"y": REAL}), REAL.tolist()):
            assert np.array_equal(read_problem(X, y, "linear").y, REAL)

    @pytest.mark.parametrize("y", [REAL.astype(object), pd.Series(REAL, dtype="Float64")])
    def test_real_response_of_objects(self, y):
        assert np.array_equal(read_problem(X, y, "linear").source.y, REAL.astype(np.float32))

    def test_model_is_chosen_from_the_response(self):
        assert [read_problem(X, y, "auto").model.name for y in RESPONSES.values()] == list(RESPONSES)
        assert all(read_problem(X, y, "auto").notes for y in RESPONSES.values())


def test_swapped_labels_are_the_mirrored_problem():
    """With β = 0 and a symmetric prior, θ → −θ: scores are those of the same rows."""
    there, back = (bc.summarize(X, y, method="uniform", size=SIZE) for y in (TRUTH, ~TRUTH))
    np.testing.assert_allclose(there.scores, back.scores, rtol=1e-3)


@pytest.mark.parametrize("model", RESPONSES)
def test_order_of_the_rows_changes_neither_mode_nor_scores(model):
    order = np.random.default_rng(1).permutation(ROWS)
    y = RESPONSES[model]
    there = bc.summarize(DIRTY, y, model=model, method="uniform", size=SIZE)
    back = bc.summarize(DIRTY[order], None if y is None else y[order], model=model, method="uniform", size=SIZE)
    np.testing.assert_allclose(back.scores, there.scores[order], rtol=2e-3, atol=1e-6)
    assert back.contamination == pytest.approx(there.contamination, abs=1e-4)


def test_order_of_the_rows_does_not_change_the_pilot():
    order = np.random.default_rng(1).permutation(ROWS)
    found = [
        pilot(bc.models.GaussianMean(), ArraySource(x.astype(np.float32)), 0.3, jax.random.key(0)).theta
        for x in (DIRTY, DIRTY[order])
    ]
    np.testing.assert_allclose(*found, atol=1e-4)


@pytest.mark.parametrize("model", ["gaussian-mean", "logistic"])
def test_order_of_the_rows_does_not_change_a_full_batch_coreset(model):
    """Without minibatches only the draws are random, and they do not depend on where a row stands."""
    order = np.random.default_rng(2).permutation(ROWS)
    y = RESPONSES[model]
    there = bc.summarize(X, y, model=model, **FULL_BATCH)
    back = bc.summarize(X[order], None if y is None else y[order], model=model, **FULL_BATCH)
    assert order[back.indices].tolist() == there.indices.tolist()
    np.testing.assert_allclose(back.weights, there.weights, rtol=2e-2)


def test_frame_and_array_give_the_same_coreset():
    plain = bc.summarize(X, TRUTH, **PUBLISHED)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for data, y in [(frame, pd.Series(TRUTH)), (pl.from_pandas(frame), pl.Series(TRUTH)), (X.tolist(), TRUTH.tolist())]:
        assert same(bc.summarize(data, y, **PUBLISHED), plain)


@pytest.mark.parametrize("model", RESPONSES)
def test_sparse_vi_is_beta_cores_without_beta(model):
    y = RESPONSES[model]
    assert same(
        bc.summarize(X, y, model=model, method="sparse-vi", **QUICK),
        bc.summarize(X, y, model=model, method="beta-cores", beta=0, **QUICK),
    )


def test_one_compilation_serves_all_tables_of_a_shape():
    """Another table of as many rows and columns, with outliers elsewhere, is another input, not another program."""
    compiled = []
    for seed in range(3):
        x = X.copy()
        x[np.random.default_rng(seed).permutation(ROWS)[: 10 * (seed + 1)]] += 20
        bc.summarize(x, seed=seed, **PUBLISHED)
        compiled.append((_advance.compiled._cache_size(), _block_derivatives.compiled._cache_size()))
    assert compiled == compiled[:1] * 3


def test_input_is_left_as_it_was():
    x, y = X.copy(), REAL.copy()
    x.setflags(write=False)
    y.setflags(write=False)
    bc.summarize(x, y, **PUBLISHED)
    assert np.array_equal(x, X)
    assert np.array_equal(y, REAL)


class NoIntegral(bc.models.Model):
    """A Gaussian mean whose author gave no power integral."""

    name = "no-integral"

    def parameter_count(self, columns):
        return columns

    def log_likelihood(self, theta, row):
        return -0.5 * (row.x - theta) @ (row.x - theta)

    def log_prior(self, theta):
        return -0.5 * theta @ theta


WITHOUT = {NoIntegral(): {}, bc.models.GaussianMean(): {"beta": 0.0}}


def test_model_without_power_integral_can_be_used_classically():
    coreset = bc.summarize(X, model=NoIntegral(), method="sparse-vi", **QUICK)
    built_in = bc.summarize(X, model="gaussian-mean", method="sparse-vi", **QUICK)
    assert same(coreset, built_in, rtol=1e-2)
    assert np.array_equal(coreset.scores, np.ones(ROWS))
    assert coreset.contamination == 0


@pytest.mark.parametrize("method", ["pursuit", "beta-cores"])
def test_model_without_power_integral_says_so(method):
    with pytest.raises(ValueError, match=r"beta.*no-integral.*power integral"):
        bc.summarize(X, model=NoIntegral(), beta=0.5, method=method, size=SIZE)


def test_model_without_power_integral_is_read_classically_when_beta_is_left_open():
    coreset, built_in = (bc.summarize(X, model=model, size=SIZE, **beta) for model, beta in WITHOUT.items())
    assert coreset.beta == 0
    assert same(coreset, built_in, rtol=1e-2)


SCRIPT = """
import json, sys
import jax
import jax.numpy as jnp
import numpy as np
import betacores as bc

before = dict(jax.config.values)
rng = np.random.default_rng(0)
x = rng.normal(0.5, 1, (300, 3))
y = x @ [1.0, -2.0, 0.5] + rng.normal(size=300) > 0
quick = {"size": 6, "draws": 30, "steps": 20, "batch_select": 100, "batch_optimise": 50}
coreset = bc.summarize(x, y, seed=3, method="beta-cores", **quick)
found = [coreset.indices.tolist(), coreset.weights.tolist(), coreset.scores.tolist()]
left_alone = before == dict(jax.config.values)
json.dump({"found": found, "left_alone": left_alone, "precision": str(jnp.ones(1).dtype)}, sys.stdout)
"""


def environment(**more):
    source = str(Path(bc.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": source, **more}


def fresh_process(**more):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment(**more), capture_output=True, text=True, check=True, timeout=300
    )
    return json.loads(run.stdout)


def test_same_seed_same_result_in_another_process_and_in_double_precision():
    plain, double = fresh_process(), fresh_process(JAX_ENABLE_X64="1")
    assert double["found"] == plain["found"]
    # The run is in single precision for itself only.
    assert plain["left_alone"]
    assert double["left_alone"]
    assert (plain["precision"], double["precision"]) == ("float32", "float64")
    here = bc.summarize(X, TRUTH, seed=3, **PUBLISHED)
    assert [here.indices.tolist(), here.weights.tolist(), here.scores.tolist()] == plain["found"]


INTERRUPTED = """
import json, signal, sys, warnings
import numpy as np
import betacores as bc

# A shell's background jobs ignore the signal, and so would this process.
signal.signal(signal.SIGINT, signal.default_int_handler)
x = np.random.default_rng(0).normal(size=(300, 3))

def progress(done, total):
    print(done, file=sys.stderr, flush=True)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    coreset = bc.summarize(x, size=200, method="beta-cores", draws=100, steps=3000, progress=progress)
json.dump(
    {
        "done": len(coreset.path.weights),
        "weights": coreset.weights.tolist(),
        "path": list(coreset.path.weights.shape),
        "warnings": [str(w.message) for w in caught],
        "info": coreset.info.warnings,
    },
    sys.stdout,
)
"""


@pytest.mark.faults
def test_interrupt_keeps_what_was_done():
    """Ctrl-C in mid-run: the coreset so far, with a warning."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for line in process.stderr:
            if line.strip() == "3":
                break
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    found = json.loads(out)
    assert 3 <= found["done"] < 200
    assert found["path"][1] <= found["done"] + 1
    assert found["weights"]
    assert all(w > 0 for w in found["weights"])
    for messages in (found["warnings"], found["info"]):
        assert any("Interrupted" in m and f"{found['done']} of 200" in m for m in messages)


def test_interrupt_while_progress_is_shown_keeps_what_was_done():
    """Ctrl-C may as well arrive while the caller's progress bar is being drawn."""

    def progress(done, total):
        if done == 3:
            raise KeyboardInterrupt

    try:
        with pytest.warns(UserWarning, match="Interrupted: 3 of 6"):
            coreset = bc.summarize(X, progress=progress, **PUBLISHED)
    except KeyboardInterrupt:
        pytest.fail("three finished iterations were thrown away")
    whole = bc.summarize(X, **PUBLISHED)
    assert same(coreset, whole.at(3))
    assert len(coreset.path.weights) == 3
