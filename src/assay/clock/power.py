"""What NVML says of a GPU beside the samples: SM clock, power, temperature, what holds clocks down.

NVML's power is a moving average, so a reading belongs to a stretch of samples and to no single one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

REASONS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""nvmlClocksEventReason* of nvml.h. Idle (0x1) and clocks set by an application (0x2) limit no
kernel against the user's will."""


@dataclass(frozen=True)
class Reading:
    """One look at the GPU."""

    hertz: float
    """Of the SMs."""
    watts: float
    celsius: float
    reasons: int
    """Bits of what holds the clocks down."""


class Nvml:
    """Reads one GPU. `missing` says why it can't."""

    def __init__(self, device: str):
        self.missing = ""
        try:
            import pynvml
        except ImportError:
            self.missing = "nvidia-ml-py is not installed"
            return
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            uuid = str(torch.cuda.get_device_properties(device).uuid)
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")
            self.read()
        except pynvml.NVMLError as error:
            self.missing = f"NVML does not tell: {error}"

    def processes(self) -> tuple[int, ...]:
        """Processes that compute on it, as the host counts them. Raises pynvml.NVMLError."""
        found = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        return tuple(int(process.pid) for process in found)

    def joules(self) -> float:
        """Energy since the driver was loaded. Raises pynvml.NVMLError where it isn't counted."""
        return 1e-3 * float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def read(self) -> Reading:
        """A reading. Raises pynvml.NVMLError."""
        nvml, handle = self._nvml, self._handle
        reasons = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        reasons = reasons or nvml.nvmlDeviceGetCurrentClocksThrottleReasons  # its older name
        return Reading(
            hertz=1e6 * nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            watts=1e-3 * nvml.nvmlDeviceGetPowerUsage(handle),
            celsius=float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            reasons=int(reasons(handle)),
        )


def summary(readings: list[Reading]) -> dict[str, Any]:
    """Ranges over a schedule, and which reasons held the clocks down in how many readings."""
    if not readings:
        return {"clock_hz": None, "watts": None, "celsius": None, "throttled": ()}
    return {
        "clock_hz": (min(r.hertz for r in readings), max(r.hertz for r in readings)),
        "watts": (min(r.watts for r in readings), max(r.watts for r in readings)),
        "celsius": (min(r.celsius for r in readings), max(r.celsius for r in readings)),
        "throttled": throttled(readings),
    }


def held(readings: list[Reading]) -> dict[str, list[int]]:
    """Of each reason, the indices of the readings in which it held the clocks down."""
    found = {n: [i for i, r in enumerate(readings) if r.reasons & b] for b, n in REASONS.items()}
    return {name: indices for name, indices in found.items() if indices}


def throttled(readings: list[Reading]) -> tuple[str, ...]:
    """`software power cap in 12 of 40 readings`, for each reason that was ever there."""
    count = len(readings)
    return tuple(f"{name} in {len(at)} of {count} readings" for name, at in held(readings).items())
