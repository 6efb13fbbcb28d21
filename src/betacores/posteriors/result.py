"""What a person gets of a posterior: draws with names, and their diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    import arviz


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
    """

    chains: Float[np.ndarray, "chains draws p"]
    names: list[str]
    sampler: str
    beta: float
    diagnostics: dict[str, Any] = field(default_factory=dict)

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
        """Return the draws as ArviZ data, one variable ``theta`` with the parameters' names as coordinates."""
        try:
            import arviz
        except ImportError:
            raise ImportError("to_arviz() needs ArviZ; install betacores[arviz].") from None
        data = arviz.from_dict(
            posterior={"theta": self.chains}, coords={"parameter": self.names}, dims={"theta": ["parameter"]}
        )
        data.posterior.attrs.update(sampler=self.sampler, beta=self.beta)
        return data

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
