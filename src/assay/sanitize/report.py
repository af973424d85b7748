"""A report of compute-sanitizer read: which kernel did what, in which file and line.

The text, not `--xml`: each tool's text is documented and was compared with assay.simt on an H100
(benchmarks/simt_sanitizer.py). A report without its summary, or whose summary says other than its
body, is no report: `problem` says so, and nothing is taken for clean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..types import Fault

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PREFIX = re.compile(r"^={9} ?")
SUMMARY = re.compile(r"^ERROR SUMMARY: (\d+) errors?$")
RACES = re.compile(
    r"^RACECHECK SUMMARY: (\d+) hazards? displayed \((\d+) errors?, (\d+) warnings?\)"
)
ACCESS = re.compile(r"^Invalid __(\w+)__ (\S+) of size ([\d,]+) bytes?")
UNWRITTEN = re.compile(r"^Uninitialized __(\w+)__ (?:memory )?read of size ([\d,]+) bytes?")
BARRIER = re.compile(r"^Barrier error detected\. ?(.*)$")
DIES = re.compile(r"^(Illegal instruction|Stack overflow|Hardware stack overflow|Trap|User stack)")
HAZARD = re.compile(r"^(?:Error|Warning): (.*hazard detected.*?)(?: at __(\w+)__ (\S+).*)?$")
REPORTED = re.compile(r"^(?:Error|Warning): (?:\(.*?\) ?)?Race reported between")
AT = re.compile(r"(?:^|\b)at (\S.*?)\+0x[0-9a-f]+(?: in ([^:\s][^:]*):(\d+))?(?:\s|$)")
OLD_AT = re.compile(r"^at 0x[0-9a-f]+ in (?:([^:\s][^:]*):(\d+):)?(.+)$")
THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
PARTY = re.compile(r"(Read|Write|Atomic)\w* (?:Thread \((\d+),(\d+),(\d+)\)|access)")
BLOCK = re.compile(r"in block \((\d+),(\d+),(\d+)\)")
BROKEN = re.compile(
    r"^(?:Error: .*|Internal Sanitizer Error.*|Target application .*|.*not supported.*|"
    r".*Unable to .*|No attachable process.*)$",
    re.IGNORECASE,
)
ENDED = re.compile(r"^(?:Target application returned an error|Error: process didn't terminate)")
"""What tool.py asks the job itself about."""
API = re.compile(r"^Program hit \S+")
"""A call that returned an error: the caller sees it too, and torch makes some that do no harm."""
LIBRARIES = re.compile(r"^(?:at|c10|cub|thrust|cutlass|cudnn|cublas\w*|caffe2)::")
"""Namespaces whose kernels no user wrote: torch's own, and those of NVIDIA's libraries."""
PLAIN_LIBRARY = re.compile(r"^(?:ampere|volta|turing|hopper|sm\d+|cublas|cudnn|cutlass|nvjet)_\w+")


@dataclass(frozen=True)
class Found:
    """One thing that a tool reported of a kernel."""

    word: str
    """The verdict's word."""
    kernel: str
    fault: Fault


@dataclass(frozen=True)
class Report:
    """What one run of a tool says."""

    tool: str
    found: tuple[Found, ...] = ()
    excluded: tuple[str, ...] = ()
    """Kernels of libraries that something was reported of: no fault of the user's."""
    problem: str = ""
    """Why this run says nothing, or not all; empty: it says everything."""


def read(tool: str, text: str) -> Report:
    """What a tool's report says."""
    lines = [line.rstrip() for line in text.splitlines()]
    own = [PREFIX.sub("", line) for line in lines if PREFIX.match(line)]
    if not own or not own[0].startswith("COMPUTE-SANITIZER"):
        return Report(tool, problem=f"{tool} wrote no report{_quoted(lines)}")
    found: list[Found] = []
    excluded: list[str] = []
    unknown: list[str] = []
    blocks = list(_blocks(own[1:]))
    calls = sum(bool(API.match(block[0])) for block in blocks)
    for block in blocks:
        if API.match(block[0]) or ENDED.match(block[0]):
            continue
        one = _found(block)
        if one is None:
            unknown.append(block[0])
        elif _is_library(one.kernel):
            excluded.append(short(one.kernel))
        else:
            found.append(one)
    problem = _problem(tool, own, len(found) + len(excluded) + calls, unknown)
    return Report(tool, _once(found), tuple(dict.fromkeys(excluded)), problem)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Each report: its first line, and those below it, which are indented."""
    block: list[str] = []
    for line in lines:
        if line.startswith(" "):
            if block:
                block.append(line.strip())
            continue
        if block:
            yield block
        block = [] if not line or "SUMMARY" in line else [line]
    if block:
        yield block


def _found(block: list[str]) -> Found | None:
    head, rest = block[0], block[1:]
    body = "\n".join(block)
    if access := ACCESS.match(head):
        if "misaligned" in body:
            return _made("crashed", "misaligned", block)
        word = "read outside" if access.group(2) == "read" else "wrote outside"
        return _made(word, "out of bounds", block)
    if UNWRITTEN.match(head):
        return _made("read before written", "read before written", block)
    if barrier := BARRIER.match(head):
        divergent = "ivergent" in barrier.group(1)
        return _made(
            "divergent barrier", "barrier in divergent code" if divergent else "bad barrier", block
        )
    if DIES.match(head):
        return _made("crashed", "trap", block)
    if HAZARD.match(head) or REPORTED.match(head):
        return _race(head, rest)
    return None


def _made(word: str, kind: str, block: list[str]) -> Found:
    head, rest = block[0], block[1:]
    kernel, file, line = next((place for text in rest if (place := _place(text))), ("", "", 0))
    by = next((m for text in rest if (m := THREAD.search(text))), None)
    numbers = [int(n) for n in by.groups()] if by else [0] * 6
    where = [t for t in rest if re.match(r"(?:Access|Address)\b|and is [\d,]+ bytes", t)]
    by_text = f", by thread {_triple(numbers[:3])} of block {_triple(numbers[3:])}" if by else ""
    said = f"; {' '.join(where)}" if where else ""
    fault = Fault(
        word=kind,
        text=f"{head.rstrip('.')}{_of(kernel)}{by_text}{said}",
        file=file,
        line=line,
        thread=(numbers[0], numbers[1], numbers[2]),
        block=(numbers[3], numbers[4], numbers[5]),
    )
    return Found(word, kernel, fault)


def _race(head: str, rest: list[str]) -> Found:
    """Two parties; the second one in the report is named first in the verdict: it came later."""
    parties = [(m, _place(text)) for text in [head, *rest] if (m := PARTY.search(text))]
    places = [(place, m) for m, place in parties if place]
    kernel, file, line = places[-1][0] if places else ("", "", 0)
    threads = [tuple(int(n) for n in m.groups()[1:]) for _, m in places if m.group(2)]
    block = BLOCK.search(head)
    who = f", threads {' and '.join(map(_triple, threads))}" if threads else ""
    kinds = " and ".join(m.group(1).lower() for m, _ in parties)
    said = HAZARD.match(head)
    what = said.group(1) if said else f"race between {kinds}"
    other = places[0][0] if len(places) > 1 else ("", "", 0)
    b, t = [int(n) for n in block.groups()] if block else [0] * 3, threads[-1] if threads else ()
    fault = Fault(
        word="race",
        text=f"{what}{_of(kernel)}{who}",
        file=file,
        line=line,
        block=(b[0], b[1], b[2]),
        thread=(t[0], t[1], t[2]) if len(t) == 3 else (0, 0, 0),
        other=f"{other[1]}:{other[2]}" if other[1] else "",
    )
    return Found("race", kernel, fault)


def _place(text: str) -> tuple[str, str, int] | None:
    """Kernel, file and line of `at kernel(float *)+0x90 in file.cu:12`; file may be empty."""
    if at := AT.search(text):
        return at.group(1), at.group(2) or "", int(at.group(3) or 0)
    if at := OLD_AT.match(text):
        return at.group(3), at.group(1) or "", int(at.group(2) or 0)
    return None


def _is_library(kernel: str) -> bool:
    """Whether a kernel is torch's or a library's, by its own name, not that of its arguments."""
    name = re.split(r"[<(]", kernel.removeprefix("void "), maxsplit=1)[0]
    return bool(LIBRARIES.match(name) or PLAIN_LIBRARY.match(name))


def short(kernel: str) -> str:
    """A kernel's name without its arguments."""
    return re.split(r"[<(]", kernel.removeprefix("void "), maxsplit=1)[0]


def _once(found: list[Found]) -> tuple[Found, ...]:
    """One for each kind and line, with a count: every thread reports its own."""
    made: dict[tuple[object, ...], Found] = {}
    for one in found:
        fault = one.fault
        here = f"{fault.file}:{fault.line}"
        line = tuple(sorted((here, fault.other))) if one.word == "race" else here
        key = (one.word, fault.word, short(one.kernel), line)
        first = made.get(key)
        if first is None:
            made[key] = one
        else:
            more = Fault(
                word=first.fault.word,
                text=first.fault.text,
                file=first.fault.file,
                line=first.fault.line,
                block=first.fault.block,
                thread=first.fault.thread,
                other=first.fault.other,
                count=first.fault.count + 1,
            )
            made[key] = Found(first.word, first.kernel, more)
    return tuple(made.values())


def _problem(tool: str, lines: list[str], read_ones: int, unknown: list[str]) -> str:
    """Why the report can't be believed to be whole, or empty."""
    told = [line for line in lines if not line.startswith(" ")]
    broken = [line for line in unknown if BROKEN.match(line)]
    if broken:
        return f"{tool}: {broken[0]}"
    counts = [int(m.group(1)) for line in told if (m := SUMMARY.match(line) or RACES.match(line))]
    if not counts:
        return f"{tool}: its report ends without a summary{_quoted(told)}"
    if unknown:
        return f"{tool}: it said what Assay can't read: {unknown[0]}"
    if bool(counts[-1]) != bool(read_ones):
        return f"{tool}: its summary says {counts[-1]}, its report holds {read_ones}"
    return ""


def _quoted(lines: list[str]) -> str:
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"; its last line: {last.strip()[:200]}" if last else ""


def _of(kernel: str) -> str:
    return f" in {short(kernel)}" if kernel else ""


def _triple(numbers: object) -> str:
    return f"({', '.join(map(str, numbers))})" if isinstance(numbers, (list, tuple)) else ""
