"""PTX that runs one form of mma.sync on fragments from memory, and wmma on matrices."""

from __future__ import annotations

from .products import BITS, Product

READ, WRITTEN = 16, 4
"""Most registers of A, B and C together, and of D."""
HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"


def registers(kind: str, elements: int) -> tuple[str, int]:
    """(type, count) of the registers that hold a lane's share of a matrix in mma.sync."""
    width = BITS[kind]
    return ("b64" if width == 64 else "b32"), max(1, elements * width // (32 * max(32, width)))


def shares(form: Product) -> list[tuple[str, int]]:
    """Registers of D, A, B and C."""
    m, n, k = form.shape
    sizes = ((form.d, m * n), (form.a, m * k), (form.b, k * n), (form.c, m * n))
    return [registers(kind, elements) for kind, elements in sizes]


def mma_kernel(forms: list[Product], name: str = "k") -> str:
    """`name(in, out, which)`: block t runs form number which[t] on the fragments
    in[t][register][lane], A, B and C one after another, and writes D to out[t][register][lane].
    A register is 8 bytes there; there are READ and WRITTEN for each block."""
    lines = [
        ".reg .b64 %in, %out, %which, %at, %lane;",
        ".reg .b32 %number, %form;",
        ".reg .pred %yes;",
        f".reg .b64 %w<{READ}>, %y<{WRITTEN}>;",
        f".reg .b32 %n<{READ}>, %x<{WRITTEN}>;",
        "ld.param.u64 %in, [p0];",
        "ld.param.u64 %out, [p1];",
        "ld.param.u64 %which, [p2];",
        "mov.u32 %number, %ctaid.x;",
        "mul.wide.u32 %at, %number, 4;",
        "add.s64 %which, %which, %at;",
        "ld.global.u32 %form, [%which];",
        f"mul.wide.u32 %at, %number, {READ * 256};",
        "add.s64 %in, %in, %at;",
        f"mul.wide.u32 %at, %number, {WRITTEN * 256};",
        "add.s64 %out, %out, %at;",
        "mov.u32 %number, %tid.x;",
        "mul.wide.u32 %lane, %number, 8;",
        "add.s64 %in, %in, %lane;",
        "add.s64 %out, %out, %lane;",
    ]
    for i in range(READ):
        lines += [f"ld.global.b64 %w{i}, [%in+{i * 256}];", f"cvt.u32.u64 %n{i}, %w{i};"]
    for i in range(WRITTEN):
        lines += [f"mov.b64 %y{i}, 0;", f"mov.b32 %x{i}, 0;"]
    for number, form in enumerate(forms):
        (kind, count), *sources = shares(form)
        read, written = ("%w", "%y") if kind == "b64" else ("%n", "%x")
        at, operands = 0, ["{" + ", ".join(f"{written}{i}" for i in range(count)) + "}"]
        for _, count in sources:
            operands.append("{" + ", ".join(f"{read}{at + i}" for i in range(count)) + "}")
            at += count
        lines += [
            f"setp.eq.u32 %yes, %form, {number};",
            f"@%yes {form.form} {', '.join(operands)};",
        ]
    for i in range(WRITTEN):
        lines += [f"cvt.u64.u32 %at, %x{i};", f"or.b64 %y{i}, %y{i}, %at;"]
        lines.append(f"st.global.b64 [%out+{i * 256}], %y{i};")
    parameters = ".param .u64 p0, .param .u64 p1, .param .u64 p2"
    return f".visible .entry {name}({parameters})\n{{\n" + "\n".join([*lines, "ret;"]) + "\n}\n"
