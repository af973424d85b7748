"""One CUDA launch: its geometry within the limits, its arguments as the kernel declares them.

Nothing here needs a GPU, so that what can't be launched is refused by name without one.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from .. import hardware
from ..errors import LaunchError
from .cpp import number

TYPES = {
    "float64": "double",
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
    "complex64": "float2",
    "complex128": "double2",
}
C_TYPES: dict[str, Any] = {
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "s8": ctypes.c_int8,
    "s16": ctypes.c_int16,
    "s32": ctypes.c_int32,
    "s64": ctypes.c_int64,
}


@dataclass(frozen=True)
class Launch:
    """One launch that a launcher asked for."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    args: tuple[Any, ...] = field(default=(), compare=False)
    """As the launcher passed them: tensors and numbers."""
    early: bool = False
    """Whether it may start before the kernel in front of it on the stream has ended."""


def configured_as(name: str, grid: Any, block: Any, shared: Any, early: bool = False) -> Launch:
    """A launch as a launcher writes it: `grid` and `block` of one to three ints."""
    return Launch(name, _three("grid", grid), _three("block", block), int(shared), early=early)


class Recorder:
    """`k` in a dry run: notes every launch with its arguments."""

    def __init__(self, arch: str) -> None:
        """arch: what it is compiled for, which `k.arch` says everywhere: launchers choose by it."""
        self.launches: list[Launch] = []
        self.arch = arch

    def __getitem__(self, name: str) -> Any:
        def configured(*, grid: Any, block: Any, shared: int = 0, early: bool = False) -> Any:
            launch = configured_as(name, grid, block, shared, early)

            def launched(*args: Any) -> None:
                self.launches.append(replace(launch, args=args))

            return launched

        return configured

    @staticmethod
    def type(value: Any) -> str:
        """The C++ type of a tensor's elements."""
        return type_of(value)


def type_of(value: Any) -> str:
    """The C++ type of a tensor's elements. Raises LaunchError if CUDA C++ has none."""
    name = str(value.dtype).removeprefix("torch.")
    if name not in TYPES:
        raise LaunchError(f"CUDA C++ has no element type for torch.{name}")
    return TYPES[name]


def _three(what: str, value: Any) -> tuple[int, int, int]:
    sizes = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(s, int) for s in sizes):
        raise LaunchError(f"{what}={value!r}: give one to three ints")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def check_geometry(launch: Launch) -> None:
    """Raises LaunchError for what no GPU can launch, naming the number and its limit."""
    threads = math.prod(launch.block)
    if threads > hardware.THREADS:
        raise LaunchError(f"{launch.name}: {threads:,} threads a block, limit {hardware.THREADS:,}")
    of_each = (("grid", launch.grid, hardware.GRID), ("block", launch.block, hardware.BLOCK))
    for what, sizes, limits in of_each:
        for axis, size, most in zip("xyz", sizes, limits):
            if not 1 <= size <= most:
                raise LaunchError(f"{launch.name}: {what} {axis} = {size:,}, limits 1 to {most:,}")


def check_shared(launch: Launch, static: int | None, arch: str) -> None:
    """Raises LaunchError for more shared memory than a block of this architecture can have."""
    most = hardware.shared_of(arch)
    if most is not None and launch.shared + (static or 0) > most:
        raise LaunchError(
            f"{launch.name}: shared memory: asked {launch.shared:,} + static {static or 0:,}; "
            f"default {hardware.SHARED_DEFAULT:,}; opt-in {most:,} on {arch}"
        )


def arguments(
    name: str, args: tuple[Any, ...], parameters: list[list[Any]], device: str = "cuda"
) -> Iterable[Any]:
    """Tensors as pointers (on the CPU as themselves), numbers as the parameter's type."""
    if len(args) != len(parameters):
        raise LaunchError(f"{name} takes {len(parameters)} arguments, and got {len(args)}")
    for index, (value, (kind, size)) in enumerate(zip(args, parameters)):
        if hasattr(value, "data_ptr"):
            if kind != "u64":
                raise LaunchError(f"{name}: argument {index} is declared {kind}, and got a tensor")
            if value.device.type != device:
                raise LaunchError(f"{name}: argument {index} is on {value.device}: move it first")
            yield value if device == "cpu" else value.data_ptr()
        elif isinstance(value, ctypes._SimpleCData):
            if kind not in C_TYPES or not _alike(value, C_TYPES[kind]):
                raise LaunchError(
                    f"{name}: argument {index} is declared {kind}, and got {type(value).__name__}"
                )
            yield value
        elif kind in C_TYPES:
            yield _scalar(name, index, value, kind)
        elif getattr(value, "nbytes", None) == size:
            yield value
        else:
            raise LaunchError(
                f"{name}: argument {index} is a struct of {size} bytes; "
                "pass a NumPy scalar or array of that size"
            )


def _alike(value: Any, declared: Any) -> bool:
    """Same size, and both floating point or neither."""
    floats = (ctypes.c_float, ctypes.c_double)
    return ctypes.sizeof(value) == ctypes.sizeof(declared) and (
        isinstance(value, floats) == (declared in floats)
    )


def _scalar(name: str, index: int, value: Any, kind: str) -> Any:
    # A launch would pass 7.0 to a `float` as a double, of which the kernel then reads half.
    # An int for an integer is as it is, and most arguments are one.
    plain = type(value) is int and not kind.startswith("f")
    made = value if plain else number(name, index, value, kind, kind.startswith("f"))
    if not kind.startswith("f"):
        bits = int(kind[1:])
        # PTX says u32 for int and unsigned alike, so both ranges are taken.
        if not -(1 << (bits - 1)) <= made < (1 << bits):
            raise LaunchError(f"{name}: argument {index} has {bits} bits; {made} does not fit")
        made &= (1 << bits) - 1
    return C_TYPES[kind](made)


def refused(name: str, status: Any) -> NoReturn:
    """Raises LaunchError with what the driver says, by its word or its number."""
    if isinstance(status, int) and not hasattr(status, "name"):
        from cuda.bindings import driver

        status = driver.CUresult(status)
    raise LaunchError(f"{name}: the driver refuses to launch it: {status.name}")
