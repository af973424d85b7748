"""Calls of operators by C++: launches, look-up, gradients, threads, errors, and how it is built."""

from __future__ import annotations

import ctypes
import functools
import gc
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from replaying import HEAD, Standin, replaying
from torch.multiprocessing.reductions import StorageWeakRef

import assay
from assay import cache
from assay.errors import LaunchError
from assay.inputs import inputs_of
from assay.operators import native
from assay.operators.direct import ELSEWHERE
from assay.operators.native import building, table
from assay.ops.square import square
from assay.target import library


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@functools.cache
def replayed(name: str) -> Any:
    return assay.torch_op(getattr(assay.ops, name).op, "eager")


@pytest.fixture
def standin() -> Iterator[Standin]:
    native.build()
    with replaying("native") as made:
        yield made


def served(name: str, *inputs: Any) -> Any:
    """An operator that serves inputs of this form natively."""
    f = replayed(name)
    f(*inputs)
    assert f.path(*inputs) == "native"
    return f


# ---- built or not -------------------------------------------------------------------------------


def test_where_it_is_not_built_calls_go_by_python_and_say_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "_state", native._State())
    with replaying("native") as standin:
        f, x = assay.torch_op(square, "eager"), normal(3, 4)
        for _ in range(2):
            assert torch.equal(f(x), x * x)
        assert len(standin.calls) == 2
        assert f.path(x).startswith("by Python, replayed: it is not built")
        assert "native.build()" in native.reason()
        native.switch(False)
        f(x)
        assert "switched off" in f.path(x)
    assert not list(cache.entries())  # no call compiles anything


def test_without_a_compiler_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "_state", native._State())
    monkeypatch.setattr(building.cpp, "compiler", lambda: "no-such-compiler")
    assert "no-such-compiler is not on PATH" in native.reason()
    with pytest.raises(assay.AssayError, match="no-such-compiler is not on PATH"):
        native.build()


def test_what_does_not_compile_is_told_by_its_first_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "_state", native._State())
    source = tmp_path / "call.cpp"
    source.write_text("int broken(\n")
    monkeypatch.setattr(building, "SOURCE", source)
    with pytest.raises(assay.AssayError, match=r"native calls did not build: .*call\.cpp:"):
        native.build()
    assert "it is not built" in native.reason()


def test_what_is_missing_of_cuda_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_state", native._State())

    def missing(*args: Any) -> Any:
        raise OSError("libcuda.so.1: cannot open shared object file")

    with replaying("native"):
        monkeypatch.setattr(building, "load", lambda: (object(), ""))
        monkeypatch.setattr(table, "table", missing)
        f, x = assay.torch_op(square, "eager"), normal(3, 4)
        assert torch.equal(f(x), x * x)
        assert "what it calls is not here: libcuda.so.1" in f.path(x)


@pytest.mark.gallery
def test_an_operator_of_this_process_uses_it_once_it_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    native.build()  # else the look-up below would find no entry
    with replaying("native"):
        f, x = assay.torch_op(square, "eager"), normal(3, 4)
        monkeypatch.setattr(native._state, "module", None)
        monkeypatch.setattr(native._state, "reason", "not yet")
        f(x)
        assert f.path(x) == "by Python, replayed: not yet"
        assert native.build().cached
        f(x)
        assert f.path(x) == "native"


# ---- launches -----------------------------------------------------------------------------------


@pytest.mark.full
def test_a_launch_gets_its_geometry_and_the_current_stream(standin: Standin) -> None:
    x = normal(5, 6)
    f = served("square", x)
    for stream in (0, 5, (1 << 47) + 8):
        standin.stream = stream
        assert torch.equal(f(other := normal(5, 6, seed=stream % 97)), other * other)
        assert standin.calls[-1] == (HEAD, (7, 1, 1, 32, 1, 1, 16), stream)


@pytest.mark.full
def test_what_the_driver_refuses_is_raised_and_a_new_thread_is_woken(standin: Standin) -> None:
    f = served("square", x := normal(5, 6))
    standin.says[:] = [201]
    assert torch.equal(f(x), x * x)
    assert standin.woken == 1
    for wants in (False, True):
        standin.says[:] = [1]
        with pytest.raises(LaunchError, match=r"kernel: the driver .*: CUDA_ERROR_INVALID_VALUE"):
            f(x.clone().requires_grad_(wants))
    standin.says[:] = [201, 201]  # woken, and still no context
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_CONTEXT"):
        f(x)
    assert torch.equal(f(x), x * x)


@pytest.mark.full
def test_on_another_current_device_python_runs_it(standin: Standin) -> None:
    f = served("square", x := normal(5, 6))
    count = len(standin.calls)
    standin.device = 1
    assert torch.equal(f(x), x * x)
    assert f.path(x) == "by Python: the GPU of its inputs is not the current one"
    assert len(standin.calls) == count  # the kernel ran under a guard of the device instead


@pytest.mark.full
def test_every_form_has_its_own_plan(standin: Standin) -> None:
    f = replayed("square")
    forms = [normal(*s) for s in ((), (0,), (1,), (2, 3), (3, 2), (6,), (1, 6), (2, 3, 1))]
    forms += [normal(2, 3).half(), normal(2, 3).bfloat16(), torch.arange(6, dtype=torch.int32)]
    for _ in range(2):
        for x in forms:
            made = f(x)
            assert made.dtype == x.dtype
            assert torch.equal(made, x * x)
    assert all(f.path(x) == "native" for x in forms)
    wide = normal(4, 6)
    for x in (wide[:, ::2], wide.t(), normal(1).expand(3)):  # these are copied: not replayed
        for _ in range(2):
            assert torch.equal(f(x), x * x)
        assert "its inputs are copied" in f.path(x)
    assert torch.equal(f(wide[1:3]), wide[1:3] ** 2)  # an offset is no part of a form


@pytest.mark.full
def test_a_form_that_the_dispatcher_met_first_is_served_too(standin: Standin) -> None:
    f, x = assay.torch_op(square, "eager"), normal(3, 5)
    assert torch.equal(f.overload(torch._neg_view(x)), x * x)
    assert f.path(x) == "native"
    assert torch.equal(f(x), x * x)


@pytest.mark.full
def test_old_forms_make_room(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    from assay.operators import direct, running

    for module in (direct, running):
        monkeypatch.setattr(module, "MOST_KEPT", 3)
    f = assay.torch_op(square, "eager")
    for n in (*range(1, 7), 1, 6):
        x = normal(n)
        for _ in range(2):
            assert torch.equal(f(x), x * x)
            assert f.path(x) == "native"
    assert f.direct._table.way((normal(2),)) == "missed"


@pytest.mark.full
def test_a_plan_keeps_its_kernel_loaded(standin: Standin) -> None:
    """Its handle would be of nothing, once Python's own plan made room for others."""
    f, x = assay.torch_op(square, "eager"), normal(3, 5)
    f(x)
    (kernel,) = [weakref.ref(one) for one in f.runner._kernels.values()]
    f.runner._planned.clear()
    f.runner._kernels.clear()
    standin.kernels[:] = [lambda pointers: None]
    gc.collect()
    assert f.path(x) == "native"
    assert kernel() is not None


@pytest.mark.full
def test_numbers_are_part_of_a_form(standin: Standin) -> None:
    made = assay.Op(
        "numbers",
        lambda x, a, b, c: x * a + b - (1 if c else 0),
        lambda make, n: (make.normal(n), 1.5, 2, True),
        cases=[dict(n=4)],
    )
    f, x = assay.torch_op(made), normal(4)
    for _ in range(2):
        for a, b, c in ((1.5, 1, True), (1.5, 2, False), (1.5, 3, True), (float("inf"), 2, True)):
            assert torch.equal(f(x, a, b, c), made.reference(x, a, b, c))
            assert f.path(x, a, b, c) == "native"
    assert f.path(x, 1.5, True, True).startswith("through the dispatcher")
    for numbers in ((1.5, True, True), (1.5, 1, 1), (1, 1, True), (1.5, 1.0, True), (1.5, 1)):
        assert f.direct((x, *numbers)) is ELSEWHERE
    big = 1 << 40
    assert torch.equal(f(x, 1.5, big, True), made.reference(x, 1.5, big, True))


@pytest.mark.full
def test_an_operator_that_takes_text_stays_in_python(standin: Standin) -> None:
    made = assay.Op(
        "worded",
        lambda x, how: -x if how == "negated" else x + 0,
        lambda make, n: (make.normal(n), "negated"),
        cases=[dict(n=4)],
    )
    f, x = assay.torch_op(made), normal(4)
    for _ in range(2):
        assert torch.equal(f(x, "negated"), -x)
    assert f.path(x, "negated") == "by Python, replayed: native calls take no str"


@pytest.mark.full
def test_several_outputs_come_as_a_tuple(standin: Standin) -> None:
    made = assay.Op(
        "both",
        lambda x: (x + 1, x.long()),
        lambda make, n: (make.normal(n),),
        cases=[dict(n=4)],
    )
    grad = made.gradient(lambda dy: dy * 1, saves=(), wrt="x")
    f = assay.torch_op(made, gradient=grad)
    for _ in range(2):
        x = normal(4).requires_grad_()
        one, other = f(x)
        assert (one.requires_grad, other.requires_grad) == (True, False)
        assert torch.equal(other, x.long())
        one.sum().backward()
        assert torch.equal(x.grad, torch.ones(4))
    assert f.path(x) == "native"


@pytest.mark.full
def test_threads_share_nothing(standin: Standin) -> None:
    """Each launch lets the others run, between its packing and its reading."""
    f = served("square", normal(40))
    slow, wrong = standin.kernels[-1], []

    def kernel(pointers: Any) -> None:
        time.sleep(1e-4)
        slow(pointers)

    standin.kernels[-1] = kernel

    def work(seed: int) -> None:
        for i in range(30):
            x = normal(40 if i % 3 else 40 + seed, seed=100 * seed + i)
            if not torch.equal(f(x), x * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


@pytest.mark.full
def test_other_threads_run_while_the_driver_takes_its_time(
    standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full queue of launches waits. The C library's usleep stands for it: a handle's number is
    its first argument, and so 5 ms are what a launch takes."""
    wait = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
    _, *rest = table.addresses()
    monkeypatch.setattr(table, "addresses", lambda: (wait, *rest))
    f, x = assay.torch_op(square, "eager"), normal(4)
    f(x)
    assert f.path(x) == "native"
    threads = [threading.Thread(target=lambda: [f(x) for _ in range(20)]) for _ in range(6)]
    begun = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert 0.1 <= time.perf_counter() - begun < 0.4  # one after another: 0.6 s


# ---- gradients ----------------------------------------------------------------------------------


@pytest.mark.full
def test_a_graph_is_freed_kept_and_differentiated_as_torch_has_it(standin: Standin) -> None:
    f = served("square", x := normal(3, 4).requires_grad_())
    y = f(x)
    assert y.grad_fn.name() == "squareBackward"
    assert not y.is_leaf
    for _ in range(2):
        (dx,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
        assert torch.equal(dx, 2 * x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()
    z = f(f(f(x)))
    (first,) = torch.autograd.grad(z.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(first, 8 * x**7)
    torch.testing.assert_close(second, 56 * x**6)


@pytest.mark.full
def test_a_saved_output_has_its_graph_in_a_second_backward(standin: Standin) -> None:
    made = assay.Op("expo", lambda x: x.exp(), lambda make, n: (make.normal(n),), cases=[dict(n=4)])
    once = made.gradient(lambda dy, y: dy * y, saves="y", wrt="x")
    once.gradient(lambda g, dy, y: (g * y, g * dy), saves=("dy", "y"), wrt=("dy", "y"))
    f = assay.torch_op(made)
    for _ in range(2):
        x = normal(4).requires_grad_()
        y = f(x)
        (dx,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (ddx,) = torch.autograd.grad(dx.sum(), x, create_graph=True)
        torch.testing.assert_close(ddx, x.exp())
    assert f.path(x) == "native"


@pytest.mark.full
def test_compiled_autograd_is_refused_by_name(standin: Standin) -> None:
    from torch._dynamo import compiled_autograd

    f = served("square", x := normal(3, 4).requires_grad_())
    with (
        pytest.raises(NotImplementedError, match=r"squareBackward: .*native\.switch\(False\)"),
        compiled_autograd._enable(lambda module: module),
    ):
        f(x).sum().backward()


@pytest.mark.full
def test_a_gradient_that_saves_nothing_is_freed_too(standin: Standin) -> None:
    a, b = normal(5).requires_grad_(), normal(5)
    y = served("vecadd", a, b)(a, b)
    y.sum().backward()
    assert torch.equal(a.grad, torch.ones(5))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()


@pytest.mark.full
def test_only_inputs_that_need_a_gradient_get_one(standin: Standin) -> None:
    x, w, b = normal(4, 8), normal(8), normal(8)
    f = served("layernorm", x, w, b)
    for needs in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
        given = [t.clone().requires_grad_(i in needs) for i, t in enumerate((x, w, b))]
        other = [t.clone().requires_grad_(i in needs) for i, t in enumerate((x, w, b))]
        f(*given).square().sum().backward()
        torch.nn.functional.layer_norm(other[0], (8,), *other[1:]).square().sum().backward()
        for one, right in zip(given, other, strict=True):
            assert (one.grad is None) == (right.grad is None)
            if right.grad is not None:
                torch.testing.assert_close(one.grad, right.grad, rtol=1e-3, atol=1e-4)


@pytest.mark.full
def test_a_saved_output_or_input_that_changed_is_noticed(standin: Standin) -> None:
    for name in ("softmax", "square"):  # one saves its output, the other its input
        f = served(name, normal(3, 4))
        x = normal(3, 4).requires_grad_()
        y = f(given := x.clone())
        (y if name == "softmax" else given).detach().mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


@pytest.mark.full
def test_hooks_of_nodes_and_of_saved_tensors_are_called(standin: Standin) -> None:
    f = served("softmax", x := normal(3, 4).requires_grad_())
    packed: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or 7, lambda _: y0):
        y = f(x)
    y0 = y.detach()
    said: list[str] = []
    y.register_hook(lambda g: said.append("tensor"))
    y.grad_fn.register_prehook(lambda g: said.append("before"))
    y.grad_fn.register_hook(lambda i, o: said.append("after"))
    y[:, 0].sum().backward()
    assert len(packed) == 1
    assert said == ["tensor", "before", "after"]
    torch.testing.assert_close(x.grad, torch.autograd.grad(torch.softmax(x, -1)[:, 0].sum(), x)[0])


@pytest.mark.full
def test_what_is_saved_lives_as_long_as_the_graph(standin: Standin) -> None:
    f = served("square", normal(3, 4))
    leaf = normal(3, 4).requires_grad_()
    for drop in ("backward", "graph"):
        x = leaf * 1
        y, gone = f(x), weakref.ref(x)
        del x
        gc.collect()
        assert gone() is not None
        if drop == "backward":
            y.sum().backward()
        else:
            del y
        gc.collect()
        assert gone() is None, drop


@pytest.mark.full
def test_a_saved_output_holds_no_ring(standin: Standin) -> None:
    """It is what its own node saved: as an input's, its memory would never come back."""
    f = served("softmax", x := normal(3, 4).requires_grad_())
    y = f(x)
    memory = StorageWeakRef(y.untyped_storage())
    assert not memory.expired()
    del y
    gc.collect()
    assert memory.expired()


@pytest.mark.full
def test_an_output_that_nobody_used_has_a_gradient_of_zeros(standin: Standin) -> None:
    made = assay.Op(
        "pair",
        lambda x: (x + 1, x * 2),
        lambda make, n: (make.normal(n),),
        cases=[dict(n=4)],
    )
    made.gradient(lambda a, b: a + 2 * b, saves=(), wrt="x")
    f, x = assay.torch_op(made), normal(4).requires_grad_()
    f(x)
    for place, right in ((0, 1.0), (1, 2.0)):
        (dx,) = torch.autograd.grad(f(x)[place].sum(), x)
        assert torch.equal(dx, torch.full((4,), right))
    assert f.path(x) == "native"


@pytest.mark.full
def test_a_long_chain_is_freed_without_recursion(standin: Standin) -> None:
    f = served("relu", normal(2))
    y = normal(2).requires_grad_()
    for _ in range(30_000):
        y = f(y)
    del y


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:Anomaly")
def test_anomaly_mode_says_where_the_forward_was(
    standin: Standin, recwarn: pytest.WarningsRecorder
) -> None:
    f = served("softmax", x := torch.full((3, 4), torch.inf).requires_grad_())
    with torch.autograd.detect_anomaly(check_nan=True):
        y = f(x)
        with pytest.raises(RuntimeError, match="'softmaxBackward' returned nan"):
            y[:, 0].sum().backward()
    assert any("test_anomaly_mode" in str(one.message) for one in recwarn)


@pytest.mark.full
def test_two_backwards_of_one_graph_in_two_threads(standin: Standin) -> None:
    f = served("square", x := normal(40).requires_grad_())
    y = f(x).sum()
    found: list[torch.Tensor] = []

    def work() -> None:
        for _ in range(20):
            found.extend(torch.autograd.grad(y, x, retain_graph=True))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert len(found) == 80
    assert all(torch.equal(dx, 2 * x) for dx in found)


@pytest.mark.full
@pytest.mark.parametrize("name", [n for n in library() if n != "shift_left"])  # it changes inputs
def test_it_keeps_the_contract_of_operators(name: str, standin: Standin) -> None:
    f = replayed(name)
    case = next(c for c in f.op.cases if c.values.get("dtype", "float32") == "float32")
    inputs = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs_of(f.op, case, 7)]
    served(name, *inputs)
    rows = assay.check_operator(
        f,
        *inputs,
        reference=f.op.reference,
        only=[
            *("inputs", "aliasing", "fake", "values", "repeats", "gradient", "saved"),
            *("gradient of one input", "gradient again", "double backward", "autocast"),
        ],
    )
    assert [(r.variant, r.word, r.reason) for r in rows if r.outcome == "fail"] == []
    assert any(row.word == "right" for row in rows)
    assert f.path(*inputs) == "native"
    assert standin.calls
