"""What only a GPU can show: run with `make test-gpu`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.session import Session
from assay.types import Row

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(300)]

Judge = Callable[..., list[Row]]

OP = """
import torch
import assay

op = assay.Op(
    "double",
    lambda x: 2 * x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1000, 1 << 20]),
)
"""


def rows_of(rows: list[Row], variant: str) -> list[Row]:
    found = [row for row in rows if row.variant == variant]
    assert found, f"no row of {variant} among {sorted({r.variant for r in rows})}"
    return found


def gpu(judge: Judge, source: str, **options: object) -> list[Row]:
    options = {"device": "cuda:0", "variants": (), "quick": True, **options}
    return judge(OP + source, **options)


@pytest.mark.parametrize(
    ("op", "case"),
    [
        ("square", {"m": 1823, "n": 781, "dtype": "float32"}),
        ("softmax", {"rows": 64, "n": 1025, "dtype": "float32"}),
        ("softmax", {"rows": 2, "n": 100_003, "dtype": "float32"}),
    ],
)
def test_every_way_is_right_and_timed_in_one_schedule(
    judge: Judge, op: str, case: dict[str, object]
) -> None:
    rows = judge(op, device="cuda:0", variants=(), case=case, timed=True, budget=1.0)
    ways = {row.way for row in rows}
    assert ways == {
        "eager",
        "compiled",
        "python",
        "triton",
        "cuda",
        "extension",
        "numba",
        "cpp",
    }
    asked = [row for row in rows if not row.reason.startswith("meant for")]
    faults = [(r.label, r.word, r.reason, r.not_timed) for r in asked if r.timing is None]
    assert not faults
    assert len({row.timing.schedule for row in rows if row.timing}) == 1


def test_an_illegal_address_costs_only_its_own_rows(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "stray.cu").write_text(
        'extern "C" __global__ void stray(float* y, const float* x, long long n) {\n'
        "  long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
        "  if (i < n) y[i + (1ll << 40)] = 2 * x[i];\n"
        "}\n"
    )
    rows = gpu(
        judge,
        """
@op.launcher("cuda/stray", source="stray.cu")
def launch(k, y, x):
    k["stray"](grid=(x.numel() + 255) // 256, block=256)(y, x, x.numel())
""",
        timed=True,
        budget=0.5,
    )
    stray = rows_of(rows, "cuda/stray")
    assert {row.word for row in stray} == {"crashed"}
    assert all("illegal" in row.reason.lower() for row in stray)
    assert all(row.timing for row in rows_of(rows, "eager"))


def test_an_endless_kernel_is_ended_and_the_gpu_goes_on(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "spin.cu").write_text(
        'extern "C" __global__ void spin(float* y) {\n'
        "  volatile float* v = y;\n"
        "  while (v[0] != 12345.f) { }\n"
        "}\n"
    )
    rows = gpu(
        judge,
        """
@op.launcher("cuda/spin", source="spin.cu")
def launch(k, y, x):
    k["spin"](grid=1, block=1)(y)
""",
        deadline=4.0,
    )
    assert rows_of(rows, "cuda/spin")[0].word == "timed out"
    assert {row.word for row in rows_of(rows, "eager")} == {"right"}


def test_a_number_arrives_as_the_type_that_the_parameter_declares(
    judge: Judge, tmp_path: Path
) -> None:
    (tmp_path / "scale.cu").write_text(
        "template <class T> __global__ void scale(T* y, const T* x, float f, double d, int n,\n"
        "                                         unsigned char c, bool b) {\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  if (i < n) y[i] = x[i] * f * (float)d * (c == 7 ? 1 : 5) * (b ? 1 : 3);\n"
        "}\n"
    )
    rows = gpu(
        judge,
        """
@op.launcher("cuda/scale", source="scale.cu")
def launch(k, y, x):
    grid = (x.numel() + 255) // 256
    k[f"scale<{k.type(x)}>"](grid=grid, block=256)(y, x, 4, 0.5, x.numel(), 7, True)


@op.launcher("cuda/lossy", source="scale.cu")
def lossy(k, y, x):
    grid = (x.numel() + 255) // 256
    k[f"scale<{k.type(x)}>"](grid=grid, block=256)(y, x, 4, 0.5, 1.5, 7, True)
""",
    )
    assert {row.word for row in rows_of(rows, "cuda/scale")} == {"right"}
    lossy = rows_of(rows, "cuda/lossy")
    assert {row.word for row in lossy} == {"did not launch"}
    assert "1.5" in lossy[0].reason


def test_too_many_threads_are_refused_by_name(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "one.cu").write_text('extern "C" __global__ void one(float* y) { y[0] = 1; }\n')
    rows = gpu(
        judge,
        """
@op.launcher("cuda/one", source="one.cu")
def launch(k, y, x):
    k["one"](grid=1, block=1500)(y)
""",
    )
    assert rows_of(rows, "cuda/one")[0].word == "did not launch"
    assert "1,500 threads a block, limit 1,024" in rows_of(rows, "cuda/one")[0].reason


def test_work_that_the_clock_cannot_see_or_hide_gives_no_number(judge: Judge) -> None:
    rows = gpu(
        judge,
        """
side = None

@op.variant("eager/elsewhere")
def elsewhere(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = 2 * x
    return y

@op.variant("eager/waits")
def waits(x):
    float(x[0])
    return 2 * x
""",
        timed=True,
        budget=0.5,
    )
    for row in rows_of(rows, "eager/elsewhere"):
        assert row.timing is None, row
        assert "current stream" in row.not_timed or row.outcome == "fail", row
    for row in rows_of(rows, "eager/waits"):
        assert row.timing is None
        assert "host-bound" in row.not_timed


def test_want_of_memory_is_named_and_costs_one_row(judge: Judge) -> None:
    rows = gpu(
        judge,
        """
@op.variant("eager/greedy")
def greedy(x):
    return 2 * x + torch.empty(1 << 42, dtype=torch.uint8, device=x.device)[0]
""",
    )
    assert {row.word for row in rows_of(rows, "eager/greedy")} == {"out of memory"}
    assert {row.word for row in rows_of(rows, "eager")} == {"right"}


def test_the_fork_server_never_starts_cuda(judge: Judge, session: Session) -> None:
    gpu(judge, "")
    server = Path(f"/proc/{session.server.process.pid}/fd")
    # A CUDA build of torch may map libcuda at import; starting CUDA opens the driver's devices.
    opened = [os.readlink(link) for link in server.iterdir()]
    assert opened
    assert not [path for path in opened if path.startswith("/dev/nvidia")]


SHARED = """
@op.launcher("cuda/shared", source='''
extern "C" __global__ void doubled(float* y, const float* x, int n) {
  extern __shared__ float held[];
  const int i = blockIdx.x * 256 + threadIdx.x, far = 49_152 + threadIdx.x;
  held[far] = i < n ? 2 * x[i] : 0.f;
  __syncthreads();
  if (i < n) y[i] = held[far];
}
''')
def shared(k, y, x):
    k["doubled"](grid=-(-x.numel() // 256), block=256, shared=200_000)(y, x, x.numel())
""".replace("49_152", "49152")


def test_a_block_may_have_more_shared_memory_than_the_default(judge: Judge) -> None:
    for row in rows_of(gpu(judge, SHARED, variants=("eager", "cuda/shared")), "cuda/shared"):
        assert row.word == "right", row.reason
