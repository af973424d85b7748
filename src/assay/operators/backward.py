"""The contract of a gradient: right for every layout of grad_output, alone, again, saved safely.

Truth is float64 autograd of the reference; what is allowed is measured on eager's own error in the
inputs' dtype (O4: a gradient check in float32 against finite differences means nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ..errors import NotRun
from ..faults import told
from ..gradient import differentiable
from ..verdict.reference import widen
from .forward import REPEATS, spread
from .subject import Subject, Wrong, beyond, copies, layouts, listed

SEED = 20_260


def _needs(subject: Subject, *, reference: bool = False) -> None:
    if not subject.wrt:
        raise NotRun("no input requires a gradient")
    if reference and subject.reference is None:
        raise NotRun("no reference is given, whose gradient would be the truth")


def graph(
    subject: Subject, places: Sequence[int], *, copied: bool = True
) -> tuple[list[torch.Tensor], list[Any], list[Any]]:
    """A call with leaves at these places: the leaves, what was passed, the outputs."""
    leaves = {
        i: x.clone().requires_grad_(i in places)
        for i, x in enumerate(subject.inputs)
        if isinstance(x, torch.Tensor)
    }
    given = list(subject.inputs)
    for i, leaf in leaves.items():
        given[i] = leaf.clone() if copied or i in subject.mutated else leaf
    with torch.enable_grad():
        made = subject.outputs(given)
    return [leaves[i] for i in places], given, made


def grads_for(made: list[Any], seed: int = SEED) -> list[torch.Tensor]:
    """Random gradients for the outputs that have one."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for i in differentiable(made):
        drawn = torch.randn(made[i].shape, generator=generator)
        found.append(drawn.to(made[i].device, made[i].dtype))
    return found


def back(
    made: list[Any], leaves: list[torch.Tensor], grads: list[torch.Tensor], **more: Any
) -> list[torch.Tensor]:
    """The gradients of the leaves; zeros where there is no path."""
    joined = [made[i] for i in differentiable(made)]
    used = [(y, g) for y, g in zip(joined, grads) if y.requires_grad]
    if not used:
        raise RuntimeError("no output requires a gradient: nothing registers a backward")
    found = torch.autograd.grad(
        [y for y, _ in used], leaves, [g for _, g in used], allow_unused=True, **more
    )
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, leaves)]


def of_reference(subject: Subject, grads: list[torch.Tensor], wide: bool) -> list[torch.Tensor]:
    """The gradients of the reference: in float64 the truth, else eager's."""
    assert subject.reference is not None
    leaves = [
        (widen(x) if wide else x.clone()).requires_grad_(i in subject.leaves)
        if isinstance(x, torch.Tensor)
        else x
        for i, x in enumerate(subject.inputs)
    ]
    given = [x.clone() if i in subject.mutated else x for i, x in enumerate(leaves)]
    with torch.enable_grad():
        made = listed(subject.reference(*given))
    return back(made, [leaves[i] for i in subject.leaves], [widen(g) if wide else g for g in grads])


def gradient(subject: Subject) -> Wrong | str | None:
    """Right for a contiguous, sliced, transposed, stepped, expanded, zero-stride gradient (O5)."""
    _needs(subject)
    _, _, made = graph(subject, subject.leaves)
    plain = grads_for(made)
    found = _judged(subject, plain, "")
    if found is not None:
        return found
    for place, g in enumerate(plain):
        for _, odd in layouts(g):
            which = "grad_output" if len(plain) == 1 else f"grad_output {place}"
            where = f"{which} stride {tuple(odd.stride())}: "
            grads = [*plain[:place], odd, *plain[place + 1 :]]
            found = _judged(subject, grads, where)
            if found is not None:
                return found
    return _repeated(subject, plain)


def _judged(subject: Subject, grads: list[torch.Tensor], where: str) -> Wrong | None:
    leaves, _, made = graph(subject, subject.leaves)
    before = copies(grads)
    got = back(made, leaves, grads)
    for index, (one, other) in enumerate(zip(before, grads)):
        if not torch.equal(one, other) and not (one != one).any():
            return Wrong("changed its input", f"{where}its backward changes grad_output {index}")
    if subject.reference is not None:
        right = of_reference(subject, grads, wide=True)
        usual = of_reference(subject, grads, wide=False)
    else:
        leaves, _, made = graph(subject, subject.leaves)
        right = usual = back(made, leaves, [g.contiguous() for g in grads])
    return compared(subject.wrt, got, right, usual, where)


def compared(
    names: Sequence[str],
    got: list[torch.Tensor],
    right: list[torch.Tensor],
    usual: Sequence[torch.Tensor | None],
    where: str,
) -> Wrong | None:
    """`wrong gradient` of the first input whose gradient is off."""
    advice = "index grad_output by its strides, or call .contiguous() on it first" if where else ""
    for name, mine, truth, eager in zip(names, got, right, usual):
        found = beyond(mine, truth, eager)
        if found:
            return Wrong("wrong gradient", f"{where}gradient of {name}: {found}", advice)
    return None


def _repeated(subject: Subject, grads: list[torch.Tensor]) -> Wrong | str | None:
    runs = []
    for _ in range(REPEATS):
        leaves, _, made = graph(subject, subject.leaves)
        runs.append(back(made, leaves, grads))
    return spread(subject, runs, "gradients: ")


def partial(subject: Subject) -> Wrong | None:
    """Each input alone needs a gradient, and gets the same one (needs_input_grad)."""
    _needs(subject)
    if len(subject.wrt) < 2:
        raise NotRun("only one input has a gradient")
    leaves, _, made = graph(subject, subject.leaves)
    grads = grads_for(made)
    right = back(made, leaves, grads)
    for index, (name, place) in enumerate(zip(subject.wrt, subject.leaves)):
        where = f"where only {name} needs one: "
        try:
            leaves, _, made = graph(subject, [place])
            got = back(made, leaves, grads)
        except Exception as error:  # noqa: BLE001 - a backward is the operator's own code
            return Wrong("wrong gradient", f"{where}{told(error)}", "look at ctx.needs_input_grad")
        found = compared([name], got, [right[index]], [right[index]], where)
        if found is not None:
            return Wrong(found.word, found.detail, "return the gradients in the inputs' order")
    return None


def again(subject: Subject) -> Wrong | None:
    """A second backward, of another call and of the same graph, gives the same: nothing adds up."""
    _needs(subject)
    leaves, _, made = graph(subject, subject.leaves)
    grads = grads_for(made)
    first = copies(back(made, leaves, grads, retain_graph=True))
    for where, call in (
        ("a second backward of the same graph: ", lambda: back(made, leaves, grads)),
        ("the backward of a second call: ", lambda: _fresh(subject, grads)),
    ):
        found = compared(subject.wrt, call(), first, first, where)
        if found is not None:
            return Wrong(found.word, found.detail, "clear what it accumulates into at every call")
    return _used_twice(subject, grads, first)


def _fresh(subject: Subject, grads: list[torch.Tensor]) -> list[torch.Tensor]:
    leaves, _, made = graph(subject, subject.leaves)
    return back(made, leaves, grads)


def _used_twice(
    subject: Subject, grads: list[torch.Tensor], first: list[torch.Tensor]
) -> Wrong | None:
    """f(x) and f(x) side by side, as `torch.cat` has it: the gradients add up."""
    if subject.mutates:
        return None
    leaves, given, one = graph(subject, subject.leaves)
    with torch.enable_grad():
        two = subject.outputs(given)
    pairs = list(zip(differentiable(one), grads))
    pairs = [(i, g) for i, g in pairs if one[i].dim() and one[i].requires_grad]
    if not pairs:
        return None
    joined = [torch.cat([one[i], two[i]], -1) for i, _ in pairs]
    wide = [torch.cat([g, g], -1) for _, g in pairs]
    got = torch.autograd.grad(joined, leaves, wide, allow_unused=True)
    filled = [torch.zeros_like(x) if g is None else g for g, x in zip(got, leaves)]
    if len(pairs) < len(grads):
        return None
    twice = [2 * g for g in first]
    return compared(subject.wrt, filled, twice, twice, "after torch.cat([f(x), f(x)], -1): ")


CHANGED = "modified by an inplace operation"


def saved(subject: Subject) -> Wrong | None:
    """What backward reads again is saved so that autograd sees a change of it in between."""
    _needs(subject)
    leaves, _, made = graph(subject, subject.leaves)
    grads = grads_for(made)
    right = back(made, leaves, grads)
    inputs = [i for i, x in enumerate(subject.inputs) if _float(x) and i not in subject.mutated]
    for what, place in [
        *(("input", i) for i in inputs),
        *(("output", i) for i in range(len(made))),
    ]:
        leaves, given, made = graph(subject, subject.leaves)
        target = given[place] if what == "input" else made[place]
        if not _float(target):
            continue
        with torch.no_grad():
            target.add_(1)
        try:
            got = back(made, leaves, grads)
        except RuntimeError as error:
            if CHANGED in str(error):
                continue
            raise
        name = subject.names[place] if what == "input" else f"output {place}"
        where = f"{name} was changed in place between forward and backward, unnoticed: "
        found = compared(subject.wrt, got, right, right, where)
        if found is not None:
            return Wrong(found.word, found.detail, "keep it by ctx.save_for_backward")
    return None


def _float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def double(subject: Subject) -> Wrong | None:
    """The gradient of the gradient, where it is claimed, against float64 autograd twice."""
    _needs(subject, reference=True)
    if not subject.double:
        raise NotRun("double backward is not claimed")
    _, _, made = graph(subject, subject.leaves)
    grads = grads_for(made)
    got = _twice(subject, grads, subject.outputs, wide=False)
    reference = subject.reference
    assert reference is not None
    right = _twice(subject, grads, lambda given: listed(reference(*given)), wide=True)
    usual = _twice(subject, grads, lambda given: listed(reference(*given)), wide=False)
    names = [*subject.wrt, *(f"grad_output {i}" for i in range(len(grads)))]
    return compared(names, got, right, usual, "double backward: ")


def _twice(
    subject: Subject, grads: list[torch.Tensor], call: Any, wide: bool
) -> list[torch.Tensor]:
    given = [widen(x) if wide and isinstance(x, torch.Tensor) else x for x in subject.inputs]
    leaves = {i: given[i].clone().requires_grad_() for i in subject.leaves}
    passed = [leaves[i].clone() if i in leaves else x for i, x in enumerate(given)]
    outer = [(widen(g) if wide else g.clone()).requires_grad_() for g in grads]
    with torch.enable_grad():
        once = back(call(passed), list(leaves.values()), outer, create_graph=True)
        generator = torch.Generator().manual_seed(SEED + 1)
        loss = sum(
            (g * torch.randn(g.shape, generator=generator).to(g.device, g.dtype)).sum()
            for g in once
        )
        ends = [*leaves.values(), *outer]
        found = torch.autograd.grad(loss, ends, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, ends)]
