"""Trust in the covariates: how likely a row's `x` is to belong with the rest, whatever its response says."""

from betacores.guard.fit import fit_guard
from betacores.guard.model import Guard, explain, trust

__all__ = ["Guard", "explain", "fit_guard", "trust"]
