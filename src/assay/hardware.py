"""What NVIDIA GPUs allow a launch, by compute capability (CUDA C++ Programming Guide, tables)."""

from __future__ import annotations

GRID = (2**31 - 1, 65_535, 65_535)
BLOCK = (1024, 1024, 64)
THREADS = 1024
"""Of a block; all three hold from compute capability 3.0 on."""
SHARED_DEFAULT = 48 * 1024
"""Bytes of shared memory that a block can have without asking."""
SHARED = {
    **{70: 98_304, 72: 98_304, 75: 65_536, 80: 166_912, 86: 101_376, 87: 166_912, 89: 101_376},
    **{90: 232_448, 100: 232_448, 103: 232_448, 120: 101_376, 121: 101_376},
}
"""Most bytes of shared memory a block can ask for."""
LOCAL = 512 << 10
"""Most bytes of local memory a thread."""
MULTIPROCESSORS = {80: 108, 86: 84, 89: 128, 90: 132}
"""Of the card that is best known for a capability: A100, RTX A6000, RTX 4090, H100."""


def shared_of(arch: str) -> int | None:
    """Most bytes of shared memory a block can ask for on `sm_90a`; None where it is not known."""
    return SHARED.get(int("".join(c for c in arch if c.isdigit()) or 0))
