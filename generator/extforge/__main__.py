"""`python -m extforge`."""

from extforge.cli import run

run()
