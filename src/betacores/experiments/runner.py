"""Many independent runs: spread over the cores, and kept on disk so that a broken experiment goes on where it was.

A task is a dictionary of plain values, and so is its result. One single-threaded process a core is faster than one
process of many threads; the processes are fresh ones, since JAX's threads do not survive a fork.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from betacores.cores import cores, keep_to_one_core

Task = dict[str, Any]


def run_all(
    function: Callable[[Task], Task],
    tasks: list[Task],
    store: Path,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Task]:
    """Return every task joined with its result, in order; results found in the store are not computed again.

    Parameters
    ----------
    function
        A function of a module, so that other processes can find it.
    tasks
        What to compute.
    store
        A file of one JSON line a finished task.
    jobs
        Number of processes; by default one a core.
    progress
        Called with the number of finished tasks and their total.
    """
    done = _read(store)
    missing = [task for task in tasks if _name(task) not in done]
    if missing:
        context = multiprocessing.get_context("spawn")
        workers = min(jobs or len(cores()), len(missing))
        cores_left = context.SimpleQueue()
        for number in range(workers):
            cores_left.put(number)
        with context.Pool(workers, _settle, (cores_left,)) as pool, store.open("a", encoding="utf-8") as sink:
            finished = len(tasks) - len(missing)
            for task, result in pool.imap_unordered(_Call(function), missing):
                done[_name(task)] = result
                sink.write(json.dumps({"task": task, "result": result}) + "\n")
                sink.flush()
                finished += 1
                if progress is not None:
                    progress(finished, len(tasks))
    return [{**task, **done[_name(task)]} for task in tasks]


class OnFiles(NamedTuple):
    """An experiment on data files: its tasks, what runs one, which data set a task needs, and how many trials it has.

    What it writes is made by the modules called like it, with `_page` and `_figures` behind the name.
    """

    name: str
    tasks: Callable[[int, int, bool], list[Task]]
    run: Callable[[Task], Task]
    data_of: Callable[[Task], str]
    trials: int

    def reproduce(
        self,
        out: Path,
        *,
        trials: int | None = None,
        seed: int = 0,
        quick: bool = False,
        jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Path]:
        """Run the experiment and write page, table and figures; finished runs of an earlier attempt are kept."""
        from betacores.datasets.files import find

        page, figures = (import_module(f"betacores.experiments.{self.name}_{part}") for part in ("page", "figures"))
        trials = self.trials if trials is None else trials
        tasks, store = self.tasks(trials, seed, quick), out / "runs.jsonl"
        # A file that is missing is told before hours of work, not in their midst.
        for name in dict.fromkeys(self.data_of(task) for task in unfinished(tasks, store)):
            find(name)
        out.mkdir(parents=True, exist_ok=True)
        # The quick run is nearly all compilation: two processes would do it twice.
        jobs = jobs or (1 if quick else None)
        results = run_all(self.run, tasks, store, jobs=jobs, progress=progress)
        return [*page.write(out, results, trials, seed, quick), *figures.draw(out, results)]


def unfinished(tasks: list[Task], store: Path) -> list[Task]:
    """Return the tasks without a result in the store."""
    done = _read(store)
    return [task for task in tasks if _name(task) not in done]


class _Call:
    """A function that returns its argument too; a class, since other processes must be able to rebuild it."""

    def __init__(self, function: Callable[[Task], Task]):
        self.function = function

    def __call__(self, task: Task) -> tuple[Task, Task]:
        return task, self.function(task)


def _settle(cores_left: Any) -> None:
    keep_to_one_core(cores_left.get())


def _name(task: Task) -> str:
    return json.dumps(task, sort_keys=True)


def _read(store: Path) -> dict[str, Task]:
    if not store.exists():
        return {}
    # A run that was killed may have left half a line, always the last.
    lines = [line for line in store.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
    store.write_text("".join(lines), encoding="utf-8")
    records = [json.loads(line) for line in lines]
    return {_name(record["task"]): record["result"] for record in records}
