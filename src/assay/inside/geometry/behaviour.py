"""Coalescing, bank conflicts and divergence, from what a kernel did when it was run and counted.

The counts are exact at the level of PTX (simt/counts.py): a sector is 32 bytes of global memory, a
pass (Nsight Compute: wavefront) is what shared memory serves in one cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...simt.counts import Access, Counts

LANES = 32


@dataclass(frozen=True)
class Traffic:
    """All accesses of one kind, such as `global load`."""

    kind: str
    access: Access
    worst: str
    """The line with most excess, as `file:line`; empty where there is no excess."""

    @property
    def sectors_a_request(self) -> float:
        return self.access.sectors / max(1, self.access.requests)

    @property
    def ideal_sectors_a_request(self) -> float:
        """If the bytes of a warp lay side by side."""
        return self.access.ideal_sectors / max(1, self.access.requests)

    @property
    def used(self) -> float:
        """Share of the moved sectors that coalesced accesses would need too; 1 without any."""
        return self.access.ideal_sectors / self.access.sectors if self.access.sectors else 1.0

    @property
    def passes_a_request(self) -> float:
        """Of shared memory."""
        return self.access.wavefronts / max(1, self.access.requests)

    @property
    def excess(self) -> int:
        """Sectors, or passes of shared memory, beyond the ideal."""
        return _excess(self.access)


@dataclass(frozen=True)
class Behaviour:
    """What a variant's kernels did together on one case."""

    arch: str
    """What the code that was run is compiled for."""
    instructions: int
    """Of warps."""
    active_lanes: float
    """Of 32, on average; fewer where lanes of a warp part ways or have no thread."""
    branches: int
    traffic: tuple[Traffic, ...]


def behaviour(counts: Counts, arch: str) -> Behaviour:
    """The counts of a run, kind by kind."""
    kinds = [k for k in counts.kinds if k.split()[0] in ("global", "generic", "shared", "local")]
    return Behaviour(
        arch,
        counts.warp_instructions,
        counts.active_lanes,
        counts.classes.get("branch", 0),
        tuple(Traffic(kind, counts.access(kind), _worst(counts, kind)) for kind in kinds),
    )


def _excess(access: Access) -> int:
    return access.sectors - access.ideal_sectors + access.conflicts


def _worst(counts: Counts, kind: str) -> str:
    lines = [line for line in counts.lines if kind in line.accesses]
    most = max(lines, key=lambda line: _excess(line.accesses[kind]), default=None)
    if most is None or _excess(most.accesses[kind]) <= 0 or not most.line:
        return ""
    return f"{most.file.rsplit('/', 1)[-1]}:{most.line}"


def lines(found: Behaviour) -> Iterator[str]:
    """As text of 80 columns."""
    yield (
        f"counted on the CPU as compiled for {found.arch}: {found.instructions:,} instructions of "
        "warps,"
    )
    yield f"{found.branches:,} branches, {found.active_lanes:.1f} of {LANES} lanes active"
    for traffic in found.traffic:
        yield f"  {traffic.kind:<14}{_said(traffic)}"
        if traffic.worst:
            yield f"  {'':<14}most of it at {traffic.worst}"


def _said(traffic: Traffic) -> str:
    access = traffic.access
    parts = []
    if access.sectors:
        parts.append(
            f"{traffic.sectors_a_request:.2f} sectors a request (ideal "
            f"{traffic.ideal_sectors_a_request:.2f}), {traffic.used:.0%} of them used"
        )
    if access.wavefronts:
        conflicts = f"{access.conflicts:,} bank conflicts" if access.conflicts else "no conflict"
        parts.append(f"{traffic.passes_a_request:.2f} passes a request, {conflicts}")
    if access.contended:
        parts.append(f"{access.contended:,} rounds on one address")
    return "; ".join(parts) or f"{access.requests:,} requests"
