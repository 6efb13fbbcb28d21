"""Reading a coreset: draws from the posterior of its rows, by the sampler asked for, in the units of the table."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import Beta
from betacores.inputs import encode_rows
from betacores.models import Model
from betacores.models.scaled import ESCAPED
from betacores.posteriors.prior_units import in_prior_units
from betacores.posteriors.weighted import weighted_posterior
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Float


class Asked(NamedTuple):
    """Which draws are wanted: ``sampler`` is ``"exact"``, ``"laplace"`` or ``"nuts"``, the last with its chains."""

    sampler: str
    draws: int
    chains: int
    warmup: int
    seed: int


# Of so many draws at the escape it is the posterior that has escaped, not one draw by chance.
ESCAPED_DRAWS = 0.01


def read_out(
    model: Model,
    x: np.ndarray,
    y: np.ndarray | None,
    labels: np.ndarray | None,
    weights: Float[np.ndarray, " m"],
    beta: Beta,
    asked: Asked,
) -> tuple[Float[np.ndarray, "chains draws p"], dict[str, Any]]:
    """Return draws by chain, and their diagnostics."""
    with single_precision():
        key, posed = jax.random.key(asked.seed), in_prior_units(model, x, y)
        rows = encode_rows(posed.x, posed.y, labels)
        if asked.sampler == "nuts":
            try:
                from betacores.posteriors.nuts import nuts
            except ImportError:
                raise ImportError(
                    "sampler: 'nuts' needs BlackJAX; install betacores[nuts], or choose 'laplace'."
                ) from None
            held, count = jnp.asarray(weights, jnp.float32), {"draws": asked.draws, "chains": asked.chains}
            paths, info = nuts(key, posed.model, rows, held, beta, warmup=asked.warmup, **count)
            diagnostics = {name: np.asarray(value) for name, value in info._asdict().items()}
            drawn = posed.back(np.asarray(paths))
            _warn_of_escape(model, drawn, beta)
            return drawn, diagnostics
        closed = asked.sampler == "exact"
        fit, converged = weighted_posterior(posed.model, rows, weights, beta, closed=closed)
        draws = posed.back(np.asarray(fit.draw(key, asked.draws)[None]))
        _warn_of_escape(model, draws, beta)
        return draws, {} if closed else {"converged": converged}


def _warn_of_escape(model: Model, draws: Float[np.ndarray, "chains draws p"], beta: Beta) -> None:
    if beta is None or not hasattr(model, "escaped"):
        return
    share = float(np.mean(model.escaped(draws.reshape(-1, draws.shape[-1]))))
    if share > ESCAPED_DRAWS:
        warnings.warn(f"{share:.0%} of the posterior's mass stands {ESCAPED}", stacklevel=4)
