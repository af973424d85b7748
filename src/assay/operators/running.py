"""One Op as a call on tensors: a variant for each kind of device, built when it is first needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .. import ways
from ..build import Kernel, Specs, build
from ..errors import NotSupported, OpError
from ..inputs import inputs_of, to_meta
from ..op import Op, Variant
from ..shapes import misfit
from ..types import Case, Scalar
from .dtypes import Known
from .picking import KINDS, Picker
from .replay import Packed, Replay, recorded

MOST_KEPT = 1024
"""Shapes that are remembered for each operator; a model that has more pays for them again."""


@dataclass(frozen=True, slots=True)
class _Planned:
    """What a call with inputs of one form does: nothing of it is worked out again."""

    kernel: Kernel
    fills: bool
    outputs: tuple[tuple[tuple[int, ...], torch.dtype], ...]
    """Shape and dtype of what is allocated for it."""
    copied: tuple[int, ...]
    """Places of inputs that are made contiguous."""
    device: torch.device
    replay: Replay | None
    anew: str
    """Why its launches are worked out at each call; empty if they are replayed."""


class Runner:
    """Runs an Op: `run(inputs)` gives all outputs, those of changed inputs first.

    forward, cpu: `way/name KNOB=value` or `tuned`, for tensors on a GPU and on the CPU; cpu empty:
    the same. dtypes: those that may stand for one of a case: see dtypes.py.
    Raises OpError for a variant or knob that there is not.
    """

    def __init__(self, op: Op, forward: str, cpu: str, dtypes: tuple[str, ...]):
        self.op = op
        made = inputs_of(op, op.cases[0], 0)
        self.sample = [to_meta(x) for x in made]
        """The inputs of the Op's first case, tensors without values."""
        self._dtypes = Known(op, self.sample, dtypes)
        self.picker = Picker(op, forward, cpu, _sizes(op, self.sample))
        self._names: list[str] = []
        self._refused: dict[str, str] = {}
        self._kernels: dict[Any, Kernel] = {}
        self._planned: dict[Any, _Planned] = {}
        self.noticed: Callable[[list[Any], Replay], None] = lambda inputs, replay: None
        """Told of inputs whose launches can be replayed, when they are planned."""

    def run(self, inputs: list[Any], mutated: list[int]) -> list[torch.Tensor]:
        """mutated: places of inputs that are changed in place; their new values come first.

        Raises NotSupported for a device or dtype that nothing was made for.
        """
        key = _forms(inputs)
        plan = self._planned.get(key)
        if plan is None:
            plan = self._plan(key, inputs, mutated)
        with torch.no_grad():
            made = self._made(plan, inputs)
        for place, value in zip(mutated, made):
            if value.data_ptr() != inputs[place].data_ptr() or value.stride() != (
                inputs[place].stride()
            ):
                inputs[place].copy_(value)
        rest = made[len(mutated) :]
        return [*(inputs[place] for place in mutated), *_owned(plan, rest, inputs)]

    def planned_run(self, inputs: tuple[Any, ...]) -> list[torch.Tensor]:
        """The same for an Op that changes no inputs, in the caller's grad mode: the caller needs
        no gradient, or is inside of one's forward."""
        key = _forms(inputs)
        plan = self._planned.get(key)
        if plan is None:
            plan = self._plan(key, list(inputs), [])
        if plan.replay is not None:
            replayed = plan.replay(inputs)
            if replayed is not None:
                return replayed
        return _owned(plan, self._made(plan, inputs), inputs)

    def _made(self, plan: _Planned, inputs: Sequence[Any]) -> list[torch.Tensor]:
        given = list(inputs)
        for place in plan.copied:
            given[place] = given[place].contiguous()
        if plan.device.type == "cpu":
            return plan.kernel.run(_allocated(plan), given)
        with _on(plan.device):
            return plan.kernel.run(_allocated(plan), given)

    def _plan(self, key: Any, inputs: list[Any], mutated: list[int]) -> _Planned:
        """What inputs of a form need, worked out at the first call with it."""
        device = self._device(inputs)
        variant, knobs = self.picker.pick(inputs, device)
        specs: Specs = []
        if variant.fills or variant.source:
            shaped = shapes(self.op, [to_meta(x) for x in inputs])
            specs = [(tuple(y.shape), y.dtype) for y in shaped]
        tensors = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
        odd = [i for i in tensors if not inputs[i].is_contiguous()]
        with _on(device):
            kernel = self._kernel(variant, knobs, inputs, specs, device)
        plan = _Planned(
            kernel,
            variant.fills,
            tuple(specs[len(mutated) :]) if variant.fills else (),
            () if variant.layouts == "any" else tuple(odd),
            device,
            *_replay(kernel, specs, inputs, device, plain=not odd and not mutated),
        )
        _bound(self._planned)
        self._planned[key] = plan
        if plan.replay is not None:
            self.noticed(inputs, plan.replay)
        return plan

    def forget(self) -> None:
        """Lets every form be planned anew at its next call; what is built stays."""
        self._planned.clear()

    def anew(self, inputs: list[Any]) -> str:
        """Why launches are worked out at each call with such inputs, if they are not replayed."""
        plan = self._planned.get(_forms(inputs))
        return plan.anew if plan is not None else "it was not called yet"

    def why(self, inputs: list[Any]) -> str:
        """Which variant runs for these inputs, and why. Raises NotSupported as `run` does."""
        return self.picker.why(inputs, self._device(inputs))

    def _device(self, inputs: list[Any]) -> torch.device:
        if len(self._names) < len(inputs):  # reading a signature takes longer than a small kernel
            self._names = self.op.input_names(len(inputs))
        tensors = [(n, x) for n, x in zip(self._names, inputs) if isinstance(x, torch.Tensor)]
        (first, one), *others = tensors
        for name, x in others:
            if x.device != one.device:
                raise NotSupported(
                    f"{self.op.name}: {first} is on {one.device} and {name} on {x.device}; "
                    "move them to one device"
                )
        if refused := self._dtypes.refusal(self._names, inputs):
            raise NotSupported(f"{self.op.name}: {refused}")
        wrong = misfit(self.op.shapes, {name: x.shape for name, x in tensors})
        if wrong:
            raise NotSupported(f"{self.op.name}: {wrong}; reshape or expand it")
        if one.device.type not in KINDS:
            raise NotSupported(f"{self.op.name}: {first} is on {one.device}; use a GPU or the CPU")
        place = str(one.device)
        if place not in self._refused:
            self._refused[place] = self._refusal(one.device)
        if self._refused[place]:
            raise NotSupported(self._refused[place])
        return one.device

    def _refusal(self, device: torch.device) -> str:
        variant = self.picker.some(device.type)
        here = ways.here(variant.way, str(device))
        if here.judge == str(device):
            return ""
        reason = f" ({here.reason})" if here.reason else ""
        todo = "say torch_op(..., cpu='eager'), or move them to a GPU"
        if device.type != "cpu":
            todo = "choose a forward= and backward= that run on a GPU"
        return (
            f"{self.op.name}: the variant {variant.name} does not run on the {device.type}"
            f"{reason}, where its tensors are; {todo}"
        )

    def _kernel(
        self,
        variant: Variant,
        knobs: dict[str, Scalar],
        inputs: list[Any],
        specs: Specs,
        device: torch.device,
    ) -> Kernel:
        key = (variant.name, *knobs.values(), device, *(_key(inputs) if variant.source else ()))
        if key not in self._kernels:
            _bound(self._kernels)
            metas = tuple(to_meta(x) for x in inputs)
            arch = ""
            if device.type == "cuda":
                arch = "sm_{}{}".format(*torch.cuda.get_device_capability(device))
            made = build(
                self.op,
                variant,
                knobs,
                Case(),
                metas,
                specs,
                str(device),
                arch or ways.DEFAULT_ARCH,
            )
            self._kernels[key] = made
        return self._kernels[key]


def _sizes(op: Op, sample: list[Any]) -> frozenset[str]:
    """Scalar inputs that are the values of a case which have their names."""
    values, names = op.cases[0].values, op.input_names(len(sample))
    scalars = [(n, x) for n, x in zip(names, sample) if not isinstance(x, torch.Tensor)]
    return frozenset(n for n, x in scalars if n in values and values[n] == x)


def shapes(op: Op, inputs: list[Any]) -> list[torch.Tensor]:
    """The outputs of the reference for tensors without values, contiguous.

    Raises OpError naming the Op if its reference can't do without values.
    """
    names = op.input_names(len(inputs))
    with torch.no_grad():
        try:
            made = op.reference(
                *(torch.clone(x) if n in op.mutates else x for x, n in zip(inputs, names))
            )
        except NotSupported:
            raise
        except Exception as error:
            said = ", ".join(
                f"{n} {tuple(x.shape)}" for n, x in zip(names, inputs) if hasattr(x, "shape")
            )
            raise OpError(
                f"{op.name}: the shapes of its outputs come from the reference run without values, "
                f"and that raised {type(error).__name__}: {error} (inputs: {said})"
            ) from error
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    return [y.new_empty(y.shape) for y in outputs]


def _replay(
    kernel: Kernel, specs: Specs, inputs: list[Any], device: torch.device, *, plain: bool
) -> tuple[Replay | None, str]:
    """The launches of a CUDA variant, to be replayed; or None, and why not."""
    variant = kernel.variant
    if device.type != "cuda" or variant.way != "cuda" or not variant.fills or not kernel.launch:
        return None, f"the way {variant.way} launches by itself"
    if not plain:
        return None, "its inputs are copied or changed"
    # A tensor that is passed twice must count as two, since another call may pass two.
    given = [x.detach() if isinstance(x, torch.Tensor) else x for x in inputs]
    with _on(device):
        outputs = [torch.empty(s, dtype=d, device=device) for s, d in specs]
        launches, why = recorded(kernel.launch, outputs, given, kernel.handle.arch)
        tensors = [*outputs, *(x for x in given if isinstance(x, torch.Tensor))]
        packed = [Packed(one, tensors, kernel.handle.ready(one)) for one in launches]
    if not packed:
        return None, why
    places = [i for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)]
    forms = [(tuple(y.shape), y.stride(), y.dtype) for y in outputs]
    return Replay(packed, forms, places, outputs[0].device.index, kernel), ""


def _allocated(plan: _Planned) -> list[torch.Tensor]:
    return [torch.empty(s, dtype=d, device=plan.device) for s, d in plan.outputs]


def _owned(plan: _Planned, made: list[torch.Tensor], inputs: Sequence[Any]) -> list[torch.Tensor]:
    """Outputs as the operator's fake promises them: contiguous, in memory of their own."""
    if plan.fills:  # they are those allocated for it
        return made
    given = [x for x in inputs if isinstance(x, torch.Tensor)]
    return [_own(y, given) for y in made]


def _own(value: torch.Tensor, given: list[torch.Tensor]) -> torch.Tensor:
    if value.numel() and any(torch._C._is_alias_of(value, x) for x in given):
        return value.clone(memory_format=torch.contiguous_format)
    return value.contiguous()


def _forms(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """What tells inputs apart, without the cost of putting it into words at each call."""
    found: list[Any] = []
    for x in inputs:
        if isinstance(x, torch.Tensor):
            found += (x.dtype, x.device, x.shape, x.stride())
        else:
            found += (type(x), x or str(x))  # else 1, 1.0 and True would be one, and 0.0 and -0.0
    return tuple(found)


def _key(inputs: list[Any]) -> tuple[Any, ...]:
    return tuple((x.shape, x.dtype) if isinstance(x, torch.Tensor) else x for x in inputs)


def _bound(kept: dict[Any, Any]) -> None:
    if len(kept) >= MOST_KEPT:
        kept.pop(next(iter(kept)))


_HERE = contextlib.nullcontext()


def _on(device: torch.device) -> Any:
    """Makes a GPU the current one: launches of Triton, Numba and CUDA go to that."""
    if device.type == "cpu" or torch.cuda.current_device() == device.index:
        return _HERE
    return torch.cuda.device(device)
