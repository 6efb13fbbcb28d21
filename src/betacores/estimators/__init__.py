"""scikit-learn estimators: `betacores.summarize` where pipelines, grid searches and cross-validation expect it.

They hold no statistics of their own. What is here is what scikit-learn's users take for granted: any units, frames with
names, labels of any kind, and checks of what comes in.
"""

from betacores.estimators.classifier import CoresetClassifier
from betacores.estimators.regressor import CoresetRegressor
from betacores.estimators.selector import CoresetSelector

__all__ = ["CoresetClassifier", "CoresetRegressor", "CoresetSelector"]
