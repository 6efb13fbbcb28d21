"""Claim: draws of equal quality come many times sooner from a coreset than from NUTS on all rows.

    python benchmarks/scale_nuts.py [--rows 1e5] [--repeats 3] [--out docs/results/scale]

A clean logistic table of 10 columns. Both contenders run the same program, BlackJAX's NUTS as its documentation shows
it: four chains from around zero, each 1,000 steps of window adaptation for step size and mass matrix and 1,000 draws,
two chains at a time on two cores. One has all rows, the other a coreset of 100, whose time includes that of
`summarize`. Everything is measured and nothing extrapolated; compilation is left out on both sides. The coreset's times
are the best of the repeats, that of all rows is of one run. Quality: effective draws of both, and how far means and
standard deviations of the coreset's draws are from those of all rows' draws.
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


def contend(rows: int, seed: int, repeats: int) -> dict[str, Any]:
    """Return times and quality of both."""
    import betacores as bc

    x, y = clean_table(rows, seed)
    coreset = bc.summarize(x, y, model="logistic", size=SIZE, seed=seed)
    on_coreset, on_all = sampler(coreset.X, coreset.y, coreset.weights), sampler(x, y, np.ones(rows))
    few, few_gradients = draw(on_coreset, seed)
    pairs = [
        (
            timed(lambda: bc.summarize(x, y, model="logistic", size=SIZE, seed=seed)),
            timed(lambda: draw(on_coreset, seed)),
        )
        for _ in range(repeats)
    ]
    made: list[Any] = []
    all_seconds, all_busy = timed(lambda: made.append(draw(on_all, seed + 1)))
    (many, many_gradients) = made[0]
    summarize, draws = (min(pair[k][0] for pair in pairs) for k in range(2))
    busy = [min(pair[k][1] for pair in pairs) for k in range(2)]
    mean, deviation = many.mean((0, 1)), many.std((0, 1))
    ratios = few.std((0, 1)) / deviation
    return {
        "rows": rows,
        "kept": len(coreset),
        "summarize_seconds": summarize,
        "coreset_draws_seconds": draws,
        "all_rows_seconds": all_seconds,
        "all_times": [[part[0] for part in pair] for pair in pairs],
        "ratio": all_seconds / (summarize + draws),
        "ratio_of_draws_alone": all_seconds / draws,
        "processor_seconds": {"summarize": busy[0], "coreset_draws": busy[1], "all_rows": all_busy},
        "ratio_of_processor_seconds": all_busy / sum(busy),
        "gradients": {"coreset": few_gradients, "all_rows": many_gradients},
        "effective": {"coreset": effective(few), "all_rows": effective(many)},
        "mean_off_by_deviations": float((np.abs(few.mean((0, 1)) - mean) / deviation).max()),
        "deviation_ratio_low": float(ratios.min()),
        "deviation_ratio_high": float(ratios.max()),
        "load_average": os.getloadavg()[0],
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
        "| rows | coreset | its draws | together | NUTS on all rows | ratio | effective draws | means off by | "
        "deviations |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in found["runs"]:
        lines.append(
            f"| {r['rows']:,} | {r['summarize_seconds']:.2f} s | {r['coreset_draws_seconds']:.2f} s "
            f"| {r['summarize_seconds'] + r['coreset_draws_seconds']:.2f} s | {r['all_rows_seconds']:.1f} s "
            f"| **{r['ratio']:.0f}** | {r['effective']['coreset']:,.0f} and {r['effective']['all_rows']:,.0f} "
            f"| {r['mean_off_by_deviations']:.2f} | {r['deviation_ratio_low']:.2f} to {r['deviation_ratio_high']:.2f} |"
        )
    last = found["runs"][-1]
    noise = np.sqrt(1 / last["effective"]["coreset"] + 1 / last["effective"]["all_rows"])
    each = "; ".join(
        f"{r['rows']:,} rows: draws alone {r['ratio_of_draws_alone']:.0f}, in processor time "
        f"{r['ratio_of_processor_seconds']:.0f}, gradients {r['gradients']['coreset']:,} and "
        f"{r['gradients']['all_rows']:,}, load {r['load_average']:.1f}"
        for r in found["runs"]
    )
    lines += [
        "",
        f"Four chains of {WARMUP:,} steps of adaptation and {DRAWS:,} draws each, on either side. *Effective draws*: "
        "of the parameter that has fewest, of the coreset and of all rows. *Means off by*: the largest difference of "
        f"posterior means, in posterior standard deviations; two means of so many draws differ by {noise:.2f} by "
        f"themselves, and the largest of {COLUMNS + 1} by more. *Deviations*: those of the coreset's draws over those "
        "of all rows.",
        "",
        f"Ratios, all rows over coreset: {each}.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e5])
    parser.add_argument("--repeats", type=int, default=3)
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
