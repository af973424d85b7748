"""Joules of a step, by NVML's counter of the whole card, over a second of bursts."""

from __future__ import annotations

import time
from typing import Any

from ...clock.power import Nvml
from .bench import BURST, wait

LEAST = 1.0
"""Seconds of bursts: the counter moves some ten times a second."""


def joules(peer: Any, meter: Nvml, least: float = LEAST) -> float:
    """Of one step, what the idle card draws included.

    Raises pynvml.NVMLError, where the card counts no energy. `meter` has nothing missing.
    """
    wait(peer.device)
    before, begun, bursts = meter.joules(), time.perf_counter(), 0
    while time.perf_counter() - begun < least:
        for _ in range(10):
            peer.run()
        wait(peer.device)
        bursts += 10
    return (meter.joules() - before) / (bursts * BURST)


def joules_or_why(peer: Any, least: float = LEAST) -> tuple[float | None, str]:
    """(joules of a step, "") or (None, why there are none)."""
    meter = Nvml(peer.device)
    if meter.missing:
        return None, meter.missing
    import pynvml

    try:
        return joules(peer, meter, least), ""
    except pynvml.NVMLError as error:
        return None, f"NVML counts no energy here: {error}"
