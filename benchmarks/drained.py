"""What a kernel leaves to the next: its own time, and that of it and a read right after it.

    python -m benchmarks.drained [--repeats 3] [--to FILE]

A kernel has ended when its last store has left for the L2 cache, and what lies there may still wait
to be written to memory, up to all of the cache. So a kernel that lets the cache keep more of what
it writes ends sooner, and whoever comes next waits for it. Here each is followed by a read of
512 MB, which takes its place. What shortens a kernel's own time and not that of both has moved
work, not saved it. What shortens both may have moved it further still: lines that were stored
`evict_last`, as by one `copy by Triton`, can outlast a read that does not ask to stay.

Softmax and rmsnorm by the library, by eager and by both compiles, and copies of the same bytes, in
turns; from the first start to the last end by CUPTI, as the clock's own witness sees it, medians of
12 calls a repeat. Before each, 512 MB are read too, so that the cache is cold and clean. A line
each, printed and in benchmarks/results/<card>/drained.jsonl.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import triton
import triton.language as tl

import assay
from assay.clock.witness import Witness
from assay.ops.rmsnorm import rmsnorm
from assay.ops.softmax import softmax
from assay.session import Session
from benchmarks.first_operators import RESULTS, card
from benchmarks.peers import compiled

CASES = (
    (softmax, 8192, 8192, "float32"),
    (softmax, 8192, 8192, "bfloat16"),
    (softmax, 32768, 4096, "float32"),
    (softmax, 32768, 4096, "bfloat16"),
    (rmsnorm, 8192, 4096, "float32"),
    (rmsnorm, 8192, 4096, "bfloat16"),
)
OURS = {
    "softmax": ("cuda/held", "triton/held"),
    "rmsnorm": ("cuda/held", "triton/held", "triton BLOCK=2048"),
}
HINTS = (("", ""), ("evict_first", ""), ("", "evict_last"))
"""Of the loads, and of the stores."""
READ = 1 << 27
"""Elements of float32 that are read before and after."""
TILE = 4096


@triton.jit
def copy(y, x, LOADS: tl.constexpr, STORES: tl.constexpr, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    tl.store(y + at, tl.load(x + at, eviction_policy=LOADS), eviction_policy=STORES)


def kernels(op: Any, inputs: tuple[torch.Tensor, ...]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names, and what launches each."""
    x, y = inputs[0], torch.empty_like(inputs[0])
    for name in OURS[op.name]:
        yield name, partial(assay.torch_op(op, name, "eager"), *inputs)
    yield "eager", partial(op.reference, *inputs)
    for name, mode in (("compiled", None), ("max_autotune", "max-autotune-no-cudagraphs")):
        yield name, partial(compiled(op.reference, mode), *inputs)
    yield "copy", partial(y.copy_, x)
    for loads, stores in HINTS:
        hinted = partial(copy[(x.numel() // TILE,)], y, x, loads, stores, TILE, num_warps=8)
        yield " ".join(("copy by Triton", *filter(None, (loads, stores)))), hinted


def measured(
    witness: Witness,
    read: Callable[[], Any],
    calls: Mapping[str, Callable[[], Any]],
    repeats: int,
) -> dict[str, dict[str, float]]:
    """Medians in microseconds of each call, by itself and with the read after it.

    Raises RuntimeError where the witness can't tell, or calls differ in what they run.
    """

    def spans(name: str, call: Callable[[], object]) -> list[float]:
        seen = witness.watch(read, call)
        if seen is None or seen.uneven:
            raise RuntimeError(f"{name}: {seen.uneven if seen else witness.missing}")
        return [1e6 * span for span in seen.spans]

    found: dict[str, dict[str, list[float]]] = {name: {"itself": [], "both": []} for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            found[name]["itself"] += spans(name, call)
            found[name]["both"] += spans(name, lambda call=call: (call(), read()))
    return {
        name: {what: statistics.median(each) for what, each in one.items()}
        for name, one in found.items()
    }


def main() -> None:
    """Prints and keeps the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--to", default="")
    given = parser.parse_args()
    with TemporaryDirectory() as logs, Session(Path(logs)) as session:
        to = Path(given.to) if given.to else RESULTS / card(session.machine()) / "drained.jsonl"
    to.parent.mkdir(parents=True, exist_ok=True)
    witness, room = Witness("cuda"), torch.ones(READ, device="cuda")
    with to.open("w") as file:
        for op, rows, n, dtype in CASES:
            x = torch.randn(rows, n, device="cuda", dtype=getattr(torch, dtype))
            inputs = (x,) if op is softmax else (x, torch.rand_like(x[0]) + 0.5)
            torch._dynamo.reset()
            calls = dict(kernels(op, inputs))
            for call in calls.values():
                call()  # compiles
            found = measured(witness, room.sum, calls, given.repeats)
            for name, one in found.items():
                case = {"op": op.name, "rows": rows, "n": n, "dtype": dtype, "kernel": name}
                file.write(json.dumps(case | one) + "\n")
                print(
                    f"{op.name} {rows} x {n} {dtype:9}{name:34}"
                    f"{one['itself']:9.2f}{one['both']:9.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
