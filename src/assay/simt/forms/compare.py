"""Forms that compare and choose: setp, set, selp, slct, mov. Source: PTX ISA 8.5, section 9.7.6.

Halves are compared as floats, in half.py.
"""

from __future__ import annotations

from .table import Lane

Groups = dict[str, str]

FLOAT = "{op:eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan}"
LOGIC = "{bool:and|or|xor}"
COMBINED = {"and": "&", "or": "|", "xor": "^"}


def combined(groups: Groups) -> Groups:
    """B: the C++ operator of .and, .or, .xor. F: whether .ftz is there. Y: `set`'s true."""
    return {
        "B": COMBINED.get(groups.get("bool", ""), ""),
        "F": "true" if groups.get("ftz") else "false",
        "Y": "1.0f" if groups.get("D") == "f32" else "~0u",
        "U": "u" + groups.get("T", "")[1:],
    }


def _comparisons() -> list[Lane]:
    ordered = "test<Test::{op}, {T}>({0}, {1})"
    flushed = "test<Test::{op}, f32>(flush<{F}>({0}), flush<{F}>({1}))"
    rows = []
    for op, ftz, kind, test in (
        ("{op:eq|ne}", "", "{T:BITS}", ordered.replace("{T}", "{U}")),
        ("{op:eq|ne|lt|le|gt|ge}", "", "{T:INT}", ordered),
        ("{op:lo|ls|hi|hs}", "", "{T:UNSIGNED}", ordered),
        (FLOAT, "[.ftz]", "f32", flushed),
        (FLOAT, "", "f64", ordered.replace("{T}", "f64")),
    ):
        two = "{T} {T}" if kind.startswith("{") else f"{kind} {kind}"
        for logic, three, yes, no in (
            ("", two, test, f"{test} ^ 1u"),
            ("." + LOGIC, two + " pred", f"{test} {{B}} {{2}}", f"({test} ^ 1u) {{B}} {{2}}"),
        ):
            rows += [
                Lane(f"setp.{op}{logic}{ftz}.{kind}", "pred", three, yes, no, combined),
                Lane(
                    f"set.{op}{logic}{ftz}.{{D:u32|s32|f32}}.{kind}",
                    "{D}",
                    three,
                    f"({yes}) != 0 ? {{Y}} : 0",
                    "",
                    combined,
                ),
            ]
    return rows


ANY = "b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64"

FORMS: tuple[Lane, ...] = (
    *_comparisons(),
    Lane(f"selp.{{T:{ANY}}}", "{T}", "{T} {T} pred", "{2} != 0 ? {0} : {1}"),
    Lane(f"slct.{{T:{ANY}}}.s32", "{T}", "{T} {T} s32", "{2} >= 0 ? {0} : {1}"),
    Lane(f"slct.{{T:{ANY}}}.f32", "{T}", "{T} {T} f32", "{2} >= 0 ? {0} : {1}"),
    Lane(f"slct.ftz.{{T:{ANY}}}.f32", "{T}", "{T} {T} f32", "flush<true>({2}) >= 0 ? {0} : {1}"),
)
