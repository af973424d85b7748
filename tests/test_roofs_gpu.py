"""The kernels that measure ceilings: right when watched on the CPU; and what a real GPU gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import assay
from assay.roofs import store
from assay.roofs.measure import measure
from assay.session import Session
from assay.types import Roofs, Row

SOURCE = Path(assay.__file__).parent / "roofs" / "roofs.cu"
KERNELS = f"""
import torch, assay
SOURCE, TILE = {str(SOURCE)!r}, 8192

total = assay.Op(
    "total",
    lambda x: x.sum(dtype=torch.int32).reshape(1),
    lambda make, tiles: (make.integers(TILE * tiles, low=-9, high=10, dtype="int32"),),
    cases=assay.grid(tiles=[2]),
)

@total.launcher("cuda/read_tiles", SOURCE)
def read_tiles(k, s, x):
    s.zero_()
    k["read_tiles"](grid=x.numel() // TILE, block=512)(s, x)

@total.launcher("cuda/read_walks", SOURCE)
def read_walks(k, s, x):
    s.zero_()
    k["read_walks"](grid=1, block=512)(s, x, x.numel() // TILE)

@total.launcher("cuda/read_in_l2", SOURCE)
def read_in_l2(k, s, x):
    s.zero_()
    k["read_in_l2"](grid=1, block=512)(s, x, x.numel() // TILE, 1)

same = assay.Op(
    "same",
    lambda x: x.clone(),
    lambda make, tiles: (make.normal(TILE * tiles),),
    cases=assay.grid(tiles=[2]),
)

@same.launcher("cuda/copy_tiles", SOURCE)
def copy_tiles(k, y, x):
    k["copy_tiles"](grid=x.numel() // TILE, block=512)(y, x)

@same.launcher("cuda/copy_in_l2", SOURCE)
def copy_in_l2(k, y, x):
    k["copy_in_l2"](grid=1, block=512)(y, x, x.numel() // TILE, 2)

sevens = assay.Op(
    "sevens",
    lambda x: torch.full_like(x, 7),
    lambda make, tiles: (make.integers(TILE * tiles, dtype="int32"),),
    cases=assay.grid(tiles=[2]),
)

@sevens.launcher("cuda/write_tiles", SOURCE)
def write_tiles(k, y, x):
    k["write_tiles"](grid=y.numel() // TILE, block=512)(y, 7)

@sevens.launcher("cuda/write_in_l2", SOURCE)
def write_in_l2(k, y, x):
    k["write_in_l2"](grid=1, block=512)(y, 7, y.numel() // TILE, 2)

chains = assay.Op(
    "chains",
    lambda x: torch.full_like(x, 32.0),
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[512]),
)

@chains.launcher("cuda/multiply_add", SOURCE)
def multiply_add(k, y, x):
    k["multiply_add"](grid=1, block=512)(y, 0.5, 1.0, 8)

held = assay.Op(
    "held",
    lambda x: torch.full_like(
        x, 2 * sum(16 * (t + 64 * i) + 6 for t in range(1024) for i in range(16))
    ),
    lambda make, n: (make.integers(n, dtype="int32"),),
    cases=assay.grid(n=[1]),
)

@held.launcher("cuda/read_shared", SOURCE)
def read_shared(k, s, x):
    s.zero_()
    k["read_shared"](grid=1, block=1024)(s, 2)

count = assay.Op(
    "count",
    lambda x: torch.full_like(x, 6),
    lambda make, n: (make.integers(n, dtype="int32"),),
    cases=assay.grid(n=[1]),
)

@count.launcher("cuda/wait_on_count", SOURCE)
def wait_on_count(k, arrived, x):
    arrived.zero_()
    k["wait_on_count"](grid=2, block=64)(arrived, 3)

@count.launcher("cuda/wait_on_round", SOURCE)
def wait_on_round(k, arrived, x):
    arrived.zero_()
    k["wait_on_round"](grid=2, block=64)(arrived, torch.zeros_like(x), 3)
"""


@pytest.mark.gallery
def test_the_kernels_of_ceilings_are_right(judge: Callable[..., list[Row]]) -> None:
    rows = judge(KERNELS, variants=("cuda*",), arch="sm_90")
    said = {row.variant: (row.word, row.reason) for row in rows}
    assert len(said) == 11
    assert {word for word, _ in said.values()} <= {"right", "check too weak"}, said
    assert all(row.verdict and not row.verdict.faults for row in rows if row.word == "right")


@pytest.fixture(scope="module")
def of_gpu(session: Session) -> Roofs:
    return measure(session, session.machine(), "cuda:0", seconds=0.1)


@pytest.mark.gpu
@pytest.mark.alone
def test_the_ceilings_of_this_gpu(of_gpu: Roofs) -> None:
    names = {r.name for r in of_gpu.roofs}
    assert {"read", "write", "copy", "shared memory", "float32 FMA", "grid sync"} <= names
    assert {"float32 matrix", "tf32 matrix", "float16 matrix", "bfloat16 matrix"} <= names
    assert {"empty window", "empty launch", "graph node", "launch, host"} <= names
    best = {r.name: max(s.value for s in of_gpu.roofs if s.name == r.name) for r in of_gpu.roofs}
    assert best["tf32 matrix"] > 2 * best["float32 matrix"], "it took the tensor cores"
    assert best["bfloat16 matrix"] > 1.3 * best["tf32 matrix"]
    assert best["empty window"] > best["empty launch"] > 3e-7, "what events add is taken off"
    there, back = (f"host to device, {m}" for m in ("pinned", "pageable"))
    assert best[there] > best[back] > 1e8
    assert best["device to host, pinned"] > 1e9
    large = [r for r in of_gpu.roofs if r.name == "copy" and (r.bytes or 0) >= 1 << 30]
    assert large
    for one in large:
        assert (one.high - one.low) / one.value < 0.02


@pytest.mark.gpu
@pytest.mark.alone
def test_a_large_copy_reaches_its_ceiling_and_too_many_bytes_are_invalid(
    of_gpu: Roofs,
    session: Session,
    judge: Callable[..., list[Row]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if of_gpu.doubtful:
        pytest.skip(of_gpu.doubtful)
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    assert of_gpu.key == store.key_of(session.machine(), "cuda:0")
    store.save(of_gpu)
    source = """
import assay
op = assay.Op("twice", lambda x: 2 * x, lambda make, n: (make.normal(n),), BYTES
              cases=assay.grid(n=[1 << 27]))
"""
    given = {"timed": True, "variants": ("eager",), "budget": 0.5, "device": "cuda:0"}
    (row,) = judge(source.replace("BYTES", ""), **given)
    assert row.timing
    assert row.timing.share
    assert row.timing.share.of == "copy"
    assert 0.95 < row.timing.share.value <= 1.03
    assert row.timing.floor
    assert row.timing.median > row.timing.floor.seconds
    (wrong,) = judge(source.replace("BYTES", "bytes=lambda n: 10 * n,"), **given)
    assert wrong.timing is None
    assert "invalid, no such speed is possible" in wrong.not_timed
    assert "moving" in wrong.not_timed
