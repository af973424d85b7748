"""The facts of a variant on a case, without a GPU: launches and counts from children on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from .. import ways
from ..counting import counted_in
from ..describe import CaseFacts, OpFacts, label
from ..errors import AssayError, NotRun
from ..inside.geometry.variant import COMPILED, Launches, launches_in
from ..pipeline import describe
from ..session import Session
from ..target import Target
from ..types import Case, Scalar
from .cards import Card
from .extending import extended
from .model import Facts, Launch, Operator

COUNTED_SIZE = 1 << 16
"""Product of a case's integers up to which it is run on the CPU to be counted: seconds."""
FIRST = 32
"""What the first integer of a case, often a number of rows, is halved down to at least."""
SECONDS = 600.0


@dataclass(frozen=True)
class Wanted:
    """One variant with its case: the largest that fits the given values."""

    op: OpFacts
    variant: str
    """As `-k` takes it, knobs included."""
    way: str
    precision: str
    case: CaseFacts


def chosen(session: Session, target: Target, variant: str, values: dict[str, Scalar]) -> Wanted:
    """What is to be explained. Raises AssayError for a variant or case that there is not."""
    op, name = only_op(describe(session, target, values), target), variant.split()[0]
    found = [v for v in op.variants if v.name == name] or [v for v in op.variants if v.way == name]
    if len(found) != 1:
        there = ", ".join(v.name for v in op.variants)
        raise AssayError(f"{op.name}: -k {variant} names {len(found)} variants; there are {there}")
    one, given = found[0], variant.split()[1:]
    first = label(one.name, one.configurations[0] if one.configurations else {})
    takes = [c for c in op.cases if not c.unsupported and not c.case.zoo and first not in c.skip]
    if not takes:
        raise AssayError(f"{op.name}: {one.name} takes no such case")
    case = max(takes, key=lambda c: c.case.size)
    return Wanted(op, " ".join([one.name, *given]), one.way, one.precision, case)


def only_op(ops: list[OpFacts], target: Target) -> OpFacts:
    """The one Op of a target. Raises AssayError naming them if there are several."""
    if len(ops) > 1:
        names = ", ".join(op.name for op in ops)
        raise AssayError(f"{target.text}: it holds {names}; name one: {target.text}:{ops[0].name}")
    return ops[0]


def facts_of(session: Session, target: Target, wanted: Wanted, card: Card) -> Facts:
    """All that can be found out on a CPU; what can't be is in `unknown`."""
    case = wanted.case
    made = Facts(
        card=card,
        op=wanted.op.name,
        label=wanted.variant,
        case=case.case.label,
        must_bytes=case.bytes,
        flops=case.flops,
        precision=wanted.precision,
        dtype=str(case.case.values.get("dtype", "")),
    )
    if wanted.way in COMPILED:
        return _counted(session, target, wanted, _launched(session, target, wanted, made))
    if wanted.way == "eager":
        return _dispatched(session, target, wanted, made)
    return replace(made, unknown=(f"{wanted.way} kernels are not counted on a CPU",))


def _launched(session: Session, target: Target, wanted: Wanted, made: Facts) -> Facts:
    values, card = wanted.case.case.values, made.card
    try:
        found = launches_in(
            session, target, wanted.variant, values, card.arch, card.multiprocessors
        )
    except NotRun as reason:
        return replace(made, unknown=(*made.unknown, f"launches: {reason}"))
    return replace(
        made,
        launches=launches(found),
        label=found.label,
        must_bytes=made.must_bytes if made.must_bytes is not None else found.bytes,
        moved_bytes=found.operand_bytes,
    )


def launches(found: Launches) -> tuple[Launch, ...]:
    """Launches as launch geometry has them, as an explanation needs them."""
    return tuple(
        Launch(
            one,
            times,
            taken.spill_store_bytes + taken.spill_load_bytes if taken else 0,
            taken.stack_bytes if taken else 0,
        )
        for one, times, taken in zip(found.geometries, found.times, found.taken)
    )


def _counted(session: Session, target: Target, wanted: Wanted, made: Facts) -> Facts:
    """Counts of the case made smaller, so that running it on a CPU takes seconds."""
    values = wanted.case.case.values
    small = smaller(values, COUNTED_SIZE)
    arch = made.card.arch if wanted.way == "cuda" else ""
    scale = _work(values) / _work(small)
    try:
        found = counted_in(session, target, wanted.variant, small, arch, join=True)
        counts = found.counts
        if scale > 1:
            half = smaller(small, _work(small) // 2)
            less = counted_in(session, target, wanted.variant, half, arch, join=True).counts
            times = _work(values) / _work({**values, **_same(small, half)})
            counts = extended(counts, less, _work(small) / _work(half), scale / times, times)
    except (NotRun, AssayError) as reason:
        return replace(made, unknown=(*made.unknown, f"counts: {reason}"))
    return replace(
        made,
        counts=counts,
        loads=found.loads,
        counted_case=found.case,
        scale=scale,
    )


def _same(one: dict[str, Scalar], other: dict[str, Scalar]) -> dict[str, Scalar]:
    return {name: value for name, value in one.items() if other[name] == value}


def _work(values: dict[str, Scalar]) -> int:
    return max(1, Case(values=values).size)


def smaller(values: dict[str, Scalar], most: int) -> dict[str, Scalar]:
    """A case with a product of at most `most`: even integers halved, the first one down to FIRST,
    then the largest, so that what is aligned stays aligned and rows stay long."""
    made = dict(values)
    whole = [name for name, value in made.items() if type(value) is int]
    while Case(values=made).size > most:
        even = [name for name in whole if int(made[name]) > 1 and int(made[name]) % 2 == 0]
        if not even:
            break
        first = [name for name in even if name == whole[0] and int(made[name]) > FIRST]
        name = first[0] if first else max(even, key=lambda n: int(made[n]))
        made[name] = int(made[name]) // 2
    return made


def _dispatched(session: Session, target: Target, wanted: Wanted, made: Facts) -> Facts:
    args: dict[str, Any] = {"target": msgspec.to_builtins(target), "wanted": wanted.variant}
    args["case"] = wanted.case.case.values
    answer = session.ask(
        "assay.explain.dispatching:main",
        args,
        name=f"dispatch {wanted.variant}",
        seconds=SECONDS,
        env=ways.here("eager", "cpu").env,
    )
    if "not_run" in answer:
        return replace(made, unknown=(*made.unknown, f"operators: {answer['not_run']}"))
    must = made.must_bytes if made.must_bytes is not None else answer["bytes"]
    return replace(
        made,
        operators=tuple(msgspec.convert(one, Operator) for one in answer["operators"]),
        must_bytes=must,
    )
