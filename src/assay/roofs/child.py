"""The process that measures ceilings, one after the other.

Messages out: {step, done, total} before each, then {roof} or {absent, why}; at last {notes,
waited}, or {mistake} where nothing can be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import torch

from ..clock.power import Nvml
from ..errors import BuildError, LaunchError, NotRun
from ..processes.channel import Channel
from . import cpu
from .cpu import Waiting
from .sampling import measured

NO_NVML = "the SM clock was not seen: nvidia-ml-py is not installed, or NVML does not tell"


def main(
    channel: Channel,
    device: str,
    arch: str,
    threads: int,
    sizes: list[int],
    matrices: list[int],
    seconds: float,
) -> None:
    """Measures every ceiling of a device. seconds: sampling time of each."""
    hertz = _sm_clock(device)
    try:
        plans: list[Any]
        if device.startswith("cuda"):
            from . import gpu

            plans = gpu.plans(device, arch, lambda text: channel.send(note=text))
        else:
            plans = cpu.plans(threads, sizes, matrices)
    except (BuildError, ImportError) as error:
        channel.send(mistake=f"assay roofs: its own kernels can't be built: {error}")
        return
    waiting = Waiting()
    with torch.no_grad():
        for number, (name, make) in enumerate(plans):
            channel.send(step=name, done=number, total=len(plans))
            try:
                roof = measured(make(), seconds, hertz=hertz, seed=number)
            except (NotRun, LaunchError, RuntimeError) as error:
                # A reason, not a failure: what this card or torch can't do is said by name.
                channel.send(absent=name, why=(str(error).splitlines() or [repr(error)])[0])
            else:
                channel.send(roof=msgspec.to_builtins(roof))
    notes = [] if hertz is not None or device == "cpu" else [NO_NVML]
    channel.send(notes=notes, waited=waiting.share())


def _sm_clock(device: str) -> Callable[[], float] | None:
    """A reader of the SM clock in hertz; None on a CPU, or where NVML does not tell."""
    nvml = Nvml(device) if device.startswith("cuda") else None
    if nvml is None or nvml.missing:
        return None
    return lambda: nvml.read().hertz
