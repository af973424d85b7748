"""Replayed launches without a GPU: the driver's function is one that computes what eager does.

Guards, look-up, packing, streams, autograd and errors are those of a GPU, by Python (replay.py) and
by the C++ module (native/) alike; a kernel alone is not run.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from assay.operators import native, replay, running
from assay.operators.native import table
from assay.ways.launch import Launch, arguments

LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)
STREAM = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
CURRENT = ctypes.CFUNCTYPE(ctypes.c_int32)
WORDS = {0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 201: "CUDA_ERROR_INVALID_CONTEXT"}
HEAD = 5000
"""Handles of the stand-in: this and what follows."""


@dataclass
class Standin:
    """A driver: what it was asked, and what it says next."""

    kernels: list[Callable[[list[int]], None]] = field(default_factory=list)
    calls: list[tuple[int, tuple[int, ...], int]] = field(default_factory=list)
    """Handle, geometry with shared memory, stream."""
    says: list[int] = field(default_factory=list)
    stream: int = 77
    device: int = 0
    woken: int = 0

    def launch(self, handle: int, geometry: tuple[int, ...], stream: int, table: Any) -> int:
        if self.says and (said := self.says.pop()):
            return said
        self.calls.append((handle, geometry, stream))
        self.kernels[handle - HEAD](table)
        return 0

    def wake(self) -> None:
        self.woken += 1

    def kernel(self, eager: Any, outputs: Sequence[torch.Tensor], inputs: Sequence[Any]) -> int:
        """A handle of a kernel that computes what eager does, of tensors of these forms."""
        made = [(tuple(y.shape), y.dtype) for y in outputs]
        given = [(tuple(x.shape), x.dtype) if isinstance(x, torch.Tensor) else x for x in inputs]

        def run(table: Any) -> None:
            places = iter(table)

            def at(form: Any) -> Any:
                if not isinstance(form, tuple):
                    return form
                address = ctypes.c_uint64.from_address(next(places)).value
                return memory(address, *form)

            results = [at(form) for form in made]
            values = [at(form) for form in given]
            with torch.no_grad():
                for one, other in zip(results, eager.run([], values), strict=True):
                    one.copy_(other)

        self.kernels.append(run)
        return HEAD + len(self.kernels) - 1


def memory(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The tensor that lies there."""
    count = math.prod(shape)
    if not count:
        return torch.empty(shape, dtype=dtype)
    raw = (ctypes.c_byte * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(raw, dtype=dtype).view(shape)


def planned(standin: Standin) -> Any:
    """In place of `running._replay`: one launch that takes all tensors, in order."""

    def made(
        kernel: Any, specs: Any, inputs: Any, device: torch.device, *, plain: bool
    ) -> tuple[replay.Replay | None, str]:
        if not plain:
            return None, "its inputs are copied or changed"
        given = [x.detach() if isinstance(x, torch.Tensor) else x for x in inputs]
        with torch.no_grad():
            outputs = [torch.empty(y.shape, dtype=y.dtype) for y in kernel.run([], given)]
        handle = standin.kernel(kernel, outputs, given)
        tensors = [*outputs, *(x for x in given if isinstance(x, torch.Tensor))]
        launch = Launch("kernel", (7, 1, 1), (32, 1, 1), 16, (*tensors, 3))
        parameters = [*([["u64", 0]] * len(tensors)), ["u32", 0]]
        packed = replay.Packed(launch, tensors, (handle, parameters, standin.wake))
        places = [i for i, x in enumerate(given) if isinstance(x, torch.Tensor)]
        forms = [(tuple(y.shape), y.stride(), y.dtype) for y in outputs]
        return replay.Replay([packed], forms, places, 0, kernel), ""

    return made


@contextlib.contextmanager
def replaying(path: str) -> Iterator[Standin]:
    """Operators that are made here replay on the CPU: by `python`, or by `native` alone."""
    bindings = pytest.importorskip("cuda.bindings.driver")
    standin = Standin()

    def plain(handle: Any, *rest: Any) -> tuple[Any]:
        *geometry, stream, address, _ = rest
        count = 64
        table = (ctypes.c_uint64 * count).from_address(address)
        said = standin.launch(int(handle), tuple(geometry), stream, table)
        return (Said(said),)

    def called(handle: Any, *rest: Any) -> int:
        *geometry, stream, table, _ = rest
        return standin.launch(handle, tuple(geometry), stream or 0, _pointers(table))

    def stream_of(index: int, into: Any) -> int:
        into[0] = standin.stream
        return 0

    keep = LAUNCH(called), STREAM(stream_of), CURRENT(lambda: standin.device)
    found = tuple(ctypes.cast(one, ctypes.c_void_p).value for one in keep)
    guards = torch._C._dynamo.guards
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bindings, "cuLaunchKernel", plain)
        patch.setattr(replay, "arguments", _on_the_cpu)
        patch.setattr(torch._C, "_cuda_getDevice", lambda: standin.device, raising=False)
        patch.setattr(
            torch._C, "_cuda_getCurrentRawStream", lambda i: standin.stream, raising=False
        )
        patch.setattr(guards, "_empty_strided_cuda", guards._empty_strided_cpu)
        patch.setattr(running, "_replay", planned(standin))
        patch.setattr(table, "addresses", lambda: found)
        native.switch(path == "native")
        try:
            yield standin
        finally:
            native.switch(True)
            KEPT.append(keep)


KEPT: list[Any] = []
"""Functions that graphs and tables of a test may still call."""


def _pointers(table: Any) -> Iterator[int]:
    index = 0
    while True:
        yield table[index] or 0
        index += 1


def _on_the_cpu(name: str, args: Any, parameters: Any, device: str) -> Any:
    return arguments(name, args, parameters, device)


class Said:
    """A CUresult."""

    def __init__(self, status: int):
        self.status, self.name = status, WORDS[status]

    def __bool__(self) -> bool:
        return self.status != 0
