"""The network by our own kernels: its gradients, its training, and that it goes on bit for bit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from assay import AssayError
from assay.mnist import agreement, checkpoint, data, layers, train
from assay.mnist.backends import PARTS, chosen, variant_of
from assay.mnist.data import Data, Digits
from assay.mnist.layers.batchnorm2d import batchnorm2d, batchnorm2d_grad
from assay.mnist.model import LAYERS, LOSS, Sizes, check, digest, initial
from assay.mnist.network import Network
from assay.mnist.twin import Twin, from_torch
from assay.simt import Watch

NAIVE = re.findall(
    r"__global__ void (\w+)", (Path(layers.__file__).parent / "naive.cu").read_text()
)
SMALL = Sizes(first=3, second=5, hidden=7)


@pytest.fixture(scope="module")
def few() -> Data:
    """The first digits of the sample."""
    whole = data.load()
    return Data(
        Digits(whole.train.images[:70], whole.train.labels[:70]),
        Digits(whole.test.images[:40], whole.test.labels[:40]),
        "the first digits of the sample",
    )


def tensors(digits: Digits) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(digits.images.copy()), torch.from_numpy(digits.labels.copy())


def stepped(net, digits, order):
    images, labels = tensors(digits)
    loss = net.forward(*net.load(images, labels, order))
    return float(loss), dict(net.backward())


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    # In float32 a window of the pooling may choose another pixel than in float64, which is much
    # of the gradient where weights are few: there the arithmetic alone is compared, in float64.
    [(Sizes(), "float64"), (SMALL, "float64"), (Sizes(), "float32")],
)
@pytest.mark.parametrize(
    "backend",
    [
        *("cpp", "torch"),
        pytest.param("cpp,conv2=torch,fc1=torch,update=torch", marks=pytest.mark.full),
    ],
)
def test_gradients_of_the_whole_network_are_those_of_autograd(few, sizes, dtype, backend):
    parameters, order = initial(sizes, 3, dtype), torch.arange(1, 34)
    loss, found = stepped(Network(parameters, backend), few.train, order)
    true = agreement.truth(parameters, *tensors(few.train), order)
    assert set(found) == set(sizes.shapes())
    wrong = [a for a in agreement.gradients(found, true, dtype) if not a.holds]
    assert not wrong
    twin = Twin(initial(sizes, 3, "float64"))
    assert loss == pytest.approx(stepped(twin, few.train, order)[0], rel=1e-6)


@pytest.mark.gallery
def test_a_step_of_the_gpu_is_that_of_autograd_by_its_compiled_code(few):
    """The whole network by the naive CUDA, each kernel translated and run on the CPU."""
    parameters, order = initial(SMALL, 3, "float64"), torch.arange(4)
    watch = Watch()
    net = Network(parameters, "cuda", watch=watch)
    _, found = stepped(net, few.train, order)
    true = agreement.truth(parameters, *tensors(few.train), order)
    assert not [a for a in agreement.gradients(found, true, "float64") if not a.holds]
    net.update(0.05)
    for name, value in net.parameters.items():
        assert torch.allclose(value, parameters[name] - 0.05 * true[name], rtol=1e-9, atol=1e-12)
    assert not watch.faults
    assert len(watch.programs) == len(NAIVE), "every kernel was launched"


def test_the_comparison_notices_a_wrong_gradient(few):
    parameters, order = initial(SMALL, 3, "float64"), torch.arange(20)
    true = agreement.truth(parameters, *tensors(few.train), order)
    for name in true:
        wrong = dict(true)
        wrong[name] = true[name] + 1e-3 * true[name].abs().max() + 1e-2
        failed = [a.name for a in agreement.gradients(wrong, true, "float32") if not a.holds]
        assert failed == [name]
    nothing = {name: torch.full_like(t, torch.nan) for name, t in true.items()}
    assert not any(a.holds for a in agreement.gradients(nothing, true, "float32"))


def test_the_gradient_of_a_bias_before_batchnorm_is_zero(few):
    true = agreement.truth(initial(SMALL, 3), *tensors(few.train), torch.arange(20))
    assert float(true["conv1.bias"].abs().max()) < 1e-12


def test_loss_curves_are_compared_by_windows():
    falling = [1.0 / (i + 1) for i in range(40)]
    assert agreement.curves(falling, falling) == 0
    assert agreement.curves([v + 0.05 for v in falling], falling) == pytest.approx(0.05)
    assert not agreement.curves([*falling[:-1], float("nan")], falling) <= agreement.LOSS
    with pytest.raises(ValueError, match="at least 10"):
        agreement.curves([1.0], [1.0])


def test_weights_start_alike_everywhere_and_come_back_bit_equal():
    parameters = initial(Sizes(), 0)
    assert sum(p.numel() for p in parameters.values()) == 207_018
    assert digest(parameters) == "c942c1eea9ab"
    assert digest(parameters) != digest(initial(Sizes(), 1))
    for net in (Network(parameters), Twin(parameters), Twin(parameters, channels_last=True)):
        assert digest(from_torch(net.parameters)) == digest(parameters)
    with pytest.raises(AssayError, match=r"fc1.weight is \(128, 1568\)"):
        check(SMALL, {**initial(SMALL, 0), "fc1.weight": parameters["fc1.weight"]}, "x")


def test_every_layer_has_every_back_end_for_both_directions():
    for layer in (*LAYERS, LOSS):
        for backend in ("torch", "cpp", "cuda"):
            assert variant_of(layer.op, backend).startswith(("eager", "cpp", "cuda"))
            assert variant_of(layer.gradient, backend)
    assert variant_of(batchnorm2d, "torch") == "eager/batch_norm"
    assert variant_of(batchnorm2d_grad, "torch") == "eager"


def test_back_ends_are_chosen_by_layer_and_refused_by_name():
    picked = chosen("cpp, conv2=torch")
    assert picked.pop("conv2") == "torch"
    assert set(picked.values()) == {"cpp"}
    assert len(picked) == len(PARTS) - 1
    for text, said in {
        "cpu": "no back end 'cpu'; there are torch, cpp, cuda",
        "cpp,conv3=torch": "'conv3=torch' is not LAYER=BACKEND; the layers are conv1",
        "cpp,conv2": "'conv2' is not LAYER=BACKEND",
        "cuda,conv2=cpp": "cpp runs on the CPU and cuda on a GPU",
    }.items():
        with pytest.raises(AssayError, match=said):
            chosen(text)
    if not torch.cuda.is_available():
        with pytest.raises(AssayError, match="no GPU here to train on"):
            Network(initial(SMALL, 0), "cuda")


PLAN = train.Plan(epochs=3, batch=16, sizes=SMALL, seed=5)


@pytest.mark.parametrize("backend", ["cpp", "autograd"])
def test_a_training_goes_on_bit_for_bit(few, tmp_path, backend):
    begun = train.start(replace(PLAN, backend=backend), few)
    whole = train.train(begun, few)
    assert whole.steps == 12
    assert len(whole.losses) == 12
    assert len(whole.accuracies) == 3
    assert whole.losses[-1] < whole.losses[0]
    checkpoint.save(train.train(begun, few, until=7), tmp_path / "kept.npz")  # within an epoch
    kept = checkpoint.load(tmp_path / "kept.npz")
    assert kept.steps == 7
    assert digest(kept.parameters) != digest(whole.parameters)
    after = train.train(kept, few)
    assert digest(after.parameters) == digest(whole.parameters)
    assert (after.losses, after.accuracies) == (whole.losses, whole.accuracies)


def test_other_digits_and_a_training_that_diverges_are_refused(few):
    other = replace(few, train=few.test)
    with pytest.raises(AssayError, match="are not those that the training began with"):
        train.train(train.start(PLAN, few), other)
    with pytest.raises(AssayError, match="the training diverged; lower --rate"):
        train.train(train.start(replace(PLAN, rate=1e38), few), few)
    with pytest.raises(AssayError, match="at least 2 digits"):
        train.Plan(batch=1)


def test_an_epoch_has_every_digit_once_in_an_order_of_its_own():
    first, second = train.order(0, 0, 70), train.order(0, 1, 70)
    assert first.sort()[0].tolist() == second.sort()[0].tolist() == list(range(70))
    assert first.tolist() != second.tolist() != train.order(1, 1, 70).tolist()
    assert first.tolist() == train.order(0, 0, 70).tolist()


def test_a_damaged_checkpoint_is_refused_by_name(few, tmp_path):
    path = tmp_path / "kept.npz"
    with pytest.raises(AssayError, match="no such checkpoint"):
        checkpoint.load(path)
    checkpoint.save(train.start(PLAN, few), path)
    whole = path.read_bytes()
    for wrong in (whole[:-50], b"", b"not a file of arrays", whole[:2000] + b"!!!!" + whole[2004:]):
        path.write_bytes(wrong)
        with pytest.raises(AssayError, match=r"kept\.npz"):
            checkpoint.load(path)
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.gallery
def test_a_killed_training_goes_on_bit_for_bit(tmp_path):
    """SIGKILL at any moment: the checkpoint is whole, and the end is that of one run."""

    def command(kept: Path, *more: str) -> list[str]:
        return [sys.executable, "-m", "assay", "mnist", "train", *more,
                "--checkpoint", str(kept), "--epochs", "2", "--every", "5"]  # fmt: skip

    subprocess.run(command(tmp_path / "whole.npz"), check=True, capture_output=True)
    kept = tmp_path / "kept.npz"
    running = subprocess.Popen(command(kept), stdout=subprocess.DEVNULL)
    while not kept.exists():
        assert running.poll() is None, "it ended before its first checkpoint"
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    cut = checkpoint.load(kept)
    whole = checkpoint.load(tmp_path / "whole.npz")
    assert 0 < cut.steps < whole.steps
    subprocess.run([*command(kept), "--resume"], check=True, capture_output=True)
    after = checkpoint.load(kept)
    assert digest(after.parameters) == digest(whole.parameters)
    assert after.losses == whole.losses
