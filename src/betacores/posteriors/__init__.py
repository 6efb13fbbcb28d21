"""Draws from weighted posteriors: `conjugate` (exact), `laplace` (Gaussian at the mode) and `nuts`.

All three take weights and can be vectorised over many coresets with `jax.vmap`. `nuts` is imported from its module
only when asked for, so that BlackJAX is.
"""

from betacores.posteriors.conjugate import conjugate, has_conjugate
from betacores.posteriors.gaussian import Gaussian, gaussian_kl
from betacores.posteriors.laplace import laplace

__all__ = ["Gaussian", "conjugate", "gaussian_kl", "has_conjugate", "laplace"]
