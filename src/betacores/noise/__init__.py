"""The scale of the clean rows around a line."""

from betacores.noise.estimate import robust_line, robust_noise

__all__ = ["robust_line", "robust_noise"]
