"""What cvt, the comparisons and the choices give, from the ISA's text."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

import formats
from floats import Function, key
from formats import FORMATS, Format, Value, decode, encode, flush
from integers import clamp, limits, signed, width

E4M3, E5M2 = Format(4, -6, 8, 0x7F), Format(3, -14, 8, 0x7F)
MODES = {"rni": "n", "rzi": "z", "rmi": "m", "rpi": "p"}


WHOLE: dict[str, Callable[[Fraction], int]] = {"n": round, "z": int, "m": floor, "p": ceil}


def _rounded(value: Fraction, mode: str) -> int:
    return WHOLE[mode](value)


def _from_float(parts: list[str], to: str, source: str) -> Function:
    f = FORMATS[source]
    mode = MODES[next(p for p in parts if p in MODES)]
    wide = source == "f64" or width(to) == 64

    def convert(a: int) -> int:
        value = decode(f, flush(f, a) if "ftz" in parts else a)
        if value.special == "nan":
            return 1 << (width(to) - 1) if wide else 0
        if value.special:
            return limits(to)[0 if value.sign else 1]
        return clamp(to, _rounded(value.fraction, mode))

    return convert


def _whole(value: Value, mode: str) -> Value:
    """A value rounded to a whole one; a zero keeps the sign."""
    if value.special or value.zero:
        return value
    n = _rounded(value.fraction, mode)
    return Value(value.sign, abs(n), 0)


def _to_float(parts: list[str], to: str, source: str) -> Function:
    f = FORMATS[to]
    mode = next((p for p in parts if p in ("rn", "rz", "rm", "rp")), "rn")
    whole = next((MODES[p] for p in parts if p in MODES), "")
    ftz, sat = "ftz" in parts, "sat" in parts

    def convert(a: int) -> int:
        if source in FORMATS:
            given = FORMATS[source]
            value = decode(given, flush(given, a) if ftz and source == "f32" and to != "f16" else a)
        else:
            n = signed(source, a)
            value = Value(int(n < 0), abs(n), 0)
        value = _whole(value, whole) if whole else value
        bits = encode(f, value, mode)
        if ftz and to == "f32" and formats.tiny(f, value, mode):
            bits &= f.sign
        bits = formats.saturate(f, bits) if sat else bits
        if "satfinite" in parts and bits & ~f.sign == f.infinity:
            bits -= 1
        if "relu" in parts and bits & f.sign:
            return 0
        return bits

    return convert


def _eight(f: Format, bits: int, value: Value, relu: bool) -> int:
    """A value in 8 bits: beyond the largest number, that; e4m3 has numbers where IEEE has inf."""
    largest = 0x7E if f is E4M3 else 0x7B
    if value.special == "nan":
        return f.nan
    if relu and value.sign:
        return 0
    sign = value.sign << 7
    if value.special:
        return sign | largest
    roomy = Format(f.precision, f.least, 12, 0)  # with more exponents than f
    return sign | min(encode(roomy, Value(0, value.m, value.e)), largest)


def _to_eight(parts: list[str], source: str) -> Function:
    f = E4M3 if parts[-2] == "e4m3x2" else E5M2
    given = FORMATS[source.removesuffix("x2")]
    relu = "relu" in parts

    def convert(*bits: int) -> int:
        if source == "f16x2":
            bits = (bits[0] >> 16, bits[0] & 0xFFFF)
        high, low = (_eight(f, b, decode(given, b), relu) for b in bits)
        return high << 8 | low

    return convert


def _from_eight(parts: list[str], source: str) -> Function:
    f = E4M3 if source == "e4m3x2" else E5M2

    def one(byte: int) -> int:
        if f is E4M3:
            size = byte & 0x7F
            wide = Format(4, -6, 12, 0)
            value = decode(wide, size)
            value = formats.NAN if size == 0x7F else Value(byte >> 7, value.m, value.e)
        else:
            value = decode(f, byte)
        bits = encode(formats.F16, value)
        return 0 if "relu" in parts and bits >> 15 else bits

    return lambda a: one(a & 255) | one(a >> 8) << 16


def _tf32(parts: list[str]) -> Function:
    narrow = Format(11, -126, 19, 0x3FFFF)
    mode = next(p for p in parts if p in ("rna", "rn", "rz"))

    def convert(a: int) -> int:
        value = decode(formats.F32, a)
        if value.special == "nan" and mode != "rna":
            return narrow.nan << 13
        if "relu" in parts and value.sign:
            return 0
        # What an H100 does with NaN and rna: cuts the bits, and with .satfinite takes one off.
        bits = a >> 13 if value.special else encode(narrow, value, mode)
        if "satfinite" in parts and bits & ~narrow.sign >= narrow.infinity:
            bits -= 1
        return bits << 13

    return convert


def _pack(parts: list[str]) -> Function:
    kind = parts[2]
    n = width(kind)

    def pack(a: int, b: int, c: int = 0) -> int:
        high, low = (clamp(kind, signed("s32", x)) & ((1 << n) - 1) for x in (a, b))
        return c << 2 * n | high << n | low

    return pack


def _convert(parts: list[str]) -> Function:
    to, source = parts[-2], parts[-1]
    if parts[0] == "pack":
        return _pack(parts)
    if to == "tf32":
        return _tf32(parts)
    if to in ("e4m3x2", "e5m2x2"):
        return _to_eight(parts, source)
    if source in ("e4m3x2", "e5m2x2"):
        return _from_eight(parts, source)
    if to.endswith("x2"):
        one = _to_float(parts, to.removesuffix("x2"), source)
        return lambda a, b: int(one(a)) << 16 | int(one(b))  # type: ignore[arg-type]
    if to in FORMATS:
        return _to_float(parts, to, source)
    if source in FORMATS:
        return _from_float(parts, to, source)
    if "sat" in parts:
        return lambda a: clamp(to, signed(source, a))
    return lambda a: signed(source, a)


# ---- comparisons

ORDER: dict[str, Callable[[object, object], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,  # type: ignore[operator]
    "le": lambda a, b: a <= b,  # type: ignore[operator]
    "gt": lambda a, b: a > b,  # type: ignore[operator]
    "ge": lambda a, b: a >= b,  # type: ignore[operator]
}
ORDER |= {"lo": ORDER["lt"], "ls": ORDER["le"], "hi": ORDER["gt"], "hs": ORDER["ge"]}


def _compare(op: str, kind: str, ftz: bool) -> Callable[[int, int], int]:
    if kind not in FORMATS:
        unsigned = kind if kind[0] == "s" else f"u{width(kind)}"
        return lambda a, b: int(ORDER[op](signed(unsigned, a), signed(unsigned, b)))
    f = FORMATS[kind]

    def compare(a: int, b: int) -> int:
        x, y = (decode(f, flush(f, v) if ftz else v) for v in (a, b))
        unordered = "nan" in (x.special, y.special)
        if op in ("num", "nan"):
            return int(unordered == (op == "nan"))
        if unordered:
            return int(op.endswith("u"))
        # Zeros of both signs are equal.
        return int(ORDER[op.removesuffix("u")](key(x)[:2], key(y)[:2]))

    return compare


COMBINE: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _comparison(op: str, parts: list[str]) -> Function:
    kind, ftz = parts[-1], "ftz" in parts
    double = kind.endswith("x2")
    compare = _compare(parts[0], kind.removesuffix("x2"), ftz)
    combine = next((COMBINE[p] for p in parts if p in COMBINE), None)

    def both(a: int, b: int, *c: int) -> tuple[int, int]:
        if double:
            found = (compare(a & 0xFFFF, b & 0xFFFF), compare(a >> 16, b >> 16))
        else:
            found = (compare(a, b), 1 - compare(a, b))
        return (combine(found[0], *c), combine(found[1], *c)) if combine else found

    if op == "setp":
        return both
    to = parts[-2]
    yes = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(to.removesuffix("x2"), -1)

    def set_(a: int, b: int, *c: int) -> int:
        low, high = both(a, b, *c)
        if not double:
            return yes if low else 0
        return (yes & 0xFFFF if low else 0) | (yes & 0xFFFF if high else 0) << 16

    return set_


def _slct(parts: list[str]) -> Function:
    def slct(a: int, b: int, c: int) -> int:
        if parts[-1] == "s32":
            return a if signed("s32", c) >= 0 else b
        value = decode(formats.F32, flush(formats.F32, c) if "ftz" in parts else c)
        return a if value.special != "nan" and (not value.sign or value.zero) else b

    return slct


def reference(form: str) -> Function | None:
    """What a form gives, from and to bits; None: it is not one of these."""
    op, *parts = form.split(".")
    if op == "cvt":
        return _convert(parts)
    if op in ("set", "setp"):
        return _comparison(op, parts)
    if op == "selp":
        return lambda a, b, c: a if c else b
    if op == "slct":
        return _slct(parts)
    if op == "createpolicy":
        return lambda a: 0
    return None
