"""Forms of mma.sync and wmma.mma taken apart, their operands' values, and the products' bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

BITS = {
    **{"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32},
    **{"e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4},
}
FLOATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "e4m3": (4, 3), "e5m2": (5, 2)}
"""Bits of the exponent and of the mantissa."""
LAST = {"f32": 2.0**-23, "f16": 2.0**-10, "f64": 2.0**-52}


@dataclass(frozen=True)
class Product:
    """One form. Shape (m, n, k); types of A, B, C and D."""

    form: str
    shape: tuple[int, int, int]
    a: str
    b: str
    c: str
    d: str
    clamped: bool

    @property
    def whole(self) -> bool:
        """Whether it is exact integer arithmetic."""
        return self.d == "s32"


def product(form: str) -> Product:
    """Takes a form apart. `wmma.mma` of f16 names only D and C."""
    shape = re.search(r"\.m(\d+)n(\d+)k(\d+)", form)
    assert shape
    types = [word for word in form.split(".") if word in BITS]
    d, a, b, c = (types[0], "f16", "f16", types[1]) if len(types) == 2 else types
    m, n, k = map(int, shape.groups())
    return Product(form, (m, n, k), a, b, c, d, "satfinite" in form)


def values(bits: np.ndarray, kind: str) -> np.ndarray:
    """The numbers that elements' bits stand for, by the formats' definitions: f64 or int64."""
    bits = bits.astype(np.uint64)
    if kind in ("u8", "u4"):
        return bits.astype(np.int64)
    if kind in ("s8", "s4", "s32"):
        half = 1 << (BITS[kind] - 1)
        return (bits.astype(np.int64) ^ half) - half
    if kind == "f64":
        return bits.view(np.float64)
    if kind == "f32":
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if kind == "tf32":
        bits = bits >> np.uint64(13)  # what is below is not looked at
    exponents, mantissas = FLOATS[kind]
    field = (bits >> np.uint64(mantissas)).astype(np.int64) & ((1 << exponents) - 1)
    fraction = (bits & np.uint64((1 << mantissas) - 1)).astype(np.float64) / 2**mantissas
    bias = (1 << (exponents - 1)) - 1
    size = np.where(field == 0, np.ldexp(fraction, 1 - bias), np.ldexp(1 + fraction, field - bias))
    top = field == (1 << exponents) - 1
    if kind == "e4m3":  # no infinity; one NaN
        size = np.where(top & (fraction == 0.875), np.nan, size)
    else:
        size = np.where(top, np.where(fraction == 0, np.inf, np.nan), size)
    negative = bits >> np.uint64(exponents + mantissas) & np.uint64(1)
    return np.where(negative == 1, -size, size)


def exact(form: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The product of elements' bits: exact for integers (as D has it), else to f64's precision,
    in long double where the platform has it."""
    x, y, z = values(a, form.a), values(b, form.b), values(c, form.c)
    if form.whole:
        total = np.matmul(x, y) + z
        if form.clamped:
            return np.clip(total, -(2**31), 2**31 - 1)
        return (total + 2**31) % 2**32 - 2**31
    wide = np.matmul(x.astype(np.longdouble), y.astype(np.longdouble)) + z
    return np.asarray(wide)


def weight(form: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """S = |c| + sum of |a b|."""
    x, y, z = values(a, form.a), values(b, form.b), values(c, form.c)
    return np.matmul(np.abs(x), np.abs(y)) + np.abs(z)


def random_bits(
    rng: np.random.Generator, kind: str, shape: tuple[int, ...], spread: int = 2
) -> np.ndarray:
    """Bits of random finite elements. Floats: sign, mantissa and about `spread` exponents around 1
    at random; all bits of a tf32's register. Integers: any."""
    width = BITS[kind]
    if kind not in FLOATS and kind not in ("f32", "f64"):
        return rng.integers(0, 1 << width, shape, dtype=np.uint64)
    if kind in ("f32", "f64", "tf32"):
        numbers = rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)
        if kind == "f64":
            return numbers.view(np.uint64)
        return numbers.astype(np.float32).view(np.uint32).astype(np.uint64)
    exponents, mantissas = FLOATS[kind]
    bias = (1 << (exponents - 1)) - 1
    field = rng.integers(bias - spread, bias + spread + 1, shape).astype(np.uint64)
    rest = rng.integers(0, 1 << mantissas, shape, dtype=np.uint64)
    sign = rng.integers(0, 2, shape, dtype=np.uint64)
    return sign << np.uint64(exponents + mantissas) | field << np.uint64(mantissas) | rest


def cancelling(
    rng: np.random.Generator, form: Product, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Operands whose sums nearly vanish: the second half of k repeats the first with A negated,
    but for the last, and C is small. [count, ...] of bits."""
    m, n, k = form.shape
    a = random_bits(rng, form.a, (count, m, k), spread=4 if BITS[form.a] > 8 else 2)
    b = random_bits(rng, form.b, (count, k, n), spread=4 if BITS[form.b] > 8 else 2)
    c = random_bits(rng, form.c, (count, m, n), spread=1)
    if not form.whole:
        half = k // 2
        a[..., half:] = a[..., :half] ^ np.uint64(1 << (BITS[form.a] - 1))
        b[..., half:, :] = b[..., :half, :]
        a[..., k - 1] = random_bits(rng, form.a, (count, m), spread=1)
    return a, b, c
