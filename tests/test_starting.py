"""How `k[name](grid=, block=)(...)` reaches the driver, with a stand-in for driver and GPU."""

from __future__ import annotations

import ctypes
import gc
import importlib
import re
import weakref
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from cuda.bindings import driver
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import LaunchError, NotSupported
from assay.faults import poisons_process, word_of
from assay.types import Compiled
from assay.ways import cuda_module
from assay.ways.cuda_module import Module
from assay.ways.launch import Recorder

softmax = importlib.import_module("assay.ops.softmax")
PARAMETERS = [["u64", 0], ["u32", 0], ["f32", 0]]
OK, NEW_THREAD = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_INVALID_CONTEXT


@dataclass
class Gpu:
    """What the driver was asked, and what it says next."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    says: list[Any] = field(default_factory=list)
    current: int = 0
    woken: int = 0
    cluster: int = 0
    """Blocks of a cluster, as the kernel was compiled."""
    allowed: list[tuple[Any, int]] = field(default_factory=list)

    def attribute(self, name: Any, handle: Any, device: Any) -> tuple[Any, int]:
        names = driver.CUfunction_attribute
        assert name == names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        return OK, self.cluster

    def allow(self, name: Any, value: int, handle: Any, device: Any) -> tuple[Any]:
        if self.says:
            return (self.says.pop(),)
        self.allowed.append((name, value))
        return (OK,)

    def launch(self, handle: Any, *rest: Any) -> tuple[Any]:
        if self.says:
            return (self.says.pop(),)
        *geometry, stream, table, _ = rest
        kinds = (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_float)
        places = (ctypes.c_void_p * len(kinds)).from_address(table)
        values = tuple(kind.from_address(at).value for kind, at in zip(kinds, places))
        self.calls.append((int(handle), tuple(geometry), stream, values))
        return (OK,)

    def wake(self) -> None:
        self.woken += 1


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    monkeypatch.setattr(driver, "cuLaunchKernel", made.launch)
    monkeypatch.setattr(driver, "cuKernelGetAttribute", made.attribute)
    monkeypatch.setattr(driver, "cuKernelSetAttribute", made.allow)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: made.current, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda i: 70 + i, raising=False)
    monkeypatch.setattr(Module, "_load", lambda self, built: None)
    return made


@pytest.fixture
def k(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> Module:
    made = Module(
        SimpleNamespace(facts={}), "cuda:0", "sm_90", lambda name: pytest.fail(f"no kernel {name}")
    )  # type: ignore[arg-type]
    made._device = SimpleNamespace(device_id=0, set_current=gpu.wake)
    made._kernels["k"] = (
        SimpleNamespace(handle=5000),
        PARAMETERS,
        Compiled(name="k", arch="sm_90"),
    )
    monkeypatch.setattr(cuda_module, "handle_of", lambda kernel: kernel.handle)
    return made


class Pointer(SimpleNamespace):
    """Stands for a tensor of the GPU."""

    device = SimpleNamespace(type="cuda")

    def data_ptr(self) -> int:
        return 0x7F00_0000_1000


def test_geometry_stream_and_arguments_reach_the_driver(gpu: Gpu, k: Module) -> None:
    for n in (7, 8):
        k["k"](grid=[2, 3], block=64, shared=16)(Pointer(), n, 1.5)
    geometry = (2, 3, 1, 64, 1, 1, 16)
    assert gpu.calls == [(5000, geometry, 70, (0x7F00_0000_1000, n, 1.5)) for n in (7, 8)]
    assert len(k._configured) == 1, "worked out once"


def test_what_cannot_be_launched_is_refused_at_every_call(gpu: Gpu, k: Module) -> None:
    for _ in range(2):
        with pytest.raises(LaunchError, match="2,000 threads a block"):
            k["k"](grid=1, block=2000)
        for grid in (1.0, (1.0,), np.array([1]), (np.int64(1),), [[1]]):  # equal to 1, or near it
            with pytest.raises(LaunchError, match="give one to three ints"):
                k["k"](grid=grid, block=32)
        k["k"](grid=1, block=32)(Pointer(), 1, 1.0)  # equal to the one before, and an int
        with pytest.raises(LaunchError, match="takes 3 arguments, and got 1"):
            k["k"](grid=1, block=32)(Pointer())
    assert len(gpu.calls) == 2


def test_a_thread_new_to_cuda_is_given_the_device_once(gpu: Gpu, k: Module) -> None:
    gpu.says = [NEW_THREAD]
    k["k"](grid=1, block=32)(Pointer(), 1, 1.0)
    assert (gpu.woken, len(gpu.calls)) == (1, 1)
    gpu.says = [NEW_THREAD, NEW_THREAD]
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_CONTEXT"):
        k["k"](grid=1, block=32)(Pointer(), 1, 1.0)


def test_another_current_device_is_left_for_the_launch(
    gpu: Gpu, k: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = []

    class Device:
        def __init__(self, index: int):
            self.index = index

        def __enter__(self) -> None:
            entered.append(self.index)

        def __exit__(self, *_: object) -> None:
            entered.append("left")

    monkeypatch.setattr(torch.cuda, "device", Device)
    gpu.current = 1
    k["k"](grid=1, block=32)(Pointer(), 1, 1.0)
    assert entered == [0, "left"]
    assert gpu.calls[0][2] == 70


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", "crashed"),  # of the kernel in front of it
        ("CUDA_ERROR_LAUNCH_FAILED", "crashed"),
        ("CUDA_ERROR_ASSERT", "crashed"),
        ("CUDA_ERROR_UNKNOWN", "crashed"),
        ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
        ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "did not launch"),
        ("CUDA_ERROR_INVALID_VALUE", "did not launch"),
    ],
)
def test_what_the_driver_says_is_the_verdict(gpu: Gpu, k: Module, status: str, word: str) -> None:
    gpu.says = [getattr(driver.CUresult, status)]
    with pytest.raises(LaunchError) as raised:
        k["k"](grid=1, block=32)(Pointer(), 1, 1.0)
    assert word_of(raised.value)[0] == word
    assert poisons_process(word)


def test_clusters_of_more_blocks_than_every_gpu_has_room_for_are_asked_for_once(
    gpu: Gpu, k: Module
) -> None:
    gpu.cluster = 16
    for n in (7, 8):
        k["k"](grid=32, block=64)(Pointer(), n, 1.5)
        k["k"](grid=16, block=64)(Pointer(), n, 1.5)
    wide = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    assert gpu.allowed == [(wide, 1)]


def test_clusters_of_eight_blocks_need_no_leave(gpu: Gpu, k: Module) -> None:
    gpu.cluster = 8
    k["k"](grid=32, block=64)(Pointer(), 7, 1.5)
    assert gpu.allowed == []


def test_large_clusters_that_are_refused_are_told(gpu: Gpu, k: Module) -> None:
    gpu.cluster, gpu.says = 16, [driver.CUresult.CUDA_ERROR_INVALID_VALUE]
    with pytest.raises(LaunchError, match="clusters of 16 blocks are refused: CUDA_ERROR_INVALID"):
        k["k"](grid=32, block=64)(Pointer(), 7, 1.5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@given(n=st.integers(softmax.LEAST_ROW + 1, 16 * 256 * 96))
@settings(max_examples=60, deadline=None, database=None)
def test_the_pieces_of_a_cluster_hold_the_row(dtype: torch.dtype, n: int) -> None:
    assert softmax.clusterable(n, str(dtype).removeprefix("torch.")) is True
    x, recorder = torch.empty(3, n, dtype=dtype, device="meta"), Recorder("sm_90")
    softmax.by_cuda_cluster(recorder, torch.empty_like(x), x)
    (launch,) = recorder.launches
    found = re.search(r", (\d+), (\d+), (\d+), (\d+), (\w+)>$", launch.name)
    assert found is not None
    threads, vectors, cluster, together, whole = found.groups()
    width, each = 16 // dtype.itemsize, launch.args[-1]
    assert launch.grid == (3 * int(cluster), 1, 1)
    assert int(cluster) in softmax.CLUSTERS
    assert each % width == 0, "whole vectors, so that the next piece begins at one"
    assert int(cluster) * each >= n
    assert int(threads) * int(vectors) * width >= each
    assert (whole == "true") == (n % width == 0)
    assert int(threads) // 32 * int(cluster) <= 32 * 4, "sums that a lane reads"
    assert int(together) * int(threads) * int(vectors) * width <= 50_000, "registers of all blocks"


@pytest.mark.parametrize(("arch", "fits"), [("sm_90", True), ("sm_80", True), ("sm_120", False)])
def test_a_cluster_that_a_gpu_has_no_room_for_is_refused_by_name(arch: str, fits: bool) -> None:
    x, recorder = torch.empty(2, 300_000, device="meta"), Recorder(arch)
    if not fits:
        with pytest.raises(NotSupported, match=r"a cluster on sm_120 has room for 8: use cuda/"):
            softmax.by_cuda_cluster(recorder, torch.empty_like(x), x)
        x = torch.empty(2, 100_000, device="meta")
    softmax.by_cuda_cluster(recorder, torch.empty_like(x), x)
    assert recorder.launches[0].grid == (2 * (16 if fits else 8), 1, 1)


def test_what_launches_goes_at_once_with_the_last_who_holds_it(gpu: Gpu, k: Module) -> None:
    """No cycle keeps loaded kernels until the collector comes by."""
    other = Module(SimpleNamespace(facts={}), "cuda:0", "sm_90", lambda name: None)  # type: ignore[arg-type, return-value]
    other._device, other._kernels = k._device, dict(k._kernels)
    other["k"](grid=1, block=32)(Pointer(), 1, 1.0)
    left = weakref.ref(other)
    gc.disable()
    try:
        del other
        assert left() is None
    finally:
        gc.enable()
