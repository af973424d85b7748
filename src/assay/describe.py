"""The describe process: imports the user's file once, and says what is in it as data."""

from __future__ import annotations

import hashlib
import inspect
import itertools
from pathlib import Path
from typing import Any

import msgspec

from . import lines
from .adapt import autotune
from .cache import source_digests
from .cases import case_of, expanded, is_range
from .errors import AssayError, OpError
from .op import Op, Variant, call_with, cost, supported
from .processes.channel import Channel
from .target import Target, load
from .types import Case, Scalar


class VariantFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A variant without its functions."""

    name: str
    way: str
    fills: bool
    configurations: tuple[dict[str, Scalar], ...]
    precision: str = ""
    source_hash: str = ""
    where: str = ""
    """`file:line` of its function."""
    lines: int | None = None
    """Lines of code: see lines.py."""
    layouts: str = "contiguous"


class CaseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A case, and the reason why the Op does not promise it (empty if it does)."""

    case: Case
    unsupported: str = ""
    bytes: int | None = None
    flops: int | None = None
    strided: bool = False
    """A hostile case that shows only where inputs come in their own layout."""
    grid: bool = False
    """A hostile case that shows only where there is a grid of blocks."""
    of: tuple[str, ...] = ()
    """Variants that a hostile case is for; empty for all."""

    @property
    def far(self) -> bool:
        """Whether an input spans gigabytes, of which next to nothing is touched."""
        return self.case.zoo.endswith(":far")

    skip: dict[str, str] = {}
    """Variant and knobs -> why `when=` leaves it out."""


class OpFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An Op without its functions."""

    name: str
    cases: tuple[CaseFacts, ...]
    variants: tuple[VariantFacts, ...]
    mutates: bool = False


def main(channel: Channel, target: dict, case: dict, dtypes: list[str]) -> None:
    """The child's job: sends {ops: [...]} or {mistake: text}."""
    try:
        ops = load(msgspec.convert(target, Target))
        channel.send(ops=[msgspec.to_builtins(facts(op, case, dtypes)) for op in ops])
    except AssayError as error:
        channel.send(mistake=str(error))


def chosen(op: Op, wanted: dict[str, Scalar], dtypes: list[str]) -> list[Case]:
    """The cases that have these values; a case of its own if they name every value, or a range.

    With `dtypes` one of its own for each, if they name every value but the dtype.
    Raises OpError if there is none.
    """
    names = list(op.cases[0].values)
    unknown = [name for name in wanted if all(name not in c.values for c in op.cases)]
    if unknown:
        raise OpError(
            f"{op.name}: no case has {unknown[0]!r}; the values are {', '.join(names) or 'none'}"
        )
    found = _swept(op, wanted, dtypes) if any(map(is_range, wanted.values())) else []
    found = found or [c for c in op.cases if all(c.values.get(n) == v for n, v in wanted.items())]
    if not found and set(wanted) == set(names):
        found = [Case({name: wanted[name] for name in names})]
    if not found and dtypes and {*wanted, "dtype"} == set(names) != set(wanted):
        every = [{**wanted, "dtype": dtype} for dtype in dtypes]
        found = [Case({name: values[name] for name in names}) for values in every]
    if dtypes:
        found = [c for c in found if c.values.get("dtype") in dtypes]
    if not found:
        listed = "; ".join(c.label for c in op.cases[:8])
        asked = " ".join(f"{n}={v}" for n, v in wanted.items())
        if dtypes:
            asked = f"{asked} dtype={' or '.join(dtypes)}".strip()
        raise OpError(
            f"{op.name}: no case has {asked}; give every value for a new one, "
            f"or choose among: {listed}"
        )
    return found


def _swept(op: Op, wanted: dict[str, Scalar], dtypes: list[str]) -> list[Case]:
    """A case for each value of the ranges; of names not given, the values of the first case."""
    first = op.cases[0].values
    own = [{"dtype": d} for d in dtypes if "dtype" not in wanted] or [{}]
    return [case_of({**first, **one, **dtype}) for one in expanded(wanted) for dtype in own]


def facts(op: Op, case: dict[str, Scalar], dtypes: list[str]) -> OpFacts:
    """What the parent needs to know of an Op."""
    variants = variant_facts(op)
    return OpFacts(
        name=op.name,
        cases=tuple(case_facts(op, c, variants) for c in chosen(op, case, dtypes)),
        variants=variants,
        mutates=bool(op.mutates),
    )


def variant_facts(op: Op) -> tuple[VariantFacts, ...]:
    """All variants, without their functions."""
    return tuple(_variant(v) for v in op.variants)


def _variant(variant: Variant) -> VariantFacts:
    tuned = autotune.configurations(variant.function)
    own = variant.configurations()
    return VariantFacts(
        name=variant.name,
        way=variant.way,
        fills=variant.fills,
        configurations=tuple({**a, **b} for a, b in itertools.product(own, tuned)),
        precision=variant.precision,
        source_hash=digest(variant),
        where=_where(variant),
        lines=lines.count(variant),
        layouts=variant.layouts,
    )


def label(name: str, knobs: dict[str, Scalar]) -> str:
    """Variant and knobs as one key."""
    return " ".join([name, *(f"{k}={v}" for k, v in knobs.items())])


def left_out(op: Op, variant: Variant, case: Case, knobs: dict[str, Scalar]) -> str:
    """Why a variant with these of its knobs is not meant for a case; empty if it is."""
    if variant.when is None:
        return ""
    answer = call_with(variant.when, {**case.values, **knobs}, f"{op.name}: when")
    if answer is True:
        return ""
    return answer if isinstance(answer, str) else "its `when` leaves this case out"


def case_facts(
    op: Op,
    case: Case,
    variants: tuple[VariantFacts, ...],
    *,
    strided: bool = False,
    grid: bool = False,
    of: tuple[str, ...] = (),
) -> CaseFacts:
    """What the parent needs to know of a case. Raises OpError if the Op does not take it."""
    skip = {}
    for said, variant in zip(variants, op.variants):
        for knobs in said.configurations:
            own = {k: v for k, v in knobs.items() if k in variant.knobs}
            why = left_out(op, variant, case, own)
            if why:
                skip[label(variant.name, knobs)] = why
    return CaseFacts(
        case=case,
        unsupported=supported(op, case),
        bytes=cost(op, "bytes", case),
        flops=cost(op, "flops", case),
        strided=strided,
        grid=grid,
        of=of,
        skip=skip,
    )


def _where(variant: Variant) -> str:
    code: Any = getattr(inspect.unwrap(variant.function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else ""


def digest(variant: Variant) -> str:
    """Hash of the file that holds the function, and of the kernel source with its headers."""
    code: Any = getattr(inspect.unwrap(variant.function), "__code__", None)
    paths = [Path(code.co_filename)] if code and Path(code.co_filename).is_file() else []
    if variant.source:
        paths.append(variant.source)
    digests = source_digests(paths, [Path(f) for f in variant.include])
    whole = "".join(each for _, each in sorted(digests.items()))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]
