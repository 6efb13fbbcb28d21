"""Which rows may be chosen: those the model believes and, where there is a guard, trusts for their covariates."""

from __future__ import annotations

import numpy as np

from betacores.preparation import Prepared
from betacores.scores import row_scores

# Rows trusted less for their covariates are not chosen.
LEAST_TRUST = 0.5


def believed(prepared: Prepared, screen: float) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which rows the model believes, with the construction's own β (None for all), and what to say of it."""
    if screen == 0 or prepared.beta == 0:
        return None, ()
    eligible, warnings = _some(
        row_scores(prepared.model, prepared.source, prepared.found.theta, prepared.beta) >= screen
    )
    return eligible, doubts(prepared) + warnings


def believed_and_trusted(prepared: Prepared, screen: float) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which rows the model believes and the guard trusts (None for all), and what to say of it."""
    eligible: np.ndarray | None = None
    warnings: tuple[str, ...] = ()
    # At β = 0 every row counts, and any may be needed to stand for the others.
    if screen > 0 and prepared.beta > 0:
        eligible, warnings = _some(prepared.scores >= screen)
    if prepared.trust is None or prepared.trust.min() >= LEAST_TRUST:
        return eligible, warnings
    some = np.ones(len(prepared.trust), bool) if eligible is None else eligible
    for least in (LEAST_TRUST, np.finfo(np.float32).tiny):
        trusted = some & (prepared.trust >= least)
        if trusted.any():
            return trusted, warnings
    return prepared.trust > 0, (
        *warnings,
        "No row is both believed and trusted: it is the trusted ones that were taken.",
    )


def doubts(prepared: Prepared) -> tuple[str, ...]:
    """Say what may be wrong with the mode that a construction relies on."""
    lost = () if prepared.found.converged else ("The search for the β-posterior's mode did not converge.",)
    return lost + prepared.found.rivals


def _some(eligible: np.ndarray) -> tuple[np.ndarray | None, tuple[str, ...]]:
    if eligible.any():
        return eligible, ()
    return None, ("No row passes the screen, so none was applied: the model fits no row well.",)
