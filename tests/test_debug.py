"""`assay debug`, `python -m assay.commands.once`, and what a build is made for."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from assay import cache, closeup, lines
from assay.commands import debugging, once
from assay.errors import AssayError, OpError
from assay.op import Op
from assay.single import pick
from assay.target import parse
from assay.ways import cuda, targets

OP = '''
import os
import torch
import assay

op = assay.Op(
    "double",
    lambda x: 2 * x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1000, 20]),
)


@op.variant("python/right")
def right(x):
    print("I was here")
    return x + x


@op.variant("python/dies")
def dies(x):
    print("about to die", flush=True)
    os.kill(os.getpid(), 11)


CPP = """
#include <cstdint>
#include <cstdio>
extern "C" void twice(float* y, const float* x, int64_t n) {
    std::printf("from C: n = %d\\\\n", int(n));
    for (int64_t i = 0; i < n - 3; i++) y[i] = 2 * x[i];
}
"""


@op.launcher("cpp", source=CPP, knobs={"K": [1, 2]})
def by_cpp(k, y, x, K):
    k.twice(y, x, x.numel())


CUDA = """
extern "C" __global__ void twice(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


@op.launcher("cuda", source=CUDA)
def by_cuda(k, y, x):
    k["twice"](grid=(4, 2), block=32)(y, x, x.numel())
'''

TRITON = """
import triton
import triton.language as tl
import assay

op = assay.Op("double", lambda x: 2 * x, lambda make, n: (make.normal(n),), cases=[dict(n=20)])


@triton.jit
def kernel(y, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    print("program", tl.program_id(0))
    tl.store(y + i, 2 * tl.load(x + i, i < n), i < n)


@op.launcher("triton")
def launch(y, x):
    kernel[(2,)](y, x, 20, 16)
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "double.py"
    path.write_text(OP)
    return str(path)


def debug(capsys: pytest.CaptureFixture[str], *args: str, flag: bool = False) -> tuple[int, str]:
    target, variant, case = (*args, "")[:3]
    code = debugging.run(target, variant, case, "sm_80", device_debug=flag)
    return code, capsys.readouterr().out


@pytest.mark.full
def test_a_wrong_kernel_is_shown_value_by_value(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = debug(capsys, file, "cpp K=2")
    assert code == 1
    assert "double  cpp K=2  n=20" in out, "the smallest case"
    assert out.count("<- wrong") == 3
    (first,) = [line for line in out.splitlines() if "[17]" in line and "wrong:" not in line]
    at, output, expected, difference, allowed, *mark = first.split()
    assert (at, output, difference, mark) == ("[17]", "nan", "nan", ["<-", "wrong"])
    assert float(allowed) < 1e-5 < abs(float(expected))
    assert "wrong: 3 of 20 elements, first at [17]" in out
    assert "from C: n = 20" in out, "what C printed reaches the screen"
    once_line = f"python -m assay.commands.once {file} -k 'cpp K=2' --case n=20"
    assert f"gdb --args {once_line}" in out


@pytest.mark.full
def test_a_right_one_says_so_on_the_case_asked_for(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = debug(capsys, file, "python/right", "n=7")
    assert code == 0
    assert "double  python/right  n=7" in out
    assert "all 7 elements within what rounding allows" in out
    assert "what it printed:\nI was here" in out
    assert "python -m pdb -m assay.commands.once" in out


@pytest.mark.full
def test_one_that_dies_shows_what_was_known(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = debug(capsys, file, "python/dies")
    assert code == 1
    assert "crashed: its process ended with SIGSEGV" in out
    assert "  x  float32 (20,)  " in out
    assert "about to die" in out


def nvrtc() -> list[Path]:
    """The builds that are NVRTC's; beside them lies what runs them on a CPU."""
    return [e for e in cache.entries() if cache.notes(e)["parts"]["way"] == "cuda"]


@pytest.mark.full
def test_a_cuda_variant_without_a_gpu_shows_geometry_and_targets(
    file: str, capsys: pytest.CaptureFixture[str], fresh_cache: Path
) -> None:
    code, out = debug(capsys, file, "cuda", flag=True)
    assert code == 0
    assert "grid (4, 2, 1)  block (32, 1, 1)" in out
    assert "holds machine code for sm_80 alone, and PTX" in out
    assert "for sm_80 and later" in out
    assert "<- wrong" not in out
    assert "cuda-gdb --args python -m assay.commands.once" in out
    assert "--device-debug" in out
    assert "compute-sanitizer --report-api-errors no --tool racecheck" in out
    (built,) = nvrtc()
    flags = cache.notes(built)["parts"]["flags"]
    assert "-G" in flags
    assert "-lineinfo" not in flags
    debug(capsys, file, "cuda")
    kept = [cache.notes(e)["parts"]["flags"] for e in nvrtc()]
    assert sorted("-G" in f for f in kept) == [False, True]


@pytest.mark.full
def test_a_triton_kernel_prints_from_the_interpreter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "three.py"
    path.write_text(TRITON)
    code, out = debug(capsys, str(path), "triton")
    assert code == 0, out
    assert "program [0]\nprogram [1]" in out
    assert "TRITON_INTERPRET=1 python -m assay.commands.once" in out


@pytest.mark.full
def test_what_the_user_got_wrong_is_said(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssayError, match=r"-k python is python/right, python/dies; name one"):
        debug(capsys, file, "python")
    with pytest.raises(AssayError, match=r"cpp has no such knobs; there are: K=1; K=2"):
        debug(capsys, file, "cpp K=3")


@pytest.mark.full
def test_once_runs_in_its_own_process(file: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "assay.commands.once", file, "-k", "cpp", "--case", "n=5"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "double cpp K=1  n=5  on cpu" in done.stdout
    assert "from C: n = 5" in done.stdout
    (out,) = [line for line in done.stdout.splitlines() if line.startswith("output 0")]
    assert out.split()[2:4] == ["float32", "(5,)"]
    assert out.split()[-3:] == ["nan", "nan", "nan"]


def test_once_says_why_it_cannot(
    file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda, "watches", lambda: False)
    if not torch.cuda.is_available():
        assert once.main([file, "-k", "cuda"]) == 2
        assert "assay: cuda: it can't run here: no GPU" in capsys.readouterr().err
    assert once.main([file, "-k", "tritn"]) == 2
    assert "no way called 'tritn'" in capsys.readouterr().err


def test_the_smallest_case_that_the_variant_takes() -> None:
    square = parse("square")
    assert pick(square, "cpp", {}).case.label == "m=1 n=1 dtype=float32"
    assert pick(square, "cpp", {}, least=100).case.label == "m=37 n=27 dtype=int32"
    assert pick(square, "numba", {"dtype": "float16"}).case.label == "m=37 n=27 dtype=float16"
    with pytest.raises(OpError, match=r"takes no such case; .*Numba's arrays have no bfloat16"):
        pick(square, "numba", {"dtype": "bfloat16"})


def test_right_is_the_same_or_within_what_is_allowed() -> None:
    nan, inf = float("nan"), float("inf")
    truth = torch.tensor([1.0, 1.0, nan, nan, inf, inf, 1.0, 1e39], dtype=torch.float64)
    out = torch.tensor([1.05, 1.2, nan, 0.0, inf, 9.0, nan, inf])
    found = closeup.right(out, truth, torch.full((8,), 0.1, dtype=torch.float64))
    assert found.tolist() == [True, False, True, False, True, False, False, True]


def elf(flags: int, abi: int) -> bytes:
    """The header of a cubin."""
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    head[8] = abi
    struct.pack_into("<H", head, 18, 190)
    struct.pack_into("<I", head, 48, flags)
    return bytes(head)


PTX = "// made\n.version 9.0\n.target sm_90a\n.address_size 64\n"


@pytest.mark.parametrize(
    ("flags", "abi", "arch"),
    [(0x6005A04, 8, "sm_90"), (0x6007802, 8, "sm_120"), (0x500556, 7, "sm_86")],
)
def test_targets_are_read_from_what_was_built(flags: int, abi: int, arch: str) -> None:
    found = targets.embedded(elf(flags, abi), PTX)
    assert found == targets.Embedded(arch, "sm_90a", "9.0")


def test_what_is_no_cubin_or_ptx_is_refused() -> None:
    with pytest.raises(AssayError, match="no 64-bit CUDA ELF file"):
        targets.embedded(b"\x7fELF\x02" + b"\0" * 80, PTX)
    with pytest.raises(AssayError, match=r"no \.version and \.target"):
        targets.embedded(elf(0, 8), "nothing")


C_TEXT = """// one
#include <x>  // counted

/* two
   lines */ int a;  /* and */ int b;
const char* s = "// no comment /*";  // is one
char c = '"'; /* a */
"""


def test_lines_of_c() -> None:
    assert lines.c_lines(C_TEXT) == 4


def test_lines_are_those_of_the_function_and_of_all_it_calls() -> None:
    from assay.ops.square import square

    counted = {v.name: lines.count(v) for v in square.variants}
    assert counted["eager"] == 2, "def and return, no decorator"
    assert counted["python"] == 3
    assert counted["triton"] == 5 + 7, "the launcher, and @jit with its kernel in another file"
    assert counted["numba"] == 6 + 14, "`when=` in the decorator is not counted"
    source = square.find("cuda/naive").source
    assert source is not None
    assert counted["cuda/naive"] == 5 + lines.c_lines(source.read_text())
    halves = [source.with_name(f"square_extension.{s}") for s in ("cpp", "cu")]
    assert counted["extension"] == 2 + sum(lines.c_lines(h.read_text()) for h in halves)


def test_a_built_in_has_no_lines() -> None:
    op = Op("plus", torch.add, lambda make, n: (), cases=[{"n": 1}])
    assert lines.count(op.find("eager")) is None


@pytest.mark.gpu
def test_on_a_gpu_it_runs_prints_and_tells_what_loading_takes(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        Path(file)
        .read_text()
        .replace(
            'y[i] = 2 * x[i];\n}\n"""\n\n\n@op.launcher("cuda"',
            (
                'y[i] = 2 * x[i];\n    if (i == 3) printf("thread %d\\\\n", i);\n}\n"""\n\n\n'
                '@op.launcher("cuda"'
            ),
        )
    )
    Path(file).write_text(text)
    code = debugging.run(file, "cuda", "", "", device_debug=False)
    out = capsys.readouterr().out
    assert code == 0, out
    assert "thread 3" in out
    assert "loading takes " in out
    assert "from machine code, " in out
