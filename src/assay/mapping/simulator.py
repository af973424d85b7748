"""Numba's simulator, told to report each element that a thread reads or writes to a Recorder.

A kernel gets copies of the arrays, written back at its end: an address in a copy is told as that in
the array it was made from.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .recorder import Recorder


def report_to(recorder: Recorder) -> None:
    """For the rest of this process."""
    from numba import cuda
    from numba.cuda.simulator import args, kernelapi
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    seen = _Seen(recorder)
    kernel = type(cuda.jit(lambda: None))
    call, to_device = kernel.__call__, args.InOut.to_device
    get, put = FakeCUDAArray.__getitem__, FakeCUDAArray.__setitem__

    def called(self: Any, *given: Any) -> Any:
        if not self._device:
            seen.begin(self)
        return call(self, *given)

    def placed(self: Any, *given: Any, **options: Any) -> Any:
        made = to_device(self, *given, **options)
        seen.copied(made._ary, self.value)
        return made

    def got(self: Any, index: Any) -> Any:
        value = get(self, index)
        if not isinstance(value, FakeCUDAArray):  # a view has read nothing yet
            seen.touched("load", self._ary, index)
        return value

    def set_to(self: Any, index: Any, value: Any) -> None:
        seen.touched("store", self._ary, index)
        put(self, index, value)

    kernel.__call__, args.InOut.to_device = called, placed
    FakeCUDAArray.__getitem__, FakeCUDAArray.__setitem__ = got, set_to
    for name, method in list(vars(kernelapi.FakeCUDAAtomic).items()):
        if not name.startswith("_"):
            setattr(kernelapi.FakeCUDAAtomic, name, seen.atomically(method))


class _Seen:
    """Turns an element of an array into an address, and a Python thread into a kernel's."""

    def __init__(self, recorder: Recorder):
        self.recorder, self.grid = recorder, (1, 1, 1)
        self.copies: list[tuple[int, int, int]] = []
        """Start and end of a copy, and what to add to an address in it."""
        self.here = threading.local()
        self.lock = threading.Lock()

    def begin(self, kernel: Any) -> None:
        self.copies, self.grid = [], kernel.grid_dim
        self.recorder.launch(kernel.fn.__name__, kernel.grid_dim, kernel.block_dim)

    def copied(self, made: Any, value: Any) -> None:
        start, end = np.lib.array_utils.byte_bounds(made)
        self.copies.append((start, end, np.lib.array_utils.byte_bounds(value)[0] - start))

    def touched(self, what: str, array: Any, index: Any) -> None:
        thread: Any = threading.current_thread()
        atomic = getattr(self.here, "atomic", False)
        if not hasattr(thread, "blockIdx") or (atomic and what == "load"):
            return
        places = addresses(array, index)
        for start, end, shift in self.copies:
            if len(places) and start <= places[0] < end:
                x, y, z = thread.blockIdx
                block = x + self.grid[0] * (y + self.grid[1] * z)
                with self.lock:
                    self.recorder.touch(
                        "atomic" if atomic else what,
                        places + shift,
                        array.itemsize,
                        block,
                        thread.thread_id,
                    )

    def atomically(self, method: Any) -> Any:
        """An atomic operation is one access, whatever the simulator does for it."""

        def run(*given: Any, **options: Any) -> Any:
            self.here.atomic = True
            try:
                return method(*given, **options)
            finally:
                self.here.atomic = False

        return run


def addresses(array: Any, index: Any) -> Any:
    """Of the elements that an index names."""
    start, steps = array.__array_interface__["data"][0], array.strides
    offsets = np.zeros(array.shape, np.int64)
    for axis, (length, step) in enumerate(zip(array.shape, steps)):
        shape = [-1 if i == axis else 1 for i in range(array.ndim)]
        offsets += (np.arange(length, dtype=np.int64) * step).reshape(shape)
    return start + np.atleast_1d(offsets[index]).reshape(-1)
