"""Rows on a Dask cluster of two processes: any partitions, the same coreset; and what is wrong is said at once."""

import decimal
import os
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scale_tables import NAMES, QUICK, ROWS, arrow_table, assert_same, in_pieces, logistic_table

import betacores as bc

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")

# Dask's own affairs, when processes come and go.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning:distributed"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
]

X, Y = logistic_table()
WORDS = np.array(["no", "yes"])[Y]
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def from_memory():
    return bc.summarize(X, Y, **QUICK)


def cut(frame, ends):
    """Return a collection of partitions of these lengths, some of them empty."""
    from dask import delayed

    bounds = zip([0, *ends], [*ends, len(frame)], strict=True)
    return dd.from_delayed([delayed(frame.iloc[start:stop]) for start, stop in bounds], meta=frame.iloc[:0])


def test_frame_from_parquet(client, tmp_path, from_memory):
    in_pieces(arrow_table(X, y=Y), tmp_path, [1, 20_000, 66_001, 131_100])
    assert_same(bc.summarize(dd.read_parquet(tmp_path), target="y", client=client, **QUICK), from_memory)


@pytest.mark.parametrize("ends", [[], [10, 10, 65_536, 131_072], [5_000 * k for k in range(1, 28)]], ids=str)
def test_partitions_may_have_any_length(client, from_memory, ends):
    ours = bc.summarize(cut(FRAME, ends), target="y", client=client, **QUICK)
    assert_same(ours, from_memory)
    assert ours.columns == NAMES


@pytest.mark.parametrize("when", ["scores", "at once"])
def test_partitions_that_are_not_made_the_same_way_twice_are_an_error(client, tmp_path, when):
    """Rows chosen by one making of a partition and looked up in another would be other rows."""
    if when == "at once":
        parts = cut(FRAME, [70_000]).map_partitions(lambda part: part.sample(frac=0.9), meta=FRAME.iloc[:0])
        with pytest.raises(ValueError, match=r"data: partition \d has other rows than when it was looked at"):
            bc.summarize(parts, target="y", client=client, **QUICK)
        return
    in_pieces(arrow_table(X, y=Y), tmp_path, [66_001])
    rewritten = []

    def rewrite(stage, *_):
        if stage == when and not rewritten:
            for path in sorted(tmp_path.glob("*.parquet")):
                rewritten.append(path)
                table = pq.read_table(path)
                pq.write_table(table.take(np.arange(len(table))[::-1]), path)

    with pytest.raises(ValueError, match=r"data: partition \d has other rows than when it was looked at"):
        bc.summarize(dd.read_parquet(tmp_path), target="y", client=client, on_pass=rewrite, **QUICK)
    assert rewritten


def test_cells_of_kinds_that_files_may_hold_are_read_as_from_files(client, tmp_path):
    exact = pa.array([decimal.Decimal(f"{value:.3f}") for value in X[:, 0]], pa.decimal128(9, 3))
    labels = pa.array([decimal.Decimal(int(label)) for label in Y], pa.decimal128(3, 0))
    table = pa.table({"a": exact, "b": X[:, 1], "c": X[:, 2], "y": labels})
    pq.write_table(table, tmp_path / "t.parquet")
    ours = bc.summarize(dd.read_parquet(tmp_path), target="y", client=client, **QUICK)
    assert_same(ours, bc.summarize(tmp_path, target="y", **QUICK))
    assert ours.labels.tolist() == [0.0, 1.0]


def test_missing_words_are_named(client):
    frame = FRAME.assign(y=pd.Series(WORDS, dtype="string").where(np.arange(ROWS) != 80_005))
    with pytest.raises(ValueError, match="y: partition 1, row 10005 is missing"):
        bc.summarize(cut(frame, [70_000]), target="y", client=client, **QUICK)


def test_a_cluster_does_for_a_client(client, from_memory):
    ours = bc.summarize(cut(FRAME, [70_000]), target="y", client=client.cluster, **QUICK)
    assert_same(ours, from_memory)
    with pytest.raises(TypeError, match=r"client: expected a distributed\.Client, a cluster or an address, got 5"):
        bc.summarize(cut(FRAME, [70_000]), target="y", client=5, **QUICK)


def test_current_client_is_taken_and_keeps_the_scores(client, from_memory):
    with distributed.Client(client.cluster):
        ours = bc.summarize(cut(FRAME, [70_000]), target="y", **QUICK)
        assert isinstance(ours.scores, da.Array)
        assert_same(ours, from_memory)


@pytest.mark.slow
def test_array(client, from_memory):
    x, y = da.from_array(X, chunks=(33_333, 2)), da.from_array(Y, chunks=50_000)
    assert_same(bc.summarize(x, y, client=client, **QUICK), from_memory)
    assert_same(bc.summarize(x, Y, client=client, **QUICK), from_memory)


@pytest.mark.slow
def test_words_and_the_columns_asked_for(client):
    frame = FRAME.assign(y=WORDS, town="A")
    ours = bc.summarize(cut(frame, [70_000]), target="y", columns=["c", "a"], client=client, **QUICK)
    assert_same(ours, bc.summarize(X[:, [2, 0]], WORDS, **QUICK))
    assert ours.labels.tolist() == ["no", "yes"]


@pytest.mark.slow
def test_guard_chosen_beta_and_progress(client):
    told, settings = [], {**QUICK, "guard": "auto", "beta": "auto"}
    ours = bc.summarize(cut(FRAME, [70_000]), target="y", client=client, on_pass=lambda *n: told.append(n), **settings)
    memory = bc.summarize(X, Y, **settings)
    assert_same(ours, memory)
    assert {stage for stage, _, _ in told} == {"check", *memory.info.passes}
    assert max(rows for stage, rows, _ in told if stage == "survey") == ROWS


@pytest.mark.slow
def test_cluster_of_its_own_when_there_is_none(from_memory):
    ours = bc.summarize(cut(FRAME, [70_000]), target="y", **QUICK)
    assert_same(ours, from_memory)
    # The cluster is gone, and the scores are still there.
    assert isinstance(ours.scores, np.memmap)


class TestCheckpoint:
    """Passes over a cluster are noted down like others."""

    def test_run_that_was_stopped_goes_on(self, client, tmp_path, from_memory):
        frame = cut(FRAME, [30_000, 70_000])

        def stop(stage, rows, total):
            if stage == "survey":
                raise InterruptedError

        given = {"target": "y", "client": client, "checkpoint": tmp_path / "notes", **QUICK}
        with pytest.raises(InterruptedError):
            bc.summarize(frame, on_pass=stop, **given)
        told = []
        assert_same(bc.summarize(frame, on_pass=lambda *now: told.append(now), **given), from_memory)
        assert not any(rows for stage, rows, _ in told if stage == "mode")

    def test_other_rows_are_refused(self, client, tmp_path):
        """Even where they are as many, and cut in the same way."""
        given = {"target": "y", "client": client, "checkpoint": tmp_path / "notes", **QUICK}
        bc.summarize(cut(FRAME, [70_000]), **given)
        other = FRAME.copy()
        other.loc[100_000, "a"] += 1
        with pytest.raises(ValueError, match=r"checkpoint: .* is of another run, which differs in data"):
            bc.summarize(cut(other, [70_000]), **given)


class TestBadInput:
    """Said before any work."""

    @pytest.mark.parametrize(
        ("wrong", "given", "message"),
        [
            ({}, {"target": "z"}, "no column 'z'"),
            ({}, {"target": "y", "columns": ["a", "q"]}, "no column 'q'"),
            ({}, {"target": "y", "y": Y}, "y: for a Dask DataFrame"),
            ({"b": "word"}, {"target": "y"}, "column 'b' is not numeric"),
            ({"b": 7.0}, {"target": "y"}, "constant.*'b'"),
            ({"y": 1}, {"target": "y", "model": "logistic"}, "y: "),
            ({}, {"target": "y", "groups": "a"}, "on a cluster"),
            ({}, {"target": "y", "method": "beta-cores"}, "on a cluster"),
            ({}, {"target": "y", "sample_weight": np.ones(200)}, "on a cluster"),
        ],
        ids=str,
    )
    def test_what_was_handed_in(self, client, wrong, given, message):
        frame = FRAME.iloc[:200].assign(**wrong)
        with pytest.raises(ValueError, match=message):
            bc.summarize(cut(frame, [90]), client=client, **given)

    @pytest.mark.parametrize(("column", "value"), [("b", np.nan), ("c", -np.inf)])
    def test_cells_that_are_no_numbers_are_named(self, client, column, value):
        frame = FRAME.iloc[:200].copy()
        frame.loc[150, column] = value
        with pytest.raises(ValueError, match=rf"partition 1, row 60, column '{column}' is {value}"):
            bc.summarize(cut(frame, [90]), target="y", client=client)

    def test_missing_response(self, client):
        frame = FRAME.iloc[:200].assign(y=[*WORDS[:150], None, *WORDS[151:200]])
        with pytest.raises(ValueError, match="y: partition 1, row 60 is missing"):
            bc.summarize(cut(frame, [90]), target="y", client=client)

    def test_too_few_rows(self, client):
        with pytest.raises(ValueError, match="at least two rows"):
            bc.summarize(cut(FRAME.iloc[:1], []), target="y", client=client)

    def test_responses_of_another_length(self, client):
        with pytest.raises(ValueError, match="y: expected one value for each of the 200 rows"):
            bc.summarize(da.from_array(X[:200], chunks=100), da.from_array(Y[:150], chunks=100), client=client)

    def test_client_for_a_table_in_memory(self, client):
        with pytest.raises(ValueError, match="client: it is for Dask collections"):
            bc.summarize(X, Y, client=client)


class TestNobodyThere:
    """A limit to every wait."""

    @pytest.fixture(autouse=True)
    def short(self, monkeypatch):
        monkeypatch.setattr("betacores.clusters.ANSWER", 1.0)
        monkeypatch.setattr("betacores.sources.workers.ANSWER", 1.5)
        started = time.monotonic()
        yield
        assert time.monotonic() - started < 30

    def test_nobody_at_the_address(self):
        with pytest.raises(ConnectionError, match=r"client: the cluster tcp://127.0.0.1:9 cannot be reached"):
            bc.summarize(cut(FRAME, []), target="y", client="tcp://127.0.0.1:9")

    def test_client_that_was_closed(self, client):
        other = distributed.Client(client.cluster, set_as_default=False)
        other.close()
        with pytest.raises(ConnectionError, match=r"client: the cluster cannot be reached .*closed"):
            bc.summarize(cut(FRAME, []), target="y", client=other)

    def test_no_workers_and_workers_without_the_package(self):
        with (
            distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            with pytest.raises(ConnectionError, match="client: the cluster has no worker"):
                bc.summarize(cut(FRAME, []), target="y", client=client)
            start = "import sys; sys.modules['betacores'] = None; from distributed.cli.dask_worker import main; main()"
            options = ["--no-nanny", "--no-dashboard", "--nthreads", "1"]
            worker = subprocess.Popen(
                [sys.executable, "-c", start, cluster.scheduler_address, *options],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stderr=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
            try:
                client.wait_for_workers(1, timeout=30)
                with pytest.raises(RuntimeError, match=r"client: the worker tcp://.* has no betacores.*install"):
                    bc.summarize(cut(FRAME, []), target="y", client=client)
            finally:
                worker.kill()
                worker.wait()
