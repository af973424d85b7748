"""Compiled GPU kernels on a CPU: PTX to C++, every access watched and counted."""

from ..types import Fault
from .counts import Access, Counts
from .drop import Synchronisation
from .faults import NotCheckable
from .memory import Memory
from .module import DEFAULT_ARCH, Kernel, Launched, barriers, load
from .watch import Watch

__all__ = [
    "DEFAULT_ARCH",
    "Access",
    "Counts",
    "Fault",
    "Kernel",
    "Launched",
    "Memory",
    "NotCheckable",
    "Synchronisation",
    "Watch",
    "barriers",
    "load",
]
