"""PTX that runs wmma on matrices in memory: every layout and space, with rows or columns apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .products import BITS, Product

SPACES = ("", "global", "shared", "shared::cta")
LAYOUTS = ("row", "col")
STRETCH = 12288
"""Bytes of one run's matrices."""
PAD = 16
"""Elements between the end of a line and the next, in variants that have a stride."""


@dataclass(frozen=True)
class Place:
    """A matrix in memory: bytes from the start; elements between its lines, none where no space is
    named, for then no stride is given."""

    offset: int
    rows: int
    columns: int
    kind: str
    layout: str
    space: str
    pad: int

    @property
    def stride(self) -> int:
        return (self.columns if self.layout == "row" else self.rows) + self.pad

    @property
    def bytes(self) -> int:
        lines = self.rows if self.layout == "row" else self.columns
        return -(-lines * self.stride * BITS[self.kind] // 8 // 64) * 64

    def view(self, memory: np.ndarray) -> np.ndarray:
        """[rows, columns] of elements' bits, inside a trial's memory (a contiguous u8 array)."""
        size = BITS[self.kind] // 8
        lines = self.rows if self.layout == "row" else self.columns
        flat = memory[self.offset : self.offset + lines * self.stride * size]
        whole = flat.view(f"u{size}").reshape(lines, self.stride)
        kept = whole[:, : self.stride - self.pad]
        return kept if self.layout == "row" else kept.T


@dataclass(frozen=True)
class Run:
    """One use of a product: where its matrices are."""

    form: Product
    a: Place
    b: Place
    c: Place
    d: Place

    @property
    def places(self) -> tuple[Place, Place, Place, Place]:
        return self.a, self.b, self.c, self.d

    @property
    def forms(self) -> tuple[str, ...]:
        shape = "m{}n{}k{}".format(*self.form.shape)
        made = [self.form.form]
        for use, place in zip("abcd", self.places, strict=True):
            space = f".{place.space}" if place.space else ""
            verb = "store" if use == "d" else "load"
            made.append(
                f"wmma.{verb}.{use}.sync.aligned.{place.layout}.{shape}{space}.{place.kind}"
            )
        return tuple(made)


def runs_of(forms: list[Product]) -> list[Run]:
    """For each form 8 runs: all layouts of A with B, and each operand in every layout and space.
    `forms` are those of row-major A and B; the others follow from them."""
    made: list[Run] = []
    for form in forms:
        m, n, k = form.shape
        sides = ((m, k, form.a), (k, n, form.b), (m, n, form.c), (m, n, form.d))
        for i in range(8):
            first, space = i % 2, i // 2
            second = (first + space) % 2
            words = form.form.split(".")
            words[4:6] = LAYOUTS[first], LAYOUTS[second]
            layouts, spaces = (first, second, first, second), (space, space, space + 1, space + 2)
            at, places = 0, []
            for (rows, columns, kind), layout, where in zip(sides, layouts, spaces, strict=True):
                pad = PAD * (where % 2)
                places.append(
                    Place(at, rows, columns, kind, LAYOUTS[layout], SPACES[where % 4], pad)
                )
                at += places[-1].bytes
            assert at <= STRETCH
            made.append(Run(replace(form, form=".".join(words)), *places))
    return made


def registers(kind: str, use: str, elements: int) -> tuple[str, int]:
    """(type, count) of a fragment's registers, from PTX ISA's table "Matrix Fragments for WMMA"."""
    if kind == "f64":
        return "f64", elements // 32
    if kind == "f16":
        return "b32", 8 if use in "ab" else 4
    return ("f32" if kind == "f32" else "b32"), elements * BITS[kind] // 1024


def _copy(label: str, statement: str) -> list[str]:
    """A loop over a block's words, %from in global and %to in shared memory."""
    return [
        "mov.u32 %i, %lane4;",
        f"{label}:",
        "cvt.u64.u32 %at, %i;",
        "add.s64 %from, %memory, %at;",
        "add.s32 %to, %shared, %i;",
        statement,
        "add.s32 %i, %i, 128;",
        f"setp.lt.u32 %yes, %i, {STRETCH};",
        f"@%yes bra {label};",
    ]


TABLE = 16
"""Words of a block's entry in the table: five forms' numbers, four offsets, four strides."""


def steps_of(runs: list[Run]) -> list[list[str]]:
    """Of each of a run's five forms, in order, those that occur."""
    return [sorted({run.forms[step] for run in runs}) for step in range(5)]


def table_of(runs: list[Run]) -> np.ndarray:
    """[runs, TABLE] of u32."""
    steps = steps_of(runs)
    made = np.zeros((len(runs), TABLE), np.uint32)
    for row, run in zip(made, runs, strict=True):
        row[:5] = [forms.index(form) for forms, form in zip(steps, run.forms, strict=True)]
        row[5:9] = [place.offset for place in run.places]
        row[9:13] = [place.stride for place in run.places]
    return made


def wmma_kernel(runs: list[Run], name: str = "w") -> str:
    """`name(memory, table)`: block t does what its row of the table says on its own STRETCH bytes,
    which are copied to shared memory before, and D back after, if it was stored there."""
    lines = [
        ".reg .b64 %memory, %table, %at, %from, %p<4>;",
        ".reg .b32 %shared, %lane4, %i, %to, %word, %block, %s<4>, %q<4>, %f<5>;",
        ".reg .pred %yes;",
        *(f".reg .b32 %{use}<8>; .reg .f64 %w{use}<2>;" for use in "abcd"),
        f".shared .align 64 .b8 space[{STRETCH}];",
        "ld.param.u64 %memory, [p0];",
        "ld.param.u64 %table, [p1];",
        "mov.u32 %block, %ctaid.x;",
        f"mul.wide.u32 %at, %block, {STRETCH};",
        "add.s64 %memory, %memory, %at;",
        f"mul.wide.u32 %at, %block, {TABLE * 4};",
        "add.s64 %table, %table, %at;",
        "mov.u32 %shared, space;",
        "mov.u32 %lane4, %tid.x;",
        "shl.b32 %lane4, %lane4, 2;",
        *_copy("TO", "ld.global.b32 %word, [%from]; st.shared.b32 [%to], %word;"),
        "bar.sync 0;",
        *(f"ld.global.u32 %f{i}, [%table+{i * 4}];" for i in range(5)),
    ]
    for i in range(4):
        lines += [
            f"ld.global.u32 %q{i}, [%table+{20 + i * 4}];",
            f"ld.global.u32 %s{i}, [%table+{36 + i * 4}];",
            f"cvt.u64.u32 %p{i}, %q{i};",
            f"add.s64 %p{i}, %p{i}, %memory;",
            f"add.s32 %q{i}, %q{i}, %shared;",
        ]
    product, *moves = steps_of(runs)
    sources = {form: run for run in runs for form in run.forms}
    order = [*zip("abc", moves[:3], (1, 2, 3)), ("", product, 0), ("d", moves[3], 4)]
    for use, forms, step in order:
        labels = [f"F{step}_{number}" for number in range(len(forms))]
        lines += [
            f"T{step}: .branchtargets {', '.join(labels)};",
            f"brx.idx.uni %f{step}, T{step};",
        ]
        for label, form in zip(labels, forms, strict=True):
            lines += [f"{label}:", _statement(use, form, sources[form]), f"bra.uni END{step};"]
        lines.append(f"END{step}:")
    lines.append("bar.sync 0;")
    for number, form in enumerate(moves[3]):
        if ".shared" in form:
            lines += [f"setp.eq.u32 %yes, %f4, {number};", "@%yes bra BACK;"]
    lines += [
        "ret;",
        "BACK:",
        *_copy("MORE", "ld.shared.b32 %word, [%to]; st.global.b32 [%from], %word;"),
    ]
    parameters = ".param .u64 p0, .param .u64 p1"
    return f".visible .entry {name}({parameters})\n{{\n" + "\n".join([*lines, "ret;"]) + "\n}\n"


def _vector(run: Run, use: str) -> str:
    place = run.places["abcd".index(use)]
    kind, count = registers(place.kind, use, place.rows * place.columns)
    return "{" + ", ".join(f"%{'w' if kind == 'f64' else ''}{use}{i}" for i in range(count)) + "}"


def _statement(use: str, form: str, run: Run) -> str:
    if not use:
        return f"{form} {', '.join(_vector(run, x) for x in 'dabc')};"
    i = "abcd".index(use)
    place = run.places[i]
    address = f"[%{'q' if place.space.startswith('shared') else 'p'}{i}]"
    operands = [address, _vector(run, use)] if use == "d" else [_vector(run, use), address]
    return f"{form} {', '.join(operands)}{f', %s{i}' if place.space else ''};"
