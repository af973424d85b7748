"""What a card can do, as a model of time needs it: of a data sheet, or measured on the machine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import hardware
from ..errors import AssayError
from ..inside.geometry.limits import multiprocessor
from ..types import GPU, Roofs

L2_SHARE = 3.0
"""No data sheet has L2's rate. 64 bytes a clock and multiprocessor leave it at most; a third of
that is what public measurements of A100 and H100 come to: an estimate."""
LAUNCH_SECONDS = 2.5e-6
"""Of an empty kernel, from end to end, where none was measured: an estimate."""
COPY = ("copy", "cold L2")
LAUNCH, WINDOW = "empty launch", "empty window"
"""As `assay roofs` calls them: by events, with nothing between them the second."""


@dataclass(frozen=True)
class Ceiling:
    """One rate of arithmetic that nothing on the card exceeds."""

    name: str
    """`float32 FMA`, `float16 matrix`: as `assay roofs` calls them."""
    rate: float
    """FLOP a second."""
    source: str
    """`measured`, or whose data sheet."""


@dataclass(frozen=True)
class Card:
    """Rates of one GPU. Bytes or hertz."""

    name: str
    arch: str
    multiprocessors: int
    clock_hz: float
    dram: float
    """Bytes a second."""
    l2: float
    """Bytes a second."""
    l2_bytes: int
    launch_seconds: float
    """Of an empty kernel."""
    source: str
    """Where the rates come from; begins with `measured` or `data sheet`."""
    arithmetic: tuple[Ceiling, ...] = ()
    """Dense rates of the FMA units and of the tensor cores, where they are known."""

    @property
    def number(self) -> int:
        """90 for sm_90a."""
        return hardware.capability(self.arch)


SHEETS = {
    # multiprocessors, highest SM clock, DRAM bytes/s, L2 bytes
    "T4": ("sm_75", 40, 1.59e9, 320e9, 4 << 20),
    "A100": ("sm_80", 108, 1.41e9, 2.039e12, 40 << 20),
    "RTX A6000": ("sm_86", 84, 1.80e9, 768e9, 6 << 20),
    "RTX 4090": ("sm_89", 128, 2.52e9, 1008e9, 72 << 20),
    "H100 SXM": ("sm_90", 132, 1.98e9, 3.35e12, 50 << 20),
    "B200": ("sm_100", 148, 1.965e9, 8.0e12, 126 << 20),
    "RTX 5090": ("sm_120", 170, 2.407e9, 1792e9, 96 << 20),
}
"""NVIDIA's data sheets and white papers, of the cards that `hardware.CARDS` names (A100: 80 GB)."""


def of_architecture(arch: str) -> Card:
    """The card best known for an architecture. Raises AssayError where there is none."""
    number = int(multiprocessor(arch).arch.removeprefix("sm_"))
    name = hardware.CARDS.get(number)
    if name is None:
        known = ", ".join(f"sm_{n}" for n in hardware.CARDS)
        raise AssayError(f"explaining for {arch}: no card of it is known; there are {known}")
    of, sms, clock, dram, cache = SHEETS[name]
    return Card(
        *(name, of, sms, clock, dram, _l2(sms, clock), cache, LAUNCH_SECONDS),
        source=f"data sheet of the {name}",
        arithmetic=_sheet(number, sms, clock),
    )


def of_machine(gpu: GPU, roofs: Roofs | None) -> Card:
    """A GPU that rows were made on, with its measured ceilings where the rows have them.

    Raises AssayError where neither data sheet nor ceilings give its rates.
    """
    arch = f"sm_{gpu.capability[0]}{gpu.capability[1]}"
    _, rate, source = hardware.dram_rates(gpu.name, gpu.memory_hz, gpu.bus_bits)
    clock = gpu.sm_hz or of_architecture(arch).clock_hz
    copies = [r.value for r in roofs.roofs if (r.name, r.cache) == COPY] if roofs else []
    if not rate and not copies:
        raise AssayError(f"explaining on {gpu.name}: nothing tells its DRAM rate; assay roofs does")
    made = Card(
        name=gpu.name,
        arch=arch,
        multiprocessors=gpu.multiprocessors,
        clock_hz=clock,
        dram=rate or max(copies),
        l2=_l2(gpu.multiprocessors, clock),
        l2_bytes=gpu.l2_bytes,
        launch_seconds=LAUNCH_SECONDS,
        source=source,
        arithmetic=_sheet(int(arch.removeprefix("sm_")), gpu.multiprocessors, clock),
    )
    if roofs is None or roofs.doubtful or not copies:
        return made
    of = {name: [r.value for r in roofs.roofs if r.name == name] for name in (LAUNCH, WINDOW)}
    cached = [r.value for r in roofs.roofs if r.cache == "in cache" and r.unit == "B/s"]
    empty = min(of[LAUNCH], default=LAUNCH_SECONDS)
    return replace(
        made,
        arithmetic=_measured(roofs, made.arithmetic),
        dram=max(copies),
        l2=max(cached, default=made.l2),
        launch_seconds=empty - min([w for w in of[WINDOW] if w < empty], default=0.0),
        source="measured on this machine (assay roofs)",
    )


def _l2(multiprocessors: int, clock: float) -> float:
    return 64 * multiprocessors * clock / L2_SHARE


def _sheet(capability: int, multiprocessors: int, clock: float) -> tuple[Ceiling, ...]:
    """By the white papers, at the highest clock. Empty for a card whose rates no table here has."""
    return tuple(
        Ceiling(
            "float32 FMA" if kind == "float32" else f"{kind} matrix",
            rate * multiprocessors * clock,
            "data sheet",
        )
        for kind, rate in hardware.FLOP_A_CLOCK.get(capability, {}).items()
    )


def _measured(roofs: Roofs, sheet: tuple[Ceiling, ...]) -> tuple[Ceiling, ...]:
    """The fastest that was measured of each, in place of what the data sheet says of it."""
    found = dict[str, Ceiling]()
    for roof in (r for r in roofs.roofs if r.unit == "FLOP/s"):
        if roof.name not in found or roof.value > found[roof.name].rate:
            found[roof.name] = Ceiling(roof.name, roof.value, "measured")
    return (*found.values(), *(one for one in sheet if one.name not in found))
