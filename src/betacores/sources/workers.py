"""The workers of a cluster: that there are some, and that they run what this process does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client

# Seconds that workers have to say what they run.
ANSWER = 60.0


def check_workers(client: Client) -> None:
    """Complain if there is no worker, or one without this package or with another version of it."""
    from betacores import __version__

    if client.status != "running":
        raise ConnectionError(
            f"client: the cluster cannot be reached (the client is {client.status}); start one, and try again."
        )
    try:
        client.wait_for_workers(1, timeout=ANSWER)
    except TimeoutError:
        raise ConnectionError(
            f"client: the cluster has no worker, not within {ANSWER:.0f} seconds; start some."
        ) from None
    try:
        # What `client.run` does, with a limit to the wait.
        answers = client.sync(client._run, _version, on_error="return", callback_timeout=ANSWER)
    except TimeoutError:
        raise ConnectionError(
            f"client: a worker does not answer, not within {ANSWER:.0f} seconds; look at the cluster's dashboard."
        ) from None
    for worker, answer in answers.items():
        if answer != __version__:
            said = f"betacores {answer}" if isinstance(answer, str) else "no betacores"
            raise RuntimeError(
                f"client: the worker {worker} has {said}, this process {__version__}; install the same there."
            )


def _version() -> str:
    import betacores

    return betacores.__version__
