"""Calls of operators by C++ on a GPU: values, gradients, streams, graphs, threads, memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import assay
from assay.operators import native

pytestmark = pytest.mark.gpu
ROWS, N = 64, 256
EAGER: dict[str, Any] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "square": lambda x: x * x,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "layernorm": lambda x, w, b: F.layer_norm(x, (N,), w, b, 1e-5),
    "rmsnorm": lambda x, w: F.rms_norm(x, (N,), w, 1e-6),
}


@pytest.fixture(autouse=True)
def built() -> Iterator[None]:
    native.build()
    native.switch(True)
    yield
    native.switch(True)


def inputs_of(name: str, seed: int = 0) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"layernorm": ((ROWS, N), (N,), (N,)), "rmsnorm": ((ROWS, N), (N,))}
    made = [torch.randn(s, generator=generator) for s in shapes.get(name, ((ROWS, N),))]
    return [x.flatten().cuda() if name == "gelu_tanh" else x.cuda() for x in made]


def served(name: str) -> tuple[Any, list[torch.Tensor]]:
    """An operator that serves these inputs natively; anything else fails here, by its reason."""
    f, inputs = getattr(assay.ops, name), inputs_of(name)
    f(*inputs)
    assert f.path(*inputs) == "native"
    return f, inputs


@pytest.mark.parametrize("name", EAGER)
def test_values_and_gradients_are_those_of_eager(name: str) -> None:
    f, _ = served(name)
    for seed in range(3):
        mine = [x.requires_grad_() for x in inputs_of(name, seed)]
        theirs = [x.detach().clone().requires_grad_() for x in mine]
        made, right = f(*mine), EAGER[name](*theirs)
        assert made.grad_fn.name() == f"{f.op.name}Backward"
        torch.testing.assert_close(made, right, rtol=1e-4, atol=1e-5)
        weights = torch.randn_like(right)
        (made * weights).sum().backward()
        (right * weights).sum().backward()
        for one, other in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one.grad, other.grad, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", EAGER)
def test_the_contract_holds_on_a_gpu(name: str) -> None:
    f, inputs = served(name)
    rows = assay.check_operator(f, *inputs, reference=f.op.reference)
    assert [(r.variant, r.word, r.reason) for r in rows if r.outcome == "fail"] == []
    assert f.path(*inputs) == "native"
    said = {row.variant: row.word for row in rows}
    assert said["side stream"] == said["CUDA graph"] == "right"


def test_a_thread_that_is_new_to_cuda_launches_too() -> None:
    f, (x,) = served("square")
    found: list[torch.Tensor] = []

    def work() -> None:
        found.append(f(x))
        torch.cuda.current_stream().synchronize()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert torch.equal(found[0], x * x)


def test_memory_that_is_short_is_told_by_torch() -> None:
    f, _ = served("square")
    x = torch.ones(1 << 26, device="cuda")
    f(x)
    assert f.path(x) == "native"
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e-4)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            f(x)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.equal(f(x), x)


def test_a_gpu_that_is_not_the_current_one_is_served_by_python() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    f, (x,) = served("square")
    with torch.cuda.device(1):
        assert f.path(x).startswith("by Python: the GPU of its inputs is not the current one")
        made = f(x)
    assert made.device == x.device
    assert torch.equal(made, x * x)


def test_switched_off_it_is_replayed_by_python() -> None:
    f, (x,) = served("square")
    native.switch(False)
    assert torch.equal(f(x), x * x)
    assert f.path(x).startswith("by Python, replayed: it is switched off")
