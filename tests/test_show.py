"""`assay show`: every level of every way with no GPU, and reports equal to the compilers' own."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from command import assay
from torch.utils._python_dispatch import TorchDispatchMode

from assay.commands import showing
from assay.commands.showing import Request
from assay.errors import AssayError, NotRun
from assay.inside import artifacts
from assay.inside.artifacts import beside, differing, machine_code, mix, names, sass, summary, tools
from assay.inside.artifacts.levels import LEVELS
from assay.inside.artifacts.model import Part, Shown
from assay.ops.scale_bias import scale_bias
from assay.session import Session
from assay.single import pick
from assay.target import parse
from assay.types import Compiled, replace

for package in ("triton", "numba_cuda", "cuda"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

KERNELS = Path(__file__).parent / "fixtures" / "shown.py"
FACTS = ("registers", "stack_bytes", "shared_bytes")


def tool(name: str) -> bool:
    try:
        tools.find(name)
    except NotRun:
        return False
    return True


needs_tools = pytest.mark.skipif(
    not all(map(tool, ("ptxas", "nvdisasm", "cuobjdump"))), reason="NVIDIA's binary tools"
)


KNOWN: dict[tuple[str, str, str], Shown] = {}


def shown(session: Session, target: str | Path, variant: str, arch: str = "sm_90") -> Shown:
    """Compiled once in this process."""
    key = str(target), variant, arch
    if key not in KNOWN:
        KNOWN[key] = artifacts.shown(session, parse(key[0]), variant, {}, arch)
    return KNOWN[key]


@needs_tools
@pytest.mark.parametrize(
    ("op", "variant"),
    [
        ("square", "triton"),
        ("square", "cuda/vectorised"),
        *(
            pytest.param(op, variant, marks=pytest.mark.full)
            for op, variant in (
                ("square", "numba"),
                *(("softmax", way) for way in ("triton", "cuda/online", "numba", "compiled")),
            )
        ),
    ],
)
def test_down_to_machine_code_and_as_the_compiler_reports(
    session: Session, op: str, variant: str
) -> None:
    found = shown(session, op, variant)
    (part,) = found.parts
    wanted = {level.name for level in LEVELS.values() if found.way in level.ways}
    assert {"ptx", "sass"} <= wanted
    assert wanted <= {*found.texts, *part.texts}
    assert not part.absent
    report, cubin = part.report, machine_code.resources(part.cubin)[part.entry]
    assert report is not None
    assert [getattr(report, name) for name in FACTS] == [getattr(cubin, name) for name in FACTS]
    assert (report.spill_store_bytes, report.spill_load_bytes) == (0, 0)
    assert f"{report.registers} registers, no spills" in summary.text(found)
    code = sass.parse(part.texts["sass"])
    assert code[-1].opcode in ("EXIT", "BRA", "RET")
    assert code[0].address == 0
    assert report.registers > max(_registers(code))
    found_mix = mix.of_sass(part.texts["sass"])
    assert found_mix.loads
    assert not found_mix.local
    assert not found_mix.doubles


def _registers(code: list[sass.Instruction]) -> set[int]:
    return {int(n) for one in code for n in re.findall(r"\bR(\d+)\b", one.operands)}


@needs_tools
def test_spills_are_those_of_the_compiler_and_stand_in_the_code(session: Session) -> None:
    found = shown(session, KERNELS, "cuda/spilling")
    (part,) = found.parts
    own = part.report
    assert own is not None
    assert own.spill_store_bytes
    assert own.spill_load_bytes
    assert own.stack_bytes == machine_code.resources(part.cubin)[part.entry].stack_bytes > 0
    log = found.texts["log"]
    assert f"{own.spill_store_bytes} bytes spill stores, {own.spill_load_bytes} bytes spill" in log
    assert f"Used {own.registers} registers" in log
    text = summary.text(found)
    assert f"spills {own.spill_store_bytes} + {own.spill_load_bytes} bytes" in text
    assert mix.of_sass(part.texts["sass"]).local > 100
    few = shown(session, KERNELS, "cuda/few")
    assert "no spills, no stack" in summary.text(few)
    assert mix.of_sass(few.parts[0].texts["sass"]).local == 0
    (said,) = differing.changes(found, few)
    assert f"bytes of spill stores ({own.spill_store_bytes:,} -> 0)" in said


@needs_tools
def test_float64_in_a_float_kernel_is_shown_with_its_line(session: Session) -> None:
    text = summary.text(shown(session, KERNELS, "cuda/double"))
    assert "float64 in a kernel of float32: 3 instructions" in text
    assert "DMUL" in text
    assert ".cu:20: " in text
    clean = shown(session, KERNELS, "cuda/wide")
    assert "float64" not in summary.text(clean)
    assert clean.parts[0].launches == 2


def test_widths_and_knobs_are_compared(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    request, sides = Request(level="ptx"), ("V=float4", "V=float2")
    if tool("nvdisasm"):
        assert showing.diff(session, str(KERNELS), ["cuda/wide"], sides, request) == 1
        out = capsys.readouterr().out
        assert "loads 128 -> 64 bit, stores 128 -> 64 bit" in out
        assert "+++ V=float2" in out
        assert ".loc" not in out
    few = shown(session, KERNELS, "cuda/few")
    assert differing.changes(few, few) == ["rows<8>: no difference in what is counted"]
    assert not differing.unified(few, few, "ptx", ("a", "b"))


@pytest.mark.full
def test_a_revision_is_compared_with_the_file_as_it_is(
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS.read_text())
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first"],
    ):
        subprocess.run(["git", *words], check=True)
    file.write_text(file.read_text().replace("0.5f", "0.25f"))
    request = Request(level="ptx")
    assert showing.diff(session, "kernels.py", ["cuda/wide"], ("HEAD", "."), request) == 1
    out = capsys.readouterr().out
    assert "0f3F000000" in out
    assert "0f3E800000" in out
    with pytest.raises(AssayError, match="git knows no revision 'HEAD~7'"):
        showing.diff(session, "kernels.py", ["cuda/wide"], ("HEAD~7", "."), request)
    with pytest.raises(AssayError, match="say of which variant"):
        showing.diff(session, "kernels.py", [], ("HEAD", "."), request)


@needs_tools
def test_lines_of_source_stand_beside_their_instructions(session: Session) -> None:
    found = shown(session, KERNELS, "cuda/wide")
    (part,) = found.parts
    for level, store in (("sass", "STG.E.128"), ("ptx", "st.global.v4")):
        lines = beside.of(found, part, level)
        (line,) = [one for one in lines if any(store in text for text in one.instructions)]
        assert line.source == "y[i] = v;"
    text = beside.text(found, part, "sass", 80)
    assert re.search(r"^ +\d+  y\[i\] = v; +/\*[0-9a-f]{4}\*/ \w+", text, re.MULTILINE)
    assert re.search(r"^ {24,}/\*[0-9a-f]{4}\*/ STG\.E\.128", text, re.MULTILINE)
    with pytest.raises(AssayError, match="--source with --level log"):
        beside.of(found, part, "log")
    without = replace(part, texts={}, absent={"sass": "no nvdisasm here"})
    with pytest.raises(NotRun, match="no nvdisasm here"):
        beside.of(found, without, "sass")


@needs_tools
def test_ptx_stands_beside_sass(session: Session) -> None:
    text = beside.both(shown(session, KERNELS, "cuda/few"))
    assert re.search(r"^  ld\.global\.\S+ .*  /\*[0-9a-f]{4}\*/ ", text, re.MULTILINE)
    assert "v[i] = x[i * n + threadIdx.x];" in text
    assert text.count("LDG.E") == 8
    assert text.count("ld.global") == 8


def test_a_cpp_variant_has_a_log_and_machine_code(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    found = shown(session, KERNELS, "cpp")
    assert "-O3" in found.texts["log"]
    assert "<halve>:" in found.parts[0].texts["asm"]
    assert "register_tm_clones" not in found.parts[0].texts["asm"]
    with pytest.raises(NotRun, match="cpp has no such level: it has log, asm"):
        showing._level(found, "sass")
    showing._level(found, "asm")
    assert "<halve>:" in capsys.readouterr().out
    assert "1 function for the CPU" in summary.text(found)


@pytest.mark.gallery
def test_an_extension_shows_its_cuda_half(session: Session) -> None:
    found = shown(session, "square", "extension")
    assert "<square_out(at::Tensor&, at::Tensor const&)>:" in found.parts[0].texts["asm"]
    if not found.texts.get("ptx"):
        assert "nvcc" in found.why_not("ptx")
        return
    (part,) = [p for p in found.parts if p.name == "square_kernel<float>"]
    cubin = machine_code.resources(part.cubin)[part.entry]
    assert part.report is not None
    assert part.report.registers == cubin.registers
    assert "FMUL" in part.texts["sass"]
    assert "float64 in a kernel" not in summary.text(found), "of kernels that nobody launched"


@pytest.mark.full
def test_compiled_shows_graph_and_program(session: Session) -> None:
    found = shown(session, "square", "compiled", "sm_80")
    assert "torch.ops.aten.mul" in found.texts["fx"]
    assert "async_compile.triton(" in found.texts["inductor"]
    assert "empty_strided_cuda" in found.texts["inductor"], "as Inductor wrote it"
    assert found.parts[0].report is not None
    assert found.parts[0].report.arch == "sm_80"
    assert "1 operation in the graph (mul) became 1 kernel" in found.notes


@pytest.mark.full
def test_two_operations_become_one_kernel(session: Session) -> None:
    """`w*x + b`: two launches in eager, one compiled; a compiler of CUDA fuses no launches."""
    found = shown(session, "scale_bias", "compiled", "sm_80")
    assert "2 operations in the graph (mul, add) became 1 kernel" in found.notes
    calls: list[str] = []

    class Counts(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    given = [torch.ones(8) for _ in range(3)]
    with Counts():
        scale_bias.reference(*given)
    assert calls == ["aten.mul.Tensor", "aten.add.Tensor"]


@needs_tools
@pytest.mark.parametrize(
    "arch",
    [
        *(pytest.param(arch, marks=pytest.mark.full) for arch in ("sm_75", "sm_86", "sm_120")),
        *(pytest.param(arch, marks=pytest.mark.gallery) for arch in ("sm_80", "sm_89", "sm_100")),
    ],
)
@pytest.mark.parametrize("variant", ["triton", "cuda/vectorised", "numba"])
def test_other_architectures(session: Session, variant: str, arch: str) -> None:
    found = shown(session, "square", variant, arch)
    (part,) = found.parts
    report, cubin = part.report, machine_code.resources(part.cubin)[part.entry]
    assert report is not None
    assert report.registers == cubin.registers
    assert sass.parse(part.texts["sass"])


@needs_tools
def test_a_cache_that_names_an_environment_gone_since_is_no_reason(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from assay.inside.artifacts import triton as collector

    def stale(kernels: list[Any], compiled: Any) -> Any:
        known = made(kernels, compiled)
        gone = (("libdevice", "/gone/libdevice.10.bc"),)
        return SimpleNamespace(
            asm=known.asm, src=known.src, metadata=known.metadata._replace(extern_libs=gone)
        )

    made = collector._made
    monkeypatch.setattr(collector, "_made", stale)
    (part,) = artifacts.shown(session, parse("square"), "triton", {}, "sm_80").parts
    assert not part.absent
    assert sass.parse(part.texts["sass"])


def test_what_is_not_there_is_named(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssayError, match=r"no such level; say one of summary, .*fx, inductor"):
        showing.show(session, str(KERNELS), [], Request(level="mlir"))
    with pytest.raises(AssayError, match="nothing is compiled of python; there are compiled, cuda"):
        showing.show(session, str(KERNELS), ["python"], Request())
    assert showing.show(session, str(KERNELS), ["numba/nothing"], Request()) == 3
    assert "launched no kernel on this case" in capsys.readouterr().err
    two = ("numba/nothing", "cuda/few")
    assert showing.diff(session, str(KERNELS), [], two, Request()) == 3
    assert "not compared: numba/nothing launched no kernel" in capsys.readouterr().err
    with pytest.raises(NotRun, match="sm_42"):
        shown(session, "square", "triton", "sm_42")
    with pytest.raises(NotRun, match=r"does not build: .*gpu-architecture"):
        shown(session, KERNELS, "cuda/few", "sm_42")


def test_without_a_disassembler_it_is_said_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools, "_all", lambda name: ())
    with pytest.raises(NotRun, match=r"no nvdisasm here: pip install triton .* nvidia-cuda-nv"):
        machine_code.disassemble(b"")
    with pytest.raises(NotRun, match="no ptxas here"):
        machine_code.assemble("", "sm_90")


def test_the_newest_tool_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    two = tuple(tools.Tool("ptxas", Path(v), v) for v in ("12.9.86", "13.10.1", "13.4.59"))
    monkeypatch.setattr(tools, "_all", lambda name: two)
    assert tools.find("ptxas").version == "13.10.1"


@pytest.mark.gallery
@needs_tools
def test_the_command_line_takes_what_the_page_says(tmp_path: Path) -> None:
    shutil.copy(KERNELS, tmp_path / "kernels.py")
    shutil.copy(KERNELS.parent / "functions.py", tmp_path)
    done = assay(tmp_path, "show", "kernels.py", "-k", "cuda/few", "--level", "sass")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("// SASS: what the hardware runs, by ptxas\n// shown  cuda/few")
    done = assay(tmp_path, "show", "kernels.py", "--diff", "cuda/few", "cuda/spilling")
    assert done.returncode == 1, done.stderr
    assert "bytes of spill stores (0 ->" in done.stdout
    written = ("--from-compiled", "functions.py:gelu", "--input", "x=normal(8, 8)")
    done = assay(tmp_path, "show", *written, "--to", "one.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("wrote one.py: 1 kernel for x=normal(8, 8)")
    assert assay(tmp_path, "show", "one.py", "--fork", "two.py").returncode == 0
    done = assay(tmp_path, "show", "two.py", "--lineage")
    assert [line.split("  ")[1].strip() for line in done.stdout.splitlines()] == [
        "torch.compile of functions.py:gelu",
        "one.py",
        "two.py",
    ]
    assert "+1 -0 lines, in no run" in done.stdout


@pytest.mark.full
@needs_tools
def test_the_page_shows_what_is_printed(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for numbers, which are those of one version of NVRTC."""
    page = (Path(__file__).parents[1] / "docs" / "show.md").read_text()
    block = page.split("$ assay show square -k cuda/vectorised\n")[1].split("```")[0]
    assert showing.show(session, "square", ["cuda/vectorised"], Request()) == 0

    def plain(text: str) -> list[str]:
        whole = re.sub(r"\n    +", " ", text)
        lines = [line for line in whole.splitlines() if line and "SASS," not in line]
        return [re.sub(r"[\d,]*\d", "N", line) for line in lines]

    assert plain(capsys.readouterr().out) == plain(block)


@pytest.mark.parametrize(("most", "n"), [(0, 27), (999, 27), (1 << 21, 781), (5, 27)])
def test_the_largest_case_that_is_small_enough_is_taken(most: int, n: int) -> None:
    """Without a limit the smallest, as where none is below it."""
    given = {"dtype": "float32"} if most > 999 else {"n": 27}
    assert pick(parse("square"), "eager", given, most=most).case.values["n"] == n


PRINTED = """\t.headerflags @"EF_CUDA_SM90"
//--------------------- .text.k              --------------------------
\t.section\t.text.k,"ax",@progbits
k:
.text.k:
\t//## File "a.cuh", line 5 inlined at "a.cu", line 9
\t//## File "a.cu", line 9
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E.64.CONSTANT R2, desc[UR4][R2.64] ;
.L_x_1:
\t//## File "a.cu", line 10
        /*0020*/              @!P0 LDG.E.U8 R4, desc[UR4][R4.64] ;
        /*0030*/                   MUFU.RCP64H R5, R7 ;
        /*0040*/                   STL.128 [R1], R8 ;
        /*0050*/                   IMAD.MOV.U32 R3, RZ, RZ, 0x400 ;
        /*0060*/                   HFMA2 R3, -RZ, RZ, 1.5, 0 ;
        /*0070*/              @!P0 BRA !P1, `(.L_x_1) ;
        /*0080*/                   STG.E desc[UR4][R4.64], R3 ;
        /*0090*/                   EXIT ;
.L_x_2:
        /*00a0*/                   BRA `(.L_x_2);
        /*00b0*/                   NOP;
.L_x_3:
//--------------------- .nv.info --------------------------
\t/*0000*/ \t.byte\t0x04
"""


def test_sass_is_read_without_its_padding() -> None:
    (text,) = sass.functions(PRINTED).values()
    code = sass.parse(text)
    assert [one.address for one in code] == list(range(0, 0xA0, 0x10))
    assert code[-1].opcode == "EXIT"
    assert [str(place) for place in code[0].places] == ["a.cuh:5", "a.cu:9"]
    assert [str(place) for place in code[2].places] == ["a.cu:10"]
    assert (code[2].guard, code[2].form) == ("!P0", "LDG.E.U8")
    assert list(sass.loops(text)) == [(0x20, 0x70)]
    ends_in_a_loop = PRINTED.replace("EXIT ;\n.L_x_2", "BRA `(.L_x_1) ;\n.L_x_2")
    (text,) = sass.functions(ends_in_a_loop).values()
    assert sass.parse(text)[-1].text.endswith("BRA `(.L_x_1) ;")


def test_a_mix_is_counted() -> None:
    (text,) = sass.functions(PRINTED).values()
    found = mix.of_sass(text)
    assert found.instructions == 10
    assert found.loads == {64: 1, 8: 1}
    assert found.stores == {32: 1}
    assert found.local == 1
    assert [one.text for one in found.doubles] == ["MUFU.RCP64H R5, R7"]
    assert found.doubles[0].place == "a.cu:10"
    assert (found.branches, found.guarded, found.loops) == (1, 1, 1)
    assert found.classes["moves"] == 2
    assert sum(found.classes.values()) == found.instructions


PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .u32 k_param_1)
{
	.reg .pred %p<2>;
	.reg .f32 %f<5>;
	.reg .f64 %fd<2>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [k_param_0];
$L__BB0_1:
	ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
	ld.global.nc.u8 %rs1, [%rd1];
	cvt.f64.f32 %fd1, %f1;
	st.local.f32 [%rd2], %f1;
	st.global.b32 [%rd1], %f2;
	@%p1 bra $L__BB0_1;
	ret;
}
"""


def test_ptx_is_counted_where_there_is_no_machine_code() -> None:
    part = Part(name="k", entry="k", launches=1, texts={"ptx": PTX}, absent={"sass": "no nvdisasm"})
    found = Shown(
        op="o", label="cuda", way="cuda", case="", arch="sm_90", dtypes=("float32",), parts=(part,)
    )
    counted = summary.mix_of(found, part)
    assert counted is not None
    assert (counted.of, counted.loads, counted.stores) == ("PTX", {128: 1, 8: 1}, {32: 1})
    assert (counted.local, len(counted.doubles), counted.branches, counted.loops) == (1, 1, 1, 1)
    text = summary.text(found)
    assert "no sass: no nvdisasm" in text
    assert "float64 in a kernel of float32: 1 instruction\n" in text


def test_changes_are_plain_lines() -> None:
    before = Compiled(name="k", arch="sm_90", registers=30, shared_bytes=0, spill_store_bytes=None)
    a = Shown(
        op="o", label="triton", way="triton", case="", arch="sm_90",
        parts=(Part(name="k", report=before), Part(name="other")),
    )  # fmt: skip
    after = replace(before, registers=42, dynamic_shared_bytes=512, spill_store_bytes=8)
    b = replace(a, parts=(Part(name="k", report=after),))
    assert differing.changes(a, b) == [
        "k: +12 registers (30 -> 42), shared memory 0 -> 512 bytes",
        "1 kernel more in A than in B",
    ]


def test_names_are_as_their_authors_wrote_them(monkeypatch: pytest.MonkeyPatch) -> None:
    mangled = "_Z17square_vectorisedIfLi256EEvPT_PKS0_x"
    assert names.brief("plain") == "plain"
    monkeypatch.setattr(names.shutil, "which", lambda _: None)
    names.readable.cache_clear()
    assert names.readable(mangled) == mangled
    monkeypatch.undo()
    names.readable.cache_clear()
    names.brief.cache_clear()
    if names.shutil.which("c++filt"):
        assert names.brief(mangled) == "square_vectorised<float, 256>"


def test_the_geometry_of_what_was_compiled_is_a_level(session: Session) -> None:
    from assay.inside.geometry import shown as view

    text = view.text(shown(session, KERNELS, "cuda/few"))
    assert "blocks an SM" in text
    assert "occupancy" in text
    assert "registers a thread" in text
