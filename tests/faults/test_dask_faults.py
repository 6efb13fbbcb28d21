"""Workers that are killed in mid-pass change nothing but the time; a cluster that dies altogether is an error."""

import os
import random
import signal
import threading
import time
from contextlib import contextmanager

import pytest
from scale_tables import NAMES, QUICK, arrow_table, assert_same, in_pieces, logistic_table

import betacores as bc

distributed = pytest.importorskip("distributed")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = [
    pytest.mark.faults,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore:.*:UserWarning:distributed"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
]

X, Y = logistic_table()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    in_pieces(arrow_table(X, y=Y), folder, [20_000 * k for k in range(1, 7)])
    return folder


@pytest.fixture(scope="module")
def undisturbed():
    return bc.summarize(X, Y, **QUICK, seed=3)


class Killer:
    """Kills a worker at the so-manieth call of each stage it is told."""

    def __init__(self, client, moments):
        self.client, self.moments, self.calls, self.killed = client, moments, {}, 0

    def __call__(self, stage, rows, total):
        self.calls[stage] = self.calls.get(stage, 0) + 1
        if (stage, self.calls[stage]) in self.moments:
            # A little later, when the workers are at the pass that begins or goes on here.
            threading.Timer(random.Random(self.killed).uniform(0, 0.05), self.kill).start()
            time.sleep(0.1)

    def kill(self):
        workers = sorted(self.client.run(os.getpid).items())
        os.kill(workers[self.killed % len(workers)][1], signal.SIGKILL)
        self.killed += 1


def test_workers_killed_in_mid_pass_change_nothing(rows, undisturbed):
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        killer = Killer(client, {("mode", 1), ("scores", 1), ("survey", 2)})
        found = bc.summarize(dd.read_parquet(rows), target="y", client=client, on_pass=killer, **QUICK, seed=3)
        assert killer.killed == 3
    assert_same(found, undisturbed)


@contextmanager
def small_cluster():
    """Give a cluster of one worker, its client, and a table of three partitions."""
    frame = dd.from_pandas(pd.DataFrame(X[:2000], columns=NAMES).assign(y=Y[:2000]), npartitions=3)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client, frame


def test_cluster_without_workers_in_mid_run_is_given_up(monkeypatch):
    monkeypatch.setattr("betacores.sources.cluster.NO_WORKERS", 1.0)
    with small_cluster() as (cluster, client, frame):

        def retire(stage, rows, total):
            if stage == "mode":
                cluster.scale(0)
                while client.scheduler_info(n_workers=-1)["workers"]:
                    time.sleep(0.05)

        started = time.monotonic()
        with pytest.raises(TimeoutError, match="client: the cluster has had no worker for 1 seconds; start some"):
            bc.summarize(frame, target="y", client=client, on_pass=retire, **QUICK)
        assert time.monotonic() - started < 60


def test_cluster_that_is_closed_in_mid_run_is_an_error():
    with small_cluster() as (cluster, client, frame):

        def close(stage, rows, total):
            if stage == "mode":
                cluster.close(timeout=10)

        with pytest.raises(ConnectionError, match="client: the connection to the cluster is lost"):
            bc.summarize(frame, target="y", client=client, on_pass=close, **QUICK)


def test_worker_that_does_not_answer_is_an_error(monkeypatch):
    monkeypatch.setattr("betacores.sources.workers.ANSWER", 2.0)
    with small_cluster() as (_, client, frame):
        pid = next(iter(client.run(os.getpid).values()))
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(ConnectionError, match="client: a worker does not answer"):
                bc.summarize(frame, target="y", client=client, **QUICK)
        finally:
            os.kill(pid, signal.SIGCONT)
