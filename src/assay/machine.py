"""What this machine is. GPUs are asked in a child, so that the parent never touches CUDA."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import re
from pathlib import Path
from typing import Any

import msgspec

from .processes.channel import Channel
from .types import GPU, Machine

PACKAGES = (
    "assay",
    "torch",
    "triton",
    "numba",
    "numba-cuda",
    "cuda-core",
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "numpy",
)


def main(channel: Channel) -> None:
    """The child's job: sends the machine as data."""
    channel.send(machine=msgspec.to_builtins(describe()))


def describe() -> Machine:
    """This machine. Initialises CUDA if there is a GPU: call it in a child."""
    gpus, why = _gpus()
    versions = {"python": platform.python_version(), **_versions()}
    facts: dict[str, Any] = {
        "cpu": _cpu(),
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "llc_bytes": _llc_bytes(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "versions": versions,
        "gpus": gpus,
        "no_gpu": why,
    }
    digest = hashlib.blake2b(repr(facts).encode(), digest_size=5).hexdigest()
    return Machine(id=digest, **facts)


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _gpus() -> tuple[tuple[GPU, ...], str]:
    import torch

    if torch.version.cuda is None:
        return (), "this torch is built for the CPU"
    if not torch.cuda.is_available():
        return (), "CUDA finds no GPU"
    found = []
    for index in range(torch.cuda.device_count()):
        p = torch.cuda.get_device_properties(index)
        found.append(
            GPU(
                name=p.name,
                capability=(p.major, p.minor),
                multiprocessors=p.multi_processor_count,
                memory_bytes=p.total_memory,
                l2_bytes=p.L2_cache_size,
                shared_bytes_per_block_optin=p.shared_memory_per_block_optin,
                driver=_driver(),
                uuid=str(p.uuid),
                **_clocks(index),
            )
        )
    return tuple(found), ""


SM_KHZ, MEMORY_KHZ, BUS_BITS = 13, 36, 37  # CUdevice_attribute, cuda.h


def _clocks(index: int) -> dict[str, Any]:
    """What the driver says of a GPU's clocks and memory bus; nothing where it does not say."""
    driver = ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll")
    found, device, value = {}, ctypes.c_int(), ctypes.c_int()
    if driver.cuDeviceGet(ctypes.byref(device), index):
        return {}
    for name, attribute, unit in (
        ("sm_hz", SM_KHZ, 1e3),
        ("memory_hz", MEMORY_KHZ, 1e3),
        ("bus_bits", BUS_BITS, 1),
    ):
        failed = driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        if not failed and value.value > 0:  # 0: a driver that no longer tells
            found[name] = unit * value.value
    return found


def _driver() -> str:
    """The kernel module's version: `NVRM version: ... 580.159.04 ...`."""
    path = Path("/proc/driver/nvidia/version")
    found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", path.read_text()) if path.is_file() else None
    return found.group(1) if found else ""


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found.group(1).strip()
    return platform.processor() or platform.machine()


def _llc_bytes() -> int | None:
    sizes = []
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
        if text[-1:] in units and text[:-1].isdigit():
            sizes.append(int(text[:-1]) * units[text[-1]])
    return max(sizes, default=None)
