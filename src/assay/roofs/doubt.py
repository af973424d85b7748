"""Why ceilings can't be believed: too low for the card, or higher than it can be."""

from __future__ import annotations

from collections.abc import Sequence

from .. import hardware
from ..clock.floor import WRONG
from ..types import GPU, Roof

LEAST = 0.88
"""Of the data sheet's rate: a large copy reaches 0.89 to 0.90 of it on an H100 and an H200."""
LARGE = 1 << 30
CARDS = ("H100", "H200")
"""Cards of which it is known what a copy reaches."""


WAITED = 0.05


def doubts(roofs: Sequence[Roof], gpu: GPU | None, waited: float | None = None) -> str:
    """Empty, or why no percentage of these ceilings can be believed.

    waited: share of their time that threads on a CPU waited for a processor; None: not known.
    """
    if gpu is None:
        if waited is None or waited <= WAITED:
            return ""
        return (
            f"its threads waited {waited:.0%} of the time for a processor: others use this "
            "machine; measure again when it is idle: assay roofs --again"
        )
    sheet, generous, _ = hardware.dram_rates(gpu.name, gpu.memory_hz, gpu.bus_bits)
    copies = [r for r in roofs if r.name == "copy" and r.cache == "cold L2"]
    large = [r for r in copies if (r.bytes or 0) >= LARGE]
    found = []
    if any(card in gpu.name for card in CARDS) and sheet:
        best = max((r.value for r in large), default=None)
        if best is None:
            found.append("no copy of 1 GiB or more was measured")
        elif best < LEAST * sheet:
            found.append(
                f"a copy of {LARGE >> 30} GiB and more reaches {best / 1e9:,.0f} GB/s, "
                f"{best / sheet:.3f} of the data sheet's {sheet / 1e9:,.0f}; it should reach "
                f"{LEAST}: is another process on the card, or its clock held down?"
            )
    for roof in roofs:
        most = _most(roof, gpu, generous)
        if most and roof.value > WRONG * most:
            found.append(
                f"{roof.name} reads {roof.value:.3g} {roof.unit}, and the card can't exceed "
                f"{most:.3g}: the kernel that measures it did less than it should"
            )
    return "; ".join(found)


def _most(roof: Roof, gpu: GPU, dram: float | None) -> float | None:
    """The highest value that a ceiling can have on this card; None where that is not known."""
    if roof.unit == "FLOP/s":
        kind = roof.name.split()[0]
        return hardware.flop_rate(kind, gpu.capability, gpu.multiprocessors, gpu.sm_hz)
    if roof.name == "shared memory" and gpu.sm_hz:
        return hardware.SHARED_BYTES_A_CLOCK * gpu.multiprocessors * gpu.sm_hz
    # Of what is written, as much as the L2 holds may not have reached DRAM at the end.
    if roof.cache == "cold L2" and (roof.bytes or 0) > 16 * gpu.l2_bytes and dram:
        return dram * (1 + gpu.l2_bytes / (roof.bytes or 1))
    return None
