"""Runs every mma.sync and wmma product on the card and on the CPU, and compares the results.

`python benchmarks/simt_tensor.py [FILE]`, on a machine with an sm_89 or later GPU and g++. One line
of JSON a form, also to FILE: `worst`, the largest difference in units of u S (u: the last bit of
the accumulator's type at 1; S = |c| + sum of |a b|); `bound`, what `distance` in
assay.simt.forms.tensor allows; `equal_random` and `equal_cancelling`, the share of results with the
same bits; `special`, the same for operands of any bits, subnormals, infinities and NaN among them,
which is told and not judged. Exits 1 where a form is beyond its bound; integers must be equal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "simt"))

from tensor import fragments, matrices
from tensor.kernels import HEAD, READ, WRITTEN, mma_kernel, shares
from tensor.products import (
    BITS,
    LAST,
    Product,
    cancelling,
    product,
    random_bits,
    values,
    weight,
)

import assay.simt as simt
from assay.simt.forms import tensor as forms
from assay.simt.forms.table import options

TRIALS = {"random": 96, "cancelling": 96, "special": 64}
COUNT = sum(TRIALS.values())


def main() -> None:
    import torch

    major, minor = torch.cuda.get_device_capability()
    arch, card = f"sm_{major}{minor}", torch.cuda.get_device_name()
    wrong = []
    lines = []
    for row in [*mma_rows(arch), *wmma_rows(arch)]:
        lines.append(json.dumps({"card": card, "arch": arch, **row}))
        print(lines[-1], flush=True)
        if not row["ok"]:
            wrong.append(row["form"])
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} forms, beyond their bounds: {', '.join(wrong) or 'none'}")
    raise SystemExit(bool(wrong) or not lines)


def every(prefix: str) -> list[Product]:
    texts = {form for row in forms.FORMS for form in options(row.pattern)}
    return [product(form) for form in sorted(texts) if form.startswith(prefix)]


def operands(form: Product, rng: np.random.Generator) -> list[np.ndarray]:
    """[COUNT, ...] of A's, B's and C's bits: the kinds of TRIALS, in order."""
    m, n, k = form.shape
    sides = ((form.a, (m, k)), (form.b, (k, n)), (form.c, (m, n)))
    plain = [random_bits(rng, kind, (TRIALS["random"], *shape)) for kind, shape in sides]
    hard = cancelling(rng, form, TRIALS["cancelling"])
    wild = [
        rng.integers(0, 1 << min(BITS[kind], 63), (TRIALS["special"], *shape), dtype=np.uint64)
        for kind, shape in sides
    ]
    if form.whole:  # sums at the limits
        plain[2][::2] = rng.choice([0x7FFFFFFF, 0x80000000], plain[2][::2].shape)
    return [np.concatenate(three) for three in zip(plain, hard, wild, strict=True)]


def compared(
    form: Product, arch: str, three: list[np.ndarray], ours: np.ndarray, cards: np.ndarray
) -> dict[str, Any]:
    """A row of the report. ours, cards: [COUNT, m, n] of D's bits."""
    judged = COUNT - TRIALS["special"]
    same = ours == cards
    mine, theirs = values(ours[:judged], form.d), values(cards[:judged], form.d)
    if form.whole:
        worst = float(np.abs(mine - theirs).max())
    else:
        size = weight(form, *(bits[:judged] for bits in three))
        worst = float((np.abs(mine - theirs) / (size * LAST[form.d])).max())
    bound = forms.distance(form.form, arch)
    row = {"form": form.form, "worst": round(worst, 4), "bound": bound}
    begin = 0
    for name, count in TRIALS.items():
        key = "equal_" + name if name != "special" else name
        row[key] = round(float(same[begin : begin + count].mean()), 6)
        begin += count
    return {**row, "ok": worst <= bound}  # NaN is not


def register(kind: str, i: int) -> str:
    """Register i of a fragment from memory."""
    text = f"in[{i * 32}]"
    return f"__longlong_as_double({text})" if kind == "f64" else f"(unsigned){text}"


def mma_source(all_forms: list[Product]) -> str:
    """CUDA C++ with a kernel `mma{i}(in, out)` for each form, on the memory of `mma_kernel`."""
    made = []
    for number, form in enumerate(all_forms):
        kind = "f64" if form.a == "f64" else "b32"
        letter, declared = ("d", "double") if kind == "f64" else ("r", "unsigned")
        counts = [count for _, count in shares(form)]
        names, at = [], 0
        for count in counts:
            names.append("{" + ", ".join(f"%{at + i}" for i in range(count)) + "}")
            at += count
        written = range(counts[0])
        outputs = ", ".join(f'"={letter}"(d{i})' for i in written)
        inputs = ", ".join(f'"{letter}"({register(kind, i)})' for i in range(sum(counts[1:])))
        store = "(unsigned long long)__double_as_longlong" if kind == "f64" else ""
        made.append(
            f'extern "C" __global__ void mma{number}(const long long* in, '
            f"unsigned long long* out) {{\n"
            f"in += blockIdx.x * {READ * 32} + threadIdx.x;\n"
            f"out += blockIdx.x * {WRITTEN * 32} + threadIdx.x;\n"
            f"{declared} {', '.join(f'd{i}' for i in written)};\n"
            f'asm volatile("{form.form} {", ".join(names)};" : {outputs} : {inputs});\n'
            + "".join(f"out[{i * 32}] = {store}(d{i});\n" for i in written)
            + "}"
        )
    return "\n".join(made)


def wmma_source(runs: list[matrices.Run]) -> str:
    """CUDA C++ with a kernel `wmma{i}(memory)` for each run: block t does it on its own stretch."""
    made = []
    for number, run in enumerate(runs):
        steps, declared = [], []
        vectors, product_operands = {}, {}
        for use, place in zip("abcd", run.places, strict=True):
            kind, count = matrices.registers(place.kind, use, place.rows * place.columns)
            names = [f"{use}{i}" for i in range(count)]
            letter, cpp = {"f64": ("d", "double"), "f32": ("f", "float")}.get(
                kind, ("r", "unsigned")
            )
            declared.append(f"{cpp} {', '.join(names)};")
            vectors[use], product_operands[use] = names, letter
        text, *moves, write = run.forms
        for use, move, place in zip("abc", moves, run.places, strict=False):
            count = len(vectors[use])
            slots = ", ".join(f"%{i}" for i in range(count))
            outputs = ", ".join(f'"={product_operands[use]}"({name})' for name in vectors[use])
            steps.append(
                f'asm volatile("{move} {{{slots}}}, [%{count}], %{count + 1};" : {outputs} : '
                f'"l"(memory + {place.offset}), "r"({place.stride}) : "memory");'
            )
        sides, at = [], 0
        for use in "dabc":
            count = len(vectors[use])
            sides.append("{" + ", ".join(f"%{at + i}" for i in range(count)) + "}")
            at += count
        outputs = ", ".join(f'"={product_operands["d"]}"({name})' for name in vectors["d"])
        inputs = ", ".join(
            f'"{product_operands[use]}"({name})' for use in "abc" for name in vectors[use]
        )
        steps.append(f'asm volatile("{text} {", ".join(sides)};" : {outputs} : {inputs});')
        count = len(vectors["d"])
        slot = ", ".join(f"%{i}" for i in range(count))
        values_of = ", ".join(f'"{product_operands["d"]}"({name})' for name in vectors["d"])
        steps.append(
            f'asm volatile("{write} [%{count}], {{{slot}}}, %{count + 1};" : : {values_of}, '
            f'"l"(memory + {run.d.offset}), "r"({run.d.stride}) : "memory");'
        )
        body = "\n".join([*declared, *steps])
        made.append(
            f'extern "C" __global__ void wmma{number}(unsigned char* memory) {{\n'
            f"memory += blockIdx.x * {matrices.STRETCH};\n{body}\n}}"
        )
    return "\n".join(made)


def mma_rows(arch: str) -> Iterator[dict[str, Any]]:
    every_form = every("mma.")
    rng = np.random.default_rng(20_260)
    inputs = [operands(form, rng) for form in every_form]
    memory = np.zeros((len(every_form), COUNT, READ, 32), np.uint64)
    for place, form, (a, b, c) in zip(memory, every_form, inputs, strict=True):
        m, _, k = form.shape
        registers = np.concatenate(
            [
                fragments.put(a, fragments.A[m, k, BITS[form.a]], BITS[form.a]),
                fragments.put(b, fragments.B[k, BITS[form.b]], BITS[form.b]),
                fragments.put(c, fragments.C[m], BITS[form.c]),
            ],
            axis=1,
        )
        place[:, : registers.shape[1]] = registers
    ours = np.zeros((len(every_form), COUNT, WRITTEN, 32), np.uint64)
    which = np.repeat(np.arange(len(every_form), dtype=np.uint32), COUNT)
    kernel = simt.load(HEAD + mma_kernel(every_form), entry="k")
    launched = kernel.launch(grid=(len(which), 1, 1), block=(32, 1, 1), args=[memory, ours, which])
    if launched.faults:
        raise SystemExit(f"the CPU found faults: {launched.faults}")
    card = Card(mma_source(every_form), arch)
    for number, (form, three) in enumerate(zip(every_form, inputs, strict=True)):
        out = card.run(f"mma{number}", memory[number], ours[number])
        count, (m, n, _) = shares(form)[0][1], form.shape
        both = (ours[number], out)
        mine, theirs = (
            fragments.take(d[:, :count], fragments.C[m], BITS[form.d], m, n) for d in both
        )
        yield compared(form, arch, three, mine, theirs)


def wmma_rows(arch: str) -> Iterator[dict[str, Any]]:
    """Each product with all four layouts, its matrices in global memory."""
    products = [form for form in every("wmma.mma") if ".row.row." in form.form]
    runs = []
    for run in matrices.runs_of(products):
        if run.b.space not in ("", "global"):
            continue
        moved: list[matrices.Place] = []
        for place in run.places:
            # Lines of 32 elements, so that each is aligned as PTX ISA asks.
            offset = moved[-1].offset + moved[-1].bytes if moved else 0
            pad = -(place.stride - place.pad) % 32
            moved.append(replace(place, offset=offset, space="global", pad=pad))
        assert moved[-1].offset + moved[-1].bytes <= matrices.STRETCH
        runs.append(matrices.Run(run.form, *moved))
    rng = np.random.default_rng(20_261)
    memory = np.zeros((len(runs), COUNT, matrices.STRETCH), np.uint8)
    inputs = []
    for run, trials in zip(runs, memory, strict=True):
        inputs.append(operands(run.form, rng))
        for place, bits in zip(run.places, inputs[-1], strict=False):
            for trial, its in zip(trials, bits, strict=True):
                place.view(trial)[...] = its
    before = memory.copy()
    table = np.repeat(matrices.table_of(runs), COUNT, axis=0)
    kernel = simt.load(HEAD + matrices.wmma_kernel(runs), entry="w")
    launched = kernel.launch(grid=(len(table), 1, 1), block=(32, 1, 1), args=[memory, table])
    if launched.faults:
        raise SystemExit(f"the CPU found faults: {launched.faults}")
    card = Card(wmma_source(runs), arch)
    for number, (run, three) in enumerate(zip(runs, inputs, strict=True)):
        out = card.run(f"wmma{number}", None, before[number])
        mine, theirs = (
            np.stack([run.d.view(trial) for trial in both]).astype(np.uint64)
            for both in (memory[number], out)
        )
        yield compared(run.form, arch, three, mine, theirs)


def cubin(source: str, arch: str) -> bytes:
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"simt_tensor.cu", 0, [], [])
    flags = [f"--gpu-architecture={arch}".encode(), b"-std=c++17"]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    if failed != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.decode())
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    code: bytes = b" " * size
    nvrtc.nvrtcGetCUBIN(program, code)
    return code


class Card:
    """Kernels on the GPU."""

    def __init__(self, source: str, arch: str):
        import torch
        from cuda.core import Device, ObjectCode

        self.device = Device(torch.cuda.current_device())
        self.device.set_current()
        self.code = ObjectCode.from_cubin(cubin(source, arch))

    def run(self, name: str, given: np.ndarray | None, like: np.ndarray) -> np.ndarray:
        """Runs a kernel in COUNT warps on (a copy of given, zeros like `like`), or, without
        `given`, on a copy of `like`. Returns the last as it is then."""
        import torch
        from cuda.core import LaunchConfig, launch

        def moved(array: np.ndarray) -> Any:
            return torch.from_numpy(array.reshape(-1).view(np.uint8).copy()).cuda()

        held = [moved(like)] if given is None else [moved(given), moved(np.zeros_like(like))]
        torch.cuda.synchronize()
        stream = self.device.create_stream(torch.cuda.current_stream())
        pointers = [tensor.data_ptr() for tensor in held]
        launch(stream, LaunchConfig(grid=COUNT, block=32), self.code.get_kernel(name), *pointers)
        torch.cuda.synchronize()
        result: np.ndarray = held[-1].cpu().numpy().view(like.dtype).reshape(like.shape)
        return result


if __name__ == "__main__":
    main()
