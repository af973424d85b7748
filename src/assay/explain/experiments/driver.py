"""PTX on a GPU: assembled by ptxas, loaded and launched through the driver, by ctypes alone.

All launches of an experiment, changed or not, go this way, so that they differ in nothing else.
"""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ...errors import NotRun
from ...inside.geometry.assembler import assemblers
from ...simt.adapters import parameters
from .launched import Launched

MOST_DYNAMIC, STATIC_SHARED, LOCAL_BYTES, REGISTERS = 8, 1, 3, 4
"""CU_FUNC_ATTRIBUTE_* of cuda.h."""
TOOLKIT = "/usr/local/cuda/bin/ptxas"
OLDER = re.compile(r"Unsupported \.version [\d.]+; current version is '([\d.]+)'")
VERSION = re.compile(r"^\.version\s+[\d.]+", re.MULTILINE)


def assembled(ptx: str, arch: str) -> bytes:
    """A cubin. PTX that says a newer version than ptxas knows is assembled as that version, which
    refuses what it does not know. Raises NotRun with ptxas' words."""
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    wanted = target[1] if target and target[1].rstrip("af") == arch else arch
    failed = []
    tools = [*assemblers(arch), *([TOOLKIT] if Path(TOOLKIT).is_file() else [])]
    for tool in dict.fromkeys(tools):
        made, text = _ptxas(tool, ptx, wanted)
        older = OLDER.search(text)
        if made is None and older:
            made, text = _ptxas(tool, VERSION.sub(f".version {older[1]}", ptx), wanted)
        if made is not None:
            return made
        failed.append(f"{tool}: {text.strip()[:200]}")
    raise NotRun("; ".join(failed) or "there is no ptxas: pip install 'assay[triton]'")


def _ptxas(tool: str, ptx: str, arch: str) -> tuple[bytes | None, str]:
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [tool, f"--gpu-name={arch}", str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True)
        return (None if done.returncode else cubin.read_bytes()), done.stderr + done.stdout


class Driver:
    """The CUDA driver of this process, with torch's context current."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._kept: list[Any] = []
        """Cubins, which their kernels are loaded from."""

    def function(self, cubin: bytes, name: str) -> ctypes.c_void_p:
        """A kernel of a cubin."""
        module, found = ctypes.c_void_p(), ctypes.c_void_p()
        image = ctypes.create_string_buffer(cubin, len(cubin))
        self._kept.append(image)
        self._ask("cuModuleLoadData", ctypes.byref(module), image)
        self._ask("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        return found

    def attribute(self, function: ctypes.c_void_p, number: int) -> int:
        """One of a kernel."""
        value = ctypes.c_int()
        self._ask("cuFuncGetAttribute", ctypes.byref(value), ctypes.c_int(number), function)
        return value.value

    def allow(self, function: ctypes.c_void_p, shared: int) -> None:
        """So much dynamic shared memory."""
        self._ask("cuFuncSetAttribute", function, ctypes.c_int(MOST_DYNAMIC), ctypes.c_int(shared))

    def resident(self, function: ctypes.c_void_p, threads: int, shared: int) -> int:
        """Blocks of a multiprocessor at a time."""
        value = ctypes.c_int()
        self._ask(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            *(ctypes.byref(value), function, ctypes.c_int(threads), ctypes.c_size_t(shared)),
        )
        return value.value

    def prepared(self, function: ctypes.c_void_p, one: Launched, args: list[bytes]) -> Any:
        """A launch on a stream, as a function of the stream's number."""
        buffers = [ctypes.create_string_buffer(arg, len(arg)) for arg in args]
        pointers = (ctypes.c_void_p * max(1, len(buffers)))(*map(ctypes.addressof, buffers))
        sizes = [ctypes.c_uint(n) for n in (*one.grid, *one.block, one.shared)]
        start = self._cuda.cuLaunchKernel

        def launch(stream: int, _: Any = buffers) -> None:  # which the pointers point to
            status = start(function, *sizes, ctypes.c_void_p(stream), pointers, None)
            if status:
                raise RuntimeError(f"cuLaunchKernel failed with CUDA error {status}")

        return launch

    def _ask(self, name: str, *args: Any) -> None:
        status = getattr(self._cuda, name)(*args)
        if status:
            raise RuntimeError(f"{name} failed with CUDA error {status}")


def packed(one: Launched, addresses: Any) -> list[bytes]:
    """The bytes of each argument. addresses: of a tensor or array, its address on the GPU."""
    wanted = parameters(one.compiled.ptx, one.compiled.name)
    made = []
    for value, (kind, size) in zip(one.args, wanted, strict=True):
        if isinstance(value, bytes):
            made.append(value)
        elif value is None:
            made.append(bytes(size))
        elif isinstance(value, ctypes._SimpleCData):
            made.append(bytes(value))
        elif isinstance(value, float):
            made.append(_float(value, kind, size))
        elif isinstance(value, int):
            made.append((value & ((1 << 8 * size) - 1)).to_bytes(size, "little"))
        elif kind in ("u64", "b64") and hasattr(value, "shape") and value.shape is not None:
            made.append(int(addresses(value)).to_bytes(8, "little"))
        else:
            made.append(value.tobytes())
    return made


def _float(value: float, kind: str, size: int) -> bytes:
    form = {4: "<f", 8: "<d"}.get(size)
    if form is None:
        raise NotRun(f"a float for a parameter of type {kind}")
    return struct.pack(form, value)
