"""Every lane-wise form of assay.simt on a card: is what our C++ gives what the card gives?

    python benchmarks/simt_forms.py --results FILE.jsonl --golden tests/simt/golden/approximate.json
    python benchmarks/simt_forms.py --ptx FOLDER     # only write the PTX: needs no GPU

Each form is one PTX instruction in a kernel of its own, built by the driver for this card, run on
the operands of tests/simt/forms and compared with the C++ built here. Exact forms must give the
same bits (any NaN is a NaN); approximate forms must lie within the bound that
`assay.simt.forms.floating.APPROXIMATE` states. Exits with 1 where one does not.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "simt" / "forms"))
# The table alone, without what `import assay.simt` needs: this runs where PyTorch is, and no more.
for name in ("assay", "assay.simt"):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(ROOT / "src" / name.replace(".", "/"))]

import conformance  # noqa: E402
from conformance import LANES, Form, operands  # noqa: E402
from judging import elements, near, room, same  # noqa: E402

from assay.simt.forms.floating import APPROXIMATE  # noqa: E402
from assay.simt.forms.table import SIZES  # noqa: E402

GOLDEN_LANES = 64

LEAST = (
    (r"^(min|max|add)\..*[us]16x2$|^(min|max)\.relu\.", 90),
    (r"^(add|sub|mul|set|setp|tanh|ex2)\..*bf16(x2)?$", 90),
    (r"^cvt\.\w+\.bf16\.(bf16|f16|f64|[us]\d+)$", 90),
    (r"^cvt\.(\w+\.)?([us]\d+|f16|f64)\.bf16$", 90),
    (r"^cvt\.(rn|rz)\.(relu\.)?tf32", 90),
    (r"e4m3x2|e5m2x2", 89),
    (r"xorsign", 86),
)
"""What a form needs that not every card from sm_80 on has: the smallest sm."""

SKIPPED = re.compile(r"createpolicy\.")
"""A cache hint: its bits are the card's own."""


def least(form: str) -> int:
    return max((sm for pattern, sm in LEAST if re.search(pattern, form)), default=80)


# ---- PTX


def _register(kind: str) -> str:
    return "p" if kind == "pred" else {1: "h", 2: "h", 4: "r", 8: "d"}[SIZES[kind]]


def _load(kind: str, i: int) -> list[str]:
    lines = [f"ld.global.u64 %w, [%in + {8 * LANES * i}];"]
    if kind == "pred":
        return [*lines, "cvt.u32.u64 %t, %w;", f"setp.ne.u32 %p{i}, %t, 0;"]
    into = {"h": f"cvt.u16.u64 %h{i}, %w;", "r": f"cvt.u32.u64 %r{i}, %w;"}
    return [*lines, into.get(_register(kind), f"mov.b64 %d{i}, %w;")]


def _store(kind: str, name: str, into: str) -> list[str]:
    widen = {
        "p": f"selp.u64 %w, 1, 0, {name};",
        "h": f"cvt.u64.u16 %w, {name};",
        "r": f"cvt.u64.u32 %w, {name};",
        "d": f"mov.b64 %w, {name};",
    }[_register(kind)]
    return [widen, f"st.global.u64 [{into}], %w;"]


def _carry(form: Form, names: list[str]) -> list[str]:
    """A form that reads or writes the condition code, which other instructions set and read."""
    op, *parts = form.name.split(".")
    minus, lines = op.startswith("sub"), []
    if op in ("addc", "subc", "madc"):
        lines.append(f"selp.u32 %t, 1, 0, {names.pop()};")
        lines.append("sub.cc.u32 %t, 0, %t;" if minus else "add.cc.u32 %t, %t, 0xFFFFFFFF;")
    lines.append(f"{form.name} %{_register(form.result)}9, {', '.join(names)};")
    if "cc" in parts:
        lines.append("subc.u32 %t, 0, 0;" if minus else "addc.u32 %t, 0, 0;")
        lines += ["and.b32 %t, %t, 1;", "setp.ne.u32 %p9, %t, 0;"]
    return lines


def carries(form: Form) -> bool:
    op, *parts = form.name.split(".")
    return op in ("addc", "subc", "madc") or "cc" in parts


def has_second(form: Form) -> bool:
    """Whether the second destination can be seen: of `addc` without .cc it is nowhere."""
    return bool(form.second) and (not carries(form) or ".cc" in form.name)


def kernel(form: Form, name: str) -> str:
    """The PTX of a kernel that runs a form once in each of LANES threads."""
    body = [
        "ld.param.u64 %in, [p0];",
        "ld.param.u64 %out, [p1];",
        "ld.param.u64 %two, [p2];",
        "mov.u32 %t, %tid.x;",
        "mul.wide.u32 %w, %t, 8;",
        *(f"add.u64 %{r}, %{r}, %w;" for r in ("in", "out", "two")),
    ]
    names = []
    for i, kind in enumerate(form.operands):
        if kind == "imm":
            names.append(str(form.immediate))
            continue
        body += _load(kind, i)
        names.append(f"%{_register(kind)}{i}")
    result = f"%{_register(form.result)}9"
    if form.result == "pred" and form.second:
        body.append(f"{form.name} %p9|%p8, {', '.join(names)};")
    elif carries(form):
        body += _carry(form, names)
    else:
        target = f"{result}|%p8" if form.second else result
        body.append(f"{form.name} {target}, {', '.join(names)};")
    body += _store(form.result, result, "%out")
    if has_second(form):
        body += _store("pred", "%p9" if carries(form) else "%p8", "%two")
    lines = "\n    ".join([*body, "ret;"])
    return (
        f".visible .entry {name}(.param .u64 p0, .param .u64 p1, .param .u64 p2)\n{{\n"
        "    .reg .b16 %h<10>;\n    .reg .b32 %t, %r<10>;\n    .reg .pred %p<10>;\n"
        f"    .reg .b64 %in, %out, %two, %w, %d<10>;\n    {lines}\n}}\n"
    )


def module(given: Sequence[Form], sm: int) -> str:
    head = f".version 8.5\n.target sm_{sm}\n.address_size 64\n"
    return head + "".join(kernel(form, f"form{i}") for i, form in enumerate(given))


# ---- the card


class Card:
    """The first GPU, through the driver."""

    def __init__(self) -> None:
        from cuda.bindings import driver

        self.driver = driver
        self.call(driver.cuInit, 0)
        device = self.call(driver.cuDeviceGet, 0)
        self.call(driver.cuCtxSetCurrent, self.call(driver.cuDevicePrimaryCtxRetain, device))
        name = self.call(driver.cuDeviceGetName, 128, device)
        self.name = (name if isinstance(name, bytes) else bytes(name)).split(b"\0")[0].decode()
        kinds = driver.CUdevice_attribute
        major, minor = (
            int(self.call(driver.cuDeviceGetAttribute, kind, device))
            for kind in (
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        self.sm = 10 * major + minor
        self.given = self.call(driver.cuMemAlloc, 8 * 8 * LANES)
        self.out = self.call(driver.cuMemAlloc, 8 * LANES)
        self.second = self.call(driver.cuMemAlloc, 8 * LANES)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        error, *values = function(*arguments)
        if int(error) != 0:
            raise RuntimeError(f"{function.__name__}: {error!r}")
        return values[0] if values else None

    def build(self, forms: Sequence[Form]) -> tuple[dict[str, Any], list[str]]:
        """The kernel of each form, and the forms that the driver's compiler refuses."""
        text = module(forms, self.sm).encode() + b"\0"
        try:
            loaded = self.call(self.driver.cuModuleLoadData, text)
        except RuntimeError:
            if len(forms) == 1:
                return {}, [forms[0].label]
            half = len(forms) // 2
            built, refused = self.build(forms[:half])
            more, others = self.build(forms[half:])
            return built | more, refused + others
        get = self.driver.cuModuleGetFunction
        made = {
            form.label: self.call(get, loaded, f"form{i}".encode()) for i, form in enumerate(forms)
        }
        return made, []

    def run(self, function: Any, given: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bits of the result and of the second destination, [lane]."""
        given = np.ascontiguousarray(given, np.uint64)
        out, second = np.zeros(LANES, np.uint64), np.zeros(LANES, np.uint64)
        driver = self.driver
        self.call(driver.cuMemcpyHtoD, self.given, given.ctypes.data, given.nbytes)
        self.call(driver.cuMemsetD8, self.second, 0, second.nbytes)
        pointers = tuple(int(p) for p in (self.given, self.out, self.second))
        arguments = (pointers, (ctypes.c_void_p,) * 3)
        self.call(driver.cuLaunchKernel, function, 1, 1, 1, LANES, 1, 1, 0, 0, arguments, 0)
        self.call(driver.cuCtxSynchronize)
        self.call(driver.cuMemcpyDtoH, out.ctypes.data, self.out, out.nbytes)
        self.call(driver.cuMemcpyDtoH, second.ctypes.data, self.second, second.nbytes)
        return out, second


# ---- comparing


def unspecified(form: Form, bits: Sequence[int]) -> bool:
    """Operands for which the ISA leaves the result open."""
    op, *parts = form.name.split(".")
    if op in ("div", "rem") and parts[-1][0] in "su":
        return bits[1] & ((1 << 8 * SIZES[form.operands[1]]) - 1) == 0
    return op == "fns" and bits[1] > 31


def compare_exact(form: Form, card: Card, function: Any, ours: Any) -> dict[str, Any]:
    given = operands(form.operands)
    got, second = card.run(function, given)
    want, other = ours
    mask = (1 << 8 * SIZES[form.result]) - 1
    wrong: list[str] = []
    odd: list[str] = []
    for lane, bits in enumerate(zip(*given.tolist())):
        card_bits, our_bits = int(got[lane]) & mask, int(want[lane]) & mask
        equal = same(form.result, card_bits, our_bits)
        if has_second(form):
            equal = equal and int(second[lane]) == int(other[lane])
        if equal:
            continue
        text = f"{[hex(b) for b in bits]}: card {card_bits:#x}, ours {our_bits:#x}"
        if has_second(form):
            text += f"; second {int(second[lane])}, {int(other[lane])}"
        (odd if unspecified(form, bits) else wrong).append(text)
    row = {"form": form.label, "kind": "exact", "lanes": LANES, "mismatches": len(wrong)}
    if wrong:
        row["examples"] = wrong[:6]
    if odd:
        row["unspecified"] = odd[:3]
    return row


def compare_near(form: Form, card: Card, function: Any, ours: Any) -> dict[str, Any]:
    """How far the card's results and ours are from the true ones, as a part of the bound."""
    given = operands(form.operands)
    got, _ = card.run(function, given)
    both = {"card": elements(form.name, given, got), "ours": elements(form.name, given, ours[0])}
    row: dict[str, Any] = {"form": form.name, "kind": "approximate", "lanes": len(both["card"])}
    for name, rows in both.items():
        wrong = [text for bits, result in rows if (text := near(form.name, bits, result))]
        ratios = [r for bits, result in rows if (r := room(form.name, bits, result)) is not None]
        row[f"{name}_beyond"] = len(wrong)
        row[f"{name}_worst_of_bound"] = round(max(ratios, default=0.0), 4)
        if wrong:
            row[f"{name}_examples"] = wrong[:6]
    bound = APPROXIMATE[form.name]
    row["bound"] = {k: v for k in ("ulp", "relative", "absolute") if (v := getattr(bound, k))} | {
        "source": bound.source
    }
    row["same_bits"] = sum(a[1] == b[1] for a, b in zip(both["card"], both["ours"]))
    row["mismatches"] = row["card_beyond"] + row["ours_beyond"]
    return row


def golden(form: Form, got: np.ndarray) -> dict[str, Any]:
    """Operands and results of some lanes as hexadecimal words, joined."""
    step = LANES // GOLDEN_LANES
    given = operands(form.operands)

    def joined(values: np.ndarray, kind: str) -> str:
        return "".join(f"{int(v):0{2 * SIZES[kind]}x}" for v in values[::step])

    return {
        "operands": [joined(row, kind) for row, kind in zip(given, form.operands)],
        "results": joined(got, form.result),
    }


def run(results: Path, golden_path: Path) -> int:
    card = Card()
    print(f"{card.name}, sm_{card.sm}", flush=True)
    all_forms = conformance.chosen()
    compiled = conformance.Compiled(all_forms, units=4)
    saved: dict[str, Any] = {}
    bad = skipped = 0
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("w") as file:

        def write(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")

        write({"card": card.name, "sm": card.sm, "lanes": LANES})
        by_row: dict[str, list[Form]] = {}
        for form in all_forms:
            if SKIPPED.match(form.name) or least(form.name) > card.sm:
                skipped += 1
                hint = bool(SKIPPED.match(form.name))
                why = "a cache hint" if hint else f"needs sm_{least(form.name)}"
                write({"form": form.label, "kind": "skipped", "why": why})
                continue
            by_row.setdefault(form.row.pattern, []).append(form)
        for forms in by_row.values():
            functions, refused = card.build(forms)
            for label in refused:
                bad += 1
                print(f"REFUSED {label}")
                write({"form": label, "kind": "refused"})
            for form in forms:
                if form.label not in functions:
                    continue
                function, given = functions[form.label], operands(form.operands)
                ours = compiled.run(form, given)
                if form.name in APPROXIMATE:
                    row = compare_near(form, card, function, ours)
                    saved[form.name] = golden(form, card.run(function, given)[0])
                else:
                    row = compare_exact(form, card, function, ours)
                write(row)
                if row["mismatches"]:
                    bad += 1
                    print(f"DIFFERS {json.dumps(row)}", flush=True)
    golden_path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"card": card.name, "sm": card.sm, "forms": saved}, indent=1)
    golden_path.write_text(text + "\n")
    print(f"{len(all_forms) - skipped} forms on the card, {skipped} skipped, {bad} at fault")
    return 1 if bad else 0


def write_ptx(folder: Path, sm: int) -> int:
    """The PTX of each row of the table, to look at or to assemble without a GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    by_row: dict[str, list[Form]] = {}
    for form in conformance.chosen():
        if not SKIPPED.match(form.name) and least(form.name) <= sm:
            by_row.setdefault(form.row.pattern, []).append(form)
    for i, forms in enumerate(by_row.values()):
        (folder / f"row{i:03}.ptx").write_text(module(forms, sm))
    print(f"{len(by_row)} files in {folder}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--results", type=Path, default=Path("simt_forms.jsonl"))
    parser.add_argument("--golden", type=Path, default=ROOT / "tests/simt/golden/approximate.json")
    parser.add_argument("--ptx", type=Path, help="only write the PTX to this folder")
    parser.add_argument("--sm", type=int, default=90, help="of the PTX that is only written")
    asked = parser.parse_args()
    if asked.ptx:
        return write_ptx(asked.ptx, asked.sm)
    return run(asked.results, asked.golden)


if __name__ == "__main__":
    sys.exit(main())
