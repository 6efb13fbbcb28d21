"""Robust pursuit against the compiled Algorithm 1: from a table to a saved coreset, time and divergence in one table.

Both make a coreset of 100 rows with the same β, of the Gaussian example (5,000 rows, 30 % of them N(10, I)) and of a
logistic problem (30,000 rows, the β-Cores paper's corruption at F = 0.1). Times are of `summarize` and `save` after
compilation, best of several, each method in a process of its own at its best: Algorithm 1 on one core, which is faster
for it than two. The divergences are from the coreset's posterior, in the Gaussian approximation that is exact for the
Gaussian example, to the posterior of the clean rows and to the β-posterior of all rows; Algorithm 1 is read both ways,
classically as published and with the β-likelihood it was built with.

    python benchmarks/pursuit_vs_beta_cores.py [--repeats K] [--out docs/results/pursuit]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 100
PROBLEMS = {"gaussian": 0.01, "logistic": 0.5}
METHODS = ("beta-cores", "pursuit")


def make(problem: str) -> Any:
    """Return the dirty table of a problem."""
    from betacores.datasets import contaminated_gaussian, corrupted_logistic

    return contaminated_gaussian(0, 0.3) if problem == "gaussian" else corrupted_logistic(0, 0.1)


def contend(problem: str, method: str, repeats: int) -> dict[str, Any]:
    """Run one method on one problem; return its times and divergences."""
    from betacores.cores import keep_to_one_core

    if method == "beta-cores":
        keep_to_one_core()
    import betacores as bc

    table, beta = make(problem), PROBLEMS[problem]
    # The same rows for both; a guard would give pursuit another target.
    settings: dict[str, Any] = {"method": method, "size": SIZE, "beta": beta, "guard": None}
    times, coreset = [], None
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(repeats + 1):
            started = time.perf_counter()
            coreset = bc.summarize(table.x, table.y, seed=repeat, **settings)
            coreset.save(Path(folder) / str(repeat))
            times.append(time.perf_counter() - started)
    return {
        "problem": problem,
        "method": method,
        "first_s": times[0],
        "seconds": times[1:],
        "kept": len(coreset),
        "outliers": int(table.outlier[coreset.indices].sum()),
        **divergences(table, coreset, beta),
    }


def divergences(table: Any, coreset: Any, beta: float) -> dict[str, float]:
    """Return the divergences to the clean rows' posterior and to the β-posterior of all rows."""
    import jax
    import jax.numpy as jnp

    from betacores.divergence import as_beta
    from betacores.inputs import encode_rows
    from betacores.posteriors import gaussian_kl, laplace

    def posterior(x: np.ndarray, y: np.ndarray | None, weights: np.ndarray, beta: float, start: Any) -> Any:
        rows = encode_rows(x, y, coreset.labels)
        fit, _ = jax.jit(laplace)(coreset.model, rows, jnp.asarray(weights, jnp.float32), as_beta(beta), start)
        return np.asarray(fit.mean), np.asarray(fit.covariance())

    start = jnp.asarray(coreset.posterior(200).mean, jnp.float32)
    clean = posterior(table.x, table.y, ~table.outlier, 0.0, start)
    robust = posterior(table.x, table.y, np.ones(len(table.x)), beta, start)
    found = {}
    for name, read in (("classical", 0.0), ("beta", beta)):
        own = posterior(coreset.X, coreset.y, coreset.weights, read, start)
        found[f"kl_clean_{name}"] = gaussian_kl(*own, *clean)
        found[f"kl_target_{name}"] = gaussian_kl(*own, *robust)
    return found


def page(results: list[dict[str, Any]], command: str) -> str:
    """Return the table as Markdown."""
    from betacores import __version__

    lines = [
        "# Pursuit against the compiled Algorithm 1",
        "",
        f"Made by `{command}`, betacores {__version__}; the script says what is measured and how.",
        "",
        "| problem | method | table to saved coreset, best | median | faster by | KL to the clean posterior "
        "| KL to the β-posterior of all rows | outliers kept |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for problem in PROBLEMS:
        both = {r["method"]: r for r in results if r["problem"] == problem}
        ratio = min(both["beta-cores"]["seconds"]) / min(both["pursuit"]["seconds"])
        for method, r in both.items():
            clean, target = (
                f"{r[f'kl_{what}_classical']:.3g}"
                + (f" (read with β: {r[f'kl_{what}_beta']:.3g})" if method == "beta-cores" else "")
                for what in ("clean", "target")
            )
            lines.append(
                f"| {problem} | {method} | {min(r['seconds']):.2f} s | {np.median(r['seconds']):.2f} s "
                f"| {f'{ratio:.0f} times' if method == 'pursuit' else ''} | {clean} | {target} | {r['outliers']} |"
            )
    return "\n".join([*lines, ""])


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    results = []
    for problem in PROBLEMS:
        for method in METHODS:
            # A fresh process each, so that the number of cores can be chosen before JAX starts.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                results.append(pool.apply(contend, (problem, method, given.repeats)))
    text = page(results, f"python benchmarks/pursuit_vs_beta_cores.py --repeats {given.repeats}")
    print(text)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "speed.md").write_text(text, encoding="utf-8")
        (given.out / "speed.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
