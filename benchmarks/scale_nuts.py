"""Claim: draws of equal quality come many times sooner from a coreset than from NUTS on all rows.

    python benchmarks/scale_nuts.py [--rows 1e5] [--repeats 3] [--out docs/results/scale]

A clean logistic table of 10 columns. NUTS on all rows is BlackJAX's, as its documentation shows it: four chains from
around zero, each 1,000 steps of window adaptation for step size and mass matrix and 1,000 draws, two chains at a time
on two cores. Two coresets of at most 100 rows, whose times include that of `summarize`: one by all defaults, which look
for dirt, and one that takes the rows as they are, as NUTS on all rows does. Each is read in three ways: by the very
same program; by `coreset.posterior(sampler="nuts")`, BlackJAX's NUTS too, told of the posterior's shape at the mode;
and by `coreset.posterior()`, independent draws from the Gaussian at the mode. Everything is measured and nothing
extrapolated; compilation is left out on both sides. The coreset's times are the best of the repeats, that of all rows
is of one run. Quality, of each: effective draws, and how far means and standard deviations are from those of all rows'
draws.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scale_rows import CORES, machine, store, timed

COLUMNS, SIZE, CHAINS, WARMUP, DRAWS = 10, 100, 4, 1000, 1000
SETTINGS: dict[str, dict[str, Any]] = {"all defaults": {}, "`beta=0, guard=None`": {"beta": 0.0, "guard": None}}


def clean_table(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a logistic table without outliers."""
    random = np.random.default_rng(seed)
    theta = np.random.default_rng(99).standard_normal(COLUMNS).astype(np.float32)
    x = random.standard_normal((rows, COLUMNS), np.float32)
    return x, np.where(random.random(rows) < 1 / (1 + np.exp(-(x @ theta))), 1.0, -1.0).astype(np.float32)


def sampler(x: Any, y: Any, weights: Any) -> Any:
    """Return a compiled function of a key that runs a chain; the posterior as one would write it, N(0, 1) priors."""
    import blackjax
    import jax
    import jax.numpy as jnp

    x, y, weights = (jnp.asarray(a, jnp.float32) for a in (x, y, weights))

    def log_density(theta: Any) -> Any:
        eta = x @ theta[:-1] + theta[-1]
        return weights @ jax.nn.log_sigmoid(y * eta) - 0.5 * theta @ theta

    def chain(key: Any) -> Any:
        start_key, warmup_key, draw_key = jax.random.split(key, 3)
        start = 0.1 * jax.random.normal(start_key, (COLUMNS + 1,))
        adaptation = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, settings), told = adaptation.run(warmup_key, start, WARMUP)
        step = blackjax.nuts(log_density, **settings).step

        def one(state: Any, key: Any) -> Any:
            state, info = step(key, state)
            return state, (state.position, info.num_integration_steps)

        _, (path, gradients) = jax.lax.scan(one, state, jax.random.split(draw_key, DRAWS))
        return path, told.info.num_integration_steps.sum() + gradients.sum()

    return jax.jit(chain).lower(jax.random.key(0)).compile()


def draw(chain: Any, seed: int) -> tuple[np.ndarray, int]:
    """Return the draws of all chains, and how many gradients they took."""
    import jax

    with ThreadPoolExecutor(CORES) as cores:
        made = list(
            cores.map(lambda key: jax.block_until_ready(chain(key)), jax.random.split(jax.random.key(seed), CHAINS))
        )
    return np.stack([np.asarray(path) for path, _ in made]), sum(int(gradients) for _, gradients in made)


def effective(paths: np.ndarray) -> float:
    """Return the least number of effective draws of any parameter."""
    import blackjax

    return float(blackjax.diagnostics.effective_sample_size(paths).min())


def readings(coreset: Any, seed: int) -> dict[str, Any]:
    """Return the ways to read a coreset, each a function that returns draws by chain."""
    on_coreset = sampler(coreset.X, coreset.y, coreset.weights)

    def posterior(**asked: Any) -> np.ndarray:
        return np.asarray(coreset.posterior(seed=seed, **asked).draws).reshape(CHAINS, DRAWS, -1)

    return {
        "the same program": lambda: draw(on_coreset, seed)[0],
        '`posterior(sampler="nuts")`': lambda: posterior(draws=DRAWS, sampler="nuts", chains=CHAINS),
        "`posterior()`": lambda: posterior(draws=CHAINS * DRAWS),
    }


def contend(rows: int, seed: int, repeats: int) -> dict[str, Any]:
    """Return times and quality of all."""
    x, y = clean_table(rows, seed)
    on_all, made = sampler(x, y, np.ones(rows)), []
    coresets = [measured(x, y, name, seed, repeats) for name in SETTINGS]
    all_seconds, all_busy = timed(lambda: made.append(draw(on_all, seed + 1)))
    (many, gradients) = made[0]
    mean, deviation = many.mean((0, 1)), many.std((0, 1))

    def told(drawn: np.ndarray, seconds: float, busy: float, together: dict[str, Any]) -> dict[str, Any]:
        ratios = drawn.std((0, 1)) / deviation
        return {
            "seconds": seconds,
            "ratio": all_seconds / (together["seconds"] + seconds),
            "ratio_of_draws_alone": all_seconds / seconds,
            "ratio_of_processor_seconds": all_busy / (together["busy"] + busy),
            "effective": effective(drawn),
            "mean_off_by_deviations": float((np.abs(drawn.mean((0, 1)) - mean) / deviation).max()),
            "deviation_ratio_low": float(ratios.min()),
            "deviation_ratio_high": float(ratios.max()),
        }

    for coreset in coresets:
        coreset["readings"] = {name: told(*found, coreset) for name, found in coreset["readings"].items()}
    return {
        "rows": rows,
        "all_rows_seconds": all_seconds,
        "all_rows_effective": effective(many),
        "all_rows_gradients": gradients,
        "coresets": coresets,
        "load_average": os.getloadavg()[0],
    }


def measured(x: np.ndarray, y: np.ndarray, name: str, seed: int, repeats: int) -> dict[str, Any]:
    """Return the times of a coreset and of the ways to read it, with the draws that they gave."""
    import betacores as bc

    def summarized() -> Any:
        return bc.summarize(x, y, model="logistic", size=SIZE, seed=seed, **SETTINGS[name])

    coreset = summarized()
    ways = readings(coreset, seed)
    drawn = {way: read() for way, read in ways.items()}
    works = {"": summarized, **ways}
    times: list[dict[str, tuple[float, float]]] = [
        {work: timed(do) for work, do in works.items()} for _ in range(repeats)
    ]
    best = {work: tuple(min(t[work][k] for t in times) for k in range(2)) for work in works}
    return {
        "settings": name,
        "kept": len(coreset),
        "seconds": best[""][0],
        "busy": best[""][1],
        "all_seconds": [t[""][0] for t in times],
        "readings": {way: (drawn[way], *best[way]) for way in ways},
    }


def page(found: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    lines = [
        "## Against NUTS on all rows",
        "",
        f"Made by `{found['command']}`, betacores {found['betacores']}, BlackJAX {found['blackjax']}, JAX "
        f"{found['jax']}, Python {found['python']}; seed {found['seed']}; {found['machine']}, {CORES} cores. The "
        "script says what is measured and how; nothing is extrapolated.",
        "",
        "| rows | coreset | | read by | draws | together | NUTS on all rows | ratio | effective draws | means off by "
        "| deviations |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in found["runs"]:
        for c in r["coresets"]:
            for name, way in c["readings"].items():
                lines.append(
                    f"| {r['rows']:,} | {c['settings']} | {c['seconds']:.2f} s | {name} | {way['seconds']:.3f} s "
                    f"| {c['seconds'] + way['seconds']:.2f} s | {r['all_rows_seconds']:.1f} s | **{way['ratio']:.0f}** "
                    f"| {way['effective']:,.0f} and {r['all_rows_effective']:,.0f} "
                    f"| {way['mean_off_by_deviations']:.2f} "
                    f"| {way['deviation_ratio_low']:.2f} to {way['deviation_ratio_high']:.2f} |"
                )
    last = found["runs"][-1]
    noise = np.sqrt(2 / last["all_rows_effective"])
    in_processor_time = "; ".join(
        f"{r['rows']:,} rows, with a load of {r['load_average']:.1f} on the machine: "
        + ", ".join(f"{w['ratio_of_processor_seconds']:.0f}" for c in r["coresets"] for w in c["readings"].values())
        for r in found["runs"]
    )
    lines += [
        "",
        f"{CHAINS * DRAWS:,} draws in every row, by NUTS of {CHAINS} chains. *Effective draws*: of the parameter that "
        "has fewest, of the coreset and of all rows. *Means off by*: the largest difference of posterior means, in "
        f"posterior standard deviations; two means of so many draws differ by {noise:.2f} by themselves, and the "
        f"largest of {COLUMNS + 1} by more. *Deviations*: those of the coreset's draws over those of all rows.",
        "",
        f"The same ratios in processor time: {in_processor_time}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    import blackjax
    import jax

    import betacores as bc

    found: dict[str, Any] = {
        "command": " ".join(["python", "benchmarks/scale_nuts.py", *sys.argv[1:]]),
        "betacores": bc.__version__,
        "blackjax": blackjax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "machine": machine(),
        "seed": given.seed,
        "runs": [],
    }
    for rows in map(int, given.rows):
        found["runs"].append(contend(rows, given.seed, given.repeats))
        print(found["runs"][-1], flush=True)
    print(page(found))
    if given.out:
        store(given.out, "nuts", found)


if __name__ == "__main__":
    main()
