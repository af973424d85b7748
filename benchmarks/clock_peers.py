"""What other clocks say of the same kernels, and how much their answers differ from run to run.

    python benchmarks/clock_peers.py [FILE]

On one GPU. Each clock is asked REPEATS times in turn for each call, as its documents say it is to
be used; a line a call and clock: the answers, what CUPTI says of cold and of hot calls in the same
process, and the seconds an answer took. `cuda-bench` is asked where it is installed.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from assay.clock import events
from assay.clock.choose import choose
from assay.clock.gpu import gpu
from assay.clock.statistics import interval
from assay.clock.traced import BLOCK, Traced

REPEATS = 5
SAMPLES = 100
Call = Callable[[], Any]


def calls() -> dict[str, Call]:
    """Kernels on which clocks are known to differ."""
    spin = torch.cuda._sleep
    small, word = torch.randn(256, 256, device="cuda"), torch.zeros(8, device="cuda")
    half = torch.cuda.get_device_properties(0).L2_cache_size // 2
    source = torch.randint(0, 255, (half,), dtype=torch.uint8, device="cuda")
    target, product = torch.empty_like(source), torch.empty_like(small)

    def host_bound() -> None:
        for _ in range(20):
            word.add_(1.0)

    return {
        "spin of 7 us": lambda: spin(13_000),
        "spin of 10 us": lambda: spin(19_000),
        "GEMM 256^3 float32": lambda: torch.mm(small, small, out=product),
        "copy of half the L2": lambda: target.copy_(source),
        "20 tiny kernels": host_bound,
    }


class Truth:
    """CUPTI's spans of cold and of hot calls."""

    def __init__(self) -> None:
        self.gpu = gpu("cuda:0")
        if self.gpu.fixed is None:
            raise SystemExit(self.gpu.witness.missing)
        self.flush, self.fixed = self.gpu.flush, self.gpu.fixed

    def spans(self, call: Call, flush: Call) -> float:
        clock = events.Events(call, None, flush, events.host_seconds(call)).unhurried()
        seen = self.gpu.witness.watch(clock.prepare, call)
        if seen is None or not seen.spans:
            raise SystemExit(f"CUPTI: {self.gpu.witness.missing or seen}")
        return statistics.median(seen.spans)

    def assay(self, call: Call) -> float:
        clock = choose(self.gpu, call, 1e-5).clock
        if not isinstance(clock, Traced):
            _, middle, _ = interval([clock.sample() for _ in range(SAMPLES)])
            return middle
        samples = [span for _ in range(0, SAMPLES, BLOCK) for span in clock.block()]
        if not samples:
            raise SystemExit(f"CUPTI: {clock.uneven}")
        return interval(samples)[1]


def do_bench(call: Call) -> float:
    from triton.testing import do_bench as peer

    return 1e-3 * float(peer(call))


def do_bench_cudagraph(call: Call) -> float:
    from triton.testing import do_bench_cudagraph as peer

    with torch.cuda.stream(torch.cuda.Stream()):
        return 1e-3 * float(peer(call))


def torch_benchmark(call: Call) -> float:
    from torch.utils.benchmark import Timer

    return float(Timer("call()", globals={"call": call}).blocked_autorange().median)


def without_sync(call: Call) -> float:
    begin = time.time()
    call()
    return time.time() - begin


class CudaBench:
    """nvbench's cold GPU times, means, from its JSON: it runs once in a process, for all calls."""

    def __init__(self, every: dict[str, Call]):
        self.every = every
        self.answers: dict[int, list[float]] = {}

    def __call__(self, call: Call) -> float:
        if not self.answers:
            self._run()
        return self.answers[id(call)].pop()

    def _run(self) -> None:
        import cuda.bench as bench

        def measured(state: Any) -> None:
            stream = torch.cuda.ExternalStream(state.get_stream().addressof())
            call = self.every[state.get_string("call")]

            def once(launch: Any) -> None:
                with torch.cuda.stream(stream):
                    call()

            state.exec(once)

        made = bench.register(measured)
        made.add_string_axis("call", list(self.every))
        made.add_int64_axis("repeat", list(range(REPEATS)))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "said.json"
            bench.run_all_benchmarks(["peers", "-q", "--timeout", "0.5", "--json", str(path)])
            said = json.loads(path.read_text())
        for state in said["benchmarks"][-1]["states"]:
            name = next(a["value"] for a in state["axis_values"] if a["name"] == "call")
            found = next(s for s in state["summaries"] if s["tag"] == "nv/cold/time/gpu/mean")
            value = next(d["value"] for d in found["data"] if d["name"] == "value")
            self.answers.setdefault(id(self.every[name]), []).append(float(value))


def main() -> None:
    torch.cuda.set_device(0)
    truth, every = Truth(), calls()
    clocks: dict[str, Callable[[Call], float]] = {
        "assay": truth.assay,
        "do_bench": do_bench,
        "do_bench_cudagraph": do_bench_cudagraph,
        "torch.utils.benchmark": torch_benchmark,
        "time.time without a synchronize": without_sync,
        "cuda-bench": CudaBench(every),
    }
    for name, call in every.items():
        call()
        torch.cuda.synchronize()
        cold, hot = truth.spans(call, truth.flush), truth.spans(call, call)
        for clock, ask in clocks.items():
            line = {
                "call": name,
                "clock": clock,
                "card": torch.cuda.get_device_name(0),
                "torch": torch.__version__,
                "cupti cold": cold,
                "cupti hot": hot,
                "fixed": truth.fixed,
                **_asked(ask, call),
            }
            print(json.dumps(line), flush=True)
            if len(sys.argv) > 1:
                with Path(sys.argv[1]).open("a") as file:
                    file.write(json.dumps(line) + "\n")


def _asked(ask: Callable[[Call], float], call: Call) -> dict[str, Any]:
    answers, begin = [], time.perf_counter()
    try:
        for _ in range(REPEATS):
            torch.cuda.synchronize()
            answers.append(ask(call))
    except Exception as error:  # noqa: BLE001 - a peer that can't is told, with its reason
        return {"not asked": f"{type(error).__name__}: {error}"}
    middle = statistics.median(answers)
    return {
        "median": middle,
        "spread": (max(answers) - min(answers)) / middle,
        "answers": answers,
        "seconds an answer": (time.perf_counter() - begin) / REPEATS,
    }


if __name__ == "__main__":
    main()
