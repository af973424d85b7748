"""What the fork server imports, so that no child has to: torch, and what fake tensors need.

Nothing here touches CUDA. Importing this module is the work.
"""

from __future__ import annotations

import ctypes
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # malloc.h


def _keep_memory() -> None:
    """Lets glibc keep freed memory, as CUDA's caching allocator does.

    Else a large output is mapped anew at every call, and its page faults are timed, not the kernel.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        if hasattr(libc, "mallopt"):
            libc.mallopt(M_MMAP_MAX, 0)
            libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def _load_fake_tensors() -> None:
    """A first fake operation imports sympy, a second of every child's life otherwise."""
    with FakeTensorMode() as mode:
        torch.softmax(mode.from_tensor(torch.ones(2)), -1)


_keep_memory()
_load_fake_tensors()
