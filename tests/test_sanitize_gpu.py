"""compute-sanitizer's four tools on planted faults, and on their right twins, on a GPU."""

from __future__ import annotations

import pytest

from assay.types import Row

pytestmark = [pytest.mark.gpu, pytest.mark.alone]

OP = '''
import torch
import triton
import triton.language as tl
import assay

N = 256

op = assay.Op(
    "shifted",
    lambda x: torch.cat([x[1:], x[-1:]]),
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[N]),
)

CUDA = r"""
__device__ float value(const float* x, int i, int n) { return x[i + 1 < n ? i + 1 : n - 1]; }

extern "C" __global__ void right(float* y, const float* x, float* scratch, int n) {
    __shared__ float s[256];
    int i = threadIdx.x;
    s[i] = x[i];
    __syncthreads();
    scratch[i] = s[i + 1 < n ? i + 1 : n - 1];
    y[i] = scratch[i];
}
extern "C" __global__ void writes_beyond(float* y, const float* x, float* scratch, int n) {
    int i = threadIdx.x;
    y[i] = value(x, i, n);
    if (i == 0) y[n] = 1;  // MARK writes_beyond
}
extern "C" __global__ void reads_beyond(float* y, const float* x, float* scratch, int n) {
    int i = threadIdx.x;
    float next = *(volatile const float*)(x + i + 1);  // MARK reads_beyond
    y[i] = i + 1 < n ? next : x[n - 1];
}
extern "C" __global__ void races(float* y, const float* x, float* scratch, int n) {
    __shared__ float s[256];
    int i = n - 1 - threadIdx.x;
    s[i] = x[i];
    y[i] = s[i + 1 < n ? i + 1 : n - 1];  // MARK races
}
extern "C" __global__ void unwritten(float* y, const float* x, float* scratch, int n) {
    int i = threadIdx.x;
    float other = scratch[i];  // MARK unwritten
    y[i] = value(x, i, n) + (other == 12345.678f ? 1e-30f : 0.0f);
}
extern "C" __global__ void diverges(float* y, const float* x, float* scratch, int n) {
    int i = threadIdx.x;
    if (i % 32 < 16) __syncthreads();  // MARK diverges
    y[i] = value(x, i, n);
}
"""


def variant(name):
    @op.launcher(f"cuda/{name}", source=CUDA)
    def launch(k, y, x):
        scratch = torch.empty_like(x)
        k[name](grid=1, block=N)(y, x, scratch, x.numel())


for name in ("right", "writes_beyond", "reads_beyond", "races", "unwritten", "diverges"):
    variant(name)


@triton.jit
def shift(y, x, n, limit, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + tl.minimum(i + 1, n - 1), mask=i < n)
    tl.store(y + i, v, mask=i < limit)  # MARK triton


@op.launcher("triton/right")
def triton_right(y, x):
    shift[(1,)](y, x, x.numel(), x.numel(), B=512)


@op.launcher("triton/writes_beyond")
def triton_beyond(y, x):
    shift[(1,)](y, x, x.numel(), x.numel() + 1, B=512)
'''

PLANTED = {
    "cuda/writes_beyond": ("wrote outside", "writes_beyond"),
    "cuda/reads_beyond": ("read outside", "reads_beyond"),
    "cuda/races": ("race", "races"),
    "cuda/unwritten": ("read before written", "unwritten"),
    "cuda/diverges": ("divergent barrier", "diverges"),
    "triton/writes_beyond": ("wrote outside", "triton"),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    import assay

    file = tmp_path_factory.mktemp("sanitize") / "planted.py"
    file.write_text(OP)
    found = assay.check(
        str(file), sanitize=True, zoo=False, device="cuda", variants=("cuda*", "triton*")
    )
    return {row.variant: row for row in found}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named(name: str, rows: dict[str, Row]) -> None:
    word, mark = PLANTED[name]
    row = rows[name]
    assert row.word == word, row.reason
    assert row.verdict is not None
    lines = OP.splitlines()
    inline = lines.index('CUDA = r"""') + 1  # the kernel's own text starts below it
    line = next(
        n
        for n, text in enumerate(lines, 1)
        if f"// MARK {mark}" in text or f"# MARK {mark}" in text
    )
    wanted = {line, line - inline, line - inline + 1}
    assert {fault.line for fault in row.verdict.faults} & wanted, row.reason


@pytest.mark.parametrize("name", ["cuda/right", "triton/right"])
def test_a_right_twin_is_clean_under_all_four(name: str, rows: dict[str, Row]) -> None:
    row = rows[name]
    assert row.word == "right", row.reason
    assert row.verdict is not None
    assert "sanitized: memcheck, racecheck, initcheck, synccheck" in row.verdict.findings
