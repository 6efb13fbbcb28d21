"""How a coreset came about: what was asked for, what was chosen, how long it took, and what to beware of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from betacores.quality import KLEstimate


@dataclass
class Info:
    """How a coreset came about.

    Attributes
    ----------
    settings
        Every argument that decided the result, defaults included.
    timings
        Seconds spent in each part.
    trace
        ``size`` and ``total_weight`` after every outer iteration.
    notes
        Choices made for the caller, and why.
    kl_estimate
        Estimated divergence from the coreset's posterior to the β-posterior of all rows, with its standard error; see
        `betacores.quality`.
    tuning
        The criterion β was chosen by, along its grid; None if β was given.
    guard
        What the covariate guard did: rows touched, and the columns that gave them away; None without a guard.
    pilot
        How the mode was found: which start led there, whether the search converged, and rival modes.
    passes
        Number of passes over all rows that each part took.
    warnings
        What a person should know before trusting the result.
    sites
        For a coreset merged from others, a dictionary for each of them: ``name``, ``rows`` it stands for, how many of
        them are ``believed``, rows ``kept``, total ``weight``, ``trust``, ``distance`` from the others in standard
        deviations, how far ``chance`` can take it, ``contamination``, and the ``kl`` divergence it states; None for
        other coresets.
    inherited_kl
        For a merged coreset, the sum of the divergences that the sites state of themselves; None if one states
        nothing. See `betacores.merging.joining`.
    """

    settings: dict[str, Any]
    timings: dict[str, float] = field(default_factory=dict)
    trace: dict[str, list] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    kl_estimate: KLEstimate | None = None
    tuning: dict[str, list] | None = None
    guard: dict[str, Any] | None = None
    pilot: dict[str, Any] = field(default_factory=dict)
    passes: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    sites: list[dict[str, Any]] | None = None
    inherited_kl: float | None = None
