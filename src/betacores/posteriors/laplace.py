"""Laplace approximation of `∝ exp(Σ_n w_n f_n) π0`: a Gaussian at the mode, with the curvature there.

The mode is found by damped Newton steps: with gradient `g` and negative Hessian `A` (made positive definite if it is
not), solve `(A + λ diag A) δ = g` and move if that does not lower the log-posterior; λ falls after a success and rises
after a failure. The search ends when the squared Newton decrement `g·A⁻¹g`, twice the log-posterior still to be gained
in posterior standard deviations, is below a tolerance; the last step is then taken without another look.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from betacores.divergence import Beta
from betacores.models.base import Model, Rows
from betacores.posteriors.derivatives import Derivatives, log_posterior_derivatives, prior_derivatives
from betacores.posteriors.gaussian import Gaussian, factorise

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int

# Exact to about 0.3 % of a posterior standard deviation before the last step, far less after it.
TOLERANCE = 1e-5
MAX_STEPS = 100


class LaplaceInfo(NamedTuple):
    """How the search for the mode ended."""

    converged: Bool[Array, ""]
    steps: Int[Array, ""]
    decrement: Float[Array, ""]
    lifted: Bool[Array, ""]


class Newton(NamedTuple):
    """One Newton step, not yet taken."""

    step: Float[Array, " p"]
    decrement: Float[Array, ""]
    factor: Float[Array, "p p"]
    lifted: Bool[Array, ""]


class _State(NamedTuple):
    theta: Float[Array, " p"]
    at: Derivatives
    newton: Newton
    damping: Float[Array, ""]
    steps: Int[Array, ""]


def laplace(
    model: Model,
    rows: Rows,
    weights: Float[Array, " n"],
    beta: Beta = None,
    start: Float[Array, " p"] | None = None,
    *,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> tuple[Gaussian, LaplaceInfo]:
    """Return the Laplace approximation of a weighted posterior, and how it was found.

    Parameters
    ----------
    model, rows, weights
        The posterior's ingredients. Rows of weight zero change nothing.
    beta
        Of the β-likelihood; None is the classical posterior.
    start
        Where to begin; the model's first guess, or zero, if not given. The mode for slightly different weights is a
        good one.
    tolerance
        Of the squared Newton decrement.
    max_steps
        After so many steps the search gives up, which ``info.converged`` tells.
    """
    start = first_guess(model, rows.x.shape[-1], rows.x.dtype) if start is None else start

    def look(theta: Float[Array, " p"]) -> Derivatives:
        return log_posterior_derivatives(model, theta, rows, weights, beta)

    def unfinished(state: _State) -> Bool[Array, ""]:
        searching = ~_settled(state, tolerance) & (state.steps < max_steps)
        # A search that is given up may end with a damped step, whose factor is not the curvature.
        return (state.steps < 0) | searching | ((state.steps == max_steps) & (state.damping > 0))

    def advance(state: _State) -> _State:
        # The first turn only looks at the start, and one after the last only leaves the damping out: what is written
        # once is compiled once.
        stays = (state.steps < 0) | (state.steps == max_steps)
        theta = jnp.where(stays, state.theta, state.theta + state.newton.step)
        at = look(theta)
        better = accepts(state.at.value, at.value, rounding) | stays
        damping = jnp.where(stays, undamped, next_damping(state.damping, better))
        theta, at = jax.tree.map(lambda new, old: jnp.where(better, new, old), (theta, at), (state.theta, state.at))
        return _State(theta, at, newton(model, theta, at, damping), damping, state.steps + 1)

    # What every row's likelihood may be off by, times its weight: rows that fit well are many times smaller than that.
    rounding = jnp.finfo(rows.x.dtype).eps * jnp.abs(weights).sum()
    undamped = jnp.zeros((), rows.x.dtype)
    at, nowhere = _nothing(look, start), -jnp.ones((), jnp.int32)
    first = _State(start, at, _nothing(partial(newton, model), start, at, undamped), undamped, nowhere)
    last = jax.lax.while_loop(unfinished, advance, first)
    final = last.newton
    converged = final.decrement <= tolerance
    mean = jnp.where(converged, last.theta + final.step, last.theta)
    steps = jnp.minimum(last.steps, max_steps)
    return Gaussian(mean, final.factor), LaplaceInfo(converged, steps, final.decrement, final.lifted)


def _nothing(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return zeros of the shapes that a function returns."""
    return jax.tree.map(lambda like: jnp.zeros(like.shape, like.dtype), jax.eval_shape(function, *arguments))


def first_guess(model: Model, columns: int, dtype: Any = jnp.float32) -> Float[Array, " p"]:
    """Return where to begin when nothing is known: the model's first guess if it has one, else zero."""
    guess = model.first_guess(columns) if hasattr(model, "first_guess") else jnp.zeros(model.parameter_count(columns))
    return jnp.asarray(guess, dtype)


def _settled(state: _State, tolerance: float) -> Bool[Array, ""]:
    return (state.newton.decrement <= tolerance) & (state.damping == 0)


def newton(model: Model, theta: Float[Array, " p"], at: Derivatives, damping: Float[Array, ""]) -> Newton:
    """Return the Newton step from the derivatives of the log-posterior at `theta`."""
    prior = -prior_derivatives(model, theta).hessian.diagonal()
    # No direction of the posterior is taken to be flatter than the flattest of the prior.
    floor = jnp.maximum(prior.min(), jnp.asarray(1e-6, prior.dtype))
    curvature = -at.hessian
    damped = curvature + damping * jnp.diag(jnp.maximum(jnp.abs(curvature.diagonal()), floor))
    factor, lifted = factorise(damped, floor)
    step = cho_solve((factor, True), at.gradient)
    return Newton(step, at.gradient @ step, factor, lifted)


def accepts(
    value: Float[Array, ""], proposed: Float[Array, ""], rounding: Float[Array, ""] | float = 0.0
) -> Bool[Array, ""]:
    """Tell whether a proposed log-posterior is no worse than the current one, up to rounding."""
    slack = 8 * jnp.finfo(value.dtype).eps * jnp.abs(value) + rounding
    return jnp.isfinite(proposed) & (proposed >= value - slack)


def next_damping(damping: Float[Array, ""], better: Bool[Array, ""]) -> Float[Array, ""]:
    """Lower the damping after a success, to nothing when it is small; raise it after a failure."""
    return jnp.where(better, jnp.where(damping > 1e-2, damping * 0.1, 0.0), jnp.maximum(damping * 10, 0.1))
