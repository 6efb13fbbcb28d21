"""Claim: draws of equal quality come hundreds of times sooner from a coreset than from NUTS on all rows.

    python benchmarks/scale_nuts.py [--rows 1e5] [--effective 1000] [--steps 20] [--out docs/results/scale]

A clean logistic table of 10 columns. Both contenders use BlackJAX's NUTS, one chain, step size and mass matrix by its
window adaptation, as its documentation shows, until every parameter has 1,000 effective draws. For the coreset of 100
rows the time is that of `summarize`, adaptation and draws, all measured. On all rows a whole run would take too long:
a stated number of steps with the adapted kernel is timed, from the mode, and the time of the run is what those say of
as many gradients as the coreset's run needed, adaptation and draws, whose posterior has the same shape.
Compilation is left out on both sides. Quality: both posteriors against a Gaussian approximation on all rows.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scale_rows import CORES, machine, store, timed

COLUMNS, SIZE, WARMUP = 10, 100, 500


def clean_table(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a logistic table without outliers."""
    random = np.random.default_rng(seed)
    theta = np.random.default_rng(99).standard_normal(COLUMNS).astype(np.float32)
    x = random.standard_normal((rows, COLUMNS), np.float32)
    return x, np.where(random.random(rows) < 1 / (1 + np.exp(-(x @ theta))), 1.0, -1.0).astype(np.float32)


def log_posterior(x: Any, y: Any, weights: Any) -> Any:
    """Return the log-posterior as a person would write it: log-odds linear in the columns, and N(0, 1) priors."""
    import jax
    import jax.numpy as jnp

    x, y, weights = (jnp.asarray(a, jnp.float32) for a in (x, y, weights))

    def log_density(theta: Any) -> Any:
        eta = x @ theta[:-1] + theta[-1]
        return weights @ jax.nn.log_sigmoid(y * eta) - 0.5 * theta @ theta

    return log_density


def mode(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mode over all rows and the covariance there, by Newton's method in double precision."""
    z = np.column_stack([x, np.ones(len(x))]).astype(np.float64)
    theta = np.zeros(z.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-(z @ theta)))
        hessian = (z * (p * (1 - p))[:, None]).T @ z + np.eye(len(theta))
        theta = theta + np.linalg.solve(hessian, z.T @ ((y > 0) - p) - theta)
    return theta, np.linalg.inv(hessian)


def contend(rows: int, seed: int, effective: int, steps: int, repeats: int) -> dict[str, Any]:
    """Return times and quality of both."""
    import blackjax
    import jax
    import jax.numpy as jnp

    import betacores as bc

    x, y = clean_table(rows, seed)
    reference, covariance = mode(x, y)
    deviation = np.sqrt(np.diag(covariance))
    key = jax.random.key(seed)

    def summarised() -> Any:
        return bc.summarize(x, y, model="logistic", size=SIZE, seed=seed)

    coreset = summarised()
    density = log_posterior(coreset.X, coreset.y, coreset.weights)

    @jax.jit
    def adapt(key: Any, start: Any) -> Any:
        adapted, told = blackjax.window_adaptation(blackjax.nuts, density).run(key, start, WARMUP)
        return adapted, told.info.num_integration_steps.sum()

    def kernel_steps(density: Any) -> Any:
        """Return a function that makes a number of steps; all of them one program."""
        kernel = blackjax.nuts.build_kernel()

        @jax.jit
        def make(key: Any, state: Any, step_size: Any, mass: Any, count: Any) -> Any:
            def one(k: Any, carry: Any) -> Any:
                state, path, gradients = carry
                state, info = kernel(jax.random.fold_in(key, k), state, density, step_size, mass)
                return state, path.at[k].set(state.position), gradients + info.num_integration_steps

            path = jnp.zeros((20_000, COLUMNS + 1), jnp.float32)
            return jax.lax.fori_loop(0, count, one, (state, path, 0))

        return make

    draw = kernel_steps(density)

    def draws_of_coreset(adapted: Any, count: int) -> Any:
        settings = adapted.parameters
        made = draw(key, adapted.state, settings["step_size"], settings["inverse_mass_matrix"], count)
        return jax.block_until_ready(made)

    def least_effective(path: np.ndarray) -> float:
        half = len(path) // 2
        split = jnp.asarray(path[: 2 * half].reshape(2, half, -1))
        return float(blackjax.diagnostics.effective_sample_size(split).min())

    start = jnp.zeros(COLUMNS + 1, jnp.float32)
    adapted, adapting = jax.block_until_ready(adapt(key, start))
    count = effective
    while True:
        _, path, gradients = draws_of_coreset(adapted, count)
        path = np.asarray(path)[:count]
        if least_effective(path) >= effective or count >= 20_000:
            break
        count = int(count * 1.25)
    whole = log_posterior(x, y, np.ones(rows))
    on_all = kernel_steps(whole)
    state = blackjax.nuts.init(jnp.asarray(reference, jnp.float32), whole)
    settings = adapted.parameters

    def steps_on_all() -> Any:
        made = on_all(key, state, settings["step_size"], settings["inverse_mass_matrix"], steps)
        return jax.block_until_ready(made)

    all_gradients = int(steps_on_all()[2])
    times: dict[str, list[float]] = {"summarize": [], "adaptation": [], "draws": [], "steps_on_all_rows": []}
    processor: dict[str, list[float]] = {name: [] for name in times}
    for _ in range(repeats):
        for name, work in (
            ("summarize", summarised),
            ("adaptation", lambda: jax.block_until_ready(adapt(key, start))),
            ("draws", lambda: draws_of_coreset(adapted, count)),
            ("steps_on_all_rows", steps_on_all),
        ):
            seconds, busy = timed(work)
            times[name].append(seconds)
            processor[name].append(busy)
    best = {name: min(values) for name, values in times.items()}
    coreset_seconds = best["summarize"] + best["adaptation"] + best["draws"]
    needed = int(adapting) + int(gradients)
    all_seconds = best["steps_on_all_rows"] / all_gradients * needed
    busy = {name: min(values) for name, values in processor.items()}
    coreset_busy = busy["summarize"] + busy["adaptation"] + busy["draws"]
    return {
        "rows": rows,
        "effective": least_effective(path),
        "draws": count,
        "gradients_per_draw": int(gradients) / count,
        "gradients_per_step_on_all_rows": all_gradients / steps,
        "coreset_seconds": coreset_seconds,
        "parts": best,
        "all_times": times,
        "timed_steps_on_all_rows": steps,
        "timed_gradients_on_all_rows": all_gradients,
        "extrapolated_gradients_on_all_rows": needed,
        "all_rows_seconds_extrapolated": all_seconds,
        "ratio": all_seconds / coreset_seconds,
        "processor_seconds": busy,
        "ratio_of_processor_seconds": busy["steps_on_all_rows"] / all_gradients * needed / coreset_busy,
        "ratio_of_draws_alone": best["steps_on_all_rows"] / all_gradients * int(gradients) / best["draws"],
        "mean_off_by_deviations": float(np.abs((path.mean(0) - reference) / deviation).max()),
        "noise_of_mean_in_deviations": float(1 / np.sqrt(least_effective(path))),
        "deviation_ratio_low": float((path.std(0) / deviation).min()),
        "deviation_ratio_high": float((path.std(0) / deviation).max()),
        "kept": len(coreset),
        "load_average": os.getloadavg()[0],
    }


def page(found: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    r = found["run"]
    return "\n".join(
        [
            "## Against NUTS on all rows",
            "",
            f"Made by `{found['command']}`, betacores {found['betacores']}, BlackJAX {found['blackjax']}, JAX "
            f"{found['jax']}, Python {found['python']}; seed {found['seed']}; {found['machine']}, {CORES} cores. The "
            "script says what is measured and how.",
            "",
            f"| {r['rows']:,} rows, to {r['effective']:.0f} effective draws | seconds |",
            "|---|---|",
            f"| coreset of {r['kept']} rows | {r['parts']['summarize']:.2f} |",
            f"| adaptation on it, {WARMUP} steps | {r['parts']['adaptation']:.2f} |",
            f"| {r['draws']:,} draws from it | {r['parts']['draws']:.2f} |",
            f"| coreset, together | {r['coreset_seconds']:.2f} |",
            f"| NUTS on all rows, extrapolated | {r['all_rows_seconds_extrapolated']:.0f} |",
            f"| ratio | {r['ratio']:.0f} |",
            "",
            f"*Extrapolated*: {r['timed_steps_on_all_rows']} steps on all rows were timed, "
            f"{r['timed_gradients_on_all_rows']} gradients, and stand for the "
            f"{r['extrapolated_gradients_on_all_rows']:,} of the coreset's run, adaptation and draws. With the coreset "
            f"at hand, draws come {r['ratio_of_draws_alone']:.0f} times faster.",
            "",
            f"Quality: the coreset's posterior means are at most {r['mean_off_by_deviations']:.2f} posterior standard "
            f"deviations from the mode over all rows (a mean of so many draws is off by "
            f"{r['noise_of_mean_in_deviations']:.2f} itself, and the largest of {COLUMNS + 1} by more), and its "
            f"standard deviations are {r['deviation_ratio_low']:.2f} to {r['deviation_ratio_high']:.2f} times "
            f"those over all rows. The load on the machine was {r['load_average']:.1f}; in processor time the ratio is "
            f"{r['ratio_of_processor_seconds']:.0f}.",
            "",
        ]
    )


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e5)
    parser.add_argument("--effective", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    import blackjax
    import jax

    import betacores as bc

    found = {
        "command": " ".join(["python", "benchmarks/scale_nuts.py", *sys.argv[1:]]),
        "betacores": bc.__version__,
        "blackjax": blackjax.__version__,
        "jax": jax.__version__,
        "python": platform.python_version(),
        "machine": machine(),
        "seed": given.seed,
        "run": contend(int(given.rows), given.seed, given.effective, given.steps, given.repeats),
    }
    print(page(found))
    if given.out:
        store(given.out, "nuts", found)


if __name__ == "__main__":
    main()
