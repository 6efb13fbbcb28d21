"""Which Dask cluster computes: the one that was handed in, the current one, or one on this machine for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.cores import cores
from betacores.sources.cluster import in_order
from betacores.sources.numbers import Numbers

if TYPE_CHECKING:
    from distributed import Client

    from betacores.coreset import Coreset

# Seconds to wait for a cluster to answer, or to start.
ANSWER = 30.0
WORKER_ROWS = 1 << 20


class Computing(NamedTuple):
    """A cluster, and whether numbers are not to be left there: it goes away with the run, or is not the current one."""

    client: Client
    passing: bool


@contextmanager
def computing_on(client: Any) -> Iterator[Computing]:
    """Provide a cluster.

    Parameters
    ----------
    client
        A `distributed.Client`; a cluster; the address of a scheduler; or None for the current client, or else a
        cluster on this machine, with one process for each core, that ends with the block.
    """
    try:
        import distributed
    except ImportError:
        raise ImportError(
            "data: a Dask collection needs dask and distributed: pip install 'betacores[dask]'."
        ) from None
    try:
        current = distributed.default_client()
    except ValueError:
        current = None
    client = current if client is None else client
    if isinstance(client, (str, distributed.deploy.Cluster)):
        try:
            found = distributed.Client(client, timeout=ANSWER, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
            raise ConnectionError(
                f"client: the cluster {client} cannot be reached ({reason}); is it running?"
            ) from None
        with found:
            yield Computing(found, True)
    elif client is not None and not isinstance(client, distributed.Client):
        raise TypeError(f"client: expected a distributed.Client, a cluster or an address, got {client!r}.")
    elif client is not None:
        # Collections on another one than the current are nothing that Dask would compute by itself.
        yield Computing(client, client is not current)
    else:
        with (
            distributed.LocalCluster(n_workers=len(cores()), threads_per_worker=1, dashboard_address=":0") as cluster,
            distributed.Client(cluster, timeout=ANSWER, set_as_default=False) as own,
        ):
            yield Computing(own, True)


def brought_here(coreset: Coreset, client: Client) -> Coreset:
    """Return a coreset whose numbers of all rows are in files of this machine, and need the cluster no longer."""
    scores, trust = (_in_file(numbers, client) for numbers in (coreset.scores, coreset.covariate_scores))
    return replace(coreset, scores=scores, covariate_scores=trust)


def _in_file(numbers: Any, client: Client) -> Any:
    if numbers is None or isinstance(numbers, np.ndarray):
        return numbers
    count = len(numbers)
    ranges = range(0, count, WORKER_ROWS)
    # One at a time: they need not all be in memory.
    parts = (next(in_order(client, [client.compute(numbers[k : k + WORKER_ROWS])])) for k in ranges)
    return Numbers(None, count, WORKER_ROWS).filled(lambda first: parts).mapped()
