"""What the contract is asked of: an operator, inputs for it, and what is known to be right."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..errors import AssayError
from ..hostile import LAYOUTS, applies
from ..op import parameters
from ..verdict.budget import ROUNDOFF
from ..verdict.reference import clone, widen
from .define import TorchOp

STRIDED = ("transposed", "stepped", "expanded", "broadcast")
"""Layouts of `hostile.LAYOUTS` that are tried, beside `sliced` below."""
EAGER_TIMES, ROUNDINGS = 4, 16


@dataclass(frozen=True)
class Wrong:
    """What a check found: a verdict word, where, and what to do."""

    word: str
    detail: str
    advice: str = ""


@dataclass(frozen=True, eq=False)
class Subject:
    """An operator with inputs that it must take."""

    name: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]
    names: tuple[str, ...]
    reference: Callable[..., Any] | None
    mutates: tuple[str, ...]
    wrt: tuple[str, ...]
    overload: Any
    """The OpOverload that torch.library.opcheck takes; None for a plain function."""
    deterministic: bool
    double: bool
    backend: str

    @property
    def mutated(self) -> list[int]:
        return [self.names.index(name) for name in self.mutates]

    @property
    def leaves(self) -> list[int]:
        return [self.names.index(name) for name in self.wrt]

    def outputs(self, inputs: Sequence[Any]) -> list[Any]:
        """Calls it: what it leaves in the inputs it may change, then what it returns beside."""
        made = listed(self.call(*inputs))
        return [*(inputs[i] for i in self.mutated), *self.returned(made, inputs)]

    def returned(self, made: list[Any], inputs: Sequence[Any]) -> list[Any]:
        """Without what is an input that it may change, which in-place functions return."""
        own = [inputs[i] for i in self.mutated]
        return [y for y in made if all(y is not x for x in own)]

    def truth(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The reference in float64."""
        assert self.reference is not None
        return listed(self.reference(*(widen(x) for x in inputs)))

    def eager(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        """The reference in the inputs' own dtype, whose error is what is usual."""
        assert self.reference is not None
        return listed(self.reference(*(clone(x) for x in inputs)))


def subject_of(
    fn: Any,
    inputs: tuple[Any, ...],
    *,
    reference: Callable[..., Any] | None,
    mutates: tuple[str, ...] | None,
    deterministic: bool,
    double: bool | None,
    backend: str,
) -> Subject:
    """What is known of an operator. Raises AssayError if no tensor is among its inputs."""
    if not any(isinstance(x, torch.Tensor) for x in inputs):
        raise AssayError("check_operator: no tensor among the inputs; give some that it takes")
    call, overload = fn, None
    if isinstance(fn, TorchOp):
        overload, reference = fn.overload, reference or fn.op.reference
        mutates = fn.op.mutates if mutates is None else mutates
        double = fn.double if double is None else double
    elif hasattr(fn, "_opoverload"):  # what torch.library.custom_op returns
        overload = fn._opoverload
    elif isinstance(fn, torch._ops.OpOverloadPacket):
        overload = getattr(fn, fn.overloads()[0])
    elif isinstance(fn, torch._ops.OpOverload):
        overload = fn
    names = _names(fn, overload, len(inputs))
    if mutates is None:
        mutates = _declared(overload)
    unknown = [n for n in mutates if n not in names]
    if unknown:
        raise AssayError(
            f"check_operator: mutates names {unknown[0]!r}; the inputs are {', '.join(names)}"
        )
    wrt = tuple(
        n
        for n, x in zip(names, inputs)
        if (isinstance(fn, TorchOp) and fn.gradient is not None and n in _wrt(fn))
        or (isinstance(x, torch.Tensor) and x.requires_grad)
    )
    kept = tuple(x.detach() if isinstance(x, torch.Tensor) else x for x in inputs)
    own = overload.name() if overload is not None else getattr(fn, "__name__", "operator")
    return Subject(
        own,
        call,
        kept,
        names,
        reference,
        tuple(mutates),
        wrt,
        overload,
        deterministic,
        bool(double),
        backend,
    )


def _wrt(fn: TorchOp) -> tuple[str, ...]:
    of = fn.gradient.op.of if fn.gradient is not None else None
    return of.wrt if of is not None else ()


def _names(fn: Any, overload: Any, count: int) -> tuple[str, ...]:
    if overload is not None:
        found = [a.name for a in overload._schema.arguments]
    else:
        owner = getattr(fn, "__self__", None)  # MyFunction of MyFunction.apply
        if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
            function: Any = owner
            taken = parameters(inspect.unwrap(function.forward))
            found = taken[1:] if taken[:1] == ["ctx"] else taken
        else:
            found = parameters(inspect.unwrap(fn))
    return tuple(found[i] if i < len(found) else f"input{i}" for i in range(count))


def _declared(overload: Any) -> tuple[str, ...]:
    """Arguments that a schema says are written: `Tensor(a!) x`."""
    if overload is None:
        return ()
    marked = overload._schema.arguments
    return tuple(a.name for a in marked if a.alias_info is not None and a.alias_info.is_write)


def listed(made: Any) -> list[Any]:
    """The outputs as a list; none for None."""
    if made is None:
        return []
    return list(made) if isinstance(made, (tuple, list)) else [made]


def copies(inputs: Sequence[Any]) -> list[Any]:
    """Inputs to be spent, each with its own memory, in its own layout."""
    return [_copy(x) if isinstance(x, torch.Tensor) else x for x in inputs]


def _copy(x: torch.Tensor) -> torch.Tensor:
    """With all the memory around it: `clone` would make what is sliced contiguous."""
    block = x.detach().untyped_storage().clone()
    return x.new_empty(0).set_(block, x.storage_offset(), x.shape, x.stride())


def sliced(x: torch.Tensor) -> torch.Tensor:
    """The left half of a tensor twice as wide, as one part of a `torch.cat` is."""
    wide = x.new_zeros(*x.shape[:-1], 2 * x.shape[-1])
    wide[..., : x.shape[-1]] = x
    return wide[..., : x.shape[-1]]


def layouts(x: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """The tensor in other layouts; the expanded ones have other values too."""
    found = [("sliced", sliced(x))] if x.dim() and x.numel() else []
    return [*found, *((kind, LAYOUTS[kind](x)) for kind in STRIDED if applies(kind, x))]


def beyond(
    got: torch.Tensor, right: torch.Tensor, usual: torch.Tensor | None, roundoff: float = 0.0
) -> str:
    """Empty, or where a result is off by more than 16 roundings and 4 times what eager is off.

    Both relative to the largest element; a NaN or infinity must be where the truth has one.
    roundoff: of the arithmetic, if it is coarser than the result's dtype.
    """
    if got.shape != right.shape:
        return f"shape {tuple(got.shape)}, expected {tuple(right.shape)}"
    if not right.numel():
        return ""
    if not right.is_floating_point() and not right.is_complex():
        bad = got.to(right.dtype) != right
        allowed = 0.0
    else:
        wide = got.to(right.dtype)
        size = float(right.abs().nan_to_num(0.0, 0.0, 0.0).max())
        unit = max(ROUNDOFF[got.dtype] if got.dtype in ROUNDOFF else 2.0**-24, roundoff)
        allowed = ROUNDINGS * unit * size + torch.finfo(got.dtype).tiny
        if usual is not None and usual.shape == right.shape:
            off = (usual.to(right.dtype) - right).abs().nan_to_num(0.0, 0.0, 0.0)
            allowed += EAGER_TIMES * float(off.max())
        same = (wide == right) | (wide.isnan() & right.isnan())
        bad = ~(same | ((wide - right).abs() <= allowed))
    count = int(bad.sum())
    if not count:
        return ""
    error = (got.to(right.dtype) - right).abs() if right.dtype != torch.bool else bad
    worst = int(torch.where(bad, error.double().nan_to_num(torch.inf), -1.0).argmax())
    at = [int(i) for i in torch.unravel_index(torch.tensor(worst), right.shape)]
    value, want = got.reshape(-1)[worst].item(), right.reshape(-1)[worst].item()
    scope = "every element" if count == right.numel() else f"{count:,} of {right.numel():,}"
    return f"{scope}, worst at {at}: {_number(value)}, expected {_number(want)}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def with_inputs(subject: Subject, inputs: Sequence[Any]) -> Subject:
    return replace(subject, inputs=tuple(inputs))
