"""A `cuda` variant as a standalone CUDA C++ program: its launches, arguments and data, exactly.

The launcher runs on the CPU against the recorder, so every launch is known with its arguments; what
the launcher does with torch besides allocating can't be carried over and is refused by name.
"""

from __future__ import annotations

import ctypes
import math
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import cache, single
from ..errors import AssayError
from ..inputs import inputs_of
from ..verdict.budget import arithmetic, expect
from ..ways.cuda import DEBUG, FLAGS, INCLUDE
from ..ways.launch import Launch, Recorder, check_geometry, type_of
from . import template

HOST_ONLY = {"-default-device", "-lineinfo", DEBUG}
"""Flags that NVRTC takes and nvcc does not, or that the Makefile has anyway."""
EMPTY = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
FULL = {*("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones"), "full", "full_like"}
VIEWS = {
    *("view", "_unsafe_view", "reshape", "_reshape_alias", "as_strided", "detach", "alias"),
    *("slice", "select", "transpose", "t", "permute", "expand", "squeeze", "unsqueeze"),
    *("unbind", "split", "split_with_sizes", "narrow", "diagonal", "lift_fresh"),
}
FILLS = {"fill_", "zero_"}
"""What torch may do in a launcher: its results are known before the first launch."""


class _Watch(TorchDispatchMode):
    """Notes what torch computes while a launcher runs, and whether a launch came before."""

    def __init__(self, recorder: Recorder):
        super().__init__()
        self.recorder = recorder
        self.computed: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func._overloadpacket.__name__
        early = name in FILLS and not self.recorder.launches
        if not early and name not in EMPTY | FULL | VIEWS:
            self.computed.append(name)
        made = func(*args, **(kwargs or {}))
        if name in EMPTY:
            whole = torch.empty(0, dtype=torch.uint8).set_(made.untyped_storage())
            whole.fill_(single.POISON)
        return made


@dataclass
class Buffer:
    """One allocation of the program."""

    name: str
    tensor: torch.Tensor
    """Over the whole storage."""
    content: str = ""
    """`poison`, or the file that holds what is in it before the first launch."""


@dataclass
class Recorded:
    """The launches of one call, and every allocation that they were given."""

    launches: list[Launch]
    buffers: list[Buffer] = field(default_factory=list)

    def name(self, tensor: torch.Tensor) -> str:
        """A tensor as the program's text: a buffer, or a place within one."""
        start = tensor.untyped_storage().data_ptr()
        for buffer in self.buffers:
            if buffer.tensor.untyped_storage().data_ptr() == start:
                break
        else:
            flat = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
            buffer = Buffer(f"scratch{sum('scratch' in b.name for b in self.buffers)}", flat)
            self.buffers.append(buffer)
        offset = tensor.data_ptr() - start
        return f"{buffer.name}.at({offset})" if offset else buffer.name


def write(one: single.Single, arch: str, folder: Path) -> list[str]:
    """Writes the program into a folder; the names of its files. Raises AssayError."""
    arch = one.variant.arch or arch
    placed = single.place(one, "cpu")
    recorded = record(placed, arch)
    source = one.variant.source
    assert source is not None
    texts = [_launch(launch, recorded) for launch in recorded.launches]
    data = folder / "data"
    data.mkdir(parents=True)
    for buffer in recorded.buffers:
        if not _is_poison(buffer.tensor):
            buffer.content = f"{buffer.name}.bin"
            _dump(buffer.tensor, data / buffer.content)
    checks = _expected(placed, recorded, data)
    headers = _copy_sources(one, source, folder)
    text = template.program(
        title=f"{one.op.name} {one.label}, {one.case.label}",
        source=source.name,
        buffers=[
            (b.name, type_of(b.tensor), b.tensor.numel(), b.content) for b in recorded.buffers
        ],
        launches=texts,
        checks=checks,
    )
    (folder / "main.cu").write_text(text)
    flags = [f for f in (*FLAGS, *one.variant.flags) if f not in HOST_ONLY]
    (folder / "Makefile").write_text(template.makefile(arch, flags))
    return ["main.cu", "Makefile", source.name, *headers, "data/"]


def record(placed: single.Placed, arch: str) -> Recorded:
    """Runs the launcher, for an architecture, against the recorder. Raises AssayError for what a
    program can't repeat."""
    one, recorder = placed.single, Recorder(arch)
    with torch.no_grad(), _Watch(recorder) as watch:
        one.variant.function(recorder, *placed.outputs, *placed.inputs, **one.knobs)
    if watch.computed:
        raise AssayError(
            f"exporting {one.label}: its launcher also computes with torch "
            f"({', '.join(sorted(set(watch.computed)))}), which a CUDA program can't repeat; "
            "move that into a kernel"
        )
    if not recorder.launches:
        raise AssayError(
            f"exporting {one.label}: it launches nothing on {one.case.label}; give another --case"
        )
    for launch in recorder.launches:
        check_geometry(launch)
    recorded = Recorded(recorder.launches)
    names = one.op.input_names(len(placed.inputs))
    outputs = (
        ["out"] if len(placed.outputs) == 1 else [f"out{i}" for i in range(len(placed.outputs))]
    )
    for name, value in [*zip(names, placed.inputs), *zip(outputs, placed.outputs)]:
        if isinstance(value, torch.Tensor):
            recorded.buffers.append(Buffer(_unused(name, recorded), value.reshape(-1)))
    return recorded


def _unused(name: str, recorded: Recorded) -> str:
    kernels = {launch.name.split("<")[0] for launch in recorded.launches}
    taken = {b.name for b in recorded.buffers} | template.WORDS | kernels
    return name if name not in taken else f"{name}_"


def _launch(launch: Launch, recorded: Recorded) -> str:
    args = ", ".join(_argument(launch.name, value, recorded) for value in launch.args)
    grid, block = (", ".join(map(str, sizes)) for sizes in (launch.grid, launch.block))
    return template.launch(launch.name, grid, block, launch.shared, args)


def _argument(kernel: str, value: Any, recorded: Recorded) -> str:
    """An argument as C++, of the exact value; C++ then converts it to what the kernel declares."""
    if isinstance(value, torch.Tensor):
        return recorded.name(value)
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value}{'LL' if value < 2**63 else 'ULL'}"
    if isinstance(value, float):
        if math.isnan(value):
            return "NAN"
        return value.hex() if math.isfinite(value) else "INFINITY" if value > 0 else "-INFINITY"
    raise AssayError(
        f"exporting {kernel}: an argument is a {type(value).__name__}, which has no text in C++; "
        "pass tensors and numbers"
    )


def _is_poison(tensor: torch.Tensor) -> bool:
    return bool((tensor.view(torch.uint8) == single.POISON).all())


def _dump(tensor: torch.Tensor, path: Path) -> None:
    tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tofile(path)


def _expected(placed: single.Placed, recorded: Recorded, data: Path) -> list[tuple[str, str]]:
    """Writes truth and allowance of each output: (buffer, kind of comparison)."""
    one = placed.single
    inputs = inputs_of(one.op, one.case, 0)
    expected = expect(one.op, inputs, placed.specs)
    dtypes = [x.dtype for x in inputs if isinstance(x, torch.Tensor)]
    roundoff = arithmetic(dtypes, one.variant.precision)
    held = [placed.inputs[i] for i in placed.mutated] + placed.outputs
    checks = []
    for index, (truth, tensor) in enumerate(zip(expected.truth, held)):
        name = recorded.name(tensor)
        if truth.is_complex():
            raise AssayError(f"exporting {one.label}: output {index} is complex; not supported yet")
        if not truth.is_floating_point():
            _dump(truth.to(tensor.dtype), data / f"{name}_expected.bin")
            checks.append((name, "differing"))
            continue
        rounded = truth.to(tensor.dtype).double()
        want = torch.where(rounded.isinf(), rounded, truth.double())
        _dump(want, data / f"{name}_expected.bin")
        allowed = expected.allowed(index, roundoff, one.op.limit)
        _dump(allowed.double(), data / f"{name}_allowed.bin")
        checks.append((name, "too_far"))
    return checks


def _copy_sources(one: single.Single, source: Path, folder: Path) -> list[str]:
    """Copies the kernel and each header that is its own; their names."""
    places = [source.parent, *(Path(f) for f in one.variant.include), INCLUDE]
    names = []
    for text in cache.source_digests([source], places):
        path = Path(text)
        base = next((p for p in places if path.is_relative_to(p)), path.parent)
        to = folder / path.relative_to(base)
        if to.name == "main.cu":
            raise AssayError(f"exporting {one.label}: its source is called main.cu; rename it")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
        names.append(str(path.relative_to(base)))
    return [name for name in names if name != source.name]
