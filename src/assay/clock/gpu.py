"""What kernels of a process share on a GPU: flush, witness, what events add, NVML, L2 limits."""

from __future__ import annotations

import ctypes
import functools
import os
import statistics
import time
from collections.abc import Callable

import torch

from . import events
from .power import Nvml
from .witness import Witness

PERSISTING = 6
"""CU_LIMIT_PERSISTING_L2_CACHE_SIZE of cuda.h."""
PROBE_BYTES, PROBES = 1 << 24, 9
"""What a probe reads at most: less than half of any L2 that holds it."""
FLUSHED = 1.1
"""A flush works if the probe takes this much longer after it than hot."""
SYNCS = 9


class Gpu:
    """Made once a process, before any code of the user's where that can be."""

    def __init__(self, device: str):
        self.device = device
        self.nvml = Nvml(device)
        self._driver = ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll")
        torch.cuda.synchronize(device)  # makes the context current
        self.persisting()
        self.flush = events.Flush(device)
        self.witness = Witness(device)
        self.fixed = events.fixed_seconds(self.flush, self.witness)
        """What events read too much; None if nothing tells."""
        self.hot_probe, self.cold_probe = self._probed()
        self.sync_seconds = statistics.median(_sync_seconds(device) for _ in range(SYNCS))

    @property
    def flushes(self) -> bool:
        """Whether a small read takes longer after the flush than hot."""
        return self.cold_probe > FLUSHED * self.hot_probe

    def persisting(self) -> int:
        """Bytes of L2 that were set aside for lines that no flush drives out; they are given back.

        Raises RuntimeError if the driver refuses.
        """
        driver, size = self._driver, ctypes.c_size_t()
        _asked(driver.cuCtxGetLimit(ctypes.byref(size), PERSISTING), "cuCtxGetLimit")
        if size.value:
            _asked(driver.cuCtxResetPersistingL2Cache(), "cuCtxResetPersistingL2Cache")
            _asked(driver.cuCtxSetLimit(PERSISTING, ctypes.c_size_t(0)), "cuCtxSetLimit")
        return int(size.value)

    def _probed(self) -> tuple[float, float]:
        """Seconds of reading a small buffer hot, and after the flush."""
        size = min(PROBE_BYTES, self.flush.l2_bytes // 2)
        small = torch.ones(max(1, size // 4), device=self.device)
        total = torch.zeros((), device=self.device)

        def read() -> None:
            torch.sum(small, dim=0, out=total)

        def taken(before: Callable[[], None]) -> float:
            clock = events.Events(read, None, before, events.host_seconds(read))
            return statistics.median(clock.sample() for _ in range(PROBES))

        return taken(read), taken(self.flush)


@functools.cache
def gpu(device: str) -> Gpu:
    """The one of this process."""
    return Gpu(device)


def _asked(status: int, name: str) -> None:
    if status:
        raise RuntimeError(f"{name} failed with CUDA error {status}")


def _sync_seconds(device: str) -> float:
    torch.cuda.synchronize(device)
    begin = time.perf_counter()
    torch.cuda.synchronize(device)
    return time.perf_counter() - begin
