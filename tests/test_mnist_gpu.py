"""The fast step on a GPU: its gradients, its graphs, and the races that it is timed in."""

from __future__ import annotations

import pytest
import torch

from assay.mnist import agreement, data
from assay.mnist.data import Data
from assay.mnist.fast import kernels, rounded, timing
from assay.mnist.fast.network import Fast
from assay.mnist.model import Sizes, digest, initial
from assay.mnist.whole import bench, pinned, racing, until
from assay.mnist.whole.by_us import FastSteps
from assay.mnist.whole.recipe import Recipe

pytestmark = [pytest.mark.gpu, pytest.mark.alone, pytest.mark.timeout(300)]

ROUNDED = 5e-3
"""Largest error of a gradient against float64 whose operands are rounded alike: sums differ."""


@pytest.fixture(scope="module")
def digits() -> Data:
    return data.load()


def placed(digits: Data) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = digits.train.images.copy(), digits.train.labels.copy()
    return torch.from_numpy(images).cuda(), torch.from_numpy(labels).cuda()


@pytest.mark.parametrize("batch", [3, 64, 257, 1024])
def test_the_gradients_of_a_step_are_those_of_autograd(digits: Data, batch: int) -> None:
    """Of three draws two at least: in one of six, a pixel lies so near a kink that tensor cores,
    which add in another order, take the other side, and a whole digit's gradient with them."""
    images, labels = placed(digits)
    worst = []
    for seed in range(3):
        parameters, order = initial(Sizes(), seed), torch.arange(batch) * 3 + seed
        net = Fast(parameters)
        loss = net.forward(*net.load(images, labels, order.cuda()))
        found = net.backward()
        aim, true = rounded.truth(parameters, images, labels, order)
        assert float(loss) == pytest.approx(aim, rel=1e-4)
        worst.append(max(a.error for a in agreement.gradients(found, true, "tf32")))
    assert sorted(worst)[1] < ROUNDED, worst


def test_a_graph_of_a_burst_is_its_steps_bit_for_bit(digits: Data) -> None:
    parameters, (images, labels) = initial(Sizes(), 0), placed(digits)
    course = bench.course(images, labels, 96, 0.05)
    course.order.copy_(torch.randperm(len(images))[: len(course.order)])
    graph, single = FastSteps(parameters, course), FastSteps(parameters, course, graph=False)
    for _ in range(3):
        graph.run()
        single.run()
    torch.cuda.synchronize()
    assert digest(graph.parameters) == digest(single.parameters)
    assert torch.equal(graph.losses, single.losses)
    graph.reset()
    graph.run()
    # By phases, with gradients kept and then subtracted: the same arithmetic, but a rounding.
    net = Fast(parameters)
    losses = []
    for s in range(bench.BURST):
        losses.append(float(net.forward(*net.load(images, labels, course.part(s).clone()))))
        net.backward()
        net.update(course.rate)
    assert graph.losses.tolist() == pytest.approx(losses, rel=1e-3)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("batch", [64, 257, 1024])
def test_kernels_that_start_early_train_bit_for_bit_as_those_that_wait(
    digits: Data, batch: int
) -> None:
    parameters, (images, labels) = initial(Sizes(), 2), placed(digits)
    course = bench.course(images, labels, batch, 0.05)
    early, late = FastSteps(parameters, course), FastSteps(parameters, course, early=False)
    for seed in range(30):
        g = torch.Generator().manual_seed(seed)
        course.order.copy_(torch.randint(len(images), course.order.shape, generator=g))
        early.run()
        late.run()
        torch.cuda.synchronize()
        assert torch.equal(early.losses, late.losses), seed
        assert digest(early.parameters) == digest(late.parameters), seed


def test_the_fast_step_races_pytorch_at_a_small_batch(digits: Data) -> None:
    names = ["fast", "eager + graph", "eager channels_last + graph"]
    result = racing.race(digits, batch=64, steps=200, peers=names)
    assert [r.name for r in result.ran] == names, result.absent
    ours = result.ran[0]
    for r in result.ran:
        assert all(a.holds for a in r.agreements), r
        assert agreement.curves(r.losses, ours.losses) <= agreement.LOSS
        assert r.accuracy > 0.9
        assert 1e-6 < r.median("total")[1] < 5e-3
    assert set(result.joules) == {"fast", min(names[1:], key=_seconds(result))} or result.no_joules
    assert all(1e-4 < joules < 5 for joules in result.joules.values())


def _seconds(result: racing.Result):
    return lambda name: next(r for r in result.ran if r.name == name).median("total")[1]


def test_digits_in_pinned_memory_train_alike(digits: Data) -> None:
    (one,), absent = pinned.beside(digits, batch=256, names=["fast"], steps=100)
    assert not absent
    assert one.apart == 0, "the same digits, weights and kernels"
    low, middle, _ = one.ratio
    assert middle > 0.9
    assert low < 20
    assert 0 < one.laying < 0.1


def test_trainings_of_two_seeds_learn_and_repeat(digits: Data, monkeypatch) -> None:
    monkeypatch.setattr(until, "MODE", None)  # the twin eager: compiling takes a minute
    recipe = Recipe(batch=64, steps=200)
    fast, twin = until.trainings(digits, recipe, [0, 1])
    assert fast.name == "fast"
    assert min(*fast.accuracies, *twin.accuracies) > 0.93
    (again,) = until.trainings(digits, recipe, [1], names=["fast"])
    assert again.accuracies[0] == fast.accuracies[1]
    assert 1e-4 < fast.mean_seconds < 1
    assert until.compared([fast, twin], 0.99).word == "no winner", "no 99 % from so few digits"


def test_every_kernel_of_a_step_is_timed(digits: Data) -> None:
    net = Fast(initial(Sizes(), 0))
    where, _ = net.load(*placed(digits), torch.arange(1024, device="cuda"))
    found = timing.kernel_seconds(net, where, rounds=5)
    assert set(found) == set(kernels.NAMES) - {"update_all"}
    assert all(1e-7 < seconds < 1e-2 for seconds in found.values())
