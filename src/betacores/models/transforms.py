"""Constrained parameters: each is a smooth function of free numbers, in which modes are sought and draws are made.

A constraint maps free numbers `u` to a parameter `v` that keeps to it. A prior density of `v` becomes one of `u` by the
log-determinant of the Jacobian, which every constraint gives with the map:

============================  =============================================  =========================
``"real"``                    `v = u`                                        0
``"positive"``                `v = exp u`                                    `Σ u`
``"unit"``                    `v = σ(u)`, the logistic function              `Σ log σ(u) + log σ(−u)`
``("bounded", a, b)``         `v = a + (b − a) σ(u)`                         the same, `+ Σ log(b − a)`
``("above", a)``              `v = a + exp u`                                `Σ u`
``("below", b)``              `v = b − exp u`                                `Σ u`
``"ordered"``                 `v_0 = u_0`, `v_k = v_(k−1) + exp u_k`         `Σ_(k>0) u_k`
``"simplex"``                 a stick broken in `K` pieces by `K − 1` free   of the stick breaking
                              numbers; zeros are equal pieces
============================  =============================================  =========================

The last two are of vectors, along the last axis.

Reference: Stan Development Team, "Stan Reference Manual", section "Constraint transforms".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.checks import check_choice

if TYPE_CHECKING:
    from jaxtyping import Array

# Shares of a stick are kept so far from nothing and all when a start is turned into free numbers.
SMALLEST_SHARE = 1e-6


@dataclass(frozen=True)
class Constraint:
    """What a parameter keeps to. Make one with `constraint`."""

    kind: str
    low: float = 0.0
    high: float = 0.0

    def free_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the free numbers of a parameter of this shape."""
        if self.kind in ("ordered", "simplex") and not shape:
            raise ValueError(f"constraints: {self.kind!r} is for vectors, the parameter is a number.")
        if self.kind != "simplex":
            return shape
        if shape[-1] < 2:
            raise ValueError(f"constraints: a 'simplex' needs two entries or more, the parameter has shape {shape}.")
        return (*shape[:-1], shape[-1] - 1)

    def forward(self, free: Array) -> tuple[Array, Array]:
        """Return the parameter, and the log-determinant of the Jacobian."""
        return _FORWARD[self.kind](self, free)

    def inverse(self, value: np.ndarray) -> np.ndarray:
        """Return the free numbers of a parameter, in double precision; not finite if it breaks the constraint."""
        with np.errstate(all="ignore"):
            return _INVERSE[self.kind](self, np.asarray(value, np.float64))

    def coordinate(self, name: str) -> str:
        """Return what to call the free numbers of a parameter of this name."""
        return _COORDINATES.get(self.kind, "free({})").format(name)

    @property
    def proper_when_flat(self) -> bool:
        """Whether a prior that ignores the parameter can be normalised."""
        return self.kind in ("unit", "bounded", "simplex")


def constraint(given: Any) -> Constraint:
    """Return a constraint by its name, or by a tuple of its name and bounds."""
    if isinstance(given, Constraint):
        return given
    name, *bounds = given if isinstance(given, tuple) and given else (given,)
    check_choice("constraints", name, _FORWARD)
    expected = {"bounded": 2, "above": 1, "below": 1}.get(name, 0)
    if len(bounds) != expected or not all(isinstance(b, (int, float)) and math.isfinite(b) for b in bounds):
        shape = {2: "('bounded', low, high)", 1: f"({name!r}, bound)", 0: repr(name)}[expected]
        raise ValueError(f"constraints: expected {shape}, got {given!r}.")
    if name == "bounded" and not bounds[0] < bounds[1]:
        raise ValueError(f"constraints: 'bounded' needs low < high, got {given!r}.")
    return Constraint(name, *map(float, bounds))


def _real(own: Constraint, free: Array) -> tuple[Array, Array]:
    return free, jnp.zeros((), free.dtype)


def _positive(own: Constraint, free: Array) -> tuple[Array, Array]:
    return jnp.exp(free), free.sum()


def _above(own: Constraint, free: Array) -> tuple[Array, Array]:
    return own.low + jnp.exp(free), free.sum()


def _below(own: Constraint, free: Array) -> tuple[Array, Array]:
    return own.low - jnp.exp(free), free.sum()


def _unit(own: Constraint, free: Array) -> tuple[Array, Array]:
    return jax.nn.sigmoid(free), (jax.nn.log_sigmoid(free) + jax.nn.log_sigmoid(-free)).sum()


def _bounded(own: Constraint, free: Array) -> tuple[Array, Array]:
    share, log_jacobian = _unit(own, free)
    width = own.high - own.low
    return own.low + width * share, log_jacobian + free.size * math.log(width)


def _ordered(own: Constraint, free: Array) -> tuple[Array, Array]:
    steps = jnp.concatenate([free[..., :1], jnp.exp(free[..., 1:])], axis=-1)
    return jnp.cumsum(steps, axis=-1), free[..., 1:].sum()


def _simplex(own: Constraint, free: Array) -> tuple[Array, Array]:
    count = free.shape[-1]
    # Shifted so that zeros give equal pieces.
    shifted = free - jnp.log(jnp.arange(count, 0, -1, free.dtype))
    log_share, log_rest = jax.nn.log_sigmoid(shifted), jax.nn.log_sigmoid(-shifted)
    left = jnp.concatenate([jnp.zeros_like(free[..., :1]), jnp.cumsum(log_rest, axis=-1)], axis=-1)
    log_pieces = left + jnp.concatenate([log_share, jnp.zeros_like(free[..., :1])], axis=-1)
    return jnp.exp(log_pieces), (left[..., :-1] + log_share + log_rest).sum()


def _free_pieces(own: Constraint, value: np.ndarray) -> np.ndarray:
    count = value.shape[-1] - 1
    left = 1.0 - np.concatenate([np.zeros_like(value[..., :1]), np.cumsum(value, axis=-1)[..., :-1]], axis=-1)
    share = np.clip(value[..., :-1] / left[..., :-1], SMALLEST_SHARE, 1 - SMALLEST_SHARE)
    good = (value >= 0).all(-1, keepdims=True) & np.isclose(value.sum(-1, keepdims=True), 1.0, atol=1e-4)
    return np.where(good, np.log(share) - np.log1p(-share) + np.log(np.arange(count, 0, -1)), np.nan)


def _free_steps(own: Constraint, value: np.ndarray) -> np.ndarray:
    return np.concatenate([value[..., :1], np.log(np.diff(value, axis=-1))], axis=-1)


def _logit(own: Constraint, value: np.ndarray) -> np.ndarray:
    return np.log(value) - np.log1p(-value)


_FORWARD: dict[str, Callable[[Constraint, Any], tuple[Any, Any]]] = {
    "real": _real,
    "positive": _positive,
    "unit": _unit,
    "bounded": _bounded,
    "above": _above,
    "below": _below,
    "ordered": _ordered,
    "simplex": _simplex,
}
_INVERSE: dict[str, Callable[[Constraint, np.ndarray], np.ndarray]] = {
    "real": lambda own, value: value,
    "positive": lambda own, value: np.log(value),
    "unit": _logit,
    "bounded": lambda own, value: _logit(own, (value - own.low) / (own.high - own.low)),
    "above": lambda own, value: np.log(value - own.low),
    "below": lambda own, value: np.log(own.low - value),
    "ordered": _free_steps,
    "simplex": _free_pieces,
}
_COORDINATES = {"real": "{}", "positive": "log({})", "unit": "logit({})"}
