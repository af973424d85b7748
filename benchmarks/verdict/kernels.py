"""The kernels that are compared: those of both zoos, by Assay and, where it can be, by peers."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import msgspec

from assay import ways
from assay.describe import label
from assay.machine import cores
from assay.pipeline import describe
from assay.processes import Ended, TimedOut
from assay.selftest.judging import judged
from assay.selftest.zoo import Sample
from assay.session import Session
from assay.target import parse
from assay.types import FAIL

from .peers import PEERS

SECONDS = 40.0
CALLED = ("eager", "python", "cpp", "extension", "numba", "triton")
"""Ways whose kernels are plain calls on a CPU; Numba's in its simulator, Triton's interpreted."""


@dataclass(frozen=True)
class One:
    """One kernel of a zoo."""

    sample: Sample
    op: str
    variant: str
    knobs: dict[str, Any]
    way: str

    @property
    def label(self) -> str:
        return label(self.variant, self.knobs)

    @property
    def wrong(self) -> bool:
        return self.sample.wrong and self.label in self.sample.expect

    @property
    def name(self) -> str:
        return f"{self.sample.name} {self.op} {self.label}"


def kernels(session: Session, sample: Sample) -> list[One]:
    """All kernels of a file; of `eager`, which is the reference itself, there is nothing to ask."""
    found = []
    for op in describe(session, parse(str(sample.path))):
        for variant in op.variants:
            if variant.name in ("eager", "compiled"):
                continue
            found += [
                One(sample, op.name, variant.name, knobs, variant.way)
                for knobs in variant.configurations
            ]
    return found


def by_peers(session: Session, one: One) -> dict[str, str]:
    """{peer: "" or why it rejects the kernel}, {raised: what ended the call} or {not_run: why}."""
    if one.way not in CALLED:
        return {"not_run": f"{one.way} needs a GPU"}
    here = ways.stepped(one.way, "cpu")
    if not here.judge or here.judge == "simt":
        return {"not_run": here.reason or f"{one.way} has nothing to run it here"}
    to = session.folder() / "answer.json"
    args = {
        "target": msgspec.to_builtins(parse(str(one.sample.path))),
        "op": one.op,
        "variant": one.variant,
        "knobs": one.knobs,
        "judge": here.judge,
        "to": str(to),
    }
    env = {"OMP_NUM_THREADS": "1", **here.env}
    how = ""
    with session.child("benchmarks.verdict.candidate:main", args, name=one.name, env=env) as child:
        try:
            while True:
                child.receive(SECONDS)
        except TimedOut:
            how = f"no answer after {SECONDS:.0f} s"
        except Ended as ended:
            how = f"it ended its process with {ended.status.label}"
            begun = to.is_file() or to.with_name(f"{to.name}.part").is_file()
            if ended.status.harness and not begun:
                raise RuntimeError(f"{one.name}: {session.log_tail(one.name)}") from None
    if to.is_file():
        said: dict[str, str] = json.loads(to.read_text())
        return said
    return {"raised": how}


def by_assay(session: Session, sample: Sample) -> dict[str, str]:
    """`op label` of each kernel of a file to the word that Assay gives it; "" if it is right."""
    said: dict[str, str] = {}
    for row in judged(session, sample).rows:
        name = f"{row.op} {row.label}"
        failed = row.outcome == FAIL
        if row.word == "not run" and name not in said and not row.case.zoo:
            said[name] = "not run"
        elif failed and said.get(name, "not run") in ("", "not run"):
            said[name] = row.word
        elif row.outcome == "pass" and said.get(name, "not run") == "not run":
            said[name] = ""
    return said


def compared(
    session: Session, samples: list[Sample], say: Callable[[str], None] = lambda _: None
) -> list[dict[str, Any]]:
    """A row a kernel: what each says of it."""
    with ThreadPoolExecutor(max(2, cores())) as pool:
        ones = [one for found in pool.map(lambda s: kernels(session, s), samples) for one in found]
        said = []
        for number, answer in enumerate(pool.map(lambda one: by_peers(session, one), ones)):
            said.append(answer)
            say(f"peers {number + 1}/{len(ones)}: {ones[number].name}")
    own = {}
    for number, sample in enumerate(samples):
        own[sample.name] = by_assay(session, sample)
        say(f"Assay {number + 1}/{len(samples)}: {sample.name}")
    return [row(one, peers, own[one.sample.name]) for one, peers in zip(ones, said)]


def row(one: One, peers: dict[str, str], assay: dict[str, str]) -> dict[str, Any]:
    not_run, raised = peers.pop("not_run", ""), peers.pop("raised", "")
    if raised and one.wrong:
        peers = {peer.name: raised for peer in PEERS if not peer.missing}
    elif raised:  # no judge's word on what it computes
        not_run = f"called plainly, it raised {raised}"
    return {
        "file": one.sample.name,
        "op": one.op,
        "kernel": one.label,
        "wrong": one.wrong,
        "expected": one.sample.expect[one.label][0] if one.wrong else "right",
        "assay": assay.get(f"{one.op} {one.label}", "not run") or "right",
        "not_run_by_peers": not_run,
        "rejected": {name: why for name, why in peers.items() if why},
        "passed": [name for name, why in peers.items() if not why],
    }
