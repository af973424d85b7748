"""Every lane-wise form on many operands: what the C++ of the table gives.

Used by the tests, which compare it with references in Python, and by benchmarks/simt_forms.py,
which compares it with a card.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from filelock import FileLock
from formats import FORMATS, Value, encode

import assay.simt.forms as package
from assay.simt.forms import Lane, compare, convert, floating, half, integer
from assay.simt.forms.table import SIZES, Table, options

ROWS: tuple[Lane, ...] = (
    *integer.FORMS,
    *integer.CARRY,
    *floating.FORMS,
    *half.FORMS,
    *convert.FORMS,
    *compare.FORMS,
)
LANES = 256
RUNTIME = Path(package.__file__).parents[1] / "runtime"
FLAGS = (
    *("-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fno-math-errno"),
    *("-fno-trapping-math", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"),
)
IMMEDIATES = (0x96, 0xE8, 0xCA, 0x00, 0xFF, 0x1B)
"""Tables of lop3, each a function of its own."""

CPP = {"f16": "u16", "bf16": "u16", "f16x2": "u32", "bf16x2": "u32", "pred": "u32"}


@dataclass(frozen=True)
class Form:
    """A concrete form: with types and C++ filled in."""

    name: str
    row: Lane
    operands: tuple[str, ...]
    result: str
    code: str
    second: str
    immediate: int | None = None

    @property
    def label(self) -> str:
        return self.name if self.immediate is None else f"{self.name} {self.immediate:#x}"


def cpp(kind: str) -> str:
    kind = CPP.get(kind, kind)
    return "u" + kind[1:] if kind[0] == "b" else kind


def _fill(text: str, groups: dict[str, str]) -> str:
    return re.sub(r"\{([A-Za-z]\w*)\}", lambda m: groups[m.group(1)], text)


def _code(text: str, groups: dict[str, str]) -> str:
    return re.sub(r"\{(\d)\}", r"(x\1)", _fill(text, groups))


@lru_cache
def forms(row: Lane, every: bool = False) -> tuple[Form, ...]:
    """The forms of a row: all, or so many that each two choices occur together."""
    table = Table()
    table.add([row])
    found: list[Form] = []
    seen: set[object] = set()
    for name in options(row.pattern):
        match = table.find(name)
        assert match is not None, f"{row.pattern} does not match its own {name}"
        raw = sorted((k, v) for k, v in match.groups.items())
        pairs = {(a, b) for a in raw for b in raw if a <= b}
        if not every and found and pairs <= seen:
            continue
        seen |= pairs
        kinds = tuple(_fill(row.operands, match.groups).split())
        for immediate in IMMEDIATES if "imm" in kinds else (None,):
            found.append(
                Form(
                    name,
                    row,
                    kinds,
                    _fill(row.result, match.groups),
                    _code(row.code, match.groups),
                    _code(row.second, match.groups),
                    immediate,
                )
            )
    return tuple(found)


# ---- operands

HALF: tuple[int, ...] = (
    0,
    1,
    2,
    0x3FF,
    0x400,
    0x401,
    0x3BFF,
    0x3C00,
    0x3C01,
    0x3E00,
    0x4000,
    0x4248,
    0x5640,
)
HALF += (0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x6400, 0x63FF, 0x3555, 0x2E66, 0x1400, 0x7F7F, 0x7F80)
HALF += (0x3F80, 0x3F81, 0x7FC0, 0x007F, 0x0080, 0x4049, 0x4300)
SINGLE: tuple[int, ...] = (
    0,
    1,
    2,
    0x7FFFFF,
    0x800000,
    0x800001,
    0x3F800000,
    0x3F800001,
    0x3F7FFFFF,
    0x3F000000,
)
SINGLE += (0x3FC00000, 0x40200000, 0x40490FDB, 0x3FB504F3, 0x4B000001, 0x4B7FFFFF, 0x4EFFFFFF)
SINGLE += (0x4F000000, 0x4F7FFFFF, 0x4F800000, 0x5F000000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000)
SINGLE += (0x477FE000, 0x477FEFFF, 0x477FF000, 0x33000000, 0x33000001, 0x38800000, 0x387FE000)
SINGLE += (
    0x7F800001,
    0x7F801000,
    0x7FBFFFFF,
    0x7FFFFFFF,
    0x7FFFF000,
    0x7F7FF000,
    0x3F801000,
    0x3F803000,
    0x3F808000,
    0x3F818000,
    0x7F7F8000,
    0x43DF8000,
    0x43E00000,
)
SINGLE += (0x47600000, 0x3F840000, 0x3C800000, 0x7E800000, 0x7E800001, 0x0F800000, 0x42FE0000)
DOUBLE: tuple[float, ...] = (
    0.0,
    5e-324,
    2.2e-308,
    2.2250738585072014e-308,
    1.0,
    1.0000000000000002,
    0.5,
    1.5,
    2.5,
)
DOUBLE += (3.0, 1 / 3, 1e16, 4503599627370497.5, 9007199254740993.0, 2147483647.5, 4294967295.5)
DOUBLE += (9.223372036854775e18, 1.8446744073709552e19, 3.4028235677973366e38, 1e-46, 65519.99)
DOUBLE += (65520.0, 2.0**-149, 2.0**-150, 2.0**-25, 1 + 2.0**-24, 1 + 3 * 2.0**-24, 1 + 2.0**-11)
DOUBLE += tuple(2.0**-126 * (1 - k * 2.0**-25) for k in (0.3, 0.9, 1.2, 1.9, 2.1))
DOUBLE += (1.7976931348623157e308, float("inf"), float("nan"), 1e-200, 1e200, 2.0**-600, 2.0**511)


def edges(kind: str) -> list[int]:
    """Bits of the values of a type that are worth meeting."""
    size = 8 * SIZES[kind]
    if kind == "pred":
        return [0, 1]
    if kind in ("f16", "bf16"):
        return [*HALF, *(h | 0x8000 for h in HALF)]
    if kind == "f32":
        return [*SINGLE, *(s | 1 << 31 for s in SINGLE)]
    if kind == "f64":
        double = [int(np.float64(d).view(np.uint64)) for d in DOUBLE]
        return [*double, *(d | 1 << 63 for d in double)]
    top, whole = 1 << (size - 1), (1 << size) - 1
    some = {0, 1, 2, 3, 7, 8, 10, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 1000}
    some |= {top, top - 1, top + 1, whole, whole - 1, top >> 1, 0x5555555555555555, 0xFF00FF00}
    some |= {0x8000, 0x7FFF, 0xFFFF, 0x10000, 0x1000001, 0x80000000, 0x7FFFFFFF, 0xFFFFFFFF}
    return sorted({s & whole for s in some})


def _random(kind: str, draw: random.Random) -> int:
    size = 8 * SIZES[kind]
    if kind == "pred":
        return draw.getrandbits(1)
    if kind == "f32" and draw.random() < 0.7:  # numbers of like size, that meet and cancel
        return int(np.float32(draw.choice((1, 40, 3e-3)) * draw.uniform(-4, 4)).view(np.uint32))
    if kind == "f64" and draw.random() < 0.7:
        return int(np.float64(draw.uniform(-40, 40)).view(np.uint64))
    if kind == "f16" and draw.random() < 0.5:
        return int(np.float16(draw.uniform(-8, 8)).view(np.uint16))
    if kind == "bf16" and draw.random() < 0.5:
        return int(np.float32(draw.uniform(-8, 8)).view(np.uint32)) >> 16
    if draw.random() < 0.3:
        return draw.getrandbits(draw.randint(1, size))
    return draw.getrandbits(size)


def _column(kind: str, first: bool, draw: random.Random) -> list[int]:
    """One operand: edges, then random values; of the operands after the first a mixture."""
    if kind == "imm":
        return [0] * LANES
    if kind in ("f16x2", "bf16x2"):
        low, high = (_column(kind[:-2], first, draw) for _ in range(2))
        draw.shuffle(high)
        return [a | b << 16 for a, b in zip(low, high)]
    values = edges(kind)
    if first:
        made = values[: LANES * 2 // 3]
        made += [draw.choice(values) for _ in range(LANES // 2 - len(made))]
        return made + [_random(kind, draw) for _ in range(LANES - len(made))]
    return [
        draw.choice(values) if draw.random() < 0.45 else _random(kind, draw) for _ in range(LANES)
    ]


def just_below(kind: str) -> list[tuple[int, int]]:
    """Pairs whose product is below the smallest normal number by less than a rounding can tell."""
    f = FORMATS[kind]
    one, e = 1 << (f.precision - 1), f.least + 2 - f.precision
    # By how much, in units of 2^-(precision + 1) of it: at 1 and at 2 roundings change their mind.
    ranges = [(0.0, 0.3), (0.4, 0.9), (1.05, 1.4), (1.5, 1.95), (2.05, 3.0)]
    pairs: list[tuple[int, int]] = []
    for m in range(one + 1, 2 * one, max(1, one // 5000) | 1):
        n = (2 * one * one - 1) // m
        part = (2 * one * one - m * n) / (one // 2)
        if ranges and n < 2 * one and ranges[0][0] < part < ranges[0][1]:
            ranges.pop(0)
            a, b = Value(0, m, -f.precision - 1), Value(0, n, e)
            pairs.append((encode(f, a), encode(f, b)))
    return pairs


@lru_cache
def operands(kinds: tuple[str, ...]) -> np.ndarray:
    """Bits, [operand][lane], the same on every machine."""
    draw = random.Random("/".join(kinds))
    made = np.array([_column(kind, i == 0, draw) for i, kind in enumerate(kinds)], np.uint64)
    if len(kinds) > 1 and kinds[0] == kinds[1] and kinds[0] in ("f16", "bf16", "f32"):
        sign = FORMATS[kinds[0]].sign
        for i, (a, b) in enumerate(just_below(kinds[0])):
            for lane, bits in ((-1 - 2 * i, a), (-2 - 2 * i, a | sign)):
                made[:, lane] = (bits, b, *(0 for _ in kinds[2:]))
    return made


# ---- the C++ of the table, compiled once

PRELUDE = """#include "approx.h"
#pragma GCC diagnostic ignored "-Wunused-variable"
template <class T> SIMT_INLINE T get(u64 x) { T t; memcpy(&t, &x, sizeof t); return t; }
template <class T> SIMT_INLINE u64 put(T t) { u64 x = 0; memcpy(&x, &t, sizeof t); return x; }
using Operands = const u64* const*;
"""


def function(form: Form, name: str) -> str:
    """A C++ function that runs a form on n lanes."""
    lines = []
    for i, kind in enumerate(form.operands):
        if kind == "imm":
            lines.append(f"constexpr s32 x{i} = {form.immediate};")
        else:
            lines.append(f"const {cpp(kind)} x{i} = get<{cpp(kind)}>(in[{i}][l]);")
    result = cpp(form.result)
    lines.append(f"out[l] = put<{result}>(({result})({form.code}));")
    if form.second:
        lines.append(f"second[l] = ({form.second}) ? 1 : 0;")
    return (
        f'extern "C" void {name}(Operands in, u64* out, u64* second, int n) {{\n'
        f"    for (int l = 0; l < n; l++) {{ {' '.join(lines)} }}\n}}\n"
    )


def _cache() -> Path:
    """Kept between runs: a test's own ASSAY_CACHE is not."""
    path = Path(tempfile.gettempdir()) / f"assay-conformance-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _compile(source: str, runtime: str) -> Path:
    machine = subprocess.run(
        ["g++", "-march=native", "-Q", "--help=target"], capture_output=True, text=True, check=True
    ).stdout
    key = hashlib.sha256("\0".join([source, runtime, machine, *FLAGS]).encode()).hexdigest()[:24]
    path = _cache() / f"{key}.so"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            (unit := path.with_suffix(".cc")).write_text(source)
            made = path.with_suffix(".new")
            command = [
                "g++",
                *FLAGS,
                "-fPIC",
                "-shared",
                f"-I{RUNTIME}",
                str(unit),
                "-o",
                str(made),
            ]
            subprocess.run(command, check=True)
            made.replace(path)
    return path


class Compiled:
    """All forms given, as functions in shared libraries that are compiled side by side."""

    def __init__(self, given: Sequence[Form], units: int = 2) -> None:
        runtime = "".join(
            (RUNTIME / f"{name}.h").read_text()
            for name in ("numbers", "rounding", "half", "approx")
        )
        parts = [given[i::units] for i in range(units)]
        sources = [
            PRELUDE + "".join(function(form, f"form{i}") for i, form in enumerate(part))
            for part in parts
        ]
        with ThreadPoolExecutor(units) as pool:
            paths = list(pool.map(lambda s: _compile(s, runtime), sources))
        self.functions = {}
        for part, path in zip(parts, paths):
            library = ctypes.CDLL(str(path))
            for i, form in enumerate(part):
                self.functions[form.label] = getattr(library, f"form{i}")

    def run(self, form: Form, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bits of the result and of the second destination, [lane]."""
        given = np.ascontiguousarray(given, np.uint64)
        lanes = given.shape[1]
        rows = (ctypes.c_void_p * len(given))(*(row.ctypes.data for row in given))
        out, second = np.zeros(lanes, np.uint64), np.zeros(lanes, np.uint64)
        pointer = ctypes.c_void_p
        self.functions[form.label](
            rows, pointer(out.ctypes.data), pointer(second.ctypes.data), ctypes.c_int(lanes)
        )
        return out, second


def chosen() -> list[Form]:
    """The forms that are tested."""
    return [form for row in ROWS for form in forms(row)]


@lru_cache
def compiled() -> Compiled:
    return Compiled(chosen())
