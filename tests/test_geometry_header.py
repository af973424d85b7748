"""Occupancy as NVIDIA's own cuda_occupancy.h has it, and limits as CCCL's arch_traits.h has them.

Both headers come with the CUDA wheels and need no GPU; the first is built with g++ and asked.
"""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from assay import hardware
from assay.inside.geometry import (
    MOST,
    MULTIPROCESSORS,
    Footprint,
    Multiprocessor,
    best_block,
    occupancy,
)
from assay.inside.geometry.limits import REGISTERS_A_THREAD

SOURCE = Path(__file__).parent / "fixtures" / "geometry" / "occupancy.cpp"
NO_LIMIT = 2**31 - 1
FLAGS = {"warps": 1, "registers": 2, "shared memory": 4, "blocks": 8, "barriers": 16}
"""cudaOccLimitingFactor."""


def header(name: str) -> Path:
    """A header of the newest CUDA that is installed."""
    pathfinder = pytest.importorskip("cuda.pathfinder")
    folder = pathfinder.find_nvidia_header_directory("cudart")
    for path in (Path(folder or "/nowhere") / name, Path(folder or "/nowhere") / "cccl" / name):
        if path.is_file():
            return path
    pytest.skip(f"no {name} is installed")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    found = header("cuda_occupancy.h")
    built = tmp_path_factory.mktemp("occupancy") / "ask"
    command = ["g++", "-w", f"-I{found.parent}", str(SOURCE), "-o", str(built)]
    subprocess.run(command, check=True)
    return built


def drawn(count: int, seed: int) -> list[tuple[Multiprocessor, Footprint, int]]:
    """Architectures in turn, with footprints and carveouts (percent, -1: none) drawn at random.

    Some of every kind are beyond what can be launched.
    """
    draw = random.Random(seed)
    known = list(MULTIPROCESSORS.values())
    made = []
    for index in range(count):
        sm = known[index % len(known)]
        threads = draw.choice(
            [32 * draw.randint(1, 32), draw.randint(1, 1024), draw.randint(1, 1100)]
        )
        registers = draw.choice([draw.randint(0, 64), draw.randint(0, REGISTERS_A_THREAD)])
        static = draw.choice([0, draw.randint(0, 2048), draw.randint(0, 49152)])
        most = sm.block_shared_bytes
        dynamic = draw.choice([0, 0, draw.randint(0, most // 8), draw.randint(0, most + 2000)])
        barriers = draw.choice([0, 1, 1, 2, draw.randint(0, 16)])
        percent = draw.choice([-1, -1, 0, 25, 50, 100, draw.randint(0, 100)])
        made.append((sm, Footprint(threads, registers, static, dynamic, barriers), percent))
    return made


def compare(asked: Path, configurations: list[tuple[Multiprocessor, Footprint, int]]) -> set[str]:
    """Every figure of every configuration; returns what kinds of answer were seen."""
    text = "".join(
        f"{sm.arch[3:-1]} {sm.arch[-1]} {sm.threads} {sm.shared_bytes} {sm.block_shared_bytes} "
        f"{sm.reserved_bytes} {percent} {f.threads} {f.registers} {f.static_shared_bytes} "
        f"{f.dynamic_shared_bytes} {f.barriers}\n"
        for sm, f, percent in configurations
    )
    out = subprocess.run([asked], input=text, capture_output=True, text=True, check=True).stdout
    answers = [list(map(int, line.split())) for line in out.splitlines()]
    assert len(answers) == len(configurations)
    seen = set()
    for (sm, taken, percent), answer in zip(configurations, answers):
        status, blocks, flags, *limits, registers, shared, chosen, best = answer
        assert status == chosen == 0
        carveout = MOST if percent < 0 else percent * sm.shared_bytes // 100
        found = occupancy(taken, sm, carveout)
        names = ("registers", "shared memory", "warps", "blocks", "barriers")
        theirs = {n: None if most == NO_LIMIT else most for n, most in zip(names, limits)}
        case = (sm.arch, taken, percent)
        assert (found.blocks, dict(found.limits)) == (blocks, theirs), case
        assert (found.registers, found.shared_bytes) == (registers, shared), case
        assert best_block(taken, sm) == best, case
        ours = {name for name, most in found.limits.items() if most == found.blocks}
        header_says = {name for name, bit in FLAGS.items() if flags & bit}
        if ours == {"barriers"}:  # the header keeps what it flagged before it counted barriers
            assert "barriers" in header_says, case
        else:
            assert ours == header_says, case
        seen |= ours | ({"none"} if not blocks else set())
    return seen


def test_the_header_says_the_same_of_a_sample(asked: Path) -> None:
    seen = compare(asked, drawn(600, seed=1))
    assert seen == {*FLAGS, "none"}, "each limiter, and a launch that can't be, must occur"


@pytest.mark.full
def test_the_header_says_the_same_of_thousands(asked: Path) -> None:
    for seed in range(2, 12):
        assert compare(asked, drawn(1100, seed)) == {*FLAGS, "none"}


def test_the_header_differs_at_256_registers_alone(asked: Path) -> None:
    """It lets a thread have 256, which no compiler gives: here that can't be launched."""
    sm = MULTIPROCESSORS["sm_90"]
    line = f"9 0 {sm.threads} {sm.shared_bytes} {sm.block_shared_bytes} 1024 -1 128 256 0 0 0"
    out = subprocess.run([asked], input=line, capture_output=True, text=True, check=True).stdout
    assert int(out.split()[1]) == 2
    assert occupancy(Footprint(128, 256), sm).blocks == 0


def test_the_limits_are_those_of_cccl() -> None:
    """Each function of arch_traits.h sets fields, and may begin with those of another."""
    text = header("cuda/__device/arch_traits.h").read_text()
    functions = dict(
        re.findall(r"arch_traits<arch_id::sm_(\d+)>\(\) noexcept\n\{(.*?)\n\}", text, re.S)
    )
    compared = 0
    for sm in MULTIPROCESSORS.values():
        body = functions[sm.arch[3:]]
        base = re.search(r"::cuda::arch_traits<arch_id::sm_(\d+)>", body)
        fields = {}
        for part in (functions[base.group(1)] if base else "", body):
            for name, value in re.findall(r"__traits\.max_(\w+)\s*=\s*([\d* ]+);", part):
                fields[name] = eval(value)
        assert fields["threads_per_multiprocessor"] == sm.threads, sm.arch
        assert fields["blocks_per_multiprocessor"] == sm.blocks, sm.arch
        assert fields["shared_memory_per_multiprocessor"] == sm.shared_bytes, sm.arch
        compared += 1
    assert compared == 11


def test_the_two_tables_of_assay_agree() -> None:
    shared = {a: sm.block_shared_bytes for a, sm in MULTIPROCESSORS.items() if a != "sm_110"}
    assert shared == {a: hardware.shared_of(a) for a in shared}
