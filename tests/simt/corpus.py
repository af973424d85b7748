"""The corpus: kernels as engineers write them, each with a launch, a reference and a tolerance.

`python tests/simt/corpus.py [WORDS]` runs those whose names contain one of the words.
"""

from __future__ import annotations

import importlib
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from compiling import compiled
from kernels import (
    counting,
    elementwise,
    lanes,
    moving,
    numeric,
    products,
    python_entries,
    triton_entries,
    waiting,
)
from kernels.entry import FOLDER, Arguments, Entry, Pointers

import assay.simt as simt

ENTRIES: tuple[Entry, ...] = (
    *elementwise.ENTRIES,
    *moving.ENTRIES,
    *products.ENTRIES,
    *counting.ENTRIES,
    *lanes.ENTRIES,
    *numeric.ENTRIES,
    *waiting.ENTRIES,
    *triton_entries.ENTRIES,
    *python_entries.ENTRIES,
)
BY_NAME = {entry.name: entry for entry in ENTRIES}
SEED = 1


@dataclass(frozen=True)
class Ran:
    """What a launch did: its arguments as it left them, and what was noted of each launch."""

    args: Arguments
    outputs: list[torch.Tensor]
    launched: tuple[simt.Launched, ...]
    ptx: tuple[tuple[str, str], ...] = ()
    """(text, entry) of each launch, where another compiler made it."""

    @property
    def faults(self) -> tuple[Any, ...]:
        return tuple(fault for one in self.launched for fault in one.faults)


def ptx_of(entry: Entry) -> tuple[str, str]:
    """(PTX, name of the entry) of a CUDA kernel; a file is compiled once for all its kernels."""
    kernels = _kernels()[entry.source, entry.flags]
    ptx, names = compiled(FOLDER / entry.source, kernels, entry.flags)
    return ptx, names[entry.kernel]


def _kernels() -> dict[tuple[str, tuple[str, ...]], tuple[str, ...]]:
    found: dict[tuple[str, tuple[str, ...]], dict[str, None]] = defaultdict(dict)
    for entry in ENTRIES:
        if entry.way == "cuda":
            found[entry.source, entry.flags][entry.kernel] = None
    return {key: tuple(names) for key, names in found.items()}


def run(entry: Entry, seed: int = SEED, **options: Any) -> Ran:
    """Launches an entry. options: those of `simt.Kernel.launch`, for a CUDA kernel."""
    return WAYS[entry.way](entry, entry.make(seed), **options)


def run_cuda(entry: Entry, args: Arguments, kernel: Any = None, **options: Any) -> Ran:
    """kernel: a loaded one, in place of the entry's own."""
    if kernel is None:
        ptx, name = ptx_of(entry)
        kernel = simt.load(ptx, entry=name)
    for name, value in entry.constants.items():
        array = kernel.variable(name)
        array[:] = value.contiguous().view(torch.uint8).numpy().ravel()
    memory = simt.Memory()
    for position in entry.unwritten:
        storage = args[position].untyped_storage()
        memory.add(storage.data_ptr(), storage.nbytes(), written=False, keep=args[position])
    given = [as_passed(arg, memory) for arg in args]
    launched = kernel.launch(
        entry.grid, entry.block, given, shared=entry.shared, memory=memory, **options
    )
    return Ran(args, [written(args[at]) for at in entry.outputs], (launched,))


def written(arg: Any) -> torch.Tensor:
    """The tensor that an argument writes: of a struct, the last."""
    tensors = [part for part in arg if torch.is_tensor(part)] if isinstance(arg, list) else [arg]
    return tensors[-1]


def as_passed(arg: Any, memory: simt.Memory) -> Any:
    """A struct comes as a list of its fields: tensors become the addresses of their memory."""
    if isinstance(arg, Pointers):
        for row in arg.rows:
            memory.window_of(row)
        return arg.tensor
    if not isinstance(arg, list):
        return arg
    parts = []
    for part in arg:
        if torch.is_tensor(part):
            memory.window_of(part)
            parts.append(part.data_ptr().to_bytes(8, "little"))
        else:
            parts.append(part)
    return b"".join(parts)


class Launches:
    """A `Run` for the adapters: every launch goes through assay.simt, and what it did is kept."""

    def __init__(self, drop: Any = None) -> None:
        self.made: list[simt.Launched] = []
        self.ptx: list[tuple[str, str]] = []
        self.drop = drop

    def __call__(self, compiled: Any, grid: Any, block: Any, args: list[Any], shared: int) -> None:
        self.ptx.append((compiled.ptx, compiled.name))
        options = {} if self.drop is None else {"drop": self.drop}
        kernel = simt.load(compiled.ptx, entry=compiled.name, **options)
        made = kernel.launch(grid, block, args, shared=shared, one_program=compiled.one_program)
        self.made.append(made)

    def ran(self, args: Arguments, outputs: list[torch.Tensor]) -> Ran:
        return Ran(args, outputs, tuple(self.made), tuple(self.ptx))


def run_triton(entry: Entry, args: Arguments, launches: Launches | None = None) -> Ran:
    from assay.simt.adapters import triton

    kernel = getattr(importlib.import_module("kernels.triton_kernels"), entry.kernel)
    launches = launches or Launches()
    with triton.shim(launches):
        kernel[entry.grid](*args, **entry.constants)
    return launches.ran(args, [args[at] for at in entry.outputs])


def run_numba(entry: Entry, args: Arguments, launches: Launches | None = None) -> Ran:
    from assay.simt.adapters import numba

    kernel = getattr(importlib.import_module("kernels.numba_kernels"), entry.kernel)
    launches = launches or Launches()
    with warnings.catch_warnings(), numba.shim(launches):
        warnings.simplefilter("ignore")  # of small grids: nothing is fast here
        kernel[entry.grid, entry.block](*args)
    return launches.ran(args, [args[at] for at in entry.outputs])


def run_inductor(entry: Entry, args: Arguments) -> Ran:
    from assay.simt.adapters import inductor

    function = getattr(importlib.import_module("kernels.inductor_functions"), entry.kernel)
    launches = Launches()
    done = inductor.run(function, args, launches)
    outputs = done.outputs if isinstance(done.outputs, (list, tuple)) else [done.outputs]
    return launches.ran(args, list(outputs))


WAYS: dict[str, Callable[..., Ran]] = {
    "cuda": run_cuda,
    "triton": run_triton,
    "numba": run_numba,
    "inductor": run_inductor,
}


def wrong(entry: Entry, ran: Ran, seed: int = SEED) -> str:
    """What is not as the reference says, or an empty text."""
    relative, absolute, why = entry.tolerance
    outputs = entry.canonical(ran.outputs) if entry.canonical else ran.outputs
    wanted = entry.reference(entry.make(seed))
    for position, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
        if got.numel() != want.numel():
            return f"output {position}: {got.numel()} elements, wanted {want.numel()}"
        got = got.reshape(want.shape)
        if want.dtype.is_floating_point:
            got = got.double()
            close = torch.isclose(got, want, relative, absolute, equal_nan=True)
        else:
            close = got == want.to(got.dtype)
        if not bool(close.all()):
            at = int((~close).flatten().nonzero()[0])
            return (
                f"output {position}: {int((~close).sum())} of {close.numel()} wrong, first {at}: "
                f"{got.flatten()[at].item()!r}, wanted {want.flatten()[at].item()!r} ({why})"
            )
    printed = "".join(one.printed for one in ran.launched)
    if sorted(printed.splitlines()) != sorted(entry.printed.splitlines()):
        return f"printed {printed!r}, wanted {entry.printed!r}"
    return ""


def main(words: list[str]) -> None:
    failed = 0
    for entry in ENTRIES:
        if words and not any(w in f"{entry.way} {entry.source} {entry.name}" for w in words):
            continue
        start = time.perf_counter()
        try:
            ran = run(entry)
            outcome = wrong(entry, ran) or "; ".join(map(str, ran.faults[:3]))
        except Exception as error:  # noqa: BLE001 - shown, and the next one is run
            outcome = f"{type(error).__name__}: {str(error)[:600]}"
        failed += bool(outcome)
        seconds = time.perf_counter() - start
        print(f"{entry.way:9}{entry.name:32}{seconds:6.2f} s  {outcome or 'right'}", flush=True)
    print(f"{failed} failed")


if __name__ == "__main__":
    main(sys.argv[1:])
