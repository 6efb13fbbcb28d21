"""Data sets for the experiments, the demonstration and the tests."""

from betacores.datasets.simulated import (
    GAUSSIAN_OUTLIERS,
    Dirty,
    contaminated_gaussian,
    contaminated_logistic,
    corrupted_logistic,
    flipped_logistic,
    gaussian_with,
    shifted_linear,
)

__all__ = [
    "GAUSSIAN_OUTLIERS",
    "Dirty",
    "contaminated_gaussian",
    "contaminated_logistic",
    "corrupted_logistic",
    "flipped_logistic",
    "gaussian_with",
    "shifted_linear",
]
