"""Neural linear regression: a network learns a basis from a coreset, and Bayesian linear regression predicts on it."""

from betacores.neural.fit import fit_neural_linear
from betacores.neural.prediction import NeuralFit
from betacores.neural.training import Training

__all__ = ["NeuralFit", "Training", "fit_neural_linear"]
