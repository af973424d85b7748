"""`library`: one call into a vendor library through a binding; such libraries need a GPU."""

from __future__ import annotations

from . import Here


def here(device: str) -> Here:
    if device.startswith("cuda"):
        return Here(judge=device, timed=True)
    return Here(reason="no GPU: the vendor libraries run nowhere else")
