"""Kernels that may start before the one in front of them has ended, and wait for it themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import assay
from assay.operators import replay
from assay.types import Case
from assay.ways import DEFAULT_ARCH, Job, cuda
from assay.ways.launch import Recorder

SOURCE = """
extern "C" __global__ void first(float* y, const float* x, int n) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.f;
  for (int k = 0; k < 2000; ++k) v = v * 0.5f + 1.f;  // late on purpose
  if (i < n) y[i] = v - v + x[i] + 1.f;
}
extern "C" __global__ void second(float* z, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  if (i < n) z[i] = 2.f * y[n - 1 - i];
}
"""
N = 1 << 16


def module(tmp_path: Path, device: str, watch: Any = None) -> Any:
    source = tmp_path / "early.cu"
    source.write_text(SOURCE)
    op = assay.Op("early", lambda x: x, lambda make: (make.normal(4),), cases=[{}])
    variant = assay.Variant("cuda/early", "cuda", lambda *_: None, fills=True, source=source)
    arch = DEFAULT_ARCH
    if device != "cpu":
        arch = "sm_{}{}".format(*torch.cuda.get_device_capability(device))
    job = Job(op, variant, {}, Case(), device, arch, lambda _: None, watch=watch)
    built = cuda.compile_source(source, ["first", "second"], job)
    return cuda.Watched(built, job) if watch is not None else cuda.module(built, job)


def chain(k: Any, z: torch.Tensor, y: torch.Tensor, x: torch.Tensor, *, early: bool = True) -> None:
    grid = -(-x.numel() // 256)
    k["first"](grid=grid, block=256)(y, x, x.numel())
    k["second"](grid=grid, block=256, early=early)(z, y, x.numel())


def test_a_launch_says_that_it_may_start_early():
    recorder, x = Recorder("sm_90"), torch.zeros(8)
    chain(recorder, x, x, x)
    assert [launch.early for launch in recorder.launches] == [False, True]


def test_such_launches_are_not_replayed():
    x = torch.zeros(8)

    def launched(k: Any, outputs: list[Any], inputs: list[Any]) -> None:
        chain(k, outputs[0], outputs[0], inputs[0])

    launches, why = replay.recorded(launched, [torch.zeros(8)], [x], "sm_90")
    assert launches == []
    assert "before the one in front of it has ended" in why


@pytest.mark.full
def test_on_a_cpu_one_kernel_follows_the_other(tmp_path: Path):
    from assay.simt import Watch

    watch = Watch()
    k = module(tmp_path, "cpu", watch)
    x = torch.arange(1000.0)
    y, z = torch.empty(1000), torch.empty(1000)
    for value, name in ((x, "x"), (y, "y"), (z, "z")):
        watch.memory.add(value.data_ptr(), value.nbytes, name=name, written=name == "x", keep=value)
    chain(k, z, y, x)
    assert torch.equal(z, 2 * (x.flip(0) + 1))
    assert not watch.faults


@pytest.mark.gpu
@pytest.mark.timeout(60)
def test_a_kernel_that_starts_early_sees_what_it_waits_for(tmp_path: Path):
    device = "cuda:0"
    k, x = module(tmp_path, device), torch.randn(N, device=device)
    y, z = torch.empty_like(x), torch.empty_like(x)
    chain(k, z, y, x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(10):
            y.fill_(torch.nan)
            chain(k, z, y, x)
    for _ in range(20):
        z.fill_(torch.nan)
        graph.replay()
        torch.testing.assert_close(z, 2 * (x.flip(0) + 1), rtol=0, atol=0)


@pytest.mark.gpu
@pytest.mark.alone
@pytest.mark.timeout(60)
def test_starting_early_saves_time_in_a_graph(tmp_path: Path):
    from assay.mnist.whole.bench import captured, timed

    device = "cuda:0"
    k, x = module(tmp_path, device), torch.randn(256, device=device)
    y, z = torch.empty_like(x), torch.empty_like(x)
    graphs = {
        early: captured(lambda early=early: [chain(k, z, y, x, early=early) for _ in range(20)])
        for early in (False, True)
    }
    seconds = {early: [] for early in graphs}
    for _ in range(15):
        for early, graph in graphs.items():
            seconds[early].append(timed(graph.replay) / 20)
    assert sorted(seconds[True])[7] < sorted(seconds[False])[7]
