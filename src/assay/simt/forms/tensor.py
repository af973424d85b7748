"""Tensor cores: `mma.sync`, whose fragments PTX lays out, and `wmma`, whose fragments it does not.

Arithmetic and its distance from a card's are stated in `runtime/tensor.h`; `distance` gives that
distance as a number. Shapes and types are those that PTX ISA 8.8 has for sm_80 to sm_90, each of
which ptxas was seen to take. Not here, and so refused: `mma.sp` (sparse), `mma` m8n8k4 of f16 (a
Volta form, emulated since), single-bit and, in wmma, 4-bit matrices, `.kind::` (sm_120), f64 wmma
with a rounding other than `.rn`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .table import Action, Match

if TYPE_CHECKING:
    from ..emit import Emitter
    from ..ptx import Instruction

BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s32": 4, "f64": 8, "s8": 1, "u8": 1}
BLOCK, EXTRA = 4, 1
"""The fewest products that a tensor core sums at once, and the fewest bits that it keeps below the
last one of an f32, of those published for sm_80 to sm_90 (f16 and bf16: 8 and 1, then 16 and 2)."""
CONTIGUOUS = 16
"""Bytes of the widest access to memory."""


def distance(form: str, arch: str) -> float:
    """How far a card's result may be from ours, in units of u S, where S = |c| + sum of |a b| and u
    is the last bit of the accumulator's type at 1: 2^-23 for f32, 2^-10 for f16, 2^-52 for f64.
    Integers are equal: 0.

    A tensor core aligns a block of products and c to the largest, cuts off what is below its last
    bit and goes on with the next block; then f32 results are cut off and f16 ones rounded to
    nearest. Source of block sizes and bits: Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor
    Cores", arXiv 2512.07004 (2025). sm_90 has no fp8 in mma.sync: ptxas converts to f16. On sm_89
    fp8 units keep 13 bits of a sum. f64 is summed by fused multiply-adds, in whatever order.
    """
    (_, _, k), result, kind = _parts(form)
    if result == "s32":
        return 0.0
    if result == "f64":
        return k + 1.0
    blocks = k / BLOCK
    cut = blocks * ((BLOCK + 1) / (1 << EXTRA) + 1)
    if kind in ("e4m3", "e5m2") and arch == "sm_89":
        cut *= 1024
    # Ours is off by one last bit of f32, half a one of f16; there blocks may be rounded likewise.
    return cut + 1 if result == "f32" else cut * 2.0**-13 + blocks / 2 + 0.5


def _parts(form: str) -> tuple[tuple[int, int, int], str, str]:
    """((M, N, K), type of D, type of A) of an `mma` or `wmma.mma`."""
    words = [w for w in form.split(".") if w not in ("satfinite", "rn")]
    place = next(i for i, w in enumerate(words) if w[0] == "m" and w[1].isdigit())
    m, rest = words[place][1:].split("n")
    n, k = rest.split("k")
    types = words[place + 1 :]
    types = types[2:] if types[0] in ("row", "col") else types
    return (int(m), int(n), int(k)), types[0], types[1] if len(types) > 2 else "f16"


def _pointers(e: Emitter, name: str, operand: str, wide: bool) -> str:
    kind = "b64" if wide else "b32"
    lanes = ", ".join(e.lanes(part, kind) for part in e.vector(operand))
    return f"const {'u64' if wide else 'u32'}* {name}[] = {{{lanes}}};"


def _targets(e: Emitter, name: str, operand: str, wide: bool) -> str:
    kind = "u64" if wide else "u32"
    lanes = ", ".join(f"({kind}*){e.target(part)}" for part in e.vector(operand))
    return f"{kind}* {name}[] = {{{lanes}}};"


def _accumulator(groups: dict[str, str], name: str) -> str:
    return _type("clamped" if groups.get("satfinite") else groups[name])


def _type(kind: str) -> str:
    return f"tensor::{kind.upper()}"


def _product(item: Instruction, e: Emitter, wide: bool, function: str, options: str = "") -> str:
    d, a, b, c = item.operands
    return "\n".join(
        [
            _targets(e, "d", d, wide),
            _pointers(e, "a", a, wide),
            _pointers(e, "b", b, wide),
            _pointers(e, "c", c, wide),
            f"tensor::{function}::run(W, {e.site(item)}, {e.mask(item)}, {options}d, a, b, c);",
        ]
    )


def mma(match: Match, item: Instruction, e: Emitter) -> str:
    g = match.groups
    a, b = g["A"], g.get("B") or g["A"]
    types = f"{_type(a)}, {_type(b)}, {_accumulator(g, 'C')}"
    shape = f"{g['M']}, 8, {g['K']}"
    return _product(item, e, a == "f64", f"Mma<{shape}, {types}>")


def wmma(match: Match, item: Instruction, e: Emitter) -> str:
    g = match.groups
    a = g.get("A") or "f16"
    c, d = _accumulator(g, "C"), _accumulator(g, "D" if "D" in g else "C")
    layouts = "".join(f"{'true' if g[x] == 'row' else 'false'}, " for x in ("rowA", "rowB"))
    name = f"Wmma<{g['M']}, {g['N']}, {g['K']}, {_type(a)}, {_type(a)}, {c}, {d}>"
    return _product(item, e, a == "f64", name, layouts)


def _share(g: dict[str, str]) -> tuple[int, int, int, int, bool]:
    """Elements in all, along a line, for each lane; bytes of one; whether memory has that order."""
    m, n, k = int(g["M"]), int(g["N"]), int(g["K"])
    height, width = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[g["use"]]
    factor = g["use"] in "ab"
    row = g["layout"] == "row"
    each = 16 if factor and g["T"] == "f16" else height * width // 32
    return (
        height * width,
        width if row or not factor else height,
        each,
        BYTES[g["T"]],
        factor or row,
    )


def _moved(match: Match, item: Instruction, e: Emitter) -> tuple[str, str]:
    """(statements, arguments) that wmma.load and wmma.store have in common."""
    g = match.groups
    total, along, each, size, straight = _share(g)
    address = item.operands[1 if g["use"] != "d" else 0]
    space = {"": "generic", "shared::cta": "shared"}.get(g["space"], g["space"])
    # Without a stride the lines follow one another.
    stride = str(along if straight else total // along)
    if len(item.operands) == 3:
        stride = item.operands[2]
    e.touches(space, min(CONTIGUOUS, size * min(each, along)) if straight else size)
    numbers = f"{total}, {along}, {each}, {size}, {'true' if straight else 'false'}"
    before = f"const tensor::Share share = {{{numbers}}};"
    base, offset = e.base_and_offset(address)
    narrow = base in e.function.registers and e.size(base) == 4
    where = f"{e.lanes(base, 'b32' if narrow else 'b64')}, {offset}, {e.lanes(stride, 'b32')}"
    site = e.site(item, space)
    return before, f"W, {site}, {e.mask(item)}, tensor::{space.upper()}, share, {where}, (void**)d"


def load(match: Match, item: Instruction, e: Emitter) -> str:
    before, arguments = _moved(match, item, e)
    targets = _targets(e, "d", item.operands[0], match.groups["T"] == "f64")
    return f"{before}\n{targets}\ntensor::load({arguments});"


def store(match: Match, item: Instruction, e: Emitter) -> str:
    before, arguments = _moved(match, item, e)
    sources = _pointers(e, "d", item.operands[1], match.groups["T"] == "f64")
    return f"{before}\n{sources}\ntensor::store({arguments});"


MMA = (
    "m{M:16}n8k{K:8|16}.row.col.{C:f16}.{A:f16}.f16.f16",
    "m{M:16}n8k{K:8|16}.row.col.{C:f32}.{A:f16}.f16.f32",
    "m{M:16}n8k{K:8|16}.row.col.{C:f32}.{A:bf16}.bf16.f32",
    "m{M:16}n8k{K:4|8}.row.col.{C:f32}.{A:tf32}.tf32.f32",
    "m{M:8}n8k{K:4}.row.col.{C:f64}.{A:f64}.f64.f64",
    "m{M:16}n8k{K:4|8|16}.row.col.{C:f64}.{A:f64}.f64.f64",
    "m{M:16}n8k{K:16|32}.row.col.{C:f32}.{A:e4m3|e5m2}.{B:e4m3|e5m2}.f32",
    "m{M:16}n8k{K:16|32}.row.col.{C:f16}.{A:e4m3|e5m2}.{B:e4m3|e5m2}.f16",
    "m{M:8}n8k{K:16}.row.col[.satfinite].{C:s32}.{A:s8|u8}.{B:s8|u8}.s32",
    "m{M:16}n8k{K:16|32}.row.col[.satfinite].{C:s32}.{A:s8|u8}.{B:s8|u8}.s32",
    "m{M:8}n8k{K:32}.row.col[.satfinite].{C:s32}.{A:s4|u4}.{B:s4|u4}.s32",
    "m{M:16}n8k{K:32|64}.row.col[.satfinite].{C:s32}.{A:s4|u4}.{B:s4|u4}.s32",
)
SHAPES = ("m{M:16}n{N:16}k{K:16}", "m{M:32}n{N:8}k{K:16}", "m{M:8}n{N:32}k{K:16}")
TF32 = "m{M:16}n{N:16}k{K:8}"
DOUBLE = "m{M:8}n{N:8}k{K:4}"
FACTORS = (
    *((shape, "f16|bf16|s8|u8") for shape in SHAPES),
    (TF32, "tf32"),
    (DOUBLE, "f64"),
)
SUMS = (*((shape, "f16|f32|s32") for shape in SHAPES), (TF32, "f32"), (DOUBLE, "f64"))
PRODUCTS = (
    *(f"{shape}.{{D:f16|f32}}.{{C:f16|f32}}" for shape in SHAPES),
    *(f"{shape}.f32.{{A:bf16}}.bf16.{{C:f32}}" for shape in SHAPES),
    f"{TF32}.f32.{{A:tf32}}.tf32.{{C:f32}}",
    f"{DOUBLE}[.rn].f64.{{A:f64}}.f64.{{C:f64}}",
    f"{DOUBLE}.f64.{{A:f64}}.f64.{{C:f64}}.rn",  # as NVRTC writes it; ptxas takes both
    *(f"{shape}.s32.{{A:s8}}.s8.{{C:s32}}[.satfinite]" for shape in SHAPES),
    *(f"{shape}.s32.{{A:u8}}.u8.{{C:s32}}[.satfinite]" for shape in SHAPES),
)
LAYOUT = "{layout:row|col}"
SPACE = "[.{space:global|shared|shared::cta}]"

FORMS: tuple[Action, ...] = (
    *(Action(f"mma.sync.aligned.{form}", mma, site=True) for form in MMA),
    *(
        Action(f"wmma.mma.sync.aligned.{{rowA:row|col}}.{{rowB:row|col}}.{form}", wmma, site=True)
        for form in PRODUCTS
    ),
    *(
        Action(
            f"wmma.load.{{use:{use}}}.sync.aligned.{LAYOUT}.{shape}{SPACE}.{{T:{types}}}",
            load,
            site=True,
        )
        for use, kinds in (("a|b", FACTORS), ("c", SUMS))
        for shape, types in kinds
    ),
    *(
        Action(
            f"wmma.store.{{use:d}}.sync.aligned.{LAYOUT}.{shape}{SPACE}.{{T:{types}}}",
            store,
            site=True,
        )
        for shape, types in SUMS
    ),
)
