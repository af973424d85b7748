"""`assay show --from-compiled`: what Inductor wrote, as a file that passes `assay check`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.commands import beginning
from assay.errors import AssayError, NotRun
from assay.inside import lineage
from assay.inside.from_compiled import started
from assay.inside.from_compiled.program import rewritten
from assay.inside.from_compiled.standalone import Bound, Taken, take
from assay.rows import Run
from assay.session import Session
from assay.target import parse
from assay.types import Case, Row, Timing

FUNCTIONS = Path(__file__).parent / "fixtures" / "functions.py"
ROWS: dict[str, object] = {"rows": 64, "n": 1025}
LONG = {"rows": 2, "n": 100_003, "dtype": "float32"}
HALF = {"m": 37, "n": 27, "dtype": "float16"}
TWO = ("x=normal(64, 1000)", "w=normal(64)")
HELPED = ("x=normal(7, 100, bfloat16)",)
GELU = f"{FUNCTIONS}:gelu"
pytest.importorskip("triton")


@pytest.mark.gallery
def test_gelu_becomes_a_file_that_passes_check(
    session: Session, judge: Callable[..., list[Row]], tmp_path: Path
) -> None:
    made = started(session, parse(GELU, inputs=("x=normal(16, 100)",)), {}, "sm_90")
    assert made.op == "gelu"
    assert made.kernels == ("triton_poi_fused_gelu_0",)
    path = tmp_path / "gelu_compiled.py"
    path.write_text(made.text)
    (row,) = judge(path, variants=("triton/inductor",), zoo=False)
    assert row.word == "right", row.reason
    assert row.verdict is not None
    assert row.verdict.judge.startswith("sm_"), "compiled code, every access watched"
    assert row.knobs["num_warps"] == 4
    _broken(path, judge)


def _broken(path: Path, judge: Callable[..., list[Row]]) -> None:
    """The judge is awake: an edit that is wrong is named."""
    path.write_text(path.read_text().replace("0.7071067811865476", "0.7"))
    (row,) = judge(path, variants=("triton/inductor",), zoo=False)
    assert row.word == "wrong value"


@pytest.mark.parametrize(
    ("target", "inputs", "case"),
    [
        pytest.param("softmax", (), {**ROWS, "dtype": "float32"}, marks=pytest.mark.gallery),
        pytest.param("softmax", (), {**ROWS, "dtype": "bfloat16"}, marks=pytest.mark.gallery),
        pytest.param("softmax", (), LONG, marks=pytest.mark.gallery),
        pytest.param("square", (), HALF, marks=pytest.mark.gallery),
        pytest.param(f"{FUNCTIONS}:two", TWO, {}, marks=pytest.mark.gallery),
        pytest.param(f"{FUNCTIONS}:helped", HELPED, {}, marks=pytest.mark.gallery),
    ],
)
def test_others_pass_check_too(
    session: Session,
    judge: Callable[..., list[Row]],
    tmp_path: Path,
    target: str,
    inputs: tuple[str, ...],
    case: dict[str, Any],
) -> None:
    made = started(session, parse(target, inputs=inputs), case, "sm_90")
    path = tmp_path / "written.py"
    path.write_text(made.text)
    rows = judge(path, variants=("triton/inductor",))
    assert {row.word for row in rows if row.outcome != "absent"} == {"right"}, made.text
    (declared,) = [row for row in rows if not row.case.zoo]
    assert declared.word == "right"


@pytest.mark.full
@pytest.mark.parametrize(
    ("target", "inputs", "why"),
    [
        (f"{FUNCTIONS}:matmul", ("x=normal(8, 8)", "w=normal(8, 8)"), "leaves mm to a vendor"),
        (
            f"{FUNCTIONS}:tabled",
            ("x=normal(3, 4)",),
            "tensors and the function 1: a tensor that the function brings",
        ),
        (f"{FUNCTIONS}:decorated", ("x=normal(3, 4)",), "is no plain `def`"),
        ("softmax_grad", (), "is a gradient"),
    ],
)
def test_what_cannot_be_written_so_is_refused(
    session: Session, target: str, inputs: tuple[str, ...], why: str
) -> None:
    with pytest.raises(NotRun, match=why):
        started(session, parse(target, inputs=inputs), {}, "sm_90")


PROGRAM = '''
async_compile = AsyncCompile()
# Topologically Sorted Source Nodes: [gelu], Original ATen: [aten.gelu]
k_0 = async_compile.triton('k_0', """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math

@triton.jit
def add(a, b):
    return a + b

@triton_heuristics.pointwise(size_hints={{'x': 64}})
@triton.jit
def k_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 60
    tl.store(out_ptr0, tl_math.exp(add(1, 2)))
""", device_str='cuda')

class Runner:
    def call(self, args):
        arg0_1, = args
        args.clear()
        assert_size_stride(arg0_1, (6, 10), (10, 1), 'input')
        with torch.cuda._DeviceGuard(0):
            arg0_1 = copy_if_misaligned(arg0_1)
            buf0 = empty_strided_cuda((6, 10), (10, 1), torch.float32)
            raw_stream0 = get_raw_stream(0)
            k_0.run(reinterpret_tensor(arg0_1, (60, ), (1, ), 0), buf0, 60, stream=raw_stream0)
            del arg0_1
            {more}
        return (buf0, )
'''
LAUNCH = SimpleNamespace(
    name="k_0",
    grid=(2, 1, 1),
    compiled=SimpleNamespace(settings=(("XBLOCK", 32), ("num_warps", 2), ("num_stages", 1))),
)


def program(more: str = "buf1 = buf0; del buf0  # reuse") -> str:
    return PROGRAM.format(more=more)


def test_a_program_becomes_a_function_and_kernels() -> None:
    made = rewritten(program(), [LAUNCH], ["x"])  # type: ignore[list-item]
    assert made.names == ("k_0",)
    assert made.knobs == {"XBLOCK": 32, "num_warps": 2}
    assert made.views
    assert made.body[0] == (
        "buf0 = torch.empty_strided((6, 10), (10, 1), dtype=torch.float32, device=x.device)"
    )
    assert made.body[1:6] == (
        "k_0[(triton.cdiv(60, XBLOCK),)](",
        "    view(x, (60,), (1,), 0), buf0, 60,",
        "    XBLOCK=XBLOCK, num_warps=num_warps, num_stages=1,",
        ")",
        "buf1 = buf0",
    )
    assert made.body[-1] == "return buf0"
    (kernel,) = made.kernels
    assert kernel.startswith("# aten.gelu\n@triton.jit\ndef add(a, b):")
    assert "triton_heuristics" not in kernel
    assert made.imports == (
        "import triton.language as tl",
        "from torch._inductor.runtime.triton_helpers import math as tl_math",
    )


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("extern_kernels.mm(arg0_1, arg0_1, out=buf0)", "leaves mm to a vendor library"),
        ("buf2 = torch.ops.aten.sort.default(buf0)", "leaves sort to a vendor library"),
        ("print(buf0)", r"does more than launch kernels: print\(buf0\)"),
    ],
)
def test_a_program_that_does_more_is_refused(more: str, why: str) -> None:
    with pytest.raises(NotRun, match=why):
        rewritten(program(more), [LAUNCH], ["x"])  # type: ignore[list-item]


def test_a_grid_that_no_formula_gives_is_written_as_it_was() -> None:
    other = SimpleNamespace(**{**vars(LAUNCH), "grid": (7, 1, 1)})
    made = rewritten(program(), [other], ["x"])  # type: ignore[list-item]
    assert made.body[1] == "k_0[(7, 1, 1)]("
    with pytest.raises(NotRun, match="takes 1 tensors and the function 2"):
        rewritten(program(), [LAUNCH], ["x", "w"])  # type: ignore[list-item]
    with pytest.raises(NotRun, match="no Triton kernel"):
        rewritten("x = 1", [], ["x"])


def test_a_function_is_taken_with_what_it_uses() -> None:
    from fixtures import functions

    taken = Taken()
    take(taken, functions.helped, "reference")
    assert list(taken.texts) == ["SCALE", "halved", "reference"]
    space: dict[str, Any] = {}
    exec("\n".join(taken.texts.values()), space)
    assert space["reference"](8) == 2
    taken = Taken()
    take(taken, functions.gelu, "reference")
    assert list(taken.imports) == ["import torch.nn.functional as F"]
    for wrong, why in (
        (functions.marked, "no plain `def`"),
        (functions.tabled, "TABLE, a Tensor"),
        (len, "no source"),
        (_closed(3), "variables of the function around it"),
    ):
        with pytest.raises(Bound, match=why):
            take(Taken(), wrong, "reference")


def _closed(n: int) -> Callable[[int], int]:
    def inner(x: int) -> int:
        return x * n

    return inner


FILE = '''"""A file."""
LINEAGE = [
    ("aaaa", "torch.compile of f.py:f"),
]
x = 1
'''


def test_a_version_remembers_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "first.py"
    path.write_text(FILE)
    root = lineage.Version("aaaa", "torch.compile of f.py:f")
    assert lineage.ancestors(path) == (root,)
    second = tmp_path / "second.py"
    second.write_text(lineage.forked(path, "bbbb"))
    assert lineage.ancestors(second) == (lineage.Version("bbbb", "first.py"), root)
    assert second.read_text().endswith("]\nx = 1\n")
    assert ast.parse(second.read_text())
    path.write_text("x = 1\n")
    assert lineage.ancestors(path) == ()
    with pytest.raises(AssayError, match="it has no LINEAGE"):
        lineage.forked(path, "cccc")
    path.write_text("LINEAGE = [1, 2]\n")
    with pytest.raises(AssayError, match=r"first.py:1: LINEAGE is a list of"):
        lineage.ancestors(path)


def test_what_a_version_changed_is_counted_where_its_files_are_there(tmp_path: Path) -> None:
    files = {"a.py": "x = 1\ny = 2\n", "b.py": "x = 1\ny = 3\nz = 4\n", "c.py": "x = 1\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    versions = [lineage.Version(lineage.hash_of(tmp_path / name), name) for name in files]
    gone = lineage.Version("eeee", "a.py")
    found = lineage.edited([*versions, gone], tmp_path)
    assert found == {versions[1].hash: "+2 -1 lines", versions[2].hash: "+0 -2 lines"}


def _row(hash_: str, variant: str, word: str, seconds: float | None, schedule: str = "s1") -> Row:
    timing = None
    if seconds is not None:
        timing = Timing(
            samples=(seconds,), method="events", cache="hot", schedule=schedule, rounds=(0,),
            median=seconds, low=seconds, high=seconds,
        )  # fmt: skip
    outcome = {"right": "pass", "wrong value": "fail", "not run": "absent"}[word]
    return Row(
        op="f", variant=variant, way=variant.split("/")[0], source_hash=hash_, case=Case({"n": 1}),
        outcome=outcome, word=word, timing=timing, time="2026-01-02T03:04:05",
    )  # fmt: skip


def test_verdict_and_speed_come_from_the_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        [_row("aaaa", "compiled", "right", 4e-5), _row("aaaa", "eager", "right", 9e-5)],
        [_row("bbbb", "triton/a", "wrong value", None), _row("cccc", "triton/a", "right", None)],
        [
            _row("bbbb", "triton/a", "right", 2e-5, "s3"),
            _row("bbbb", "compiled", "right", 4e-5, "s3"),
            _row("bbbb", "compiled", "right", 8e-5, "other"),
            _row("bbbb", "triton/a", "not run", None),
        ],
    ]
    for rows in runs:
        run = Run(tmp_path)
        for row in rows:
            run.write(row)
    kept = lineage.history(tmp_path)
    assert not kept.unread
    root = lineage.Version("aaaa", "torch.compile of f.py:f")
    versions = [root, lineage.Version("bbbb", "first.py"), lineage.Version("dddd", "now")]
    first, second, now = lineage.table(kept, "f", "triton", versions)
    assert (first.verdict, first.seconds, first.against) == ("right", 4e-5, None)
    assert (second.verdict, second.seconds, second.against) == ("right", 2e-5, 2.0)
    assert (now.verdict, now.seconds, now.rows) == ("", None, 0)
    edits = lineage.edits(kept, "f", "triton", versions)
    assert edits == [lineage.Version("cccc", "as it was on 2026-01-02T03:04")]
    beginning._print([first, second, now], {"dddd": "+1 -2 lines"})
    out = capsys.readouterr().out
    assert "bbbb  first.py                 right, 20 us, 2.00x as fast as compiled" in out
    assert "now                      +1 -2 lines, in no run" in out
    path = next((tmp_path / ".assay" / "runs").glob("*/rows.jsonl"))
    path.write_text(path.read_text() + "{")
    assert len(lineage.history(tmp_path).unread) == 1


def test_files_are_written_once(tmp_path: Path) -> None:
    there = tmp_path / "there.py"
    there.write_text("")
    with pytest.raises(AssayError, match="it is there already"):
        beginning.new_module(there)
    with pytest.raises(AssayError, match="name of a Python module"):
        beginning.new_module(tmp_path / "a-b.py")
    with pytest.raises(AssayError, match="give a file of your own"):
        beginning.fork("square", [], tmp_path / "new.py")
    with pytest.raises(AssayError, match="the lineage of square"):
        beginning.show("square", [])
