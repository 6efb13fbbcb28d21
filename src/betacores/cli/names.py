"""Names that the shell completes. Said here once more, since where they are at home JAX would have to be imported."""

from __future__ import annotations

from collections.abc import Callable

METHODS = (
    *("pursuit", "beta-cores", "sparse-vi", "psvi", "quasi-newton"),
    *("giga", "frank-wolfe", "importance", "uniform"),
)
DENSITIES = (
    *("gaussian-mean", "gaussian-density", "gaussian-mixture"),
    *("exponential", "categorical", "multinomial"),
)
MODELS = (
    *("auto", "gaussian-mean", "linear", "logistic", "noisy-logistic", "softmax", "poisson", "negative-binomial"),
    *("gaussian", "student-t", "gamma", "gaussian-density", "gaussian-mixture"),
    *("exponential", "categorical", "multinomial"),
)
DATASETS = (
    *("adult", "phishing", "hospital_readmissions", "boston_housing", "songs"),
    *("webspam", "covtype", "california_housing", "bike_sharing"),
)
SIMULATED = (
    *("contaminated_gaussian", "contaminated_logistic", "corrupted_logistic"),
    *("flipped_logistic", "shifted_linear"),
)


def one_of(*names: str) -> Callable[[str], list[str]]:
    """Return a completion by one of these names."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def several_of(*names: str) -> Callable[[str], list[str]]:
    """Return a completion by names with commas between them."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [before + comma + name for name in names if name.startswith(last) and name not in taken]

    return complete
