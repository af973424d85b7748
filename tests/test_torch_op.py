"""assay.torch_op: a variant and its gradient as a torch operator that keeps the contract."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import pytest
import torch
from contract import contract

import assay
from assay.operators.contract import CHECKS
from assay.ops.activations import gelu
from assay.ops.softmax import softmax
from assay.ops.square import square
from assay.verdict.joined import check_formula

ONE = {"gradient of one input"}
NO_GRADIENT = {"gradient", *ONE, "gradient again", "saved", "double backward"}


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize(
    ("op", "way", "absent"),
    [
        (softmax, "eager", {*ONE, "double backward"}),
        (softmax, "cpp", {*ONE, "double backward"}),
        (square, "eager", ONE),
        (square, "cpp", ONE),
    ],
)
def test_the_library_keeps_the_contract(op, way, absent):
    f = assay.torch_op(op, way)
    contract(f, normal(7, 33), absent=absent)


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), ()])
def test_the_smallest_inputs_keep_it(shape):
    """One element counts as contiguous whatever its strides; none, and no dimension at all."""
    contract(assay.torch_op(square), normal(*shape), absent=ONE)


def test_bfloat16_keeps_it_too():
    f = assay.torch_op(softmax, "cpp")
    x = normal(5, 65, dtype=torch.bfloat16)
    contract(f, x, absent={*ONE, "double backward", "autocast"})


def test_python_forward_with_another_backward():
    f = assay.torch_op(softmax, "python", backward="cpp")
    contract(f, normal(4, 9), absent={*ONE, "double backward"})
    with pytest.raises(assay.AssayError, match="no variant is called 'python' as the forward's"):
        assay.torch_op(softmax, "python")


def bias_op():
    op = assay.Op(
        "scaled_bias",
        lambda x, w, b, eps: x * w + b + eps,
        lambda make, m, n, dtype: (
            make.normal(m, n, dtype=dtype),
            make.normal(n, dtype=dtype),
            make.normal(n, dtype=dtype),
            0.5,
        ),
        cases=assay.grid(m=[3], n=[4], dtype=["float32", "bfloat16"]),
    )
    op.gradient(
        lambda dy, x, w: (dy * w, (dy * x).sum(0), dy.sum(0)),
        saves=("x", "w"),
        wrt=("x", "w", "b"),
    )
    return op


def test_several_inputs_partial_needs_and_mixed_autocast():
    f = assay.torch_op(bias_op(), name="bias_widest")
    inputs = normal(3, 4), normal(4, seed=1), normal(4, seed=2), 0.5
    contract(f, *inputs, absent={"double backward"})
    x, w, b, eps = inputs
    with torch.autocast("cpu", torch.bfloat16):
        assert f(x.bfloat16(), w, b, eps).dtype == torch.float32
        low = assay.torch_op(bias_op(), autocast="lower")
        assert low(x, w, b, eps).dtype == torch.bfloat16
    with pytest.raises(assay.AssayError, match="say one of widest, float32, lower"):
        assay.torch_op(bias_op(), autocast="wider")


def test_a_wrong_backward_is_named_through_torch_op():
    op = bias_op()

    @op.gradients[0].variant("eager/wrong")
    def wrong(dy, x, w):
        return dy * w, (dy * x).sum(0), dy.sum(0) * 32

    f = assay.torch_op(op, backward="eager/wrong")
    rows = assay.check_operator(f, normal(3, 4), normal(4), normal(4), 0.5, only=["gradient"])
    assert rows[0].word == "wrong gradient"
    assert rows[0].reason.startswith("gradient of b: every element")


def test_strided_inputs_and_gradients_are_made_contiguous_unless_any_is_said():
    """The same reader of memory in a line, declared in both ways."""
    op = assay.Op(
        "growth",
        lambda x: x.exp(),
        lambda make, m, n: (make.normal(m, n),),
        cases=assay.grid(m=[4], n=[6]),
    )
    grad = op.gradient(lambda dy, y: dy * y, saves="y", wrt="x")

    def in_a_line(dy, y):
        size = dy.untyped_storage().size() // 4 - dy.storage_offset()
        flat = dy.as_strided((min(size, dy.numel()),), (1,), dy.storage_offset())
        return flat.repeat(dy.numel())[: dy.numel()].view(dy.shape) * y

    grad.variant("eager/asks")(in_a_line)
    grad.variant("eager/any", layouts="any")(in_a_line)
    contract(assay.torch_op(op, backward="eager/asks"), normal(4, 6), absent={*ONE, *TWICE})
    bad = assay.torch_op(op, backward="eager/any")
    (row,) = assay.check_operator(bad, normal(4, 6), only=["gradient"])
    assert row.word == "wrong gradient"
    assert row.reason.startswith("grad_output stride (12, 1): gradient of x")
    x, c = normal(64, 2).requires_grad_(), normal(64, 4, seed=1)
    wanted = (c[:, :2] + c[:, 2:]) * x.detach().exp()
    for f, right in ((bad, False), (assay.torch_op(op, backward="eager/asks"), True)):
        (dx,) = torch.autograd.grad((torch.cat([f(x), f(x)], 1) * c).sum(), x)
        assert torch.allclose(dx, wanted, atol=1e-5) == right  # what the check warns of is real


TWICE = {"double backward"}


def in_place_op():
    def reference(x, w):
        return x * w, (x * w).sum()

    op = assay.Op(
        "scale_in_place",
        reference,
        lambda make, n: (make.normal(n), make.normal(n)),
        mutates="x",
        cases=assay.grid(n=[8]),
    )

    @op.launcher("eager/fills")
    def fills(total, x, w):
        x.mul_(w)
        total.copy_(x.sum())

    return op


@pytest.mark.parametrize("way", ["eager", "eager/fills"])
def test_an_op_that_works_in_place(way):
    f = assay.torch_op(in_place_op(), way)
    assert "Tensor(a0!) x" in str(f.overload._schema)
    x, w = normal(8), normal(8, seed=1)
    wanted = x * w
    made, total = f(x, w)
    assert made is x
    assert torch.equal(x, wanted)
    assert torch.allclose(total, wanted.sum())
    contract(f, normal(8), w, absent={*NO_GRADIENT, "autocast"})
    strided = normal(16)[::2]
    wanted = strided * w
    f(strided, w)
    assert torch.equal(strided, wanted)


def test_an_op_in_place_with_a_gradient():
    op = in_place_op()
    op.gradient(
        lambda dx, dt, y, w: ((dx + dt) * w,), saves=("output0", "w"), wrt="x", name="scale_grad"
    )
    f = assay.torch_op(op, "eager/fills", backward="eager")
    contract(f, normal(8), normal(8, seed=1), absent={*ONE, *TWICE, "autocast"})
    x = normal(8).requires_grad_()
    y = x.clone()
    made, total = f(y, normal(8, seed=1))
    (made.sum() + total).backward()
    assert torch.allclose(x.grad, 2 * normal(8, seed=1))


def test_what_does_not_run_on_the_cpu_is_refused_by_name_or_replaced_by_word():
    f = assay.torch_op(softmax, "triton")
    with pytest.raises(assay.NotSupported, match=r"softmax: the variant triton does not run on .*"):
        f(normal(2, 3))
    g = assay.torch_op(softmax, "triton", cpu="eager")
    assert torch.allclose(g(normal(2, 3)), normal(2, 3).softmax(-1))


def test_dtypes_that_no_case_covers_are_refused():
    f = assay.torch_op(gelu)
    with pytest.raises(assay.NotSupported, match="x is float64, which none of its cases covers"):
        f(normal(2, 3).double())
    g = assay.torch_op(gelu, dtypes=["float64"])
    assert g(normal(6).double()).dtype == torch.float64
    assert g(normal(6)).dtype == torch.float32, "those of its cases as before"
    with pytest.raises(assay.NotSupported, match=r"x is int64, .* and dtypes= takes float64"):
        g(torch.arange(6))


def test_integers_that_no_case_has_there_are_refused():
    """A kernel would read those of 8 bytes as twice as many of 4."""
    floats, places = torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)
    foreign = {
        "histogram": (places, 5),
        "counters": (places, places, 5),
        "cross_entropy": (floats, places.int()),
        "philox": (floats[0, :2], places[:2].int(), 8),
        "relu": (places,),
        "transpose": (torch.zeros(4, 3, dtype=torch.bool),),
    }
    for name, inputs in foreign.items():
        with pytest.raises(assay.NotSupported, match="which none of its cases covers"):
            getattr(assay.ops, name)(*inputs)
    with pytest.raises(assay.NotSupported, match=r"target is float32, .* have int64"):
        assay.ops.cross_entropy(floats, places.float())
    assert assay.ops.transpose(torch.zeros(4, 3, dtype=torch.int8)).shape == (3, 4)
    assert assay.ops.cross_entropy(floats, places).shape == (4,)


def picked_op(cases):
    """v at some places, of which each case names the dtypes; and a shift, which may be missing."""

    def inputs(make, n, dtype, places="int32", shifted=False):
        v = make.integers(n, dtype=dtype) if dtype == "int32" else make.normal(n, dtype=dtype)
        shift = make.normal(n) if shifted else None
        return v, make.integers(n, high=n, dtype=places), shift

    def reference(v, at, shift):
        return v[at.long()] if shift is None else v[at.long()] + shift

    return assay.Op("picked", reference, inputs, cases=cases)


def test_every_declared_case_is_taken_and_dtypes_that_none_has_are_not():
    f = assay.torch_op(picked_op([
        dict(n=4, dtype="int32"),  # by chance that of the places
        dict(n=4, dtype="float32"),
        dict(n=4, dtype="float32", places="int64"),
        dict(n=4, dtype="float32", shifted=True),
    ]))  # fmt: skip
    v, at, shift = normal(4), torch.zeros(4, dtype=torch.int32), normal(4)
    for inputs in ((at, at, None), (v, at, None), (v, at.long(), None), (v, at, shift)):
        assert f(*inputs).shape == (4,)
    for inputs, said in (
        ((v, v, None), "at is float32, .* have int32, int64"),
        ((at, at.long(), None), "v is int32 and at int64, which none of its cases mixes"),
        ((v, at, shift.half()), "shift is float16, .* have float32"),
        ((v.half(), at, None), "v is float16, .* have float32, int32"),
    ):
        with pytest.raises(assay.NotSupported, match=said):
            f(*inputs)
    more = assay.torch_op(picked_op([dict(n=4, dtype="float32")]), dtypes=["float16"])
    assert more(v.half(), at, None).dtype == torch.float16
    with pytest.raises(assay.NotSupported, match="at is int64"):
        more(v, at.long(), None)


def test_a_gradient_that_is_not_declared_is_refused_by_name():
    f = assay.torch_op(in_place_op().__class__(
        "halves", lambda x, w: x * w, lambda make, n: (make.normal(n), make.normal(n)),
        cases=assay.grid(n=[4]),
    ))  # fmt: skip
    x = normal(4).requires_grad_()
    y = f(x, normal(4))
    with pytest.raises(assay.NotSupported, match="a gradient of x is asked for, and it declares"):
        y.sum().backward()
    part = bias_op()
    part.gradients.clear()
    part.gradient(lambda dy, w: dy * w, saves="w", wrt="x")
    g = assay.torch_op(part)
    w = normal(4).requires_grad_()
    with pytest.raises(assay.NotSupported, match=r"a gradient of w .* only of x"):
        g(x, w, normal(4), 0.5).sum().backward()


def test_double_backward_runs_where_the_gradient_has_one_and_else_refuses():
    x = normal(3, 4).requires_grad_()
    f = assay.torch_op(square)
    (dx,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), x)
    assert torch.equal(ddx, torch.full_like(x, 2.0))
    g = assay.torch_op(softmax)
    (dx,) = torch.autograd.grad(g(x)[:, 0].sum(), x, create_graph=True)
    with pytest.raises(assay.NotSupported, match="softmax_grad: a gradient of "):
        dx.sum().backward()


def test_wrong_use_is_refused():
    with pytest.raises(assay.AssayError, match="triton has no BLOCK=7; there are: BLOCK=1024"):
        assay.torch_op(softmax, "triton BLOCK=7", backward="triton")
    with pytest.raises(assay.AssayError, match="backward='eager', and it has no gradient"):
        assay.torch_op(in_place_op(), backward="eager")
    with pytest.raises(assay.AssayError, match="is not one of its gradients"):
        assay.torch_op(softmax, gradient=square.gradients[0])
    dtyped = assay.Op(
        "cast", lambda x, to: x.to(to), lambda make, n: (make.normal(n), torch.float64),
        cases=assay.grid(n=[4]),
    )  # fmt: skip
    with pytest.raises(assay.AssayError, match="input to is float64, which no schema"):
        assay.torch_op(dtyped)


def test_the_page_on_operators_runs_as_printed(capsys, tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "operators.md").read_text()
    snippets = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(snippets) == 4
    path = tmp_path / "page.py"
    path.write_text("\n".join(snippets))
    scope = {"__name__": "page"}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    printed = capsys.readouterr().out
    assert "assay::swish" in printed
    assert "(Tensor x) -> Tensor" in printed
    assert "eager, named" in printed
    assert "gradient right" in printed
    for check in CHECKS:  # the page names every check there is
        assert check in page
    check_formula(scope["swish_grad"], scope["swish_grad"].cases[0], 1)


@pytest.mark.full
def test_inductor_takes_it_too():
    f = assay.torch_op(softmax, "cpp")
    (row,) = assay.check_operator(f, normal(7, 33), backend="inductor", only=["compile"])
    assert row.word == "right"


@pytest.mark.gpu
@pytest.mark.parametrize("op", [softmax, square])
@pytest.mark.parametrize("way", ["eager", "triton", "cuda"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_on_a_gpu_it_keeps_the_whole_contract(op, way, dtype):
    forward = {"cuda": "cuda/online" if op is softmax else "cuda/naive"}.get(way, way)
    f = assay.torch_op(op, forward, backward="eager" if way == "eager" else "triton")
    absent = set(ONE)
    if op is softmax:
        absent |= TWICE
    if dtype is torch.bfloat16:
        absent.add("autocast")
    if torch.cuda.device_count() < 2:
        absent.add("second device")
    contract(f, normal(64, 1025, dtype=dtype).cuda(), absent=absent)


@pytest.mark.gpu
def test_on_a_gpu_a_launch_that_forgets_the_stream_is_named():
    def forgets(x):
        with torch.cuda.stream(torch.cuda.default_stream()):
            return x * 2

    x = normal(1 << 12).cuda()
    (row,) = assay.check_operator(forgets, x, only=["side stream"])
    assert row.word == "unfinished"
    (row,) = assay.check_operator(lambda x: x * 2, x, only=["side stream"])
    assert row.word == "right"


@pytest.mark.gpu
def test_on_a_gpu_what_a_graph_does_not_hold_is_named():
    kept = {}

    def outside(x):
        """What a capture would hold is computed before it: the replay only copies."""
        if not torch.cuda.is_current_stream_capturing():
            kept["y"] = x * 2
        return kept["y"].clone()

    x = normal(1 << 12).cuda()
    (row,) = assay.check_operator(outside, x, only=["CUDA graph"])
    assert row.word == "wrong value"
    (row,) = assay.check_operator(lambda x: x * 2, x, only=["CUDA graph"])
    assert row.word == "right"
    (row,) = assay.check_operator(lambda x: x * float(x[0]), x, only=["CUDA graph"])
    assert row.word == "not supported"
    assert "while capturing" in row.reason


@pytest.mark.gpu
def test_on_a_gpu_a_capture_that_fails_leaves_the_process_as_it_was():
    x, stream = normal(1 << 20).cuda(), torch.cuda.current_stream()
    reserved = []
    for _ in range(3):
        (row,) = assay.check_operator(lambda x: x * float(x[0]), x, only=["CUDA graph"])
        assert row.word == "not supported"
        assert torch.cuda.current_stream() == stream
        assert torch.randn(8, device="cuda").isfinite().all()
        gc.collect()
        torch.cuda.empty_cache()
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[1] == reserved[2], "what the capture allocated is given back"
    (row,) = assay.check_operator(lambda x: x * 2, x, only=["CUDA graph"])
    assert row.word == "right"
