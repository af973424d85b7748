"""`python`: plain Python or NumPy, always on the CPU."""

from __future__ import annotations

from . import Here


def here(device: str) -> Here:
    return Here(judge="cpu", timed=True)
