"""A kernel as C++, with what the runtime and the reports must know of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from .ptx import Place, Variable

FIRST_WINDOW = 0x100
ENDS = 1 << 31
WINDOW_SHIFT = 40
"""An address is a window's number and an offset of 40 bits (runtime/warp.h)."""


@dataclass(frozen=True)
class Site:
    """An instruction that is counted and can be at fault."""

    places: tuple[Place, ...]
    text: str
    space: str = ""


@dataclass
class Code:
    """A kernel as C++, and what the runtime must know of it."""

    source: str
    sites: list[Site]
    depths: list[int]
    above: list[int]
    """Of each block of code, its parent in the tree of post-dominators; ENDS is added to that of a
    block that does nothing but end."""
    mixes: list[list[tuple[tuple[Place, ...], str]]]
    """For each block of code, the place and form of each of its instructions."""
    begins: list[tuple[Place, ...]]
    """Of each block of code, the place of its first instruction, and of its last."""
    ends: list[tuple[Place, ...]]
    register_bytes: int
    local_bytes: int
    static_shared: int
    windows: list[Variable]
    """Module variables that the kernel names, or that those hold the addresses of."""
    granule: int
    shared_granule: int
    communicates: bool
    prints: bool
    tensor: bool
    ordered: bool
    """Whether blocks must run one after the other for results to be the same every time."""
    parameters: list[tuple[str, str, int, int]] = field(default_factory=list)
    threads: tuple[int, ...] = ()
    """The most that a block may have, where the kernel says so."""
