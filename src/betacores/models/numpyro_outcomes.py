"""What a NumPyro model observes: the kind of response it is, and the rule for its power integral if it is not known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from betacores.models.base import Response, Rows
from betacores.models.distribution_powers import log_power_integral
from betacores.models.layout import Layout
from betacores.models.numpyro_program import Looked, Picked, Program, run
from betacores.models.power_rules import Enumerate, MonteCarlo, Quadrature, Rule

if TYPE_CHECKING:
    from jaxtyping import Array

CLASSES = ("CategoricalLogits", "CategoricalProbs", "OrderedLogistic")
WRAPPERS = ("ExpandedDistribution", "Independent", "MaskedDistribution")


@dataclass(frozen=True)
class Drawn:
    """Draws of what a model observes, for the Monte Carlo rule."""

    program: Program
    picked: Picked
    layout: Layout
    site: str

    def __call__(self, key: Array, theta: Array, row: Rows) -> Array:
        """Return one outcome of a row."""
        table = Rows(row.x[None], None if row.y is None else row.y[None])
        return run(self.program, self.picked, self.layout(theta), table)[self.site]["fn"].sample(key)[0]


def kind_of(distribution: Any) -> Response:
    """Return the kind of response that a distribution is of, told from its support."""
    from numpyro.distributions import constraints

    if type(_innermost(distribution)).__name__ in CLASSES:
        return "classes"
    support = distribution.support
    if support is constraints.boolean:
        return "binary"
    if support.is_discrete:
        return "count"
    return "positive" if support is constraints.positive else "real"


def _innermost(distribution: Any) -> Any:
    while type(distribution).__name__ in WRAPPERS:
        distribution = distribution.base_dist
    return distribution


def rule_for(wanted: Any, found: Looked, drawn: Drawn) -> Rule | None:
    """Return the numerical rule for what is observed; None if its power integral is known, or none is wanted."""
    if wanted is None:
        return None
    if wanted != "auto":
        return wanted
    own = found.distribution
    if log_power_integral(own, jnp.float32(0.5)) is not None:
        return None
    from numpyro.distributions import constraints

    support = own.support
    if support.is_discrete and not own.event_shape:
        if hasattr(support, "upper_bound"):
            upper = support.upper_bound
            if not isinstance(upper, int):
                raise ValueError(
                    f"power_integral: that of {type(own).__name__} is not known, nor its largest outcome; pass "
                    "power_integral=bc.models.Enumerate(values=...), or None for β = 0."
                )
            return Enumerate(values=tuple(range(int(support.lower_bound), upper + 1)))
        return Enumerate()
    if own.event_shape or support.is_discrete:
        return MonteCarlo(drawn)
    known = (
        (constraints.real, (-math.inf, math.inf)),
        (constraints.positive, (0.0, math.inf)),
        (constraints.nonnegative, (0.0, math.inf)),
        (constraints.unit_interval, (0.0, 1.0)),
    )
    bounds = next((bounds for one, bounds in known if support is one), None)
    if bounds is None:
        raise ValueError(
            f"power_integral: that of {type(own).__name__} is not known, nor are the bounds of its outcomes fixed; "
            "pass power_integral=bc.models.Quadrature(support=(low, high)), or None for β = 0."
        )
    return Quadrature(support=bounds)


def check_classes(found: Looked, labels: np.ndarray) -> None:
    """Refuse labels of another number than the model has classes."""
    classes = _innermost(found.distribution).logits.shape[-1]
    if len(labels) != classes:
        raise ValueError(
            f"y: the model is of {classes} classes, the response has {len(labels)} labels; they are numbered in order."
        )
