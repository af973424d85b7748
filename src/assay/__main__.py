"""`python -m assay`, where the command itself is not on PATH."""

from .cli import main

main()
