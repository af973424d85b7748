"""Everything that a GPU has to show, one step after the other, each with its own time limit.

    make bench-gpu, or python -m benchmarks.all [--steps ruler,peers] [--limit 540] [--data DIR]

A step that fails or runs out of time is told, and the next one begins; rows that it wrote stay. The
whole ends after `--limit` seconds. Exit code 1 if a step failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Step:
    """A command, and how long it may take."""

    words: tuple[str, ...]
    seconds: int
    what: str


TESTS = ("pytest", "-m", "gpu", "-n", "0", "-p", "no:cacheprovider", "--timeout", "200")
DATA = ("--data", "{data}")
STEPS = {
    "clock-tests": Step(
        (*TESTS, "tests/test_clock_gpu.py", "tests/test_roofs_gpu.py"), 200, "the clock's GPU tests"
    ),
    "ruler": Step(
        ("benchmarks.ruler", "--processes", "6", "--comparisons", "300"),
        320,
        "3,000 equal pairs in five judged processes",
    ),
    "peers": Step(("benchmarks.clock_peers",), 150, "other clocks on the same kernels"),
    "lessons": Step(("benchmarks.clock_lessons",), 60, "wrong ways to time"),
    "watch": Step(
        ("benchmarks.watch", "--device", "cuda:0", "--edits", "6", "--inline", "2"),
        200,
        "save to number",
    ),
    "roofs": Step(("assay", "roofs", "--again"), 120, "ceilings"),
    "operators": Step(("benchmarks.first_operators",), 300, "square and softmax in every way"),
    "gallery": Step(
        ("benchmarks.gallery", "--only", "targets", "--limit", "520"),
        560,
        "operators against their strongest peers",
    ),
    "gallery-verdicts": Step(
        ("benchmarks.gallery_verdicts", "--limit", "520"), 540, "the library judged on the GPU"
    ),
    "mnist-tests": Step((*TESTS, "tests/test_mnist_gpu.py"), 200, "the fast step on the GPU"),
    "mnist": Step(
        ("benchmarks.mnist_race", "--limit", "420", *DATA), 480, "a training step against PyTorch's"
    ),
    "mnist-until": Step(
        ("benchmarks.mnist_race", "--until", "--seeds", "50", *DATA), 200, "time to 99 %"
    ),
    "mnist-accuracy": Step(
        ("benchmarks.mnist_race", "--accuracy", "--seeds", "20", *DATA), 120, "plain SGD over seeds"
    ),
    "mnist-recipe": Step(
        ("benchmarks.mnist_recipe", "--limit", "100", *DATA), 130, "a recipe for 99 %"
    ),
    "planted": Step(
        ("benchmarks.explain_planted", "--prove", "--held-out", "--limit", "220"),
        280,
        "explanations against clocks and experiments",
    ),
    "fusion": Step(("benchmarks.fusion",), 60, "launches and traffic of a chain"),
    "memory": Step(("benchmarks.vecadd_memory",), 120, "explicit and managed memory"),
    "show-tests": Step((*TESTS, "tests/test_show_gpu.py"), 200, "what the driver says of kernels"),
    "gpu-tests": Step((*TESTS, "tests"), 540, "all GPU tests"),
}


def main() -> None:
    """Runs the steps that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", default=",".join(STEPS), help="by comma, in this order")
    parser.add_argument("--limit", type=float, default=3600, help="seconds for all of them")
    parser.add_argument("--data", default="", help="folder of MNIST's IDX files; else the sample")
    given = parser.parse_args()
    unknown = set(given.steps.split(",")) - set(STEPS)
    if unknown:
        parser.error(f"no such step: {', '.join(unknown)}; there are {', '.join(STEPS)}")
    end, failed = time.monotonic() + given.limit, []
    for name in given.steps.split(","):
        left = end - time.monotonic()
        if left < 10:
            print(f"== {name}: not run, {left:.0f} s are left", flush=True)
            failed.append(name)
        elif not ran(name, with_data(STEPS[name], given.data), left):
            failed.append(name)
    print(f"== failed: {', '.join(failed)}" if failed else "== all steps done", flush=True)
    raise SystemExit(bool(failed))


def with_data(step: Step, folder: str) -> Step:
    """The step with this folder of digits, or without one."""
    words = step.words if folder else tuple(word for word in step.words if word not in DATA)
    return replace(step, words=tuple(word.format(data=folder) for word in words))


def ran(name: str, step: Step, left: float) -> bool:
    """Whether a step ended well within its time."""
    limit, begun = min(step.seconds, left), time.monotonic()
    print(f"== {name}: {step.what} (at most {limit:.0f} s)", flush=True)
    try:
        code = subprocess.run([sys.executable, "-m", *step.words], timeout=limit).returncode
    except subprocess.TimeoutExpired:
        print(f"== {name}: ended after {limit:.0f} s", flush=True)
        return False
    print(f"== {name}: exit {code} after {time.monotonic() - begun:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    main()
