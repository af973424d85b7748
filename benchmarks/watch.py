"""From a save to the first row and to the full row, with `load_inline` of the same edit beside it.

    python -m benchmarks.watch [--device cuda:0] [--edits 10] [--inline 3]

A watch runs in this process; a file is edited as an editor does, and the edit is a new source each
time, so that nothing comes from a cache. For C++ and CUDA, torch.utils.cpp_extension.load_inline
then builds the same text of the first edits, in the same process, which has imported torch and
built once before; its time ends when the function was called once. Rows go to
benchmarks/results/<card>/watch.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.report.units import seconds
from assay.request import Progress, Request
from assay.session import Session
from assay.target import parse
from assay.types import Row, replace
from assay.watching.loop import Done, Event, Mistake, Watch
from benchmarks.first_operators import RESULTS, card

HEAD = """
import torch
import assay

op = assay.Op(
    "square",
    lambda x: x * x,
    lambda make, n, dtype: (make.normal(n, dtype=dtype),),
    cases=assay.grid(n=[1 << 16, 1 << 20], dtype=["float32"]),
)
"""
PYTHON = """
@op.variant("python")
def square(x):
    edit = 0
    return x * x
"""
TRITON = """
import triton, triton.language as tl

@triton.jit
def kernel(y, x, n, BLOCK: tl.constexpr):
    edit = 0
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK) + edit - edit
    v = tl.load(x + i, i < n)
    tl.store(y + i, v * v, i < n)

@op.launcher("triton")
def square(y, x):
    kernel[(triton.cdiv(x.numel(), 1024),)](y, x, x.numel(), 1024)
"""
CPP = """
@op.launcher("cpp", source="square.cpp")
def square(k, y, x):
    k.square(y, x, x.numel())
"""
CUDA = """
@op.launcher("cuda", source="square.cu")
def square(k, y, x):
    n = x.numel()
    k["square"](grid=(n + 255) // 256, block=256, shared=0)(y, x, n)
"""
CPP_SOURCE = """
#include <cstdint>
extern "C" void square(float* y, const float* x, int64_t n) {
  constexpr int edit = 0;
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] + float(edit - edit);
}
"""
CUDA_SOURCE = """
extern "C" __global__ void square(float* y, const float* x, long long n) {
  constexpr int edit = 0;
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i] + float(edit - edit);
}
"""
CPP_BINDING = """
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  square(y.data_ptr<float>(), x.data_ptr<float>(), x.numel());
  return y;
}
"""
CUDA_BINDING = """
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const long long n = x.numel();
  square<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), x.data_ptr<float>(), n);
  return y;
}
"""


@dataclass(frozen=True)
class Subject:
    """A way, the file that is edited, and what `load_inline` builds of it."""

    way: str
    python: str
    name: str = "square.py"
    source: str = ""
    binding: str = ""


SUBJECTS = {
    "eager": Subject("eager", ""),
    "python": Subject("python", PYTHON),
    "cpp": Subject("cpp", CPP, "square.cpp", CPP_SOURCE, CPP_BINDING),
    "cuda": Subject("cuda", CUDA, "square.cu", CUDA_SOURCE, CUDA_BINDING),
    "triton": Subject("triton", TRITON),
}
FOR = {"cpu": ("eager", "python", "cpp"), "cuda": ("python", "cuda", "triton")}


@dataclass
class Times:
    """Seconds of each edit, in the order of the edits."""

    quick: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    """Until every case is judged and timed."""
    inline: list[float] = field(default_factory=list)
    no_inline: str = ""


def main() -> None:
    """Runs each way; exits 1 if an edit was judged wrong or a way could not be watched."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("--inline", type=int, default=3, help="edits that load_inline builds too")
    parser.add_argument("--ways", default="", help="default: those of the device")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds of sampling a case")
    given = parser.parse_args()
    ways = given.ways.split(",") if given.ways else FOR[given.device.partition(":")[0]]
    found: dict[str, Times] = {}
    with tempfile.TemporaryDirectory(prefix="assay-watch-") as name:
        os.environ["ASSAY_CACHE"] = f"{name}/cache"
        os.environ["TRITON_CACHE_DIR"] = f"{name}/triton"
        os.environ["TORCH_EXTENSIONS_DIR"] = f"{name}/extensions"
        with Session(Path(name) / "logs") as session:
            machine = session.machine()
            for way in ways:
                folder = Path(name) / way
                folder.mkdir()
                found[way] = measure(session, SUBJECTS[way], folder, given)
                print(line(way, found[way]), flush=True)
                used = machine if given.device != "cpu" else replace(machine, gpus=())
                place = RESULTS / card(used)
                write(place, given.device, found)
    print(f"rows: {place.relative_to(Path.cwd())}/watch.jsonl")


def write(place: Path, device: str, found: dict[str, Times]) -> None:
    """What was measured so far: a later way may fail."""
    place.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"way": w, "device": device, **vars(t)}) for w, t in found.items()]
    (place / "watch.jsonl").write_text("\n".join(lines) + "\n")


def measure(session: Session, subject: Subject, folder: Path, given: Any) -> Times:
    """Edits the file again and again, each time once the version before is done."""
    (folder / "square.py").write_text(HEAD + subject.python)
    if subject.source:
        (folder / subject.name).write_text(subject.source)
    request = Request(
        (parse(str(folder / "square.py")),),
        device=given.device,
        variants=("eager", subject.way),
        budget=given.budget,
    )
    watch = Watch(session.part(), request, Progress())
    times, stream = Times(), watch.events()
    try:
        until_done(stream, time.perf_counter(), subject.way)
        inline(subject, 0, given.device, times)  # warm: what it imports, and its own first build
        times.inline.clear()
        for number in range(1, given.edits + 1):
            time.sleep(0.3)  # a person has read the answer
            begun = edit(subject, folder, number)
            quick, full, whole = until_done(stream, begun, subject.way)
            times.quick.append(quick)
            times.full.append(full)
            times.whole.append(whole)
            if number <= given.inline:
                inline(subject, number, given.device, times)
    finally:
        watch.close()
    return times


def edit(subject: Subject, folder: Path, number: int) -> float:
    """Saves a new version by renaming; when that was. For eager, the reference itself changes."""
    path = folder / subject.name
    if subject.way == "eager":
        text = HEAD.replace("lambda x: x * x", f"lambda x: (x * x, {number})[0]")
    elif subject.source:
        text = subject.source.replace("edit = 0", f"edit = {number}")
    else:
        text = HEAD + subject.python.replace("edit = 0", f"edit = {number}")
    beside = path.with_suffix(".new")
    beside.write_text(text)
    begun = time.perf_counter()
    os.replace(beside, path)
    return begun


def until_done(stream: Iterator[Event], begun: float, way: str) -> tuple[float, float, float]:
    """Seconds to the quick row, the first full row and the end of a version.

    Raises SystemExit for a version that is not right, which has no such times.
    """
    quick = full = 0.0
    for event in stream:
        now = time.perf_counter() - begun
        if isinstance(event, Mistake):
            raise SystemExit(event.text)
        if isinstance(event, Done):
            if not quick or not full:
                raise SystemExit(f"{way}: it was judged and not timed; see its rows above")
            return quick, full, now
        if not isinstance(event, Row) or event.way != way:
            continue
        if event.word != "right" or (event.not_timed and not event.quick):
            raise SystemExit(f"{event.label}: {event.word}: {event.reason or event.not_timed}")
        quick = quick or (now if event.quick else 0.0)
        full = full or (now if event.timing else 0.0)
    raise AssertionError("a watch does not end by itself")


def inline(subject: Subject, number: int, device: str, times: Times) -> None:
    """Builds the same edit by load_inline and calls it once; or notes why that is not possible."""
    if not subject.source:
        times.no_inline = "no C++ or CUDA source"
        return
    if times.no_inline:
        return
    import torch
    from torch.utils.cpp_extension import load_inline

    text = subject.source.replace("edit = 0", f"edit = {number}") + subject.binding
    cuda = subject.way == "cuda"
    sources: dict[str, Any] = {"cpp_sources": ["torch::Tensor run(torch::Tensor x);"]}
    if cuda:
        sources["cuda_sources"] = ["#include <torch/types.h>\n" + text]
    else:
        sources["cpp_sources"] = [text]
    x = torch.randn(1 << 16, device=device if cuda else "cpu")
    begun = time.perf_counter()
    try:
        built: Callable[..., Any] = load_inline("edited", functions=["run"], **sources).run
    except (OSError, RuntimeError) as error:  # no nvcc, no ninja, no g++
        times.no_inline = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"
        return
    y = built(x)
    if cuda:
        torch.cuda.synchronize()
    times.inline.append(time.perf_counter() - begun)
    if not torch.equal(y, x * x):
        raise SystemExit("load_inline: it built something else")


def line(way: str, times: Times) -> str:
    """`cpp      quick 142 ms (131 to 180)  full 1.9 s (..)  load_inline 12 s (..)`."""
    other = spread(times.inline) if times.inline else f"not run: {times.no_inline}"
    return (
        f"{way:<8} {len(times.quick)} edits: quick row {spread(times.quick)}, "
        f"full row {spread(times.full)}, all {spread(times.whole)}; load_inline {other}"
    )


def spread(values: list[float]) -> str:
    """Median, and the range."""
    return f"{seconds(statistics.median(values))} ({seconds(min(values))}-{seconds(max(values))})"


if __name__ == "__main__":
    main()
