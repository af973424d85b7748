"""What the name of a library's kernel says of it: architecture, types, tile, stages, vectors.

Names are no interface: only what they spell out is taken, and a name that fits none of these forms
says nothing. The architecture is the one that a kernel was written for, which may be older than the
card: cuBLAS runs `sm80_...` on an H200.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

TENSOR, FMA = "tensor cores", "FMA units"
GENERATIONS = ("maxwell", "volta", "turing", "ampere", "hopper")
ANONYMOUS = re.compile(r"(\(anonymous namespace\)|<?unnamed>)::")
"""As torch.profiler and ncu write it; ncu's page loses the first angle at times."""
INDUCTOR = {"poi": "pointwise", "red": "reduction", "per": "reduction in one pass"}


@dataclass(frozen=True)
class Decoded:
    """What a name says; empty or None where it does not."""

    family: str
    """Whose kernel: `cuBLAS`, `CUTLASS`, `torch`, `Inductor`."""
    what: str
    """`gemm`, `elementwise`, `reduction`, ... with its operation."""
    arch: str = ""
    types: str = ""
    unit: str = ""
    """What does the arithmetic: tensor cores or FMA units."""
    tile: tuple[int, ...] = ()
    """Of the output (M, N), and of the inner dimension (K), that a block works on at a time."""
    stages: int | None = None
    """Tiles of the inner dimension that are under way at a time."""
    layout: str = ""
    """Of both inputs: n as it is, t transposed, in column-major order."""
    vector: int | None = None
    """Elements that a thread moves at once."""
    threads: int | None = None
    """Of a block."""

    @property
    def text(self) -> str:
        """In one line."""
        said = [
            f"{self.family} {self.what}",
            self.arch and f"for {self.arch}",
            self.types,
            self.unit,
            self.tile and f"tile {'x'.join(map(str, self.tile))}",
            self.stages and f"{self.stages} stages",
            self.layout and f"layout {self.layout}",
            self.vector and f"{self.vector} elements at once",
            self.threads and f"{self.threads} threads a block",
        ]
        return ", ".join(str(part) for part in said if part)


def named(name: str) -> str:
    """A kernel's name without the namespaces that have none."""
    return ANONYMOUS.sub("", name)


def decode(name: str) -> Decoded | None:
    """What a kernel's name says; None where it is of no form that is known."""
    for pattern, made in FORMS:
        if found := pattern.search(name):
            return made(found)
    return None


def _tile(found: re.Match[str], *names: str) -> tuple[int, ...]:
    return tuple(int(found[name]) for name in names if found[name])


def _xmma(found: re.Match[str]) -> Decoded:
    unit = {"f": FMA, "t": TENSOR}.get((found["unit"] or " ")[0], "")
    kind = {"gemm": "gemm"}.get(found["what"], f"convolution ({found['what']})")
    tile = _tile(found, "m", "n", "k")
    types, arch, stages = found["types"].replace("_", " "), f"sm_{found['arch']}", found["stages"]
    return Decoded("cuBLAS", kind, arch, types, unit, tile, int(stages), found["layout"] or "")


def _cutlass(found: re.Match[str]) -> Decoded:
    unit = FMA if found["unit"] == "simt" else TENSOR
    types = (found["types"] or "").strip("_").replace("_", " ")
    tile, stages = _tile(found, "m", "n", "k"), int(found["stages"])
    return Decoded(
        "CUTLASS", "gemm", f"sm_{found['arch']}", types, unit, tile, stages, found["layout"]
    )


def _cutlass3(found: re.Match[str]) -> Decoded:
    unit = FMA if found["unit"] == "simt" else TENSOR
    types, tile = found["types"].replace("_", " "), _tile(found, "m", "n", "k")
    arch, layout = f"sm_{found['arch']}", found["layout"]
    return Decoded("CUTLASS", "gemm", arch, types, unit, tile, layout=layout)


def _generation(found: re.Match[str]) -> Decoded:
    inner = re.search(r"_stages_(\d+)x(\d+)", found[0])
    tile = _tile(found, "m", "n")
    # s16816gemm, h884gemm: digits are the shape of an instruction of the tensor cores.
    unit = TENSOR if re.search(r"\d{3,}gemm", found["what"]) else FMA
    return Decoded(
        "cuBLAS",
        "gemm",
        found["arch"].capitalize(),
        found["what"].replace("_", " "),
        unit,
        (*tile, int(inner[1])) if inner else tile,
        int(inner[2]) if inner else None,
        found["layout"] or "",
    )


def _nvjet(found: re.Match[str]) -> Decoded:
    """Undocumented; its first pair is the tile that a block works on."""
    arch = f"sm_{found['arch']}" if found["arch"] else ""
    return Decoded("cuBLAS", "gemm", arch, unit=TENSOR, tile=_tile(found, "m", "n"))


def _vectorised(found: re.Match[str]) -> Decoded:
    return Decoded("torch", f"elementwise{_operation(found[0])}", vector=int(found["vector"]))


def _elementwise(found: re.Match[str]) -> Decoded:
    return Decoded("torch", f"elementwise{_operation(found[0])}", threads=int(found["threads"]))


def _reduction(found: re.Match[str]) -> Decoded:
    return Decoded("torch", f"reduction{_operation(found[0])}", threads=int(found["threads"]))


def _operation(text: str) -> str:
    """` of add`: the first name that says what is computed for each element."""
    pattern = r"::(?:CUDAFunctor_)?(\w+?)(?:_functor|_kernel_cuda|Functor|Ops?)?(?:<|\()"
    for found in re.finditer(pattern, text.split("kernel<", 1)[-1]):
        if found[1] not in PLUMBING and not found[1].endswith("nocast"):
            return f" of {found[1]}"
    return ""


PLUMBING = ("Reduce", "func_wrapper_t", "gpu_kernel_impl", "array", "operator", "TensorIterator")


def _inductor(found: re.Match[str]) -> Decoded:
    kind = INDUCTOR.get(found["kind"], found["kind"])
    return Decoded("Inductor", f"{kind} of {found['what'].replace('_', ' ')}")


Form = tuple[re.Pattern[str], Callable[[re.Match[str]], Decoded]]
MN = r"(?P<m>\d+)x(?P<n>\d+)"
FORMS: tuple[Form, ...] = (
    (
        re.compile(
            r"sm(?P<arch>\d+)_xmma_(?P<what>gemm|fprop|dgrad|wgrad)\w*?_(?P<types>[a-z]+\d+\w*?)"
            rf"(?:_(?P<layout>[tn]{{2}}))?(?:_[a-z]+)?_tilesize{MN}x(?P<k>\d+)_stage(?P<stages>\d+)"
            r"(?:_warpsize\dx\dx\d)?(?:_g\d+)?(?:_(?P<unit>ffma|tensor))?"
        ),
        _xmma,
    ),
    (
        re.compile(
            r"cutlass3x_sm(?P<arch>\d+)_(?P<unit>tensorop|simt)_(?:[a-z]\d+x\d+x\d+)?gemm_"
            rf"(?P<types>\w+?)_{MN}x(?P<k>\d+)_\dx\dx\d_\d_(?P<layout>[tn]{{3}})_"
        ),
        _cutlass3,
    ),
    (
        re.compile(
            r"cutlass_(?P<arch>\d+)_(?:w?mma_)?(?P<unit>simt|tensorop)_(?P<types>\w*?gemm\w*?)_"
            rf"{MN}_(?P<k>\d+)x(?P<stages>\d+)_(?P<layout>[tn]{{2}})_"
        ),
        _cutlass,
    ),
    (
        re.compile(
            rf"^(?P<arch>{'|'.join(GENERATIONS)})_(?P<what>\w*?gemm\w*?)_{MN}\w*?"
            r"(?:_(?P<layout>[tn]{2}))?$"
        ),
        _generation,
    ),
    (re.compile(rf"^nvjet_(?:sm(?P<arch>\d+)_)?[a-z]+_(?:mma_)?{MN}[_x]"), _nvjet),
    (re.compile(r"vectorized_elementwise_kernel<(?P<vector>\d+), .*"), _vectorised),
    (re.compile(r"\belementwise_kernel<(?P<threads>\d+), \d+, .*"), _elementwise),
    (re.compile(r"\breduce_kernel<(?P<threads>\d+), \d+, .*"), _reduction),
    (re.compile(r"^triton_(?P<kind>[a-z]{3})_fused_(?P<what>\w+?)_\d+$"), _inductor),
)
"""Forms that names were seen to have, the most special first."""
