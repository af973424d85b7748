"""How the layers launch their naive CUDA: one thread an element, or one block a result."""

from __future__ import annotations

from typing import Any

BLOCK = 256


def linear_grid(out: Any) -> dict[str, int]:
    """One thread for each element of `out`, which has at least one."""
    return {"grid": (out.numel() + BLOCK - 1) // BLOCK, "block": BLOCK, "shared": 0}


def block_each(results: int) -> dict[str, int]:
    """One block of 128 threads for each of some results, of which there is at least one."""
    return {"grid": results, "block": 128, "shared": 0}
