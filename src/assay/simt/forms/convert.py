"""Forms that convert: cvt between all types, cvt.pack, createpolicy. Source: PTX ISA 8.5, 9.7.9.

A value outside the range of a whole number becomes the nearest end of it, with or without .sat; a
NaN becomes zero, or with a 64-bit type on either side the top bit alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from .floating import FTZ, SAT, flags
from .half import FORMATS
from .table import SETS, Lane

Groups = dict[str, str]

WHOLE = ("u8", "s8", *SETS["INT"].split("|"))
NEAR = "{rnd:rn|rz|rm|rp}"
TO_WHOLE = "{rnd:rni|rzi|rmi|rpi}"
RELU, FINITE = "[.relu]", "[.satfinite]"


def _range(kind: str) -> tuple[int, int]:
    bits = int(kind[1:])
    return (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _whole() -> Iterator[Lane]:
    """Between whole numbers; .sat only where something can be out of range."""
    for to in WHOLE:
        for source in WHOLE:
            yield Lane(f"cvt.{to}.{source}", to, source, f"{to}({{0}})")
            low, high = _range(to)
            least, most = _range(source)
            if low <= least and most <= high:
                continue
            above = f"u64({{0}}) > {high}ull ? {high}ull : " if most > high else ""
            if source[0] == "s" and most > high:
                above = f"{{0}} > {high} ? {high} : "
            below = f"{{0}} < {'0' if low == 0 else f'{low}'} ? {low} : " if least < low else ""
            yield Lane(f"cvt.sat.{to}.{source}", to, source, f"{to}({below}{above}{{0}})")


def _float_and_whole() -> Iterator[Lane]:
    whole = "|".join(WHOLE)
    for source, ftz, sat, types, value in (
        ("f32", FTZ, SAT, whole, "flush<{F}>({0})"),
        ("f64", "", SAT, whole, "{0}"),
        ("f16", "", SAT, whole, "decode<Float16>({0})"),
        ("bf16", "", "", "INT", "decode<Brain16>({0})"),
    ):
        kind = "f64" if source == "f64" else "f32"
        code = f"to_integer<{{T}}, {{R}}, {kind}>({value})"
        # Out of range always goes to the nearest end: .sat adds nothing.
        pattern = f"cvt.{TO_WHOLE}{ftz}{sat}.{{T:{types}}}.{source}"
        yield Lane(pattern, "{T}", source, code, "", flags)
    for to, sat, types, code in (
        ("f32", SAT, whole, "saturate<{S}, f32>(from_integer<f32, {R}, {T}>({0}))"),
        ("f64", SAT, whole, "saturate<{S}, f64>(from_integer<f64, {R}, {T}>({0}))"),
        ("f16", SAT, whole, "half_saturate<Float16, {S}>(encode_integer<Float16, {R}, {T}>({0}))"),
        ("bf16", "", "INT", "encode_integer<Brain16, {R}, {T}>({0})"),
    ):
        yield Lane(f"cvt.{NEAR}{sat}.{to}.{{T:{types}}}", to, "{T}", code, "", flags)


def _floats() -> Iterator[Lane]:
    def row(pattern: str, to: str, source: str, code: str) -> Lane:
        return Lane(f"cvt{pattern}.{to}.{source}", to, source, code, "", flags)

    # A type to itself: only .ftz and .sat, or rounding to a whole value.
    yield row(f"{FTZ}{SAT}", "f32", "f32", "finish<{F}, {S}>({0})")
    yield row(
        f".{TO_WHOLE}{FTZ}{SAT}", "f32", "f32", "saturate<{S}>(to_whole<{R}>(flush<{F}>({0})))"
    )
    yield row(SAT, "f64", "f64", "saturate<{S}>({0})")
    yield row(f".{TO_WHOLE}{SAT}", "f64", "f64", "saturate<{S}>(to_whole<{R}>({0}))")
    yield row(SAT, "f16", "f16", "half_saturate<Float16, {S}>({0})")
    whole = "encode_nearest<Float16>(to_whole<{R}>(decode<Float16>({0})))"
    yield row(f".{TO_WHOLE}{SAT}", "f16", "f16", f"half_saturate<Float16, {{S}}>({whole})")
    whole = "encode_nearest<Brain16>(to_whole<{R}>(decode<Brain16>({0})))"
    yield row(f".{TO_WHOLE}", "bf16", "bf16", whole)
    # To a wider type, exactly.
    yield row(f"{FTZ}{SAT}", "f64", "f32", "saturate<{S}, f64>(flush<{F}>({0}))")
    # A subnormal f16 or its widening is no subnormal f32: .ftz finds nothing to flush.
    yield row(f"{FTZ}{SAT}", "f32", "f16", "saturate<{S}>(decode<Float16>({0}))")
    yield row(SAT, "f64", "f16", "saturate<{S}, f64>(decode<Float16>({0}))")
    yield row(FTZ, "f32", "bf16", "flush<{F}>(decode<Brain16>({0}))")
    yield row("", "f64", "bf16", "decode<Brain16>({0})")
    # To a narrower one.
    yield row(f".{NEAR}{FTZ}{SAT}", "f32", "f64", "f64_to_f32<{R}, {F}, {S}>({0})")
    wide = "half_saturate<Float16, {S}>(encode<Float16, {R}>({0}))"
    yield row(f".{NEAR}{SAT}", "f16", "f64", wide)
    yield row(f".{NEAR}", "bf16", "f64", "encode<Brain16, {R}>({0})")
    yield row(f".{NEAR}", "bf16", "f16", "encode<Brain16, {R}>(decode<Float16>({0}))")
    yield row(f".{NEAR}", "f16", "bf16", "encode<Float16, {R}>(decode<Brain16>({0}))")
    # .ftz flushes nothing here, as on an H100: a subnormal float is rounded as any other.
    f16 = "to_half<Float16, {R}, {S}, {Relu}, {Finite}>({0})"
    yield row(f".{NEAR}{FTZ}{SAT}", "f16", "f32", f16)
    yield row(f".{{rnd:rn|rz}}.relu{FINITE}", "f16", "f32", f16.replace("{Relu}", "true"))
    yield row(".{rnd:rn|rz}.satfinite", "f16", "f32", f16.replace("{Finite}", "true"))
    bf16 = "to_half<Brain16, {R}, false, {Relu}, {Finite}>({0})"
    yield row(f".{NEAR}", "bf16", "f32", bf16)
    yield row(f".{{rnd:rn|rz}}.relu{FINITE}", "bf16", "f32", bf16.replace("{Relu}", "true"))
    yield row(".{rnd:rn|rz}.satfinite", "bf16", "f32", bf16.replace("{Finite}", "true"))


def _pairs() -> Iterator[Lane]:
    """Two values to one register: the first is the upper part."""
    for kind, c in FORMATS.items():
        half = f"to_half<{c}, {{R}}, false, {{Relu}}, {{Finite}}>"
        yield Lane(
            f"cvt.{{rnd:rn|rz}}{RELU}{FINITE}.{kind}x2.f32",
            f"{kind}x2",
            "f32 f32",
            f"pack({half}({{0}}), {half}({{1}}))",
            "",
            flags,
        )
    for kind, mantissa in (("e4m3x2", 3), ("e5m2x2", 2)):
        f8 = f"pack8<{mantissa}>"
        yield Lane(
            f"cvt.rn.satfinite{RELU}.{kind}.f32",
            "b16",
            "f32 f32",
            f8 + "({0}, {1}, {Relu})",
            "",
            flags,
        )
        both = "(decode<Float16>(u16({0} >> 16)), decode<Float16>(u16({0})), {Relu})"
        yield Lane(f"cvt.rn.satfinite{RELU}.{kind}.f16x2", "b16", "f16x2", f8 + both, "", flags)
        yield Lane(
            f"cvt.rn{RELU}.f16x2.{kind}",
            "f16x2",
            "b16",
            f"unpack8<{mantissa}>({{0}}, {{Relu}})",
            "",
            flags,
        )


def _packed(groups: Groups) -> Groups:
    """N: bits of a part. G: whether it has a sign."""
    kind = groups["T"]
    return {"N": kind[1:], "G": "true" if kind[0] == "s" else "false"}


PRIORITY = "evict_last|evict_normal|evict_first|evict_unchanged"

OTHER = (
    Lane("cvt.rna.tf32.f32", "b32", "f32", "to_tf32_away<false>({0})"),
    Lane("cvt.rna.satfinite.tf32.f32", "b32", "f32", "to_tf32_away<true>({0})"),
    Lane(
        f"cvt.{{rnd:rn|rz}}{RELU}.tf32.f32",
        "b32",
        "f32",
        "to_tf32<{R}, {Relu}>({0})",
        "",
        flags,
    ),
    Lane("cvt.pack.sat.{T:u16|s16}.s32", "b32", "s32 s32", "pack_shorts<{T}>({0}, {1})"),
    Lane(
        "cvt.pack.sat.{T:u2|s2|u4|s4|u8|s8}.s32.b32",
        "b32",
        "s32 s32 b32",
        "pack_small<{N}, {G}>({0}, {1}, {2})",
        "",
        _packed,
    ),
    # A hint to the cache of a card, which nothing here reads.
    Lane(
        f"createpolicy.fractional.L2::{{P:{PRIORITY}}}[.L2::{{Q:evict_first|evict_unchanged}}].b64",
        "b64",
        "f32",
        "u64(0)",
    ),
    Lane("createpolicy.cvt.L2.b64", "b64", "b64", "u64(0)"),
)

FORMS: tuple[Lane, ...] = (*_whole(), *_float_and_whole(), *_floats(), *_pairs(), *OTHER)
