"""Forms of whole numbers and bits. Source: PTX ISA 8.5, sections 9.7.1, 9.7.2 and 9.7.8.

A division by zero is left to the machine there; here it gives all ones, as cards do in 32 bits.
"""

from __future__ import annotations

from .table import Lane

Groups = dict[str, str]

WIDE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}


def _wide(groups: Groups) -> Groups:
    """W: the type of the whole product of two T."""
    return {"W": WIDE[groups["T"]]}


def _unsigned(groups: Groups) -> Groups:
    """U: the unsigned type of T's width, as which C++ counts bits."""
    return {"U": "u" + groups["T"][1:]}


def _short(groups: Groups) -> Groups:
    """E: the type of one of the two numbers of T."""
    return {"E": groups["T"][:3]}


def _dot(groups: Groups) -> Groups:
    """D: the type of the sum, signed if either factor is."""
    return {"D": "u32" if groups["A"] == groups["B"] == "u32" else "s32"}


def _part(groups: Groups) -> Groups:
    """P: the first byte of the second factor that is used."""
    return {"P": {"lo": "0", "hi": "2"}[groups["H"]]}


def _dot_part(groups: Groups) -> Groups:
    return _dot(groups) | _part(groups)


def _clamped(groups: Groups) -> Groups:
    """C: whether amounts are clamped (else they wrap)."""
    return {"C": "true" if groups["mode"] == "clamp" else "false"}


ARITHMETIC = (
    Lane("add.{T:INT}", "{T}", "{T} {T}", "wrap_add<{T}>({0}, {1})"),
    Lane("sub.{T:INT}", "{T}", "{T} {T}", "wrap_sub<{T}>({0}, {1})"),
    Lane("add.sat.s32", "s32", "s32 s32", "clamp_to<s32, s64>(s64({0}) + {1})"),
    Lane("sub.sat.s32", "s32", "s32 s32", "clamp_to<s32, s64>(s64({0}) - {1})"),
    Lane(
        "add.{T:u16x2|s16x2}",
        "b32",
        "b32 b32",
        "each_short<{E}, wrap_add<{E}>>({0}, {1})",
        "",
        _short,
    ),
    Lane("mul.lo.{T:INT}", "{T}", "{T} {T}", "wrap_mul<{T}>({0}, {1})"),
    Lane("mul.hi.{T:INT}", "{T}", "{T} {T}", "high_mul<{T}>({0}, {1})"),
    Lane("mul.wide.{T:s16|u16|s32|u32}", "{W}", "{T} {T}", "wide_mul<{T}>({0}, {1})", "", _wide),
    Lane("mad.lo.{T:INT}", "{T}", "{T} {T} {T}", "wrap_add<{T}>(wrap_mul<{T}>({0}, {1}), {2})"),
    Lane("mad.hi.{T:INT}", "{T}", "{T} {T} {T}", "wrap_add<{T}>(high_mul<{T}>({0}, {1}), {2})"),
    Lane(
        "mad.hi.sat.s32",
        "s32",
        "s32 s32 s32",
        "clamp_to<s32, s64>(s64(high_mul<s32>({0}, {1})) + {2})",
    ),
    Lane(
        "mad.wide.{T:s16|u16|s32|u32}",
        "{W}",
        "{T} {T} {W}",
        "wrap_add<{W}>(wide_mul<{T}>({0}, {1}), {2})",
        "",
        _wide,
    ),
    Lane("mul24.lo.{T:u32|s32}", "{T}", "{T} {T}", "{T}(mul24<{T}>({0}, {1}))"),
    Lane("mul24.hi.{T:u32|s32}", "{T}", "{T} {T}", "{T}(mul24<{T}>({0}, {1}) >> 16)"),
    Lane(
        "mad24.lo.{T:u32|s32}",
        "{T}",
        "{T} {T} {T}",
        "wrap_add<{T}>({T}(mul24<{T}>({0}, {1})), {2})",
    ),
    Lane(
        "mad24.hi.{T:u32|s32}",
        "{T}",
        "{T} {T} {T}",
        "wrap_add<{T}>({T}(mul24<{T}>({0}, {1}) >> 16), {2})",
    ),
    Lane(
        "mad24.hi.sat.s32",
        "s32",
        "s32 s32 s32",
        "clamp_to<s32, s64>((mul24<s32>({0}, {1}) >> 16) + {2})",
    ),
    Lane("sad.{T:INT}", "{T}", "{T} {T} {T}", "distance_plus<{T}>({0}, {1}, {2})"),
    Lane("div.{T:INT}", "{T}", "{T} {T}", "divide<{T}>({0}, {1})"),
    Lane("rem.{T:INT}", "{T}", "{T} {T}", "modulo<{T}>({0}, {1})"),
    Lane("abs.{T:SIGNED}", "{T}", "{T}", "magnitude<{T}>({0})"),
    Lane("neg.{T:SIGNED}", "{T}", "{T}", "wrap_neg<{T}>({0})"),
    Lane("min.{T:INT}", "{T}", "{T} {T}", "smaller<{T}>({0}, {1})"),
    Lane("max.{T:INT}", "{T}", "{T} {T}", "larger<{T}>({0}, {1})"),
    Lane("min.relu.s32", "s32", "s32 s32", "smaller_relu<s32>({0}, {1})"),
    Lane("max.relu.s32", "s32", "s32 s32", "larger_relu<s32>({0}, {1})"),
    Lane(
        "min.{T:u16x2|s16x2}",
        "b32",
        "b32 b32",
        "each_short<{E}, smaller<{E}>>({0}, {1})",
        "",
        _short,
    ),
    Lane(
        "max.{T:u16x2|s16x2}",
        "b32",
        "b32 b32",
        "each_short<{E}, larger<{E}>>({0}, {1})",
        "",
        _short,
    ),
    Lane("min.relu.s16x2", "b32", "b32 b32", "each_short<s16, smaller_relu<s16>>({0}, {1})"),
    Lane("max.relu.s16x2", "b32", "b32 b32", "each_short<s16, larger_relu<s16>>({0}, {1})"),
    Lane(
        "dp4a.{A:u32|s32}.{B:u32|s32}",
        "{D}",
        "{A} {B} {D}",
        "dot_bytes<{A}, {B}>({0}, {1}, u32({2}))",
        "",
        _dot,
    ),
    Lane(
        "dp2a.{H:lo|hi}.{A:u32|s32}.{B:u32|s32}",
        "{D}",
        "{A} {B} {D}",
        "dot_halves<{A}, {B}>({0}, {1}, u32({2}), {P})",
        "",
        _dot_part,
    ),
)

LOGIC = (
    Lane("and.{T:BITS}", "{T}", "{T} {T}", "{0} & {1}"),
    Lane("or.{T:BITS}", "{T}", "{T} {T}", "{0} | {1}"),
    Lane("xor.{T:BITS}", "{T}", "{T} {T}", "{0} ^ {1}"),
    Lane("not.{T:BITS}", "{T}", "{T}", "~{0}"),
    Lane("and.pred", "pred", "pred pred", "{0} & {1}"),
    Lane("or.pred", "pred", "pred pred", "{0} | {1}"),
    Lane("xor.pred", "pred", "pred pred", "{0} ^ {1}"),
    Lane("not.pred", "pred", "pred", "{0} ^ 1u"),
    Lane("cnot.{T:BITS}", "{T}", "{T}", "{0} == 0 ? 1 : 0"),
    Lane("lop3.b32", "b32", "b32 b32 b32 imm", "any_logic({0}, {1}, {2}, u32({3}))"),
    Lane(
        "lop3.or.b32",
        "b32",
        "b32 b32 b32 imm pred",
        "any_logic({0}, {1}, {2}, u32({3}))",
        "u32(any_logic({0}, {1}, {2}, u32({3})) != 0) | {4}",
    ),
    Lane(
        "lop3.and.b32",
        "b32",
        "b32 b32 b32 imm pred",
        "any_logic({0}, {1}, {2}, u32({3}))",
        "u32(any_logic({0}, {1}, {2}, u32({3})) != 0) & {4}",
    ),
    Lane("shl.{T:BITS}", "{T}", "{T} u32", "shift_left<{U}>({0}, {1})", "", _unsigned),
    Lane("shr.{T:BITS}", "{T}", "{T} u32", "shift_right<{U}>({0}, {1})", "", _unsigned),
    Lane("shr.{T:INT}", "{T}", "{T} u32", "shift_right<{T}>({0}, {1})"),
    Lane(
        "shf.l.{M:clamp|wrap}.b32", "b32", "b32 b32 u32", "funnel_left({0}, {1}, {M}_amount({2}))"
    ),
    Lane(
        "shf.r.{M:clamp|wrap}.b32", "b32", "b32 b32 u32", "funnel_right({0}, {1}, {M}_amount({2}))"
    ),
)

BITS = (
    Lane("popc.{T:b32|b64}", "u32", "{T}", "count_ones<{U}>({0})", "", _unsigned),
    Lane("clz.{T:b32|b64}", "u32", "{T}", "leading_zeros<{U}>({0})", "", _unsigned),
    Lane("bfind.{T:u32|u64|s32|s64}", "u32", "{T}", "highest_bit<{T}>({0})"),
    Lane("bfind.shiftamt.{T:u32|u64|s32|s64}", "u32", "{T}", "highest_bit_shift<{T}>({0})"),
    Lane("fns.b32", "b32", "b32 b32 s32", "nth_set({0}, {1}, {2})"),
    Lane("brev.{T:b32|b64}", "{T}", "{T}", "reversed({U}({0}))", "", _unsigned),
    Lane("bfe.{T:u32|u64|s32|s64}", "{T}", "{T} u32 u32", "extract_bits<{T}>({0}, {1}, {2})"),
    Lane(
        "bfi.{T:b32|b64}",
        "{T}",
        "{T} {T} u32 u32",
        "insert_bits<{U}>({0}, {1}, {2}, {3})",
        "",
        _unsigned,
    ),
    Lane("bmsk.{mode:clamp|wrap}.b32", "b32", "b32 b32", "bit_mask<{C}>({0}, {1})", "", _clamped),
    Lane(
        "szext.{mode:clamp|wrap}.{T:u32|s32}",
        "{T}",
        "{T} u32",
        "extend_from<{T}, {C}>({0}, {1})",
        "",
        _clamped,
    ),
    Lane("prmt.b32", "b32", "b32 b32 b32", "permute<Permute::plain>({0}, {1}, {2})"),
    Lane(
        "prmt.b32.{M:f4e|b4e|rc8|ecl|ecr|rc16}",
        "b32",
        "b32 b32 b32",
        "permute<Permute::{M}>({0}, {1}, {2})",
    ),
)

FORMS: tuple[Lane, ...] = ARITHMETIC + LOGIC + BITS

_T = "{T:u32|s32|u64|s64}"
_LOW, _HIGH = "wrap_mul<{T}>({0}, {1})", "high_mul<{T}>({0}, {1})"

CARRY: tuple[Lane, ...] = (
    # Not in FORMS as they stand: the condition code is an operand here. `.cc` writes it as a second
    # destination; `addc`, `subc` and `madc` read it as one more source, a predicate.
    Lane(f"add.cc.{_T}", "{T}", "{T} {T}", "wrap_add<{T}>({0}, {1})", "carry_of<{T}>({0}, {1}, 0)"),
    Lane(
        f"addc[.cc].{_T}",
        "{T}",
        "{T} {T} pred",
        "wrap_add<{T}>(wrap_add<{T}>({0}, {1}), {T}({2}))",
        "carry_of<{T}>({0}, {1}, {2})",
    ),
    Lane(
        f"sub.cc.{_T}", "{T}", "{T} {T}", "wrap_sub<{T}>({0}, {1})", "borrow_of<{T}>({0}, {1}, 0)"
    ),
    Lane(
        f"subc[.cc].{_T}",
        "{T}",
        "{T} {T} pred",
        "wrap_sub<{T}>(wrap_sub<{T}>({0}, {1}), {T}({2}))",
        "borrow_of<{T}>({0}, {1}, {2})",
    ),
    *(
        row
        for part, product in (("lo", _LOW), ("hi", _HIGH))
        for row in (
            Lane(
                f"mad.{part}.cc.{_T}",
                "{T}",
                "{T} {T} {T}",
                f"wrap_add<{{T}}>({product}, {{2}})",
                f"carry_of<{{T}}>({product}, {{2}}, 0)",
            ),
            Lane(
                f"madc.{part}[.cc].{_T}",
                "{T}",
                "{T} {T} {T} pred",
                f"wrap_add<{{T}}>(wrap_add<{{T}}>({product}, {{2}}), {{T}}({{3}}))",
                f"carry_of<{{T}}>({product}, {{2}}, {{3}})",
            ),
        )
    ),
)
