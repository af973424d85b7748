"""Asks CUDA, NVML or NVRTC one question and prints one line of JSON. Runs only as a child.

Imports the standard library alone: a library that crashes or hangs takes this process with it,
and nothing else.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any

# CUdevice_attribute in cuda.h; the key is the field of facts.Device.
ATTRIBUTES = {
    "sms": 16,
    "warp_threads": 10,
    "max_threads_per_block": 1,
    "max_threads_per_sm": 39,
    "max_blocks_per_sm": 106,
    "registers_per_block": 12,
    "registers_per_sm": 82,
    "shared_per_block_bytes": 8,
    "shared_optin_bytes": 97,
    "shared_per_sm_bytes": 81,
    "shared_reserved_bytes": 111,
    "constant_bytes": 9,
    "l2_bytes": 38,
    "l2_persisting_bytes": 108,
    "sm_clock_hertz": 13,
    "memory_clock_hertz": 36,
    "memory_bus_bits": 37,
    "copy_engines": 40,
    "cooperative_launch": 95,
    "ecc": 32,
    "compute_mode": 20,
}
_KILOHERTZ = ("sm_clock_hertz", "memory_clock_hertz")
_FLAGS = ("ecc", "cooperative_launch")


def attribute(cuda: Any, number: int, device: Any) -> int | None:
    """One attribute, or None if this driver does not know it."""
    value = ctypes.c_int()
    code = cuda.cuDeviceGetAttribute(ctypes.byref(value), ctypes.c_int(number), device)
    return value.value if code == 0 else None


def describe(cuda: Any, index: int) -> dict[str, Any]:
    """One GPU, without creating a context on it."""
    device = ctypes.c_int()
    if code := cuda.cuDeviceGet(ctypes.byref(device), index):
        raise RuntimeError(f"cuDeviceGet({index}): {code_name(cuda, code)}")
    name, pci, memory = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32), 0
    size = ctypes.c_size_t()
    cuda.cuDeviceGetName(name, 256, device)
    cuda.cuDeviceGetPCIBusId(pci, 32, device)
    if cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device) == 0:
        memory = size.value
    found: dict[str, Any] = {
        "index": index,
        "name": name.value.decode("utf-8", "replace"),
        "pci": pci.value.decode("ascii", "replace"),
        "memory_bytes": memory,
        "capability": [attribute(cuda, 75, device) or 0, attribute(cuda, 76, device) or 0],
    }
    for field, number in ATTRIBUTES.items():
        value = attribute(cuda, number, device)
        if value is not None and field in _KILOHERTZ:
            value *= 1000
        found[field] = bool(value) if field in _FLAGS and value is not None else value
    return found


def code_name(cuda: Any, code: int) -> str:
    """CUDA's own name of a result code."""
    text = ctypes.c_char_p()
    cuda.cuGetErrorName(code, ctypes.byref(text))
    return f"{(text.value or b'unknown error').decode()} ({code})"


def load_cuda() -> Any:
    """libcuda, also from where WSL keeps it. Raises OSError if neither can be loaded."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        try:
            return ctypes.CDLL("/usr/lib/wsl/lib/libcuda.so.1")
        except OSError:
            raise error from None


def mapped(stem: str) -> str:
    """Where the loaded library lies, from this process's own map; "" where there is none."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return next((line.split()[-1] for line in maps if f"/{stem}" in line), "")
    except OSError:
        return ""


def ask_cuda() -> dict[str, Any]:
    """Driver version and every GPU that `cuInit` lets this process see."""
    try:
        cuda = load_cuda()
    except OSError as error:
        return {"code": -1, "error": str(error)}
    raw, count = ctypes.c_int(), ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(raw))
    answer: dict[str, Any] = {
        "version": f"{raw.value // 1000}.{raw.value % 1000 // 10}",
        "library": mapped("libcuda.so"),
    }
    code = cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count))
    if code:
        return {**answer, "code": code, "error": code_name(cuda, code)}
    return {**answer, "devices": [describe(cuda, index) for index in range(count.value)]}


def ask_nvrtc(library: str) -> dict[str, Any]:
    """Compiles an empty kernel to PTX: version, PTX version written, architectures."""
    nvrtc = ctypes.CDLL(library)
    major, minor, program = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    size, count = ctypes.c_size_t(), ctypes.c_int()
    nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    source = b'extern "C" __global__ void nothing() {}'
    code = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"nothing.cu", 0, None, None)
    code = code or nvrtc.nvrtcCompileProgram(program, 0, None)
    code = code or nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    if code:
        raise RuntimeError(f"NVRTC could not compile an empty kernel: error {code}")
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    version = [line.split()[1] for line in ptx.value.decode().splitlines() if ".version" in line]
    nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    nvrtc.nvrtcGetSupportedArchs(numbers)
    return {
        "version": f"{major.value}.{minor.value}",
        "ptx": version[0],
        "architectures": [f"{number // 10}.{number % 10}" for number in numbers],
    }


def ask_nvml(folder: str) -> dict[str, Any]:
    """Driver version, ECC and largest clocks by way of nvidia-ml-py in `folder`."""
    spec = PathFinder.find_spec("pynvml", [folder])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"pynvml is not in {folder}")
    nvml: Any = module_from_spec(spec)
    sys.modules["pynvml"] = nvml  # where it looks itself up
    spec.loader.exec_module(nvml)
    try:
        nvml.nvmlInit()
        cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return {
            "driver": nvml.nvmlSystemGetDriverVersion(),
            "cuda": f"{cuda // 1000}.{cuda % 1000 // 10}",
            "boards": [board(nvml, handle) for handle in handles],
        }
    except nvml.NVMLError as error:
        return {"error": str(error)}


def board(nvml: Any, handle: Any) -> dict[str, Any]:
    """One GPU as NVML sees it; what it does not support stays out."""
    found: dict[str, Any] = {"pci": nvml.nvmlDeviceGetPciInfo(handle).busId}
    questions = {
        "ecc": lambda: bool(nvml.nvmlDeviceGetEccMode(handle)[0]),
        "sm_clock_hertz": lambda: (
            1_000_000 * nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
        ),
        "memory_clock_hertz": lambda: (
            1_000_000 * nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)
        ),
    }
    for field, question in questions.items():
        try:
            found[field] = question()
        except nvml.NVMLError_NotSupported:
            found[field] = None
    return found


QUESTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "cuda": ask_cuda,
    "nvrtc": ask_nvrtc,
    "nvml": ask_nvml,
}

if __name__ == "__main__":
    print(json.dumps(QUESTIONS[sys.argv[1]](*sys.argv[2:])))
