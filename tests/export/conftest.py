"""A coreset of each model, none with a prior or names that make it easy, and its posterior from first principles."""

import contextlib
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats
from small_programs import one_length_for_all_tables

import betacores as bc
from betacores.estimators.scaling import Scaling
from betacores.models import (
    GaussianMean,
    LinearRegression,
    LogisticRegression,
    NegativeBinomialRegression,
    NoisyLogistic,
    PoissonRegression,
    SoftmaxRegression,
    gaussian_prior,
)

__all__ = ["one_length_for_all_tables"]

PAGE = Path(__file__).parents[2] / "docs" / "other-tools.md"
ROWS, SIZE = 250, 12
HOSTILE = ['"""; raise SystemExit("broken")\n', "<script>alert('x')</script>"]
COVARIANCE = np.array([[2.0, 0.7], [0.7, 0.5]])
FULL = np.array([[0.5, 0.3, -0.1], [0.3, 0.6, 0.2], [-0.1, 0.2, 0.8]])
NOISE, DISPERSION, RATE = 0.6, 0.5, 0.2
POSITIVE = "ä 'yes'"


@dataclass(frozen=True, eq=False)
class Case:
    """A coreset, with prior and covariance of its model written down a second time."""

    coreset: bc.Coreset
    prior_mean: np.ndarray
    prior_covariance: np.ndarray
    covariance: object = None

    @property
    def z(self):
        x = np.asarray(self.coreset.X, np.float64)
        return np.column_stack([x, np.ones(len(x))]) if getattr(self.coreset.model, "intercept", False) else x

    def loss(self, theta):
        """Minus the log-posterior, of one parameter vector or one a row."""
        away = theta - self.prior_mean
        prior = 0.5 * np.einsum("...i,ij,...j", away, np.linalg.inv(self.prior_covariance), away)
        weights, z = self.coreset.weights, self.z
        if self.coreset.model.name == "gaussian-mean":
            far = z - theta[..., None, :]
            each = 0.5 * np.einsum("...ni,ij,...nj->...n", far, np.linalg.inv(self.covariance), far)
        elif self.coreset.model.name == "linear":
            each = 0.5 * ((self.coreset.y - theta @ z.T) / NOISE) ** 2
        elif self.coreset.model.name == "softmax":
            logits = np.einsum("...kq,nq->...nk", theta.reshape(*theta.shape[:-1], -1, z.shape[1]), z)
            logits = np.concatenate([np.zeros((*logits.shape[:-1], 1)), logits], axis=-1)
            own = self.coreset.y[:, None] == self.coreset.labels
            each = special.logsumexp(logits, axis=-1) - (logits * own).sum(-1)
        elif self.coreset.model.name in ("poisson", "negative-binomial"):
            # Of the columns the second is the exposure.
            z, offset = z[:, [0, 2]], np.log(z[:, 1])
            mean = np.exp(theta[..., :2] @ z.T + offset)
            if self.coreset.model.name == "poisson":
                each = -stats.poisson.logpmf(self.coreset.y, mean)
            else:
                size = np.exp(-theta[..., 2:]) if theta.shape[-1] > 2 else 1 / DISPERSION
                each = -stats.nbinom.logpmf(self.coreset.y, size, size / (size + mean))
        elif self.coreset.model.name == "noisy-logistic":
            sign, rate = np.where(self.coreset.y == POSITIVE, 1, -1), RATE
            if theta.shape[-1] > z.shape[1]:
                rate = 0.5 * special.expit(theta[..., -1:])
            each = -np.log(rate + (1 - 2 * rate) * special.expit(sign * (theta[..., : z.shape[1]] @ z.T)))
        else:
            each = np.logaddexp(0, -np.where(self.coreset.y == POSITIVE, 1, -1) * (theta @ z.T))
        return each @ weights + prior

    @property
    def mode(self):
        found = optimize.minimize(self.loss, self.prior_mean, method="BFGS", options={"gtol": 1e-9}).x
        return optimize.minimize(self.loss, found, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13}).x

    @property
    def moments(self):
        """Mean and standard deviation by importance sampling from a Gaussian at the mode, somewhat too wide."""
        mode, p = self.mode, len(self.prior_mean)
        step = 1e-3 * np.sqrt(np.diag(self.prior_covariance))
        units = np.diag(step)
        hessian = np.array(
            [
                [
                    sum(s * t * self.loss(mode + s * units[i] + t * units[j]) for s in (1, -1) for t in (1, -1))
                    / (4 * step[i] * step[j])
                    for i in range(p)
                ]
                for j in range(p)
            ]
        )
        noise = 1.2 * np.random.default_rng(0).normal(size=(100_000, p))
        draws = mode + noise @ np.linalg.cholesky(np.linalg.inv(hessian)).T
        log_weights = -self.loss(draws) + 0.5 * (noise**2).sum(1) / 1.2**2
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        mean = weights @ draws
        return mean, np.sqrt(weights @ (draws - mean) ** 2)


def in_table_units(label):
    """Return a coreset as the estimators make them, years and all, and the same in units of about one."""
    centre, scale = np.array([2005.0, 30_000.0]), np.array([9.0, 12_000.0])
    units = Scaling(np.ones(2, bool), centre, scale)
    scaled = replace(label, model=LogisticRegression())
    given = replace(label, X=units.undone(label.X), path_X=units.undone(label.path_X), model=units.model(scaled.model))
    # Of a table (x − centre) / scale with coefficients θ those of x are S θ.
    back = np.diag(np.append(1 / scale, 1.0))
    back[2, :2] = -centre / scale
    return {
        "scaled": Case(scaled, np.zeros(3), np.eye(3)),
        "table units": Case(given, np.zeros(3), back @ back.T),
    }


def of_flipped(label):
    """Return coresets of labels of which some are flipped, a known share or not."""
    unknown = NoisyLogistic(prior=gaussian_prior([0.3, -0.2, 0.1], FULL), rate_prior=gaussian_prior(-0.5, 0.25))
    whole = np.block([[FULL, np.zeros((3, 1))], [np.zeros((1, 3)), 0.25]])
    return {
        "flipped": Case(replace(label, model=unknown), np.array([0.3, -0.2, 0.1, -0.5]), whole),
        "known rate": Case(replace(label, model=NoisyLogistic(RATE)), np.zeros(3), np.eye(3)),
    }


def of_counts_and_classes(line):
    """Return coresets of several labels, and of counts with the second column for their exposure."""
    kinds = np.array(["a 'kind'", "b", 'c"\n'])
    label = replace(line, y=kinds[line.indices % 3], path_y=kinds[line.path.indices % 3], labels=kinds)
    counts = replace(line, y=line.indices % 7, path_y=line.path.indices % 7)
    counts = replace(counts, X=np.abs(counts.X) + 0.1, path_X=np.abs(counts.path_X) + 0.1)
    between = np.kron([[1.0, 0.5], [0.5, 1.0]], np.eye(3))
    exposed = HOSTILE[1]
    own = gaussian_prior([0.3, -0.2], FULL[:2, :2])
    unknown = NegativeBinomialRegression(prior=own, dispersion_prior=gaussian_prior(0.5, 0.25), exposure=exposed)
    known = NegativeBinomialRegression(DISPERSION, exposure=exposed)
    poisson = PoissonRegression(prior=gaussian_prior(0.0, FULL[:2, :2]), exposure=exposed)
    unit, full = np.eye(3), np.block([[FULL[:2, :2], np.zeros((2, 1))], [np.zeros((1, 2)), 0.25]])
    return {
        "softmax": Case(replace(label, model=SoftmaxRegression().bound(HOSTILE, kinds)), np.zeros(6), between),
        "poisson": Case(replace(counts, model=poisson.bound(HOSTILE, None)), np.zeros(2), FULL[:2, :2]),
        "dispersed": Case(replace(counts, model=unknown.bound(HOSTILE, None)), np.array([0.3, -0.2, 0.5]), full),
        "known dispersion": Case(replace(counts, model=known.bound(HOSTILE, None)), np.zeros(2), unit[:2, :2]),
    }


@pytest.fixture(scope="session")
def cases():
    """Coresets by name, made once: one is built, the others are it with other rows, weights and models."""
    random = np.random.default_rng(0)
    x = random.normal(0.5, 1.0, (ROWS, 2))
    eta = x @ [1.0, -1.5] + 0.3
    real = eta + NOISE * random.normal(size=ROWS)
    words = np.where(random.random(ROWS) < 1 / (1 + np.exp(-2 * eta)), POSITIVE, 'it\'s "off"\n')
    frame = pd.DataFrame(x, columns=HOSTILE)
    built = bc.summarize(frame, real, model=LinearRegression(NOISE), method="uniform", size=SIZE, guard=None)
    line = replace(built, beta=0.3, weights=random.uniform(0.5, 8.0, SIZE))
    rows = line.indices
    mean = replace(line, X=(x @ np.linalg.cholesky(COVARIANCE).T)[rows], y=None, path_y=None)
    label = replace(line, y=words[rows], path_y=words[line.path.indices], labels=np.unique(words))

    lean, zero, unit = np.array([0.5, -1.0, 0.25]), np.zeros(3), np.eye(3)
    sharp = np.array([0.5, 2.0])
    through_zero = LogisticRegression(intercept=False, prior=gaussian_prior(lean[:2], sharp))
    return {
        "mean": Case(replace(mean, model=GaussianMean()), zero[:2], unit[:2, :2], unit[:2, :2]),
        "mean, own prior": Case(
            replace(mean, model=GaussianMean(COVARIANCE, gaussian_prior(lean[:2], FULL[:2, :2]))),
            lean[:2],
            FULL[:2, :2],
            COVARIANCE,
        ),
        "mean, by column": Case(
            replace(mean, model=GaussianMean(sharp, gaussian_prior(0.5, sharp))),
            np.full(2, 0.5),
            np.diag(sharp),
            np.diag(sharp),
        ),
        "linear": Case(line, zero, unit),
        "linear, own prior": Case(
            replace(line, model=LinearRegression(NOISE, prior=gaussian_prior(lean, FULL))), lean, FULL
        ),
        "logistic": Case(replace(label, model=LogisticRegression(prior=gaussian_prior(0.0, 0.5))), zero, 0.5 * unit),
        "logistic, own prior": Case(
            replace(label, model=LogisticRegression(prior=gaussian_prior(0.0, FULL))), zero, FULL
        ),
        **in_table_units(label),
        **of_counts_and_classes(line),
        **of_flipped(label),
        "logistic through zero": Case(replace(label, model=through_zero), lean[:2], np.diag(sharp)),
    }


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """Every name that the code of the page on other tools leaves behind, and what it printed."""
    for package in ("arviz", "blackjax", "numpyro"):
        pytest.importorskip(package, reason=f"The page shows {package}, an optional package.")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    folder, printed = tmp_path_factory.mktemp("page"), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(block, names)
            if "exec(program)" in block:
                names["mode"] = names["theta"]
    return names | {"printed": printed.getvalue()}
