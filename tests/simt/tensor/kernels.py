"""PTX that runs one form of mma.sync on fragments from memory, and wmma on matrices."""

from __future__ import annotations

from .products import BITS, Product

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
    """`name(in, out)`: block t runs each form on fragments in[t][register][lane], A, B and C of
    one form after another, and writes D to out[t][register][lane]. All registers are 8 bytes."""
    reads = sum(count for form in forms for _, count in shares(form)[1:])
    writes = sum(shares(form)[0][1] for form in forms)
    lines = [
        ".reg .b64 %in, %out, %at, %block, %wide;",
        ".reg .b32 %lane, %number;",
        "ld.param.u64 %in, [p0];",
        "ld.param.u64 %out, [p1];",
        "mov.u32 %lane, %tid.x;",
        "mov.u32 %number, %ctaid.x;",
        "cvt.u64.u32 %block, %number;",
        "mul.wide.u32 %wide, %lane, 8;",
        f"mul.lo.s64 %at, %block, {reads * 256};",
        "add.s64 %in, %in, %at;",
        "add.s64 %in, %in, %wide;",
        f"mul.lo.s64 %at, %block, {writes * 256};",
        "add.s64 %out, %out, %at;",
        "add.s64 %out, %out, %wide;",
        ".reg .b64 %zero;",
        "mov.b64 %zero, 0;",
    ]
    read = written = 0
    for form in forms:
        body, operands = [], []
        for letter, (kind, count) in zip("dabc", shares(form)):
            names = [f"%{letter}{i}" for i in range(count)]
            body.append(f".reg .{kind} {', '.join(names)};")
            operands.append("{" + ", ".join(names) + "}")
            if letter == "d":
                continue
            for register in names:
                body.append(f"ld.global.{kind} {register}, [%in+{read * 256}];")
                read += 1
        body.append(f"{form.form} {', '.join(operands)};")
        kind, count = shares(form)[0]
        for i in range(count):
            if kind == "b32":
                body.append(f"st.global.b64 [%out+{written * 256}], %zero;")
            body.append(f"st.global.{kind} [%out+{written * 256}], %d{i};")
            written += 1
        lines += ["{", *body, "}"]
    parameters = ".param .u64 p0, .param .u64 p1"
    return f".visible .entry {name}({parameters})\n{{\n" + "\n".join([*lines, "ret;"]) + "\n}\n"
