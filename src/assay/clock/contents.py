"""The values of the inputs while kernels are timed: two sets in turn, at last a secret one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from ..inputs import dtype_name, inputs_of
from ..op import Op
from ..types import Input, replace
from .member import Member
from .protocol import Plan


class Contents:
    """Two sets of values for the inputs, of the two seeds that the oracle knows from judging; at
    the end, those of a seed that this process learns only then."""

    def __init__(self, op: Op, given: Plan, first: tuple[Any, ...]):
        self.now = 0
        self._op, self._case = op, given.case
        self.sets = [first, inputs_of(op, given.case, given.seed + 1)]
        self._on: dict[str, list[tuple[Any, ...]]] = {}

    def renew(self, seed: int) -> None:
        """Values that nobody has seen take the place of all others."""
        self.now, self._on = 0, {}
        self.sets = [inputs_of(self._op, self._case, seed)]

    def swap(self, members: list[Member]) -> None:
        """Gives every member the other values."""
        self.now = 1 - self.now
        for member in members:
            self.fill(member, range(len(member.inputs[0])))

    def fill(self, member: Member, which: Iterable[int]) -> None:
        """Puts the present values into some of a member's inputs, in each of its sets."""
        for index in which:
            for placed in member.inputs:
                target = placed[index]
                if isinstance(target, torch.Tensor) and target.numel():
                    _owned(target).copy_(_owned(self._values(str(target.device))[index]))

    def _values(self, device: str) -> tuple[Any, ...]:
        if device not in self._on:
            self._on[device] = [
                tuple(x.to(device) if isinstance(x, torch.Tensor) else x for x in values)
                for values in self.sets
            ]
        return self._on[device][self.now]


def _owned(value: torch.Tensor) -> torch.Tensor:
    """Each element once: an expanded dimension, which repeats one in memory, is cut to it."""
    for dim, step in enumerate(value.stride()):
        if step == 0 and value.shape[dim] > 1:
            value = value.narrow(dim, 0, 1)
    return value


SEEN = 1 << 16
"""Elements of a tensor that are looked at to describe it."""


def described(names: Iterable[str], values: tuple[Any, ...]) -> tuple[Input, ...]:
    """What each input is, by its form and some of its values."""
    return tuple(_one(name, value) for name, value in zip(names, values))


def _one(name: str, value: Any) -> Input:
    if not isinstance(value, torch.Tensor):
        return Input(name=name, text=repr(value))
    form = Input(
        name=name,
        dtype=dtype_name(value.dtype),
        shape=tuple(value.shape),
        stride=tuple(value.stride()),
    )
    if not value.numel() or value.dtype.is_complex:
        return form
    flat = _owned(value).detach().reshape(-1)
    some = flat[:: max(1, flat.numel() // SEEN)].cpu().to(torch.float64)
    return replace(
        form,
        low=float(some.min()),
        high=float(some.max()),
        mean=float(some.mean()),
        zeros=float((some == 0).double().mean()),
    )
