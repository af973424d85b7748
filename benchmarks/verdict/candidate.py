"""The child: one kernel called as its user would call it, and what each peer says of the outputs.

It answers by a file that is written last: a kernel that ends the process, or has replaced what
Assay's own messages go through, leaves no answer, and that is noticed.
"""

from __future__ import annotations

import json
import os
from typing import Any

import msgspec
import torch

from assay import faults, ways
from assay.build import Kernel, build, find_variant
from assay.describe import facts, label
from assay.errors import NotRun
from assay.inputs import inputs_of
from assay.op import Op
from assay.target import Target, load_op
from assay.types import Case
from assay.verdict.reference import output_specs

from .peers import PEERS, SEEDS, Peer

STEPPED_SECONDS = 10.0
"""Larger cases (the product of their integers) are for Assay's own tests of memory."""


class Unfit(Exception):
    """A rejection in words of this file's own."""


def main(
    channel: Any, target: dict, op: str, variant: str, knobs: dict, judge: str, to: str
) -> None:
    """Writes {peer: "" or why it rejects}, {raised: what its call ended in}, {not_run: why}."""
    dump, writer, close, rename = json.dumps, os.write, os.close, os.replace
    answer: dict[str, str]
    os.close(os.open(f"{to}.part", os.O_WRONLY | os.O_CREAT))  # from here on, its end is a kernel's
    try:
        answer = judged(load_op(msgspec.convert(target, Target), op), variant, knobs, judge)
    except NotRun as why:
        answer = {"not_run": str(why)}
    except (KeyboardInterrupt, SystemExit, Exception) as error:  # noqa: BLE001 - its caller sees it
        answer = {"raised": faults.told(error)}
    file = os.open(f"{to}.part", os.O_WRONLY | os.O_CREAT)
    writer(file, dump(answer).encode())
    close(file)
    rename(f"{to}.part", to)


def judged(op: Op, name: str, knobs: dict[str, Any], judge: str) -> dict[str, str]:
    """First one seed of every case for all peers; then the other seeds for those that want them."""
    variant = find_variant(op, name)
    if judge in ("interpreter", "simulator"):
        ways.way(variant.way).limit(STEPPED_SECONDS)
    cases = [
        one.case
        for one in facts(op, {}, []).cases
        if not one.unsupported and not one.skip.get(label(name, knobs), "")
    ]
    if not cases:
        raise NotRun("it takes no case")
    said = {peer.name: "" for peer in PEERS if not peer.missing}
    for seed in range(SEEDS):
        for case in cases:
            asked = [p for p in PEERS if said.get(p.name) == "" and seed < p.seeds]
            if not asked:
                continue
            try:
                _once(op, variant, knobs, case, seed, judge, asked, said)
            except NotRun:
                raise
            except (SystemExit, Exception) as error:
                if seed == 0:
                    raise
                said.update({peer.name: faults.told(error) for peer in asked})
    return said


def _once(
    op: Op,
    variant: Any,
    knobs: dict[str, Any],
    case: Case,
    seed: int,
    judge: str,
    asked: list[Peer],
    said: dict[str, str],
) -> None:
    inputs = inputs_of(op, case, seed)
    specs = output_specs(op, inputs, case)
    if judge in ("interpreter", "simulator"):
        dtypes = [x.dtype for x in inputs if isinstance(x, torch.Tensor)]
        if refusal := ways.way(variant.way).refuses([*dtypes, *(d for _, d in specs)]):
            raise NotRun(refusal)
    kernel = build(op, variant, knobs, case, inputs, specs, "cpu", ways.DEFAULT_ARCH)
    with torch.no_grad():
        expected = _list(op.reference(*_own(op, inputs)))
        got = _called(op, kernel, inputs, specs)
    for peer in asked:
        try:
            _compared(peer, got, expected)
        except Exception as error:  # noqa: BLE001 - a peer says no by an exception
            said[peer.name] = f"[{case.label}] {faults.told(error)}"


def _called(op: Op, kernel: Kernel, inputs: tuple[Any, ...], specs: Any) -> list[Any]:
    filled = specs[len(op.mutates) :] if kernel.variant.fills else []
    outputs = [torch.empty(shape, dtype=dtype) for shape, dtype in filled]
    given = [
        x.contiguous() if isinstance(x, torch.Tensor) and kernel.variant.layouts != "any" else x
        for x in _own(op, inputs)
    ]
    return kernel.run(outputs, given)


def _own(op: Op, inputs: tuple[Any, ...]) -> list[Any]:
    """The inputs themselves; copies where they are declared to be changed, as a user would."""
    if not op.mutates:
        return list(inputs)
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def _compared(peer: Peer, got: list[Any], expected: list[Any]) -> None:
    if len(got) != len(expected):
        raise Unfit(f"{len(got)} outputs, expected {len(expected)}")
    for one, other in zip(got, expected):
        value = torch.as_tensor(one) if type(one).__module__ == "numpy" else one
        if not peer.close(value, other):
            raise Unfit("not close")


def _list(made: Any) -> list[Any]:
    return list(made) if isinstance(made, (tuple, list)) else [made]
