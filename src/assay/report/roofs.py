"""The page of `assay roofs`: every ceiling with its spread, and whether it can be believed."""

from __future__ import annotations

import textwrap

from rich.console import Console
from rich.text import Text

from ..types import GPU, Machine, Roof, Roofs
from . import units

BINARY = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def show(console: Console, roofs: Roofs, machine: Machine, *, kept: bool) -> None:
    """Prints the ceilings, then what speaks against them, is missing, or is worth knowing.

    kept: they were measured before, and are read from the cache.
    """
    for text, style in lines(roofs, machine, kept=kept):
        indent = "      " if text.startswith(" ") else "    "
        for part in textwrap.wrap(text, console.width, subsequent_indent=indent) or [""]:
            console.print(Text(part, style=style))


def lines(roofs: Roofs, machine: Machine, *, kept: bool) -> list[tuple[str, str]]:
    """Each line and its style."""
    gpu = machine.gpu(roofs.device)
    threads = roofs.key.get("threads")
    where = (
        gpu.name if gpu else f"{machine.cpu}, {units.count(int(threads or 1), 'thread')}, pinned"
    )
    state = f"measured {roofs.time}" + (", kept; --again measures anew" if kept else "")
    found = [(f"roofs of {roofs.device} · {where}", "bold"), (state, "dim")]
    if roofs.datasheet:
        found.append((f"DRAM {units.rate(roofs.datasheet)} ({roofs.source})", "dim"))
    for title, mine in groups(roofs):
        found += [("", ""), (title, "bold")]
        found += [(line(one, roofs, gpu), "") for one in mine]
    found.append(("", ""))
    if roofs.doubtful:
        found.append((f"ceiling doubtful: {roofs.doubtful}; no percentage is formed", "bold red"))
    found += [(f"not measured: {name}: {why}", "yellow") for name, why in roofs.absent.items()]
    found += [(f"note: {note}", "dim") for note in roofs.notes]
    return found


def groups(roofs: Roofs) -> list[tuple[str, list[Roof]]]:
    """Ceilings under their headings, by kind and size."""
    order = {"read": 0, "write": 1, "copy": 2}
    traffic = [r for r in roofs.roofs if r.name in order]
    traffic.sort(key=lambda r: (order[r.name], r.bytes or 0))
    found = [
        (f"traffic, {state}, by bytes read and written", [r for r in traffic if r.cache == state])
        for state in dict.fromkeys(r.cache for r in traffic)
    ]
    across = [r for r in roofs.roofs if r.bytes is not None and r.name not in order]
    rest = [r for r in roofs.roofs if r.bytes is None]
    found += [
        ("between host and device, by bytes, with the synchronize", across),
        ("on chip", [r for r in rest if r.unit == "B/s"]),
        ("arithmetic", [r for r in rest if r.unit == "FLOP/s"]),
        ("time that is always spent", [r for r in rest if r.unit == "s"]),
    ]
    return [(title, mine) for title, mine in found if mine]


def line(roof: Roof, roofs: Roofs, gpu: GPU | None) -> str:
    """`  copy 1 GiB         3,021 GB/s  ±0.1%  0.90 of data sheet  1980 MHz  copy_tiles`."""
    size = binary(roof.bytes) if roof.bytes is not None else roof.shape
    label = f"{roof.name} {size}".strip()
    value = quantity(roof.value, roof.unit)
    spread = (roof.high - roof.low) / 2 / roof.value
    notes = [roof.by]
    # Of smaller ones, launch and cache decide: their share of the data sheet says nothing.
    large = roof.cache == "cold L2" and gpu and (roof.bytes or 0) >= 4 * gpu.l2_bytes
    if large and roofs.datasheet and not roofs.doubtful:
        notes.insert(0, f"{roof.value / roofs.datasheet:.2f} of data sheet")
    if roof.clock_hz:
        low, high = (f"{hz / 1e6:.0f}" for hz in roof.clock_hz)
        notes.append(f"{low} MHz" if low == high else f"{low}-{high} MHz")
    if roof.steady:
        notes.append(roof.steady)
    return f"  {label:<24} {value:>15} {f'±{100 * spread:.1f}%':>7}  {'; '.join(notes)}"


def quantity(value: float, unit: str) -> str:
    """`2.6 us`, `3,036 GB/s`, `766.8 TFLOP/s`."""
    if unit == "s":
        return units.seconds(value)
    if unit == "FLOP/s" and value >= 1e12:
        return f"{value / 1e12:.4g} TFLOP/s"
    return units.rate(value, unit.removesuffix("/s"))


def binary(size: int) -> str:
    """A size that is a power of two, or near one: `64 MiB`, `16.5 MiB`."""
    for unit, name in BINARY:
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} B"
