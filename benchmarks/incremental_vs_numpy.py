"""Speed of the compiled Algorithm 1 against plain NumPy and SciPy, and agreement with them.

Runs both on the same tables with the same settings, each in a process of its own on one core, and writes a page:

    python benchmarks/incremental_vs_numpy.py [--quick] [--out docs/results/speed]

"plain" is the loop as a researcher writes it from the paper; "tuned" is the same by hand with warm starts and shared
powers, the strictest yardstick we could think of. See `reference_numpy.py`.
"""

from __future__ import annotations

import time

STARTED = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402
import multiprocessing  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

SETTINGS = {"draws": 100, "steps": 500, "batch_select": 1000, "batch_optimise": 200}
PROBLEMS: dict[str, dict[str, Any]] = {
    "logistic": {"size": 100, "beta": 0.5, "sampler_target": "beta"},
    "gaussian": {"size": 200, "beta": 0.01, "sampler_target": "beta"},
    "gaussian-exact": {"size": 200, "beta": 0.01, "sampler_target": "classical"},
}
AGREEMENT_SEEDS = range(5)
AGREEMENT_SIZE = 20


def make(problem: str) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Return rows, responses (or None) and which rows are clean."""
    from betacores.datasets import contaminated_gaussian

    if problem != "logistic":
        table = contaminated_gaussian(0, 0.3)
        return table.x, None, ~table.outlier
    random = np.random.default_rng(0)
    rows, columns = 30_000, 10
    x, theta = random.normal(size=(rows, columns)), random.normal(size=columns)
    y = np.where(random.uniform(size=rows) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0)
    noisy, flipped = random.permutation(rows)[:3000], random.permutation(rows)[:3000]
    x[np.ix_(noisy, random.permutation(columns)[:5])] = random.normal(0, 5, (3000, 5))
    y[flipped] *= -1
    clean = np.ones(rows, bool)
    clean[noisy] = clean[flipped] = False
    return x, y, clean


def run(contender: str, problem: str, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Run one contender; return indices, weights after the last outer iteration, and the seconds of the loop."""
    x, y, _ = make(problem)
    settings = {**SETTINGS, **PROBLEMS[problem], "size": size}
    if contender == "betacores":
        import betacores as bc

        coreset = bc.summarize(x, y, method="beta-cores", screen=0.0, seed=seed, **settings)
        return coreset.path.indices, coreset.path.weights[-1], coreset.info.timings["beta-cores"]
    import reference_models
    import reference_numpy

    names = {"plain": ("Logistic", "GaussianMean"), "tuned": ("TunedLogistic", "TunedGaussianMean")}[contender]
    model = getattr(reference_models, names[problem != "logistic"])()
    started = time.perf_counter()
    path = reference_numpy.beta_cores(x, y, model=model, seed=seed, **settings)
    return path.indices, path.weights[-1], time.perf_counter() - started


def quality(problem: str, indices: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """Return what the coresets of two implementations should agree in, on average over seeds."""
    x, y, clean = make(problem)
    found = {"total weight": float(weights.sum())}
    if y is None:
        from betacores.experiments.gaussian import posterior, reverse_kl

        truth = posterior(x[clean], np.ones(clean.sum()))
        return {
            **found,
            "log KL to the clean posterior": float(np.log(reverse_kl(*posterior(x[indices], weights), *truth))),
        }
    import jax.numpy as jnp

    from betacores.models import LogisticRegression, Rows
    from betacores.posteriors import laplace

    rows = Rows(jnp.asarray(x[indices], jnp.float32), jnp.asarray(y[indices], jnp.float32))
    theta = np.asarray(laplace(LogisticRegression(), rows, jnp.asarray(weights, jnp.float32))[0].mean)
    margins = y[clean] * (x[clean] @ theta[:-1] + theta[-1])
    return {**found, "accuracy on clean rows": float((margins > 0).mean())}


def work(contender: str, problem: str, size: int, seeds: list[int]) -> None:
    """Run in a process of its own: time a contender and print what it found."""
    from betacores.cores import keep_to_one_core

    keep_to_one_core()
    times, found = [], []
    for seed in seeds:
        indices, weights, seconds = run(contender, problem, size, seed)
        times.append(seconds)
        if len(times) == 1:
            whole = time.perf_counter() - STARTED
        found.append((indices, weights))
    print(json.dumps({"whole": whole, "times": times, "quality": [quality(problem, *f) for f in found]}))


def call(contender: str, problem: str, size: int, seeds: range | list[int]) -> dict[str, Any]:
    """Run `work` in a fresh process."""
    command = [sys.executable, __file__, "--work", contender, problem, str(size), *map(str, seeds)]
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return json.loads(done.stdout.splitlines()[-1])


def compare(problem: str, quick: bool) -> dict[str, Any]:
    """Time all contenders on one problem, and check that they agree."""
    size = 5 if quick else PROBLEMS[problem]["size"]
    ours = call("betacores", problem, size, [0, 1])
    # The strict Gaussian yardstick knows the classical posterior only.
    contenders = ["plain"] if problem == "gaussian" else ["plain", "tuned"]
    theirs = {name: call(name, problem, size, [0])["times"][0] for name in contenders}
    again = call("betacores", problem, size, [0, 1])
    neighbour = multiprocessing.Process(target=_spin, daemon=True)
    neighbour.start()
    busy = call("betacores", problem, size, [0])
    neighbour.kill()
    few = 3 if quick else AGREEMENT_SIZE
    sample = [call(name, problem, few, AGREEMENT_SEEDS)["quality"] for name in ("betacores", contenders[-1])]
    return {
        "size": size,
        "whole": min(ours["whole"], again["whole"]),
        "compiled": min(ours["times"][1], again["times"][1]),
        "busy": busy["whole"],
        "reference": theirs,
        "agreement": _agreement(*sample),
    }


def _agreement(ours: list[dict[str, float]], theirs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    found = {}
    for name in ours[0]:
        a, b = np.array([q[name] for q in ours]), np.array([q[name] for q in theirs])
        error = np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
        found[name] = {"ours": a.mean(), "theirs": b.mean(), "z": (a.mean() - b.mean()) / error}
    return found


def _spin() -> None:
    while True:
        pass


def page(results: dict[str, dict[str, Any]], quick: bool) -> str:
    """Return the results as a page for people."""
    import betacores

    lines = [
        "# Speed of the compiled Algorithm 1",
        "",
        f"Made by `python benchmarks/incremental_vs_numpy.py{' --quick' if quick else ''}`,",
        f"betacores {betacores.__version__}, Python {platform.python_version()}, {platform.machine()}; seed 0.",
        "Each contender in a process of its own that keeps to one core. S = 100, T = 500, minibatches of 1,000 rows to",
        "select and 200 to optimise. *plain*: NumPy and SciPy as written from the paper, Laplace fits by",
        "`scipy.optimize.minimize` from the prior mean. *tuned*: the same with warm starts, the last inverse Hessian",
        "handed on, and shared powers.",
        "",
        "| problem | M | betacores, compiled | plain | ratio | tuned | ratio | whole process | busy neighbour |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for problem, r in results.items():
        cells = [problem, str(r["size"]), f"{r['compiled']:.1f} s"]
        for name in ("plain", "tuned"):
            seconds = r["reference"].get(name)
            cells += [f"{seconds:.0f} s", f"{seconds / r['compiled']:.1f}x"] if seconds else ["", ""]
        lines.append("| " + " | ".join([*cells, f"{r['whole']:.1f} s", f"{r['busy']:.1f} s"]) + " |")
    lines += [
        "",
        "*betacores, compiled*, *plain* and *tuned* are the seconds of the loop itself; the ratios are of those.",
        "*Whole process*: from the start of Python to the coreset, compilation and scores of all rows included.",
        "*Busy neighbour*: the same while another process keeps a core busy.",
        "",
        *(f"*{problem}*: {r['note']}\n" for problem, r in results.items() if "note" in r),
        f"Agreement over {len(AGREEMENT_SEEDS)} seeds each, at {AGREEMENT_SIZE} outer iterations; z is the difference",
        "of the means in standard errors.",
        "",
        "| problem | quantity | betacores | NumPy | z |",
        "|---|---|---|---|---|",
    ]
    for problem, r in results.items():
        for name, a in r["agreement"].items():
            lines.append(f"| {problem} | {name} | {a['ours']:.4g} | {a['theirs']:.4g} | {a['z']:.1f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run the benchmark, or one contender of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/speed"))
    parser.add_argument("--quick", action="store_true", help="few outer iterations")
    parser.add_argument("--problems", nargs="+", choices=list(PROBLEMS), default=list(PROBLEMS))
    parser.add_argument("--work", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        contender, problem, size, *seeds = arguments.work
        work(contender, problem, int(size), [int(seed) for seed in seeds])
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    stored = arguments.out / "speed.json"
    # Problems that are not run again keep their figures.
    results = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else {}
    for problem in arguments.problems:
        results[problem] = compare(problem, arguments.quick)
        print(problem, json.dumps(results[problem]), flush=True)
    results = {problem: results[problem] for problem in PROBLEMS if problem in results}
    (arguments.out / "README.md").write_text(page(results, arguments.quick), encoding="utf-8")
    stored.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(arguments.out / "README.md")


if __name__ == "__main__":
    main()
