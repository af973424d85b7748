"""The corpus: kernels as engineers write them, each with a launch, a reference and a tolerance.

`python tests/simt/corpus.py [WORDS]` runs those whose names contain one of the words.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
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
    products,
    waiting,
    moving,
    numeric,
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
)
BY_NAME = {entry.name: entry for entry in ENTRIES}
SEED = 1


@dataclass(frozen=True)
class Ran:
    """What a launch did: its arguments as it left them, and what was noted of each launch."""

    args: Arguments
    outputs: list[torch.Tensor]
    launched: tuple[simt.Launched, ...]

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


WAYS: dict[str, Any] = {
    "cuda": run_cuda,
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
                f"output {position}: {int((~close).sum())} of {close.numel()} wrong, first at {at}: "
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
