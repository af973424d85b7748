"""What NVIDIA GPUs allow a launch, by compute capability (CUDA C++ Programming Guide, tables), and
what they can do at most."""

from __future__ import annotations

GRID = (2**31 - 1, 65_535, 65_535)
BLOCK = (1024, 1024, 64)
THREADS = 1024
"""Of a block; all three hold from compute capability 3.0 on."""
SHARED_DEFAULT = 48 * 1024
"""Bytes of shared memory that a block can have without asking."""
SHARED = {
    **{70: 98_304, 72: 98_304, 75: 65_536, 80: 166_912, 86: 101_376, 87: 166_912, 89: 101_376},
    **{90: 232_448, 100: 232_448, 103: 232_448, 120: 101_376, 121: 101_376},
}
"""Most bytes of shared memory a block can ask for."""
LOCAL = 512 << 10
"""Most bytes of local memory a thread."""
MULTIPROCESSORS = {75: 40, 80: 108, 86: 84, 89: 128, 90: 132, 100: 148, 120: 170}
"""Of the card that is best known for a capability (data sheets)."""
CARDS = {
    **{75: "T4", 80: "A100", 86: "RTX A6000", 89: "RTX 4090", 90: "H100 SXM"},
    **{100: "B200", 120: "RTX 5090"},
}
"""That card."""


CLUSTER = 8
"""Blocks of a cluster that every GPU with clusters has room for (CUDA C++ Programming Guide)."""
LARGE_CLUSTERS = {90: 16, 100: 16}
"""And those that have room for more."""


def capability(arch: str) -> int:
    """90 for `sm_90a`; 0 where there is no number."""
    return int("".join(c for c in arch if c.isdigit()) or 0)


def shared_of(arch: str) -> int | None:
    """Most bytes of shared memory a block can ask for on `sm_90a`; None where it is not known."""
    return SHARED.get(capability(arch))


def cluster_of(arch: str) -> int:
    """Most blocks of a cluster on `sm_90a`; 1 where there are no clusters."""
    number = capability(arch)
    return LARGE_CLUSTERS.get(number, CLUSTER) if number >= 90 else 1


DRAM = {
    "NVIDIA H100 80GB HBM3": (3.35e12, "NVIDIA H100 data sheet, SXM: 3.35 TB/s"),
    "NVIDIA H100 PCIe": (2.0e12, "NVIDIA H100 data sheet, PCIe: 2 TB/s"),
    "NVIDIA H100 NVL": (3.9e12, "NVIDIA H100 data sheet, NVL: 3.9 TB/s"),
    "NVIDIA H200": (4.8e12, "NVIDIA H200 data sheet: 4.8 TB/s"),
}
"""Bytes a second of DRAM by the data sheet, by the name that the driver gives a card."""

FLOP_A_CLOCK = {
    80: {"float32": 128, "tf32": 1024, "float16": 2048, "bfloat16": 2048},
    86: {"float32": 256, "tf32": 512, "float16": 1024, "bfloat16": 1024},
    89: {"float32": 256, "tf32": 512, "float16": 1024, "bfloat16": 1024, "float8": 2048},
    90: {"float32": 256, "tf32": 2048, "float16": 4096, "bfloat16": 4096, "float8": 8192},
}
"""FLOP a clock and multiprocessor of dense arithmetic: peak over clock over multiprocessors, from
NVIDIA's white papers of A100, GA102, Ada and H100. float32 is that of the FMA units."""

SPLIT = 3
"""Products in float16 that give one of float32's accuracy (Ootomo and Yokota 2022, Recovering
single precision accuracy from Tensor Cores): an honest float32 product may run at a third of the
float16 rate, which is above that of the FMA units."""

SHARED_BYTES_A_CLOCK = 128
"""Bytes a clock and multiprocessor from shared memory: 32 banks of 4 bytes (Programming Guide)."""


def dram_rates(
    name: str, memory_hz: float | None, bus_bits: int | None
) -> tuple[float | None, float | None, str]:
    """(data sheet, generous, source) bytes a second of DRAM; None where nothing tells.

    The data sheet's own figure where the card is known, else two bits a line and cycle; generous
    is the larger of both. Data sheets round down: an H200's 3,201 MHz x 6,144 bit are 4.92 TB/s.
    """
    derived = 2 * memory_hz * bus_bits / 8 if memory_hz and bus_bits else None
    said, source = DRAM.get(name, (None, ""))
    if derived and not said:
        assert memory_hz
        source = f"driver: 2 x {memory_hz / 1e6:.0f} MHz x {bus_bits} bit"
    rates = [rate for rate in (said, derived) if rate]
    return said or derived, max(rates, default=None), source


def flop_rate(
    kind: str, capability: tuple[int, int], multiprocessors: int, sm_hz: float | None
) -> float | None:
    """FLOP a second of a class of arithmetic at the highest clock; None where it is not known."""
    table = FLOP_A_CLOCK.get(10 * capability[0] + capability[1], {})
    if kind not in table or not sm_hz:
        return None
    return table[kind] * multiprocessors * sm_hz


def generous_flop_rate(
    kind: str, capability: tuple[int, int], multiprocessors: int, sm_hz: float | None
) -> float | None:
    """The same, above what any way of computing to that accuracy can reach.

    float64 has none: integer tensor cores can give its accuracy at rates that no table lists.
    """
    rate = flop_rate(kind, capability, multiprocessors, sm_hz)
    if kind != "float32" or rate is None:
        return rate
    split = flop_rate("float16", capability, multiprocessors, sm_hz)
    return max(rate, split / SPLIT) if split else rate
