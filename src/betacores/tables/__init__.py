"""Tables as people have them, turned into finite numbers: words, truth values, dates, missing cells, any units.

The mathematics takes numbers only. What stands for a word or for a missing cell is decided here, once, and said.
"""

from betacores.tables.encoder import TableEncoder, make_robust_preprocessor

__all__ = ["TableEncoder", "make_robust_preprocessor"]
