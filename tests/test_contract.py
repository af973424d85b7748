"""The contract of torch operators, attacked: wrong ones are named, their right twins pass."""

from __future__ import annotations

import itertools
from typing import Any, ClassVar

import pytest
import torch
from contract import contract

import assay
from assay.types import Row

NUMBERS = itertools.count()
ALONE = {"gradient of one input", "double backward"}


def word(rows: list[Row], check: str) -> tuple[str, str]:
    row = next(row for row in rows if row.variant == check)
    return row.word, row.reason


def normal(*shape: int, seed: int = 0, **more: Any) -> torch.Tensor:
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return made.requires_grad_(**more) if more else made


def custom(function, *, mutates=(), fake=None, backward=None, setup=None, autocast=None):
    """A torch.library.custom_op under a name of its own."""
    made = torch.library.custom_op(f"assaytest::op{next(NUMBERS)}", function, mutates_args=mutates)
    if fake is not None:
        made.register_fake(fake)
    if backward is not None:
        made.register_autograd(backward, setup_context=setup)
    if autocast is not None:
        for device in ("cpu", "cuda"):
            made.register_autocast(device, autocast)
    return made


# ---- calls ------------------------------------------------------------------------------------


def test_an_undeclared_mutation_is_named_with_the_declaration_to_write():
    def sin_(x: torch.Tensor) -> None:
        x.sin_()

    rows = assay.check_operator(custom(sin_), normal(3, 4))
    assert word(rows, "inputs") == ("changed its input", "x, not declared")
    assert 'mutates_args=("x",)' in next(r for r in rows if r.variant == "inputs").verdict.advice
    right = custom(sin_, mutates=("x",))
    rows = contract(
        right,
        normal(3, 4),
        reference=torch.sin,
        absent={"autocast", *NO_GRADIENT},
    )
    assert word(rows, "values")[0] == "right"


NO_GRADIENT = {
    *("gradient", "gradient of one input", "gradient again", "saved", "double backward"),
}


def test_an_output_in_an_inputs_memory_is_named():
    def flat(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    rows = assay.check_operator(flat, normal(3, 4))
    assert word(rows, "aliasing") == ("shares memory", "output 0 lies in the memory of x")
    twice = assay.check_operator(lambda x: (y := x + 1, y[0]), normal(3, 4), only=["aliasing"])
    assert word(twice, "aliasing") == ("shares memory", "output 1 lies in the memory of output 0")
    right = assay.check_operator(lambda x: x.reshape(-1).clone(), normal(3, 4), only=["aliasing"])
    assert word(right, "aliasing")[0] == "right"


@pytest.mark.parametrize(
    ("fake", "expected", "part"),
    [
        (lambda x: torch.empty_like(x), "right", ""),
        (lambda x: x.new_empty(x.shape[::-1]).t(), "wrong strides", "real (4, 1), fake (1, 3)"),
        (lambda x: x.new_empty(x.shape, dtype=torch.float64), "wrong dtype", "fake torch.float64"),
        (lambda x: x.new_empty(x.shape[0]), "wrong shape", "real (3, 4), fake (3,)"),
        (lambda x: x.new_empty(x.tolist()), "not supported", "its fake raises"),
    ],
)
def test_a_fake_that_is_not_what_comes_is_named(fake, expected, part):
    def double(x: torch.Tensor) -> torch.Tensor:
        return 2 * x.contiguous()

    op = custom(double, fake=fake if expected != "right" else lambda x: x.new_empty(x.shape))
    found = word(assay.check_operator(op, normal(3, 4), only=["fake"]), "fake")
    assert found[0] == expected
    assert part in found[1]


def test_a_fake_true_for_contiguous_inputs_alone_is_named():
    def double(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x).copy_(x).mul_(2)  # keeps a transposed layout

    op = custom(double, fake=lambda x: x.new_empty(x.shape))
    found = word(assay.check_operator(op, normal(3, 4), only=["fake"]), "fake")
    assert found == (
        "wrong strides",
        "x transposed, stride (1, 3): real (1, 3), fake (4, 1)",
    )


def test_a_call_that_reads_its_input_in_a_line_is_named():
    def read(x: torch.Tensor) -> torch.Tensor:
        flat = x.as_strided((min(x.numel(), x.untyped_storage().size() // 4),), (1,))
        return torch.sin(flat.repeat(x.numel())[: x.numel()].view(x.shape))

    rows = assay.check_operator(read, normal(3, 4), reference=torch.sin, only=["values"])
    found = word(rows, "values")
    assert found[0] == "wrong value"
    assert "x sliced, stride (8, 1)" in found[1]
    right = assay.check_operator(torch.sin, normal(3, 4), reference=torch.sin, only=["values"])
    assert word(right, "values")[0] == "right"


def test_results_that_differ_are_counted():
    state = iter(range(1000))

    def restless(x: torch.Tensor) -> torch.Tensor:
        return x * (1 + 2.0**-20 * (next(state) % 2))

    rows = assay.check_operator(restless, normal(64), only=["repeats"])
    assert word(rows, "repeats")[0] == "right"
    assert "5 equal calls gave 2 results" in word(rows, "repeats")[1]
    rows = assay.check_operator(restless, normal(64), only=["repeats"], deterministic=True)
    assert word(rows, "repeats")[0] == "not the same twice"


# ---- gradients --------------------------------------------------------------------------------


class Cube(torch.autograd.Function):
    """y = x**3, right."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 3 * x * x * dy


class InALine(Cube):
    """Reads grad_output from memory as if it were contiguous."""

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        there = dy.untyped_storage().size() // dy.element_size() - dy.storage_offset()
        flat = dy.as_strided((min(there, dy.numel()),), (1,), dy.storage_offset())
        return 3 * x * x * flat.repeat(dy.numel())[: dy.numel()].view(dy.shape)


class Doubled(Cube):
    @staticmethod
    def backward(ctx, dy):
        return 2 * Cube.backward(ctx, dy)


class Adds(Cube):
    """Adds into a buffer that nobody clears."""

    kept: ClassVar[dict[tuple[int, ...], torch.Tensor]] = {}

    @staticmethod
    def backward(ctx, dy):
        found = Adds.kept.setdefault(tuple(dy.shape), torch.zeros_like(dy))
        found += Cube.backward(ctx, dy)
        return found.clone()


class Stashes(torch.autograd.Function):
    """Keeps x where autograd can't see that it changes."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach()
        return x**3

    @staticmethod
    def backward(ctx, dy):
        return 3 * ctx.x * ctx.x * dy


class Spends(Cube):
    """Works in the memory of grad_output."""

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy.mul_(3 * x * x)


class Scatters(Cube):
    """The order of its sum differs from call to call, as atomics' does."""

    calls = itertools.count()

    @staticmethod
    def backward(ctx, dy):
        return Cube.backward(ctx, dy) * (1 + 2.0**-23 * (next(Scatters.calls) % 3))


def cube(x):
    return x**3


@pytest.mark.parametrize(
    ("function", "check", "expected", "part"),
    [
        (InALine, "gradient", "wrong gradient", "grad_output stride (8, 1): gradient of x"),
        (Doubled, "gradient", "wrong gradient", "gradient of x: every element"),
        (Adds, "gradient again", "wrong gradient", "a second backward of the same graph"),
        (Stashes, "saved", "wrong gradient", "x was changed in place"),
        (Spends, "gradient", "changed its input", "its backward changes grad_output 0"),
        (Scatters, "gradient", "right", "gradients: 5 equal calls gave 3 results"),
    ],
)
def test_a_wrong_gradient_is_named(function, check, expected, part):
    x = normal(3, 4, requires_grad=True)
    rows = assay.check_operator(function.apply, x, reference=cube, only=[check])
    assert word(rows, check)[0] == expected
    assert part in word(rows, check)[1]


def test_the_right_gradient_passes_every_check():
    x = normal(3, 4, requires_grad=True)
    absent = {"gradient of one input", "opcheck"}
    contract(Cube.apply, x, reference=cube, double=True, absent=absent)


def test_after_a_sum_grad_output_has_stride_zero():
    """A reader that stays inside of memory, so that only the values tell."""

    class Strided(Cube):
        @staticmethod
        def backward(ctx, dy):
            return Cube.backward(ctx, dy if dy.stride() != (0, 0) else torch.zeros_like(dy))

    x = normal(64, 2, requires_grad=True)
    rows = assay.check_operator(Strided.apply, x, only=["gradient"])  # without a reference too
    found = word(rows, "gradient")
    assert found[0] == "wrong gradient"
    assert found[1].startswith("grad_output stride (0, 0): gradient of x: ")


class Product(torch.autograd.Function):
    """y = x @ w, right."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return dy @ w.t(), x.t() @ dy


class Casts(Product):
    """The same, knowing autocast."""

    forward = staticmethod(
        torch.amp.custom_fwd(Product.forward, device_type="cpu", cast_inputs=torch.float32)
    )
    backward = staticmethod(torch.amp.custom_bwd(Product.backward, device_type="cpu"))


class IgnoresNeeds(Product):
    """Right where both need a gradient; else it returns the wrong one, or fails."""

    @staticmethod
    def backward(ctx, dy):
        dx, dw = Product.backward(ctx, dy)
        return (dx, dw) if all(ctx.needs_input_grad) else (dw.t() @ dw.t(), dx.t() @ dx)


def matmul(x, w):
    return x @ w


def test_partial_needs_are_met():
    inputs = normal(4, 4, requires_grad=True), normal(4, 4, seed=1, requires_grad=True)
    rows = assay.check_operator(
        IgnoresNeeds.apply, *inputs, reference=matmul, only=["gradient", "gradient of one input"]
    )
    assert word(rows, "gradient")[0] == "right"
    assert word(rows, "gradient of one input")[0] == "wrong gradient"
    assert "where only" in word(rows, "gradient of one input")[1]
    blind = assay.check_operator(Product.apply, *inputs, only=["autocast"])
    assert word(blind, "autocast")[0] == "not supported"
    assert "backward: RuntimeError" in word(blind, "autocast")[1]
    contract(Casts.apply, *inputs, reference=matmul, double=True, absent={"opcheck"})


def test_a_claimed_double_backward_is_judged():
    class Once(Cube):
        @staticmethod
        def backward(ctx, dy):
            with torch.no_grad():
                made = Cube.backward(ctx, dy)
            return made + 0 * dy  # a path, without the values

    x = normal(3, 4, requires_grad=True)
    rows = assay.check_operator(Once.apply, x, reference=cube, double=True)
    assert word(rows, "gradient")[0] == "right"
    assert word(rows, "double backward")[0] == "wrong gradient"
    assert "double backward: gradient of x" in word(rows, "double backward")[1]


# ---- autocast and compile ---------------------------------------------------------------------


def test_an_operator_that_does_not_know_autocast_is_named():
    def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        if x.dtype != w.dtype:
            raise TypeError(f"x is {x.dtype} and w {w.dtype}")
        return x * w

    inputs = normal(3, 4), normal(3, 4, seed=1)
    fake = torch.empty_like
    blind = custom(product, fake=lambda x, w: fake(x))
    rows = assay.check_operator(blind, *inputs, only=["autocast"])
    assert word(rows, "autocast")[0] == "not supported"
    assert "under autocast with x in bfloat16: TypeError: x is" in word(rows, "autocast")[1]
    right = custom(product, fake=lambda x, w: fake(x), autocast=torch.bfloat16)
    rows = assay.check_operator(right, *inputs, only=["autocast"])
    assert word(rows, "autocast")[0] == "right"


def test_what_is_captured_once_is_named_when_compiled():
    calls = [0]

    def counted(x):
        calls[0] += 1
        return x * calls[0]

    def broken(x):
        print("a graph break")
        return x + 1

    rows = assay.check_operator(broken, normal(3), only=["compile"])
    assert word(rows, "compile")[0] == "not supported"
    rows = assay.check_operator(counted, normal(3), only=["compile"])
    assert word(rows, "compile")[0] == "wrong value"
    assert "compiled, call" in word(rows, "compile")[1]


def test_opcheck_is_asked():
    def sin_(x: torch.Tensor) -> torch.Tensor:
        return x.sin_().clone()

    rows = assay.check_operator(custom(sin_, fake=torch.empty_like), normal(3), only=["opcheck"])
    assert word(rows, "opcheck")[0] == "changed its input"


def test_wrong_use_is_the_users_mistake():
    with pytest.raises(assay.AssayError, match="no tensor among the inputs"):
        assay.check_operator(torch.sin, 1)
    with pytest.raises(assay.AssayError, match="no check called 'speed'; there are inputs, "):
        assay.check_operator(torch.sin, normal(3), only=["speed"])
    with pytest.raises(assay.AssayError, match="mutates names 'z'"):
        assay.check_operator(torch.sin, normal(3), mutates=["z"])
