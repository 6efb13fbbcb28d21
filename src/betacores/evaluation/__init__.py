"""How good the posteriors of coresets are: draws of many of them at once, and what they are measured by.

`posterior_draws` runs NUTS or Laplace on many coresets in one compiled program; `measures` tells how well draws predict
test rows; `gaussian_divergence` how far they are from a known posterior. `run_trial` puts them together for several
methods on one table.
"""

from betacores.evaluation.draws import Draws, posterior_draws
from betacores.evaluation.measures import calibration_error, gaussian_divergence, measures
from betacores.evaluation.reference import classical_measures, reference_posterior
from betacores.evaluation.trial import ALL_ROWS, CLEAN_ROWS, Sampling, run_trial

__all__ = [
    "ALL_ROWS",
    "CLEAN_ROWS",
    "Draws",
    "Sampling",
    "calibration_error",
    "classical_measures",
    "gaussian_divergence",
    "measures",
    "posterior_draws",
    "reference_posterior",
    "run_trial",
]
