"""Room on a GPU that several processes share: large inputs one at a time, and nothing hoarded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from filelock import FileLock

from .. import cache
from .buffers import sparse

HOARDED = 1 << 28
"""Bytes that torch may keep of a GPU's memory for later, beyond what is in use."""
KEPT_BYTES = 4 << 30
"""Truths that oracles keep for variants still to come to a case, on the CPU."""
KEPT_SHARE = 0.2
"""Most of a GPU's memory that the truths of all oracles may take together."""


@contextmanager
def alone(inputs: tuple[Any, ...], device: str, contiguous: bool) -> Iterator[None]:
    """Waits until no other process holds an input on a GPU that spans more than 2^31 elements.

    Its rows are alone in memory of 4 to 16 GiB, and any two of them may be more than there is left.
    contiguous: the kernel gets contiguous copies, which need no room.
    """
    far = any(isinstance(x, torch.Tensor) and sparse(x) for x in inputs)
    if contiguous or not far or not device.startswith("cuda"):
        yield
        return
    folder = cache.root().parent / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f"far-{device.replace(':', '-')}.lock"):
        try:
            yield
        finally:
            torch.cuda.empty_cache()  # while nobody else asks for as much


def tidy(device: str) -> None:
    """Gives back what torch keeps of a GPU's memory, where it is much."""
    if not device.startswith("cuda"):
        return
    if torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device) > HOARDED:
        torch.cuda.empty_cache()


def kept_bytes(device: str, beside: int) -> int:
    """Bytes of truths that each of so many oracles may keep, beside one another."""
    if not device.startswith("cuda"):
        return KEPT_BYTES // beside
    whole = torch.cuda.get_device_properties(device).total_memory
    return int(KEPT_SHARE * whole) // beside
