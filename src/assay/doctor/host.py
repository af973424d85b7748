"""Reads what the operating system says: container, permissions, shared memory, environment."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from assay.doctor import parse
from assay.doctor.facts import Host

# Variables that change what a kernel does or how long it takes; shown if set.
WATCHED = (
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "TRITON_INTERPRET",
    "NUMBA_ENABLE_CUDASIM",
    "NVIDIA_TF32_OVERRIDE",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_DEVICE_ORDER",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_INJECTION64_PATH",
    "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCHDYNAMO_DISABLE",
    "TORCH_COMPILE_DISABLE",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "CUDA_HOME",
    "CUDA_PATH",
    "CC",
    "CXX",
    "OMP_NUM_THREADS",
    "LD_PRELOAD",
)
_NVIDIA = "0x10de"


def host(environ: Mapping[str, str]) -> Host:
    """Everything that can be read without running anything."""
    return Host(
        python=platform.python_version(),
        executable=sys.executable,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        family=parse.os_family(read("/etc/os-release")),
        container=container(environ),
        wsl="microsoft" in read("/proc/version").lower(),
        root=hasattr(os, "geteuid") and os.geteuid() == 0,
        cores=_cores(),
        shm_bytes=shm_bytes(),
        counters=counters(read("/proc/driver/nvidia/params")),
        administrator=parse.administrator(read("/proc/self/status")),
        nvidia_cards=nvidia_cards(Path("/sys/bus/pci/devices")),
        environment=tuple((name, environ[name]) for name in WATCHED if name in environ),
    )


def read(path: str) -> str:
    """A small system file; "" where the system has none or does not show it."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def container(environ: Mapping[str, str]) -> str:
    """The kind of container this runs in; "" if nothing hints at one."""
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    if Path("/.dockerenv").exists():
        return "docker"
    if Path("/run/.containerenv").exists():
        return "podman"
    if Path("/.singularity.d").exists():
        return "apptainer"
    return environ.get("container", "")


def counters(params: str) -> Literal["everyone", "administrators", "unknown"]:
    """Who may read the GPU's counters, by the driver's own word."""
    only_administrators = parse.counters(params)
    if only_administrators is None:
        return "unknown"
    return "administrators" if only_administrators else "everyone"


def shm_bytes() -> int | None:
    """Size of the shared-memory mount, in bytes; None where there is none."""
    if not hasattr(os, "statvfs"):
        return None  # Windows
    try:
        mount = os.statvfs("/dev/shm")
    except OSError:
        return None
    return mount.f_blocks * mount.f_frsize


def nvidia_cards(devices: Path) -> int:
    """NVIDIA display (0x0300) and 3D (0x0302) controllers, driver or not."""
    return sum(
        read(str(entry / "vendor")).strip() == _NVIDIA
        and read(str(entry / "class"))[:6] in ("0x0300", "0x0302")
        for entry in devices.glob("*")
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
