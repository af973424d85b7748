"""The zoo of inputs: which hostile cases are made of those that an Op declares.

For each dtype (and whatever else is no size) one declared case of moderate size is the base. Of it
come other sizes, one at a time, and for each input other values and layouts (hostile.py). A
variant that is not meant for the base gets those values and layouts on the smallest sizes that it
is meant for among the declared ones, of which all but one may be clipped. A case is only asked if
the Op itself can answer it: if its inputs and reference take it and, where it has other values, if
eager PyTorch in the same dtype is right there. So no kernel is asked for more than PyTorch gives.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from ..describe import left_out
from ..errors import OpError
from ..hostile import CONTIGUOUS, LAYOUTS, SIZE, VALUES, applies
from ..inputs import inputs_of
from ..op import KINDS, Op, Variant, supported
from ..types import Case, Scalar
from .budget import Expected, arithmetic
from .compare import within
from .reference import clone, output_specs, outputs_of

SIZES = (0, 1, 13, 65, 257, 1025)
"""None, one, primes, just above powers of two."""
GRID = 65_537
"""Above what a grid may have in y and z."""
MOST_INPUTS = 3
"""Inputs that are made hostile, from the first."""
SMALL, MODERATE, MOST = 64, 1 << 16, 1 << 22
"""Elements: a base has more than the first and at most the second; no case has more than MOST."""
CLIP = 96
"""A size of the base where every declared case is larger than moderate."""
OWN_CLIP, OWN_MOST, OWN_BASES = 8, 1 << 20, 3
"""Of cases for variants that are not meant for the base: what all sizes but one are clipped to, how
many elements there are at most, and how many such cases a dtype has."""


@dataclass(frozen=True)
class Hostile:
    """One case of the zoo."""

    case: Case
    strided: bool = False
    """Whether it shows only where inputs come in their own layout."""
    grid: bool = False
    """Whether it shows only where there is a grid of blocks."""
    compares: bool = True
    """Whether eager must be right on it first: its values are others than those declared."""
    of: tuple[str, ...] = ()
    """Variants that are not meant for the base, whose case this is; empty for everybody's."""


def hostile(
    op: Op,
    declared: list[Case],
    near: tuple[int, ...],
    seed: int,
    asked: Collection[str] | None = None,
) -> Iterator[Hostile]:
    """Every case that the zoo has for these. near: sizes of blocks, to be exceeded by one; asked:
    names of the variants that it is for, by default all."""
    groups: dict[tuple[tuple[str, Scalar], ...], list[Case]] = {}
    sizes = size_names(op, declared[0], seed)
    for case in declared:
        rest = tuple((n, v) for n, v in case.values.items() if n not in sizes)
        groups.setdefault(rest, []).append(case)
    variants = [v for v in op.variants if asked is None or v.name in asked]
    for rest, cases in groups.items():
        base, inputs = _base(op, cases, sizes, seed)
        yield from _sizes(op, base, sizes, near, inputs, seed)
        yield from _twists(op, base, inputs)
        left = [variant for variant in variants if not _meant(op, variant, base)]
        for own, inputs, of in _own_bases(op, left, declared, dict(rest), sizes, seed):
            for one in _twists(op, own, inputs):
                yield replace(one, of=of)


def _meant(op: Op, variant: Variant, case: Case) -> bool:
    """Whether a variant is meant for a case that the Op promises, with some of its knobs."""
    if variant.when is None:
        return True
    try:
        took = any(not left_out(op, variant, case, knobs) for knobs in variant.configurations())
        return took and not supported(op, case)
    except Exception:  # noqa: BLE001 - of sizes that nobody declared; of declared ones it is told
        return False


def _own_bases(
    op: Op,
    variants: list[Variant],
    declared: list[Case],
    rest: dict[str, Scalar],
    sizes: list[str],
    seed: int,
) -> Iterator[tuple[Case, tuple[Any, ...], tuple[str, ...]]]:
    """Cases that variants are meant for, of declared sizes or with all but one of them clipped, the
    smallest first; their inputs, and whose each is. A variant that takes none has none."""
    made = [{**case.values, **rest} for case in declared]
    for values in tuple(made):
        clipped = {name: min(int(values[name]), OWN_CLIP) for name in sizes}
        made += [{**values, **clipped, name: values[name]} for name in sizes]
    found = {case.label: case for case in (Case(values, declared[0].seed) for values in made)}
    bases = 0
    for case in sorted(found.values(), key=lambda case: _product(case, sizes)):
        if not variants or bases == OWN_BASES or _product(case, sizes) > OWN_MOST:
            return
        of = tuple(variant.name for variant in variants if _meant(op, variant, case))
        inputs = _changed(op, case, {}, seed) if of else None
        if inputs is None or not SMALL < _elements(op, case, inputs) <= OWN_MOST:
            continue
        variants, bases = [v for v in variants if v.name not in of], bases + 1
        yield case, inputs, of


def size_names(op: Op, case: Case, seed: int) -> list[str]:
    """Names of the case's integers that change the shape of an input when they grow by one."""
    shapes, names = _shapes(inputs_of(op, case, seed)), []
    for name, value in case.values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            continue
        grown = _changed(op, case, {name: value + 1}, seed)
        if grown is not None and _shapes(grown) != shapes:
            names.append(name)
    return names


def _shapes(values: tuple[Any, ...]) -> list[tuple[int, ...]]:
    return [tuple(v.shape) for v in values if isinstance(v, torch.Tensor)]


def _changed(op: Op, case: Case, values: dict[str, Scalar], seed: int) -> tuple[Any, ...] | None:
    """The inputs of a case with other values; None if the Op's inputs do not take them."""
    try:
        return inputs_of(op, Case({**case.values, **values}, case.seed), seed)
    except OpError:
        return None


def _elements(op: Op, case: Case, inputs: tuple[Any, ...]) -> int:
    """Elements of inputs and, unless those are many already, of outputs."""
    given = sum(v.numel() for v in inputs if isinstance(v, torch.Tensor))
    if given > MODERATE:
        return given
    specs = output_specs(op, inputs, case)
    return given + sum(torch.Size(shape).numel() for shape, _ in specs)


def _base(op: Op, cases: list[Case], sizes: list[str], seed: int) -> tuple[Case, tuple[Any, ...]]:
    """The declared case of moderate size, or one with its sizes clipped, and its inputs."""
    known = []
    for case in sorted(cases, key=lambda c: _product(c, sizes)):
        inputs = inputs_of(op, case, seed)
        known.append((case, inputs))
        elements = _elements(op, case, inputs)
        if SMALL < elements <= MODERATE:
            return known[-1]
        if elements > MODERATE:
            break
    case, inputs = known[-1]
    clipped = Case({**case.values, **{n: min(int(case.values[n]), CLIP) for n in sizes}}, case.seed)
    changed = _changed(op, case, clipped.values, seed)
    if changed is not None and _elements(op, clipped, changed) > SMALL:
        return clipped, changed
    return known[0]


def _product(case: Case, sizes: list[str]) -> int:
    total = 1
    for name in sizes:
        total *= max(1, int(case.values[name]))
    return total


def _sizes(
    op: Op,
    base: Case,
    sizes: list[str],
    near: tuple[int, ...],
    inputs: tuple[Any, ...],
    seed: int,
) -> Iterator[Hostile]:
    if _excluded(op, SIZE, ""):
        return
    elements = max(1, _elements(op, base, inputs))
    for name in sizes:
        own = max(1, int(base.values[name]))
        power = _power(op, base, name, elements, seed)
        for size in dict.fromkeys((*SIZES, *near, GRID)):
            if size == base.values[name] or elements * (size / own) ** power > MOST:
                continue
            made = Case({**base.values, name: size}, base.seed, SIZE)
            yield Hostile(made, grid=size == GRID)


def _power(op: Op, base: Case, name: str, elements: int, seed: int) -> float:
    """The power of a size that elements grow with: 2 for the side of a square."""
    values = {**base.values, name: 2 * max(1, int(base.values[name]))}
    inputs = _changed(op, base, values, seed)
    if inputs is None:
        return 1.0
    return max(1.0, math.log2(max(1, _elements(op, Case(values, base.seed), inputs)) / elements))


def _twists(op: Op, base: Case, inputs: tuple[Any, ...]) -> Iterator[Hostile]:
    names = op.input_names(len(inputs))
    tensors = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
    for index in tensors[:MOST_INPUTS]:
        name = names[index]
        for kind in KINDS:
            if kind == SIZE or not applies(kind, inputs[index]) or _excluded(op, kind, name):
                continue
            if kind in VALUES and op.accept is not None:
                continue  # what it accepts is its own matter
            if kind in ("expanded", "broadcast") and name in op.mutates:
                continue  # nothing can be written to it
            case = Case(base.values, base.seed, f"{name}:{kind}")
            kept = kind in LAYOUTS and kind not in ("expanded", "broadcast")
            strided = kind in LAYOUTS and kind not in CONTIGUOUS
            yield Hostile(case, strided=strided, compares=not kept)


def _excluded(op: Op, kind: str, name: str) -> bool:
    return kind in op.excludes or f"{name}:{kind}" in op.excludes


def unasked(one: Hostile, runs: list[tuple[tuple[Any, ...], Expected]], op: Op) -> str:
    """Why a case with other values asks nothing: eager is not right on it, or barely. Else ""."""
    if not one.compares:
        return ""
    for inputs, expected in runs:
        roundoff = arithmetic([x.dtype for x in inputs if isinstance(x, torch.Tensor)], "")
        try:
            with torch.no_grad():
                made = outputs_of(op, [clone(x) for x in inputs])
        except OpError as error:
            return str(error)
        for index, (out, truth) in enumerate(zip(made, expected.truth)):
            allowed = expected.allowed(index, roundoff, op.limit)
            if not within(out, truth, allowed):
                return "eager itself is not right here"
        if expected.tight and op.limit is None:
            return "eager itself is too far off to say what may be asked"
    return ""
