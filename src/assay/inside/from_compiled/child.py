"""The child behind `assay show --from-compiled`: a function compiled by Inductor, as an Op file.

Messages: {op, text, kernels, case}, or {mistake | not_run: text}.
"""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import torch
import triton

from ... import single
from ...adapt import like
from ...describe import variant_facts
from ...errors import AssayError, LaunchError, NotRun
from ...faults import told
from ...op import Op
from ...processes.channel import Channel
from ...simt.adapters import inductor
from ...single import Single
from ...target import Target, named
from ...types import Scalar
from ..lineage import ORIGIN
from . import file, program

MOST = 1 << 17
"""The largest case up to this many elements: `assay check` runs it on the CPU in seconds."""


def main(channel: Channel, target: dict, case: dict[str, Scalar], arch: str) -> None:
    """Sends one message."""
    try:
        channel.send(**_started(msgspec.convert(target, Target), case, arch))
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, LaunchError) as error:
        channel.send(not_run=str(error))


def _started(target: Target, case: dict[str, Scalar], arch: str) -> dict[str, Any]:
    one = _single(target, case)
    op = one.op
    if op.mutates:
        raise NotRun(
            f"{op.name} changes {', '.join(op.mutates)} in place: only results are written"
        )
    if op.of is not None:
        raise NotRun(f"{op.name} is a gradient, whose inputs are made of its forward's")
    placed = single.place(one, "cpu")
    try:
        done = inductor.run(op.reference, placed.inputs, None, arch)
    except (AssayError, NotRun):
        raise
    except Exception as error:  # Inductor's own troubles
        raise NotRun(f"Inductor can't compile it for {arch}: {told(error)}") from error
    names = op.input_names(len(placed.inputs))
    tensors = [n for n, x in zip(names, placed.inputs) if isinstance(x, torch.Tensor)]
    written = program.rewritten(done.written, done.kernels, [_safe(name) for name in tensors])
    digests = {v.name: v.source_hash for v in variant_facts(op)}
    about = file.About(
        parent=digests.get("compiled", ""),
        what=f"{ORIGIN}{target.text}",
        made=f"torch {torch.__version__}, Triton {triton.__version__}, {arch}",
        note=done.note,
    )
    text = file.text(one, target, written, [_safe(name) for name in names], about)
    return {"op": op.name, "text": text, "kernels": written.names, "case": one.case.label}


def _single(target: Target, case: dict[str, Scalar]) -> Single:
    if not target.inputs:
        return single.pick(target, "compiled", case, most=MOST)
    function = named(target)
    if not inspect.isfunction(function):
        raise AssayError(f"{target.text}: it is no function; leave --input out for an Op")
    op: Op = like.of_function(target, function)
    return Single(op, op.find("compiled"), {}, op.cases[0])


TAKEN = ("torch", "triton", "tl", "assay", "math", "libdevice", "view")


def _safe(name: str) -> str:
    """A parameter's name, changed where the file needs it for something else."""
    return f"{name}_" if name in TAKEN or name.startswith("buf") else name
