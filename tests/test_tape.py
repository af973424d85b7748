"""The tapes: scalars against torch, tensors against both, and what others got wrong."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.errors import NotSupported, OpError
from assay.tape import network as nets
from assay.tape.scalar import Value
from assay.tape.tensor import Tensor, apply, told

NUMBERS = st.floats(0.2, 3.0)


def formula(a: Any, b: Any, c: Any, lib: Any) -> Any:
    """A formula that uses each of its inputs, and some of its steps, more than once."""
    d = a * b + c
    e = lib.tanh(d) * d - a / (b + 0.5)
    f = lib.exp(e * 0.1) + lib.log(d * d + 1.0) + lib.sigmoid(d - e)
    return f**2.0 + lib.relu(e - 0.3) + (1.0 - c) + 2.0 / d + e


class Scalars:
    tanh, exp, log = Value.tanh, Value.exp, Value.log
    relu, sigmoid = Value.relu, Value.sigmoid


@settings(deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_a_formula_of_scalars_has_the_gradients_of_torch(a: float, b: float, c: float) -> None:
    mine = [Value(x) for x in (a, b, c)]
    theirs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (a, b, c)]
    made, right = formula(*mine, Scalars), formula(*theirs, torch)
    assert made.data == pytest.approx(right.item(), rel=1e-12)
    made.backward()
    right.backward()
    for one, other in zip(mine, theirs):
        assert other.grad is not None
        assert one.grad == pytest.approx(other.grad.item(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("times", "gradient"), [(2, 2.0), (3, 3.0)])
def test_what_is_added_to_itself_gets_every_part(times: int, gradient: float) -> None:
    """x + x had the gradient 3, and x + x + x 7, in a well-known port to CUDA."""
    x, total = Value(5.0), Value(0.0)
    for _ in range(times):
        total = total + x
    total.backward()
    assert x.grad == gradient
    y = Tensor(torch.tensor([1.0, 2.0]))
    made = y
    for _ in range(times - 1):
        made = made + y
    made.sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [gradient, gradient]


def test_the_gradient_goes_through_a_transpose_and_a_broadcast() -> None:
    x = Tensor(torch.tensor([[1.0, 2.0]]))
    x.T.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0, 1.0]]
    bias = Tensor(torch.tensor([[1.0]]))
    (Tensor(torch.tensor([[1.0, 2.0]])) + bias.expand(1, 2)).sum().backward()
    assert bias.grad is not None
    assert bias.grad.tolist() == [[2.0]]


def test_gradients_add_up_over_calls_and_are_forgotten_by_a_step() -> None:
    w = Value(3.0)
    for _ in range(2):
        (w * 2.0).backward()
    assert w.grad == 4.0
    nets.step([w], 0.5)
    assert (w.data, w.grad) == (1.0, 0.0)
    t = Tensor(torch.tensor([1.0]))
    for _ in range(2):
        (t * Tensor(torch.tensor([3.0]))).sum().backward()
    assert t.grad is not None
    assert t.grad.tolist() == [6.0]
    nets.step([t], 0.5)
    assert t.data.tolist() == [-2.0]
    assert t.grad is None


def test_a_long_tape_needs_no_deep_stack() -> None:
    x = total = Value(1.0)
    for _ in range(20_000):
        total = total + x
    total.backward()
    assert x.grad == 20_001.0


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid"])
@pytest.mark.parametrize("loss", ["mean_squared_error", "cross_entropy"])
def test_a_network_of_tensors_agrees_with_one_of_scalars_and_with_torch(
    activation: str, loss: str
) -> None:
    small = nets.mlp([3, 5, 4], activation, seed=1)
    x = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    wanted = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    target = torch.tensor([0, 3, 1, 2, 2, 0])
    total = Value(0.0)
    for row in range(6):
        made = small([Value(float(v)) for v in x[row]])
        if loss == "cross_entropy":
            total = total + nets.cross_entropy(made, int(target[row]))
        else:
            total = total + nets.mean_squared_error(made, wanted[row].tolist())
    (total * (1 / 6)).backward()

    large = nets.as_tensors(small, torch.float64)
    scores = large(Tensor(x))
    if loss == "cross_entropy":
        said = nets.tensor_cross_entropy(scores, target)
    else:
        said = nets.tensor_mean_squared_error(scores, wanted)
    said.backward()
    assert float(said.data) == pytest.approx(total.data / 6, rel=1e-12)

    leaves = [p.data.clone().requires_grad_(True) for p in large.parameters()]
    y = x
    for place, name in enumerate(large.activations):
        y = y @ leaves[place].T + leaves[len(large.weights) + place]
        y = getattr(torch, name)(y) if name else y
    right = (
        torch.nn.functional.cross_entropy(y, target)
        if loss == "cross_entropy"
        else torch.nn.functional.mse_loss(y, wanted)
    )
    right.backward()
    for mine, theirs in zip(large.parameters(), leaves, strict=True):
        assert mine.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(mine.grad, theirs.grad)
    scalar = [v.grad for layer in small.layers for n in layer.neurons for v in (*n.weights, n.bias)]
    tensor = [
        float(v)
        for w, b in zip(large.weights, large.biases)
        for row in range(w.data.shape[0])
        for v in (*_grad(w)[row], _grad(b)[row])
    ]
    assert tensor == pytest.approx(scalar, rel=1e-9, abs=1e-12)


def _grad(x: Tensor) -> torch.Tensor:
    assert x.grad is not None
    return x.grad


def test_a_network_learns() -> None:
    network = nets.as_tensors(nets.mlp([2, 16, 1], "tanh", seed=4), torch.float64)
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    wanted = torch.tensor([[0.0], [1.0], [1.0], [0.0]], dtype=torch.float64)
    losses = []
    for _ in range(300):
        loss = nets.tensor_mean_squared_error(network(Tensor(x)), wanted)
        loss.backward()
        losses.append(float(loss.data))
        nets.step(network.parameters(), 0.2)
    assert losses[0] > 0.2
    assert losses[-1] < 0.01


def test_the_inspector_tells_weight_and_gradient_of_each_node() -> None:
    w, x = Value(3.0), Value(2.0)
    loss = (w * x).tanh()
    loss.backward()
    assert w.grad == pytest.approx(x.data * (1 - math.tanh(6.0) ** 2))
    lines = list(told(loss))
    assert lines[0].split() == ["tanh", "1", "gradient", "1"]
    assert [line.split()[0] for line in lines[1:]] == ["*", "leaf", "leaf"]
    t = Tensor(torch.full((4,), 2.0))
    t.sum().backward()
    assert "gradient          1" in next(iter(told(t)))


def test_what_has_no_gradient_is_refused_by_name() -> None:
    with pytest.raises(OpError, match=r"backward of a tensor of shape \(2,\)"):
        Tensor(torch.ones(2)).backward()
    with pytest.raises(NotSupported, match="histogram: it declares no gradient"):
        apply("histogram", torch.tensor([1, 2], dtype=torch.int32), 4)  # type: ignore[arg-type]
    with pytest.raises(NotSupported, match="no gradient of target"):
        apply("cross_entropy", Tensor(torch.randn(2, 3)), Tensor(torch.tensor([0, 1])))


@pytest.mark.gpu
def test_the_tape_runs_on_our_kernels() -> None:
    network = nets.as_tensors(nets.mlp([8, 32, 5], "tanh", seed=4), torch.float32, "cuda")
    here = nets.as_tensors(nets.mlp([8, 32, 5], "tanh", seed=4), torch.float64)
    x, target = torch.randn(64, 8), torch.randint(0, 5, (64,))
    loss = nets.tensor_cross_entropy(network(Tensor(x.cuda())), target.cuda())
    loss.backward()
    right = nets.tensor_cross_entropy(here(Tensor(x.double())), target)
    right.backward()
    for mine, truth in zip(network.parameters(), here.parameters(), strict=True):
        torch.testing.assert_close(_grad(mine).cpu().double(), _grad(truth), rtol=1e-4, atol=1e-6)


def test_the_page_runs_as_printed() -> None:
    page = (Path(__file__).parents[1] / "docs" / "gallery.md").read_text()
    (snippet,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(snippet, scope)
    assert float(scope["loss"].data) < 1


@pytest.mark.parametrize(
    ("name", "usual"),
    [
        ("relu", torch.relu),
        ("tanh", torch.tanh),
        ("sigmoid", torch.sigmoid),
        ("gelu", torch.nn.functional.gelu),
        ("gelu_tanh", lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        ("elu", torch.nn.functional.elu),
        ("softplus", torch.nn.functional.softplus),
        ("swish", torch.nn.functional.silu),
    ],
)
def test_activations_go_both_ways(name: str, usual: Any) -> None:
    data = torch.linspace(-4, 4, 41)
    x, y = Tensor(data), data.clone().requires_grad_()
    made = apply(name, x)
    right = usual(y)
    torch.testing.assert_close(made.data, right.detach())
    (made * made).sum().backward()
    (right * right).sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    torch.testing.assert_close(x.grad, y.grad)
