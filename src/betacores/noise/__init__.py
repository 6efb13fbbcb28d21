"""The scale of the clean rows around a line."""

from betacores.noise.estimate import robust_line, robust_noise
from betacores.noise.exact import told_of_exactness
from betacores.noise.one_side import told_of_one_side

__all__ = ["robust_line", "robust_noise", "told_of_exactness", "told_of_one_side"]
