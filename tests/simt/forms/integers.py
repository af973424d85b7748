"""What the forms of whole numbers and bits give, from the text of the ISA, in Python's numbers."""

from __future__ import annotations

from collections.abc import Callable

Function = Callable[..., "int | tuple[int, int]"]


def width(kind: str) -> int:
    return int(kind.lstrip("sub").split("x")[0])


def signed(kind: str, bits: int) -> int:
    """The value of bits as a number of a type."""
    n = width(kind)
    bits &= (1 << n) - 1
    return bits - (1 << n) if kind[0] == "s" and bits >> (n - 1) else bits


def limits(kind: str) -> tuple[int, int]:
    n = width(kind)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if kind[0] == "s" else (0, (1 << n) - 1)


def clamp(kind: str, value: int) -> int:
    low, high = limits(kind)
    return max(low, min(high, value))


def truncated(a: int, b: int) -> int:
    """A quotient cut towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _divide(a: int, b: int) -> int:
    return -1 if b == 0 else truncated(a, b)


def _modulo(a: int, b: int) -> int:
    return -1 if b == 0 else a - b * truncated(a, b)


SIMPLE: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "sad": lambda a, b, c: abs(a - b) + c,
    "div": _divide,
    "rem": _modulo,
    "abs": abs,
    "neg": lambda a: -a,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "cnot": lambda a: int(a == 0),
    "popc": lambda a: bin(a).count("1"),
}


def _shift(op: str, kind: str) -> Function:
    n = width(kind)
    if op == "shl":
        return lambda a, by: a << min(by, n)
    return lambda a, by: signed(kind, a) >> min(by, n)


def _product(op: str, part: str, kind: str) -> Function:
    n = width(kind)

    def product(a: int, b: int, c: int = 0, *carry: int) -> int:
        whole = signed(kind, a) * signed(kind, b)
        if part == "hi":
            whole >>= n
        if op == "mul":
            return whole
        return whole + signed(kind, c)

    return product


def _product24(op: str, part: str, kind: str, saturated: bool) -> Function:
    def of24(x: int) -> int:
        x &= 0xFFFFFF
        return x - (1 << 24) if kind == "s32" and x >> 23 else x

    def product(a: int, b: int, c: int = 0) -> int:
        whole = of24(a) * of24(b)
        whole = whole >> 16 if part == "hi" else whole
        low = signed(kind, whole)
        if saturated:
            return clamp("s32", low + signed("s32", c))
        return low + c

    return product


def bit_string(a: int, n: int) -> list[int]:
    return [a >> i & 1 for i in range(n)]


def from_bits(bits: list[int]) -> int:
    return sum(bit << i for i, bit in enumerate(bits))


def _field(kind: str) -> Callable[[int], int]:
    """Places and lengths above 255, which the ISA leaves open, as an H100 takes them."""
    return (lambda x: x) if width(kind) == 64 else (lambda x: x & 255)


def _bfe(kind: str) -> Function:
    msb, field = width(kind) - 1, _field(kind)

    def bfe(a: int, b: int, c: int) -> int:
        pos, count = field(b), field(c)
        bits = bit_string(a, msb + 1)
        fill = 0 if kind[0] == "u" or count == 0 else bits[min(pos + count - 1, msb)]
        return from_bits(
            [bits[pos + i] if i < count and pos + i <= msb else fill for i in range(msb + 1)]
        )

    return bfe


def _bfi(kind: str) -> Function:
    msb, field = width(kind) - 1, _field(kind)

    def bfi(a: int, b: int, c: int, d: int) -> int:
        pos, count = field(c), min(field(d), msb + 1)
        bits, from_a = bit_string(b, msb + 1), bit_string(a, msb + 1)
        for i in range(count):
            if pos + i <= msb:
                bits[pos + i] = from_a[i]
        return from_bits(bits)

    return bfi


def _bfind(kind: str, shift: bool) -> Function:
    def bfind(a: int) -> int:
        value = signed(kind, a)
        at = (~value if value < 0 else value).bit_length() - 1
        return width(kind) - 1 - at if shift and at >= 0 else at

    return bfind


def _bmsk(mode: str) -> Function:
    def bmsk(a: int, b: int) -> int:
        start, count = (min(a, 32), min(b, 32)) if mode == "clamp" else (a & 31, b & 31)
        return from_bits([int(start <= i < start + count) for i in range(32)])

    return bmsk


def _szext(mode: str, kind: str) -> Function:
    def szext(a: int, b: int) -> int:
        if mode == "clamp" and b >= 32:
            return a
        count = b & 31
        if count == 0:
            return 0
        kept = a & ((1 << count) - 1)
        return kept - (1 << count) if kind == "s32" and kept >> (count - 1) else kept

    return szext


def _fns(mask: int, base: int, offset: int) -> int:
    offset = signed("s32", offset)
    if base > 31:
        return -1
    if offset == 0:
        return base if mask >> base & 1 else -1
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    found = [i for i in places if mask >> i & 1]
    return found[abs(offset) - 1] if len(found) >= abs(offset) else -1


PERMUTES = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""Bytes chosen, lowest first, by the control's two bits: the ISA's table."""


def _prmt(mode: str) -> Function:
    def prmt(a: int, b: int, c: int) -> int:
        bytes_of = (b << 32 | a).to_bytes(8, "little")
        if mode:
            return int.from_bytes(bytes(bytes_of[i] for i in PERMUTES[mode][c & 3]), "little")
        out = []
        for i in range(4):
            nibble = c >> 4 * i & 15
            byte = bytes_of[nibble & 7]
            out.append((255 if byte & 128 else 0) if nibble & 8 else byte)
        return int.from_bytes(bytes(out), "little")

    return prmt


def _dot(kinds: list[str], parts: list[tuple[int, int]], bits: int) -> Function:
    def dot(a: int, b: int, c: int) -> int:
        x = [signed(f"{kinds[0][0]}{bits}", a >> bits * i) for i, _ in parts]
        y = [signed(f"{kinds[1][0]}8", b >> 8 * j) for _, j in parts]
        return sum(p * q for p, q in zip(x, y)) + c

    return dot


def _lop3(parts: list[str]) -> Function:
    def lop3(a: int, b: int, c: int, table: int, p: int = 0) -> int | tuple[int, int]:
        bits = []
        for x, y, z in zip(bit_string(a, 32), bit_string(b, 32), bit_string(c, 32)):
            bits.append(table >> (4 * x + 2 * y + z) & 1)
        d = from_bits(bits)
        if len(parts) == 1:
            return d
        return d, (int(d != 0) | p) if parts[0] == "or" else (int(d != 0) & p)

    return lop3


def _pair(op: Callable[..., int], kind: str, relu: bool) -> Function:
    one = kind[:3]

    def pair(a: int, b: int) -> int:
        out = [op(signed(one, a >> s), signed(one, b >> s)) for s in (0, 16)]
        out = [max(0, x) if relu else x for x in out]
        return (out[0] & 0xFFFF) | (out[1] & 0xFFFF) << 16

    return pair


def _carries(op: str, parts: list[str], kind: str) -> Function:
    mask = (1 << width(kind)) - 1
    reads = op in ("addc", "subc", "madc")

    def carried(*given: int) -> tuple[int, int]:
        values, carry = (given[:-1], given[-1]) if reads else (given, 0)
        if op in ("mad", "madc"):
            product = _product("mul", parts[0], kind)(*values[:2])
            assert isinstance(product, int)
            first = product & mask
            total = first + values[2] + carry
        elif op in ("sub", "subc"):
            total = values[0] - values[1] - carry
        else:
            total = values[0] + values[1] + carry
        return total & mask, int(not 0 <= total <= mask)

    return carried


def reference(form: str) -> Function | None:
    """What a form of whole numbers gives, from and to bits; None: it is not one."""
    op, *parts = form.split(".")
    kind = parts[-1] if parts else ""
    if op == "prmt":
        return _prmt(parts[1] if len(parts) > 1 else "")
    if op == "lop3":
        return _lop3(parts)
    if op in ("dp4a", "dp2a"):
        if op == "dp4a":
            return _dot(parts, [(i, i) for i in range(4)], 8)
        return _dot(parts[1:], [(i, i + (2 if parts[0] == "hi" else 0)) for i in range(2)], 16)
    if kind == "pred" and op in SIMPLE:
        return (lambda a: 1 - a) if op == "not" else SIMPLE[op]
    if kind[:1] not in ("s", "u", "b") or kind.startswith("bf"):
        return None
    if "cc" in parts or op in ("addc", "subc", "madc"):
        return _carries(op, parts, kind)
    if kind.endswith("x2"):
        return _pair(SIMPLE[op], kind, "relu" in parts) if op in ("add", "min", "max") else None
    return _more(op, parts, kind)


def _more(op: str, parts: list[str], kind: str) -> Function | None:
    n = width(kind)
    special: dict[str, Callable[[], Function]] = {
        "shl": lambda: _shift(op, kind),
        "shr": lambda: _shift(op, kind),
        "mul": lambda: _product(op, parts[0], kind),
        "mul24": lambda: _product24(op, parts[0], kind, False),
        "mad24": lambda: _product24(op, parts[0], kind, "sat" in parts),
        "bfe": lambda: _bfe(kind),
        "bfi": lambda: _bfi(kind),
        "bfind": lambda: _bfind(kind, parts[0] == "shiftamt"),
        "bmsk": lambda: _bmsk(parts[0]),
        "szext": lambda: _szext(parts[0], kind),
        "fns": lambda: _fns,
        "brev": lambda: lambda a: from_bits(bit_string(a, n)[::-1]),
        "clz": lambda: lambda a: n - a.bit_length(),
        "shf": lambda: _funnel(parts),
    }
    if op == "mad":
        wide = parts[0] == "wide"
        product = _product("mul", parts[0], kind)

        def mad(a: int, b: int, c: int) -> int:
            low = int(product(a, b))  # type: ignore[arg-type]
            total = low + signed("s" + str(2 * n if wide else n), c)
            return clamp("s32", total) if "sat" in parts else total

        return mad
    if op in special:
        return special[op]()
    if op not in SIMPLE:
        return None
    simple = SIMPLE[op]

    def plain(*bits: int) -> int:
        value = simple(*(signed(kind, b) for b in bits))
        if "relu" in parts:
            value = max(0, value)
        return clamp(kind, value) if "sat" in parts else value

    return plain


def _funnel(parts: list[str]) -> Function:
    def shf(a: int, b: int, c: int) -> int:
        by = min(c, 32) if parts[1] == "clamp" else c & 31
        both = b << 32 | a
        return (both << by) >> 32 if parts[0] == "l" else both >> by

    return shf
