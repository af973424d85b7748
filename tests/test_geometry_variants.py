"""The geometry of what a variant launches, its accesses, and the command `assay geometry`."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from command import assay

from assay.commands import geometry as command
from assay.commands.geometry import Options
from assay.errors import AssayError, NotRun
from assay.inside.geometry import assembler
from assay.inside.geometry.behaviour import behaviour, lines
from assay.inside.geometry.variant import launches_in
from assay.session import Session
from assay.simt.counts import Access, Counts, Line
from assay.target import parse

KERNELS = Path(__file__).parent / "fixtures" / "geometry" / "launches.py"
TARGET = f"{KERNELS}:copy"
JITTED = f"{KERNELS.with_name('jitted.py')}:copy"
NOTES = [
    *("--grid", "16,32,3", "--block", "128", "--registers", "122"),
    *("--static-shared", "12800", "--arch", "sm_86", "--sms", "46"),
]


@pytest.mark.full
def test_different_launches_are_noted_in_order_and_counted(session: Session) -> None:
    found = launches_in(session, parse(TARGET), "cuda/several", {})
    assert (found.label, found.case, found.compiled_for) == ("cuda/several", "n=4096", "sm_90")
    assert found.times == (3, 1, 1)
    usual, wide, tile = found.geometries
    assert (usual.name, usual.grid, usual.block) == ("straight", (16, 1, 1), (256, 1, 1))
    assert (wide.grid, wide.block) == ((4, 4, 1), (64, 4, 1))
    assert wide.occupancy is not None
    assert wide.occupancy.limiters == ("shared memory",)
    assert tile.taken is not None
    assert (tile.taken.static_shared_bytes, tile.taken.barriers) == (32 * 33 * 4, 1)
    assert usual.multiprocessors == 132
    assert found.threads == 4 * 4096 + 128 * 32
    assert (found.flops, found.bytes) == (10 * 4096, 8 * 4096)


def test_a_way_without_launches_says_so(session: Session) -> None:
    with pytest.raises(NotRun, match="launches are noted of cuda, triton, numba, not of eager"):
        launches_in(session, parse(TARGET), "eager", {})


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "arch", "compiled_for", "block"),
    [
        ("triton", "sm_90", "sm_90", 256),
        ("triton", "sm_120", "sm_120", 256),
        ("numba", "sm_86", "sm_86", 64),
        ("numba", "sm_100", "sm_100", 64),
        ("triton", "sm_121", "sm_89", 256),
        ("cuda/straight", "sm_75", "sm_75", 256),
        ("cuda/straight", "sm_120", "sm_120", 256),
    ],
)
def test_every_way_for_many_architectures(
    session: Session, name: str, arch: str, compiled_for: str, block: int
) -> None:
    target = TARGET if name.startswith("cuda") else JITTED
    found = launches_in(session, parse(target), name, {}, arch)
    (one,) = found.geometries
    assert (found.compiled_for, one.arch, one.block) == (compiled_for, arch, (block, 1, 1))
    assert one.taken is not None, one.why
    assert 4 <= one.taken.registers <= 40


@pytest.mark.full
def test_registers_are_those_of_tritons_own_cubin(session: Session) -> None:
    """Compiled here by Triton itself, and read by the cuobjdump that it brings."""
    triton = pytest.importorskip("triton")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from assay.ops.softmax.softmax_triton import kernel

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.is_file():
        pytest.skip("no cuobjdump")
    types = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    aligned = {(index,): [["tt.divisibility", 16]] for index in (0, 1)}
    source = ASTSource(kernel, types, {"BLOCK": 1024}, aligned)
    case = {"rows": 64, "n": 1025, "dtype": "float32"}
    for arch in (80, 90):
        target = GPUTarget("cuda", arch, 32)
        built = triton.compile(source, target=target, options={"num_warps": 8})
        with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
            cubin.write(built.asm["cubin"])
            cubin.flush()
            command = [str(tool), "--dump-resource-usage", cubin.name]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (one,) = launches_in(session, parse("softmax"), "triton", case, f"sm_{arch}").geometries
        assert one.taken is not None
        assert re.findall(r"REG:(\d+)", said) == [str(one.taken.registers)]
        assert one.taken.dynamic_shared_bytes == built.metadata.shared
        assert one.block == (32 * 8, 1, 1)


REPORT = """
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 31 registers, used 0 barriers
ptxas info    : Compiling entry function 'heavy' for 'sm_90'
ptxas info    : Function properties for heavy
    64 bytes stack frame, 60 bytes spill stores, 72 bytes spill loads
ptxas info    : Used 255 registers, used 2 barriers, 64 bytes cumulative stack size, 4224 bytes smem
"""


def test_a_report_of_ptxas() -> None:
    found = assembler.report(REPORT)
    assert found["plain"] == assembler.Taken("plain", "sm_90", 31)
    assert found["heavy"] == assembler.Taken("heavy", "sm_90", 255, 4224, 2, 64, 60, 72)


PTX = """
.version 7.8
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 p) {
  .reg .b64 %a; .reg .f32 %f;
  ld.param.u64 %a, [p]; cvta.to.global.u64 %a, %a;
  ld.global.f32 %f, [%a]; add.f32 %f, %f, %f; st.global.f32 [%a], %f; bar.sync 0; ret;
}
"""


def test_ptx_is_assembled_for_a_newer_architecture_or_there_is_a_reason() -> None:
    if not assembler.assemblers("sm_90"):
        pytest.skip("no ptxas")
    found = assembler.assembled(PTX, "twice", "sm_90")
    assert (found.arch, found.barriers) == ("sm_90", 1)
    assert 0 < found.registers < 20
    with pytest.raises(NotRun, match="registers of thrice on sm_90"):
        assembler.assembled(PTX, "thrice", "sm_90")


def test_without_ptxas_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "assemblers", lambda arch: [])
    with pytest.raises(NotRun, match=r"there is no ptxas: pip install 'assay\[triton\]'"):
        assembler.assembled(PTX, "twice", "sm_90")


COUNTS = Counts(
    lines=(
        Line("/k/a.cu", 3, 128, 4096, {"global": 128}, {
            "global load": Access(128, 4096, 4096, 512, bytes=16_384)}),
        Line("/k/a.cu", 4, 128, 1024, {"branch": 96, "shared": 32}, {
            "shared store": Access(32, 1024, wavefronts=1024, ideal_wavefronts=32),
            "global load": Access(32, 1024, 128, 128)}),
    )
)  # fmt: skip


def test_accesses_as_sectors_passes_and_lanes() -> None:
    found = behaviour(COUNTS, "sm_80")
    load, store = found.traffic
    assert (load.kind, load.sectors_a_request, load.ideal_sectors_a_request) == (
        "global load",
        4224 / 160,
        4.0,
    )
    assert (load.used, load.excess, load.worst) == (640 / 4224, 3584, "a.cu:3")
    assert (store.passes_a_request, store.excess, store.worst) == (32.0, 992, "a.cu:4")
    assert (found.branches, found.active_lanes) == (96, 20.0)
    assert list(lines(found)) == [
        "counted on the CPU as compiled for sm_80: 256 instructions of warps,",
        "96 branches, 20.0 of 32 lanes active",
        "  global load   26.40 sectors a request (ideal 4.00), 15% of them used",
        "                most of it at a.cu:3",
        "  shared store  32.00 passes a request, 992 bank conflicts",
        "                most of it at a.cu:4",
    ]


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "sectors", "conflicts", "lanes"),
    [
        ("straight", 4.0, 0, (31.9, 32)),
        ("strided", 32.0, 0, (31.9, 32)),
        ("conflicting", 4.0, 2 * 128 * 31, (31.9, 32)),
        ("padded", 4.0, 0, (31.9, 32)),
        ("divergent", 4.0, 0, (8, 24)),  # for 8 lanes, whose bytes would lie in one
    ],
)
def test_planted_accesses_are_seen(
    name: str, sectors: float, conflicts: int, lanes: tuple[float, float]
) -> None:
    from assay.counting import counted

    said = counted(parse(TARGET), f"cuda/{name}", {}, "")
    found = behaviour(said.counts, said.arch)
    by = {traffic.kind: traffic for traffic in found.traffic}
    for kind in ("global load", "global store"):
        assert by[kind].sectors_a_request == sectors
        assert by[kind].access.bytes == 4096 * 4, "each element once, however it is fetched"
    shared = [t for kind, t in by.items() if kind.startswith("shared")]
    assert sum(t.access.conflicts for t in shared) == conflicts
    assert bool(shared) == (name in ("conflicting", "padded"))
    assert lanes[0] <= found.active_lanes <= lanes[1]


# ---- the command


def test_a_launch_in_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    usual = {"grid": "16x32x3", "block": "128", "registers": 122, "static_shared": 12_800}
    assert command.run(Options(**usual, arch="sm_86", sms=46)) == 0
    assert "33.33 %, limited by registers and shared memory" in capsys.readouterr().out
    assert command.run(Options(**usual, arch="8.6", sms=46, carveout="most", as_json=True)) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["occupancy"]["limiters"] == ["registers"]
    assert said["occupancy"]["limits"]["shared memory"] == 7
    assert (said["waves"]["full"], said["waves"]["partial"], said["active_warps"]) == (8, 64, 16)
    assert said["active_scheduler_warps"] == said["occupancy"]["scheduler_warps"] == 4
    assert said["lifts"][0]["taken"]["registers"] == 96


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "geometry of what"),
        ({"target": "softmax", "grid": "1"}, "geometry of what"),
        ({"target": "softmax", "variant": "cuda", "registers": 3}, "--registers goes with --grid"),
        ({"target": "softmax", "variant": "cuda", "static_shared": 0}, "--static-shared goes with"),
        ({"grid": "1"}, "give --block too"),
        ({"grid": "1", "block": "32"}, "give --registers too"),
        ({"grid": "1", "block": "32", "registers": 8, "case": "n=1"}, "-k and --case go with"),
        ({"grid": "one", "block": "32", "registers": 8}, "--grid one: give one to three numbers"),
        ({"grid": "1", "block": "32", "registers": 8, "carveout": "big"}, "--carveout big: give"),
    ],
)
def test_what_it_is_asked_wrongly(given: dict, why: str) -> None:
    with pytest.raises(AssayError, match=why):
        command.run(Options(**given))


@pytest.mark.full
def test_a_target_whose_accesses_cannot_be_counted_keeps_its_geometry(
    session: Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def uncountable(*_: object, **__: object) -> None:
        raise NotRun("wgmma is not run here")

    def noted(target: object, name: str, case: dict, arch: str, **more: object) -> object:
        return launches_in(session, target, name, case, arch, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "counted", uncountable)
    monkeypatch.setattr(command, "launches_of", noted)
    assert command.run(Options(target=TARGET, variant="cuda/several")) == 3
    said = capsys.readouterr()
    assert "3 times:\nstraight\n  launch        grid 16, block 256; sm_90" in said.out
    assert said.err == "assay: accesses not counted: wgmma is not run here\n"
    assert max(map(len, said.out.splitlines())) <= 80
    assert "stated work: 40,960 FLOP, 2 a thread; 32,768 bytes, 1.6 a thread\n" in said.out
    monkeypatch.setattr(command, "launches_of", uncountable)
    assert command.run(Options(target=TARGET, variant="cuda/several")) == 3
    assert "no geometry: wgmma" in capsys.readouterr().err


@pytest.mark.gallery
def test_the_command_line(tmp_path: Path) -> None:
    done = assay(tmp_path, "geometry", *NOTES)
    assert (done.returncode, done.stderr) == (0, "")
    assert "waves         8.35: 8 full, then 64 of 184 blocks" in done.stdout
    done = assay(tmp_path, "geometry", TARGET, "-k", "cuda/strided", "--json")
    assert done.returncode == 0, done.stderr
    launch, counts = map(json.loads, done.stdout.splitlines())
    assert (launch["grid"], launch["blocks"]) == ([32, 1, 1], 32)
    assert {t["kind"] for t in counts["counted"]["traffic"]} == {"global load", "global store"}
    done = assay(tmp_path, "geometry", JITTED, "-k", "triton", "--no-counts", "--arch", "sm_121")
    assert done.returncode == 0, done.stderr
    assert "registers as ptxas gives them on sm_121 to PTX for sm_89" in done.stdout
    assert "counted" not in done.stdout
    done = assay(tmp_path, "geometry", TARGET, "--json")
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    names = ["straight", "strided", "conflicting", "padded", "divergent", *["several"] * 3]
    assert [one["variant"] for one in said] == [f"cuda/{name}" for name in names]
    done = assay(tmp_path, "geometry", "--grid", "1", "--block", "2000", "--registers", "8")
    assert (done.returncode, done.stdout) == (2, "")
    assert "2,000 threads a block, limit 1,024" in done.stderr
