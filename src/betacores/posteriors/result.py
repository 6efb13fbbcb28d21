"""What a person gets of a posterior: draws with names, and their diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import arviz
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class Given:
    """The weighted rows that draws were drawn given, and what they are a summary by.

    ``y`` is None for models without response, ``labels`` for those whose response is not one of two labels. ``beta`` is
    that of the summary.
    """

    indices: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]
    x: np.ndarray
    y: np.ndarray | None
    labels: np.ndarray | None
    columns: list[str]
    model: str
    method: str
    beta: float


@dataclass(frozen=True)
class Posterior:
    """Draws from a posterior.

    Attributes
    ----------
    chains
        Draws by chain: (chains, draws, parameters).
    names
        Names of the parameters.
    sampler
        ``"exact"``, ``"laplace"`` or ``"nuts"``.
    beta
        Of the likelihood that read the rows; 0 is the classical one.
    diagnostics
        For NUTS ``r_hat``, ``effective_sample_size`` (bulk) and ``divergences``; for Laplace ``converged``.
    given
        The weighted rows; None for draws made by hand.
    """

    chains: Float[np.ndarray, "chains draws p"]
    names: list[str]
    sampler: str
    beta: float
    diagnostics: dict[str, Any] = field(default_factory=dict)
    given: Given | None = None

    @property
    def draws(self) -> Float[np.ndarray, "n p"]:
        """All draws, one a row."""
        return self.chains.reshape(-1, self.chains.shape[-1])

    @property
    def mean(self) -> Float[np.ndarray, " p"]:
        """Posterior mean."""
        return self.draws.mean(0)

    @property
    def covariance(self) -> Float[np.ndarray, "p p"]:
        """Posterior covariance."""
        return np.atleast_2d(np.cov(self.draws, rowvar=False))

    def to_arviz(self) -> arviz.InferenceData:
        """Return the draws as ArviZ data: one variable ``theta`` with the parameters' names as coordinates.

        With them go the weighted rows (``constant_data``, ``observed_data``) and, for NUTS, the divergences of each
        chain (``sample_stats``); see `betacores.export.inference_data`.
        """
        from betacores.export.inference_data import inference_data

        return inference_data(self)

    def __repr__(self) -> str:
        """Say what it is."""
        chains, draws, parameters = self.chains.shape
        notes = "".join(f", {k}={_worst(k, v)}" for k, v in self.diagnostics.items())
        return f"Posterior({self.sampler}, {chains} x {draws} draws of {parameters} parameters{notes})"


def _worst(name: str, value: Any) -> Any:
    if name == "r_hat":
        return f"{np.max(value):.3f}"
    if name == "effective_sample_size":
        return f"{np.min(value):.0f}"
    return int(np.sum(value)) if name == "divergences" else value
