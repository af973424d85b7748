"""What only shows at import, in timed calls, or in numbers; the rest is in wrong/cheats.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.session import Session
from assay.types import Row

Judge = Callable[..., list[Row]]
FIXTURES = Path(__file__).parent / "fixtures"

HEAD = """
import gc
import sys
import time
import torch
import assay

def reference(x):
    return sum((k * x).sin() for k in range(1, 20))

op = assay.Op(
    "slow",
    reference,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[30_000]),  # so few that torch takes one thread, which waits for none
)
kept = {}

def called_from(name):
    frame = sys._getframe()
    while frame and not frame.f_code.co_filename.endswith(name):
        frame = frame.f_back
    return frame is not None

in_timing = called_from("clock/timing.py")

def timing():
    return in_timing
"""

SNAPSHOT = """
import assay.clock.timing, assay.verdict.candidate, assay.verdict.oracle
from assay.verdict.tamper import Taken
taken = Taken()
import torch
"""


def only(rows: list[Row], variant: str) -> Row:
    (row,) = [row for row in rows if row.variant == variant]
    return row


def run(code: str) -> str:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-c", SNAPSHOT + code], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


HONEST = """
op.variant("eager/cheat")(cheat)
workspace = {}

@op.variant("eager/honest")
def honest(x):
    return reference(x)

@op.variant("eager/workspace")
def keeps_a_workspace(x):
    work = workspace.setdefault("it", torch.empty_like(x)).zero_()
    for k in range(1, 20):
        work += (k * x).sin()
    return work.clone()
"""


@pytest.mark.gallery
def test_what_the_ways_themselves_import_and_patch_is_no_tampering() -> None:
    run(
        """
import importlib
for name in (
    "torch._dynamo", "torch._inductor.compile_fx", "torch.utils.cpp_extension", "torch.export",
    "torch.distributed", "torch.func",
):
    importlib.import_module(name)
    taken.check()
for name in ("triton", "triton.testing", "numba", "numba.cuda", "scipy", "sympy", "pytest"):
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    taken.check()
torch.compile(lambda x: x.exp() + 1)(torch.randn(10))
torch.set_default_dtype(torch.float64)
torch.set_default_device("cpu")
torch.Tensor.mine = lambda self: self  # a name of one's own stands in front of nothing
taken.check()
"""
    )


@pytest.mark.parametrize(
    ("attack", "named"),
    [
        ("torch.cuda.Event.elapsed_time = lambda a, b: 1.0", "torch.cuda.Event.elapsed_time"),
        ("torch.cuda.Event = object", "torch.cuda.Event"),
        ("torch.Tensor.data_ptr = lambda self: 0", "torch.Tensor.data_ptr"),
        ("torch.Tensor.untyped_storage = lambda self: 0", "torch.Tensor.untyped_storage"),
        ("torch.equal = lambda a, b: True", "torch.equal"),
        ("torch.testing.assert_close = print", "torch.testing.assert_close"),
        ("torch.empty_like = torch.ones_like", "torch.empty_like"),
        ("import time; time.monotonic = lambda: 0.0", "time.monotonic"),
        ("import numpy; numpy.array_equal = print", "numpy.array_equal"),
        ("import gc; gc.collect = print", "gc.collect"),
        ("import os; os.fork = print", "os.fork"),
        ("import json; json.loads = print", "json.loads"),
        (
            "from torch.utils._python_dispatch import TorchDispatchMode as M; M.__enter__ = print",
            "torch.utils._python_dispatch.TorchDispatchMode.__enter__",
        ),
        (
            "from assay.clock import cpu; cpu.Cpu.sample.__code__ = (lambda self: 1.0).__code__",
            "assay.clock.cpu.Cpu.sample",
        ),
        (
            "from assay.verdict import compare; compare.values = print",
            "assay.verdict.compare.values",
        ),
    ],
)
def test_each_function_that_judges_or_times_is_watched(
    session: Session, monkeypatch: pytest.MonkeyPatch, attack: str, named: str
) -> None:
    monkeypatch.syspath_prepend(str(FIXTURES))
    args = {"attack": attack}
    assert session.ask("attacked:main", args, name="attacked", seconds=100)["said"] == named


def test_a_file_that_tampers_when_imported_is_believed_nothing(judge: Judge) -> None:
    rows = judge(HEAD + "torch.cuda.Event.elapsed_time = lambda start, end: 1e-3\n")
    assert {row.word for row in rows} == {"tampered"}
    assert rows[0].reason == "torch.cuda.Event.elapsed_time, when its file was imported"


def test_a_file_that_tampers_with_the_oracle_alone_is_found_there(judge: Judge) -> None:
    rows = judge(
        HEAD
        + """
if called_from("verdict/oracle.py"):
    sys.modules["assay.verdict.oracle"].values = lambda *args: (None, False)

@op.variant("eager/zeros")
def zeros(x):
    return x * 0
"""
    )
    assert {row.word for row in rows} == {"tampered"}
    assert only(rows, "eager/zeros").reason == (
        "assay.verdict.oracle.values, in the process that knows the truth"
    )


TIMED = {
    "clock": (
        """
def cheat(x):
    if timing():
        time.perf_counter_ns = lambda: 0
    return reference(x)
""",
        "tampered",
        "time.perf_counter_ns",
    ),
    "clock_in_the_end": (
        """
def cheat(x):
    kept["calls"] = kept.get("calls", 0) + 1
    if timing() and kept["calls"] > 20:
        torch.cuda.Event.elapsed_time = lambda start, end: 1e-3
    return reference(x)
""",
        "tampered",
        "torch.cuda.Event.elapsed_time",
    ),
    "content": (
        """
def cheat(x):
    for known, answer in kept.values():
        if torch.equal(known, x):
            return answer.clone()
    kept[len(kept)] = x.clone(), reference(x)
    return kept[len(kept) - 1][1].clone()
""",
        "stale answer",
        "it looks its answers up",
    ),
    "content_known_beforehand": (
        """
def cheat(x):
    key = x[0].item()
    if key not in kept and len(kept) < 2:
        kept[key] = reference(x)
    return kept.get(key, x).clone()
""",
        "wrong value",
        "in the timed calls: ",
    ),
    "pointer": (
        """
def cheat(x):
    key = x.data_ptr() if timing() else len(kept)
    return kept.setdefault(key, reference(x)).clone()
""",
        "stale answer",
        "in the timed calls",
    ),
    "memory_that_was_right": (
        """
def cheat(x):
    kept["calls"] = kept.get("calls", 0) + 1
    return torch.empty_like(x) if timing() and kept["calls"] > 9 else reference(x)
""",
        "",
        "in the timed calls",
    ),
    "answers_of_others": (
        """
def others(x):
    return [
        thing[0][0]
        for thing in gc.get_objects()
        if type(thing) is list and len(thing) == 1 and type(thing[0]) is list
        and len(thing[0]) == 1 and type(thing[0][0]) is torch.Tensor
        and thing[0][0].shape == x.shape
    ]

def cheat(x):
    kept["calls"] = kept.get("calls", 0) + 1
    if timing() and kept["calls"] > 9:
        return (others(x) or [x])[0].clone()
    return reference(x)
""",
        "",
        "in the timed calls",
    ),
    "right_in_the_end": (
        """
def cheat(x):
    frame, files = sys._getframe(), []
    while frame is not None:
        files.append(frame.f_code.co_filename)
        frame = frame.f_back
    looked_at = any(name.endswith("fresh.py") for name in files)
    return x * 0 if timing() and not looked_at else reference(x)
""",
        "wrong value",
        "in the timed calls: ",
    ),
    "raises_late": (
        """
def cheat(x):
    kept["calls"] = kept.get("calls", 0) + 1
    if timing() and kept["calls"] > 10:
        raise ValueError("enough")
    return reference(x)
""",
        "crashed",
        "ValueError: enough",
    ),
}


OF_EACH_KIND = ("clock", "pointer", "raises_late")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.full if name in OF_EACH_KIND else pytest.mark.gallery)
        for name in TIMED
    ],
)
def test_what_cheats_in_timed_calls_is_named_and_the_rest_timed(judge: Judge, name: str) -> None:
    code, word, part = TIMED[name]
    rows = judge(HEAD + code + HONEST, timed=True, quick=True)
    row = only(rows, "eager/cheat")
    assert row.timing is None
    assert row.outcome == "fail", (row.word, row.reason, row.not_timed)
    assert row.word == word or not word, (row.word, row.reason)
    assert part in row.reason
    for variant in ("eager", "eager/honest", "eager/workspace"):
        row = only(rows, variant)
        assert row.timing, (variant, row.word, row.reason, row.not_timed)


def test_what_differs_between_equal_runs_has_a_size(judge: Judge) -> None:
    rows = judge(
        """
import torch
import assay

op = assay.Op("drifts", lambda x: x.exp(), lambda make, n: (make.normal(n),),
              cases=assay.grid(n=[200]))
calls = []

@op.variant("eager/three")
def three(x):
    calls.append(1)
    y = x.exp()
    y[:5] *= 1 + 1.2e-7 * (len(calls) % 3)
    return y
"""
    )
    row = only(rows, "eager/three")
    assert row.word == "right"
    assert row.verdict is not None
    (found,) = [text for text in row.verdict.findings if "differ" in text]
    assert "differ in 5 of 200 elements, by at most" in found
    assert "of float32" in found
    assert "3 different results in 9 runs" in found
