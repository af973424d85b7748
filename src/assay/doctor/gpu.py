"""Asks the driver about itself and its GPUs, always from another process."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from assay.doctor import parse
from assay.doctor.bounded import ask, last_line, run
from assay.doctor.capability import features
from assay.doctor.facts import Board, Cuda, Device, Management, Probe

_SECONDS = 20.0  # cuInit on a machine of eight GPUs without persistence mode takes many seconds


def cuda() -> Cuda:
    """The driver API's view. A child that crashes or hangs is a fact with code -2."""
    ran = ask("cuda", seconds=_SECONDS)
    if ran.failure:
        return Cuda(code=-2, error=f"asking libcuda failed: {ran.failure}")
    found = msgspec.json.decode(last_line(ran.out), type=Cuda)
    return replace(found, devices=tuple(_with_features(device) for device in found.devices))


def _with_features(device: Device) -> Device:
    return replace(device, features=features(device.capability))


def management(nvml: Probe, environ: Mapping[str, str]) -> Management:
    """NVML's view by way of nvidia-ml-py where that works, else nvidia-smi's."""
    if nvml.state != "found":
        return _nvidia_smi(environ)
    ran = ask("nvml", nvml.path, seconds=_SECONDS)
    found = Management(error=ran.failure)
    if not ran.failure:
        found = msgspec.json.decode(last_line(ran.out), type=Management)
    if not found.error:
        return replace(found, source="NVML")
    return replace(_nvidia_smi(environ), detail=f"NVML: {found.error}")


def _nvidia_smi(environ: Mapping[str, str]) -> Management:
    folders = environ.get("PATH", "") + ":/usr/lib/wsl/lib"  # WSL keeps it off PATH
    program = shutil.which("nvidia-smi", path=folders)
    if program is None:
        return Management(error="nvidia-smi is not on PATH", source="nvidia-smi")
    ran = run([program, "-q", "-d", "CLOCK,ECC"], _SECONDS)
    found = parse.nvidia_smi(ran.text)
    return replace(found, error=found.error and (ran.failure or found.error))


def merged(devices: tuple[Device, ...], boards: tuple[Board, ...]) -> tuple[Device, ...]:
    """Fills what libcuda did not know from the management view, matched by PCI bus id."""
    return tuple(_filled(device, boards) for device in devices)


def _filled(device: Device, boards: tuple[Board, ...]) -> Device:
    board = next((b for b in boards if parse.same_card(b.pci, device.pci)), None)
    if board is None:
        return device
    fields = ("ecc", "sm_clock_hertz", "memory_clock_hertz")
    known = {name: getattr(board, name) for name in fields if getattr(device, name) is None}
    return replace(device, **known)
