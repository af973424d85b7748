"""The contract with what torch wraps around a call: opcheck, autocast, torch.compile."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from ..errors import NotRun
from ..faults import told
from ..verdict.budget import ROUNDOFF
from . import backward
from .forward import faked, unlike
from .subject import Subject, Wrong, beyond, copies, with_inputs

WORDS = (
    ("mutat", "changed its input"),
    ("modified", "changed its input"),
    ("alias", "shares memory"),
    ("stride", "wrong strides"),
    ("dtype", "wrong dtype"),
    ("shape", "wrong shape"),
    ("grad", "wrong gradient"),
)
"""What opcheck's text speaks of, and the verdict word for it."""


def opcheck(subject: Subject) -> Wrong | None:
    """torch.library.opcheck: schema, autograd registration, fake tensors, AOT dispatch."""
    if subject.overload is None:
        raise NotRun("a plain function: torch.library.opcheck takes registered operators")
    inputs = _asking(subject)
    with contextlib.redirect_stdout(io.StringIO()):
        found = torch.library.opcheck(subject.overload, tuple(inputs), raise_exception=False)
    for test, result in found.items():
        if result == "SUCCESS":
            continue
        text = " ".join(str(result).split())
        word = next((w for part, w in WORDS if part in text.lower()), "not supported")
        return Wrong(word, f"opcheck's {test}: {text[:400]}")
    return None


def _asking(subject: Subject) -> list[Any]:
    """Copies of the inputs; those with a gradient ask for it, unless any is changed in place."""
    return [
        x.clone().requires_grad_(n in subject.wrt and not subject.mutates)
        if isinstance(x, torch.Tensor)
        else x
        for n, x in zip(subject.names, subject.inputs)
    ]


def autocast(subject: Subject) -> Wrong | None:
    """Under autocast: float32 inputs, and one in bfloat16 beside others in float32 (O4, mixed)."""
    floats = [
        i
        for i, x in enumerate(subject.inputs)
        if isinstance(x, torch.Tensor) and x.dtype is torch.float32
    ]
    if not floats:
        raise NotRun("no float32 input, and autocast casts nothing else")
    if subject.mutates:
        raise NotRun("it works in place, and autocast casts no in-place operators")
    device = next(x for x in subject.inputs if isinstance(x, torch.Tensor)).device.type
    mixed = [()] if len(floats) == 1 else [(), *((i,) for i in floats)]
    for low in mixed:
        inputs = [x.bfloat16() if i in low else x for i, x in enumerate(copies(subject.inputs))]
        names = ", ".join(subject.names[i] for i in low)
        where = f"under autocast with {names} in bfloat16: " if low else "under autocast: "
        found = _cast(with_inputs(subject, inputs), device, where)
        if found is not None:
            return found
    return None


ADVICE = "register a rule: torch.library.register_autocast, or torch.amp.custom_fwd"


def _cast(subject: Subject, device: str, where: str) -> Wrong | None:
    with torch.autocast(device, torch.bfloat16):
        try:
            made = subject.outputs(copies(subject.inputs))
            planned = faked(subject, list(subject.inputs))
        except Exception as error:  # noqa: BLE001 - whatever an operator raises is its row
            return Wrong("not supported", f"{where}{told(error)}", ADVICE)
    found = unlike(made, planned)
    if found is not None:
        return Wrong(found.word, where + found.detail, found.advice)
    wide = [
        x.float() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
        for x in subject.inputs
    ]
    reference = subject.reference
    right = subject.truth(subject.inputs) if reference else subject.outputs(wide)
    for index, (one, truth) in enumerate(zip(made, right)):
        off = beyond(one, truth, None, ROUNDOFF[torch.bfloat16])
        if off:
            return Wrong("wrong value", f"{where}output {index}: {off}", ADVICE)
    return _cast_back(subject, device, where) if subject.wrt else None


def _cast_back(subject: Subject, device: str, where: str) -> Wrong | None:
    """Backward after a forward under autocast: each gradient in its input's dtype."""
    with torch.autocast(device, torch.bfloat16):
        leaves, _, made = backward.graph(subject, subject.leaves)
    grads = backward.grads_for(made)
    try:
        got = backward.back(made, leaves, grads)
    except Exception as error:  # noqa: BLE001 - whatever an operator raises is its row
        return Wrong("not supported", f"{where}backward: {told(error)}", ADVICE)
    for name, leaf, mine in zip(subject.wrt, leaves, got):
        if mine.dtype != leaf.dtype:
            return Wrong("wrong dtype", f"{where}{name} is {leaf.dtype}, its gradient {mine.dtype}")
    if subject.reference is None:
        return None
    right = backward.of_reference(subject, grads, wide=True)
    for name, mine, truth in zip(subject.wrt, got, right):
        off = beyond(mine, truth, None, ROUNDOFF[torch.bfloat16])
        if off:
            return Wrong("wrong gradient", f"{where}gradient of {name}: {off}", ADVICE)
    return None


def compiled(subject: Subject) -> Wrong | None:
    """torch.compile(fullgraph=True) gives what eager gives, at its first and second call (O7)."""
    torch._dynamo.reset()
    call = torch.compile(subject.call, fullgraph=True, backend=subject.backend)
    for number, inputs in enumerate(_two(subject), 1):
        asked = with_inputs(subject, inputs)
        where = f"compiled, call {number}: "
        eager = asked.outputs(copies(inputs))
        given = copies(inputs)
        try:
            result = call(*given)
        except Exception as error:  # noqa: BLE001 - whatever an operator raises is its row
            return Wrong("not supported", f"{where}{told(error)}", "nothing may break the graph")
        changed = [given[i] for i in subject.mutated]
        made = [*changed, *(y for y in _listed(result) if all(not _same(y, x) for x in changed))]
        found = unlike(eager, made) or _apart(eager, made, where)
        if found is not None:
            return Wrong(found.word, _at(where, found.detail), found.advice)
        found = _compiled_back(asked, call, where) if subject.wrt else None
        if found is not None:
            return found
    return None


def _at(where: str, detail: str) -> str:
    return detail if detail.startswith(where) else f"{where}{detail.replace('fake', 'compiled')}"


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether an output is an input that was changed: compiled code may return an alias of it."""
    return one.data_ptr() == other.data_ptr() and one.shape == other.shape


def _listed(made: Any) -> list[Any]:
    if made is None:
        return []
    return list(made) if isinstance(made, (tuple, list)) else [made]


def _two(subject: Subject) -> list[Sequence[Any]]:
    """The inputs, and the same with other values: rolled by one."""
    rolled = [x.roll(1) if isinstance(x, torch.Tensor) and x.dim() else x for x in subject.inputs]
    return [subject.inputs, rolled]


def _apart(eager: list[Any], made: list[Any], where: str) -> Wrong | None:
    for index, (one, other) in enumerate(zip(eager, made)):
        off = beyond(other, one, one)
        if off:
            return Wrong("wrong value", f"{where}output {index}: {off}")
    return None


def _compiled_back(subject: Subject, call: Any, where: str) -> Wrong | None:
    leaves, _, made = backward.graph(subject, subject.leaves)
    grads = backward.grads_for(made)
    right = backward.back(made, leaves, grads)
    try:
        again = replace(subject, call=call)
        leaves, _, made = backward.graph(again, subject.leaves)
        got = backward.back(made, leaves, grads)
    except Exception as error:  # noqa: BLE001 - whatever an operator raises is its row
        return Wrong("not supported", f"{where}backward: {told(error)}")
    return backward.compared(subject.wrt, got, right, right, where)
