"""What is assumed of a row: one model a file, and the registry of their names."""

from betacores.models.base import LinearPredictor, Model, Rows
from betacores.models.family import ExponentialFamily
from betacores.models.gamma import GammaRegression
from betacores.models.gaussian_mean import GaussianMean
from betacores.models.gaussian_regression import GaussianRegression
from betacores.models.linear import LinearRegression
from betacores.models.logistic import LogisticRegression
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.models.scaled import ScaledPredictor
from betacores.models.student_t import StudentTRegression

MODELS: dict[str, type[Model]] = {
    cls.name: cls
    for cls in (
        GaussianMean,
        LinearRegression,
        LogisticRegression,
        GaussianRegression,
        StudentTRegression,
        GammaRegression,
    )
}

__all__ = [
    "MODELS",
    "ExponentialFamily",
    "GammaRegression",
    "GaussianMean",
    "GaussianPrior",
    "GaussianRegression",
    "LinearPredictor",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "Rows",
    "ScaledPredictor",
    "StudentTRegression",
    "gaussian_prior",
]
