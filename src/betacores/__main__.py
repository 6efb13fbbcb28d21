"""Run the command line with ``python -m betacores``."""

from betacores.cli import main

main()
