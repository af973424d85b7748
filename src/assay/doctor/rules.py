"""Judges facts: what is wrong with this machine, and the one command that mends it. Pure.

Each rule is a function from Facts to (is it a problem, Finding) pairs. A problem makes something
that Assay does fail or lie; a note is worth knowing. No GPU at all is neither.
"""

from __future__ import annotations

from collections.abc import Callable

from assay.doctor import rules_cuda, rules_host
from assay.doctor.facts import Facts, Finding
from assay.doctor.judged import PIP, Judged, note, problem
from assay.doctor.parse import numbers

# The versions that pyproject.toml asks for.
OLDEST = {
    "torch": (2, 11),
    "triton": (3, 6),
    "cuda-core": (0, 5),
    "numba-cuda": (0, 20),
    "msgspec": (0, 18),
}


def judge(facts: Facts) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """(problems, notes), each in the order of the rules."""
    found = [judged for rule in RULES for judged in rule(facts)]
    problems = tuple(finding for is_problem, finding in found if is_problem)
    return problems, tuple(finding for is_problem, finding in found if not is_problem)


def packages(facts: Facts) -> Judged:
    """Missing torch, broken installs, and versions older than Assay works with."""
    if facts.probe("torch").state == "missing":
        yield problem(
            "torch-missing", "torch is not installed, and every reference is written in it",
            f'{PIP} "torch>=2.11"',
        )  # fmt: skip
    for package in facts.packages:
        if package.state == "failed":
            yield problem(
                f"{package.name}-broken",
                f"{package.name} {package.version} is installed and cannot be found by Python: "
                f"{package.detail}",
                f'{PIP} --force-reinstall "{package.name}"',
            )
        oldest = OLDEST.get(package.name)
        if package.state == "found" and oldest and () < numbers(package.version)[:2] < oldest:
            least = ".".join(map(str, oldest))
            yield problem(
                f"{package.name}-old",
                f"{package.name} {package.version} is older than {least}, the oldest supported",
                f'{PIP} --upgrade "{package.name}>={least}"',
            )
    if facts.probe("numba").state == "found" and facts.probe("numba-cuda").state == "missing":
        yield note(
            "numba-cuda-missing",
            "numba is here without numba-cuda, where its CUDA target moved",
            f"{PIP} numba-cuda",
        )


def numba_and_numpy(facts: Facts) -> Judged:
    """numba-cuda up to 0.30 overloads names that NumPy 2.5 no longer has: no kernel compiles."""
    cuda, numpy = facts.probe("numba-cuda"), facts.probe("numpy")
    if cuda.state != "found" or numpy.state != "found":
        return
    if () < numbers(cuda.version)[:2] <= (0, 30) and numbers(numpy.version)[:2] >= (2, 5):
        yield problem(
            "numba-cuda-and-numpy",
            f"numba-cuda {cuda.version} can't compile kernels beside numpy {numpy.version}",
            f'{PIP} "numpy<2.5"',
        )


RULES: tuple[Callable[[Facts], Judged], ...] = (
    packages,
    numba_and_numpy,
    rules_cuda.torch_build,
    rules_cuda.driver_state,
    rules_cuda.driver_and_torch,
    rules_cuda.nvcc_and_torch,
    rules_cuda.nvrtc_and_driver,
    rules_cuda.nvrtc_and_headers,
    rules_cuda.architectures,
    rules_host.compilers,
    rules_host.ninja,
    rules_host.permissions,
    rules_host.environment,
)
