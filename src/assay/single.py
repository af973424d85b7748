"""One variant on one case, chosen by name and run once: what debug, export and once share.

Everything here imports the user's code, so only children call it, and `assay.commands.once`.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import math
from dataclasses import dataclass
from typing import Any

import torch

from . import ways
from .adapt import autotune
from .build import Kernel, Specs, build, find_variant
from .cases import parse_values
from .describe import facts, label
from .errors import OpError, TargetError
from .inputs import inputs_of
from .op import Op, Variant
from .target import Target, load
from .types import Case, Scalar
from .verdict.reference import output_specs

POISON = 0xFF
"""What outputs hold before a run: NaN in every float format, -1 in every integer."""


@dataclass(frozen=True)
class Single:
    """One variant with one set of knobs on one case."""

    op: Op
    variant: Variant
    knobs: dict[str, Scalar]
    case: Case

    @property
    def label(self) -> str:
        return label(self.variant.name, self.knobs)


def pick(
    target: Target, wanted: str, case: dict[str, Scalar], least: int = 0, most: int = 0
) -> Single:
    """The one variant meant, and the smallest case with these values that it takes.

    wanted: `cuda/vectorised`, a way or pattern that only one variant has, and knobs if they are
        not to be the first ones: `cuda/vectorised BLOCK=1024`.
    least: a smaller product of a case's integers comes last.
    most: the largest case instead, of those with no larger product, if any is small enough.

    Raises OpError or TargetError naming what there is.
    """
    ops = load(target)
    if len(ops) > 1:
        names = ", ".join(op.name for op in ops)
        raise TargetError(f"{target.text}: it holds {names}; name one: {target.text}:{ops[0].name}")
    op = ops[0]
    name, *given = wanted.split()
    variant = find_variant(op, _name(op, name))
    knobs = _knobs(op, variant, parse_values(" ".join(given)) if given else {})
    reasons, sizes = [], {}
    for number, said in enumerate(facts(op, case, []).cases):
        why = said.unsupported or said.skip.get(label(variant.name, knobs), "")
        if why:
            reasons.append(f"{said.case.label}: {why}")
            continue
        size = said.case.size
        down = most >= size or size < least
        sizes[(size < least or size > most > 0, -size if down else size, number)] = said.case
    if not sizes:
        raise OpError(f"{op.name}: {variant.name} takes no such case; {'; '.join(reasons[:3])}")
    return Single(op, variant, knobs, sizes[min(sizes)])


def _name(op: Op, wanted: str) -> str:
    names = [v.name for v in op.variants]
    if wanted in names:
        return wanted
    found = [n for n in names if n.split("/")[0] == wanted or fnmatch.fnmatchcase(n, wanted)]
    if len(found) != 1:
        which = (
            f"-k {wanted} is {', '.join(found)}; name one" if found else f"no variant {wanted!r}"
        )
        raise OpError(f"{op.name}: {which}; there are {', '.join(names)}")
    return found[0]


def _knobs(op: Op, variant: Variant, given: dict[str, Scalar]) -> dict[str, Scalar]:
    """The first configuration that has the given values."""
    tuned = autotune.configurations(variant.function)
    every = [{**a, **b} for a, b in itertools.product(variant.configurations(), tuned)]
    for knobs in every:
        if all(name in knobs and knobs[name] == value for name, value in given.items()):
            return knobs
    listed = "; ".join(label("", knobs).strip() for knobs in every[:8])
    raise OpError(f"{op.name}: {variant.name} has no such knobs; there are: {listed or 'none'}")


@dataclass(frozen=True)
class Placed:
    """A variant with its inputs and empty outputs, not built yet."""

    single: Single
    inputs: tuple[Any, ...]
    outputs: list[torch.Tensor]
    specs: Specs

    @property
    def mutated(self) -> list[int]:
        names = self.single.op.input_names(len(self.inputs))
        return [names.index(name) for name in self.single.op.mutates]


def place(single: Single, device: str, seed: int = 0) -> Placed:
    """Inputs and poisoned outputs on a device, each an allocation of its own."""
    op = single.op
    made = inputs_of(op, single.case, seed)
    specs = output_specs(op, made, single.case)
    tensor = torch.Tensor
    inputs = tuple(x.contiguous().clone().to(device) if isinstance(x, tensor) else x for x in made)
    filled = specs[len(op.mutates) :] if single.variant.fills else []
    return Placed(single, inputs, [poisoned(s, d, device) for s, d in filled], specs)


def poisoned(shape: tuple[int, ...], dtype: torch.dtype, device: str) -> torch.Tensor:
    """A tensor whose every byte is POISON."""
    made = torch.empty(shape, dtype=dtype, device=device)
    if made.numel():
        made.reshape(-1).view(torch.uint8).fill_(POISON)
    return made


def built(
    placed: Placed, device: str, arch: str, flags: tuple[str, ...] = (), watch: Any = None
) -> Kernel:
    """The variant built for this case, with more compiler flags. Raises BuildError, LaunchError."""
    single = placed.single
    variant = dataclasses.replace(single.variant, flags=(*single.variant.flags, *flags))
    case, op = single.case, single.op
    inputs, specs = placed.inputs, placed.specs
    return build(op, variant, single.knobs, case, inputs, specs, device, arch, watch=watch)


def unlimited(way: str, judge: str) -> None:
    """Lets an interpreter or simulator take any time (and the simulator take torch's tensors)."""
    if judge in ("interpreter", "simulator"):
        ways.way(way).limit(math.inf)


def run(placed: Placed, kernel: Kernel) -> list[Any]:
    """The outputs, those of mutated inputs first. Waits for the device."""
    with torch.no_grad():
        made = kernel.run(placed.outputs, list(placed.inputs))
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return made
