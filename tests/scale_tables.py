"""Tables of more than two canonical blocks, and what it means that two coresets of one are the same."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS, NAMES = 140_001, ["a", "b", "c"]
# Quick to compile and to run; what is compared is where the rows come from.
QUICK = {"size": 8, "beta": 0.5, "guard": None, "candidates": 200, "exchanges": 0, "polish": 0}


def logistic_table(rows=ROWS, kind=np.float32, seed=0):
    """Covariates and labels 0 and 1, a twentieth of them flipped; some rows far away."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3)).astype(kind)
    y = rng.random(rows) < 1 / (1 + np.exp(-(x @ [1.0, -1.0, 0.5])))
    x[rng.random(rows) < 0.02, 1] += 30
    return x, (y ^ (rng.random(rows) < 0.05)).astype(np.int64)


def arrow_table(x, **more):
    return pa.table({**{name: x[:, j] for j, name in enumerate(NAMES)}, **more})


def written(table, path, row_group_size=30_011):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def in_pieces(table, folder, cuts):
    """Write a table as several files, of which no canonical block respects the ends."""
    ends = [0, *cuts, table.num_rows]
    return [
        written(table.slice(start, stop - start), folder / f"part-{k:03d}.parquet", 7_001 + 10_000 * k)
        for k, (start, stop) in enumerate(itertools.pairwise(ends))
    ]


def assert_same(one, other):
    """The same rows and scores bit for bit, and the same weights but for rounding."""
    assert np.array_equal(one.indices, other.indices)
    assert np.array_equal(np.asarray(one.X), np.asarray(other.X))
    assert (one.y is None and other.y is None) or np.asarray(one.y).tolist() == np.asarray(other.y).tolist()
    assert np.array_equal(np.asarray(one.scores), np.asarray(other.scores))
    for mine, theirs in [(one.covariate_scores, other.covariate_scores)]:
        assert (mine is None and theirs is None) or np.array_equal(np.asarray(mine), np.asarray(theirs))
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-5)
    assert one.contamination == other.contamination
    assert one.beta == other.beta


def assert_identical(one, other):
    """Bit for bit, in everything."""
    assert_same(one, other)
    assert np.array_equal(one.weights, other.weights)
