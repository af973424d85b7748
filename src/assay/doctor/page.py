"""Prints a report: sections of facts first, then what to mend, one command each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from assay.doctor.capability import ptx_of
from assay.doctor.facts import Device, Facts, Finding, Probe, Report

if TYPE_CHECKING:
    from rich.console import Console

Line = tuple[str, str, str]  # label, text, style of the label

_LABEL = 20
_WIDEST = 110  # beyond this, lines are hard to read
_STYLE = {"found": "green", "missing": "yellow", "failed": "red"}
_GIB, _MIB, _KIB = 1 << 30, 1 << 20, 1 << 10
_LIBRARIES = "lib"


def render(report: Report, console: Console) -> None:
    """Prints `report`, no line wider than the console; colours are the console's business."""
    width = min(console.width, _WIDEST)
    _print(console, f"assay doctor: {summary(report)}", "bold")
    for title, lines in sections(report.facts):
        _print(console, "", "")
        _print(console, title, "bold")
        for label, text, style in lines:
            _entry(console, label, text, style, width)
    _findings(console, report.notes, "note", width)
    _findings(console, report.problems, "problem", width)
    if not report.problems:
        _print(console, "", "")
        _print(console, "no problems", "bold green")


def summary(report: Report) -> str:
    """Counts of problems and notes, and how long looking took."""
    problems = counted(len(report.problems), "problem")
    return f"{problems}, {counted(len(report.notes), 'note')} ({report.seconds:.1f} s)"


def counted(number: int, word: str) -> str:
    """ "no notes", "1 note", "2 notes"."""
    return f"{number or 'no'} {word}{'' if number == 1 else 's'}"


def sections(facts: Facts) -> Iterator[tuple[str, list[Line]]]:
    """Every section as (title, lines)."""
    yield "Driver and GPUs", list(_gpus(facts))
    yield "CUDA toolkit", [_line(p) for p in facts.toolkit if not p.name.startswith(_LIBRARIES)]
    vendor = [p for p in facts.toolkit if p.name.startswith(_LIBRARIES)]
    yield "Vendor libraries", list(_vendor(vendor))
    yield "Python packages", list(_packages(facts))
    yield "Compilers", [_line(probe) for probe in facts.compilers]
    yield "Machine", list(_machine(facts))


def _gpus(facts: Facts) -> Iterator[Line]:
    management, cuda = facts.management, facts.cuda
    takes = cuda.version or management.cuda
    why = "; ".join(part for part in (management.error, management.detail) if part)
    if management.driver:
        ptx = f", PTX up to {ptx_of(takes)}" if ptx_of(takes) else ""
        by = "; ".join(part for part in (management.source, management.detail) if part)
        said = f"{management.driver} (by {by}), takes CUDA up to {takes}{ptx}"
        yield "driver", said, "green"
    else:
        yield "driver", f"not seen: {why}", "yellow"
    if cuda.error:
        yield "libcuda", cuda.error, "yellow" if cuda.code == -1 else "red"
    else:
        yield "libcuda", f"{cuda.version}  {cuda.library}", "green"
    if not cuda.devices:
        yield "GPU", NO_GPU, "yellow"
    for device in cuda.devices:
        yield from device_lines(device)


NO_GPU = (
    "none that CUDA can use. Still working: the eager, compiled, python and cpp ways, and the C++ "
    "half of extensions; triton and numba kernels are judged on the CPU, cuda kernels compiled. "
    "Not working: their times and hardware counters."
)


def device_lines(device: Device) -> Iterator[Line]:
    """One GPU in full: the table that deviceQuery prints, in words."""
    major, minor = device.capability
    size = f"{device.memory_bytes / _GIB:.1f} GiB"
    name = f"{device.name}, compute capability {major}.{minor}, {size}, PCI {device.pci}"
    yield f"GPU {device.index}", name, "green"
    per_sm = f"{_n(device.registers_per_sm)} registers, {_n(device.max_threads_per_sm)} threads"
    blocks = f"{_n(device.max_blocks_per_sm)} blocks"
    shared = _size(device.shared_per_sm_bytes, _KIB, "KiB")
    yield "  SMs", f"{_n(device.sms)}, each {per_sm}, {blocks}, {shared} shared", ""
    threads = f"{_n(device.max_threads_per_block)} threads in warps of {_n(device.warp_threads)}"
    asked = _size(device.shared_optin_bytes, _KIB, "KiB")
    plain = _size(device.shared_per_block_bytes, _KIB, "KiB")
    yield "  a block", f"{threads}, {plain} shared ({asked} if asked for)", ""
    yield "  L2", _size(device.l2_bytes, _MIB, "MiB"), ""
    sm, memory = _mhz(device.sm_clock_hertz), _mhz(device.memory_clock_hertz)
    bus = f"{_n(device.memory_bus_bits)}-bit bus"
    yield "  largest clocks", f"SM {sm}, memory {memory}, {bus}", ""
    ecc = {True: "on", False: "off", None: "not known"}[device.ecc]
    yield "  ECC", ecc, ""
    yield "  can do", ", ".join(device.features) or "plain CUDA", ""


def _n(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _size(value: int | None, unit: int, name: str) -> str:
    return "?" if value is None else f"{value / unit:.4g} {name}"


def _mhz(hertz: int | None) -> str:
    return "?" if hertz is None else f"{hertz / 1e6:.0f} MHz"


def _line(probe: Probe) -> Line:
    """One probe: what was taken and from where, or what is missing and how to get it."""
    if probe.state == "found":
        parts = [probe.version, f"[{probe.origin}]" if probe.origin else "", short(probe.path)]
        parts += [f"({probe.detail})" if probe.detail else ""]
        others = len(probe.others)
        parts += [f"+ {others} more, not taken"] if others else []
        return probe.name, " ".join(part for part in parts if part) or "works", "green"
    word = "not found" if probe.state == "missing" else "does not work"
    text = f"{word}; {probe.detail}" if probe.detail else word
    return probe.name, text, _STYLE[probe.state]


def short(path: str) -> str:
    """A path for reading: packages from site-packages on, the home folder as ~."""
    _, marker, rest = path.partition("/site-packages/")
    if marker:
        return f"site-packages/{rest}"
    home = str(Path.home())
    return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path


def _vendor(probes: list[Probe]) -> Iterator[Line]:
    """One line for all that is there and one for all that is not: the library way is optional."""
    found = [f"{p.name[3:]} {p.version} [{p.origin}]" for p in probes if p.state == "found"]
    absent = [p.name[3:] for p in probes if p.state != "found"]
    if found:
        yield "found", ", ".join(found), "green"
    if absent:
        yield "not found", f"{', '.join(absent)} (for the library way)", "yellow"


def _packages(facts: Facts) -> Iterator[Line]:
    build = f"built with CUDA {facts.torch_cuda}" if facts.torch_cuda else "CPU-only build"
    build = f"built for ROCm {facts.torch_hip}" if facts.torch_hip else build
    yield "Python", f"{facts.host.python} {short(facts.host.executable)}", "green"
    for probe in facts.packages:
        text = f"{probe.version or 'version not known'}"
        if probe.state != "found":
            yield _line(probe)
        elif probe.name == "torch":
            yield probe.name, f"{text}, {build}", "green"
        else:
            yield probe.name, text, "green"


def _machine(facts: Facts) -> Iterator[Line]:
    host = facts.host
    yield "system", f"{host.system}, {counted(host.cores, 'core')} for this process", ""
    inside = [host.container] if host.container else []
    inside += ["WSL"] if host.wsl else []
    yield "runs in", ", ".join(inside) or "no container seen", ""
    size = "none" if host.shm_bytes is None else f"{host.shm_bytes / _GIB:.1f} GiB"
    yield "/dev/shm", size, ""
    yield "counters", _counters(facts), ""
    for name, value in host.environment:
        yield name, value or "(empty)", ""


def _counters(facts: Facts) -> str:
    who = {
        "everyone": "allowed for everyone",
        "administrators": "for administrators only",
        "unknown": "not known: there is no /proc/driver/nvidia/params",
    }[facts.host.counters]
    if facts.host.counters == "administrators":
        who += ", which this process is" if facts.host.administrator else ", which it is not"
    return who


def _findings(console: Console, found: tuple[Finding, ...], word: str, width: int) -> None:
    if not found:
        return
    style = "bold red" if word == "problem" else "bold"
    _print(console, "", "")
    _print(console, f"{counted(len(found), word)}:", style)
    for number, finding in enumerate(found, 1):
        for line in wrap(finding.what, width, f"  {number}. ", "     "):
            _print(console, line, "")
        if finding.fix:
            lines = shell if finding.command else wrap
            for line in lines(finding.fix, width, "     fix: ", "          "):
                _print(console, line, "cyan")


def _entry(console: Console, label: str, text: str, style: str, width: int) -> None:
    from rich.text import Text

    first = f"  {label:<{_LABEL}} "
    lines = wrap(text, width, first, " " * (_LABEL + 3))
    for line in lines:
        shown = Text(line)
        if line.startswith(first) and style:
            shown.stylize(style, 2, 2 + len(label))
        console.print(shown, soft_wrap=True)


def _print(console: Console, line: str, style: str) -> None:
    from rich.text import Text

    console.print(Text(line, style=style), soft_wrap=True)


def wrap(text: str, width: int, first: str, later: str) -> list[str]:
    """Prose in lines of at most `width`; words longer than a line are cut."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def shell(command: str, width: int, first: str, later: str) -> list[str]:
    """A command in lines of at most `width` that can still be pasted: cut ends in a backslash.

    Only blanks outside quotes are cut; a word longer than a line is cut inside, which the shell
    joins again only if the next line is not indented.
    """
    lines, line = [], first
    for word in words(command):
        glue = "" if line in (first, later) else " "
        if line not in (first, later) and len(line) + len(glue) + len(word) > width - 2:
            lines.append(f"{line} \\")
            line, glue = later, ""
        line += glue + word
        while len(line) > width:
            lines.append(f"{line[: width - 1]}\\")
            line = line[width - 1 :]
    return [*lines, line]


def words(command: str) -> Iterable[str]:
    """The words of a shell command, quotes kept: blanks inside quotes do not divide."""
    word, quote = "", ""
    for sign in command:
        if sign == " " and not quote:
            yield word
            word = ""
            continue
        if sign in "'\"" and quote in ("", sign):
            quote = "" if quote else sign
        word += sign
    yield word
