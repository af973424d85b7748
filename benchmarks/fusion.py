"""What fusing a chain gains, split into launches and traffic, by size: sigmoid(a + b * c) on a GPU.

    python -m benchmarks.fusion

For each size the seconds of a call: of PyTorch's three kernels back to back from the host, of the
same three in a CUDA graph (no launches by the host, the same bytes), and of one kernel in a graph.
The first over the second is what launches cost, the second over the third what traffic does. Hot,
medians of REPEATS, in turns. A line a size goes to benchmarks/results/<card>/fusion.jsonl.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

import assay
from assay.clock.graphs import capturing
from assay.ops.scale_bias import sigmoid_scale_bias
from assay.session import Session
from benchmarks.first_operators import RESULTS, card

SIZES = tuple(1 << power for power in range(10, 29, 2))
REPEATS, CALLS = 15, 20
VARIANT = "cuda/vectorised"


def captured(call: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """CALLS calls in a graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        graph = torch.cuda.CUDAGraph()
        with capturing(graph, stream):
            for _ in range(CALLS):
                call()
    return graph


def seconds(run: Callable[[], object]) -> float:
    """A call's, of CALLS that the host queues and waits for."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / CALLS


def measured(n: int, fused: Callable[..., object]) -> dict[str, float]:
    """Medians at one size."""
    a, b, c = (torch.randn(n, device="cuda") for _ in range(3))

    def chain() -> object:
        return torch.sigmoid(a + b * c)

    def loop() -> None:
        for _ in range(CALLS):
            chain()

    torch.testing.assert_close(fused(a, b, c), chain())
    graph, one = captured(chain), captured(lambda: fused(a, b, c))
    ways = {"host": loop, "graph": graph.replay, "fused": one.replay}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(REPEATS + 2):
        for name, run in ways.items():
            taken = seconds(run)
            if number >= 2:
                found[name].append(taken)
    return {name: statistics.median(each) for name, each in found.items()}


def main() -> None:
    """Prints and keeps the lines."""
    fused = assay.torch_op(sigmoid_scale_bias, VARIANT, "eager")
    with TemporaryDirectory() as logs, Session(Path(logs)) as session:
        place = RESULTS / card(session.machine())
    place.mkdir(parents=True, exist_ok=True)
    with (place / "fusion.jsonl").open("w") as file:
        for n in SIZES:
            row = {"n": n, "card": torch.cuda.get_device_name(), **measured(n, fused)}
            file.write(json.dumps(row) + "\n")
            file.flush()
            launches, traffic = row["host"] / row["graph"], row["graph"] / row["fused"]
            print(
                f"{n:>11,}  host {1e6 * row['host']:8.2f} us, graph {1e6 * row['graph']:8.2f}, one "
                f"kernel {1e6 * row['fused']:8.2f}: launches {launches:.2f} x, traffic "
                f"{traffic:.2f} x",
                flush=True,
            )


if __name__ == "__main__":
    main()
