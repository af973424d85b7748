"""The parent's side of measuring ceilings: one child, its answers made Roofs."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .. import hardware
from ..errors import AssayError
from ..processes import Ended, TimedOut
from ..session import Session, threads_for
from ..types import Machine, Roof, Roofs
from .doubt import doubts
from .store import id_of, key_of

SECONDS = 0.3
"""Sampling time of each ceiling."""
ANSWER_SECONDS = 300.0
SMALLEST, LARGEST = 1 << 18, 1 << 28
MATRICES = (512, 1024, 2048)

Step = Callable[[str, int, int], None]


def measure(
    session: Session,
    machine: Machine,
    device: str,
    step: Step = lambda what, done, total: None,
    *,
    seconds: float = SECONDS,
    sizes: Sequence[int] = (),
    matrices: Sequence[int] = MATRICES,
) -> Roofs:
    """Measures the ceilings of `cpu` or `cuda:0`; some ten seconds.

    sizes, matrices: of a CPU; bytes that are moved (default: up to four times its last-level
    cache) and sides of square matrices. Raises AssayError if nothing can be measured.
    """
    gpu = machine.gpu(device)
    threads = threads_for(1)
    args = {
        "device": device,
        "arch": "sm_{}{}".format(*gpu.capability) if gpu else "",
        "threads": threads,
        "sizes": list(sizes) or sizes_of(machine),
        "matrices": list(matrices),
        "seconds": seconds,
    }
    roofs, absent, last = _listen(session, args, step)
    if not roofs:
        raise AssayError(f"assay roofs: nothing could be measured on {device}: {_first(absent)}")
    sheet, _, source = None, None, ""
    if gpu:
        sheet, _, source = hardware.dram_rates(gpu.name, gpu.memory_hz, gpu.bus_bits)
    key = key_of(machine, device)
    now = datetime.datetime.now(datetime.timezone.utc)
    return Roofs(
        id=f"{id_of(key)}-{now:%Y%m%d%H%M%S}",
        device=device,
        key=key,
        time=now.isoformat(timespec="seconds"),
        roofs=tuple(roofs),
        absent=absent,
        datasheet=sheet,
        source=source,
        doubtful=doubts(roofs, gpu, last["waited"]),
        notes=tuple(last["notes"]),
    )


def sizes_of(machine: Machine) -> list[int]:
    """Bytes that a CPU moves, to four times its last-level cache or more; closer near its size."""
    cache = machine.llc_bytes or 0
    most = min(max(LARGEST, 4 * cache), machine.memory_bytes // 8)
    found = [SMALLEST]
    while (more := found[-1] * (4 if 8 * found[-1] <= cache else 2)) <= most:
        found.append(more)
    return found


def _listen(
    session: Session, args: dict[str, Any], step: Step
) -> tuple[list[Roof], dict[str, str], dict[str, Any]]:
    roofs: list[Roof] = []
    absent: dict[str, str] = {}
    env = {"OMP_NUM_THREADS": str(args["threads"])}
    with session.child("assay.roofs.child:main", args, name="roofs", env=env) as child:
        try:
            while True:
                message = child.receive(ANSWER_SECONDS)
                if "mistake" in message:
                    raise AssayError(message["mistake"])
                if "notes" in message:
                    return roofs, absent, message
                if "step" in message:
                    step(f"measuring {message['step']}", message["done"], message["total"])
                elif "roof" in message:
                    roofs.append(msgspec.convert(message["roof"], Roof))
                elif "absent" in message:
                    absent[message["absent"]] = message["why"]
        except (Ended, TimedOut) as error:
            how = error.status.label if isinstance(error, Ended) else "no answer"
            tail = session.log_tail("roofs")
            raise AssayError(f"assay roofs: the measuring process ended ({how})\n{tail}") from None


def _first(absent: dict[str, str]) -> str:
    return next((f"{name}: {why}" for name, why in absent.items()), "no reason was given")
