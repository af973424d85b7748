"""Runs every probe under its deadline, side by side, and judges what they found."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
from msgspec.structs import replace

from assay.doctor import compilers, gpu, packages, search
from assay.doctor.facts import (
    NVCC_HOST,
    TRITON_KERNEL,
    Cuda,
    Facts,
    Management,
    Probe,
    Report,
)
from assay.doctor.host import host
from assay.doctor.rules import judge

# What a probe can meet on a broken machine. Anything else is a fault of ours and is shown.
EXPECTED = (OSError, subprocess.SubprocessError, ValueError, LookupError, msgspec.MsgspecError)
_AT_ONCE = 4
_PARTS = search.PROGRAMS


def diagnose(environ: Mapping[str, str] | None = None) -> Report:
    """Looks at this machine and says what is wrong with it, and how to mend it.

    Imports neither torch nor a GPU library: those are asked in child processes with deadlines. A
    probe that fails is a fact in the report. `environ` replaces the environment that is judged;
    programs still run under the real one.
    """
    start = time.perf_counter()
    facts = gather(os.environ if environ is None else environ)
    problems, notes = judge(facts)
    return Report(facts=facts, problems=problems, notes=notes, seconds=time.perf_counter() - start)


def gather(environ: Mapping[str, str]) -> Facts:
    """The probing half: runs and reads, judges nothing."""
    places = search.roots(environ, packages.site_folders())
    listed = {
        name: _probe(name, packages.package, name, *rest) for name, *rest in packages.PACKAGES
    }
    torch_cuda, torch_hip = _torch(listed)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = pool.submit(_cuda)
        managed = pool.submit(_management, listed["nvidia-ml-py"], environ)
        tools = [_later(pool, part.name, search.program, part, places, environ) for part in _PARTS]
        nvrtc = pool.submit(_nvrtc, places, environ)
        built = _compilers(pool, tools[0], environ)
        # Last, and waiting for the first task: a launcher is only built where there is a GPU.
        triton = listed["triton"]
        kernel = _later(pool, TRITON_KERNEL, _triton_kernel, triton, asked)
    cuda, management = asked.result(), managed.result()
    return Facts(
        host=host(environ),
        cuda=replace(cuda, devices=gpu.merged(cuda.devices, management.boards)),
        management=management,
        toolkit=(*_programs(tools), nvrtc.result()[0], *_files(places, environ)),
        compilers=(*_results(built), kernel.result()),
        packages=tuple(listed.values()),
        torch_cuda=torch_cuda,
        torch_hip=torch_hip,
        nvrtc_ptx=nvrtc.result()[1],
    )


def _compilers(
    pool: ThreadPoolExecutor, nvcc: Future[Probe], environ: Mapping[str, str]
) -> list[Future[Probe]]:
    cxx = _later(pool, "C++ compiler", compilers.host_compiler, environ)
    return [
        cxx,
        _later(pool, "C compiler", compilers.c_compiler, environ),
        _later(pool, "OpenMP", lambda: compilers.openmp(cxx.result())),
        _later(pool, "Python.h", compilers.python_header),
        _later(pool, "ninja", compilers.ninja, environ),
        _later(pool, NVCC_HOST, lambda: compilers.nvcc_host(nvcc.result(), environ)),
    ]


def _files(places: tuple[search.Root, ...], environ: Mapping[str, str]) -> list[Probe]:
    """What is only read: headers and vendor libraries."""
    headers = [_probe(name, search.header, name, wheel, places) for name, wheel in search.HEADERS]
    found = [_probe(stem, search.library, stem, places, environ) for stem in search.LIBRARIES]
    return [*headers, *found]


def _probe(name: str, work: Callable[..., Probe], *arguments: Any) -> Probe:
    """The probe's answer; what it met on a broken machine becomes `failed`, with the reason."""
    try:
        return work(*arguments)
    except EXPECTED as error:
        return Probe(name=name, state="failed", detail=_reason(error))


def _later(
    pool: ThreadPoolExecutor, name: str, work: Callable[..., Probe], *arguments: Any
) -> Future[Probe]:
    return pool.submit(_probe, name, work, *arguments)


def _programs(futures: list[Future[Probe]]) -> list[Probe]:
    """Programs that NVIDIA no longer ships are facts only where they are found."""
    found = _results(futures)
    return [p for p in found if p.state != "missing" or p.name not in search.OBSOLETE]


def _results(futures: list[Future[Probe]]) -> list[Probe]:
    return [future.result() for future in futures]


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _cuda() -> Cuda:
    try:
        return gpu.cuda()
    except EXPECTED as error:
        return Cuda(code=-2, error=_reason(error))


def _management(nvml: Probe, environ: Mapping[str, str]) -> Management:
    try:
        return gpu.management(nvml, environ)
    except EXPECTED as error:
        return Management(error=_reason(error))


def _nvrtc(places: tuple[search.Root, ...], environ: Mapping[str, str]) -> tuple[Probe, str]:
    try:
        return compilers.nvrtc(places, environ)
    except EXPECTED as error:
        return Probe(name="NVRTC", state="failed", detail=_reason(error)), ""


def _triton_kernel(triton: Probe, asked: Future[Cuda]) -> Probe:
    return compilers.triton_kernel(triton, gpu=bool(asked.result().devices))


def _torch(listed: dict[str, Probe]) -> tuple[str, str]:
    """(CUDA, ROCm) of torch's build; a torch whose version.py cannot be read becomes `failed`."""
    try:
        return packages.torch_facts(listed["torch"])
    except EXPECTED as error:
        listed["torch"] = replace(listed["torch"], state="failed", detail=_reason(error))
        return "", ""
