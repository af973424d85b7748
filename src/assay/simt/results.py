"""What the runtime noted, as faults and counts with their lines of source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..types import Fault, replace
from . import layout
from .code import FIRST_WINDOW, WINDOW_SHIFT, Code, Site
from .counts import Access, Counts, Line, class_of, merge
from .memory import Window
from .ptx import Place

ALL = 0xFFFFFFFF
(
    OUT_OF_BOUNDS,
    NOT_WRITTEN,
    IN_FLIGHT,
    RACE_WITH_WRITE,
    RACE_WITH_READ,
    RACE_IN_STORE,
    DIVERGENT_BARRIER,
    MISALIGNED,
    READ_ONLY,
    LANE_MISSING,
    DEADLOCK,
    STEP_LIMIT,
    ASSERTION,
    TRAP,
    NULL_POINTER,
    BAD_BARRIER,
    ATOMIC_RACE,
    PRIVATE_BOUNDS,
    WRONG_SPACE,
    ASYNC_UNFINISHED,
) = range(1, 21)

WORDS = {
    OUT_OF_BOUNDS: "out of bounds",
    NOT_WRITTEN: "read before written",
    IN_FLIGHT: "read before written",
    RACE_WITH_WRITE: "race",
    RACE_WITH_READ: "race",
    RACE_IN_STORE: "race",
    DIVERGENT_BARRIER: "barrier in divergent code",
    MISALIGNED: "misaligned",
    READ_ONLY: "read only",
    LANE_MISSING: "lane missing",
    DEADLOCK: "deadlock",
    STEP_LIMIT: "endless",
    ASSERTION: "assertion",
    TRAP: "trap",
    NULL_POINTER: "out of bounds",
    BAD_BARRIER: "bad barrier",
    ATOMIC_RACE: "race",
    PRIVATE_BOUNDS: "out of bounds",
    WRONG_SPACE: "out of bounds",
    ASYNC_UNFINISHED: "copy not waited for",
}
RACES = frozenset({RACE_WITH_WRITE, RACE_WITH_READ, RACE_IN_STORE, ATOMIC_RACE})
LIBRARIES = ("/cub/block/block_merge_sort.cuh",)
SYSTEM = ("/include/", "site-packages/", "dist-packages/")


def place_of(places: tuple[Place, ...]) -> Place | None:
    """The innermost place in the user's own files; else the innermost."""
    for place in places:
        if not any(part in place.file for part in SYSTEM):
            return place
    return places[0] if places else None


def faults_of(
    code: Code,
    given: layout.Launch,
    noted: Any,
    windows: list[Window],
    block: tuple[int, int, int],
) -> tuple[Fault, ...]:
    """One fault a kind and line: the first by block and thread, with the number of all."""
    count = min(given.faults, given.max_faults)
    teller = _Teller(code, windows, block, given.first_block)
    found: dict[tuple[Any, ...], tuple[tuple[int, int], Fault, int]] = {}
    for index in range(count):
        raw = noted[index]
        if raw.kind == DIVERGENT_BARRIER and teller.one_place(raw):
            continue
        if raw.kind == NOT_WRITTEN and teller.in_library(raw):
            continue
        fault = teller.fault(raw)
        key = (fault.word, fault.file, fault.line, fault.instruction)
        at = (raw.launch_block, raw.thread)
        known = found.get(key)
        if known is None or at < known[0]:
            found[key] = (at, fault, (known[2] if known else 0) + 1)
        else:
            found[key] = (known[0], known[1], known[2] + 1)
    return tuple(replace(fault, count=number) for _, fault, number in found.values())


class _Teller:
    def __init__(
        self, code: Code, windows: list[Window], block: tuple[int, int, int], first_block: int
    ):
        self.code, self.windows, self.block = code, windows, block
        self.first_block = first_block

    def site(self, number: int) -> Site | None:
        return self.code.sites[number] if number < len(self.code.sites) else None

    def one_place(self, raw: Any) -> bool:
        """Two barriers that are one line of source, which the compiler has unrolled."""
        one, other = self.site(raw.site), self.site(raw.other_site)
        return one is not None and other is not None and one.places == other.places

    def in_library(self, raw: Any) -> bool:
        """A read by CCCL's own code, which loads more than it uses (BlockMergeSort's last item)."""
        site = self.site(raw.site)
        innermost = site.places[0].file if site and site.places else ""
        return any(part in innermost for part in LIBRARIES)

    def fault(self, raw: Any) -> Fault:
        site = self.site(raw.site)
        places = site.places if site else self._places_of_code(raw)
        place = place_of(places)
        return Fault(
            word=self._word(raw, site),
            text=self._text(raw, site),
            file=place.file if place else "",
            line=place.line if place else 0,
            block=tuple(raw.block),
            thread=self._thread(raw.thread),
            instruction=site.text if site else "",
            other=self._other_place(raw),
        )

    def _word(self, raw: Any, site: Site | None) -> str:
        writes = site is not None and _opcode(site.text) in VERBS
        if raw.kind == IN_FLIGHT and writes:
            return "race"
        # A loop that goes round for ever waits for another thread if it has a way to hear of one.
        asks = any(_opcode(other.text) == "atom" for other in self.code.sites)
        return WORDS[DEADLOCK if raw.kind == STEP_LIMIT and asks else raw.kind]

    def _places_of_code(self, raw: Any) -> tuple[Place, ...]:
        """Where a block of code waits: a barrier begins it, a loop's branch ends it."""
        at = self.code.begins if raw.kind == DIVERGENT_BARRIER else self.code.ends
        return at[raw.address] if raw.address < len(at) else ()

    def _thread(self, linear: int) -> tuple[int, int, int]:
        x, y, _ = self.block
        return linear % x, linear // x % y, linear // (x * y)

    def _who(self, raw: Any) -> str:
        return f"thread {_brief(self._thread(raw.thread))} of block {_brief(tuple(raw.block))}"

    def _other_place(self, raw: Any) -> str:
        other = self.site(raw.other_site)
        place = place_of(other.places) if other and raw.kind in RACES | {IN_FLIGHT} else None
        return str(place) if place else ""

    def _text(self, raw: Any, site: Site | None) -> str:
        who = self._who(raw)
        kind = raw.kind
        if kind in RACES or kind in (NOT_WRITTEN, IN_FLIGHT, OUT_OF_BOUNDS, NULL_POINTER):
            return self._memory(raw, site, who)
        if kind in (PRIVATE_BOUNDS, WRONG_SPACE):
            return f"{who}: {raw.bytes} bytes at {raw.address:#x}, not in the memory it names"
        if kind == MISALIGNED:
            return f"{who}: {raw.bytes} bytes at an address that is no multiple of {raw.bytes}"
        if kind == READ_ONLY:
            return f"{who} writes to {self._where(raw.address)}, which is read only"
        if kind == LANE_MISSING:
            return f"{who} names or reads lanes {_lanes(raw.other)}, which do not take part"
        if kind == DIVERGENT_BARRIER:
            return f"{who}: threads of its block wait at different barriers, or have not come"
        if kind == DEADLOCK:
            return f"{who} waits for what never comes"
        if kind == STEP_LIMIT:
            return f"{who}: stopped after {raw.other:,} steps"
        if kind == BAD_BARRIER:
            return f"{who}: barrier {raw.address} of {raw.bytes} threads"
        if kind == ASYNC_UNFINISHED:
            return f"{who}: a copy to shared memory is in flight when its block ends"
        return who

    def _memory(self, raw: Any, site: Site | None, who: str) -> str:
        verb = VERBS.get(_opcode(site.text), "reads") if site else "touches"
        what = f"{who} {verb} {raw.bytes} bytes of {self._where(raw.address)}"
        if raw.kind == OUT_OF_BOUNDS:
            return f"{who} {verb} {raw.bytes} bytes {self._beyond(raw)}"
        if raw.kind == NULL_POINTER:
            return f"{who} {verb} {raw.bytes} bytes through a null pointer"
        if raw.kind == NOT_WRITTEN:
            return f"{what}, which nobody has written"
        if raw.kind == IN_FLIGHT:
            return f"{what} while an asynchronous copy to it may be in flight"
        if raw.kind == RACE_IN_STORE:
            return f"{what} in the same store as thread {raw.other}, with another value"
        return f"{what} in no order with {self._party(raw)}"

    def _party(self, raw: Any) -> str:
        """The other one: shared memory notes the thread, global memory its block as well."""
        verb = "a read by" if raw.kind == RACE_WITH_READ else "a write by"
        flag, clock = raw.other >> 10 & 1, (raw.other & 0xFFFFFFFF) >> 11
        if raw.kind == RACE_WITH_READ and flag:
            return "reads by several threads"
        if raw.address >> WINDOW_SHIFT == 0xF0:
            return f"{verb} thread {_brief(self._thread(raw.other & 1023))}"
        if clock == (1 << 21) - 1:
            return f"{verb} other blocks"
        number = (raw.other >> 32) - self.first_block
        where = f"of block {number}" if number != raw.launch_block else "of its block"
        return f"{verb} thread {_brief(self._thread(raw.other & 1023))} {where}"

    def _window(self, address: int) -> Window | None:
        number = (address >> WINDOW_SHIFT) - FIRST_WINDOW
        return self.windows[number] if 0 <= number < len(self.windows) else None

    def _where(self, address: int) -> str:
        offset = address & ((1 << WINDOW_SHIFT) - 1)
        if address >> WINDOW_SHIFT == 0xF0:
            return f"shared memory at byte {offset:,}"
        window = self._window(address)
        return f"{window.name or 'memory'} at byte {offset:,}" if window else f"{address:#x}"

    def _beyond(self, raw: Any) -> str:
        offset = raw.address & ((1 << WINDOW_SHIFT) - 1)
        if raw.address >> WINDOW_SHIFT == 0xF0:
            return f"at byte {offset:,}, beyond the shared memory of its block"
        window = self._window(raw.address)
        if window is None:
            before = self._window(raw.address + (1 << (WINDOW_SHIFT - 1)))
            if before is not None and offset > 1 << (WINDOW_SHIFT - 1):
                return f"{(1 << WINDOW_SHIFT) - offset:,} bytes before {before.name or 'memory'}"
            return f"at {raw.address:#x}, which belongs to no tensor"
        if offset > 1 << (WINDOW_SHIFT - 1):
            after = self._window(raw.address + (1 << (WINDOW_SHIFT - 1)))
            name = after.name if after else "memory"
            return f"{(1 << WINDOW_SHIFT) - offset:,} bytes before {name}"
        past = offset - window.bytes
        where = f"{past:,} bytes past the end of" if past >= 0 else "across the end of"
        return f"{where} {window.name or 'memory'} ({window.bytes:,} bytes)"


def _brief(three: tuple[int, ...]) -> str:
    x, y, z = three
    return str(x) if not y and not z else str((x, y, z))


def _lanes(mask: int) -> str:
    return ", ".join(str(lane) for lane in range(32) if mask >> lane & 1) or "?"


@dataclass(frozen=True)
class Tally:
    """What the runtime counted, not yet by line: that takes longer than a small launch."""

    code: Code
    sites: Any
    """NumPy uint64 (sites, fields of Access)."""
    blocks: Any
    """NumPy uint64 (blocks of code, 2): warps and lanes that entered each."""
    launches: int = 1

    def __add__(self, other: Tally) -> Tally:
        """The sum of two of the same code."""
        return Tally(
            self.code,
            self.sites + other.sites,
            self.blocks + other.blocks,
            self.launches + other.launches,
        )

    def counts(self) -> Counts:
        """Instructions by line from the blocks of code, accesses from the sites."""
        lines: list[Line] = []
        for (warps, lanes), mix in zip(self.blocks.tolist(), self.code.mixes):
            if not warps:
                continue
            for places, form in mix:
                place = place_of(places) or Place("", 0)
                lines.append(Line(place.file, place.line, warps, lanes, {class_of(form): warps}))
        for numbers, site in zip(self.sites.tolist(), self.code.sites):
            access = Access(*numbers)
            if access.requests:
                place = place_of(site.places) or Place("", 0)
                lines.append(Line(place.file, place.line, accesses={_kind(site): access}))
        return Counts(merge(lines), self.launches)


VERBS = {"st": "writes", "stmatrix": "writes", "atom": "updates", "red": "updates"}
"""What an instruction does to memory; any other reads."""


def _opcode(text: str) -> str:
    words = text.split()
    return (words[1] if words[0].startswith("@") else words[0]).split(".")[0]


def _kind(site: Site) -> str:
    opcode = _opcode(site.text)
    what = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic", "cp": "copy"}
    what |= {"ldmatrix": "load", "stmatrix": "store"}
    return f"{site.space or 'warp'} {what.get(opcode, opcode)}"
