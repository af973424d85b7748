"""Which variant of an Op a call runs: one that was named, or the one that was tuned for its inputs.

`tuned`: the choice that `assay tune` kept for this very card, driver and compilers, of the same
dtypes and the nearest shapes. Where there is none, and where its variant was edited since: on a GPU
the last CUDA variant that takes every case, or of whose `when` the scalars and the dtype of the
call say that it takes this one; else Triton's, else eager; on the CPU eager.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from .. import machine
from ..adapt import autotune
from ..build import find_variant
from ..cases import parse_values
from ..describe import digest
from ..errors import OpError
from ..inputs import dtype_name
from ..op import Op, Variant, call_with
from ..tuning import lookup, store
from ..tuning.choosing import Choice
from ..types import Scalar
from .dtypes import bearer

TUNED = "tuned"
KINDS = ("cuda", "cpu")
"""Kinds of device that operators run on."""
LAUNCHED = ("triton", "cuda")
"""Ways that may be the usual one on a GPU."""

Picked = tuple[Variant, dict[str, Scalar]]


class Picker:
    """The variant and knobs of a call, by device and inputs.

    forward, cpu: `way/name KNOB=value` or `tuned`, for tensors on a GPU and on the CPU. told: names
    of scalar inputs that are the values of a case which have their names. Raises OpError for a
    variant or knob that there is not.
    """

    def __init__(self, op: Op, forward: str, cpu: str, told: frozenset[str] = frozenset()):
        self.op, self._told = op, told
        texts = dict(zip(KINDS, (forward, cpu or forward)))
        self._fixed = {kind: named(op, text) for kind, text in texts.items() if text != TUNED}
        self._kept: dict[str, tuple[Choice, ...]] = {}

    def some(self, kind: str) -> Variant:
        """A variant that a call on such a device runs where nothing is tuned."""
        return (self._fixed.get(kind) or usual(self.op, kind))[0]

    def pick(self, inputs: Sequence[Any], device: torch.device) -> Picked:
        """What runs for these inputs."""
        fixed = self._fixed.get(device.type)
        return fixed if fixed is not None else self._tuned(inputs, device)[0]

    def why(self, inputs: Sequence[Any], device: torch.device) -> str:
        """`cuda/online BLOCK=256, tuned on rows=64 n=1025`: what runs for these inputs, and why."""
        fixed = self._fixed.get(device.type)
        if fixed is not None:
            return f"{label(fixed)}, named"
        picked, why = self._tuned(inputs, device)
        return f"{label(picked)}, {why}"

    def _tuned(self, inputs: Sequence[Any], device: torch.device) -> tuple[Picked, str]:
        choice, same = lookup.nearest(self._choices(device), [_form(x) for x in inputs])
        if choice is None:
            why = f"the usual one: nothing like it is tuned on {device}"
            return self._usual(inputs, device), why
        variant = find_variant(self.op, choice.variant, dynamic=True)
        if not same and not takes(variant, self._values(inputs)):
            why = f"the usual one: {choice.variant} is fastest on {choice.case.label} alone"
            return self._usual(inputs, device), why
        return (variant, dict(choice.knobs)), f"tuned on {choice.case.label}"

    def _usual(self, inputs: Sequence[Any], device: torch.device) -> Picked:
        return usual(self.op, device.type, {} if device.type == "cpu" else self._values(inputs))

    def _values(self, inputs: Sequence[Any]) -> dict[str, Scalar]:
        """What inputs tell of the values of a case: the dtype, and scalars."""
        names = self.op.input_names(len(inputs))
        values = {n: x for n, x in zip(names, inputs) if n in self._told}
        x = None if self._bearer is None else inputs[self._bearer]
        return values if x is None else {"dtype": dtype_name(x.dtype), **values}

    @functools.cached_property
    def _bearer(self) -> int | None:
        """The input whose dtype is `dtype` of a case. Generating inputs of cases takes longer than
        a call: only where it decides."""
        told = {"dtype", *self._told}
        asked = (set(_asked(v)) for v in self.op.variants if v.way in LAUNCHED)
        return bearer(self.op) if any("dtype" in names <= told for names in asked) else None

    def _choices(self, device: torch.device) -> tuple[Choice, ...]:
        """What was tuned of this Op on a device, as far as its variants are what they were."""
        place = str(device)
        if place not in self._kept:
            here = {variant.name: digest(variant) for variant in self.op.variants}
            self._kept[place] = tuple(
                one
                for one in store.load(this_machine(), place)
                if one.op == self.op.name and here.get(one.variant) == one.source_hash
            )
        return self._kept[place]


@functools.cache
def this_machine() -> Any:
    """The machine, asked in this process: it has tensors on its devices already."""
    return machine.describe()


def usual(op: Op, kind: str, values: Mapping[str, Any] | None = None) -> Picked:
    """What runs on a kind of device of which nothing is known, for a call of these values."""
    eager = find_variant(op, "eager", dynamic=True)
    if kind == "cpu":
        return eager, {}
    there = [v for v in op.variants if v.way in LAUNCHED and takes(v, values or {})]
    there.sort(key=lambda variant: variant.way == "cuda")  # stable: the last of each stays last
    if not there:
        return eager, {}
    chosen = there[-1]
    return chosen, chosen.configurations()[0]


def takes(variant: Variant, values: Mapping[str, Any]) -> bool:
    """Whether a variant takes every call, or one that tells these values, as far as they say."""
    if variant.when is None:
        return True
    if any(p.kind is p.VAR_KEYWORD for p in _asked(variant).values()):
        return False  # it may ask for more than what is told
    try:
        return call_with(variant.when, values, f"{variant.name}: when") is True
    except Exception:  # noqa: BLE001 - made for declared cases, and no call has to be one
        return False


def _asked(variant: Variant) -> Mapping[str, inspect.Parameter]:
    """What `when` asks for, by name."""
    return inspect.signature(variant.when).parameters if variant.when is not None else {}


def named(op: Op, text: str) -> Picked:
    """The variant and knobs of `way/name KNOB=value`. Raises OpError."""
    name, *rest = text.split()
    variant = find_variant(op, name, dynamic=True)
    given = parse_values(" ".join(rest)) if rest else {}
    tuned = autotune.configurations(variant.function) if variant.way == "triton" else [{}]
    every = [{**a, **b} for a, b in itertools.product(variant.configurations(), tuned)]
    for knobs in every:
        if all(knobs.get(n) == v for n, v in given.items()):
            return variant, knobs
    there = "; ".join(" ".join(f"{k}={v}" for k, v in one.items()) for one in every)
    raise OpError(f"{op.name}: {name} has no {' '.join(rest)}; there are: {there or 'no knobs'}")


def label(picked: Picked) -> str:
    """`cuda/online BLOCK=256`."""
    variant, knobs = picked
    return " ".join([variant.name, *(f"{name}={value}" for name, value in knobs.items())])


def _form(x: Any) -> lookup.Form:
    if isinstance(x, torch.Tensor):
        return (dtype_name(x.dtype), tuple(x.shape), tuple(x.stride()))
    return (repr(x), (), ())
