"""Which dtypes an operator takes: of all inputs at once, those that one of the Op's cases has.

A kernel is compiled, or written, for the dtypes that cases give it: another would be misread, int64
as twice as many int32. So a call's dtypes have to be those of a case, or become so where one dtype
is put for another throughout, which `torch_op(..., dtypes=)` allows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ..errors import OpError
from ..inputs import dtype_name, inputs_of
from ..op import Op
from ..types import Case

Dtypes = tuple[torch.dtype | None, ...]
"""Of each input; None for what is no tensor."""


class Known:
    """The dtypes of an Op's cases. sample: the inputs of the first; more: names of further dtypes,
    each of which may stand for one of its kind."""

    def __init__(self, op: Op, sample: Sequence[Any], more: Sequence[str]):
        self._op, self._first, self.more = op, of(sample), tuple(more)
        self._all: tuple[Dtypes, ...] = ()

    def refusal(self, names: Sequence[str], inputs: Sequence[Any]) -> str:
        """Why inputs are not taken, and what to do; empty if they are."""
        asked = of(inputs)
        if self._is(asked, self._first):
            return ""
        if not self._all:  # generating inputs takes longer than a call: only where it is needed
            self._all = tuple(dict.fromkeys((self._first, *(d for _, d in _of_cases(self._op)))))
        if any(self._is(asked, one) for one in self._all):
            return ""
        return self._told(names, asked)

    def _is(self, asked: Dtypes, known: Dtypes) -> bool:
        """Whether dtypes are those of a case, as far as it has tensors there, or become so when one
        of them is put for another of its kind."""
        places = [(a, k) for a, k in zip(asked, known) if a is not None and k is not None]
        others = [a for a, k in zip(asked, known) if a is not None and k is None]
        changed = {(a, k) for a, k in places if a != k}
        if any(a not in {b for b, _ in places} for a in others):
            return False  # where this case has no tensor, one of a dtype that it has nowhere
        if len(changed) != 1:
            return not changed
        [(new, old)] = changed
        put = new.is_floating_point == old.is_floating_point and dtype_name(new) in self.more
        return put and all(a == new for a, k in places if k == old)

    def _told(self, names: Sequence[str], asked: Dtypes) -> str:
        """The first input whose dtype no case has there; else the first two that none has so."""
        todo = "add a case, or say torch_op(..., dtypes=...)"
        for place, dtype in enumerate(asked):
            there = {known[place] for known in self._all} - {None}
            if dtype is None or not there or dtype in there or dtype_name(dtype) in self.more:
                continue
            said = ", ".join(sorted(map(dtype_name, there)))
            also = f", and dtypes= takes {', '.join(self.more)}" if self.more else ""
            return (
                f"{names[place]} is {dtype_name(dtype)}, which none of its cases covers (they have "
                f"{said}{also}), so that no check speaks for it; {todo}"
            )
        given = [(name, dtype) for name, dtype in zip(names, asked) if dtype is not None]
        (first, one), *rest = given
        other, two = next((pair for pair in rest if pair[1] != one), given[-1])
        return (
            f"{first} is {dtype_name(one)} and {other} {dtype_name(two)}, which none of its cases "
            "mixes; convert one"
        )


def of(inputs: Sequence[Any]) -> Dtypes:
    """Dtypes of inputs."""
    return tuple(x.dtype if isinstance(x, torch.Tensor) else None for x in inputs)


def named(op: Op) -> tuple[str, ...]:
    """The dtypes that an Op's cases name."""
    found = [str(v) for c in op.cases for n, v in c.values.items() if "dtype" in n]
    return tuple(name for name in dict.fromkeys(found) if hasattr(torch, name))


def bearer(op: Op) -> int | None:
    """Which input has the dtype that its case calls `dtype`, in every case; None if none has, and
    where the inputs of a case can't be made: then no more is known of calls than their scalars."""
    places: set[int] | None = None
    try:
        for case, dtypes in _of_cases(op):
            told = case.values.get("dtype")
            here = {i for i, d in enumerate(dtypes) if d is not None and dtype_name(d) == told}
            places = here if places is None else places & here
    except OpError:
        return None
    return min(places) if places else None


def _of_cases(op: Op) -> Iterator[tuple[Case, Dtypes]]:
    """The smallest case of each kind, and its dtypes: those that differ in numbers alone have the
    same."""
    kinds: dict[tuple[Any, ...], Case] = {}
    for case in sorted(op.cases, key=lambda case: case.size):
        kind = tuple((n, v) for n, v in case.values.items() if _told_apart(v))
        kinds.setdefault(kind, case)
    for case in kinds.values():
        with torch.device("cpu"), torch.no_grad():  # whatever the caller's is
            made = of(inputs_of(op, case, 0))
        yield case, made


def _told_apart(value: Any) -> bool:
    return isinstance(value, (bool, str)) or value is None
