"""What the forms of floating point give: exact ones as bits, approximate ones as true values."""

from __future__ import annotations

from collections.abc import Callable

import formats
import mpmath
from formats import BF16, F16, F32, F64, FORMATS, Format, Value, decode, encode, flush

Function = Callable[..., "int | tuple[int, int]"]

MODES = ("rn", "rz", "rm", "rp")
ARITHMETIC = ("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt")
NEAR = ("ex2", "lg2", "sin", "cos", "tanh", "rcp", "rsqrt", "sqrt", "div")


def _arithmetic(op: str, parts: list[str], f: Format) -> Function:
    mode = next((p for p in parts if p in MODES), "rn")
    one = Value(0, 1, 0)
    compute: dict[str, Callable[..., Value]] = {
        "add": lambda a, b: formats.add(a, b, mode),
        "sub": lambda a, b: formats.add(a, formats.negate(b), mode),
        "mul": formats.multiply,
        "fma": lambda a, b, c: formats.add(formats.multiply(a, b), c, mode),
        "mad": lambda a, b, c: formats.add(formats.multiply(a, b), c, mode),
        "div": formats.divide,
        "rcp": lambda a: formats.divide(one, a),
        "sqrt": formats.square_root,
    }
    ftz, sat, relu = "ftz" in parts, "sat" in parts, "relu" in parts

    def arithmetic(*bits: int) -> int:
        given = [decode(f, flush(f, b) if ftz else b) for b in bits]
        value = compute[op](*given)
        result = encode(f, value, mode)
        if ftz and formats.tiny(f, value, mode):
            result &= f.sign
        if relu and result & f.sign and decode(f, result).special != "nan":
            return 0
        return formats.saturate(f, result) if sat else result

    return arithmetic


def key(value: Value) -> tuple[int, float, int]:
    """Orders numbers, with -0 below +0."""
    if value.special:
        return (-1 if value.sign else 1, 0, 0)
    return (0, value.number, -value.sign)


def _extreme(op: str, parts: list[str], f: Format) -> Function:
    choose = min if op == "min" else max
    ftz, keep_nan, xor = "ftz" in parts, "NaN" in parts, "xorsign" in parts

    def extreme(*bits: int) -> int:
        given = [flush(f, b) if ftz else b for b in bits]
        sign = (given[0] ^ given[1]) & f.sign if xor else 0
        if xor:
            given = [b & ~f.sign for b in given]
        numbers = [b for b in given if decode(f, b).special != "nan"]
        if not numbers or (keep_nan and len(numbers) < 2):
            return f.nan
        return choose(numbers, key=lambda b: key(decode(f, b))) | sign

    return extreme


def _plain(op: str, parts: list[str], f: Format) -> Function | None:
    ftz = "ftz" in parts

    def one(a: int) -> int:
        a = flush(f, a) if ftz else a
        return a & ~f.sign if op == "abs" else a ^ f.sign

    if op in ("abs", "neg"):
        return one
    if op == "copysign":
        return lambda a, b: (a & f.sign) | (b & ~f.sign)
    if op == "testp":
        return lambda a: int(_is(parts[0], decode(f, a), f))
    return None


def _is(kind: str, value: Value, f: Format) -> bool:
    small = value.m < 1 << (f.precision - 1)
    return {
        "finite": not value.special,
        "infinite": value.special == "inf",
        "number": value.special != "nan",
        "notanumber": value.special == "nan",
        "normal": not value.special and (not small or value.m == 0),  # the ISA: zeros are
        "subnormal": not value.special and small and value.m != 0,
    }[kind]


def pairwise(function: Function) -> Function:
    """A function of halves, on both halves of words."""

    def pair(*words: int) -> int:
        low, high = (function(*((w >> s) & 0xFFFF for w in words)) for s in (0, 16))
        assert isinstance(low, int)
        assert isinstance(high, int)
        return low | high << 16

    return pair


def reference(form: str) -> Function | None:
    """What an exact form gives, from and to bits; None: it is not one."""
    op, *parts = form.split(".")
    kind = parts[-1] if parts else ""
    f = FORMATS.get(kind.removesuffix("x2"))
    if f is None or op in ("cvt", "set", "setp", "selp", "slct") or "approx" in parts:
        return None
    if op in ARITHMETIC and "full" not in parts:
        found: Function | None = _arithmetic(op, parts, f)
    elif op in ("min", "max"):
        found = _extreme(op, parts, f)
    else:
        found = _plain(op, parts, f)
    return pairwise(found) if found and kind.endswith("x2") else found


# ---- approximate forms

SPECIALS: dict[str, Callable[..., Value | None]] = {
    "ex2": lambda a: a if a.special == "inf" and not a.sign else None,
    "tanh": lambda a: Value(a.sign, 1, 0) if a.special == "inf" else a if a.zero else None,
    "lg2": lambda a: (
        formats.infinity(1) if a.zero else formats.NAN if a.sign else a if a.special else None
    ),
    "sin": lambda a: formats.NAN if a.special else a if a.zero else None,
    "cos": lambda a: formats.NAN if a.special else None,
    "rsqrt": lambda a: (
        formats.infinity(a.sign)
        if a.zero
        else formats.NAN
        if a.sign
        else Value(0, 0, 0)
        if a.special
        else None
    ),
}
"""What is exact: a value, else None."""

TRUE: dict[str, Callable[[mpmath.mpf], mpmath.mpf]] = {
    "ex2": lambda x: mpmath.power(2, x),
    "lg2": lambda x: mpmath.log(x, 2),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tanh": mpmath.tanh,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}


def approximate(form: str) -> Callable[..., Value | mpmath.mpf] | None:
    """The true value of an approximate form, from bits of one element's operands."""
    op, *parts = form.split(".")
    f = FORMATS.get(parts[-1].removesuffix("x2")) if parts else None
    if f is None or op not in NEAR or not {"approx", "full"} & set(parts):
        return None
    ftz = "ftz" in parts

    def true(*bits: int) -> Value | mpmath.mpf:
        values = [decode(f, flush(f, b) if ftz else b) for b in bits]
        if any(v.special == "nan" for v in values):
            return formats.NAN
        if op == "div":
            return _finite(formats.divide(*values))
        if op == "rcp":
            return _finite(formats.divide(Value(0, 1, 0), *values))
        if op == "sqrt":
            return _finite(formats.square_root(*values))
        exact = SPECIALS[op](*values)
        if exact is not None:
            return exact
        if values[0].special:  # 2 to the power of -inf
            return Value(0, 0, 0)
        with mpmath.workprec(160):
            return TRUE[op](number(values[0]))

    return true


def number(value: Value) -> mpmath.mpf:
    with mpmath.workprec(400):
        return mpmath.mpf((-1) ** value.sign * value.m) * mpmath.mpf(2) ** value.e


def _finite(value: Value) -> Value | mpmath.mpf:
    return value if value.special or value.zero else number(value)


def element(form: str) -> tuple[Format, bool]:
    """The format of an approximate form's elements and whether there are two in a word."""
    kind = form.split(".")[-1]
    return FORMATS[kind.removesuffix("x2")], kind.endswith("x2")


__all__ = ["BF16", "F16", "F32", "F64", "approximate", "element", "reference"]
