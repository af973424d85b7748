"""The coverage map as text: what is covered in one sentence, then a grid of characters."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from .. import drawing
from ..drawing import HOST, PARTLY, SEVERAL, TOGETHER, UNTOUCHED
from .model import Accesses, CoverageMap, Index, Step, Tensor, first_of

WIDTH = 80
NAME = 40
MOST_DRAWN = 4
"""Launches that are drawn one by one."""


def text(found: CoverageMap, *, by: str = "block", only: str = "") -> str:
    """All of it, at most 80 columns wide. only: the name of one tensor, which is then drawn."""
    unit = unit_of(found)
    said = [f"{found.op}  {found.label}  {found.case}".rstrip(), *_conditions(found)]
    for tensor in found.tensors.values():
        if not only or tensor.name == only:
            said += ["", *_tensor(found, tensor, unit, by, drawn=bool(only))]
    if found.trace and not only:
        said += ["", f"{unit} 0, access by access:", *[f"  {step_text(s)}" for s in found.trace]]
    return "\n".join(said)


def unit_of(found: CoverageMap) -> str:
    """What a block is called by who wrote the kernel."""
    return "program" if found.label.split("/")[0].split()[0] == "triton" else "block"


def _conditions(found: CoverageMap) -> list[str]:
    how = {"interpreter": "run in the interpreter", "simulator": "run in the simulator"}
    how["cpu"] = "run on the CPU: what was written is what two runs on poison tell"
    ran = how.get(found.judge, f"compiled for {found.judge}, run on the CPU")
    said = [ran]
    if found.judge != "cpu":
        said += [f"launch {i}: {_brief(one.text)}" for i, one in enumerate(found.launches)]
        said += [] if found.launches else ["no kernel was launched"]
    return said + (_wrapped(found.note) if found.note else [])


def _brief(name: str) -> str:
    """A launch; the name of a template can fill lines."""
    kernel, bracket, rest = name.rpartition("[")
    return name if len(kernel) <= NAME else f"{kernel[: NAME - 3]}...{bracket}{rest}"


def _wrapped(line: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent)


def _tensor(found: CoverageMap, tensor: Tensor, unit: str, by: str, *, drawn: bool) -> list[str]:
    said = _wrapped(f"{tensor.name}  {tensor.dtype} {list(tensor.shape)}: {summary(tensor, unit)}")
    if not tensor.size or not tensor.known:
        return said
    wrote = tensor.role != "input" or bool(tensor.total.write_counts.any())
    if wrote:
        return said + _writers(found, tensor, unit, by)
    counts = tensor.read_counts
    if drawn or counts.min() == 0 < counts.max():
        picture = drawing.grid(np.where(counts == 0, UNTOUCHED, counts))
        key = f"  {drawing.span(picture)}; a number: loads of each, * 10 or more; + various"
        return [*said, *[f"  {line}" for line in drawing.lines(picture, drawing.times)], key]
    return said


def _writers(found: CoverageMap, tensor: Tensor, unit: str, by: str) -> list[str]:
    """Who wrote, launch by launch where several did."""
    those = [i for i, one in tensor.launches.items() if one.write_counts.any()]
    if not found.launches:
        by = "anybody"
    if len(those) < 2 or len(those) > MOST_DRAWN:
        return _picture(codes(tensor.total, by, tensor.left), unit, by)
    said = []
    for number in those:
        said.append(f"  by launch {number}, {_brief(found.launches[number].text)}:")
        said += _picture(codes(tensor.launches[number], by), unit, by)
    return said


def _picture(given: Any, unit: str, by: str) -> list[str]:
    picture = drawing.grid(given)
    rows = drawing.lines(picture)
    return [*[f"  {row}" for row in rows], *_wrapped(f"  {legend(picture, rows, unit, by)}")]


def codes(accesses: Accesses, by: str = "block", left: Any = None) -> Any:
    """The code of each element, for `drawing`. left: where poison was left, if that is known."""
    who = accesses.written_by_thread if by == "thread" else accesses.written_by
    nobody = UNTOUCHED if left is None else np.where(left, UNTOUCHED, HOST)
    made = np.where(who < 0, nobody, who)
    several = accesses.writers > 1
    made = np.where(several, np.where(accesses.overlaps, SEVERAL, TOGETHER), made)
    return np.where(accesses.partly_written, PARTLY, made)


def legend(picture: drawing.Grid, rows: list[str], unit: str, by: str) -> str:
    """What each character means that occurs."""
    used = {
        c for cells in picture.cells for c in (drawing.character(x, drawing.letter) for x in cells)
    }
    whose = "thread" if by == "thread" else unit
    parts = [drawing.span(picture)]
    if used & set(drawing.LETTERS):
        parts.append(f"a letter or digit: the {whose} that wrote it (after Z from 0 again)")
    known = {
        drawing.MIXED: f"+ several {whose}s, each its own elements",
        ".": ". not written",
        "x": "x written in part",
        "#": f"# elements that several {unit}s wrote",
        "@": f"@ elements that several {unit}s changed, by atomic operations",
        "o": "o written" if by == "anybody" else "o written, by none of the kernels",
    }
    return "; ".join([*parts, *(said for mark, said in known.items() if mark in used)])


def summary(tensor: Tensor, unit: str = "block") -> str:
    """`512 of 3,124 elements written, 2,612 not; first not written [0, 128]; ...`."""
    if not tensor.size:
        return "it has no elements"
    if not tensor.known:
        return "not known; an operation of torch allocated its memory"
    if tensor.role == "input" and not tensor.total.write_counts.any():
        return _reads(tensor)
    parts = _coverage(~tensor.written, "written")
    parts += _who(tensor, unit)
    if tensor.role == "input" or tensor.read_counts.any():
        parts.append(_reads(tensor))
    return "; ".join(parts)


def _coverage(missing: Any, done: str) -> list[str]:
    count, size = int(missing.sum()), missing.size
    if not count:
        return [f"all {size:,} elements {done}" if size > 1 else f"its element {done}"]
    said = f"{size - count:,} of {size:,} elements {done}" if count < size else f"no element {done}"
    return [said, f"{count:,} not, first {_at(first_of(missing))}"]


def _at(index: Index | None) -> str:
    return str(list(index or ()))


def _who(tensor: Tensor, unit: str) -> list[str]:
    """Which blocks, and how often."""
    parts: list[str] = []
    total = tensor.total
    touched = total.write_counts > 0
    if not tensor.launches or not touched.any():
        return parts
    over = np.zeros(tensor.shape, np.bool_)
    for one in tensor.launches.values():
        over |= one.overlaps
    several = (total.writers > 1) & ~over
    if over.any():
        parts.append(f"{int(over.sum()):,} by several {unit}s, first {_at(first_of(over))}")
    if several.any():
        parts.append(f"{int(several.sum()):,} by atomic operations of several {unit}s")
    if not over.any() and not several.any():
        which = f"{int(touched.sum()):,}" if tensor.written_otherwise.any() else "each"
        parts.append(f"{which} by exactly one {unit}")
    most = int(total.write_counts.max())
    if most > 1:
        parts.append(f"up to {most:,} times")
    if total.partly_written.any():
        place = _at(first_of(total.partly_written))
        parts.append(f"{int(total.partly_written.sum()):,} in some of their bytes, first {place}")
    if tensor.written_otherwise.any():
        parts.append(f"{int(tensor.written_otherwise.sum()):,} by none of the kernels")
    return parts


def _reads(tensor: Tensor) -> str:
    counts = tensor.read_counts
    parts = _coverage(counts == 0, "read")
    least, most = int(counts[counts > 0].min(initial=1 << 62)), int(counts.max())
    if not most:
        return "; ".join(parts)
    if least == most:
        parts.append("once each" if most == 1 else f"{most:,} times each")
    else:
        parts.append(f"{least:,} to {most:,} times, {counts[counts > 0].mean():.3g} on average")
    blocks = tensor.readers[counts > 0].mean()
    if blocks > 1:
        parts.append(f"by {blocks:.3g} blocks on average")
    return "; ".join(parts)


def step_text(step: Step) -> str:
    """`load x[0..127], 100 of 128 lanes  file.py:9`."""
    if not step.lanes:
        where = f"{step.tensor or 'memory'}[]"
    elif step.step in (0, None) or step.first == step.last:
        where = f"{step.tensor or 'memory'}[{step.first}"
        where += "]" if step.first == step.last else f"..{step.last}], no fixed step"
    else:
        by = "" if step.step == 1 else f" by {step.step}"
        where = f"{step.tensor or 'memory'}[{step.first}..{step.last}{by}]"
    return f"{step.what} {where}, {step.lanes} of {step.of} lanes  {step.place}".rstrip()


def findings(found: CoverageMap) -> list[str]:
    """What a right kernel seldom does: elements not written, or written by several blocks."""
    unit, said = unit_of(found), []
    for tensor in found.tensors.values():
        if tensor.role == "output" and tensor.known and tensor.size:
            missing = int((~tensor.written).sum())
            if missing:
                said.append(f"{tensor.name}: {missing:,} elements are not written")
        several = len(tensor.overlapping)
        if several:
            said.append(f"{tensor.name}: {several:,} elements are written by several {unit}s")
    return said
