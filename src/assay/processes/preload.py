"""What the fork server imports, so that no child has to: torch.

A fake tensor itself would start CUDA where there is a GPU, so none is made here.
"""

from __future__ import annotations

import ctypes
import sys

import torch

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


_keep_memory()
if torch.cuda.is_initialized():
    raise SystemExit("importing torch started CUDA: a fork of this process could not use it")
