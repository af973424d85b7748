"""The fast step: its gradients, update and momentum, by its compiled code on the CPU."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from assay import AssayError
from assay.mnist import agreement, data
from assay.mnist.fast import kernels, rounded
from assay.mnist.fast.network import Fast
from assay.mnist.fast.step import PARAMETERS, Digits, Step, flattened, grids, loaded, views
from assay.mnist.layers.batchnorm2d import batchnorm2d
from assay.mnist.layers.conv2d import conv2d
from assay.mnist.layers.maxpool2d import maxpool2d
from assay.mnist.layers.relu import relu
from assay.mnist.layers.training import loaded as batch_of
from assay.mnist.model import Parameters, Sizes, initial
from assay.simt import Watch, load
from assay.ways import DEFAULT_ARCH

EXACT = 2e-3
"""Largest error of a gradient against autograd whose operands are rounded alike."""
COUNT = 200


@pytest.fixture(scope="module")
def few() -> tuple[torch.Tensor, torch.Tensor]:
    digits = data.load().train
    images, labels = digits.images[:COUNT], digits.labels[:COUNT]
    return torch.from_numpy(images.copy()), torch.from_numpy(labels.copy())


def made_in_cpp(names: tuple[str, ...]) -> None:
    """Two kernels at a time: nearly all of what these tests take."""
    built = kernels.built(DEFAULT_ARCH)
    text = built.ptx.read_text()
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda name: load(text, built.lowered[name]), names))
    assert len(made) == len(names)


@pytest.fixture(scope="module")
def in_cpp() -> None:
    """All kernels made into C++."""
    made_in_cpp(kernels.NAMES)


@pytest.fixture(scope="module")
def forward_in_cpp() -> None:
    """Those of the forward."""
    made_in_cpp(kernels.NAMES[:4])


def started(hostile: bool) -> Parameters:
    """Weights to start from; hostile: batchnorms as a training may leave them, signs and all."""
    made = initial(Sizes(), 3)
    if hostile:
        g = torch.Generator().manual_seed(1)
        for name in ("bn1.weight", "bn2.weight", "bn1.bias", "bn2.bias"):
            scale = 1.0 if name.endswith("weight") else 0.1
            made[name] = torch.randn(made[name].shape, generator=g) * scale
    return made


def order_of(steps: int, batch: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(2)
    return torch.randint(COUNT, (steps * batch,), generator=g)


def made(parameters: Parameters, batch: int, processors: int) -> tuple[Step, torch.Tensor, Watch]:
    watch = Watch()
    handle, _ = loaded("cpu", watch)
    flat = flattened(parameters, "cpu")
    gradients = torch.full_like(flat, torch.nan)
    return Step(handle, flat, gradients, batch, processors), gradients, watch


def chain(parameters: Parameters, x: torch.Tensor) -> torch.Tensor:
    """conv, batchnorm, relu and pool twice, layer by layer, with operands rounded as by kernels."""
    p = {name: value.double() for name, value in parameters.items()}
    for i in ("1", "2"):
        x = conv2d.reference(x, rounded.rounded(p[f"conv{i}.weight"]), p[f"conv{i}.bias"])
        x = batchnorm2d.reference(x, p[f"bn{i}.weight"], p[f"bn{i}.bias"])
        x = maxpool2d.reference(relu.reference(x))
        x = rounded.rounded(x) if i == "1" else x
    return x


@pytest.mark.gallery
@pytest.mark.usefixtures("forward_in_cpp")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("batch", "processors", "hostile"), [(7, 2, True), (33, 3, False)])
def test_fused_conv_batchnorm_relu_and_pool_are_the_chain_of_layers(
    few, batch, processors, hostile
):
    """`second_conv` has a whole block of layers and the next up to its pool; with the scale and
    shift that batchnorm is folded into, its result is the second block's."""
    parameters = started(hostile)
    step, _, watch = made(parameters, batch, processors)
    order = order_of(1, batch)
    now = torch.zeros(1, dtype=torch.int32)
    step.forward(Digits(*few, order, batch), now, train=False)
    assert not watch.faults
    x, _ = batch_of(*few, order, torch.ones(1))
    right = chain(parameters, rounded.rounded(x))
    assert right.shape == (batch, 32, 7, 7)
    scale, shift = step.known2[:32, None, None], step.known2[32:64, None, None]
    found = torch.relu(step.m.view(right.shape) * scale + shift)
    off = (found.double() - right).abs()
    assert float(off.mean()) < 1e-6
    assert float(off.max()) < 1e-3, "a tie that was rounded the other way"
    if hostile:
        assert float(scale.min()) < 0, "where the smallest of a window is the pooled one"


@pytest.mark.gallery
@pytest.mark.usefixtures("in_cpp")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    # processors: few, so that blocks have several digits; a batch with a tile that is not full.
    ("batch", "processors", "hostile"),
    [(7, 2, True), (33, 3, False), (70, 132, True)],
)
def test_the_gradients_of_the_fast_step_are_those_of_autograd(few, batch, processors, hostile):
    parameters = started(hostile)
    step, gradients, watch = made(parameters, batch, processors)
    order = order_of(1, batch)
    digits, now = Digits(*few, order, batch), torch.zeros(1, dtype=torch.int32)
    losses, rates = torch.zeros(1), torch.ones(1)
    step.forward(digits, now)
    step.backward(digits, now, 0)
    step.finish(now, 0, losses, rates, keep=True)
    assert not watch.faults
    assert len(watch.programs) == len(kernels.NAMES) - 1
    loss, true = rounded.truth(parameters, *few, order)
    assert float(losses) == pytest.approx(loss, rel=1e-5)
    assert float(step.loss()) == pytest.approx(loss, rel=1e-5)
    off = {a.name: a.error for a in agreement.gradients(views(gradients), true, "tf32")}
    assert max(off.values()) < EXACT, off
    assert torch.equal(step.flat, flattened(parameters, "cpu")), "kept, and nothing updated"


@pytest.mark.gallery
@pytest.mark.usefixtures("in_cpp")
@pytest.mark.timeout(600)
def test_steps_follow_one_another_without_the_host(few):
    """Three steps with momentum and a rate of their own against autograd and torch's SGD."""
    batch, steps, rates = 16, 3, torch.tensor([0.05, 0.1, 0.02])
    parameters = started(False)
    step, _, watch = made(parameters, batch, 132)
    speed, now, losses = torch.zeros(PARAMETERS), torch.zeros(1, dtype=torch.int32), torch.zeros(3)
    digits = Digits(*few, order_of(steps, batch), batch)
    twin = {n: v.clone().requires_grad_() for n, v in parameters.items()}
    sgd = torch.optim.SGD(twin.values(), lr=1.0, momentum=0.9, nesterov=True)
    for s in range(steps):
        step.forward(digits, now)
        step.backward(digits, now, 1)
        step.finish(now, 1, losses, rates, keep=False, momentum=0.9, speed=speed)
        chosen = digits.order[s * batch : (s + 1) * batch]
        loss, true = rounded.truth(twin, *few, chosen)
        assert float(losses[s]) == pytest.approx(loss, rel=1e-4)
        sgd.param_groups[0]["lr"] = float(rates[s])
        for name, value in twin.items():
            value.grad = true[name].float()
        sgd.step()
    assert int(now) == steps
    assert not watch.faults
    for name, value in views(step.flat).items():
        moved = (twin[name].detach() - parameters[name]).abs().max()
        assert float((value - twin[name].detach()).abs().max()) <= 2e-2 * float(moved) + 1e-7, name


@pytest.mark.gallery
@pytest.mark.usefixtures("in_cpp")
@pytest.mark.timeout(600)
def test_the_back_end_has_the_phases_of_a_network(few):
    parameters, order = started(False), order_of(1, 12)
    watch = Watch()
    net = Fast(parameters, watch=watch)
    x, y = net.load(*few, order)
    loss = net.forward(x, y)
    found = {n: g.clone() for n, g in net.backward().items()}
    net.update(0.05)
    expected, _ = rounded.truth(parameters, *few, order)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    for name, value in net.parameters.items():
        assert torch.allclose(value, parameters[name] - 0.05 * found[name], atol=1e-7)
    other = Fast(parameters, watch=watch)
    other.set_rate(0.05)
    assert float(other.whole(other.load(*few, order)[0])) == pytest.approx(expected, rel=1e-5)
    for name, value in other.parameters.items():
        assert torch.allclose(value, net.parameters[name], atol=1e-6), name
    again = net.logits(x)
    assert again.shape == (12, 10)
    assert not watch.faults
    assert len(watch.programs) == len(kernels.NAMES)


@pytest.mark.full
def test_every_kernel_fits_beside_another_block():
    """Two blocks of 256 threads share 64 K registers and 227 KB; hardly anything is spilled."""
    found = kernels.facts()
    assert set(found) == set(kernels.NAMES)
    for name, facts in found.items():
        assert facts.registers <= 128, name
        assert facts.spill_store_bytes <= 256, name


def test_grids_fill_the_device_without_a_second_wave():
    for batch in (2, 64, 256, 1024, 4096):
        g = grids(batch, 132)
        assert g.convs <= 264
        assert 1 <= g.hidden_splits <= 49
        assert g.tiles * g.hidden_splits <= 132
        assert g.inputs == -(-batch // 64) * 16
        assert 1 <= g.weight_splits <= 8
        if batch <= 512:  # all blocks of `hidden_grad` at once
            assert g.inputs + 49 * g.weight_splits <= 264


def test_what_the_fast_step_cannot_train_is_refused_by_name(few):
    with pytest.raises(AssayError, match=r"conv1.weight is \(3, 1, 3, 3\)"):
        flattened(initial(Sizes(first=3), 0), "cpu")
    with pytest.raises(AssayError, match=r"float64; its kernels are for"):
        flattened(initial(Sizes(), 0, "float64"), "cpu")
    with pytest.raises(AssayError, match=r"takes .* uint8, int64"):
        Digits(few[0].float(), few[1], order_of(1, 2), 2)
    if not torch.cuda.is_available():
        with pytest.raises(AssayError, match="no GPU here to train on"):
            Fast(initial(Sizes(), 0))
