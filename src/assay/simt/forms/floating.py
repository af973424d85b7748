"""Forms of f32 and f64 arithmetic, and how exact the approximate ones are on a card.

Source: PTX ISA 8.5, section 9.7.3. Without a rounding modifier a card may join a product and a sum;
here each is rounded to nearest by itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from .table import Lane

Groups = dict[str, str]

MODES = {"": "N", "rn": "N", "rz": "Z", "rm": "M", "rp": "P", "rni": "N", "rzi": "Z"} | {
    "rmi": "M",
    "rpi": "P",
}
FLAGS = {
    "F": "ftz",
    "S": "sat",
    "Nan": "NaN",
    "Xor": "xor",
    "Relu": "relu",
    "Finite": "satfinite",
    "Odd": "odd",
}
"""C++ names of modifiers that are template arguments, true or false."""


def flags(groups: Groups) -> Groups:
    """R: the rounding mode, and each modifier as a C++ bool."""
    found = {name: str(bool(groups.get(word))).lower() for name, word in FLAGS.items()}
    return found | {"R": "Round::" + MODES[groups.get("rnd", "")]}


RND = "{rnd:rn|rz|rm|rp}"
FTZ, SAT, NAN = "[.ftz]", "[.sat]", "[.NaN]"
XOR = "[.{xor:xorsign.abs}]"


def _binary(name: str) -> tuple[Lane, ...]:
    return (
        Lane(
            f"{name}[.{RND}]{FTZ}{SAT}.f32",
            "f32",
            "f32 f32",
            f"f32_{name}<{{R}}, {{F}}, {{S}}>({{0}}, {{1}})",
            "",
            flags,
        ),
        Lane(
            f"{name}[.{RND}].f64",
            "f64",
            "f64 f64",
            f"rounded_{name}<{{R}}>({{0}}, {{1}})",
            "",
            flags,
        ),
    )


def _extreme(name: str, larger: str) -> tuple[Lane, ...]:
    return (
        Lane(
            f"{name}{FTZ}{NAN}{XOR}.f32",
            "f32",
            "f32 f32",
            f"f32_extreme<{larger}, {{F}}, {{Nan}}, {{Xor}}>({{0}}, {{1}})",
            "",
            flags,
        ),
        Lane(f"{name}.f64", "f64", "f64 f64", f"extreme<{larger}, false, f64>({{0}}, {{1}})"),
    )


def _approximate(name: str, code: str) -> Lane:
    return Lane(f"{name}.approx{FTZ}.f32", "f32", "f32", code, "", flags)


EXACT = (
    *_binary("add"),
    *_binary("sub"),
    *_binary("mul"),
    Lane(
        f"fma.{RND}{FTZ}{SAT}.f32",
        "f32",
        "f32 f32 f32",
        "f32_fma<{R}, {F}, {S}>({0}, {1}, {2})",
        "",
        flags,
    ),
    Lane(f"fma.{RND}.f64", "f64", "f64 f64 f64", "rounded_fma<{R}>({0}, {1}, {2})", "", flags),
    # Since sm_20 `mad` is `fma`.
    Lane(
        f"mad.{RND}{FTZ}{SAT}.f32",
        "f32",
        "f32 f32 f32",
        "f32_fma<{R}, {F}, {S}>({0}, {1}, {2})",
        "",
        flags,
    ),
    Lane(f"mad.{RND}.f64", "f64", "f64 f64 f64", "rounded_fma<{R}>({0}, {1}, {2})", "", flags),
    Lane(f"div.{RND}{FTZ}.f32", "f32", "f32 f32", "f32_div<{R}, {F}>({0}, {1})", "", flags),
    Lane(f"div.{RND}.f64", "f64", "f64 f64", "rounded_div<{R}>({0}, {1})", "", flags),
    Lane(f"rcp.{RND}{FTZ}.f32", "f32", "f32", "f32_div<{R}, {F}>(1.0f, {0})", "", flags),
    Lane(f"rcp.{RND}.f64", "f64", "f64", "rounded_div<{R}>(1.0, {0})", "", flags),
    Lane(f"sqrt.{RND}{FTZ}.f32", "f32", "f32", "f32_sqrt<{R}, {F}>({0})", "", flags),
    Lane(f"sqrt.{RND}.f64", "f64", "f64", "rounded_sqrt<{R}>({0})", "", flags),
    *_extreme("min", "false"),
    *_extreme("max", "true"),
    Lane(f"abs{FTZ}.f32", "f32", "f32", "__builtin_fabsf(flush<{F}>({0}))", "", flags),
    Lane("abs.f64", "f64", "f64", "__builtin_fabs({0})"),
    Lane(f"neg{FTZ}.f32", "f32", "f32", "-flush<{F}>({0})", "", flags),
    Lane("neg.f64", "f64", "f64", "-{0}"),
    Lane("copysign.{T:FLOAT}", "{T}", "{T} {T}", "sign_of_first<{T}>({0}, {1})"),
    Lane(
        "testp.{K:finite|infinite|number|notanumber|normal|subnormal}.{T:FLOAT}",
        "pred",
        "{T}",
        "is_kind<Kind::{K}, {T}>({0})",
    ),
)

NEAR = (
    Lane(f"div.approx{FTZ}.f32", "f32", "f32 f32", "f32_div_approx<{F}>({0}, {1})", "", flags),
    Lane(f"div.full{FTZ}.f32", "f32", "f32 f32", "f32_div<Round::N, {F}>({0}, {1})", "", flags),
    _approximate("rcp", "f32_div<Round::N, {F}>(1.0f, {0})"),
    _approximate("sqrt", "f32_sqrt<Round::N, {F}>({0})"),
    _approximate("rsqrt", "f32_rsqrt<{F}>({0})"),
    _approximate("sin", "f32_sin<{F}>({0})"),
    _approximate("cos", "f32_cos<{F}>({0})"),
    _approximate("lg2", "f32_lg2<{F}>({0})"),
    _approximate("ex2", "f32_ex2<{F}>({0})"),
    Lane("tanh.approx.f32", "f32", "f32", "tanh_of({0})"),
    Lane("rcp.approx.ftz.f64", "f64", "f64", "f64_rcp_gross({0})"),
    Lane("rsqrt.approx.f64", "f64", "f64", "1.0 / __builtin_sqrt({0})"),
    Lane("rsqrt.approx.ftz.f64", "f64", "f64", "f64_rsqrt_gross({0})"),
)

FORMS: tuple[Lane, ...] = EXACT + NEAR


@dataclass(frozen=True)
class Bound:
    """How far a card's result may be from the true one: the largest of the three.

    ulp: in units of the last place of the result's type. least, most: of the magnitude of the last
    operand; outside nothing is promised but for zeros, infinities and NaN.
    """

    ulp: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    least: float = 0.0
    most: float = float("inf")
    source: str = "PTX ISA 8.5, section 9.7.3"


def _both(opcode: str, bound: Bound) -> dict[str, Bound]:
    return {f"{opcode}.f32": bound, f"{opcode}.ftz.f32": bound}


ISA_HALF = "PTX ISA 8.5, section 9.7.4"
GROSS = (
    "PTX ISA 8.5, section 9.7.3: the upper 32 bits count, so 20 of the fraction; no figure given"
)

APPROXIMATE: dict[str, Bound] = {
    **_both("div.approx", Bound(ulp=2, least=2.0**-126, most=2.0**126)),
    **_both("div.full", Bound(ulp=2)),
    **_both("rcp.approx", Bound(ulp=1)),
    **_both("sqrt.approx", Bound(relative=2.0**-23)),
    **_both("rsqrt.approx", Bound(relative=2.0**-22.9)),
    **_both("sin.approx", Bound(absolute=2.0**-20.5, most=2 * 3.141592653589793)),
    **_both("cos.approx", Bound(absolute=2.0**-20.5, most=2 * 3.141592653589793)),
    **_both("lg2.approx", Bound(relative=2.0**-22, absolute=2.0**-22)),
    **_both("ex2.approx", Bound(ulp=2)),
    "tanh.approx.f32": Bound(relative=2.0**-11),
    "rcp.approx.ftz.f64": Bound(relative=2.0**-19, source=GROSS),
    "rsqrt.approx.ftz.f64": Bound(relative=2.0**-19, source=GROSS),
    "rsqrt.approx.f64": Bound(ulp=2, source="CUDA C++ Programming Guide, rsqrt: 1 ulp; doubled"),
    "ex2.approx.f16": Bound(relative=2.0**-9.9, source=ISA_HALF),
    "ex2.approx.f16x2": Bound(relative=2.0**-9.9, source=ISA_HALF),
    "ex2.approx.ftz.bf16": Bound(relative=2.0**-7, source=ISA_HALF),
    "ex2.approx.ftz.bf16x2": Bound(relative=2.0**-7, source=ISA_HALF),
    "tanh.approx.f16": Bound(absolute=2.0**-10.987, source=ISA_HALF),
    "tanh.approx.f16x2": Bound(absolute=2.0**-10.987, source=ISA_HALF),
    "tanh.approx.bf16": Bound(absolute=2.0**-8, source=ISA_HALF),
    "tanh.approx.bf16x2": Bound(absolute=2.0**-8, source=ISA_HALF),
}
"""What the card promises of each approximate form; every other form is exact.

The figures are those of the PTX ISA as far as they could be had without its text at hand; an H100
stays within all of them (benchmarks/simt_forms.py).
"""
