"""Asks ruler processes for samples, and makes the clock's error table of them."""

from __future__ import annotations

import datetime
import itertools
import secrets
import time
from collections.abc import Callable
from typing import Any

from ..errors import AssayError
from ..processes import Child, Ended, TimedOut
from ..session import Session
from .clock import BLOCK, CYCLES, TIMER, Alarms, Bias, Repeat, Ruler, Series, alarms

US = 1e-6
LENGTHS = tuple(x * US for x in (2, 3, 5, 10, 20, 50, 100, 300, 1000, 3000, 10_000))
REPEATED = tuple(x * US for x in (20, 100, 1000, 10_000))
PLANTED = ((50 * US, 0.01), (5 * US, 0.03))
"""A length, and how much longer a spin is that must be seen beside it."""
LONGER = 64
"""Comparisons with a longer spin in each process; five processes give the 320 that are wanted."""
MOST_SECONDS = 400.0


def tried(
    session: Session,
    device: str,
    processes: int,
    comparisons: int,
    say: Callable[[str], None] = lambda text: None,
) -> Ruler:
    """The error table of the clock on a device, of so many fresh processes.

    comparisons: of equal spins of each length, in each process. A quarter of the processes fix the
    noise floor, the others are judged. Raises AssayError.
    """
    begin, bias, flush = time.monotonic(), [], {}
    series: dict[float, list[Series]] = {length: [] for length, _ in PLANTED}
    kinds = (TIMER, CYCLES) if device.startswith("cuda") else (TIMER,)
    medians: dict[str, dict[float, list[float]]] = {
        by: {length: [] for length in REPEATED} for by in kinds
    }
    for number in range(processes):
        say(f"process {number + 1} of {processes}")
        args = {"device": device, "seed": secrets.randbits(31)}
        with session.child("assay.selftest.ruler:main", args, name="ruler") as child:
            if not number:
                bias = _asked(session, child, do="bias", lengths=list(LENGTHS), rounds=60)["bias"]
                flush = _asked(session, child, do="flush")["flush"]
            for by, length in itertools.product(kinds, REPEATED):
                rounds = 64 if length < 5e-3 else 16
                samples = _steady(session, child, [length], rounds, by)[0]
                medians[by][length].append(sorted(samples)[rounds // 2])
            for length, planted in PLANTED:
                series[length].append(_series(session, child, length, planted, comparisons))
    return Ruler(
        machine=session.machine().id,
        device=device,
        processes=processes,
        bias=tuple(_bias(one) for one in bias),
        alarms=tuple(_alarms(length, planted, series[length]) for length, planted in PLANTED),
        repeats=_repeats(medians[TIMER]),
        cycles=_repeats(medians.get(CYCLES, {})),
        flush=flush,
        seconds=time.monotonic() - begin,
        time=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    )


def _series(session: Session, child: Child, length: float, planted: float, count: int) -> Series:
    """So many comparisons of a spin with itself, and some of them with a longer one too."""
    both = min(count, LONGER)
    three = [length, length, length * (1 + planted)]
    one, again, longer = _steady(session, child, three, BLOCK * both, CYCLES)
    if count > both:
        more = _steady(session, child, three[:2], BLOCK * (count - both), CYCLES)
        one, again = one + more[0], again + more[1]
    return Series(one, again, longer)


def _steady(
    session: Session, child: Child, lengths: list[float], rounds: int, by: str
) -> list[list[float]]:
    found = _asked(session, child, do="steady", lengths=lengths, rounds=rounds, by=by)
    samples: list[list[float]] = found["samples"]
    return samples


def _repeats(medians: dict[float, list[float]]) -> tuple[Repeat, ...]:
    return tuple(Repeat(length=n, medians=tuple(found)) for n, found in medians.items())


def _alarms(length: float, planted: float, series: list[Series]) -> Alarms:
    first = max(1, len(series) // 4)
    return alarms(length, planted, series[:first], series[first:])


def _bias(said: dict[str, Any]) -> Bias:
    readings = {name: x for name, x in said.items() if name not in ("length", "true")}
    return Bias(length=said["length"], true=said["true"], readings=readings)


def _asked(session: Session, child: Child, **message: Any) -> dict[str, Any]:
    try:
        child.send(**message)
        answer = child.receive(MOST_SECONDS)
    except TimedOut:
        raise AssayError(f"the ruler gave no answer within {MOST_SECONDS:.0f} s") from None
    except Ended as ended:
        tail = session.log_tail("ruler")
        raise AssayError(f"the ruler ended ({ended.status.label})\n{tail}") from None
    if "mistake" in answer:
        raise AssayError(answer["mistake"])
    return answer
