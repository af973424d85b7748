"""What a kernel did, exactly: instructions, lanes, requests, sectors, wavefronts, by source line.

The units are those of Nsight Compute: a *request* is one warp-wide access, a *sector* 32 bytes of
global memory, a *wavefront* one pass of shared memory. They are what an H100 counts for the same
accesses (benchmarks/simt_counts.py), and are counted on the PTX: the assembler may still merge,
split or drop accesses.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Access:
    """Memory accesses of one kind at one line. Sums over all warps."""

    requests: int = 0
    lanes: int = 0
    sectors: int = 0
    """Different ones of a request; of atomics too, where lanes of one address need more passes."""
    ideal_sectors: int = 0
    """If the lanes' bytes lay side by side; of each request no more than there are, for lanes that
    ask for the same need fewer. So of wavefronts."""
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    bytes: int = 0
    contended: int = 0
    """Atomics: rounds that lanes of a warp need where they name one address."""

    def __add__(self, other: Access) -> Access:
        return Access(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Access)))

    @property
    def conflicts(self) -> int:
        """Wavefronts of shared memory beyond the ideal."""
        return self.wavefronts - self.ideal_wavefronts


@dataclass(frozen=True)
class Line:
    """One line of source. `accesses`: `global load`, `shared store`, `global atomic`, ..."""

    file: str
    line: int
    warps: int = 0
    """Instructions that warps issued."""
    lanes: int = 0
    """The same, times the lanes that were active."""
    classes: dict[str, int] = field(default_factory=dict)
    """Instructions issued, by class: `fp32`, `integer`, `global`, `shared`, `branch`, ..."""
    accesses: dict[str, Access] = field(default_factory=dict)


@dataclass(frozen=True)
class Counts:
    """The counts of a launch, or of several."""

    lines: tuple[Line, ...] = ()
    launches: int = 1

    def access(self, kind: str) -> Access:
        """All accesses of a kind, such as `global load`."""
        total = Access()
        for line in self.lines:
            if kind in line.accesses:
                total += line.accesses[kind]
        return total

    @property
    def kinds(self) -> list[str]:
        return sorted({kind for line in self.lines for kind in line.accesses})

    @property
    def warp_instructions(self) -> int:
        return sum(line.warps for line in self.lines)

    @property
    def lane_instructions(self) -> int:
        return sum(line.lanes for line in self.lines)

    @property
    def active_lanes(self) -> float:
        """Lanes that were active in an instruction, on average; 32 without divergence."""
        return self.lane_instructions / max(1, self.warp_instructions)

    @property
    def classes(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for line in self.lines:
            for name, number in line.classes.items():
                total[name] = total.get(name, 0) + number
        return dict(sorted(total.items(), key=lambda item: -item[1]))

    def __add__(self, other: Counts) -> Counts:
        return Counts(merge([*self.lines, *other.lines]), self.launches + other.launches)


def merge(lines: Iterable[Line]) -> tuple[Line, ...]:
    """One entry a line, sums of all."""
    made: dict[tuple[str, int], Line] = {}
    for line in lines:
        key = (line.file, line.line)
        known = made.get(key)
        made[key] = line if known is None else _sum(known, line)
    return tuple(sorted(made.values(), key=lambda line: (line.file, line.line)))


def _sum(one: Line, other: Line) -> Line:
    classes = dict(one.classes)
    for name, number in other.classes.items():
        classes[name] = classes.get(name, 0) + number
    accesses = dict(one.accesses)
    for name, access in other.accesses.items():
        accesses[name] = accesses.get(name, Access()) + access
    return Line(
        one.file,
        one.line,
        one.warps + other.warps,
        one.lanes + other.lanes,
        classes,
        accesses,
    )


def class_of(form: str) -> str:
    """The class of an instruction, for the instruction mix."""
    opcode = form.split(".", 1)[0]
    for space in ("shared", "global", "local", "param", "const"):
        if opcode in ("ld", "st", "atom", "red") and f".{space}" in form:
            return space
    if opcode in CLASSES:
        return CLASSES[opcode]
    if form.endswith(".f64"):
        return "fp64"
    if form.endswith(("f16x2", "bf16x2", ".f16", ".bf16")):
        return "fp16"
    if form.endswith(".f32"):
        return "fp32"
    return "integer"


CLASSES = {
    **dict.fromkeys(("ld", "st", "atom", "red"), "generic"),
    **dict.fromkeys(("bra", "brx", "ret", "exit", "call", "trap"), "branch"),
    **dict.fromkeys(("bar", "barrier", "membar", "fence", "mbarrier"), "barrier"),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "elect", "activemask"), "warp"),
    **dict.fromkeys(("mma", "wmma", "ldmatrix", "stmatrix"), "tensor"),
    **dict.fromkeys(("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt"), "special"),
    **dict.fromkeys(("mov", "cvta", "selp"), "move"),
    "cvt": "convert",
    "cp": "copy",
}
