"""`python -m assay.processes FD MODULE...` is the fork server."""

from .server import main

main()
