"""The doctor: text into values, facts into problems, and the whole command on broken machines."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

from assay import doctor
from assay.doctor import bounded, compilers, fixes, gpu, host, page, parse, search
from assay.doctor.capability import features, ptx_of
from assay.doctor.facts import (
    NVCC_HOST,
    TRITON_KERNEL,
    Board,
    Cuda,
    Device,
    Facts,
    Host,
    Management,
    Probe,
    Report,
)
from assay.doctor.rules import judge

FIXTURES = Path(__file__).parent / "fixtures"
SOURCE = Path(doctor.__file__).parents[2]


# Text into values


def test_nvidia_smi_recorded_on_an_h200():
    found = parse.nvidia_smi((FIXTURES / "nvidia_smi_q.txt").read_text())
    assert (found.driver, found.cuda, found.error) == ("580.159.04", "13.0", "")
    (board,) = found.boards
    assert board.pci == "00000000:00:06.0"
    assert (board.sm_clock_hertz, board.memory_clock_hertz) == (1_980_000_000, 3_201_000_000)
    assert board.ecc is None  # not in the recorded piece


@pytest.mark.parametrize(("word", "on"), [("Enabled", True), ("Disabled", False), ("N/A", None)])
def test_nvidia_smi_ecc(word, on):
    text = (FIXTURES / "nvidia_smi_q.txt").read_text()
    text += f"    ECC Mode\n        Current                    : {word}\n"
    assert parse.nvidia_smi(text).boards[0].ecc is on


def test_nvidia_smi_that_fails_says_why():
    said = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 1\n"
    assert parse.nvidia_smi(said).error == said.splitlines()[0]
    assert parse.nvidia_smi("").error == "printed nothing"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Cuda compilation tools, release 13.0, V13.0.88\nBuild cuda_13.0.r13.0/c.36_0", "13.0.88"),
        ("NVIDIA (R) Nsight Compute\nVersion 2025.3.1.0 (build 36398880) (public)", "2025.3.1.0"),
        ("NVIDIA Nsight Systems version 2025.3.2.474-253236389321v0", "2025.3.2.474"),
        ("NVIDIA (R) Compute Sanitizer\nVersion 2025.3.1.0 (build 1)", "2025.3.1.0"),
        ("NVIDIA (R) cuda-gdb\n13.0 release\nGNU gdb (GDB) 14.2", "13.0"),
        ("1.13.0.git.kitware.jobserver-pipe-1", "1.13.0"),
        ("no number", ""),
    ],
)
def test_tool_version(text, version):
    assert parse.tool_version(text) == version


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", ("", "")),
        ("debug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", ("13.0", "")),
        ("cuda = '12.8'\n", ("12.8", "")),
        ("cuda: Optional[str] = None\nhip: Optional[str] = '6.4.4'\n", ("", "6.4.4")),
    ],
)
def test_torch_build(text, build):
    assert parse.torch_build(text) == build


def test_small_system_files():
    assert parse.counters("ResmanDebugLevel: 1\nRmProfilingAdminOnly: 1\n") is True
    assert parse.counters("RmProfilingAdminOnly: 0\n") is False
    assert parse.counters("") is None
    assert host.counters("RmProfilingAdminOnly: 1\n") == "administrators"
    assert parse.administrator("CapEff:\t000001ffffffffff\n")
    assert parse.administrator("CapEff:\t0000004000000000\n")  # CAP_PERFMON alone
    assert not parse.administrator("CapEff:\t00000000a80425fb\n")  # Docker's default
    assert parse.os_family('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n') == "debian"
    assert parse.os_family('ID="rocky"\nID_LIKE="rhel centos fedora"\n') == "fedora"
    assert parse.os_family("ID=nixos\n") == ""
    assert parse.numbers("2.13.0+cpu") == (2, 13, 0)
    assert parse.same_card("00000000:3B:00.0", "0000:3b:00.0")
    assert not parse.same_card("00000000:3B:00.0", "0000:3c:00.0")
    assert parse.define("#define CUDART_VERSION  13050\n", "CUDART_VERSION") == 13050


def test_nvidia_cards_counts_display_and_3d_controllers_of_nvidia(tmp_path):
    rows = [("0x10de", "0x030200"), ("0x10de", "0x040300"), ("0x1002", "0x030000")]
    for number, (vendor, kind) in enumerate(rows):
        entry = tmp_path / str(number)
        entry.mkdir()
        (entry / "vendor").write_text(f"{vendor}\n")
        (entry / "class").write_text(f"{kind}\n")
    assert host.nvidia_cards(tmp_path) == 1


def test_capability_table():
    assert "bf16" not in features((7, 5))
    assert {"bf16", "tf32 tensor cores", "cp.async"} <= set(features((8, 0)))
    assert "fp8 tensor cores" not in features((8, 6))
    assert {"fp8 tensor cores", "TMA", "clusters", "wgmma"} <= set(features((9, 0)))
    assert "wgmma" not in features((10, 0))
    assert "tcgen05" not in features((12, 0))
    assert (ptx_of("12.4"), ptx_of("13.0"), ptx_of("99.0"), ptx_of("")) == ("8.4", "9.0", "", "")


# Facts into problems


def found(name: str, version: str = "", **more) -> Probe:
    return Probe(name=name, state="found", version=version, **more)


H200 = Device(
    index=0,
    name="NVIDIA H200",
    capability=(9, 0),
    pci="0000:00:06.0",
    memory_bytes=150_000_000_000,
    sms=132,
    registers_per_sm=65536,
    features=features((9, 0)),
)
WELL = Facts(
    host=Host(
        python="3.12.3",
        executable="/usr/bin/python3",
        family="debian",
        shm_bytes=1 << 33,
        counters="everyone",
    ),
    cuda=Cuda(version="13.0", library="/usr/lib/libcuda.so.1", devices=(H200,)),
    management=Management(
        driver="580.159.04", cuda="13.0", boards=(Board(pci="00000000:00:06.0"),), source="NVML"
    ),
    toolkit=(
        found("nvcc", "13.0.88", origin="PATH", architectures=("8.0", "9.0")),
        found("NVRTC", "13.0", architectures=("8.0", "9.0")),
        found("cuda_runtime.h", "13.0"),
    ),
    compilers=(
        found("C++ compiler", path="/usr/bin/g++"),
        found("C compiler"),
        found("OpenMP"),
        found("Python.h"),
        found("ninja", "1.11.1", origin="PATH"),
        found(NVCC_HOST),
        found(TRITON_KERNEL),
    ),
    packages=(found("torch", "2.11.0"), found("triton", "3.6.0"), found("numba-cuda", "0.30.4")),
    torch_cuda="13.0",
    nvrtc_ptx="9.0",
)


def put(facts: Facts, *probes: Probe) -> Facts:
    """`facts` with these probes in place of those of the same names."""
    named = {probe.name: probe for probe in probes}

    def swapped(old: tuple[Probe, ...]) -> tuple[Probe, ...]:
        return tuple(named.pop(probe.name, probe) for probe in old)

    changed = replace(
        facts,
        toolkit=swapped(facts.toolkit),
        compilers=swapped(facts.compilers),
        packages=swapped(facts.packages),
    )
    return replace(changed, toolkit=(*changed.toolkit, *named.values()))


def on(facts: Facts, **changes) -> Facts:
    """`facts` on another host."""
    return replace(facts, host=replace(facts.host, **changes))


def failed(name: str, detail: str, **more) -> Probe:
    return Probe(name=name, state="failed", detail=detail, **more)


def missing(name: str) -> Probe:
    return Probe(name=name, state="missing")


def driver(cuda: str) -> Facts:
    return replace(WELL, cuda=replace(WELL.cuda, version=cuda))


def no_cuda(code: int, error: str = "an error", **changes) -> Facts:
    return on(replace(WELL, cuda=Cuda(code=code, error=error)), **changes)


def env(name: str, value: str) -> Facts:
    return on(WELL, environment=((name, value),))


def capability(*version: int) -> Facts:
    device = replace(H200, capability=(version[0], version[1]))
    return replace(WELL, cuda=replace(WELL.cuda, devices=(device,)))


PIP = "python -m pip install"
PROBLEMS = [
    ("torch-missing", put(WELL, missing("torch")), f'{PIP} "torch>=2.11"'),
    ("torch-broken", put(WELL, failed("torch", "gone")), f'{PIP} --force-reinstall "torch"'),
    ("torch-old", put(WELL, found("torch", "2.10.1")), f'{PIP} --upgrade "torch>=2.11"'),
    ("triton-old", put(WELL, found("triton", "3.5.1")), f'{PIP} --upgrade "triton>=3.6"'),
    (
        "torch-cpu-only",
        put(replace(WELL, torch_cuda=""), found("torch", "2.13.0+cpu")),
        f'{PIP} --force-reinstall "torch==2.13.0"',
    ),
    (
        "torch-cpu-only",
        replace(WELL, torch_cuda="", torch_hip="6.4"),
        f'{PIP} --force-reinstall "torch==2.11.0"',
    ),
    (
        "nvcc-torch-major",
        put(WELL, found("nvcc", "12.8.93")),
        f'{PIP} "nvidia-cuda-nvcc==13.*"',
    ),
    (
        "nvcc-torch-major",
        put(WELL, found("nvcc", "12.8.93", others=("/usr/local/cuda-13.0/bin/nvcc",))),
        "export CUDA_HOME=/usr/local/cuda-13.0",
    ),
    (
        "nvcc-torch-major",
        replace(put(WELL, found("nvcc", "10.1.2")), torch_cuda="11.3"),
        "install the CUDA 11 toolkit and set CUDA_HOME to its folder",
    ),
    ("driver-old", driver("12.4"), "install NVIDIA driver 580.65.06 or newer"),
    ("nvrtc-major", driver("12.4"), f'{PIP} "nvidia-cuda-nvrtc-cu12==12.4.*"'),
    (
        "nvrtc-headers",
        put(WELL, found("cuda_runtime.h", "12.8")),
        f'{PIP} "nvidia-cuda-runtime==13.*"',
    ),
    ("nvrtc-architecture", capability(12, 0), f"{PIP} --upgrade nvidia-cuda-nvrtc"),
    ("nvcc-architecture", capability(7, 0), f"{PIP} nvidia-cuda-nvcc-cu12"),
    (
        "libcuda-missing",
        no_cuda(-1, container="docker"),
        "start the container with: docker run --gpus all ...",
    ),
    (
        "libcuda-missing",
        replace(no_cuda(-1, nvidia_cards=1), management=Management(error="none")),
        "install NVIDIA driver 580.65.06 or newer",
    ),
    ("cuda-init", no_cuda(999), "sudo modprobe nvidia_uvm"),
    ("cuda-init", no_cuda(802), "sudo systemctl start nvidia-fabricmanager"),
    ("cuda-init", no_cuda(803, root=True), "reboot"),
    ("cuda-init", no_cuda(1), "sudo dmesg | grep -i nvrm"),
    (
        "driver-mismatch",
        replace(WELL, management=Management(error="Driver/library version mismatch")),
        "sudo reboot",
    ),
    (
        "compute-prohibited",
        replace(WELL, cuda=replace(WELL.cuda, devices=(replace(H200, compute_mode=2),))),
        "sudo nvidia-smi -i 0000:00:06.0 -c DEFAULT",
    ),
    ("cxx", put(WELL, missing("C++ compiler")), "sudo apt-get install g++"),
    ("cxx", on(put(WELL, missing("C++ compiler")), family="fedora"), "sudo dnf install gcc-c++"),
    ("cxx", put(WELL, failed("C++ compiler", "exit code 1")), "sudo apt-get install g++"),
    ("cc", put(WELL, missing("C compiler")), "sudo apt-get install gcc"),
    ("python-header", put(WELL, missing("Python.h")), "sudo apt-get install python3.12-dev"),
    (
        "python-header",
        on(put(WELL, missing("Python.h")), executable="/opt/py/bin/python"),
        "install the development files (Python.h) of Python 3.12, the one in use",
    ),
    ("openmp", put(WELL, failed("OpenMP", "-lgomp")), "sudo apt-get install libgomp1"),
    (
        "nvcc-host",
        put(WELL, failed(NVCC_HOST, "unsupported GNU version!", others=("/usr/bin/g++-13",))),
        'export NVCC_PREPEND_FLAGS="-ccbin /usr/bin/g++-13"',
    ),
    (
        "triton-kernel",
        put(WELL, failed(TRITON_KERNEL, "fatal error: Python.h: No such file")),
        "sudo apt-get install python3.12-dev",
    ),
    (
        "triton-kernel",
        put(WELL, failed(TRITON_KERNEL, "Failed to find C compiler.")),
        "sudo apt-get install gcc",
    ),
    (
        "triton-kernel",
        put(WELL, failed(TRITON_KERNEL, "libcuda.so cannot found!")),
        "export TRITON_LIBCUDA_PATH=/usr/lib",
    ),
    (
        "triton-kernel",
        put(WELL, failed(TRITON_KERNEL, "ptxas fatal: unknown gpu-name")),
        f"{PIP} --upgrade triton",
    ),
    ("ninja-broken", put(WELL, failed("ninja", "x")), f"{PIP} --force-reinstall ninja"),
    (
        "counters-forbidden",
        on(WELL, counters="administrators"),
        f"echo '{fixes.MODPROBE}' | sudo tee /etc/modprobe.d/nvidia-counters.conf && sudo reboot",
    ),
    ("shm-small", on(WELL, shm_bytes=1 << 26), "sudo mount -o remount,size=8g /dev/shm"),
    (
        "shm-small",
        on(WELL, shm_bytes=1 << 26, container="docker"),
        "start the container with: docker run --shm-size=8g ...",
    ),
    ("env-cuda_launch_blocking", env("CUDA_LAUNCH_BLOCKING", "1"), "unset CUDA_LAUNCH_BLOCKING"),
    ("env-triton_interpret", env("TRITON_INTERPRET", "1"), "unset TRITON_INTERPRET"),
    ("env-numba_enable_cudasim", env("NUMBA_ENABLE_CUDASIM", "1"), "unset NUMBA_ENABLE_CUDASIM"),
    (
        "numba-cuda-and-numpy",
        put(put(WELL, found("numba-cuda", "0.30.4")), found("numpy", "2.5.1")),
        f'{PIP} "numpy<2.5"',
    ),
]


@pytest.mark.parametrize(("id", "facts", "fix"), PROBLEMS)
def test_each_problem_is_found_with_its_fix(id, facts, fix):
    problems, _ = judge(facts)
    assert {p.id: p.fix for p in problems}.get(id) == fix


def test_a_numba_cuda_that_knows_its_numpy_is_no_problem() -> None:
    for cuda, numpy in (("0.30.4", "2.4.6"), ("0.31.0", "2.5.1")):
        facts = put(put(WELL, found("numba-cuda", cuda)), found("numpy", numpy))
        assert "numba-cuda-and-numpy" not in {p.id for p in judge(facts)[0]}


NOTES = [
    ("nvcc-torch-minor", put(WELL, found("nvcc", "13.1.1"))),
    ("driver-minor", replace(WELL, torch_cuda="13.2")),
    ("nvrtc-newer", put(WELL, found("NVRTC", "13.5"))),
    ("nvprof", put(WELL, found("nvprof", "12.0"))),
    ("numba-cuda-missing", put(WELL, found("numba", "0.68"), missing("numba-cuda"))),
    ("ninja-missing", put(WELL, missing("ninja"))),
    ("ninja-path", put(WELL, found("ninja", origin="beside Python", path="/v/bin/ninja"))),
    ("gpus-hidden", no_cuda(100, environment=(("CUDA_VISIBLE_DEVICES", ""),))),
    (
        "libcuda-missing",  # of a container that was given no GPU: perhaps on purpose
        replace(
            no_cuda(-1, nvidia_cards=8, container="docker"), management=Management(error="none")
        ),
    ),
    (
        "env-triton_interpret",  # without a GPU it takes nothing away
        replace(
            no_cuda(-1, environment=(("TRITON_INTERPRET", "1"),)),
            management=Management(error="none"),
        ),
    ),
]


@pytest.mark.parametrize(("id", "facts"), NOTES)
def test_each_note_is_a_note_and_no_problem(id, facts):
    problems, notes = judge(facts)
    assert id in [n.id for n in notes]
    assert id not in [p.id for p in problems]


def test_a_well_machine_has_nothing_to_mend():
    assert judge(WELL) == ((), ())


def test_no_gpu_is_a_fact_and_no_problem():
    cuda = Cuda(code=-1, error="libcuda.so.1: cannot open shared object file")
    facts = replace(WELL, cuda=cuda, management=Management(error="no nvidia-smi"), torch_cuda="")
    assert judge(facts) == ((), ())


def test_ptx_newer_than_the_driver_is_said_in_ptx_versions():
    facts = put(driver("12.4"), found("NVRTC", "12.8"), found("cuda_runtime.h", "12.8"))
    facts = replace(facts, nvrtc_ptx="8.7", torch_cuda="12.4")
    _, notes = judge(put(facts, found("nvcc", "12.4.1", architectures=("9.0",))))
    (note,) = notes
    assert "PTX 8.7, the driver takes up to 8.4" in note.what
    assert note.fix == f'{PIP} "nvidia-cuda-nvrtc-cu12==12.4.*"'


def test_counters_for_an_administrator_or_without_gpu_are_no_problem():
    assert judge(on(WELL, counters="administrators", administrator=True)) == ((), ())
    (problem,), _ = judge(on(WELL, counters="administrators", container="docker"))
    assert "--cap-add=SYS_ADMIN" in problem.fix
    assert fixes.MODPROBE in problem.fix
    assert not problem.command


def test_a_profilers_refusal_is_recognised():
    said = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU"
    finding = doctor.denied(said, Host())
    assert finding is not None
    assert fixes.MODPROBE in finding.fix
    assert doctor.denied("==ERROR== something else", Host()) is None


def test_every_problem_has_a_fix():
    for _, facts, _ in PROBLEMS:
        assert all(problem.fix for problem in judge(facts)[0])


# Probing


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


NVCC = search.PROGRAMS[0]
RELEASE = "echo 'Cuda compilation tools, release {0}, V{0}.1'"


def test_cuda_home_comes_before_path_and_the_rest_is_listed(tmp_path):
    mine = script(tmp_path / "home/bin/nvcc", RELEASE.format("13.0"))
    other = script(tmp_path / "path/nvcc", RELEASE.format("12.8"))
    environ = {"CUDA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}
    probe = search.program(NVCC, search.roots(environ, ()), environ)
    assert (probe.version, probe.origin, probe.path) == ("13.0.1", "CUDA_HOME", str(mine))
    assert probe.others[0] == str(other)


def test_wheels_are_searched_and_a_program_that_fails_is_passed_over(tmp_path):
    broken = script(tmp_path / "path/nvcc", "echo 'error: no licence' >&2; exit 3")
    good = script(tmp_path / "site-packages/nvidia/cu13/bin/nvcc", RELEASE.format("13.0"))
    environ = {"PATH": str(broken.parent)}
    places = search.roots(environ, [tmp_path / "site-packages"])
    probe = search.program(NVCC, places, environ)
    assert (probe.path, probe.origin) == (str(good), "wheel")
    assert "exit code 3: error: no licence" in probe.detail
    alone = search.program(NVCC, (), environ)
    assert (alone.state, alone.path) == ("failed", str(broken))


def test_headers_and_libraries_are_found_in_wheels_with_their_versions(tmp_path):
    include = tmp_path / "nvidia/cu13/include"
    (include / "cccl/cuda/std/__cccl").mkdir(parents=True)
    (include / "cuda_runtime.h").touch()
    (include / "cuda_runtime_api.h").write_text("#define CUDART_VERSION  13050\n")
    (include / "cccl/cuda/std/version").touch()
    version = include / "cccl/cuda/std/__cccl/version.h"
    version.write_text("#define CCCL_VERSION 3005000\n")
    places = [search.Root("wheel", tmp_path / "nvidia/cu13")]
    runtime = search.header("cuda_runtime.h", "w", places)
    assert (runtime.version, runtime.origin) == ("13.5", "wheel")
    assert search.header("cuda/std/version", "w", places).version == "3.5.0"
    assert search.header("cuda_fp16.h", "w", places).state == "missing"
    (tmp_path / "nvidia/cu13/lib").mkdir()
    (tmp_path / "nvidia/cu13/lib/libcublas.so.13").touch()
    assert search.library("libcublas", places, {}).version == "13"


def test_ninja_beside_python_but_not_on_path(tmp_path, monkeypatch):
    script(tmp_path / "ninja", "echo 1.13.0")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    probe = compilers.ninja({"PATH": ""})
    assert (probe.state, probe.version) == ("found", "1.13.0")
    _, notes = judge(put(WELL, probe))
    assert [note.fix for note in notes] == [f'export PATH="{tmp_path}:$PATH"']


def test_nvcc_that_refuses_its_host_is_offered_another(tmp_path):
    refuse = "echo '#error -- unsupported GNU version! gcc versions later than 13' >&2; exit 1"
    nvcc = script(tmp_path / "nvcc", f'case "$*" in *g++-13*) exit 0;; esac\n{refuse}')
    for version in (13, 14, 9):
        script(tmp_path / f"g++-{version}", "exit 0")
    probe = compilers.nvcc_host(found("nvcc", path=str(nvcc)), {"PATH": str(tmp_path)})
    assert probe.state == "failed"
    assert "gcc versions later than 13" in probe.detail
    assert probe.others == (str(tmp_path / "g++-13"),)


def test_a_compiler_that_is_not_there_or_does_not_work(tmp_path):
    assert compilers.host_compiler({"PATH": str(tmp_path)}).state == "missing"
    broken = script(tmp_path / "g++", "echo 'error: cc1plus not found' >&2; exit 1")
    probe = compilers.host_compiler({"PATH": str(tmp_path)})
    assert (probe.state, probe.path) == ("failed", str(broken))
    assert "cc1plus" in probe.detail


def test_triton_failures_are_named():
    gone = (
        "Traceback (most recent call last):\n  x\ndriver.c:5: fatal error: Python.h: No such file"
    )
    assert "Python.h" in compilers.triton_failure(f"{gone}\nsubprocess.CalledProcessError: 1")
    assert compilers.triton_failure("Traceback\n  y\nValueError: what") == "ValueError: what"


def test_a_deadline_ends_descendants_too(tmp_path):
    marker = tmp_path / "pid"
    start = time.perf_counter()
    ran = bounded.run(["sh", "-c", f"sleep 30 & echo $! > {marker}; wait"], 0.3)
    assert time.perf_counter() - start < 5
    assert ran.failure == "no answer within 0.3 s"
    for _ in range(100):  # until init has reaped it
        state = host.read(f"/proc/{marker.read_text().strip()}/stat").rpartition(")")[2].split()
        if not state or state[0] == "Z":
            return
        time.sleep(0.02)
    pytest.fail("the grandchild is still running")


def test_run_says_how_a_program_ended(tmp_path):
    assert "could not be started" in bounded.run([tmp_path / "nothing"], 1).failure
    assert "ended by signal 11" in bounded.run(["sh", "-c", "kill -SEGV $$"], 5).failure
    trace = bounded.run([sys.executable, "-c", "raise ValueError('the cause')"], 5)
    assert trace.failure == "exit code 1: ValueError: the cause"


FAKE_LIBCUDA = r"""
#include <cstring>
#include <cstddef>
extern "C" {
int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
int cuInit(unsigned) { return INIT; }
int cuGetErrorName(int, const char** s) { *s = "CUDA_ERROR_PLANTED"; return 0; }
int cuDeviceGetCount(int* n) { *n = 2; return 0; }
int cuDeviceGet(int* d, int i) { *d = i; return 0; }
int cuDeviceGetName(char* s, int, int) { strcpy(s, "Planted"); return 0; }
int cuDeviceGetPCIBusId(char* s, int, int d) {
  strcpy(s, d ? "0000:02:00.0" : "0000:01:00.0");
  return 0;
}
int cuDeviceTotalMem_v2(size_t* n, int) { *n = 85899345920; return 0; }
int cuDeviceGetAttribute(int* v, int a, int) {
  if (a == 111) return 1;                      // an attribute too new for this driver
  *v = a == 75 ? 8 : a == 76 ? 9 : a == 13 ? 1980000 : a == 32 ? 1 : a == 16 ? 132 : 1000 + a;
  return 0;
}
}
"""


def fake_libcuda(folder: Path, init: int) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    source = folder / "cuda.cpp"
    source.write_text(FAKE_LIBCUDA)
    out = folder / "libcuda.so.1"
    command = [compiler, f"-DINIT={init}", "-shared", "-fPIC", source, "-o", out]
    subprocess.run(command, check=True)
    return out


def test_device_query_through_a_planted_driver(tmp_path, monkeypatch):
    library = fake_libcuda(tmp_path, init=0)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    cuda = gpu.cuda()
    assert (cuda.version, cuda.library, cuda.error) == ("13.0", str(library), "")
    first, second = cuda.devices
    assert (first.name, first.capability, first.pci) == ("Planted", (8, 9), "0000:01:00.0")
    assert (first.sms, first.memory_bytes, first.ecc) == (132, 80 << 30, True)
    assert first.sm_clock_hertz == 1_980_000_000
    assert first.shared_reserved_bytes is None
    assert "fp8 tensor cores" in first.features
    boards = (Board(pci="00000000:02:00.0", sm_clock_hertz=5, ecc=False),)
    kept = gpu.merged((first, replace(second, sm_clock_hertz=None)), boards)
    assert [device.sm_clock_hertz for device in kept] == [1_980_000_000, 5]
    assert kept[1].ecc is True  # libcuda's own word wins


def test_a_driver_that_does_not_start_is_a_fact(tmp_path, monkeypatch):
    fake_libcuda(tmp_path, init=999)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    cuda = gpu.cuda()
    assert (cuda.code, cuda.error, cuda.devices) == (999, "CUDA_ERROR_PLANTED (999)", ())
    (problem,), _ = judge(replace(WELL, cuda=cuda))
    assert (problem.id, problem.fix) == ("cuda-init", "sudo modprobe nvidia_uvm")


def test_a_driver_that_crashes_is_a_fact(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "_CHILD", script(tmp_path / "child.py", "import os; os.abort()"))
    cuda = gpu.cuda()
    assert (cuda.code, cuda.error) == (-2, "asking libcuda failed: ended by signal 6")
    assert [problem.id for problem in judge(replace(WELL, cuda=cuda))[0]] == ["cuda-init"]


PYNVML = """
import sys
itself = sys.modules["pynvml"]
class NVMLError(Exception): pass
class NVMLError_NotSupported(NVMLError): pass
NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2
def nvmlInit(): INIT
def nvmlSystemGetCudaDriverVersion_v2(): return 13000
def nvmlSystemGetDriverVersion(): return "580.1"
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(i): return i
def nvmlDeviceGetPciInfo(h): return type("Pci", (), {"busId": "00000000:01:00.0"})
def nvmlDeviceGetEccMode(h): raise NVMLError_NotSupported
def nvmlDeviceGetMaxClockInfo(h, kind): return {1: 1980, 2: 3201}[kind]
"""


def test_management_by_nvml_and_by_nvidia_smi_where_nvml_fails(tmp_path):
    (tmp_path / "pynvml.py").write_text(PYNVML.replace("INIT", "pass"))
    nvml = found("nvidia-ml-py", path=str(tmp_path))
    board = Board(
        pci="00000000:01:00.0", sm_clock_hertz=1_980_000_000, memory_clock_hertz=3_201_000_000
    )
    expected = Management(driver="580.1", cuda="13.0", boards=(board,), source="NVML")
    assert gpu.management(nvml, {"PATH": ""}) == expected
    (tmp_path / "pynvml.py").write_text(PYNVML.replace("INIT", "raise NVMLError('no driver')"))
    script(tmp_path / "nvidia-smi", f"cat {FIXTURES / 'nvidia_smi_q.txt'}")
    told = gpu.management(nvml, {"PATH": str(tmp_path)})
    assert (told.driver, told.source) == ("580.159.04", "nvidia-smi")
    assert told.detail == "NVML: no driver"
    assert gpu.management(nvml, {"PATH": ""}).error


# The report


def report(facts: Facts) -> Report:
    problems, notes = judge(facts)
    return Report(facts=facts, problems=problems, notes=notes, seconds=1.25)


def printed(facts: Facts, width: int = 80) -> str:
    stream = io.StringIO()
    doctor.render(report(facts), Console(file=stream, width=width))
    return stream.getvalue()


SICK = on(
    put(
        replace(WELL, torch_cuda="12.8"),
        found("ninja", origin="beside Python", path=f"/{'deep/' * 30}bin/ninja"),
        failed(NVCC_HOST, "unsupported GNU version", others=("/usr/bin/g++-13",)),
        missing("C++ compiler"),
    ),
    counters="administrators",
    shm_bytes=1 << 26,
    environment=(("LD_PRELOAD", "/very" * 40), ("CUDA_LAUNCH_BLOCKING", "1")),
)


@pytest.mark.parametrize("facts", [WELL, SICK, Facts()])
@pytest.mark.parametrize("width", [80, 60])
def test_no_line_is_wider_than_the_console(facts, width):
    assert max(map(len, printed(facts, width).splitlines())) <= width


def test_problems_come_last_and_are_counted_first(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = printed(SICK)
    count = len(report(SICK).problems)
    assert text.startswith(f"assay doctor: {count} problems, ")
    after = text.partition(f"\n{count} problems:\n")[2]
    assert after.count("fix: ") == count
    assert "\x1b" not in text
    assert printed(WELL).rstrip().endswith("no problems")


def test_the_device_query_is_printed():
    text = printed(WELL)
    assert "NVIDIA H200, compute capability 9.0" in text
    assert "132, each 65,536 registers" in text
    assert "TMA, clusters, wgmma" in " ".join(text.split())


@pytest.mark.parametrize(
    "command",
    [
        "echo 'a b   c' | tee one two three && echo \"it's long enough to be cut here\" done",
        f'export PATH="/{"deep/" * 40}bin:and more"',
        "short",
    ],
)
def test_a_wrapped_command_still_means_the_same(command):
    lines = page.shell(command, 40, "     fix: ", "          ")
    pasted = "\n".join(lines).removeprefix("     fix: ")
    assert max(map(len, lines)) <= 40

    def arguments(text: str) -> str:
        quiet = text.replace("|", "'|'").replace("&&", "'&&'")
        said = subprocess.run(["sh", "-c", f"printf '%s\\n' {quiet}"], capture_output=True)
        return said.stdout.decode()

    assert arguments(pasted) == arguments(command)


def test_report_is_json_and_back():
    first = report(SICK)
    assert msgspec.json.decode(msgspec.json.encode(first), type=Report) == first


# The whole command


WHOLE = """
import sys, msgspec, assay.doctor as doctor
report = doctor.diagnose()
assert not {"torch", "triton", "numba", "pynvml", "cuda"} & set(sys.modules), "imported"
sys.stdout.write(msgspec.json.encode(report).decode())
"""


def whole(prelude: str, environ: dict[str, str], *flags: str) -> Report:
    ran = subprocess.run(
        [sys.executable, *flags, "-c", prelude + WHOLE],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return msgspec.json.decode(ran.stdout, type=Report)


def test_with_nothing_installed_and_an_empty_path(tmp_path):
    site = tmp_path / "site-packages"
    site.mkdir()
    package = Path(msgspec.__file__).parent
    (site / "msgspec").symlink_to(package)
    environ = {"PATH": str(tmp_path), "PYTHONPATH": f"{SOURCE}{os.pathsep}{site}"}
    found = whole("", environ, "-S")
    ids = {problem.id for problem in found.problems}
    assert {"torch-missing", "cxx"} <= ids
    assert found.facts.probe("triton").state == "missing"
    assert found.facts.probe("nvcc").origin != "PATH"
    assert found.facts.torch_cuda == ""


BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "triton", "numba", "numba_cuda", "cuda", "pynvml"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocker())
"""


def test_a_torch_that_cannot_be_imported_is_a_fact(tmp_path):
    here = [str(SOURCE), str(Path(msgspec.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environ = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, here))}
    told = whole(BLOCKER, environ)
    torch = told.facts.probe("torch")
    if torch.state == "missing":
        pytest.skip("torch is not installed here: nothing to block")
    assert (torch.state, torch.detail) == ("failed", "torch is blocked")
    assert "torch-broken" in [problem.id for problem in told.problems]
    assert told.facts.probe(TRITON_KERNEL).state == "missing"
