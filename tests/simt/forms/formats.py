"""Binary floating point in whole numbers of Python: the independent reference of the float forms.

A finite value is sign, m, e: (-1)^sign m 2^e. Nothing here rounds but `encode`, and once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import isqrt, ldexp


@dataclass(frozen=True, eq=False)
class Format:
    """precision: bits with the hidden one. least: exponent of the smallest normal number."""

    precision: int
    least: int
    width: int
    nan: int

    @cached_property
    def infinity(self) -> int:
        """Bits of +inf: all ones in the exponent."""
        return ((1 << (self.width - self.precision)) - 1) << (self.precision - 1)

    @cached_property
    def sign(self) -> int:
        return 1 << (self.width - 1)


F16 = Format(11, -14, 16, 0x7FFF)
BF16 = Format(8, -126, 16, 0x7FFF)
F32 = Format(24, -126, 32, 0x7FFFFFFF)
F64 = Format(53, -1022, 64, 0x7FFFFFFFFFFFFFFF)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


@dataclass(frozen=True)
class Value:
    sign: int
    m: int
    e: int
    special: str = ""  # "inf" or "nan"

    @property
    def zero(self) -> bool:
        return not self.special and self.m == 0

    @cached_property
    def number(self) -> float:
        """The same as a double, where the format has no more bits than that."""
        return ldexp(-self.m if self.sign else self.m, self.e)

    @cached_property
    def fraction(self) -> Fraction:
        size = Fraction(self.m) * Fraction(2) ** self.e
        return -size if self.sign else size


NAN = Value(0, 0, 0, "nan")


def infinity(sign: int) -> Value:
    return Value(sign, 0, 0, "inf")


@cache
def decode(f: Format, bits: int) -> Value:
    sign, size = bits >> (f.width - 1) & 1, bits & (f.sign - 1)
    if size >= f.infinity:
        return infinity(sign) if size == f.infinity else NAN
    field, m = size >> (f.precision - 1), size & ((1 << (f.precision - 1)) - 1)
    unit = f.least - f.precision + 1
    return (
        Value(sign, m | 1 << (f.precision - 1), unit + field - 1) if field else Value(sign, m, unit)
    )


def encode(f: Format, value: Value, mode: str = "rn") -> int:
    """Bits of a value, rounded: rn, rz, rm (down), rp (up), rna (ties away from zero)."""
    if value.special:
        return f.nan if value.special == "nan" else f.infinity | value.sign * f.sign
    sign, m, e = value.sign, value.m, value.e
    if m == 0:
        return sign * f.sign
    lowest = f.least - f.precision + 1
    unit = max(e + m.bit_length() - 1, f.least) - f.precision + 1
    n = m << (e - unit) if e >= unit else m >> (unit - e)
    if e < unit:
        rest, half = m & ((1 << (unit - e)) - 1), 1 << (unit - e - 1)
        away = {
            "rn": rest > half or (rest == half and n & 1 == 1),
            "rna": rest >= half,
            "rz": False,
            "rm": bool(rest) and sign == 1,
            "rp": bool(rest) and sign == 0,
        }[mode]
        n += away
    # With the hidden bit in n, its carry into the exponent is the exponent's own.
    bits = ((unit - lowest) << (f.precision - 1)) + n
    if bits >= f.infinity:
        outward = mode in ("rn", "rna") or mode == ("rm" if sign else "rp")
        bits = f.infinity if outward else f.infinity - 1
    return bits | sign * f.sign


def flush(f: Format, bits: int) -> int:
    """A subnormal number becomes zero of its sign."""
    return bits & f.sign if bits & f.infinity == 0 else bits


def tiny(f: Format, value: Value, mode: str) -> bool:
    """Whether a result is flushed: it is subnormal though rounded with any exponent (an H100)."""
    if value.special or value.m == 0 or value.e + value.m.bit_length() <= f.least - 2:
        return not value.special
    roomy = Format(f.precision, f.least - 64, f.width + 8, 0)
    bits = encode(roomy, value, mode) & (roomy.sign - 1)
    return bits < encode(roomy, Value(0, 1, f.least))


def saturate(f: Format, bits: int) -> int:
    """To [+0, 1]; NaN to +0."""
    value = decode(f, bits)
    if value.special == "nan" or value.sign:
        return 0
    one = encode(f, Value(0, 1, 0))
    return min(bits, one)


def _sum(terms: list[Value], mode: str) -> Value:
    """Of finite values, exactly. A zero is -0 if all terms are, or with rm unless all are +0."""
    low = min(t.e for t in terms)
    total = sum((-1) ** t.sign * (t.m << (t.e - low)) for t in terms)
    if total == 0:
        signs = {t.sign for t in terms if t.m == 0} | ({0, 1} if any(t.m for t in terms) else set())
        return Value(signs.pop() if len(signs) == 1 else int(mode == "rm"), 0, 0)
    return Value(int(total < 0), abs(total), low)


def add(a: Value, b: Value, mode: str = "rn") -> Value:
    if a.special == "nan" or b.special == "nan":
        return NAN
    if a.special or b.special:
        if a.special and b.special and a.sign != b.sign:
            return NAN
        return a if a.special else b
    return _sum([a, b], mode)


def negate(a: Value) -> Value:
    return Value(1 - a.sign, a.m, a.e, a.special)


def multiply(a: Value, b: Value) -> Value:
    sign = a.sign ^ b.sign
    if a.special == "nan" or b.special == "nan":
        return NAN
    if a.special or b.special:
        return NAN if a.zero or b.zero else infinity(sign)
    return Value(sign, a.m * b.m, a.e + b.e)


def divide(a: Value, b: Value) -> Value:
    """Right to at least 110 bits; a last bit that is set stands for all that follow."""
    sign = a.sign ^ b.sign
    if a.special == "nan" or b.special == "nan" or (a.special and b.special):
        return NAN
    if a.special or b.zero:
        return NAN if a.zero and b.zero else infinity(sign)
    if b.special or a.zero:
        return Value(sign, 0, 0)
    shift = 170
    quotient, rest = divmod(a.m << shift, b.m)
    return Value(sign, quotient << 1 | bool(rest), a.e - b.e - shift - 1)


def square_root(a: Value) -> Value:
    if a.special == "nan" or a.zero:
        return a
    if a.sign:
        return NAN
    if a.special:
        return a
    shift = 240 + (a.e & 1)
    m = a.m << shift
    root = isqrt(m)
    return Value(0, root << 1 | (root * root != m), (a.e - shift) // 2 - 1)
