"""Compiled GPU kernels on a CPU: PTX to C++, every access watched and counted."""

from .counts import Access, Counts
from .faults import Fault, NotCheckable
from .memory import Memory
from .module import DEFAULT_ARCH, Kernel, Launched, load

__all__ = [
    "DEFAULT_ARCH",
    "Access",
    "Counts",
    "Fault",
    "Kernel",
    "Launched",
    "Memory",
    "NotCheckable",
    "load",
]
