"""Run the command line by ``python -m expecta.cli``."""

from expecta.cli import main

main()
