"""`eager`: plain PyTorch calls, on whatever device the inputs are."""

from __future__ import annotations

from . import Here


def here(device: str) -> Here:
    return Here(judge=device, timed=True)
