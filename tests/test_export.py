"""`assay export`: a kernel as code of its own, with nothing of Assay in it."""

from __future__ import annotations

import ast
import math
import re
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest
import torch

from assay.commands import exporting
from assay.errors import AssayError
from assay.inside import artifacts
from assay.session import Session
from assay.target import parse

OP = '''
import ctypes
import numpy
import torch
import assay

op = assay.Op(
    "double",
    lambda x: 2 * x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[20, 300, 1000]),
)

CUDA = """
extern "C" __global__ void twice(float* y, const float* x, int n, float f, bool b, float* s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && b) y[i] = f * x[i];
}
"""


@op.launcher("cuda/numbers", source=CUDA)
def numbers(k, y, x):
    half, spare = x.numel() // 2, torch.zeros(7)
    k["twice"](grid=4, block=256)(y, x, half, 2, True, spare)
    left = ctypes.c_int(x.numel() - half)
    k["twice"](grid=(2, 2), block=256, shared=50000)(
        y[half:], x[half:], left, numpy.float64(2.0), True, spare[3:]
    )


@op.launcher("cuda/torch", source=CUDA)
def by_torch(k, y, x):
    k["twice"](grid=4, block=256)(y, x.abs(), x.numel(), 2.0, True, y)


@op.launcher("cuda/nothing", source=CUDA)
def nothing(k, y, x):
    pass


@op.launcher("cuda/huge", source=CUDA)
def huge(k, y, x):
    k["twice"](grid=4, block=2048)(y, x, x.numel(), 2.0, True, y)
'''


def export(target: str, variant: str, to: Path, case: str = "", arch: str = "sm_90") -> Path:
    exporting.run(target, variant, case, arch, to)
    return to


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "double.py"
    path.write_text(OP)
    return str(path)


def compiled(folder: Path) -> None:
    """Compiles main.cu as far as one can without a GPU, where nvcc is."""
    if not shutil.which("nvcc"):
        return
    command = ["nvcc", "-c", "-arch=sm_90", "-std=c++17", "-I.", "main.cu", "-o", "main.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


@pytest.mark.full
def test_a_cuda_variant_becomes_a_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = export("square", "cuda/vectorised BLOCK=1024", tmp_path / "new", "dtype=float16")
    said = capsys.readouterr().out
    assert said.startswith("cuda/vectorised BLOCK=1024, m=37 n=27 dtype=float16\n")
    assert f"next:  cd {to} && make run" in said
    files = sorted(str(p.relative_to(to)) for p in to.rglob("*") if p.is_file())
    data = [f"data/{name}.bin" for name in ("out_allowed", "out_expected", "x")]
    assert files == ["Makefile", "assay.cuh", *data, "main.cu", "square.cu"]
    assert "nvcc -arch=$(ARCH) -lineinfo -std=c++17" in (to / "Makefile").read_text()
    assert "ARCH ?= sm_90" in (to / "Makefile").read_text()
    main = (to / "main.cu").read_text()
    launch = (
        "square_vectorised<__half, 1024><<<dim3(1, 1, 1), dim3(1024, 1, 1), 0>>>(out, x, 999LL);"
    )
    assert launch in main
    # Every call into CUDA is checked, so that the one that fails is named.
    calls = [line for line in main.splitlines() if re.search(r"\bcuda[A-Z]\w*\(", line)]
    assert len(calls) >= 7
    assert [c for c in calls if "CHECK(" not in c and "cudaGetErrorName(" not in c] == []
    x = torch.from_file(str(to / "data" / "x.bin"), size=999, dtype=torch.float16).double()
    want = torch.from_file(str(to / "data" / "out_expected.bin"), size=999, dtype=torch.float64)
    assert torch.equal(x * x, want)
    allowed = numpy.fromfile(to / "data" / "out_allowed.bin")
    assert allowed.shape == (999,)
    assert 0 < allowed.max() < 0.1
    compiled(to)


OWN_ARCH = (
    """\
import assay

SOURCE = """
    + repr("""
extern "C" __global__ void older(float* y, const float* x, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x];
}
extern "C" __global__ void newer(float* y, const float* x, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x];
}
""")
    + """

def inputs(make, n):
    return (make.normal(n),)


double = assay.Op("double", lambda x: 2 * x, inputs, cases=[dict(n=100)])


@double.launcher("cuda/any", source=SOURCE)
def by_any(k, y, x):
    k["newer" if k.arch >= "sm_80" else "older"](grid=1, block=128)(y, x, x.numel())


double.launcher("cuda/own", source=SOURCE, arch="sm_75")(by_any)
"""
)


@pytest.mark.full
@pytest.mark.parametrize(
    ("variant", "arch", "launches"),
    [
        ("cuda/any", "sm_90", "newer"),
        ("cuda/any", "sm_75", "older"),
        ("cuda/own", "sm_75", "older"),
    ],
)
def test_launches_are_those_of_the_architecture(
    session: Session, variant: str, arch: str, launches: str, tmp_path: Path
) -> None:
    path = tmp_path / "double.py"
    path.write_text(OWN_ARCH)
    asked = "sm_90" if variant == "cuda/own" else arch
    to = export(str(path), variant, tmp_path / "to", arch=asked)
    assert f"{launches}<<<" in (to / "main.cu").read_text()
    assert f"ARCH ?= {arch}" in (to / "Makefile").read_text()
    found = artifacts.shown(session, parse(str(path)), variant, {}, asked)
    assert [(part.name, part.launches) for part in found.parts] == [(launches, 1)]
    assert found.arch == arch


@pytest.mark.full
def test_arguments_are_those_of_the_launcher(file: str, tmp_path: Path) -> None:
    to = export(file, "cuda/numbers", tmp_path / "new")
    lines = [line.strip() for line in (to / "main.cu").read_text().splitlines()]
    assert "Buffer x(300 * sizeof(float));" in lines, "the smallest case of at least 100"
    assert "Buffer scratch0(7 * sizeof(float));" in lines
    assert 'scratch0.fill("scratch0.bin");' in lines
    assert "out.fill" not in " ".join(lines), "an output starts as NaN"
    first = lines.index(
        "twice<<<dim3(4, 1, 1), dim3(256, 1, 1), 0>>>(out, x, 150LL, 2LL, true, scratch0);"
    )
    what = "cudaFuncAttributeMaxDynamicSharedMemorySize"
    assert lines[first + 1 : first + 5] == [
        "CHECK(cudaGetLastError());",
        f"CHECK(cudaFuncSetAttribute(twice, {what}, 50000));",
        "twice<<<dim3(2, 2, 1), dim3(256, 1, 1), 50000>>>"
        f"(out.at(600), x.at(600), 150LL, {(2.0).hex()}, true, scratch0.at(12));",
        "CHECK(cudaGetLastError());",
    ]
    assert math.isclose(float.fromhex((2.0).hex()), 2.0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("variant", "says"),
    [
        ("cuda/torch", r"also computes with torch \(abs\).*move that into a kernel"),
        ("cuda/nothing", "launches nothing on n=300; give another --case"),
        ("cuda/huge", r"did not launch: twice: 2,048 threads a block"),
        ("eager", "only cuda and extension variants with a source"),
    ],
)
def test_what_cannot_be_exported_is_named(
    file: str, tmp_path: Path, variant: str, says: str
) -> None:
    with pytest.raises(AssayError, match=says):
        export(file, variant, tmp_path / "new")
    assert not (tmp_path / "new").exists(), "no half of a program is left"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(AssayError, match="something is there already; give a new folder"):
        export("square", "cuda/naive", tmp_path)


@pytest.mark.full
def test_an_extension_becomes_a_project(tmp_path: Path) -> None:
    to = export("square", "extension", tmp_path / "new", "dtype=float16")
    files = {str(p.relative_to(to)) for p in to.rglob("*") if p.is_file()}
    assert files == {
        *("pyproject.toml", "setup.py", "README.md", "square_extension/__init__.py"),
        *("csrc/binding.cpp", "csrc/square_extension.cpp", "csrc/square_extension.cu"),
        *("tests/test_square_extension.py", "tests/case.pt"),
    }
    setup = (to / "setup.py").read_text()
    assert "CUDAExtension" in setup
    assert '"csrc/binding.cpp", "csrc/square_extension.cu"' in setup
    assert 'm.def("square_out", &square_out);' in (to / "csrc/binding.cpp").read_text()
    for path in to.rglob("*.py"):
        ast.parse(path.read_text())

    # The test that it brings: run here against a stand-in, a right one and a wrong one.
    class Standing:
        def __init__(self, factor: float):
            self.factor = factor

        def square_out(self, y: torch.Tensor, x: torch.Tensor) -> None:
            y.copy_(self.factor * x * x)

    text = (to / "tests" / "test_square_extension.py").read_text()
    scope: dict[str, object] = {"__file__": str(to / "tests" / "test_square_extension.py")}
    exec(text.replace("import square_extension\n", ""), scope)
    scope["square_extension"] = Standing(1.0)
    scope["test_it_is_right"]()  # type: ignore[operator]
    scope["square_extension"] = Standing(1.1)
    with pytest.raises(AssertionError, match="not close"):
        scope["test_it_is_right"]()  # type: ignore[operator]


@pytest.mark.gpu
@pytest.mark.timeout(300)
@pytest.mark.parametrize("variant", ["cuda/vectorised", "cuda/numbers"])
def test_the_program_runs_and_says_ok(file: str, variant: str, tmp_path: Path) -> None:
    major, minor = torch.cuda.get_device_capability()
    target = file if variant == "cuda/numbers" else "square"
    to = export(target, variant, tmp_path / "new", arch=f"sm_{major}{minor}")
    done = subprocess.run(["make", "run"], cwd=to, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "OK"
    # Another expectation, and the same program says that it is wrong.
    expected = to / "data" / "out_expected.bin"
    expected.write_bytes(expected.read_bytes()[8:] + b"\0" * 8)
    done = subprocess.run(["./main"], cwd=to, capture_output=True, text=True)
    assert done.returncode == 1
    assert "WRONG: " in done.stdout
