"""How good the posteriors of coresets are: draws of many of them at once, and what they are measured by.

`posterior_draws` runs NUTS or Laplace on many coresets in one compiled program; `measures` tells how well draws predict
test rows; `gaussian_divergence` how far they are from a known posterior.
"""

from betacores.evaluation.draws import Draws, posterior_draws
from betacores.evaluation.measures import calibration_error, gaussian_divergence, measures

__all__ = ["Draws", "calibration_error", "gaussian_divergence", "measures", "posterior_draws"]
