"""The tape on our kernels: which it launches on a GPU, and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from assay.build import build
from assay.inputs import to_meta
from assay.op import Op
from assay.operators.picking import usual
from assay.operators.running import shapes
from assay.ops import served
from assay.simt import Watch
from assay.tape import network as nets
from assay.tape.scalar import Value
from assay.tape.tensor import Tensor
from assay.types import Case
from assay.ways.launch import Recorder

Run = Callable[[Op, list[Any]], list[torch.Tensor]]
WITHOUT = {"vecadd_grad", "transpose_grad", "sum_grad"}
"""Gradients of the network below that copy, and have no kernels."""


@dataclass
class Standin:
    """An operator of the library whose calls, and those of its gradient, another runs."""

    op: Op
    run: Run
    gradient: Any = None

    def __call__(self, *inputs: Any) -> Any:
        given = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in inputs]
        made = self.run(self.op, given)
        return made[0] if len(made) == 1 else tuple(made)


@pytest.fixture
def run_by(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """`run_by(run)`: the tape's operators and gradients are called by that."""

    def patched(run: Run) -> None:
        def standin(name: str) -> Standin:
            real = served(name)
            gradient = real.gradient and Standin(real.gradient.op, run)
            return Standin(real.op, run, gradient)

        monkeypatch.setattr("assay.tape.tensor.served", standin)

    return patched


def outputs(op: Op, inputs: Sequence[Any], device: str) -> list[torch.Tensor]:
    shaped = shapes(op, [to_meta(x) for x in inputs])
    return [torch.full(y.shape, torch.nan, dtype=y.dtype, device=device) for y in shaped]


@dataclass
class Notes:
    """Notes what an operator would launch on a GPU of which nothing is tuned; eager computes."""

    seen: dict[str, set[str]] = field(default_factory=dict)
    """Kernels without their types, by operator; none where eager would run."""

    def __call__(self, op: Op, inputs: list[Any]) -> list[torch.Tensor]:
        variant, knobs = usual(op, "cuda")
        names = self.seen.setdefault(op.name, set())
        if variant.way == "cuda":
            recorder = Recorder("sm_90")
            metas = [to_meta(x) for x in inputs]
            variant.function(recorder, *outputs(op, inputs, "meta"), *metas, **knobs)
            names |= {launch.name.partition("<")[0] for launch in recorder.launches}
        made = op.reference(*inputs)
        return list(made) if isinstance(made, tuple) else [made]


@dataclass
class Runs:
    """Runs what an operator would launch on a GPU, by its compiled code on the CPU."""

    watch: Watch = field(default_factory=Watch)
    ran: set[str] = field(default_factory=set)

    def __call__(self, op: Op, inputs: list[Any]) -> list[torch.Tensor]:
        variant, knobs = usual(op, "cuda")
        filled = outputs(op, inputs, "cpu")
        specs = [(tuple(y.shape), y.dtype) for y in filled]
        metas = tuple(to_meta(x) for x in inputs)
        watch = self.watch if variant.way == "cuda" else None
        kernel = build(op, variant, knobs, Case(), metas, specs, "cpu", "sm_90", watch=watch)
        if watch is not None:
            self.ran.add(op.name)
        return kernel.run(filled, inputs)


def stepped(dtype: torch.dtype, device: str = "cpu") -> tuple[float, list[torch.Tensor]]:
    """The loss of a network of tensors and the gradients of its weights and biases."""
    network = nets.as_tensors(nets.mlp([3, 5, 4], "tanh", seed=1), dtype, device)
    loss = nets.tensor_cross_entropy(network(Tensor(X.to(device, dtype))), TARGET.to(device))
    loss.backward()
    grads = [p.grad for p in network.parameters()]
    assert all(g is not None for g in grads)
    return float(loss.data), [g.cpu() for g in grads if g is not None]


def by_scalars() -> tuple[float, list[torch.Tensor]]:
    """The same by the engine of scalars, in float64."""
    network = nets.mlp([3, 5, 4], "tanh", seed=1)
    total = Value(0.0)
    for row, target in zip(X, TARGET):
        total = total + nets.cross_entropy(network([Value(float(v)) for v in row]), int(target))
    (total * (1 / len(X))).backward()
    layers = [layer.neurons for layer in network.layers]
    grads = [[[w.grad for w in n.weights] for n in neurons] for neurons in layers]
    biases = [[n.bias.grad for n in neurons] for neurons in layers]
    found = [torch.tensor(one, dtype=torch.float64) for one in (*grads, *biases)]
    return total.data / len(X), found


X = torch.randn(6, 3, generator=torch.Generator().manual_seed(2))
TARGET = torch.tensor([0, 3, 1, 2, 2, 0])


def test_every_step_of_a_network_on_a_gpu_launches_kernels_of_ours(
    run_by: Callable[[Run], None],
) -> None:
    """But for gradients that only copy."""
    notes = Notes()
    run_by(notes)
    stepped(torch.float32)
    assert {"transpose", "bmm", "vecadd", "tanh", "cross_entropy", "sum"} <= set(notes.seen)
    assert {name for name, kernels in notes.seen.items() if not kernels} == WITHOUT


@pytest.mark.gallery
@pytest.mark.timeout(300)
def test_kernels_of_ours_give_the_loss_and_gradients_that_scalars_do(
    run_by: Callable[[Run], None],
) -> None:
    runs = Runs()
    run_by(runs)
    loss, grads = stepped(torch.float32)
    wanted, right = by_scalars()
    assert runs.ran >= {"bmm", "bmm_grad", "tanh", "tanh_grad", "cross_entropy_grad"}
    assert not runs.watch.faults
    assert loss == pytest.approx(wanted, rel=1e-5)
    for mine, truth in zip(grads, right, strict=True):
        torch.testing.assert_close(mine.double(), truth, rtol=1e-4, atol=1e-6)


@pytest.mark.gpu
def test_on_a_gpu_a_network_runs_kernels_of_ours_and_none_of_a_library() -> None:
    stepped(torch.float32, "cuda")  # builds
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        loss, grads = stepped(torch.float32, "cuda")
        torch.cuda.synchronize()
    names = [event.key for event in seen.key_averages()]
    for kernel in ("bmm_tiled", "transpose_", "vecadd_", "map1", "map2", "cross_entropy"):
        assert any(kernel in name for name in names), (kernel, names)
    assert not [name for name in names if "gemm" in name or "cublas" in name]
    wanted, right = by_scalars()
    assert loss == pytest.approx(wanted, rel=1e-5)
    for mine, truth in zip(grads, right, strict=True):
        torch.testing.assert_close(mine.double(), truth, rtol=1e-4, atol=1e-6)
