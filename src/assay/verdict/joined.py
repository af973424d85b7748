"""What joins a gradient Op to its forward: its formula against float64 autograd, and its words."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import torch

from ..errors import OpError
from ..faults import told
from ..gradient import Gradient, differentiable
from ..inputs import inputs_of
from ..op import Op
from ..types import Case, Verdict
from .reference import outputs_of, widen

ALLOWED = 1e-10
"""Most that formula and autograd may differ by, relative to the largest gradient of that input.
Both are float64, so what they differ by honestly is some hundred times 1e-16."""
PLACE = re.compile(r"^output (\d+): ")


def check_formula(op: Op, case: Case, seed: int, device: str = "cpu") -> None:
    """Raises OpError if the formula is not the gradient of the forward's reference.

    Judged on saved values as float64 has them, not as the case's dtype rounds them, on `device`.
    """
    join = op.of
    assert join is not None
    forward = join.forward
    drawn = inputs_of(forward, case, seed)
    inputs = [widen(x.to(device) if isinstance(x, torch.Tensor) else x) for x in drawn]
    names = forward.input_names(len(inputs))
    places = [_place(op, names, name) for name in join.wrt]
    for place, name in zip(places, join.wrt):
        if not isinstance(inputs[place], torch.Tensor) or not _floats(inputs[place]):
            raise OpError(f"{op.name}: wrt names {name!r}, which is no floating-point tensor here")
    leaves = [x.detach().requires_grad_() if i in places else x for i, x in enumerate(inputs)]
    outputs = _forward(op, join, leaves, names)
    grads = _random(outputs, seed)
    wanted = _autograd(op, outputs, grads, [leaves[place] for place in places])
    kept = [x.detach() if isinstance(x, torch.Tensor) else x for x in inputs]
    saved = join.saved(kept, [y.detach().contiguous() for y in outputs])
    with torch.no_grad():
        made = outputs_of(op, [*(g.clone() for g in grads), *saved])
    _compare(op, case, made, wanted)


def _place(op: Op, names: list[str], name: str) -> int:
    if name not in names:
        raise OpError(f"{op.name}: wrt names {name!r}; the inputs are {', '.join(names)}")
    return names.index(name)


def _floats(value: torch.Tensor) -> bool:
    return value.is_floating_point() or value.is_complex()


def _forward(op: Op, join: Gradient, leaves: list[Any], names: list[str]) -> list[torch.Tensor]:
    changed = join.forward.mutates
    given = [x.clone() if n in changed else x for x, n in zip(leaves, names)]
    with torch.enable_grad():
        return outputs_of(join.forward, given)


def _random(outputs: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(outputs[i].shape, dtype=outputs[i].dtype, generator=generator).to(
            outputs[i].device
        )
        for i in differentiable(outputs)
    ]


def _autograd(
    op: Op, outputs: list[torch.Tensor], grads: list[torch.Tensor], leaves: list[Any]
) -> list[torch.Tensor]:
    joined = [outputs[i] for i in differentiable(outputs)]
    used = [(y, g) for y, g in zip(joined, grads) if y.requires_grad]
    if not used:
        raise OpError(
            f"{op.name}: float64 autograd finds no path through the forward's reference; "
            "write it in differentiable PyTorch, without .data, .detach or NumPy"
        )
    try:
        found = torch.autograd.grad(
            [y for y, _ in used], leaves, [g for _, g in used], allow_unused=True
        )
    except RuntimeError as error:
        raise OpError(f"{op.name}: float64 autograd of the forward: {told(error)}") from error
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves)]


def _compare(op: Op, case: Case, made: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    assert op.of is not None
    if len(made) != len(wanted):
        raise OpError(
            f"{op.name}: its reference returns {len(made)} gradients, and wrt names "
            f"{len(wanted)}: {', '.join(op.of.wrt)}"
        )
    for name, mine, right in zip(op.of.wrt, made, wanted):
        if mine.shape != right.shape:
            raise OpError(
                f"{op.name}: wrong gradient of {name}: shape {tuple(mine.shape)}, and {name} has "
                f"{tuple(right.shape)} ({case.label}); sum over what was broadcast"
            )
        if not right.numel():
            continue
        error = (mine - right).abs()
        # What autograd gives no number for (0/0, inf - inf) is the forward's affair.
        error = torch.where(right.isfinite(), error.nan_to_num(torch.inf), 0.0)
        size = float(right.abs().nan_to_num(0.0, 0.0, 0.0).max())
        worst = int(error.argmax())
        if float(error.reshape(-1)[worst]) > ALLOWED * size:
            at = [int(i) for i in torch.unravel_index(torch.tensor(worst), right.shape)]
            got, want = mine.reshape(-1)[worst].item(), right.reshape(-1)[worst].item()
            raise OpError(
                f"{op.name}: wrong gradient of {name}: the formula gives {got:.6g} at {at}, and "
                f"float64 autograd of {op.of.forward.name}'s reference {want:.6g} ({case.label}); "
                "correct the formula: all variants are judged by it"
            )


def as_gradient(op: Op, verdict: Verdict, inputs: tuple[Any, ...]) -> Verdict:
    """A wrong value of a gradient as `wrong gradient`: of which input, for which strides."""
    if op.of is None or verdict.word != "wrong value":
        return verdict
    found = PLACE.match(verdict.detail)
    index = int(found[1]) if found else 0
    rest = verdict.detail[found.end() :] if found else verdict.detail
    name = op.of.wrt[index] if index < len(op.of.wrt) else f"output {index}"
    grads = inputs[: op.of.grads]
    odd = [i for i, g in enumerate(grads) if not g.is_contiguous()]
    where = ""
    if odd:
        which = "grad_output" if len(grads) == 1 else f"grad_output {odd[0]}"
        where = f"{which} stride {tuple(grads[odd[0]].stride())}: "
    advice = verdict.advice
    if odd:
        advice = "index it by its strides, or drop layouts='any': then it comes contiguous"
    return msgspec.structs.replace(
        verdict, word="wrong gradient", detail=f"{where}gradient of {name}: {rest}", advice=advice
    )
