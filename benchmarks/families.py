"""Every family on dirty rows: errors of the ordinary fit, of the coreset, and of robust estimators of other packages.

For every family, share of dirty rows (0, 10, 20 %) and seed one table is made, clean but for dirty rows such as a user
meets: shifted responses, wild counts, wrong labels, a far cluster, a wrong unit. Of it are fitted

- the family by maximum likelihood, or as scikit-learn does (the ordinary fit);
- the family by the posterior mean of a robust coreset, `summarize(x, y, model=..., size=50)` with all else by default;
- for labels, coresets of further β, of which the best in hindsight shows what any choice of β could do;
- what scikit-learn (Huber, RANSAC, Theil-Sen, minimum covariance determinant) and statsmodels (RLM with Tukey's
  biweight, left out where it is not installed) have for it. Gamma responses are given to them by their logarithms.

The error is the distance to the true parameters named in the table, which is about the clean rows.

What was chosen for labels, and why:

- Dirt is of three kinds. Labels moved on at random (of two: flipped) leave rows that look clean, since the probability
  of a label becomes `ε + (1 − 2ε) p`, nearly that of a flatter model: no β can undo most of it, and what it can undo
  hardly shows in a thousand rows of two classes, so that the same is also measured in four times as many. What β cannot
  do a model of the flips does: ``noisy-logistic`` is measured on the very tables of ``logistic``. ``noise`` is the
  β-Cores paper's dirt: in a share of rows half of the columns (of two, that with the larger coefficient) are
  N(0, 5²), and in an independent share of the same size labels are moved on. ``far`` is a small cluster far off, with
  the label that is least likely there. Clean tables are the same for all three.
- Ordinary fits have the prior of the coreset's model, or shrinkage would be compared in place of robustness: for two
  classes scikit-learn's default is N(0, 1) as ours is, for several it is made the same (C = ½). Intercepts have none
  there.

    python benchmarks/families.py [--seeds K] [--rows N] [--jobs J] [--again FAMILY] [--out docs/results/families]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, special, stats

SHARES = (0.0, 0.1, 0.2)
# From here on the page says what the docstring says.
CHOSEN = "What was chosen for labels"
SIZE = 50
LINE = np.array([1.0, -0.5, 0.3])  # two slopes and the intercept
STEEP = np.array([2.0, -1.0, 0.5])
CLASSES = np.array([[2.0, -1.0, 0.5], [-1.0, 2.0, 0.0]])  # log-odds of two classes against a third
CENTRE, CORRELATED = np.array([1.0, -1.0, 0.5]), np.array([[1.0, 0.6, 0.0], [0.6, 1.0, 0.3], [0.0, 0.3, 1.0]])
CLUSTERS = np.array([[-2.0, 0.0], [2.0, 1.0]])
LOG_RATES = np.array([0.5, -0.5, 0.0])
CODES = np.array([0.5, 0.3, 0.15, 0.05])
SHARED_OUT = np.array([0.5, 0.3, 0.15, 0.05])
ORDINARY, OURS, HINDSIGHT = "ordinary", "coreset", "hindsight"
OUR_OWN = {ORDINARY, OURS, HINDSIGHT}
# Further β that coresets of labels are made with, to know the best in hindsight.
FURTHER = (0.1, 0.3, 0.5, 1.0, 1.4)
NAMES = {
    ORDINARY: "ordinary fit",
    OURS: "coreset",
    HINDSIGHT: "coreset, best β in hindsight",
    "huber": "Huber",
    "ransac": "RANSAC",
    "theil-sen": "Theil-Sen",
    "rlm": "RLM, Tukey",
    "mcd": "MinCovDet",
}


class Family(NamedTuple):
    """How tables of a family are made and fitted, and what of it is compared."""

    dirt: str
    measured: str
    truth: np.ndarray
    make: Callable[[np.random.Generator, int, np.ndarray], tuple[np.ndarray, Any]]
    ordinary: Callable[[np.ndarray, Any], np.ndarray]
    # From the posterior mean of the coreset to the parameters that are compared.
    taken: Callable[[np.ndarray], np.ndarray]
    others: Callable[[np.ndarray, Any], dict[str, np.ndarray]] = lambda x, y: {}
    further: tuple[float, ...] = ()
    # Tables have so many times the rows of others.
    times: int = 1


def covariates(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return covariates, and the same with a column of ones."""
    x = rng.normal(size=(rows, 2))
    return x, np.column_stack([x, np.ones(rows)])


def real(noise: Callable) -> Callable:
    """Return a maker of real responses, the dirty ones around another line."""

    def make(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, z = covariates(rng, rows)
        return x, np.where(bad, 6 + 4 * x[:, 0], z @ LINE) + 0.5 * noise(rng, rows)

    return make


def counts(draw: Callable) -> Callable:
    """Return a maker of counts, the dirty ones far too large."""

    def make(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, z = covariates(rng, rows)
        return x, np.where(bad, 40 + rng.poisson(20, rows), draw(rng, np.exp(z @ LINE + 0.7)))

    return make


def gammas(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return positive responses, the dirty ones around fifty."""
    x, z = covariates(rng, rows)
    return x, np.where(bad, np.exp(4 + 0.3 * rng.normal(size=rows)), rng.gamma(4, np.exp(z @ LINE) / 4))


def labels(log_odds: np.ndarray, dirt: Callable) -> Callable:
    """Return a maker of labels with these log-odds against the first of them, some rows made dirty."""

    def make(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, z = covariates(rng, rows)
        logits = np.column_stack([np.zeros(rows), z @ np.atleast_2d(log_odds).T])
        return dirt(rng, x, (logits + rng.gumbel(size=logits.shape)).argmax(1), bad, log_odds)

    return make


def moved_on(
    rng: np.random.Generator, x: np.ndarray, y: np.ndarray, bad: np.ndarray, log_odds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give dirty rows the next label: of two, the other one."""
    return x, (y + bad) % (1 + len(np.atleast_2d(log_odds)))


def as_in_the_paper(
    rng: np.random.Generator, x: np.ndarray, y: np.ndarray, bad: np.ndarray, log_odds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Make half of the columns noise in dirty rows, and of as many rows, drawn independently, the label the next."""
    x[bad, 0] = rng.normal(0, 5, bad.sum())
    also = rng.permutation(bad)
    bad_label = moved_on(rng, x, y, also, log_odds)
    bad |= also
    return bad_label


def far_off(
    rng: np.random.Generator, x: np.ndarray, y: np.ndarray, bad: np.ndarray, log_odds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Put dirty rows into a small cluster far off, with the label that is least likely there."""
    corner = np.array([10.0, -10.0])
    wrong = np.append(0.0, np.atleast_2d(log_odds) @ np.append(corner, 1.0)).argmin()
    x[bad] = corner + 0.1 * rng.normal(size=(bad.sum(), 2))
    return x, np.where(bad, wrong, y)


def cloud(covariance: np.ndarray) -> Callable:
    """Return a maker of Gaussian rows, the dirty ones a small cluster far off."""

    def make(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, None]:
        clean = rng.multivariate_normal(CENTRE, covariance, rows)
        return np.where(bad[:, None], CENTRE + 6 + 0.5 * rng.normal(size=(rows, 3)), clean), None

    return make


def clusters(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, None]:
    """Return two clusters, and dirty rows scattered far around them."""
    clean = CLUSTERS[rng.integers(0, 2, rows)] + rng.normal(0, [0.6, 0.8], (rows, 2))
    return np.where(bad[:, None], rng.uniform(-15, 15, (rows, 2)), clean), None


def times(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, None]:
    """Return waiting times in minutes, the dirty ones in seconds."""
    return rng.exponential(np.exp(-LOG_RATES), (rows, 3)) * np.where(bad, 60, 1)[:, None], None


def codes(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, None]:
    """Return five columns of codes; dirty rows have the rarest everywhere."""
    return np.where(bad[:, None], 3, rng.choice(4, (rows, 5), p=CODES)), None


def shares(rng: np.random.Generator, rows: int, bad: np.ndarray) -> tuple[np.ndarray, None]:
    """Return twenty trials shared out to four columns, for dirty rows in the reverse order."""
    clean = rng.multinomial(20, SHARED_OUT, rows)
    return np.where(bad[:, None], clean[:, ::-1], clean), None


def by_scikit_learn(estimator: str, **settings: Any) -> Callable:
    """Return a fit by one of scikit-learn's linear models."""

    def fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        from sklearn import linear_model

        found = getattr(linear_model, estimator)(**settings).fit(x, y)
        if np.ndim(found.coef_) == 1 or len(found.coef_) == 1:
            return np.append(found.coef_, found.intercept_)
        all_of_them = np.column_stack([found.coef_, found.intercept_])
        return (all_of_them[1:] - all_of_them[0]).ravel()

    return fit


def by_likelihood(log_likelihood: Callable) -> Callable:
    """Return the maximum of a likelihood of (y, η, log of one further parameter), started at least squares."""

    def fit(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        z = np.column_stack([x, np.ones(len(x))])
        start = np.append(np.linalg.lstsq(z, y if y.min() < 0 else np.log(y + 0.5), rcond=None)[0], 0.0)
        found = optimize.minimize(lambda theta: -log_likelihood(y, z @ theta[:-1], theta[-1]).mean(), start)
        return found.x[:-1]

    return fit


def student(y: np.ndarray, eta: np.ndarray, a: float) -> np.ndarray:
    """Return the log-density of Student's t with four degrees of freedom."""
    return stats.t.logpdf((y - eta) * np.exp(-a), 4) - a


def negative_binomial(y: np.ndarray, eta: np.ndarray, a: float) -> np.ndarray:
    """Return the log-probability of negative binomial counts with `exp(−a)` failures."""
    r = np.exp(-np.clip(a, -10, 10))
    eta = np.clip(eta, -20, 20)
    return stats.nbinom.logpmf(y, r, r / (r + np.exp(eta)))


def covariance_taken(theta: np.ndarray) -> np.ndarray:
    """Return the mean and the covariance's lower half of a coreset's Gaussian density."""
    mean, scale, slopes = theta[:3], np.exp(theta[3:6]), np.eye(3)
    slopes[np.tril_indices(3, -1)] = -theta[6:]
    root = np.linalg.solve(slopes, np.diag(scale))
    return halves(mean, root @ root.T)


def halves(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return a mean and the lower half of a covariance as one vector."""
    return np.append(mean, covariance[np.tril_indices(3)])


def mixture(x: np.ndarray, y: None) -> np.ndarray:
    """Return the means of scikit-learn's mixture, from left to right."""
    from sklearn.mixture import GaussianMixture

    found = GaussianMixture(2, covariance_type="diag", n_init=10, random_state=0).fit(x).means_
    return found[found[:, 0].argsort()].ravel()


def softmaxed(theta: np.ndarray) -> np.ndarray:
    """Return probabilities from log-odds against the first."""
    return special.softmax(np.append(0.0, theta))


def robust_lines(logarithm: bool = False) -> Callable:
    """Return the fits of robust regressions; of the logarithm of the response, slopes alone."""

    def fit(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        from sklearn.linear_model import HuberRegressor, RANSACRegressor, TheilSenRegressor

        y = np.log(y) if logarithm else y
        ransac = RANSACRegressor(random_state=0).fit(x, y).estimator_
        fitted = {"huber": HuberRegressor(max_iter=1000).fit(x, y), "ransac": ransac}
        fitted["theil-sen"] = TheilSenRegressor(random_state=0).fit(x, y)
        found = {name: np.append(one.coef_, one.intercept_) for name, one in fitted.items()}
        try:
            import statsmodels.api as sm
        except ImportError:
            pass
        else:
            z = np.column_stack([x, np.ones(len(x))])
            found["rlm"] = sm.RLM(y, z, M=sm.robust.norms.TukeyBiweight()).fit(maxiter=200).params
        return {name: one[:2] if logarithm else one for name, one in found.items()}

    return fit


def determinant(with_covariance: bool) -> Callable:
    """Return the fit of the minimum covariance determinant."""

    def fit(x: np.ndarray, y: None) -> dict[str, np.ndarray]:
        from sklearn.covariance import MinCovDet

        found = MinCovDet(random_state=0).fit(x)
        return {"mcd": halves(found.location_, found.covariance_) if with_covariance else found.location_}

    return fit


def coefficients(theta: np.ndarray) -> np.ndarray:
    """Leave out the scale, dispersion or shape."""
    return theta[:3]


MOVED_ON = "labels moved on at random"
LABEL_DIRT = {
    "": (MOVED_ON, moved_on, 1),
    "4 × the rows": (MOVED_ON, moved_on, 4),
    "noise": ("columns noise, other labels moved on", as_in_the_paper, 1),
    "far": ("a far cluster, the wrong label", far_off, 1),
}
LINES, COUNTS = "around another line", "40 and more"
ALL, RATE = "coefficients", LINE + np.array([0, 0, 0.7])
LEAST_SQUARES = by_scikit_learn("LinearRegression")
NOISE = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "student": lambda rng, rows: rng.standard_t(4, size=rows),
}


def dispersed(rng: np.random.Generator, mean: np.ndarray) -> np.ndarray:
    """Return counts with three times and more the variance of Poisson's where the mean is large."""
    return rng.negative_binomial(3, 3 / (3 + mean))


FAMILIES = {
    "linear": Family(LINES, ALL, LINE, real(NOISE["normal"]), LEAST_SQUARES, coefficients, robust_lines()),
    "gaussian": Family(LINES, ALL, LINE, real(NOISE["normal"]), LEAST_SQUARES, coefficients, robust_lines()),
    "student-t": Family(LINES, ALL, LINE, real(NOISE["student"]), by_likelihood(student), coefficients, robust_lines()),
    "gamma": Family(
        "around 50",
        "slopes",
        LINE[:2],
        gammas,
        lambda x, y: by_scikit_learn("GammaRegressor", alpha=0.0, max_iter=1000)(x, y)[:2],
        lambda theta: theta[:2],
        robust_lines(logarithm=True),
    ),
    **{
        model + (f", {dirt}" if dirt else ""): Family(
            described,
            ALL,
            STEEP,
            labels(STEEP, make),
            by_scikit_learn("LogisticRegression"),
            coefficients,
            further=FURTHER,
            times=times,
        )
        for model in ("logistic", "noisy-logistic")
        for dirt, (described, make, times) in LABEL_DIRT.items()
    },
    **{
        "softmax" + (f", {dirt}" if dirt else ""): Family(
            described,
            "log-odds' coefficients",
            CLASSES.ravel(),
            labels(CLASSES, make),
            # Half the variance for each class's coefficients gives log-odds that of the coreset's prior.
            by_scikit_learn("LogisticRegression", C=0.5),
            lambda theta: theta,
            further=FURTHER,
            times=times,
        )
        for dirt, (described, make, times) in LABEL_DIRT.items()
    },
    "poisson": Family(
        COUNTS,
        ALL,
        RATE,
        counts(lambda rng, mean: rng.poisson(mean)),
        by_scikit_learn("PoissonRegressor", alpha=0.0, max_iter=1000),
        coefficients,
    ),
    "negative-binomial": Family(COUNTS, ALL, RATE, counts(dispersed), by_likelihood(negative_binomial), coefficients),
    "gaussian-mean": Family(
        "a far cluster",
        "mean",
        CENTRE,
        cloud(np.eye(3)),
        lambda x, y: x.mean(0),
        coefficients,
        determinant(with_covariance=False),
    ),
    "gaussian-density": Family(
        "a far cluster",
        "mean and covariance",
        halves(CENTRE, CORRELATED),
        cloud(CORRELATED),
        lambda x, y: halves(x.mean(0), np.cov(x.T)),
        covariance_taken,
        determinant(with_covariance=True),
    ),
    "gaussian-mixture": Family(
        "scattered far around",
        "means of the clusters",
        CLUSTERS.ravel(),
        clusters,
        mixture,
        lambda theta: theta[1:5],
    ),
    "exponential": Family(
        "in another unit", "log-rates", LOG_RATES, times, lambda x, y: -np.log(x.mean(0)), lambda theta: theta
    ),
    "categorical": Family(
        "the rarest codes at once",
        "probabilities of the first column",
        CODES,
        codes,
        lambda x, y: np.bincount(x[:, 0], minlength=4) / len(x),
        lambda theta: softmaxed(theta[:3]),
    ),
    "multinomial": Family(
        "columns in reverse order",
        "probabilities",
        SHARED_OUT,
        shares,
        lambda x, y: x.sum(0) / x.sum(),
        softmaxed,
    ),
}


def study(name: str, seeds: int, rows: int) -> list[dict[str, Any]]:
    """Return the errors of all fits of one family, one entry a table."""
    import betacores as bc

    family, found = FAMILIES[name], []
    model, rows = name.split(",")[0], rows * family.times
    for share in SHARES:
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            bad = rng.random(rows) < share
            x, y = family.make(rng, rows, bad)

            def fitted(beta: float | str, x: np.ndarray = x, y: Any = y, seed: int = seed) -> tuple[Any, np.ndarray]:
                coreset = bc.summarize(x, y, model=model, size=SIZE, seed=seed, beta=beta)
                return coreset, family.taken(coreset.posterior(1000).mean)

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # fits of dirty rows that did not converge are part of the result
                fits = {ORDINARY: family.ordinary(x, y)}
                started = time.perf_counter()
                coreset, fits[OURS] = fitted("auto")
                seconds = time.perf_counter() - started
                fits |= family.others(x, y)
                further = [fits[OURS], *(fitted(beta)[1] for beta in family.further)]
            errors = {fit: distance(family, theta) for fit, theta in fits.items()}
            if family.further:
                errors[HINDSIGHT] = min(distance(family, theta) for theta in further)
            found.append(
                {
                    "family": name,
                    "share": share,
                    "seed": seed,
                    "errors": errors,
                    "kept": len(coreset),
                    "dirty_kept": int(bad[coreset.indices].sum()),
                    "beta": coreset.beta,
                    "contamination": coreset.contamination,
                    "seconds": seconds,
                }
            )
    print(name, "is done", flush=True)
    return found


def distance(family: Family, theta: np.ndarray) -> float:
    """Return the error of a fit."""
    return float(np.linalg.norm(theta - family.truth))


def medians(runs: list[dict[str, Any]], family: str, share: float) -> dict[str, tuple[float, float, float]]:
    """Return the median, smallest and largest error of every fit."""
    errors = [run["errors"] for run in runs if run["family"] == family and run["share"] == share]
    return {fit: tuple(float(q([e[fit] for e in errors])) for q in (np.median, min, max)) for fit in errors[0]}


def page(result: dict[str, Any]) -> str:
    """Return the page that tells of the stored errors."""
    runs, fits = result["runs"], [fit for fit in NAMES if any(fit in run["errors"] for run in result["runs"])]
    lines = [
        "# Every family on dirty rows",
        "",
        f"Made by `{result['command']}`, betacores {result['version']}; the script says what is measured and how.",
        "",
        f"The error is the distance to the true parameters: the median of {result['seeds']} tables of "
        f"{result['rows']:,} rows (seeds 0 to {result['seeds'] - 1}), in brackets the smallest and the largest. "
        f"Coresets have at most {SIZE} rows, and all other settings by default.",
        "",
        *__doc__[__doc__.index(CHOSEN) : __doc__.index("    python ")].splitlines(),
        "| family | dirty rows | measured | share | " + " | ".join(NAMES[fit] for fit in fits) + " |",
        "|---|---|---|---|" + "---|" * len(fits),
    ]
    done = {run["family"] for run in runs}
    for name, family in FAMILIES.items():
        for share in SHARES if name in done else ():
            found = medians(runs, name, share)
            best = min((fit for fit in found if fit != HINDSIGHT), key=lambda fit: found[fit][0])
            cells = []
            for fit in fits:
                text = "{:.3f} ({:.3f} to {:.3f})".format(*found[fit]) if fit in found else ""
                cells.append(f"**{text}**" if fit == best else text)
            lines.append(
                f"| {title(name)} | {family.dirt} | {family.measured} | {100 * share:.0f} % | "
                + " | ".join(cells)
                + " |"
            )
    if left := [name for name in FAMILIES if name not in done]:
        lines += ["", f"Not measured yet; the same command goes on with them: {', '.join(map(title, left))}."]
    return "\n".join([*lines, "", *told(runs), ""])


def title(name: str) -> str:
    """Return what a family is called in sentences, its kind of dirt in brackets."""
    model, _, dirt = name.partition(", ")
    return f"{model} ({dirt})" if dirt else model


def where(at: tuple[str, float]) -> str:
    """Name a family and a share of dirty rows."""
    return f"{title(at[0])}, {100 * at[1]:.0f} %"


def chosen(runs: list[dict[str, Any]], at: tuple[str, float]) -> str:
    """Say which β was chosen from the data, and how many rows were taken for dirty."""
    own = [run for run in runs if (run["family"], run["share"]) == at]
    betas, shares = [run["beta"] for run in own], [run["contamination"] for run in own]
    return f"β {min(betas):g} to {max(betas):g} was chosen, {np.median(shares):.1%} of the rows found not to fit"


def possible(found: dict[str, tuple[float, float, float]]) -> str:
    """Say what the best β would have done, where that is known."""
    if HINDSIGHT not in found:
        return ""
    return f"; the best β in hindsight would be {found[ORDINARY][0] / found[HINDSIGHT][0]:.2f} times better"


def told(runs: list[dict[str, Any]]) -> list[str]:
    """Say in words where the coreset is better, and where it is not."""
    families = [name for name in FAMILIES if any(run["family"] == name for run in runs)]
    dirty = [(name, share) for name in families for share in SHARES[1:]]
    found = {(name, share): medians(runs, name, share) for name in families for share in SHARES}
    ratios = {at: found[at][ORDINARY][0] / found[at][OURS][0] for at in dirty}
    worse = [at for at in dirty if ratios[at] <= 1]
    lines = [
        "## Against the ordinary fit",
        "",
        f"Of {len(dirty)} families and shares of dirty rows the coreset's median error is smaller in "
        f"{len(dirty) - len(worse)}, by a factor of {np.median(list(ratios.values())):.1f} in the middle.",
        "",
        *(
            f"- {where(at)}: **not better**, {ratios[at]:.2f} times; {chosen(runs, at)}{possible(found[at])}."
            for at in worse
        ),
        *(
            f"- {where(at)}: little better, {ratios[at]:.2f} times; {chosen(runs, at)}{possible(found[at])}."
            for at in dirty
            if 1 < ratios[at] < 1.5
        ),
        "",
        "What caution costs on clean rows: the coreset's error over that of the ordinary fit, family by family: "
        + ", ".join(
            f"{title(name)} {found[name, 0.0][OURS][0] / found[name, 0.0][ORDINARY][0]:.2f}" for name in families
        )
        + ".",
        "",
        *(
            f"- {title(name)}, clean: **the ordinary fit is better**; {chosen(runs, (name, 0.0))}."
            for name in families
            if found[name, 0.0][OURS][0] > 1.25 * found[name, 0.0][ORDINARY][0]
        ),
        "",
        *flips_modelled(found),
        "## Against robust estimators of other packages",
        "",
    ]
    for at in found:
        others = {fit: error[0] for fit, error in found[at].items() if fit not in OUR_OWN}
        if others and (best := min(others, key=others.__getitem__)):
            ours, ratio = found[at][OURS][0], others[best] / found[at][OURS][0]
            verdict = "better" if ratio > 1.1 else "about the same" if ratio > 0.9 else "**worse**"
            lines.append(f"- {where(at)}: {verdict}; {ours:.3f} against {others[best]:.3f} of {NAMES[best]}, the best.")
    none = [name for name in families if set(found[name, 0.0]) <= OUR_OWN]
    return [*lines, "", f"No estimator of other packages is compared for: {', '.join(map(title, none))}."]


def flips_modelled(found: dict[tuple[str, float], dict[str, tuple[float, float, float]]]) -> list[str]:
    """Compare logistic regression with the model of flipped labels, on the same tables."""
    pairs = [(at, (f"noisy-{at[0]}", at[1])) for at in found if (f"noisy-{at[0]}", at[1]) in found]
    if not pairs:
        return []
    lines = [
        "## Two labels: with the flips modelled, and without",
        "",
        "Labels flipped at random are what `noisy-logistic` is for; a far cluster with one label is no flip at random, "
        "and there `logistic` is the model to take. Median errors on the same tables:",
        "",
    ]
    for plain, noisy in pairs:
        ordinary, ours, modelled = found[plain][ORDINARY][0], found[plain][OURS][0], found[noisy][OURS][0]
        better = "noisy-logistic" if modelled < ours else "logistic"
        lines.append(
            f"- {where(plain)}: logistic {ours:.3f}, noisy-logistic {modelled:.3f}, the ordinary fit {ordinary:.3f}; "
            f"{better} is {max(ours, modelled) / min(ours, modelled):.1f} times better than the other."
        )
    return [*lines, ""]


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--family", choices=FAMILIES, help="this one alone; nothing is written")
    parser.add_argument("--again", choices=FAMILIES, action="append", default=[], help="measured anew")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.family:
        for run in study(given.family, given.seeds, given.rows):
            print(run)
        return
    from betacores import __version__

    stored = given.out / "families.json" if given.out else None
    result: dict[str, Any] = {
        "command": f"python benchmarks/families.py --seeds {given.seeds} --rows {given.rows}",
        "version": __version__,
        "seeds": given.seeds,
        "rows": given.rows,
        "runs": [],
    }
    if stored and stored.exists():
        before = json.loads(stored.read_text(encoding="utf-8"))
        # Families that were finished by the same command are kept.
        if {**before, "runs": []} == result:
            kept = [run for run in before["runs"] if run["family"] in FAMILIES and run["family"] not in given.again]
            result = {**before, "runs": kept}
    done = {run["family"] for run in result["runs"]}
    wanted = [(name, given.seeds, given.rows) for name in FAMILIES if name not in done]
    # A process each, which lets go of its compiled programs.
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=1) as pool:
        for part in pool.imap_unordered(studied, wanted):
            place = list(FAMILIES).index
            result["runs"] = sorted([*result["runs"], *part], key=lambda run: place(run["family"]))
            if given.out:
                given.out.mkdir(parents=True, exist_ok=True)
                stored.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
                (given.out / "README.md").write_text(page(result), encoding="utf-8")
    print(page(result))


def studied(asked: tuple[str, int, int]) -> list[dict[str, Any]]:
    """Return the study of one family: pools hand over one argument."""
    return study(*asked)


if __name__ == "__main__":
    main()
