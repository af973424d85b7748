"""Calls without the dispatcher: ordinary ones alone, the same results; replayed launches."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from replaying import replaying
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import assay
from assay.errors import LaunchError
from assay.inputs import inputs_of
from assay.operators import native, replay
from assay.operators.direct import ELSEWHERE
from assay.operators.ordinary import PLAIN
from assay.operators.picking import usual
from assay.ops.softmax import by_cuda_held, by_cuda_joined
from assay.ops.square import square


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


PATHS = ["anew", "python", pytest.param("native", marks=pytest.mark.full)]
"""How ordinary calls go: launched anew (eager, on the CPU), replayed by Python, replayed by C++."""


@functools.cache
def replayed(name: str) -> Any:
    """An operator of the library whose launches replaying.py makes ones to replay."""
    return assay.torch_op(getattr(assay.ops, name).op, "eager")


@pytest.fixture(params=PATHS)
def served(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Any]]:
    """An operator by its name, all of whose ordinary calls go this way."""
    if request.param == "anew":
        yield functools.partial(getattr, assay.ops)
        return
    if request.param == "native":
        native.build()
    with replaying(request.param):
        yield replayed


def direct(f: Any, *args: Any) -> Any:
    """A call that is not the first of its form, and goes the way that it should."""
    made = f.direct(args)
    if made is ELSEWHERE:
        return made
    path = f.path(*args)
    assert path == "native" or path.startswith("by Python"), path
    assert (path == "native") == (f.direct.call is not f.direct.python), path
    return f.direct(args)


class Mine(torch.Tensor):
    """A subclass."""


class Sees(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Hears(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        seen.append(str(func))
        return func(*args, **(kwargs or {}))


seen: list[str] = []


@contextlib.contextmanager
def deterministic() -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "within",
    [
        lambda: torch.autocast("cpu", torch.bfloat16),
        Sees,
        Hears,
        lambda: FakeTensorMode(allow_non_fake_inputs=True),
        forward_ad.dual_level,
        torch.profiler.profile,
        deterministic,
        torch._C._AutoDispatchBelowAutograd,
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_watches_or_changes_calls_is_not_passed_by(
    within: Any, served: Callable[[str], Any]
) -> None:
    f, x = served("softmax"), normal(3, 4)
    assert direct(f, x) is not ELSEWHERE
    with within():
        assert f.direct((x,)) is ELSEWHERE
        made = f(x)
        assert f.path(x).startswith("through the dispatcher: something is switched on")
    assert direct(f, x) is not ELSEWHERE
    assert type(made).__name__ == "FakeTensor" or torch.equal(made, torch.softmax(x, -1))


def test_modes_see_the_operator(served: Callable[[str], Any]) -> None:
    f = served("softmax")
    direct(f, normal(3, 4))
    for mode in (Sees, Hears):
        seen.clear()
        with mode():
            f(normal(3, 4))
        assert any("assay" in name and "softmax" in name for name in seen)


@pytest.mark.parametrize(
    "x",
    [
        normal(3, 4).as_subclass(Mine),
        torch.empty(3, 4, device="meta"),
        normal(3, 4).to_sparse(),
        torch._neg_view(normal(3, 4)),
        normal(3, 4).to(torch.complex64).conj(),
        FakeTensorMode().from_tensor(normal(3, 4)),
        3.0,
        None,
    ],
    ids=lambda x: f"{type(x).__name__}",
)
def test_what_is_not_a_plain_tensor_is_not_passed_by(x: Any, served: Callable[[str], Any]) -> None:
    f = served("softmax")
    assert direct(f, normal(3, 4)) is not ELSEWHERE
    assert f.direct((x,)) is ELSEWHERE
    assert f.path(x).startswith("through the dispatcher: not all of its inputs")


def test_memory_that_means_its_negative_is_read_so(served: Callable[[str], Any]) -> None:
    f, x = served("softmax"), normal(3, 4)
    assert direct(f, x) is not ELSEWHERE
    assert torch.equal(f(torch._neg_view(x)), torch.softmax(-x, -1))


def test_a_dual_number_and_transforms_of_functions_go_through_the_dispatcher(
    served: Callable[[str], Any],
) -> None:
    f, x = served("softmax"), normal(3, 4)
    assert direct(f, x) is not ELSEWHERE
    asked: list[bool] = []

    def told(x: torch.Tensor) -> torch.Tensor:
        asked.append(f.direct((x,)) is ELSEWHERE)
        return torch.softmax(x, -1)

    torch.func.vmap(told)(x)
    torch.func.grad(lambda x: told(x).sum())(x)
    torch.func.jvp(told, (x,), (x,))
    torch.func.functionalize(told)(x)
    torch.fx.experimental.proxy_tensor.make_fx(told)(x)
    torch.jit.trace(told, x, check_trace=False)
    assert asked == [True] * len(asked)
    assert len(asked) >= 6


def test_compiled_it_is_one_operator_for_any_shape(served: Callable[[str], Any]) -> None:
    f = served("softmax")
    direct(f, normal(3, 4))
    graphs: list[str] = []

    def backend(module: Any, inputs: Any) -> Any:
        graphs.append(module.code)
        return module.forward

    torch._dynamo.reset()
    call = torch.compile(f, fullgraph=True, backend=backend, dynamic=True)
    for rows in (3, 5, 7):
        assert torch.allclose(call(normal(rows, 4)), normal(rows, 4).softmax(-1))
    assert len(graphs) == 1
    assert "torch.ops.assay.softmax" in graphs[0]


SETTINGS = (contextlib.nullcontext, torch.no_grad, torch.inference_mode)


@pytest.mark.parametrize("within", SETTINGS)
@pytest.mark.parametrize("wants", [False, True])
@pytest.mark.parametrize("kind", ["plain", "transposed", "parameter"])
def test_the_result_is_that_of_the_dispatcher(
    within: Any, wants: bool, kind: str, served: Callable[[str], Any]
) -> None:
    f = served("softmax")
    x = normal(4, 4).requires_grad_(wants)
    if kind == "parameter":
        x = torch.nn.Parameter(x.detach(), requires_grad=wants)
    with within():
        given = x.t() if kind == "transposed" else x
        made, other = direct(f, given) if kind != "transposed" else f(given), f.overload(given)
    assert made is not ELSEWHERE
    assert torch.equal(made, other)
    for flag in ("requires_grad", "is_leaf", "dtype", "_version"):
        if flag != "_version" or not made.is_inference():
            assert getattr(made, flag) == getattr(other, flag), flag
    assert made.stride() == other.stride()
    assert made.is_inference() == other.is_inference()
    assert made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_a_tensor_of_inference_mode_is_taken_outside_of_it(served: Callable[[str], Any]) -> None:
    f = served("softmax")
    with torch.inference_mode():
        x = normal(3, 4)
    made = direct(f, x)
    assert made is not ELSEWHERE
    assert not made.is_inference()


def test_gradients_hooks_and_saved_tensors_are_those_of_the_dispatcher(
    served: Callable[[str], Any],
) -> None:
    f, kept, hooked = served("square"), [], []
    x = normal(3, 4).requires_grad_()
    direct(f, x)
    x.register_hook(lambda g: hooked.append(g.clone()))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        y = f.direct((x,))
    (dx,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    assert torch.equal(dx, 2 * x)
    assert torch.equal(ddx, torch.full_like(x, 2.0))
    assert len(kept) == 1
    assert len(hooked) == 2
    y = f.direct((a := x.clone(),))
    a.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = f.direct((x,))
    y.mul_(3)  # an output that is changed afterwards: square saved x alone
    y[0].zero_()
    (dx,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(dx[1:], 6 * x[1:])
    assert not dx[0].any()


def test_a_gradient_of_a_gradient_is_refused_where_there_is_none(
    served: Callable[[str], Any],
) -> None:
    x = normal(3, 4).requires_grad_()
    direct(f := served("softmax"), x)
    (dx,) = torch.autograd.grad(f(x)[:, 0].sum(), x, create_graph=True)
    with pytest.raises(assay.NotSupported, match="softmax_grad: a gradient of "):
        dx.sum().backward()


def test_where_there_is_no_gradient_one_that_is_wanted_is_refused(
    served: Callable[[str], Any],
) -> None:
    made = assay.Op("only", lambda x: x + 1, lambda make, n: (make.normal(n),), cases=[dict(n=4)])
    f, x = assay.torch_op(made), normal(4)
    assert direct(f, x) is not ELSEWHERE
    x.requires_grad_()
    assert f.direct((x,)) is ELSEWHERE
    assert f.path(x) == "through the dispatcher: a gradient is wanted, and it has none"
    with pytest.raises(assay.NotSupported, match="only: a gradient of x is asked for"):
        f(x).sum().backward()
    with torch.no_grad():
        assert direct(f, x) is not ELSEWHERE


def test_scalars_are_taken_as_the_schema_has_them(served: Callable[[str], Any]) -> None:
    def op() -> Any:
        made = assay.Op(
            "signed",
            lambda x, c: torch.copysign(x, torch.full_like(x, c)),
            lambda make, n: (make.normal(n), 1.0),
            cases=[dict(n=4)],
        )
        return assay.torch_op(made)

    f, x = op(), normal(4)
    for _ in range(2):
        assert torch.equal(f(x, 0.0), x.abs())
        assert torch.equal(f(x, -0.0), -x.abs())
    assert direct(f, x, 0.0) is not ELSEWHERE
    assert f.direct((x, 1)) is ELSEWHERE  # the schema makes a float of it
    assert torch.equal(f(x, 1), x.abs())
    assert f.direct((x,)) is ELSEWHERE
    with pytest.raises(RuntimeError):
        f(x)


def test_key_sets_are_those_of_tensors() -> None:
    assert torch._C._dispatch_keys(torch.empty(1)).raw_repr() in PLAIN
    with torch.inference_mode():
        assert torch._C._dispatch_keys(torch.empty(1)).raw_repr() in PLAIN


# ---- replayed launches ------------------------------------------------------------------------


class Driver:
    """What a launch hands to the driver, read as a kernel would; refuses as told."""

    calls: ClassVar[list[Any]] = []
    says: ClassVar[list[str]] = []
    sizes: ClassVar[list[int]] = [8, 8, 4, 4]

    @classmethod
    def launch(cls, handle: Any, *rest: Any) -> tuple[Any]:
        *geometry, stream, address, _ = rest
        table = (ctypes.c_uint64 * len(cls.sizes)).from_address(address)
        values = [
            int.from_bytes(ctypes.string_at(a, s), "little") for a, s in zip(table, cls.sizes)
        ]
        cls.calls.append((int(handle), geometry, stream, values))
        name = cls.says.pop() if cls.says else ""
        return (SimpleNamespace(name=name) if name else Fine(),)


class Fine:
    name = "CUDA_SUCCESS"

    def __bool__(self) -> bool:
        return False


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> type[Driver]:
    bindings = pytest.importorskip("cuda.bindings.driver")
    monkeypatch.setattr(bindings, "cuLaunchKernel", Driver.launch)
    monkeypatch.setattr(replay, "arguments", _on_the_cpu)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda i: 77, raising=False)
    guards = torch._C._dynamo.guards
    monkeypatch.setattr(guards, "_empty_strided_cuda", guards._empty_strided_cpu)
    Driver.calls.clear()
    Driver.says.clear()
    return Driver


def _on_the_cpu(name: str, args: Any, parameters: Any, device: str) -> Any:
    assert device == "cpu"
    from assay.ways.launch import arguments

    return arguments(name, args, parameters, device)


PARAMETERS = [["u64", 0], ["u64", 0], ["u32", 0], ["u32", 0]]


def test_a_recorded_launch_is_replayed_with_other_pointers(driver: type[Driver]) -> None:
    x, y = normal(64, 1000), torch.empty(64, 1000)
    (launch,), why = replay.recorded(
        lambda k, out, given: by_cuda_held(k, *out, *given), [y], [x], "sm_90"
    )
    assert why == ""
    woken: list[bool] = []
    packed = replay.Packed(launch, [y, x], (123, PARAMETERS, lambda: woken.append(True)))
    run = replay.Replay([packed], [((64, 1000), (1000, 1), torch.float32)], [0], 0)
    for seed in (1, 2):
        other = normal(64, 1000, seed=seed)
        (made,) = run([other])
        handle, geometry, stream, values = driver.calls[-1]
        assert (handle, stream) == (123, 77)
        assert geometry == [*launch.grid, *launch.block, launch.shared]
        assert values == [made.data_ptr(), other.data_ptr(), 64, 1000]
    assert made.shape == (64, 1000)
    assert not woken
    driver.says[:] = ["CUDA_ERROR_INVALID_CONTEXT"]
    assert run([x]) is not None  # in a thread that has no context yet: once more
    assert woken == [True]
    driver.says[:] = ["CUDA_ERROR_INVALID_VALUE"]
    with pytest.raises(LaunchError, match="refuses to launch it: CUDA_ERROR_INVALID_VALUE"):
        run([x])


def test_another_current_device_is_not_launched_on(
    driver: type[Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 1, raising=False)
    assert replay.Replay([], [], [], 0)([normal(3)]) is None


def test_launches_within_one_another_do_not_share_a_buffer(driver: type[Driver]) -> None:
    """A thread that comes between the packing and the launch of another one."""
    x, y, z = normal(64, 1000), torch.empty(64, 1000), normal(64, 1000, seed=1)
    (launch,), _ = replay.recorded(
        lambda k, out, given: by_cuda_held(k, *out, *given), [y], [x], "sm_90"
    )
    packed = replay.Packed(launch, [y, x], (123, PARAMETERS, lambda: None))
    plain = packed._launch_kernel

    def between(*args: Any) -> Any:
        packed._launch_kernel = plain
        packed([y.data_ptr(), z.data_ptr()], 5)
        return plain(*args)

    packed._launch_kernel = between
    packed([y.data_ptr(), x.data_ptr()], 4)
    assert [call[3][1] for call in driver.calls] == [z.data_ptr(), x.data_ptr()]
    assert len(packed._free) == 2


COUNTS = iter(range(100))
TABLE = torch.zeros(4)


def launches(k: Any, *args: Any, grid: int = 1) -> None:
    k["kernel"](grid=grid, block=32)(*args)


@pytest.mark.parametrize(
    ("launcher", "why"),
    [
        (lambda k, y, x: launches(k, y, x[0]), "__getitem__"),
        (lambda k, y, x: launches(k, y, x.view(-1)), ".view"),
        (lambda k, y, x: launches(k, y, x, grid=int(x.data_ptr() % 7) + 1), "data_ptr"),
        (lambda k, y, x: launches(k, y, torch.empty(4)), "empty"),
        (lambda k, y, x: launches(k, y, x, grid=int(x.sum()) ** 2 + 1), "sum"),
        (lambda k, y, x: (y.zero_(), launches(k, y, x)), "zero_"),
        (lambda k, y, x: launches(k, y, x, grid=1 + x.storage_offset()), "storage_offset"),
        (lambda k, y, x: launches(k, y, TABLE), "a tensor of its own"),
        (lambda k, y, x: launches(k, y, x, next(COUNTS)), "something else the second time"),
        (lambda k, y, x: launches(k, y, x, grid=1 + next(COUNTS)), "something else"),
        (lambda k, y, x: None, "it launches nothing"),
        (by_cuda_joined, "empty"),
    ],
)
def test_what_may_differ_from_call_to_call_is_not_replayed(launcher: Any, why: str) -> None:
    x = normal(2, 10_000)
    found, said = replay.recorded(
        lambda k, out, given: launcher(k, *out, *given), [torch.empty_like(x)], [x], "sm_90"
    )
    assert found == []
    assert why in said


def test_what_the_form_says_may_be_asked() -> None:
    def launcher(k: Any, y: Any, x: Any) -> None:
        size = x.numel() + x.shape[0] + len(x) + x.size(1) + x.stride(0) + x.dim() + x.ndim
        launches(k, y, x, size * x.element_size(), k.type(x), x.dtype, x.device, x.is_cuda)

    x = normal(2, 3)
    found, why = replay.recorded(
        lambda k, out, given: launcher(k, *out, *given), [torch.empty_like(x)], [x], "sm_90"
    )
    assert (len(found), why) == (1, "")


def test_a_launcher_that_is_recorded_knows_the_card() -> None:
    """Else one that has another kernel for a newer card would be replayed as for an old one."""

    def launcher(k: Any, y: Any, x: Any) -> None:
        k[f"made_for_{k.arch}"](grid=1, block=32)(y, x)

    x = normal(2, 3)
    for arch in ("sm_75", "sm_90"):
        (launch,), why = replay.recorded(
            lambda k, out, given: launcher(k, *out, *given), [torch.empty_like(x)], [x], arch
        )
        assert (launch.name, why) == (f"made_for_{arch}", "")


@pytest.mark.gpu
def test_on_a_gpu_replays_what_was_made_for_the_card() -> None:
    """Products of 16-bit numbers: tensor cores have them from sm_80 on, and tiles below."""
    p, q = (normal(2, 16, 16).bfloat16().cuda() for _ in range(2))
    served = assay.ops.bmm
    served(p, q)
    if "cuda/tensor" not in served.serves(p, q):
        pytest.skip(f"tuned otherwise: {served.serves(p, q)}")
    assert served.runner.anew([p, q]) == ""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        served(p, q)
        torch.cuda.synchronize()
    names = [event.key for event in seen.key_averages()]
    wanted = "bmm_tensor" if torch.cuda.get_device_capability() >= (8, 0) else "bmm_tiled"
    assert any(wanted in name for name in names), names


@pytest.mark.gpu
def test_on_a_gpu_plain_calls_are_direct_and_replayed() -> None:
    f = assay.torch_op(square, "cuda/naive", backward="triton")
    x = normal(64, 256).cuda()
    for seed in (0, 1):
        given = normal(64, 256, seed=seed).cuda()
        made = f.direct((given,))
        assert made is not ELSEWHERE
        assert torch.equal(made, given * given)
    assert f.runner.anew([x]) == ""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        made = f(x)
    side.synchronize()
    assert torch.equal(made, x * x)
    for name in ("softmax", "gelu_tanh"):
        served = getattr(assay.ops, name)
        served(x)
        assert served.runner.anew([x]) == "" or "cuda" not in served.serves(x)


@pytest.mark.parametrize("name", ["softmax", "square", "gelu_tanh", "layernorm", "rmsnorm"])
def test_what_is_measured_of_calls_is_replayed_on_a_gpu(name: str) -> None:
    """The usual CUDA variant of each operator of benchmarks/host.py, recorded without a GPU."""
    op = getattr(assay.ops, name).op
    variant, knobs = usual(op, "cuda")
    case = next(c for c in op.cases if c.values["dtype"] == "float32")
    given = list(inputs_of(op, case, 7))
    made = op.reference(*given)
    outputs = list(made) if isinstance(made, tuple) else [made]
    assert variant.way == "cuda"
    found, why = replay.recorded(
        lambda k, out, given: variant.function(k, *out, *given, **knobs), outputs, given, "sm_90"
    )
    assert (len(found), why) == (1, "")
