"""Handing a coreset to other tools: frames, ArviZ, and weighted programs for Stan, NumPyro and scikit-learn.

Reached by the methods of `Coreset`. To add a tool: a module with a function from a coreset and a folder to the text of
a program, and its name in `betacores.export.snippet`.
"""
