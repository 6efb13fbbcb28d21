"""Softmax regression: one of K classes, `P(y = k | x, θ) ∝ exp(z·θ_k)`, `z = (x, 1)`, Gaussian prior.

Adding one vector to all `θ_k` changes nothing, so the first class has `θ_0 = 0`, and the others are log-odds against
it: K−1 vectors of coefficients, one after the other. Two classes make a logistic regression.

The default prior prefers no class. It is that of K independent vectors of N(0, ½) less the first one's: every log-odds
between two classes, the first or not, is N(0, 1), and any two with a class in common have correlation ½. Its precision
is `2 (I − 1 1ᵀ/K)` over classes, for every coefficient by itself.

The power integral is the sum over the classes, `Σ_k p_k^(1+β)`.
"""

from __future__ import annotations

import json
import numbers
from typing import TYPE_CHECKING, Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import Response, Rows
from betacores.models.prior import GaussianPrior

if TYPE_CHECKING:
    from jaxtyping import Array, Float


@final
class SoftmaxRegression(SeveralPredictors):
    """A response of several labels, with log-odds linear in the covariates.

    Parameters
    ----------
    classes
        Number of classes; by default as many as the response has labels.
    intercept
        Whether to add a constant to the linear predictors (as the last coefficient of every class).
    prior
        Prior of the log-odds' coefficients against the first label, class by class; by default every log-odds between
        two labels is N(0, 1).
    """

    name: ClassVar[str] = "softmax"
    response: ClassVar[Response] = "classes"
    log_concave: ClassVar[bool] = True

    def __init__(self, classes: int | None = None, intercept: bool = True, prior: GaussianPrior | None = None):
        whole = isinstance(classes, numbers.Integral) and not isinstance(classes, bool)
        if not (classes is None or (whole and classes >= 2)):
            raise ValueError(f"classes: expected a whole number, 2 or more, or None, got {classes!r}.")
        self.classes = None if classes is None else int(classes)
        self.intercept = bool(intercept)
        self.prior = prior
        # What the labels are called, as one word: a list is no static part of a program.
        self.called: str | None = None

    def bound(self, columns: list[str], labels: np.ndarray | None) -> SoftmaxRegression:
        """Return the model with the number of its classes and its prior settled."""
        found = self.classes if labels is None else len(labels)
        if found is None or (self.classes is not None and self.classes != found):
            raise ValueError(f"classes: the model has {self.classes}, the response {found} labels; leave classes out.")
        prior = self.prior or symmetric_prior(found, np.eye(len(columns) + int(self.intercept)))
        model = SoftmaxRegression(found, self.intercept, prior)
        model.called = None if labels is None else json.dumps([str(label) for label in labels.tolist()])
        return model

    def with_units(self, precision: Float[np.ndarray, "q q"]) -> SoftmaxRegression:
        """Return the same model with the symmetric prior of coefficients that have this precision in other units."""
        model = SoftmaxRegression(self.classes, self.intercept)
        model.prior = symmetric_prior(self.vectors + 1, precision)
        model.called = self.called
        return model

    def units(self) -> Float[np.ndarray, "q q"] | None:
        """Return the precision that a symmetric prior has of the coefficients of one log-odds; None for others."""
        if self.prior is None or np.ndim(self.prior.precision) != 2 or np.any(self.prior.mean):
            return None
        whole = np.asarray(self.prior.precision, np.float64)
        size = len(whole) // self.vectors
        own = whole[:size, :size] / (2 - 2 / (self.vectors + 1))
        return own if np.allclose(symmetric_prior(self.vectors + 1, own).precision, whole, rtol=1e-9) else None

    @property
    def vectors(self) -> int:
        """One vector of coefficients a class but the first."""
        if self.classes is None:
            raise ValueError("classes: not known yet; give SoftmaxRegression a number, or let summarize() count them.")
        return self.classes - 1

    def parameter_count(self, columns: int) -> int:
        """One coefficient a column, and the intercept, for every class but the first."""
        return self.vectors * (columns + int(self.intercept))

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Coefficients carry their column's name and their label, or its number, counted from 0."""
        own = [*columns, "intercept"] if self.intercept else list(columns)
        labels = range(self.vectors + 1) if self.called is None else json.loads(self.called)
        return [f"{name} ({label})" for label in labels[1:] for name in own]

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        if self.prior is not None:
            return self.prior.log_density(theta)
        own = theta.reshape(self.vectors, -1)
        return -(own * own).sum() + (own.sum(0) ** 2).sum() / (self.vectors + 1)

    def response_log_likelihood(self, u: Any, y: Any) -> Float[Array, "..."]:
        """Return the log-probability of a label."""
        logits = jnp.asarray(u)
        # Two labels come as −1 and +1.
        code = (jax.lax.stop_gradient(y) + 1) / 2 if self.vectors == 1 else jax.lax.stop_gradient(y)
        place = jnp.arange(1, self.vectors + 1, dtype=logits.dtype).reshape(-1, *[1] * (logits.ndim - 1))
        return jnp.where(code == place, logits, 0.0).sum(0) - _log_total(logits)

    def response_power_integral(self, u: Any, beta: Float[Array, ""]) -> Float[Array, "..."]:
        """Return the sum of `p^(1+β)` over the classes."""
        logits = jnp.asarray(u)
        total = _log_total(logits)
        return jnp.exp(-(1 + beta) * total) + jnp.exp((1 + beta) * (logits - total)).sum(0)

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from the shares of the classes."""
        y = np.asarray(rows.y)
        codes = ((y + 1) / 2 if self.vectors == 1 else y).astype(int)
        counts = np.bincount(codes, minlength=self.vectors + 1) + 1.0
        start = np.zeros((self.vectors, rows.x.shape[1] + int(self.intercept)))
        if self.intercept:
            start[:, -1] = np.log(counts[1:] / counts[0])
        return start.ravel()


def symmetric_prior(classes: int, precision: Float[np.ndarray, "q q"]) -> GaussianPrior:
    """Return the prior that prefers no class: log-odds between any two have coefficients of this precision."""
    between = 2 * (np.eye(classes - 1) - 1 / classes)
    return GaussianPrior(np.zeros(()), np.kron(between, precision))


def _log_total(logits: Float[Array, "m ..."]) -> Float[Array, "..."]:
    """Return `log(1 + Σ_k exp(u_k))`."""
    top = jax.lax.stop_gradient(jnp.maximum(logits.max(0), 0.0))
    return top + jnp.log(jnp.exp(-top) + jnp.exp(logits - top).sum(0))
