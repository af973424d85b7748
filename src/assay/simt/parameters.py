"""A launch's arguments, as the bytes and pointers that a kernel reads its parameters from."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LaunchError
from .memory import Memory, Window, is_array

Packed = list[tuple[int, bytes | tuple[Window, int]]]
"""Offset among the parameters, and bytes or a place in a window."""

FORMATS = {
    **{"u8": "B", "s8": "b", "b8": "B", "u16": "H", "s16": "h", "b16": "H", "u32": "I"},
    **{"s32": "i", "b32": "I", "u64": "Q", "s64": "q", "b64": "Q", "f32": "f", "f64": "d"},
}


class Parameters:
    """Arguments as the bytes that a kernel reads its parameters from."""

    def __init__(self, kernel: str, declared: list[tuple[str, str, int, int]], memory: Memory):
        self.kernel, self.declared, self.memory = kernel, declared, memory

    def pack(self, args: Sequence[Any]) -> Packed:
        """(offset, bytes or a pointer) of each. Structs come as lists of both."""
        if len(args) != len(self.declared):
            raise LaunchError(
                f"{self.kernel} takes {len(self.declared)} arguments, and got {len(args)}"
            )
        made: Packed = []
        for index, value in enumerate(args):
            if is_array(value):
                self.memory.window_of(value, f"argument {index}")
        for index, (value, (_, kind, size, offset)) in enumerate(zip(args, self.declared)):
            made += self._one(index, value, kind, size, offset)
        return made

    def _one(self, index: int, value: Any, kind: str, size: int, offset: int) -> Packed:
        if isinstance(value, np.generic) and not isinstance(value, np.void):
            value = value.item()
        if is_array(value) and not isinstance(value, np.void):
            if size != 8:
                raise LaunchError(
                    f"{self.kernel}: argument {index} is declared .{kind} of {size} bytes, and got "
                    "a tensor"
                )
            _on_cpu(self.kernel, index, value)
            return [(offset, self.memory.window_of(value))]
        if value is None:
            return [(offset, bytes(size))]
        if isinstance(value, (bytes, bytearray, np.void, ctypes._SimpleCData)):
            return self._struct(index, _raw(value), size, offset)
        if not isinstance(value, (bool, int, float)):
            raise LaunchError(
                f"{self.kernel}: argument {index} is a {type(value).__name__}; pass a CPU tensor, "
                "a NumPy array, a number, None, or the bytes of a struct"
            )
        return [(offset, self._number(index, value, kind, size))]

    def _number(self, index: int, value: Any, kind: str, size: int) -> bytes:
        letter = FORMATS.get(kind)
        if letter is None or struct.calcsize(letter) != size:
            raise LaunchError(f"{self.kernel}: argument {index} is {size} bytes, and got {value!r}")
        if isinstance(value, float) and kind[0] != "f":
            raise LaunchError(f"{self.kernel}: argument {index} is declared .{kind}, got {value!r}")
        if kind[0] != "f":
            bits = 8 * size
            if not -(1 << (bits - 1)) <= int(value) < (1 << bits):
                raise LaunchError(
                    f"{self.kernel}: argument {index} has {bits} bits; {value} does not fit"
                )
            return (int(value) & ((1 << bits) - 1)).to_bytes(size, "little")
        with np.errstate(over="ignore"):  # beyond the largest float is infinity
            return (np.float32 if kind == "f32" else np.float64)(value).tobytes()

    def _struct(self, index: int, value: bytes, size: int, offset: int) -> Packed:
        """Its bytes, with the addresses that lie in known memory made pointers into windows."""
        if len(value) != size:
            raise LaunchError(
                f"{self.kernel}: argument {index} has {size} bytes, and got {len(value)}"
            )
        made: Packed = [(offset, value)]
        for at in range(0, size - 7, 8):
            address = int.from_bytes(value[at : at + 8], "little")
            window = self.memory.find(address) if address > 4096 else None
            if window is not None:
                made.append((offset + at, (window, address - window.start)))
        return made


def _raw(value: Any) -> bytes:
    return bytes(value)


def _on_cpu(kernel: str, index: int, value: Any) -> None:
    device = getattr(value, "device", None)
    if device is not None and getattr(device, "type", "cpu") != "cpu":
        raise LaunchError(f"{kernel}: argument {index} is on {device}; this launch is on the CPU")
