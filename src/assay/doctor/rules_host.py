"""Judges compilers, permissions and the environment. Pure."""

from __future__ import annotations

from assay.doctor import fixes
from assay.doctor.facts import NVCC_HOST, TRITON_KERNEL, Facts, Probe
from assay.doctor.judged import PIP, Fix, Judged, has_gpu, note, problem

SHM_NEEDED_BYTES = 1 << 30


def compilers(facts: Facts) -> Judged:
    """Compilers that are missing or do not work, and what they are needed for."""
    host = facts.host
    cxx, nvcc_host = facts.probe("C++ compiler"), facts.probe(NVCC_HOST)
    if cxx.state != "found":
        why = "there is no C++ compiler" if cxx.state == "missing" else _broken(cxx)
        what = f"{why}: the cpp and extension ways and torch.compile on the CPU need one"
        yield problem("cxx", what, fixes.install(host, "g++"))
    if facts.probe("C compiler").state != "found" and cxx.state == "found":
        what = "there is no C compiler that works: Triton needs gcc or clang to launch a kernel"
        yield problem("cc", what, fixes.install(host, "gcc"))
    if facts.probe("Python.h").state == "missing":
        what = f"Python.h of Python {host.python} is missing: Triton and extensions include it"
        yield problem("python-header", what, fixes.python_header(host))
    if facts.probe("OpenMP").state == "failed":
        what = f"OpenMP does not build ({facts.probe('OpenMP').detail}): torch.compile on the CPU"
        yield problem("openmp", f"{what} needs it", fixes.install(host, "libgomp"))
    if nvcc_host.state == "failed":
        what = f"nvcc cannot compile an empty .cu: {nvcc_host.detail}"
        yield problem("nvcc-host", what, _nvcc_host(nvcc_host))
    yield from _triton(facts)


def _nvcc_host(probe: Probe) -> Fix:
    if probe.others:
        return f'export NVCC_PREPEND_FLAGS="-ccbin {probe.others[0]}"', True
    if "unsupported" in probe.detail:
        return (
            "install an older g++ (the message names the newest it takes), then look again",
            False,
        )
    return "see all that it says: echo > empty.cu && nvcc -c empty.cu", False


def _broken(probe: Probe) -> str:
    return f"{probe.path or probe.name} does not work ({probe.detail})"


def _triton(facts: Facts) -> Judged:
    """Maps what Triton lacked to what brings it."""
    kernel = facts.probe(TRITON_KERNEL)
    if kernel.state != "failed":
        return
    fix: Fix = (f"{PIP} --force-reinstall triton", True)
    if "Python.h" in kernel.detail:
        fix = fixes.python_header(facts.host)
    elif "C compiler" in kernel.detail or "gcc" in kernel.detail:
        fix = fixes.install(facts.host, "gcc")
    elif "libcuda" in kernel.detail:
        folder = facts.cuda.library.rpartition("/")[0]
        fix = (f"export TRITON_LIBCUDA_PATH={folder}" if folder else "ldconfig", True)
    elif "ptxas" in kernel.detail or "gpu-name" in kernel.detail:
        fix = (f"{PIP} --upgrade triton", True)
    yield problem(
        "triton-kernel", f"Triton cannot compile its smallest kernel: {kernel.detail}", fix
    )


def ninja(facts: Facts) -> Judged:
    """The program, not the module: torch runs `ninja` from PATH."""
    found = facts.probe("ninja")
    if found.state == "missing":
        yield note("ninja-missing", "ninja is missing: the extension way needs it", f"{PIP} ninja")
    elif found.state == "failed":
        fix = f"{PIP} --force-reinstall ninja"
        yield problem("ninja-broken", _broken(found), fix)
    elif found.origin != "PATH":
        folder = found.path.rpartition("/")[0]
        what = f"ninja lies in {folder}, which is not on PATH: torch will say it is required"
        yield note("ninja-path", what, f'export PATH="{folder}:$PATH"')


def permissions(facts: Facts) -> Judged:
    """Counters that will be refused, and shared memory that is too small."""
    host = facts.host
    if has_gpu(facts) and host.counters == "administrators" and not host.administrator:
        yield problem(
            "counters-forbidden",
            "the driver gives the GPU's counters to administrators only: ncu will fail with "
            "ERR_NVGPUCTRPERM; everything else works, with counts marked as estimated",
            fixes.counter_permission(host),
        )
    if host.shm_bytes is not None and host.shm_bytes < SHM_NEEDED_BYTES:
        what = (
            f"/dev/shm holds {host.shm_bytes / (1 << 20):.0f} MiB; several processes that share "
            "tensors want 1 GiB or more, and end with a bus error without it"
        )
        yield problem("shm-small", what, fixes.shm(host))


# variable -> (values that matter, "" for any; what it does; problem only with a GPU)
_DISTORTING = {
    "CUDA_LAUNCH_BLOCKING": ("1", "every launch waits for its kernel: times are not real", False),
    "TRITON_INTERPRET": ("1", "Triton kernels run in the interpreter, on the CPU", True),
    "NUMBA_ENABLE_CUDASIM": ("1", "Numba kernels run in the simulator, on the CPU", True),
    "NVIDIA_TF32_OVERRIDE": ("", "libraries use tf32 (1) or refuse it (0), as asked or not", True),
    "CUDA_FORCE_PTX_JIT": ("1", "compiled kernels are thrown away and built again at load", True),
    "CUDA_INJECTION64_PATH": ("", "a profiler is loaded into every CUDA program", True),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("1", "every allocation of torch reaches the driver", True),
    "TORCHDYNAMO_DISABLE": ("1", "torch.compile compiles nothing: compiled is eager", False),
    "TORCH_COMPILE_DISABLE": ("1", "torch.compile compiles nothing: compiled is eager", False),
}


def environment(facts: Facts) -> Judged:
    """Variables under which a kernel does something else, or takes another time."""
    for name, value in facts.host.environment:
        matters, effect, needs_gpu = _DISTORTING.get(name, ("?", "", True))
        if not effect or not value or (matters and value != matters):
            continue
        make = note if needs_gpu and not has_gpu(facts) else problem
        yield make(f"env-{name.lower()}", f"{name}={value}: {effect}", f"unset {name}")
