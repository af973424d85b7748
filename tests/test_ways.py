"""The ways of writing a kernel: where each runs, how it is built, and what it refuses by name."""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from assay import ways
from assay.errors import BuildError, LaunchError
from assay.op import WAYS, Op, Variant
from assay.types import Case
from assay.ways import cpp, extension, launch
from assay.ways.launch import Launch, Recorder, check_geometry, check_shared

needs_compiler = pytest.mark.skipif(not shutil.which(cpp.compiler()), reason="no C++ compiler")
needs_nvrtc = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("cuda", "cuda.bindings")),
    reason="no NVRTC",
)


def job(
    way: str,
    source: Path,
    launcher: Callable[[Any], None] = lambda k: None,
    arch: str = "sm_90",
    **declared: Any,
) -> ways.Job:
    op = Op("thing", lambda x: x, lambda make: (), cases=[{}])
    variant = Variant(way, way, launcher, fills=True, source=source, **declared)
    return ways.Job(op, variant, {}, Case(), "cpu", arch, launcher)


# Where each way runs


@pytest.mark.parametrize("name", WAYS)
def test_every_way_says_where_it_runs(name: str) -> None:
    for device in ("cpu", "cuda:0"):
        here = ways.here(name, device)
        assert here.judge or here.reason
        assert here.device in ("cpu", "cuda:0")
        assert not (here.timed and not here.judge)
        if here.judge in ("interpreter", "simulator"):
            assert here.device == "cpu"
            assert here.env
            assert not here.timed
            assert callable(ways.way(name).limit)
            assert callable(ways.way(name).refuses)


@pytest.mark.parametrize(
    ("name", "device", "hidden", "said"),
    [
        ("triton", "cpu", "triton", r"Triton is not installed: pip install 'assay\[triton\]'"),
        ("compiled", "cuda:0", "triton", r"assay\[triton\]"),
        ("numba", "cpu", "numba", r"Numba is not installed: pip install 'assay\[numba\]'"),
        ("numba", "cuda:0", "numba_cuda", "numba-cuda is not installed"),
        ("cuda", "cpu", "cuda", r"cuda-bindings is not installed: pip install 'assay\[cuda\]'"),
        ("cuda", "cpu", "cuda.bindings", "cuda-bindings is not installed"),
        ("cuda", "cpu", "cuda.pathfinder", "cuda-pathfinder is not installed"),
        ("cuda", "cuda:0", "cuda.core", "cuda-core is not installed"),
    ],
)
def test_a_missing_package_is_named_with_what_brings_it(
    name: str, device: str, hidden: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(module: str, *more: Any) -> object | None:
        if hidden == "cuda" and module.startswith("cuda."):
            raise ModuleNotFoundError("No module named 'cuda'")
        return None if module == hidden else object()

    monkeypatch.setattr(importlib.util, "find_spec", found)
    here = ways.here(name, device)
    assert here.judge == ""
    assert re.search(said, here.reason), here.reason


@pytest.mark.parametrize(
    ("name", "device", "judge", "timed"),
    [
        ("triton", "cpu", "simt", False),
        ("triton", "cuda:0", "cuda:0", True),
        ("numba", "cpu", "simt", False),
        ("numba", "cuda:0", "cuda:0", True),
        ("cuda", "cpu", "simt", False),
        ("cuda", "cuda:1", "cuda:1", True),
        ("eager", "cuda:0", "cuda:0", True),
        ("python", "cuda:0", "cpu", True),
        ("library", "cpu", "", False),
    ],
)
def test_with_its_packages_a_way_runs(
    name: str, device: str, judge: str, timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: object())
    here = ways.here(name, device)
    assert (here.judge, here.timed) == (judge, timed)
    assert here.compiles == (name == "cuda" and device == "cpu")


def test_missing_compilers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "cl++")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    assert "cl++ is not on PATH; apt install g++" in ways.here("cpp", "cpu").reason
    assert "cl++ is not on PATH" in ways.here("extension", "cpu").reason
    assert "apt install g++" in ways.here("compiled", "cpu").reason
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "nvcc" else name)
    assert "no nvcc" in ways.here("extension", "cuda:0").reason
    monkeypatch.setattr(extension, "ninja", lambda: None)
    assert "ninja is missing: pip install ninja" in ways.here("extension", "cpu").reason


# cpp


@pytest.mark.parametrize(
    ("parameter", "kind"),
    [
        ("float* y", "float*"),
        ("const float *__restrict__ x", "float*"),
        ("const std::uint16_t* x", "uint16_t*"),
        ("float y[]", "float*"),
        ("double const x[4]", "double*"),
        ("int n", "int"),
        ("const int64_t n", "int64_t"),
        ("std::size_t n", "size_t"),
        ("unsigned int n", "unsigned int"),
        ("unsigned n", "unsigned"),
        ("long long n", "long long"),
        ("unsigned long long", "unsigned long long"),
        ("float", "float"),
        ("float scale = 1.0f", "float"),
        ("void* p", "void*"),
    ],
)
def test_types_are_read_from_a_prototype(parameter: str, kind: str) -> None:
    assert cpp._type(parameter) == kind
    assert kind.endswith("*") or kind in cpp.TYPES


@pytest.mark.parametrize(
    ("kind", "value", "made"),
    [
        ("float", 7, 7.0),
        ("float", 7.0, 7.0),
        ("float", 0.1, 0.1),
        ("double", True, 1.0),
        ("float", float("inf"), float("inf")),
        ("int", 7.0, 7),
        ("int", True, 1),
        ("int", np.int64(5), 5),
        ("float", np.float32(0.5), 0.5),
        ("int", np.float64(3.0), 3),
        ("int64_t", 2**40, 2**40),
        ("uint8_t", 255, 255),
        ("bool", 1, 1),
    ],
)
def test_a_number_becomes_what_is_declared(kind: str, value: Any, made: Any) -> None:
    got = cpp.number("f", 2, value, kind, kind in cpp.FLOATS)
    assert got == made
    assert type(got) is (float if kind in cpp.FLOATS else int)


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("int", 1.5, "f: argument 2 is declared int, and got 1.5"),
        ("int", 2**40, "declared int; 1099511627776 does not fit"),
        ("uint8_t", -1, "declared uint8_t; -1 does not fit"),
        ("int", float("nan"), "declared int, and got nan"),
        ("float", 1e300, "declared float; 1e[+]300 does not fit"),
        ("double", 10**400, "declared double"),
        ("float", 2**24 + 1, "declared float, which can't hold 16777217 exactly"),
        ("bool", 2, "declared bool; 2 does not fit"),
        ("int", "7", "declared int, and got a str"),
        ("int", None, "declared int, and got a NoneType"),
    ],
)
def test_a_lossy_number_is_refused_by_name(kind: str, value: Any, said: str) -> None:
    with pytest.raises(LaunchError, match=said):
        cpp.number("f", 2, value, kind, kind in cpp.FLOATS)


SOURCE = r"""
#include <cstdint>
#include <omp.h>
#include "scale.h"
// void commented(int n);
static void helper(float* y) { y[0] = 0; }
extern "C" void scaled(float* y, const float* x, int64_t n, float a, /* int gone, */ bool twice) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) y[i] = a * SCALE * x[i] * (twice ? 2 : 1);
}
extern "C" void threads(int* out) {
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    out[0] = omp_get_num_threads();
  }
}
#define MADE(name) extern "C" void name##_made(int n) {}
MADE(macro)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "scale.h").write_text("#define SCALE 3\n")
    path = tmp_path / "scaled.cpp"
    path.write_text(SOURCE)
    return path


@needs_compiler
def test_a_cpp_source_is_built_called_and_cached(source: Path) -> None:
    import torch

    loaded = cpp.load(job("cpp", source))
    k = loaded.handle
    assert not loaded.build.cached
    assert "-fopenmp" in loaded.build.log
    x, y = torch.arange(4.0), torch.zeros(4)
    k.scaled(y, x, 4.0, 2, True)
    assert y.tolist() == [0, 12, 24, 36]
    out = torch.zeros(1, dtype=torch.int32)
    k.threads(out)
    assert out.item() == 2, "OpenMP"
    for args, said in (
        ((y, x, 4, 2), "scaled takes 5 arguments, and got 4"),
        ((y, x, 1.5, 2, True), "argument 2 is declared int64_t, and got 1.5"),
        ((y, x.double(), 4, 2, True), r"argument 1 is declared float\*, and got float64"),
        ((y, x.int(), 4, 2, True), r"argument 1 is declared float\*, and got int32"),
        ((4, x, 4, 2, True), r"argument 0 is declared float\*, and got a int"),
        ((y, x, y, 2, True), "argument 2 is declared int64_t, and got a Tensor"),
        ((y, x.to("meta"), 4, 2, True), "argument 1 is on meta, not the CPU"),
    ):
        with pytest.raises(LaunchError, match=said):
            k.scaled(*args)
    with pytest.raises(LaunchError, match=r"exports no function 'helper'; declare it extern"):
        k.helper(y)
    with pytest.raises(LaunchError, match=r"no readable declaration of macro_made\(\.\.\.\)"):
        k.macro_made(1)
    again = cpp.load(job("cpp", source))
    assert again.build.cached
    assert again.build.log == loaded.build.log


@needs_compiler
def test_a_changed_header_or_flag_builds_again(source: Path, monkeypatch: Any) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], folder: Path | None = None) -> str:
        ran.append(command)
        Path(command[-1]).write_bytes(b"")
        return ""

    monkeypatch.setattr(cpp, "run", run)
    monkeypatch.setattr(cpp, "Library", lambda path, source: None)
    for _ in range(2):
        cpp.load(job("cpp", source))
    assert len(ran) == 1
    (source.parent / "scale.h").write_text("#define SCALE 4\n")
    cpp.load(job("cpp", source))
    assert len(ran) == 2
    cpp.load(job("cpp", source, flags=("-ffast-math",)))
    assert len(ran) == 3
    assert "-ffast-math" in ran[-1]


@needs_compiler
def test_a_compile_error_is_named_with_place_and_source_line(source: Path) -> None:
    source.write_text('extern "C" void f(float* y) {\n  int unused = 1;\n  y[0] = nothing;\n}\n')
    with pytest.raises(BuildError) as failed:
        cpp.load(job("cpp", source))
    pattern = rf"{re.escape(str(source))}:3:10: error: .*nothing.*: y\[0\] = nothing;"
    assert re.fullmatch(pattern, failed.value.first)
    assert "In function" in failed.value.log, "the whole log, whose first line is no error"


@needs_compiler
def test_a_symbol_that_nothing_defines_did_not_build(source: Path) -> None:
    source.write_text('void gone(int);\nextern "C" void f(int n) { gone(n); }\n')
    with pytest.raises(BuildError, match=r"scaled\.cpp does not load: .*undefined symbol: .*gone"):
        cpp.load(job("cpp", source))


def test_of_a_log_the_first_error_is_told() -> None:
    linker = "/usr/bin/ld: k.o: in function `f':\nk.cpp:2: undefined reference to `gone'\n"
    linker += "collect2: error: ld returned 1 exit status\n"
    assert cpp.first_error(linker) == "k.cpp:2: undefined reference to `gone'"
    ninja = (
        "[1/2] c++ -Werror -o main.o\nFAILED: main.o\nIn file included from a.h:1,\n"
        "/k/square.cpp: In function 'void f()':\n/k/square.cpp:7:3: warning: unused\n"
        "/k/square.cpp:8:9: error: 'z' was not declared in this scope\n    8 |   y = z;\n"
        "      |       ^\n/k/square.cpp:9:1: error: another\nninja: build stopped\n"
    )
    wanted = "/k/square.cpp:8:9: error: 'z' was not declared in this scope: y = z;"
    assert cpp.first_error(ninja) == wanted
    assert cpp.first_error("a.h:1: fatal error: x.h: No such file\n") == (
        "a.h:1: fatal error: x.h: No such file"
    )
    assert cpp.first_error("") == "the compiler said nothing"


# extension


def test_the_binding_names_the_functions_that_the_launcher_calls() -> None:
    names = extension.Names()
    for _ in range(2):
        names.square_out(1, 2)
    names.other(3)
    assert names.used == ["square_out", "other"]
    assert not hasattr(names, "__torch_function__")
    text = extension.binding(names.used)
    assert 'm.def("square_out", &square_out);' in text
    assert text.startswith("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")


@pytest.mark.parametrize(
    ("arch", "listed"), [("sm_90", "9.0"), ("sm_90a", "9.0a"), ("sm_120", "12.0")]
)
def test_architectures_as_torch_writes_them(arch: str, listed: str) -> None:
    assert extension._arch_list(arch) == listed


# CUDA: geometry and shared memory, without a GPU


@pytest.mark.parametrize(
    ("grid", "block", "said"),
    [
        (1, 1500, "k: 1,500 threads a block, limit 1,024"),
        (1, (64, 32), "k: 2,048 threads a block, limit 1,024"),
        ((1, 1, 65_536), 32, "k: grid z = 65,536, limits 1 to 65,535"),
        ((1, 65_536), 32, "k: grid y = 65,536, limits 1 to 65,535"),
        (2**31, 32, "k: grid x = 2,147,483,648, limits 1 to 2,147,483,647"),
        (0, 32, "k: grid x = 0, limits 1 to"),
        (1, (1, 1, 65), "k: block z = 65, limits 1 to 64"),
    ],
)
def test_what_no_gpu_can_launch_is_refused_by_number_and_limit(
    grid: Any, block: Any, said: str
) -> None:
    with pytest.raises(LaunchError, match=said):
        check_geometry(launch.configured_as("k", grid, block, 0))


def test_the_largest_launch_passes() -> None:
    check_geometry(Launch("k", (2**31 - 1, 65_535, 65_535), (1024, 1, 1), 0))
    check_geometry(Launch("k", (1, 1, 1), (4, 4, 64), 0))
    check_shared(Launch("k", (1, 1, 1), (1, 1, 1), 232_448), 0, "sm_90")
    check_shared(Launch("k", (1, 1, 1), (1, 1, 1), 10**9), 0, "sm_999")


def test_shared_memory_beyond_the_opt_in_limit_is_refused() -> None:
    said = r"asked 101,376 \+ static 1; default 49,152; opt-in 101,376 on sm_86"
    with pytest.raises(LaunchError, match=said):
        check_shared(Launch("k", (1, 1, 1), (1, 1, 1), 101_376), 1, "sm_86")
    with pytest.raises(LaunchError, match="opt-in 232,448 on sm_90a"):
        check_shared(Launch("k", (1, 1, 1), (1, 1, 1), 232_449), None, "sm_90a")


def test_the_recorder_notes_launches_that_were_made() -> None:
    k = Recorder("sm_90")
    k["a<float>"](grid=(2, 3), block=64, shared=16)(1, 2)
    k["b"](grid=[1], block=(1, 2, 3))
    assert k.launches == [Launch("a<float>", (2, 3, 1), (64, 1, 1), 16)]
    assert k.type(SimpleNamespace(dtype="torch.bfloat16")) == "__nv_bfloat16"
    with pytest.raises(LaunchError, match=r"no element type for torch\.qint8"):
        k.type(SimpleNamespace(dtype="torch.qint8"))
    for sizes in ((), (1, 2, 3, 4), 1.5, "8"):
        with pytest.raises(LaunchError, match="give one to three ints"):
            k["a"](grid=sizes, block=1)


# CUDA: arguments as the PTX declares them


def passed(value: Any, kind: str, size: int = 0) -> Any:
    (made,) = launch.arguments("k", (value,), [[kind, size]])
    return made


def test_numbers_become_the_declared_type() -> None:
    made = passed(7.0, "f32")
    assert type(made) is ctypes.c_float
    assert made.value == 7.0
    assert type(passed(7, "f64")) is ctypes.c_double
    assert type(passed(7, "u32")) is ctypes.c_uint32
    assert passed(-1, "u32").value == 2**32 - 1, "int and unsigned are one in PTX"
    assert passed(2**40, "u64").value == 2**40
    assert passed(True, "u8").value == 1
    assert passed(np.float64(0.5), "f32").value == 0.5
    assert type(passed(np.float64(0.5), "f32")) is ctypes.c_float
    given = ctypes.c_float(1.5)
    assert passed(given, "f32") is given
    half = np.float16(1.5)
    assert passed(half, "b8", 2) is half


class Tensor:
    def __init__(self, device: str):
        self.device = SimpleNamespace(type=device)

    def data_ptr(self) -> int:
        return 4096


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (1.5, "u32", "k: argument 0 is declared u32, and got 1.5"),
        (2**40, "u32", "argument 0 has 32 bits; 1099511627776 does not fit"),
        (1e300, "f32", "declared f32; .* does not fit"),
        (2**24 + 1, "f32", "can't hold 16777217 exactly"),
        ("x", "u32", "declared u32, and got a str"),
        (ctypes.c_double(1.0), "f32", "declared f32, and got c_double"),
        (ctypes.c_int(1), "f32", "declared f32, and got c_int"),
        (Tensor("cuda"), "f32", "declared f32, and got a tensor"),
        (Tensor("cpu"), "u64", "argument 0 is on .*move it first"),
        (1, "b8", "is a struct of 0 bytes"),
    ],
)
def test_what_the_kernel_would_misread_is_refused(value: Any, kind: str, said: str) -> None:
    with pytest.raises(LaunchError, match=said):
        passed(value, kind)


def test_tensors_go_as_addresses_and_counts_must_agree() -> None:
    assert passed(Tensor("cuda"), "u64") == 4096
    with pytest.raises(LaunchError, match="k takes 2 arguments, and got 1"):
        list(launch.arguments("k", (1,), [["u32", 0], ["u32", 0]]))


# CUDA: NVRTC, without a GPU

KERNELS = r"""
#include "factor.cuh"
template <typename T, int BLOCK>
__global__ void scale(T* y, const T* x, int n, float a, double b, bool c, long long m) {
  __shared__ T kept[BLOCK];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  kept[threadIdx.x] = i < n ? x[i] : T(0);
  __syncthreads();
  if (i < n && c) y[i] = kept[BLOCK - 1 - threadIdx.x] * T(a + b) + T(m) * FACTOR;
}
struct Pair { float a, b; };
extern "C" __global__ void plain(float* y, Pair pair) { y[threadIdx.x] = pair.a; }
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    (tmp_path / "factor.cuh").write_text("#define FACTOR 2\n")
    path = tmp_path / "kernels.cu"
    path.write_text(KERNELS)
    return path


def two(k: Any) -> None:
    k["scale<float, 64>"](grid=10, block=64, shared=32)("y", "x", 640, 1.0, 2.0, True, 3)
    k["plain"](grid=1, block=32)("y", None)
    k["scale<float, 64>"](grid=20, block=64)("y", "x", 640, 1.0, 2.0, True, 3)


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_90", "sm_80"])
def test_nvrtc_tells_registers_spills_and_shared_memory(kernels: Path, arch: str) -> None:
    cuda = ways.way("cuda")
    loaded = cuda.load(job("cuda", kernels, two, arch))
    assert f"--gpu-architecture={arch}" in loaded.build.log
    plain, scale = loaded.counters.kernels
    assert (plain.name, scale.name) == ("plain", "scale<float, 64>")
    assert scale.arch == plain.arch == arch
    assert 4 <= scale.registers <= 64
    assert (scale.shared_bytes, plain.shared_bytes) == (256, 0)
    assert (scale.spill_store_bytes, scale.spill_load_bytes, scale.stack_bytes) == (0, 0, 0)
    assert (scale.grid, scale.block) == ((10, 1, 1), (64, 1, 1))
    assert scale.dynamic_shared_bytes == 32
    assert isinstance(loaded.handle, Recorder), "nothing can be launched here"
    other = "sm_80" if arch == "sm_90" else "sm_90"
    again = cuda.load(job("cuda", kernels, two, other))
    assert not again.build.cached, "the architecture is part of the key"


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_90", "sm_120"])
def test_parameters_are_those_of_the_ptx(kernels: Path, arch: str) -> None:
    """From sm_100 on NVRTC marks pointers in it."""
    cuda = ways.way("cuda")
    names = ["plain", "scale<float, 64>"]
    built = cuda.compile_source(kernels, names, job("cuda", kernels), arch)
    scale = [kind for kind, _ in built.parameters["scale<float, 64>"]]
    assert scale == ["u64", "u64", "u32", "f32", "f64", "u8", "u64"]
    assert built.parameters["plain"] == [["u64", 0], ["b8", 8]]
    assert built.cubin.read_bytes()[:4] == b"\x7fELF"
    y = Tensor("cuda")
    declared = built.parameters["scale<float, 64>"]
    good = list(launch.arguments("scale", (y, y, 640, 7.0, 7, True, 2**40), declared))
    assert [type(v) for v in good[2:5]] == [ctypes.c_uint32, ctypes.c_float, ctypes.c_double]
    with pytest.raises(LaunchError, match=r"scale: argument 2 is declared u32, and got 1\.5"):
        list(launch.arguments("scale", (y, y, 1.5, 7, 7, 1, 1), declared))


@needs_nvrtc
def test_one_constant_rebuilds_just_its_kernel(kernels: Path) -> None:
    cuda = ways.way("cuda")
    other = kernels.with_name("other.cu")
    other.write_text('extern "C" __global__ void other(float* y) { y[0] = 1.0f; }\n')

    def uses(name: str) -> Callable[[Any], None]:
        return lambda k: k[name](grid=1, block=1)()

    def cached() -> list[bool]:
        pairs = ((kernels, "plain"), (other, "other"))
        return [cuda.load(job("cuda", path, uses(name))).build.cached for path, name in pairs]

    assert cached() == [False, False]
    assert cached() == [True, True]
    other.write_text(other.read_text().replace("1.0f", "2.0f"))
    assert cached() == [True, False]
    (kernels.parent / "factor.cuh").write_text("#define FACTOR 3\n")
    assert cached() == [False, True]
    assert cached() == [True, True]


@needs_nvrtc
@pytest.mark.parametrize("toolkit", [True, False])
def test_assays_own_headers_are_part_of_the_key(
    kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolkit: bool
) -> None:
    cuda = ways.way("cuda")
    own = tmp_path / "own"
    own.mkdir()
    (own / "assay.cuh").write_text("#define OWN 1.0f\n")
    monkeypatch.setattr(cuda, "INCLUDE", own)
    if not toolkit:
        monkeypatch.setattr(cuda, "toolkit_headers", lambda: ())
    source = tmp_path / "uses.cu"
    text = '#include "assay.cuh"\nextern "C" __global__ void k(float* y) { y[0] = OWN; }\n'
    source.write_text(text)
    keys = set()
    for value in ("1.0f", "2.0f"):
        (own / "assay.cuh").write_text(f"#define OWN {value}\n")
        keys.add(cuda.compile_source(source, ["k"], job("cuda", source)).build.key)
    assert len(keys) == 2


@needs_nvrtc
@pytest.mark.parametrize(
    ("body", "first"),
    [
        (
            "  y[0] = nothing;\n",
            r":2:10: error: identifier \"nothing\" is undefined: y\[0\] = nothing;",
        ),
        ("#include <none.h>\n", r":2(:\d+)?: error: .*none\.h.*: #include <none\.h>"),
        ("  __shared__ float s[99999]; y[0] = s[int(y[1])];\n", r"ptxas error .*too much shared"),
    ],
)
def test_nvrtc_errors_are_named_with_place_and_source_line(
    tmp_path: Path, body: str, first: str
) -> None:
    source = tmp_path / "k.cu"
    source.write_text(f'extern "C" __global__ void k(float* y) {{\n{body}}}\n')
    with pytest.raises(BuildError) as failed:
        ways.way("cuda").compile_source(source, ["k"], job("cuda", source))
    assert re.search(first, failed.value.first), failed.value.first
    assert failed.value.log


@needs_nvrtc
def test_an_unknown_architecture_or_kernel_is_named(kernels: Path) -> None:
    cuda = ways.way("cuda")
    with pytest.raises(BuildError, match="gpu-architecture"):
        cuda.compile_source(kernels, ["plain"], job("cuda", kernels, arch="sm_12345"))
    with pytest.raises(BuildError, match="missing"):
        cuda.compile_source(kernels, ["missing<int>"], job("cuda", kernels))


@needs_nvrtc
def test_too_much_shared_memory_is_refused_before_any_launch(kernels: Path) -> None:
    def launcher(k: Any) -> None:
        k["scale<float, 64>"](grid=1, block=64, shared=232_448 - 255)()

    with pytest.raises(LaunchError, match=r"asked 232,193 \+ static 256; .*opt-in 232,448"):
        ways.way("cuda").load(job("cuda", kernels, launcher))


# Ways that run somewhere else without a GPU, and one real extension

FILE = r"""
import torch
import assay

def reference(x):
    return x * 2

def inputs(make, n, dtype):
    return (make.normal(n, dtype=dtype),)

double = assay.Op("double", reference, inputs, cases=CASES)
"""

TRITON = """
import triton
import triton.language as tl

@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, i < n, other=0.0) * 2, i < n)

@double.launcher("triton")
def launch(y, x):
    kernel[(triton.cdiv(x.numel(), 4),)](x, y, x.numel(), 4)
"""

NUMBA = """
from numba import cuda

@cuda.jit
def kernel(y, x):
    i = cuda.grid(1)
    if i < y.shape[0]:
        y[i] = x[i] * 2

@double.launcher("numba")
def launch(y, x):
    kernel[(x.numel() + 63) // 64, 64](y, x)
"""


@pytest.mark.parametrize(
    ("way", "text", "said"),
    [
        (
            "triton",
            TRITON,
            {
                "n=100 dtype=float32": ("right", ""),
                "n=400000 dtype=float32": (
                    "not run",
                    "100,000 programs, about 135 s in the interpreter; --slow runs it",
                ),
                "n=100 dtype=bfloat16": ("not run", "the interpreter truncates casts to 16 bits"),
            },
        ),
        (
            "numba",
            NUMBA,
            {
                "n=64000 dtype=float32": (
                    "not run",
                    "64,000 threads, about 24 s in the simulator; --slow runs it",
                ),
                "n=5 dtype=float32": ("right", ""),
            },
        ),
    ],
)
def test_without_a_gpu_a_budget_and_honest_refusals(
    judge: Any,
    way: str,
    text: str,
    said: dict[str, tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where compiled code can't be run either: there is no C++ compiler."""
    monkeypatch.setattr(ways.way(way), "watches", lambda: False)
    if importlib.util.find_spec(way) is None:
        pytest.skip(f"no {way}")
    cases = [dict(part.split("=") for part in label.split()) for label in said]
    typed = [{"n": int(case["n"]), "dtype": case["dtype"]} for case in cases]
    rows = judge(FILE.replace("CASES", repr(typed)) + text, variants=(way,))
    assert {row.case.label: row.word for row in rows} == {c: word for c, (word, _) in said.items()}
    for row in rows:
        assert said[row.case.label][1] in row.reason


EXTENSION = r"""
#include <ATen/core/Tensor.h>
void double_out(const at::Tensor& y, const at::Tensor& x) {
  const float* from = x.const_data_ptr<float>();
  float* to = y.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); i++) to[i] = 2 * from[i];
}
"""


@pytest.mark.full
@needs_compiler
@pytest.mark.skipif(extension.ninja() is None, reason="no ninja")
def test_an_extension_is_built_behind_the_cache(judge: Any, tmp_path: Path) -> None:
    (tmp_path / "double.cpp").write_text(EXTENSION)
    text = FILE.replace("CASES", "[dict(n=100, dtype='float32')]") + (
        '\n@double.launcher("extension", source="double.cpp", flags="-O1")\n'
        "def launch(k, y, x):\n    k.double_out(y, x)\n"
    )
    (row,) = judge(text, variants=("extension",))
    assert (row.word, row.build.cached) == ("right", False)
    (row,) = judge(text, variants=("extension",))
    assert (row.word, row.build.cached) == ("right", True)
    assert "-fopenmp" in row.build.log


def test_each_way_has_a_file_that_says_what_it_is() -> None:
    for name in WAYS:
        said = inspect.getdoc(ways.way(name)) or ""
        assert said.startswith("`"), f"{name}: {said[:40]}"


def test_every_case_is_compiled_and_not_just_the_first_eight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Past its limit torch runs a function as it is, which would be eager under another name."""
    import torch

    from assay.ways import compiled

    compilations = []

    def noted(graph: Any, inputs: Any) -> Any:
        compilations.append(inputs)
        return graph.forward

    whole = torch.compile
    monkeypatch.setattr(torch, "compile", lambda f, **said: whole(f, backend=noted, **said))
    torch._dynamo.reset()
    cases = [{"n": n} for n in range(2, 14)]
    op = Op("tenfold", lambda x: x * 10, lambda make, n: (make.normal(n),), cases=cases)
    for n in range(2, 14):
        compiled.function(op)(torch.ones(n))
    assert len(compilations) == 12
