"""Data sets for the experiments, the demonstration and the tests."""

from betacores.datasets.simulated import Dirty, contaminated_gaussian, contaminated_logistic

__all__ = ["Dirty", "contaminated_gaussian", "contaminated_logistic"]
