"""A CUDA launch recorded once and replayed: its arguments stay packed, only pointers change.

A launcher is ordinary Python, which works out a grid and converts arguments at each call. Where it
looks at nothing but what a plan is kept by (shapes, strides, dtypes, the device, scalars) and calls
nothing of torch, its launches are the same at each call of that form, and need not be worked out
again. `Watch` sees to that: whatever else a launcher asks of torch is the reason not to replay it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..ways.launch import Launch, Recorder, arguments, refused

SLOT = 16
"""Bytes that the space of a packed argument is a multiple of: the widest alignment there is."""
_T: Any = torch.Tensor
SEEN = {
    *(getattr(_T, name) for name in ("dim", "element_size", "is_complex", "is_contiguous")),
    *(getattr(_T, name) for name in ("is_floating_point", "numel", "size", "stride", "__len__")),
    *(getattr(_T, name).__get__ for name in ("device", "dtype", "is_cuda", "itemsize", "nbytes")),
    *(getattr(_T, name).__get__ for name in ("ndim", "shape", "layout", "requires_grad")),
}
"""What a launcher may ask of a tensor: it follows from what plans are kept by."""


class _Other(Exception):
    """A launcher asked for something else; its text is what."""


class Watch(TorchFunctionMode):
    """Lets a launcher look at the form of tensors, and at nothing else of torch."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in SEEN:
            raise _Other(f"its launcher uses {getattr(func, '__qualname__', func)}")
        return func(*args, **(kwargs or {}))


def recorded(
    call: Callable[[Any, list[Any], list[Any]], Any],
    outputs: list[Any],
    inputs: Sequence[Any],
    arch: str,
) -> tuple[list[Launch], str]:
    """The launches of a launcher, whose arguments are these tensors; or none, and why.

    call: runs it with a handle, outputs and inputs. It runs twice: what differs is not replayed.
    arch: what its kernels are compiled for.
    """
    found: list[list[Launch]] = []
    try:
        for _ in range(2):
            recorder = Recorder(arch)
            with Watch():
                call(recorder, outputs, list(inputs))
            found.append(recorder.launches)
    except _Other as other:
        return [], str(other)
    first, again = found
    if not first:
        return [], "it launches nothing"
    if first != again or any(not _same(a, b) for a, b in zip(first, again)):
        return [], "its launcher launched something else the second time"
    if any(one.early for one in first):
        return [], "a kernel of it starts before the one in front of it has ended"
    own = {id(x) for x in (*outputs, *inputs)}
    if any(isinstance(x, torch.Tensor) and id(x) not in own for one in first for x in one.args):
        return [], "its launcher passes a tensor of its own"
    return first, ""


def _same(one: Launch, other: Launch) -> bool:
    """Whether the arguments are the same tensors and equal numbers."""
    return len(one.args) == len(other.args) and all(
        a is b if isinstance(a, torch.Tensor) else type(a) is type(b) and repr(a) == repr(b)
        for a, b in zip(one.args, other.args)
    )


class Packed:
    """One launch, ready but for its pointers: `packed(pointers, stream)`.

    tensors: whose places in `pointers` the arguments are found by. loaded: the driver's handle, the
    parameters of the kernel, and what makes its device the current one of a thread.
    """

    def __init__(self, launch: Launch, tensors: Sequence[Any], loaded: Any):
        from cuda.bindings import driver

        handle, parameters, self._here = loaded
        self._launch_kernel, self._launch = driver.cuLaunchKernel, launch
        self._handle = int(handle)
        self._geometry = (driver.CUfunction(self._handle), *launch.grid, *launch.block)
        self._shared = launch.shared
        device = tensors[0].device.type
        places = {id(x): i for i, x in enumerate(tensors)}
        passed = arguments(launch.name, launch.args, parameters, device)
        self._pointers: list[tuple[int, int]] = []
        """Of each tensor among the arguments: which 8 bytes, and its place in `pointers`."""
        self._offsets: list[int] = []
        packed = b""
        for given, value in zip(launch.args, passed):
            self._offsets.append(len(packed))
            if isinstance(given, torch.Tensor):
                self._pointers.append((len(packed) // 8, places[id(given)]))
                packed += bytes(SLOT)
                continue
            own = value.tobytes() if hasattr(value, "tobytes") else bytes(value)
            packed += own + bytes(-len(own) % SLOT)
        self._bytes = packed
        self._free: list[tuple[Any, int, Any]] = []
        """Buffers that no thread uses now: a launch lets others run before it has read them."""

    def _buffer(self) -> tuple[Any, int, Any]:
        """The arguments as 8-byte words, and the address of the list of their addresses."""
        words = (ctypes.c_uint64 * max(1, len(self._bytes) // 8)).from_buffer_copy(
            self._bytes or bytes(8)
        )
        start = ctypes.addressof(words)
        table = (ctypes.c_uint64 * max(1, len(self._offsets)))(*(start + o for o in self._offsets))
        return words, ctypes.addressof(table), table

    def __call__(self, pointers: Sequence[int], stream: int) -> None:
        """Raises LaunchError with what the driver says."""
        try:
            held = self._free.pop()
        except IndexError:
            held = self._buffer()
        words, address, _ = held
        for word, place in self._pointers:
            words[word] = pointers[place]
        (status,) = self._launch_kernel(*self._geometry, self._shared, stream, address, 0)
        if status and status.name == "CUDA_ERROR_INVALID_CONTEXT":  # a thread new to CUDA
            self._here()
            (status,) = self._launch_kernel(*self._geometry, self._shared, stream, address, 0)
        self._free.append(held)
        if status:
            refused(self._launch.name, status)

    def parts(self) -> tuple[Any, ...]:
        """Handle, grid, block, shared memory, name, arguments, where pointers belong among them
        (which 8 bytes, whose), where each begins, and what wakes a thread: for native/table.py."""
        one = self._launch
        told = (self._handle, one.grid, one.block, one.shared, one.name, self._bytes)
        return (*told, tuple(self._pointers), tuple(self._offsets), self._here)


class Replay:
    """All launches of a call: `replay(inputs)` gives its outputs, or None on another device."""

    def __init__(
        self,
        launches: Sequence[Packed],
        outputs: Sequence[tuple[tuple[int, ...], tuple[int, ...], torch.dtype]],
        tensors: Sequence[int],
        device: int,
        owner: Any = None,
    ):
        """outputs: shape, strides and dtype. tensors: places of the inputs that are tensors.
        owner: what keeps the kernels loaded."""
        self.owner = owner
        self.launches, self.outputs, self.device = tuple(launches), tuple(outputs), device
        self._tensors = tuple(tensors)
        self._current = torch._C._cuda_getDevice
        self._stream = torch._C._cuda_getCurrentRawStream
        # torch.empty without the dispatcher, as compiled code of Inductor allocates.
        self._empty = torch._C._dynamo.guards._empty_strided_cuda

    def __call__(self, inputs: Sequence[Any]) -> list[torch.Tensor] | None:
        if self._current() != self.device:
            return None
        made = [self._empty(*one) for one in self.outputs]
        pointers = [y.data_ptr() for y in made]
        pointers += [inputs[i].data_ptr() for i in self._tensors]
        stream = self._stream(self.device)
        for launch in self.launches:
            launch(pointers, stream)
        return made
