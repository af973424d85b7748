"""What the instructions of a kernel are: classes, widths of global accesses, float64, branches.

Counted in the code as it stands, not as often as it runs: that is what `assay count` does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from ...simt import parse as ptx_parser
from ...simt.ptx import Instruction as PtxInstruction
from ...simt.ptx import Place
from . import sass

SASS_CLASSES = (
    ("global memory", r"(LDG|STG|LD|ST|ATOM|ATOMG|RED|REDG|LDGSTS|UBLKCP|UTMA\w+|CCTL|PREFETCH)"),
    ("shared memory", r"(LDS|STS|ATOMS|LDSM|STSM|SYNCS|LDT|STT)"),
    ("local memory", r"(LDL|STL)"),
    ("constants", r"(LDC|ULDC|LDCU)"),
    ("tensor cores", r"(\w*MMA\w*|MOVM|LDTM|STTM|WARPGROUP)"),
    ("float64", r"(DADD|DMUL|DFMA|DSETP|DMNMX)"),
    ("special functions", r"(MUFU|UF2\w+)"),
    ("conversions", r"(F2F|F2I|I2F|F2FP|I2FP|F2IP|FRND|I2I|I2IP)"),
    ("float16", r"(H\w+2|HMNMX2|HSETP2)"),
    ("float32", r"(U?F(?!LO|2|RND)\w+)"),
    ("barriers", r"(BAR|MEMBAR|FENCE|DEPBAR|LDGDEPBAR|ERRBAR|NANOSLEEP|ELECT|ACQBULK|UCGABAR_\w+)"),
    ("shuffles and votes", r"(SHFL|VOTE|VOTEU|MATCH|REDUX|CREDUX)"),
    ("special registers", r"(S2R|S2UR|CS2R)"),
    (
        "control",
        r"(BRA|BRX|JMP|JMX|CALL|RET|EXIT|BSSY|BSYNC|BREAK|WARPSYNC|YIELD|KILL|BPT|BMOV|PLOP3)",
    ),
    ("moves", r"(MOV|UMOV|SEL|USEL|PRMT|UPRMT|R2UR|P2R|R2P|B2R|NOP)"),
)
"""By opcode, the first that fits; everything else is integer arithmetic. IMAD.MOV is a move."""
PTX_CLASSES = (
    (
        "global memory",
        r"(ld|st|atom|red|ldu|prefetch\w*|cp|applypriority|discard)\b(?!\.(shared|local|param|const))",
    ),
    (
        "shared memory",
        r"(ld|st|atom|red|ldmatrix|stmatrix|mbarrier)\b.*\.shared|ldmatrix|stmatrix|mbarrier",
    ),
    ("local memory", r"(ld|st)\..*local"),
    ("constants", r"(ld|st)\..*(param|const)"),
    ("tensor cores", r"(mma|wmma|wgmma|tcgen05)\b"),
    ("conversions", r"cvt\b(?!a)"),
    ("float64", r".*\.f64"),
    ("special functions", r"(ex2|lg2|sin|cos|rcp|sqrt|rsqrt|tanh)\b"),
    ("float16", r".*\.(f16|bf16|f16x2|bf16x2)\b"),
    ("barriers", r"(bar|barrier|membar|fence|griddepcontrol)\b"),
    ("shuffles and votes", r"(shfl|vote|match|redux|activemask|elect)\b"),
    ("control", r"(bra|brx|call|ret|exit|trap|brkpt)\b"),
    ("moves", r"(mov|selp|prmt|cvta|isspacep)\b"),
    ("float32", r".*\.(f32|f32x2)\b"),
)
INTEGER = "integers"
LOADS, STORES = "loads", "stores"


class Double(msgspec.Struct, frozen=True):
    """An instruction in float64."""

    text: str
    place: str = ""
    """`file:line`, where it is known."""


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions of one kernel."""

    of: str
    """`SASS`, or `PTX` where there is no machine code."""
    instructions: int
    classes: dict[str, int]
    loads: dict[int, int]
    """Of global memory: bits that a thread moves with one instruction, to how many there are."""
    stores: dict[int, int]
    local: int
    """Loads and stores of local memory: spills, and arrays that registers can't hold."""
    doubles: tuple[Double, ...]
    branches: int
    """Conditional ones."""
    guarded: int
    """Instructions under a predicate, branches not among them."""
    loops: int


def of_sass(text: str) -> Mix:
    """Of one function as `sass.functions` gives it."""
    code = sass.parse(text)
    branches = sum(1 for one in code if one.opcode in ("BRA", "BRX") and _conditional(one))
    guarded = sum(1 for one in code if one.guard and one.opcode not in ("BRA", "BRX"))
    return Mix(
        of="SASS",
        instructions=len(code),
        classes=_counted(_sass_class(one) for one in code),
        loads=_widths(_sass_bits(one) for one in code if one.opcode in ("LDG", "LD", "LDGSTS")),
        stores=_widths(_sass_bits(one) for one in code if one.opcode in ("STG", "ST")),
        local=sum(1 for one in code if one.opcode in ("LDL", "STL")),
        doubles=tuple(Double(_bare(one), _at(one.places)) for one in code if is_double(one)),
        branches=branches,
        guarded=guarded,
        loops=len(list(sass.loops(text))),
    )


def of_ptx(ptx: str, entry: str) -> Mix:
    """Of one kernel of a module, device functions that it calls not among it."""
    function = ptx_parser.parse(ptx).functions[entry]
    code = [one for one in function.body if isinstance(one, PtxInstruction)]
    labels = {one.name: at for at, one in enumerate(function.body) if hasattr(one, "name")}
    back = [
        one
        for at, one in enumerate(function.body)
        if isinstance(one, PtxInstruction)
        and one.opcode == "bra"
        and labels.get(one.operands[-1], at + 1) <= at
    ]
    return Mix(
        of="PTX",
        instructions=len(code),
        classes=_counted(_class(one.form, PTX_CLASSES) for one in code),
        loads=_widths(_ptx_bits(one) for one in code if _global(one, "ld")),
        stores=_widths(_ptx_bits(one) for one in code if _global(one, "st")),
        local=sum(1 for one in code if one.opcode in ("ld", "st") and ".local" in one.form),
        doubles=tuple(
            Double(one.text.strip(), _at(one.places))
            for one in code
            if ".f64" in one.form and one.opcode not in ("ld", "st", "mov")
        ),
        branches=sum(1 for one in code if one.opcode == "bra" and one.guard),
        guarded=sum(1 for one in code if one.opcode != "bra" and one.guard),
        loops=len(back),
    )


def _counted(classes: Iterable[str]) -> dict[str, int]:
    return dict(Counter(classes).most_common())


def _class(form: str, table: tuple[tuple[str, str], ...]) -> str:
    return next((name for name, pattern in table if re.match(pattern, form)), INTEGER)


def _sass_class(one: sass.Instruction) -> str:
    # Multipliers of other types are used to bring zeros and constants into registers.
    constant = one.opcode == "HFMA2" and "RZ, RZ," in one.operands
    if one.form.startswith("IMAD.MOV") or constant:
        return "moves"
    if is_double(one):
        return "float64"
    return next((n for n, pattern in SASS_CLASSES if re.fullmatch(pattern, one.opcode)), INTEGER)


def is_double(one: sass.Instruction) -> bool:
    """Whether it computes in, or converts to or from, float64."""
    return one.opcode in ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX", "DMMA") or bool(
        re.search(r"\.F64|64H", one.form)
    )


def _conditional(one: sass.Instruction) -> bool:
    """A branch under a predicate, its own or one among its operands."""
    return bool(one.guard) or bool(re.match(r"!?U?P\d", one.operands)) or ".DIV" in one.form


def _sass_bits(one: sass.Instruction) -> int:
    """Bits that a thread moves: 32 where the form does not say."""
    found = re.search(r"\.(?:[US](8|16)|(64|128|256))(?=\.|$)", one.form)
    return int(found.group(1) or found.group(2)) if found else 32


def _global(one: PtxInstruction, opcode: str) -> bool:
    """Of global memory, or of an address whose space is not said."""
    spaces = (".shared", ".local", ".param", ".const")
    return one.opcode == opcode and not any(space in one.form for space in spaces)


def _ptx_bits(one: PtxInstruction) -> int:
    size = re.search(r"\.[a-z]+?(\d+)(?:x2)?$", one.form)
    count = re.search(r"\.v(\d)", one.form)
    return (int(size.group(1)) if size else 32) * (int(count.group(1)) if count else 1)


def _widths(bits: Iterable[int]) -> dict[int, int]:
    return dict(sorted(Counter(bits).items(), reverse=True))


def _bare(one: sass.Instruction) -> str:
    return re.sub(r"^/\*[0-9a-f]+\*/\s*|\s*;$", "", one.text)


def _at(places: tuple[Place, ...]) -> str:
    return str(places[0]) if places else ""
