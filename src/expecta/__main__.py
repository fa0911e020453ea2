"""Run the command line: ``python -m expecta``."""

from expecta.cli import main

if __name__ == "__main__":
    main()
