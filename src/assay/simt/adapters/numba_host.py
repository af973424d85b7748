"""What a Numba program calls around its launches, on the CPU: memory, streams, the device.

Memory is NumPy's, so copies to and from the device are copies; a stream is in order and a launch
has ended when it returns, so nothing is waited for. What has no meaning here raises NotRun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from ... import hardware
from ...errors import NotRun, NotSupported


class DeviceArray(np.ndarray):
    """A NumPy array with the methods of a device array."""

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        if ary is None:
            return np.array(self, copy=True, subok=False)
        array_of(ary)[...] = self.view(np.ndarray)
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        self[...] = array_of(ary)

    def is_c_contiguous(self) -> bool:
        return self.flags.c_contiguous

    def is_f_contiguous(self) -> bool:
        return self.flags.f_contiguous

    def bind(self, stream: Any = 0) -> DeviceArray:
        return self


class _Absent:
    """What is asked of it and not given by a subclass needs a GPU."""

    what = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotRun(f"{name} of {self.what} needs a GPU: kernels run on the CPU here")


class Device(_Absent):
    """The device that kernels are compiled for; sizes are those of the card best known for it."""

    what = "a CUDA device"
    id = 0
    WARP_SIZE = 32
    MAX_THREADS_PER_BLOCK = 1024
    MAX_BLOCK_DIM_X = MAX_BLOCK_DIM_Y = 1024
    MAX_BLOCK_DIM_Z = 64
    MAX_GRID_DIM_X = 2**31 - 1
    MAX_GRID_DIM_Y = MAX_GRID_DIM_Z = 65535
    supports_float16 = supports_bfloat16 = True

    def __init__(self, number: int) -> None:
        self.compute_capability = divmod(number, 10)
        self.name = f"sm_{number} on the CPU"
        self.MULTIPROCESSOR_COUNT = hardware.MULTIPROCESSORS[number]
        self.MAX_SHARED_MEMORY_PER_BLOCK = 49152
        self.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = hardware.SHARED[number]
        self.supports_fp8 = number >= 89

    def reset(self) -> None:
        pass


class Context(_Absent):
    """In place of a CUDA context."""

    what = "a CUDA context"

    def __init__(self, device: Device) -> None:
        self.device = device

    def synchronize(self) -> None:
        pass

    def reset(self) -> None:
        pass


class Stream(_Absent):
    """A stream on which everything has been done."""

    what = "a CUDA stream"
    handle = 0

    def synchronize(self) -> None:
        pass

    @contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        yield self


class Event(_Absent):
    """An event; two of them have no time between them, because nothing is timed."""

    what = "a CUDA event"

    def record(self, stream: Any = 0) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Any = 0) -> None:
        pass

    def query(self) -> bool:
        return True


def unhinted(value: Any) -> Any:
    """The array in `cuda.In`, `cuda.Out` or `cuda.InOut`."""
    hinted = type(value).__module__.endswith("cuda.args")
    return value.value if hinted else value


def array_of(value: Any) -> Any:
    """A NumPy view of an array or CPU tensor; any other value is returned as it is."""
    value = unhinted(value)
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if not hasattr(value, "untyped_storage"):
        return value
    if value.device.type != "cpu":
        raise NotRun(f"a tensor on {value.device}: here all tensors are on the CPU")
    try:
        return value.detach().numpy()
    except TypeError:
        kind = str(value.dtype).removeprefix("torch.")
        raise NotSupported(f"{kind}: Numba's arrays have no such type") from None


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: Any = None) -> Any:
    if to is not None:
        to[...] = array_of(obj)
        return to
    array = np.asarray(array_of(obj))
    return (array.copy(order="K") if copy else array).view(DeviceArray)


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
) -> Any:
    if strides is not None:
        raise NotRun("a device array with strides of its own is not made here")
    return np.empty(shape, dtype, "F" if order == "F" else "C").view(DeviceArray)


def device_array_like(ary: Any, stream: Any = 0) -> Any:
    return np.empty_like(array_of(ary)).view(DeviceArray)


def host_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", **_: Any
) -> Any:
    return device_array(shape, dtype, strides, order)


def as_cuda_array(obj: Any, sync: bool = True) -> Any:
    return np.asarray(array_of(obj)).view(DeviceArray)


def is_cuda_array(obj: Any) -> bool:
    return isinstance(obj, DeviceArray) or hasattr(obj, "__cuda_array_interface__")


def event_elapsed_time(start: Any, end: Any) -> float:
    raise NotRun("the time between two events is that of a GPU: nothing is timed on the CPU")


def functions(device: Device) -> dict[str, Callable[..., Any]]:
    """The functions of `numba.cuda` that have another meaning here, by name."""
    context = Context(device)
    return {
        "to_device": to_device,
        "device_array": device_array,
        "device_array_like": device_array_like,
        "pinned_array": host_array,
        "pinned_array_like": device_array_like,
        "mapped_array": host_array,
        "mapped_array_like": device_array_like,
        "managed_array": host_array,
        "as_cuda_array": as_cuda_array,
        "is_cuda_array": is_cuda_array,
        "pinned": lambda *arrays: nullcontext(),
        "defer_cleanup": lambda: nullcontext(),
        "synchronize": lambda: None,
        "stream": lambda: Stream(),
        "default_stream": lambda: Stream(),
        "legacy_default_stream": lambda: Stream(),
        "per_thread_default_stream": lambda: Stream(),
        "event": lambda timing=True: Event(),
        "event_elapsed_time": event_elapsed_time,
        "current_context": lambda devnum=None: context,
        "get_current_device": lambda: device,
        "select_device": lambda device_id: context,
        "close": lambda: None,
        "is_available": lambda: True,
        "is_float16_supported": lambda: True,
        "is_bfloat16_supported": lambda: True,
    }
