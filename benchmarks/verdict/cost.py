"""What a check costs beside the work that it can't do without: softmax over its whole zoo.

    python benchmarks/verdict/cost.py [FILE]

Numerator: the check of `eager`, `compiled` and `cpp` on every declared and hostile case, as
`assay check` does it, one child at a time: seconds in which a candidate runs (fresh inputs, poison,
guards, three runs, its bytes shipped) and in which the oracle answers (truth, error budget,
comparison, mutants). Starting processes and building are left out, and so is what `compiled`
would launch on a GPU, which is built and judged beside (`gpu code`).
Denominator: on the same cases, in one process, two plain calls of each variant and the reference
once in float64. Both are repeated; the line has the median with the fastest and the slowest.
One line of JSON, also to FILE.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from assay import request
from assay.build import build, find_variant
from assay.inputs import inputs_of
from assay.op import Op
from assay.pipeline import run
from assay.session import Session
from assay.target import load_op, parse
from assay.types import Case, Row
from assay.verdict import judge
from assay.verdict.reference import clone, output_specs, outputs_of, widen

VARIANTS = ("eager", "compiled", "cpp")
REPEATS = 2
SEED = 20_260


def checked() -> tuple[dict[str, float], list[Row]]:
    """Seconds of one check, by who spent them, and its rows."""
    spent = {"candidates": 0.0, "oracle": 0.0, "gpu code": 0.0}
    asked = request.Request(
        (parse("softmax"),), timed=False, device="cpu", variants=VARIANTS, zoo=True, seed=SEED
    )
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session, _timers(spent):
        nouns = run(session, asked, request.Progress())
        rows = [noun for noun in nouns if isinstance(noun, Row)]
    return spent, rows


@contextmanager
def _timers(spent: dict[str, float]) -> Iterator[None]:
    """Adds up seconds from a candidate's word that it runs to its answer, and the oracle's."""
    ask, receive, cores = judge.Oracle.ask, judge.Child.receive, request.cores
    since: dict[int, tuple[float, str]] = {}

    def timed_ask(self: Any, **message: Any) -> Any:
        begun = time.perf_counter()
        answer = ask(self, **message)
        spent["oracle"] += time.perf_counter() - begun
        return answer

    def timed_receive(self: Any, seconds: float) -> Any:
        message = receive(self, seconds)
        if "note" in message:
            return message
        now, (begun, whose) = time.perf_counter(), since.pop(id(self), (0.0, ""))
        if whose:
            spent[whose] += now - begun
        if message.get("phase") == "run":
            since[id(self)] = now, "candidates"
        elif whose:  # Inductor once more, for a GPU, and what it wrote run on the CPU
            since[id(self)] = now, "gpu code"
        if "phase" not in message:
            since.pop(id(self), None)
        return message

    judge.Oracle.ask, judge.Child.receive = timed_ask, timed_receive  # type: ignore[method-assign]
    request.cores = lambda: 1  # one child at a time
    try:
        yield
    finally:
        judge.Oracle.ask, judge.Child.receive = ask, receive  # type: ignore[method-assign]
        request.cores = cores


def needed(op: Op, cases: list[Case]) -> float:
    """Seconds of two calls of each variant and one float64 reference on every case."""
    total = 0.0
    found = {(n, d): find_variant(op, n, dynamic=d) for n in VARIANTS for d in (True, False)}
    for case in cases:
        inputs = inputs_of(op, case, SEED)
        specs = output_specs(op, inputs, case)
        for name in VARIANTS:
            variant = found[name, bool(case.zoo)]
            kernel = build(op, variant, {}, case, inputs, specs, "cpu", "")
            outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in specs]
            given = [clone(x) for x in inputs]
            with torch.no_grad():
                total += 2 * _seconds(lambda k=kernel, o=outputs, g=given: k.run(o, g))  # type: ignore[misc]
        with torch.no_grad():
            total += _seconds(lambda x=inputs: outputs_of(op, [widen(v) for v in x]))  # type: ignore[misc]
    return total


def _seconds(call: Callable[[], Any]) -> float:
    """Of one call; one before it is not counted."""
    call()
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def main() -> None:
    os.environ.setdefault("ASSAY_CACHE", tempfile.mkdtemp(prefix="assay-cost-"))
    op = load_op(parse("softmax"), "softmax")
    checks = [checked() for _ in range(REPEATS + 1)][1:]  # the first builds
    rows = checks[0][1]
    bad = [f"{r.label} {r.case.label}: {r.word}" for r in rows if r.word != "right"]
    cases = list({repr(r.case): r.case for r in rows if r.word == "right"}.values())
    torch._dynamo.config.recompile_limit = 64
    plain = sorted(needed(op, cases) for _ in range(REPEATS))
    totals = sorted(spent["candidates"] + spent["oracle"] for spent, _ in checks)
    line = {
        "what": "check of softmax over its zoo: eager, compiled, cpp",
        "cases": len(cases),
        "rows": len(rows),
        "not right": bad,
        "check seconds": {
            "median": statistics.median(totals),
            "least": totals[0],
            "most": totals[-1],
        },
        "of these": {k: statistics.median(s[k] for s, _ in checks) for k in checks[0][0]},
        "needed seconds": {
            "median": statistics.median(plain),
            "least": plain[0],
            "most": plain[-1],
        },
        "ratio": statistics.median(totals) / statistics.median(plain),
    }
    print(json.dumps(line))
    if len(sys.argv) > 1:
        with Path(sys.argv[1]).open("a") as file:
            file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
