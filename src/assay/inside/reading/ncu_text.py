"""The details page that `ncu` prints: kernels, sections, tables of metrics, rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from .ncu import Finding, Kernel, Metric, Report, not_one, three

KERNEL = re.compile(
    r"^  (?P<name>\S.*?)"
    r"(?: (?P<grid>\(\d+, \d+, \d+\))x(?P<block>\(\d+, \d+, \d+\)))?"
    r"(?:, \d{4}-\w{3}-\d{2} [\d:]+)?"
    r", Context \d+, Stream \d+(?:, Device \d+)?(?:, CC (?P<cc>[\d.]+))?\s*$"
)
"""Older versions print the time in the place of grid and block."""
SECTION = re.compile(r"^    Section: (.+?)\s*$")
RULE = re.compile(r"^    (OPT|INF|WRN)\s+(.*?)\s*$")
DASHES = re.compile(r"^    -+( -+)*\s*$")
MORE = re.compile(r"^ {10}(?= {0,2}\S)(.*)$")
FULL = 110
"""Width of a rule's text: a line that is full to its end was cut within a word."""
WARNING = re.compile(r"^    (?:Warning|\*+ ?WARNING): (.+?)\s*$")
SPEEDUP = re.compile(r"^Est\.(?P<kind> Local| Global)? Speedup: (?P<percent>[\d.]+)%\s*")


@dataclass
class _Kernel:
    head: re.Match[str]
    sections: dict[str, dict[str, Metric]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read(file: str, text: str) -> Report:
    """Reads a details page. Raises AssayError where it has no kernel."""
    kernels = [_kernel(number, made) for number, made in enumerate(_kernels(text))]
    if not kernels:
        raise not_one(file, "it has no line `NAME (grid)x(block), Context ...`")
    return Report(file, "details page", tuple(kernels))


def _kernel(number: int, made: _Kernel) -> Kernel:
    head = made.head
    return Kernel(
        name=head["name"],
        number=number,
        grid=three(head["grid"] or ""),
        block=three(head["block"] or ""),
        capability=head["cc"] or "",
        sections=made.sections,
        findings=tuple(made.findings),
        warnings=tuple(made.warnings),
    )


def _kernels(text: str) -> Iterator[_Kernel]:
    """One pass: a line belongs to the kernel, section, table or rule that was begun last."""
    kernel: _Kernel | None = None
    section = ""
    columns: list[tuple[int, int]] = []
    rule: list[str] = []
    for line in [*text.splitlines(), "end"]:
        more = MORE.match(line) if rule else None
        if more:
            rule.append(more[1])
            continue
        if rule and kernel:
            kernel.findings.append(_finding(section, rule))
        rule = []
        if head := KERNEL.match(line):
            if kernel:
                yield kernel
            kernel, section, columns = _Kernel(head), "", []
        elif kernel is None:
            continue
        elif found := SECTION.match(line):
            section, columns = found[1], []
            kernel.sections.setdefault(section, {})
        elif found := RULE.match(line):
            rule, columns = [found[1], found[2]], []
        elif found := WARNING.match(line):
            kernel.warnings.append(found[1])
        elif DASHES.match(line):
            columns = [(m.start(), m.end()) for m in re.finditer("-+", line)]
        elif len(columns) == 3 and line.strip():
            _metric(kernel.sections.setdefault(section, {}), line, columns)
    if kernel:
        yield kernel


def _metric(into: dict[str, Metric], line: str, columns: list[tuple[int, int]]) -> None:
    """A row of a table, whose dashes say where its columns are."""
    name, unit, value = (line[start:end].strip() for start, end in columns)
    if name and name != "Metric Name":
        into[name] = Metric(name, unit, value)


def _finding(section: str, lines: list[str]) -> Finding:
    kind, *said = lines
    parts = (part if len(part.rstrip()) >= FULL else f"{part} " for part in said)
    text = " ".join("".join(parts).split())
    found = SPEEDUP.match(text)
    if not found:
        return Finding(section, kind, text)
    local = (found["kind"] or " Global").strip().lower()
    return Finding(section, kind, text[found.end() :], "", float(found["percent"]), local)
