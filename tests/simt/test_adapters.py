"""What Triton, Numba and Inductor launch reaches a `Run` as PTX and arguments, without a GPU.

Most of it is seen with a `Run` that only notes what it is given; the rest goes through the engine.
"""

from __future__ import annotations

import enum
import inspect
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from assay.errors import NotRun, NotSupported
from assay.simt import Watch
from assay.simt.adapters import Compiled, capability, parameters, size

pytest.importorskip("triton")
pytest.importorskip("numba_cuda")

import triton
import triton.language as tl
from numba import cuda, float32
from triton.backends import backends
from triton.runtime.autotuner import Autotuner
from triton.tools.tensor_descriptor import TensorDescriptor

from assay.simt.adapters import inductor
from assay.simt.adapters import numba as numba_adapter
from assay.simt.adapters import triton as triton_adapter

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::Warning")]


class Noted:
    """A `Run` that keeps what it is given and runs nothing."""

    def __init__(self) -> None:
        self.launches: list[tuple[Compiled, Any, Any, list[Any], int]] = []

    def __call__(self, *launch: Any) -> None:
        self.launches.append(launch)

    @property
    def compiled(self) -> Compiled:
        return self.launches[-1][0]

    @property
    def grid(self) -> Any:
        return self.launches[-1][1]

    @property
    def args(self) -> list[Any]:
        """Of the last launch, tensors and arrays by their shape."""
        return [tuple(a.shape) if hasattr(a, "shape") else a for a in self.launches[-1][3]]


@pytest.fixture
def noted() -> Noted:
    return Noted()


def line_of(function: Any, text: str) -> int:
    """The line of the file where a function has this text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def fail(*_: Any) -> None:
    raise ZeroDivisionError


# Triton


@triton.jit
def scale(x, y, n, factor, flag, nothing, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    if nothing is not None:
        v += 1
    if flag:
        v = v * factor
    tl.store(y + i, v, mask=i < n)


@triton.jit
def unmasked(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v)


@triton.jit
def described(source, factors, B: tl.constexpr):
    at = tl.program_id(0) * B
    source.store([at], source.load([at]) * factors[1])


@triton.jit
def halves(y, a: tl.float16, b: tl.bfloat16, c: tl.float64):
    tl.store(y, a.to(tl.float32) + b.to(tl.float32) + c.to(tl.float32))


@triton.jit
def row_sums(x, y, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.program_id(0)
    tl.store(y + row, tl.sum(tl.load(x + row * n + i, mask=i < n, other=0.0)))


def configs(*blocks: int, **more: Any) -> list[Any]:
    return [triton.Config({"B": block}, num_warps=block // 32, **more) for block in blocks]


def add_kernel() -> Any:
    @triton.jit
    def add(x, y, n, B: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(y + i, tl.load(y + i, mask=i < n) + tl.load(x + i, mask=i < n), mask=i < n)

    return add


def blocks_of(n: int) -> Callable[[dict[str, Any]], tuple[int]]:
    return lambda meta: (triton.cdiv(n, meta["B"]),)


def test_triton_passes_what_the_entry_takes(noted: Noted) -> None:
    x, y = torch.ones(1000), torch.empty(1000)
    with triton_adapter.shim(noted):
        scale[blocks_of(1000)](x, y, -1000, 2.5, True, None, B=256, num_warps=8)
    compiled = noted.compiled
    assert ".target sm_80" in compiled.ptx
    assert (noted.grid, noted.launches[0][2]) == ((4, 1, 1), (256, 1, 1))
    assert noted.args == [(1000,), (1000,), 2**32 - 1000, 2.5, 1, None, None]
    assert noted.launches[0][3][0].data_ptr() == x.data_ptr()
    assert len(parameters(compiled.ptx, compiled.name)) == len(noted.args)
    assert dict(compiled.settings) == {"B": 256, "num_warps": 8, "num_stages": 3}
    assert (compiled.name, compiled.way, compiled.cooperative) == ("scale", "triton", False)
    assert compiled.file == __file__
    assert compiled.line == line_of(scale.fn, "@triton.jit")
    assert f'"{__file__}"' in compiled.ptx


def test_triton_drops_what_is_constant_and_launches_no_empty_grid(noted: Noted) -> None:
    x = torch.ones(64)
    with triton_adapter.shim(noted):
        unmasked[2, 3, 4](x, x, 1, B=32)
        unmasked[(0,)](x, x, 1, B=32)
    assert (len(noted.launches), noted.grid) == (1, (2, 3, 4))
    assert noted.args == [(64,), (64,), None, None], "n = 1 is a constant to Triton"
    assert ("n", 1) in noted.compiled.settings


def test_triton_packs_sixteen_bit_numbers_as_they_are_in_memory(noted: Noted) -> None:
    with triton_adapter.shim(noted):
        halves[(1,)](torch.empty(1), 1.5, 1.00390625, 0.1)
    assert noted.args[1:4] == [b"\x00\x3e", b"\x80\x3f", 0.1], "bfloat16 rounds to nearest even"


def test_triton_keeps_alignment_and_reinterpreted_types(noted: Noted) -> None:
    x, y = torch.ones(65), torch.zeros(64, dtype=torch.int8)
    with triton_adapter.shim(noted):
        row_sums[(1,)](x[:64], x, 64, B=64, num_warps=1)
        row_sums[(1,)](x[1:], x, 64, B=64, num_warps=1)
        unmasked[(1,)](triton.reinterpret(y, tl.uint8), y, 64, B=64)
    aligned, shifted = (launch[0].ptx for launch in noted.launches[:2])
    assert "v2.b32" in aligned
    assert "v2.b32" not in shifted
    assert noted.launches[2][3][0].data_ptr() == y.data_ptr()


def test_triton_passes_descriptors_and_tuples_as_on_a_card_without_tma(noted: Noted) -> None:
    x = torch.ones(64)
    source = TensorDescriptor.from_tensor(x, [16])
    with triton_adapter.shim(noted):
        described[(4,)](source, (x, -2), B=16)
    options = 2 if hasattr(source, "round_f32_to_tf32") else 1
    assert noted.args == [(64,), 64, 1, *[0] * options, 64, 1, (64,), 2**32 - 2, None, None]
    with triton_adapter.shim(noted, "sm_90"), pytest.raises(NotRun, match="TMA tensor map"):
        described[(4,)](source, (x, -2), B=16)


def test_triton_compiles_for_another_card(noted: Noted) -> None:
    x = torch.ones(64)
    with triton_adapter.shim(noted, "sm_90"):
        unmasked[(1,)](x, x, 64, B=64)
        sizes = triton.runtime.driver.active.utils.get_device_properties(0)
    assert ".target sm_90a" in noted.compiled.ptx
    assert (sizes["multiprocessor_count"], sizes["max_shared_mem"]) == (132, 232_448)
    with pytest.raises(NotRun, match="sm_80, sm_86"):
        triton_adapter.install(noted, "sm_20")


@pytest.mark.parametrize("value", [None, 7, np.ones(3)], ids=["none", "number", "array"])
def test_triton_refuses_a_pointer_without_ends(noted: Noted, value: Any) -> None:
    with triton_adapter.shim(noted), pytest.raises((NotRun, triton.CompilationError, TypeError)):
        unmasked[(1,)](value, torch.ones(3), 3, B=32)
    assert not noted.launches


def test_triton_refuses_a_pointer_whose_size_is_not_known(noted: Noted) -> None:
    class Borrowed:
        dtype = torch.float32

        def data_ptr(self) -> int:
            return 4096

    with triton_adapter.shim(noted), pytest.raises(NotRun, match="a Borrowed for a"):
        unmasked[(1,)](Borrowed(), torch.ones(3), 3, B=32)


@pytest.mark.parametrize(("tune", "blocks"), [("every", [64, 128, 64]), ("first", [64, 64])])
def test_triton_tunes_by_running(noted: Noted, tune: str, blocks: list[int]) -> None:
    with pytest.warns(DeprecationWarning, match="deprecated"):
        tuned = triton.autotune(configs(64, 128), key=["n"], warmup=1)(add_kernel())
    x = torch.ones(1000)
    with triton_adapter.shim(noted, tune=tune) as made:
        for _ in range(2):
            tuned[blocks_of(1000)](x, torch.zeros(1000), 1000)
    assert [launch[2][0] for launch in noted.launches] == [*blocks, 64]
    (decided,) = made.tuned
    assert (decided.kernel, len(decided.ran)) == ("add", 2 if tune == "every" else 1)
    assert "B: 64" in decided.chosen
    assert "nothing is timed" in str(decided)
    assert len(decided.refused) == 2 - len(decided.ran)
    assert not tuned.cache, "a GPU of this process would take the choice for its own"
    assert "do_bench" not in vars(tuned)


def test_triton_tunes_past_what_it_can_not_launch(noted: Noted) -> None:
    clusters = configs(64, num_ctas=2)
    tuned = triton.autotune([*clusters, *configs(128)], key=["n"])(add_kernel())
    only = triton.autotune([*clusters, *clusters], key=["n"])(add_kernel())
    x = torch.ones(100)
    with triton_adapter.shim(noted, "sm_90") as made:
        tuned[blocks_of(100)](x, x, 100)
        with pytest.raises(NotRun, match="num_ctas=2"):
            only[blocks_of(100)](x, x, 100)
    assert "B: 128" in made.tuned[0].chosen
    assert "num_ctas=2: clusters" in made.tuned[0].refused[0][1]
    assert len(noted.launches) == 2


def test_triton_tunes_with_hooks_and_heuristics() -> None:
    called: list[str] = []
    several = [
        *configs(64, pre_hook=lambda args: called.append("pre")),
        *configs(128),
    ]
    heuristic = triton.heuristics({"B": lambda args: triton.next_power_of_2(args["n"])})
    even = heuristic(add_kernel())
    tuned = triton.autotune(several, key=["n"], reset_to_zero=["y"], restore_value=["x"])(
        add_kernel()
    )
    seen: list[tuple[float, float]] = []

    def run(compiled: Compiled, grid: Any, block: Any, args: list[Any], shared: int) -> None:
        seen.append((args[0].sum().item(), args[1].sum().item()))
        args[0].fill_(7)
        args[1].add_(1)

    x, y = torch.ones(10), torch.full((10,), 5.0)
    with triton_adapter.shim(run):
        tuned[(1,)](x, y, 10)
        assert seen == [(10, 0), (10, 0), (10, 0)], "y is zero and x restored at each launch"
        assert called == ["pre", "pre"]
        even[(1,)](x, y, 10)
    assert len(seen) == 4


def test_triton_gives_what_a_warmed_kernel_is(noted: Noted) -> None:
    x = torch.ones(100)
    with triton_adapter.shim(noted):
        kernel = unmasked.warmup(x, x, 100, B=64, grid=(1,))
        kernel._init_handles()
        assert not noted.launches
        kernel[(2, 1, 1)](x, x, 100)
        assert 4 < kernel.n_regs < 255
        occupancy = 65536 // (kernel.n_regs * 32 * kernel.metadata.num_warps)
        assert occupancy == 65536 // (int(kernel.n_regs) * 128)
        assert {"ttgir", "ptx"} <= set(kernel.asm)
        assert kernel.n_spills == 0
    assert noted.grid == (2, 1, 1)
    assert kernel.asm["cubin"] == kernel.asm["ptx"].encode(), "no ptxas ran to make it"


def test_triton_calls_launch_hooks(noted: Noted) -> None:
    names: list[str] = []
    hooks = triton.knobs.runtime

    def enter(metadata: Any) -> None:
        names.append(metadata.get()["name"])

    def leave(metadata: Any) -> None:
        names.append(f"after {len(noted.launches)}")

    hooks.launch_enter_hook.add(enter)
    hooks.launch_exit_hook.add(leave)
    try:
        with triton_adapter.shim(noted):
            unmasked[(1,)](torch.ones(3), torch.ones(3), 3, B=32)
    finally:
        hooks.launch_enter_hook.remove(enter)
        hooks.launch_exit_hook.remove(leave)
    assert names == ["unmasked", "after 1"]


def test_triton_times_nothing(noted: Noted) -> None:
    with triton_adapter.shim(noted):
        driver = triton.runtime.driver.active
        assert driver.get_active_torch_device() == torch.device("cpu")
        assert driver.get_device_capability() == (8, 0)
        driver.get_device_interface().synchronize()
        with pytest.raises(NotRun, match="nothing is timed"):
            triton.testing.do_bench(lambda: None)
        with pytest.raises(NotRun, match="needs a GPU"):
            driver.utils.fill_tma_descriptor_tiled()


def test_triton_is_left_as_it_was(noted: Noted) -> None:
    def state() -> tuple[Any, ...]:
        return triton.runtime.driver._active, backends["nvidia"], Autotuner.run

    before = state()
    with triton_adapter.shim(noted):
        inside = state()
        with triton_adapter.shim(noted, "sm_90"):
            pass
        assert state() == inside
    with pytest.raises(ZeroDivisionError), triton_adapter.shim(noted):
        fail()
    assert state() == before
    assert not any(was is now for was, now in zip(before, inside))


def test_triton_runs_in_whichever_shim_is_in_force(noted: Noted) -> None:
    other, x = Noted(), torch.ones(64)
    with triton_adapter.shim(noted):
        unmasked[(1,)](x, x, 64, B=64)
        with triton_adapter.shim(other):
            unmasked[(2,)](x, x, 64, B=64)
        unmasked[(3,)](x, x, 64, B=64)
    assert [launch[1][0] for launch in noted.launches] == [1, 3]
    assert [launch[1][0] for launch in other.launches] == [2]


def test_triton_is_refused_in_its_interpreter(
    noted: Noted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(NotRun, match="TRITON_INTERPRET"):
        triton_adapter.install(noted)
    monkeypatch.delenv("TRITON_INTERPRET")
    with pytest.raises(ValueError, match="'every' or 'first'"):
        triton_adapter.install(noted, tune="best")


# Numba


class Mode(enum.IntEnum):
    SLOW = 3


@pytest.fixture
def numba(noted: Noted) -> Iterator[Noted]:
    with numba_adapter.shim(noted):
        yield noted


def fill() -> Any:
    @cuda.jit
    def fill(x, value):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = value

    return fill


def test_numba_passes_an_array_as_its_fields(numba: Noted) -> None:
    @cuda.jit
    def add(x, y, a, b, c, d, e):
        i = cuda.grid(1)
        if i < x.shape[0] and c:
            y[i, 0] = x[i] * a + b + d + e.real

    x, y = torch.ones(100), torch.zeros(100, 4)[:, ::2]
    add[(2, 3), 64, 0, 128](x, y, -3, 2.5, True, np.float16(1.5), 1 + 2j)
    assert numba.args == [
        *[None, None, 100, 4, (100,), 100, 4],
        *[None, None, 200, 4, (100, 2), 100, 2, 16, 8],
        *[2**64 - 3, 2.5, 1, b"\x00\x3e", 1.0, 2.0],
    ]
    compiled, grid, block, args, shared = numba.launches[0]
    assert (grid, block, shared) == ((2, 3, 1), (64, 1, 1), 128)
    assert args[4].data_ptr() == x.data_ptr()
    assert ".target sm_80" in compiled.ptx
    assert (compiled.way, compiled.file) == ("numba", __file__)
    assert compiled.line == line_of(test_numba_passes_an_array_as_its_fields, "@cuda.jit")
    assert f'"{__file__}"' in compiled.ptx, "line information is asked for"


def test_numba_passes_tuples_records_and_enums(noted: Noted) -> None:
    @cuda.jit
    def mixed(pair, record, mode):
        record.a = pair[0][0] + pair[1]
        if mode == Mode.SLOW:
            record.b = 1

    def run(compiled: Compiled, grid: Any, block: Any, args: list[Any], shared: int) -> None:
        noted(compiled, grid, block, args, shared)
        args[8]["a"] = 5

    records = np.zeros(2, np.dtype([("a", np.int32), ("b", np.float32)]))
    with numba_adapter.shim(run):
        mixed[1, 1]((np.ones(3), 7), records[1], Mode.SLOW)
    assert noted.args == [None, None, 3, 8, (3,), 3, 8, 7, (), 3]
    assert records["a"].tolist() == [0, 5], "a record is written back"


def test_numba_takes_hints_device_arrays_and_extensions(noted: Noted) -> None:
    class Halved:
        def prepare_args(self, type_: Any, value: Any, stream: Any, retr: Any) -> Any:
            retr.append(lambda: done.append(True))
            return type_, value / 2 if isinstance(value, float) else value

    done: list[bool] = []

    @cuda.jit(extensions=[Halved()])
    def set_all(x, value):
        x[0] = value

    with numba_adapter.shim(noted):
        set_all[1, 1](cuda.InOut(np.ones(4)), 3.0)
        set_all[1, 1](cuda.to_device(torch.ones(5)), 3.0)
    assert noted.launches[0][3][-1] == 1.5
    assert noted.args[4] == (5,)
    assert len(done) == 4


def test_numba_compiles_by_types_once(numba: Noted) -> None:
    kernel = fill()
    for x in (np.zeros(3), np.zeros(9), np.zeros(3, np.int32)):
        kernel[1, 32](x, 1)
    first, again, other = (launch[0] for launch in numba.launches)
    assert first is again
    assert first is not other


def test_numba_takes_signatures(numba: Noted) -> None:
    @cuda.jit("void(float32[::1], int64)", fastmath=True)
    def one(x, n):
        x[cuda.grid(1)] = n

    @cuda.jit(["void(float32[::1], float32)", "void(float64[::1], float64)"])
    def two(x, n):
        x[cuda.grid(1)] = n

    one[1, 32](np.zeros(3, np.float32), 7)
    assert dict(numba.compiled.settings) == {"fastmath": True}
    assert one.inspect_asm(one.signatures[0]) == numba.compiled.ptx
    two[1, 32](np.zeros(3), 7)
    assert numba.args[-1] == 7.0
    assert parameters(numba.compiled.ptx, numba.compiled.name)[-1] == ("f64", 8)
    with pytest.raises(TypeError, match="No matching definition"):
        two[1, 32](np.zeros(3, complex), 7)
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        one[1, 32](np.zeros(3, np.float32))


def test_numba_compiles_device_functions_and_what_they_use(numba: Noted) -> None:
    table = np.arange(8, dtype=np.float32)

    @cuda.jit(device=True)
    def inner(v):
        return math.erf(v) + cuda.libdevice.rsqrtf(v)

    @cuda.jit("float32(float32)", device=True)
    def declared(v):
        return inner(v) * 2

    @cuda.jit
    def kernel(x):
        i = cuda.threadIdx.x
        shared = cuda.shared.array(0, float32)
        local = cuda.local.array(4, float32)
        local[i & 3] = cuda.const.array_like(table)[i & 7]
        shared[i] = local[1]
        cuda.syncwarp()
        v = cuda.shfl_down_sync(0xFFFFFFFF, declared(shared[i]), 1)
        cuda.atomic.add(x, 0, v)

    kernel[1, 32, 0, 128](np.zeros(3, np.float32))
    ptx = numba.compiled.ptx
    for form in ("shfl.sync.down", "atom.", "bar.warp.sync", ".const", ".local"):
        assert form in ptx, form
    assert not numba.compiled.cooperative


def test_numba_says_that_blocks_wait_for_one_another(numba: Noted) -> None:
    @cuda.jit
    def kernel(x):
        x[cuda.grid(1)] = 1
        cuda.cg.this_grid().sync()

    kernel[4, 32](np.zeros(128))
    assert numba.compiled.cooperative


def test_numba_shares_tasks_out(numba: Noted) -> None:
    kernel = fill()
    kernel.forall(1000)(np.zeros(1000), 1)
    kernel.forall(1000, 64, 0, 32)(np.zeros(1000), 1)
    kernel.forall(0)(np.zeros(1000), 1)
    kernel.specialize(np.zeros(1), 1).forall(5)(np.zeros(5), 1)
    shapes = [(grid[0], block[0], shared) for _, grid, block, _, shared in numba.launches]
    assert shapes == [(4, 256, 0), (16, 64, 32), (1, 256, 0)]
    with pytest.raises(ValueError, match="negative task count"):
        kernel.forall(-1)


def test_numba_works_around_a_launch_on_the_cpu(numba: Noted) -> None:
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    device = cuda.to_device(host)
    device[0, 0] = 9
    assert host[0, 0] == 0, "a copy"
    assert device.copy_to_host().tolist() == [[9, 1, 2], [3, 4, 5]]
    device.copy_to_device(torch.zeros(2, 3))
    into = np.ones((2, 3), np.float32)
    device.copy_to_host(into)
    assert not into.any()
    assert cuda.to_device(host, copy=False).base is not None
    assert cuda.device_array((2, 3), np.int8, order="F").flags.f_contiguous
    assert cuda.device_array_like(host).dtype == np.float32
    assert cuda.is_cuda_array(device)
    assert cuda.is_available()
    stream = cuda.stream()
    with stream.auto_synchronize(), cuda.pinned(host), cuda.defer_cleanup():
        fill()[1, 32, stream](device.reshape(6), 1)
    cuda.synchronize()
    cuda.event().record(stream)
    assert cuda.get_current_device().compute_capability == (8, 0)
    assert cuda.current_context().device.WARP_SIZE == 32


@pytest.mark.parametrize(
    ("what", "call"),
    [
        ("nothing is timed", lambda: cuda.event_elapsed_time(cuda.event(), cuda.event())),
        ("get_memory_info of a CUDA context", lambda: cuda.current_context().get_memory_info()),
        ("PCI_BUS_ID of a CUDA device", lambda: cuda.get_current_device().PCI_BUS_ID),
        ("strides of its own", lambda: cuda.device_array(3, strides=(8,))),
        ("links", lambda: cuda.jit(lambda x: None, link=["a.cu"])[1, 1](np.zeros(3))),
    ],
)
def test_numba_refuses(numba: Noted, what: str, call: Callable[[], Any]) -> None:
    with pytest.raises(NotRun, match=what):
        call()


def test_numba_refuses_a_dtype_that_its_arrays_lack(numba: Noted) -> None:
    with pytest.raises(NotSupported, match="bfloat16: Numba's arrays have no such type"):
        fill()[1, 1](torch.ones(3).bfloat16(), 1)


def test_numba_says_what_debugging_loses(numba: Noted) -> None:
    @cuda.jit(debug=True, opt=False)
    def divide(x):
        x[0] = 1 / x[1]

    with pytest.warns(UserWarning, match=r"divide is compiled .* exceptions"):
        divide[1, 1](np.zeros(3))
    with pytest.raises(ValueError, match="griddim and blockdim"):
        divide[1]


def test_numba_is_left_as_it_was(noted: Noted) -> None:
    names = ("to_device", "is_available", "synchronize", "current_context")
    kind = numba_adapter.dispatching.CUDADispatcher

    def state() -> list[Any]:
        methods = ("__getitem__", "configure", "forall", "compile", "specialize")
        return [*(getattr(cuda, n) for n in names), *(vars(kind)[m] for m in methods)]

    before, kernel = state(), fill()
    with numba_adapter.shim(noted, "sm_90"):
        kernel[1, 32](np.zeros(3), 1)
        inside = state()
    with pytest.raises(ZeroDivisionError), numba_adapter.shim(noted):
        fail()
    assert ".target sm_90" in noted.compiled.ptx
    assert state() == before
    assert not any(was is now for was, now in zip(before, inside))


@pytest.mark.full
def test_numba_is_refused_in_its_simulator() -> None:
    code = (
        "from assay.errors import NotRun\nfrom assay.simt.adapters import numba\n"
        "try: numba.install(print)\nexcept NotRun as error: print(error)\n"
    )
    env = {"NUMBA_ENABLE_CUDASIM": "1", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert "NUMBA_ENABLE_CUDASIM is set" in done.stdout, done.stderr


# Inductor


def normed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b))


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * y.t() + torch.arange(x.shape[1]) - 2.5


def pooled(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.max_pool2d(x, 3, 2, 1)


def normals(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=made) for shape in shapes]


def test_inductor_writes_what_it_would_for_a_card() -> None:
    (kernel,) = inductor.generated(softmax, normals((256, 1024)))
    assert kernel.name.startswith("triton_per_fused__softmax"), "persistent, as on CUDA"
    assert (kernel.grid, kernel.compiled.way) == ((256, 1, 1), "inductor")
    assert kernel.args == (*["float32[256, 1024]"] * 2, "256", "1024", "null", "null")
    assert "DeviceProperties(type='cuda', index=0, multi_processor_count=108" in kernel.source
    assert ".target sm_80" in kernel.ptx
    assert "heuristics for CUDA and sm_80" in kernel.note
    assert kernel.configs >= 1
    hopper = inductor.generated(softmax, normals((256, 1024)), "sm_90")[0]
    assert ".target sm_90a" in hopper.ptx
    assert "multi_processor_count=132" in hopper.source


def test_inductor_names_what_is_not_compiled_code(noted: Noted) -> None:
    def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ w) + 1

    done = inductor.run(layer, normals((64, 32), (32, 16)), noted)
    assert done.extern == ("mm",)
    assert len(done.kernels) == len(noted.launches) == 1
    assert tuple(done.outputs.shape) == (64, 16)
    assert "extern_kernels.mm" in done.program


def test_inductor_takes_modules_numbers_captured_tensors_and_any_outputs(noted: Noted) -> None:
    (captured,) = normals((5,))

    def function(x: torch.Tensor, factor: float) -> dict[str, Any]:
        return {"a": x[:, 1:] * factor, "b": [x[0] + captured, x.t()]}

    done = inductor.run(function, [*normals((4, 5)), 3.0], noted)
    assert tuple(done.outputs["a"].shape) == (4, 4)
    assert tuple(done.outputs["b"][1].shape) == (5, 4)
    given = [a for launch in noted.launches for a in launch[3] if isinstance(a, torch.Tensor)]
    assert any(a.data_ptr() == captured.data_ptr() for a in given)
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
    assert tuple(inductor.run(module, normals((2, 8)), noted).outputs.shape) == (2, 4)


@pytest.mark.full
def test_inductor_draws_random_numbers_in_its_own_kernels(noted: Noted) -> None:
    def dropped(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5, True)

    done = inductor.run(dropped, normals((1000,)), noted)
    assert len(done.kernels) == 1
    assert "rand" in done.kernels[0].source


def test_inductor_leaves_torch_as_it_was(noted: Noted) -> None:
    from torch._inductor import async_compile, codecache
    from torch._inductor import config as settings

    def state() -> list[Any]:
        return [
            torch.cuda.is_available,
            torch.cuda.get_device_properties,
            async_compile.AsyncCompile.triton,
            codecache.PyCodeCache.write.__func__,
            settings.fx_graph_cache,
            settings.compile_threads,
            triton.runtime.driver._active,
        ]

    before = state()
    inductor.run(chain, normals((8, 8), (8, 8)), noted)
    assert state() == before
    with pytest.raises(ZeroDivisionError):
        inductor.run(softmax, normals((8, 8)), fail)
    assert state() == before


# Through the engine


def test_a_triton_kernel_is_right_and_an_unmasked_store_is_named() -> None:
    watch, (x,) = Watch(), normals((1000,))
    y = torch.zeros(1000)
    with triton_adapter.shim(watch.run):
        unmasked[(2,)](x, y, 1000, B=512)
    assert torch.equal(x, y)
    (fault,) = watch.faults
    assert (fault.word, fault.file) == ("out of bounds", __file__)
    assert fault.line == line_of(unmasked.fn, "tl.store")
    assert (fault.block, fault.count) == ((1, 0, 0), 24 // 4)


def test_a_numba_kernel_is_right_and_an_unmasked_store_is_named() -> None:
    @cuda.jit
    def double(x, y):
        i = cuda.grid(1)
        y[i] = 2 * x[min(i, x.size - 1)]

    watch, (x,) = Watch(), normals((100,))
    y = torch.zeros(100)
    with numba_adapter.shim(watch.run):
        double[4, 32](x, y)
    assert torch.equal(2 * x, y)
    (fault,) = watch.faults
    assert (fault.word, fault.file) == ("out of bounds", __file__)
    here = test_a_numba_kernel_is_right_and_an_unmasked_store_is_named
    assert fault.line == line_of(here, "y[i] = 2")
    assert (fault.block, fault.thread, fault.count) == ((3, 0, 0), (4, 0, 0), 28)


FUNCTIONS: list[tuple[Callable[..., Any], list[tuple[int, ...]]]] = [
    (softmax, [(32, 300)]),
    (normed, [(16, 256), (256,), (256,)]),
    (chain, [(40, 40), (40, 40)]),
    (torch.sum, [(500, 500)]),
    (pooled, [(2, 3, 33, 33)]),
    (lambda x: x.add_(1), [(100,)]),
    (lambda x, w: torch.relu(torch.nn.functional.conv2d(x, w)), [(1, 2, 9, 9), (3, 2, 3, 3)]),
    (lambda x: (torch.cumsum(x, -1), x.max(), x.argmin(1)), [(6, 50)]),
]


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        pytest.param(*case, id=name, marks=() if name == "softmax" else (pytest.mark.full,))
        for name, case in zip(
            ("softmax", "normed", "chain", "sum", "pooled", "in place", "conv", "several"),
            FUNCTIONS,
        )
    ],
)
def test_what_inductor_writes_computes_the_function(
    function: Callable[..., Any], shapes: list[tuple[int, ...]]
) -> None:
    watch, given, kept = Watch(), normals(*shapes), normals(*shapes)
    done = inductor.run(function, given, watch.run)
    torch.testing.assert_close(done.outputs, function(*kept), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(given, kept)
    assert not watch.faults
    assert watch.arch == "sm_80"
    assert done.kernels


@pytest.mark.full
def test_a_tuned_triton_kernel_is_right() -> None:
    tuned = triton.autotune(configs(64, 128), key=["n"], reset_to_zero=["y"])(add_kernel())
    watch, (x,) = Watch(), normals((1000,))
    y = torch.full((1000,), 5.0)
    with triton_adapter.shim(watch.run):
        tuned[blocks_of(1000)](x, y, 1000)
    assert torch.equal(y, x), "each configuration began with zeros"
    assert not watch.faults


@pytest.mark.full
def test_a_triton_descriptor_is_followed() -> None:
    watch, (x,) = Watch(), normals((512,))
    source = TensorDescriptor.from_tensor(x.clone(), [128])
    with triton_adapter.shim(watch.run):
        described[(4,)](source, (x, -2), B=128)
    assert torch.equal(source.base, -2 * x)
    assert not watch.faults


@pytest.mark.full
@pytest.mark.parametrize("meet", [True, False])
def test_numba_blocks_meet_and_share(meet: bool) -> None:
    @cuda.jit
    def turned(x, y, z):
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        x[i] = i
        if meet:
            grid.sync()
        y[i] = x[x.size - 1 - i]
        if meet:
            grid.sync()
        z[i] = y[(i + 40) % x.size]

    watch = Watch()
    x, y, z = (np.zeros(128, np.int32) for _ in range(3))
    with numba_adapter.shim(watch.run):
        turned[4, 32](x, y, z)
    assert {fault.word for fault in watch.faults} == (set() if meet else {"race"})
    if meet:
        assert y.tolist() == list(range(127, -1, -1))
        assert z.tolist() == np.roll(y, -40).tolist()


@pytest.mark.full
def test_numba_strides_and_constants_are_followed() -> None:
    table = np.arange(8, dtype=np.float32)

    @cuda.jit
    def gather(x, y):
        i = cuda.threadIdx.x
        y[i, 1] = x[i] + cuda.const.array_like(table)[i]

    watch, x, y = Watch(), np.arange(8, dtype=np.float32)[::-1], np.zeros((8, 4), np.float32)
    with numba_adapter.shim(watch.run):
        gather[1, 8](x, y[:, ::2])
    assert y[:, 2].tolist() == [7] * 8
    assert not watch.faults


# What adapters share


def test_capabilities_sizes_and_parameters_are_read() -> None:
    assert [capability(a) for a in ("sm_80", "sm_90", "sm_90a")] == [80, 90, 90]
    assert [size(v) for v in (3, (3,), [1, 2], (1, 2, 3))] == [
        *[(3, 1, 1), (3, 1, 1)],
        *[(1, 2, 1), (1, 2, 3)],
    ]
    with pytest.raises(NotRun, match="4 dimensions"):
        size((1, 2, 3, 4))
    ptx = (
        ".visible .entry other()\n.visible .entry k(\n.param .u64 .ptr .global .align 16 k_0,\n"
        ".param .align 8 .b8 k_1[24],\n.param .f32 k_2,\n.param .u8 k_3\n)\n{"
    )
    assert parameters(ptx, "k") == [("u64", 8), ("b8", 24), ("f32", 4), ("u8", 1)]
    assert parameters(ptx, "other") == []
    with pytest.raises(NotRun, match="no entry"):
        parameters(ptx, "third")
