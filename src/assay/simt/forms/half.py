"""Forms of f16, bf16 and pairs of them, as raw bits.

Source: PTX ISA 8.5, sections 9.7.4 (arithmetic) and 9.7.7 (comparison).
"""

from __future__ import annotations

from .compare import FLOAT, LOGIC, combined
from .floating import FTZ, NAN, SAT, XOR, flags
from .table import Lane

Groups = dict[str, str]

FORMATS = {"f16": "Float16", "bf16": "Brain16"}
FORMS_OF = (("f16", FTZ, SAT), ("bf16", "", ""))
"""Each format with the modifiers that only f16 has."""


def _lanes(pattern: str, kind: str, function: str, count: int) -> tuple[Lane, Lane]:
    """A form of one half, and of a pair."""
    arguments = ", ".join(f"{{{i}}}" for i in range(count))
    return (
        Lane(
            f"{pattern}.{kind}",
            kind,
            " ".join([kind] * count),
            f"{function}({arguments})",
            "",
            flags,
        ),
        Lane(
            f"{pattern}.{kind}x2",
            f"{kind}x2",
            " ".join([f"{kind}x2"] * count),
            f"both<{function}>({arguments})",
            "",
            flags,
        ),
    )


def _arithmetic() -> list[Lane]:
    rows: list[Lane] = []
    for kind, ftz, sat in FORMS_OF:
        c = FORMATS[kind]
        for name in ("add", "sub", "mul"):
            rows += _lanes(f"{name}[.rn]{ftz}{sat}", kind, f"half_{name}<{c}, {{F}}, {{S}}>", 2)
        if sat:
            rows += _lanes(f"fma.rn{ftz}{sat}", kind, f"half_fma<{c}, {{F}}, {{S}}, false>", 3)
            rows += _lanes(f"fma.rn{ftz}.relu", kind, f"half_fma<{c}, {{F}}, false, true>", 3)
        else:
            rows += _lanes("fma.rn[.relu]", kind, f"half_fma<{c}, false, false, {{Relu}}>", 3)
        rows += _lanes(f"neg{ftz}", kind, f"half_neg<{c}, {{F}}>", 1)
        rows += _lanes(f"abs{ftz}", kind, f"half_abs<{c}, {{F}}>", 1)
        for name, larger in (("min", "false"), ("max", "true")):
            function = f"half_extreme<{c}, {larger}, {{F}}, {{Nan}}, {{Xor}}>"
            rows += _lanes(f"{name}{ftz}{NAN}{XOR}", kind, function, 2)
        rows += _lanes("tanh.approx", kind, f"half_tanh<{c}>", 1)
    rows += _lanes("ex2.approx", "f16", "half_ex2<Float16, false>", 1)
    rows += _lanes("ex2.approx.ftz", "bf16", "half_ex2<Brain16, true>", 1)
    return rows


def _compared() -> list[Lane]:
    rows: list[Lane] = []
    for kind, ftz, _ in FORMS_OF:
        test = f"half_test<{FORMATS[kind]}, {{F}}, Test::{{op}}>"
        low, high = f"{test}(u16({{0}}), u16({{1}}))", f"{test}(u16({{0}} >> 16), u16({{1}} >> 16))"
        one = f"{FORMATS[kind]}::one"
        for logic, more, then in (("", "", ""), (f".{LOGIC}", " pred", " {B} {2}")):
            start = f"{FLOAT}{logic}{ftz}"
            first, upper = low + then, high + then
            halves, pairs = f"{kind} {kind}{more}", f"{kind}x2 {kind}x2{more}"

            def pair(yes: str, first: str = first, upper: str = upper) -> str:
                return f"(({first}) ? u32({yes}) : 0) | (({upper}) ? u32({yes}) : 0) << 16"

            rows += [
                Lane(f"setp.{start}.{kind}", "pred", halves, first, "", combined),
                # Two predicates: of the low halves and of the high.
                Lane(f"setp.{start}.{kind}x2", "pred", pairs, first, upper, combined),
                Lane(
                    f"set.{start}.{{D:u16|s16|u32|s32}}.{kind}",
                    "{D}",
                    halves,
                    f"({first}) ? ~0u : 0",
                    "",
                    combined,
                ),
                Lane(
                    f"set.{start}.{kind}.{kind}",
                    kind,
                    halves,
                    f"({first}) ? {one} : 0",
                    "",
                    combined,
                ),
                Lane(
                    f"set.{start}.{{D:u32|s32}}.{kind}x2",
                    "{D}",
                    pairs,
                    pair("0xFFFFu"),
                    "",
                    combined,
                ),
                Lane(f"set.{start}.{kind}x2.{kind}x2", f"{kind}x2", pairs, pair(one), "", combined),
            ]
    return rows


FORMS: tuple[Lane, ...] = (*_arithmetic(), *_compared())
