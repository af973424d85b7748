"""The network run by our own kernels: each layer's Op and gradient, by the back end it was given.

Every kernel is built once for the sizes it meets and writes into tensors made once, so a step
allocates nothing. Gradients are written, not added to: there is nothing to set to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from ..build import Kernel, build, find_variant
from ..inputs import dtype_name, to_meta
from ..op import Op
from ..types import Case
from ..ways import DEFAULT_ARCH
from .backends import chosen, device_of, variant_of
from .layers.training import load_batch, sgd_step
from .model import LAYERS, LOSS, Layer, Parameters


@dataclass(frozen=True)
class _Place:
    """One kernel with the tensors that it fills."""

    kernel: Kernel
    outputs: list[torch.Tensor]


@dataclass(frozen=True)
class _Ran:
    """What a layer was given and gave, for its gradient."""

    layer: Layer
    inputs: tuple[Any, ...]
    outputs: list[torch.Tensor]
    shape: torch.Size
    """Of what came in, before it was flattened."""


class Network:
    """A network in training: `load`, `forward`, `backward`, `update` are the phases of a step."""

    def __init__(
        self, parameters: Mapping[str, torch.Tensor], backend: str = "cpp", *, watch: Any = None
    ):
        """parameters: all of one dtype, copied. backend: `cpp`, `cpp,conv2=torch`: see `chosen`.

        watch: an `assay.simt.Watch` that runs CUDA kernels on the CPU, where there is no GPU.
        Raises AssayError for a back end that there is not, or that can't run here.
        """
        self._backends, self._watch = chosen(backend), watch
        self.device = "cpu" if watch is not None else device_of(self._backends)
        self.parameters: Parameters = {
            name: value.detach().clone().contiguous().to(self.device)
            for name, value in parameters.items()
        }
        self.gradients: Parameters = {}
        self._dtype = next(iter(self.parameters.values())).dtype
        self._unit = torch.ones(1, dtype=self._dtype, device=self.device)
        self._places: dict[Any, _Place] = {}
        self._ran: list[_Ran] = []
        self.around: Callable[[str, str], AbstractContextManager[None]] | None = None
        """Entered around each call of a kernel with the layer's and the Op's name: see profile."""

    def _run(self, op: Op, part: str, inputs: Sequence[Any]) -> list[torch.Tensor]:
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        key = (part, op.name, *(tuple(x.shape) for x in tensors))
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._build(op, self._backends[part], tuple(inputs))
        with torch.no_grad(), self.around(part, op.name) if self.around else nullcontext():
            made: list[torch.Tensor] = place.kernel.run(place.outputs, list(inputs))
        return made

    def _build(self, op: Op, backend: str, inputs: tuple[Any, ...]) -> _Place:
        variant = find_variant(op, variant_of(op, backend))
        made = op.reference(*(to_meta(x) for x in inputs))
        outputs = made if isinstance(made, tuple) else (made,)
        specs = [(tuple(y.shape), y.dtype) for y in outputs]
        case = Case({"dtype": dtype_name(self._dtype)})
        arch = _arch(self.device)
        knobs = variant.configurations()[0]
        kernel = build(
            op, variant, knobs, case, inputs, specs, self.device, arch, watch=self._watch
        )
        filled = specs[len(op.mutates) :] if variant.fills else []
        return _Place(kernel, [torch.empty(s, dtype=d, device=self.device) for s, d in filled])

    def load(
        self, images: torch.Tensor, labels: torch.Tensor, order: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """x (b, 1, 28, 28), normalised, and labels (b,) int64, of the digits at `order` (b,) int64.

        images (n, 28, 28) and labels (n,) are uint8.
        """
        x, y = self._run(load_batch, "load", (images, labels, order, self._unit))
        return x, y

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """(b, classes) of images (b, 1, side, side); what `backward` needs is kept."""
        self._ran = []
        for layer in LAYERS:
            shape = x.shape
            given = x.flatten(1) if layer.flattens else x
            inputs = (given, *(self.parameters[name] for name in layer.parameters))
            outputs = self._run(layer.op, layer.name, inputs)
            self._ran.append(_Ran(layer, inputs, outputs, shape))
            x = outputs[0]
        return x

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The mean loss, a tensor without dimensions; it is not read here."""
        inputs = (self.logits(x), labels)
        outputs = self._run(LOSS.op, LOSS.name, inputs)
        self._ran.append(_Ran(LOSS, inputs, outputs, inputs[0].shape))
        return outputs[0]

    def backward(self) -> Parameters:
        """The gradient of every parameter, of the last `forward`."""
        dy = self._unit[0]
        for ran in reversed(self._ran):
            join = ran.layer.gradient.of
            assert join is not None
            saved = join.saved(ran.inputs, ran.outputs)
            dx, *rest = self._run(ran.layer.gradient, ran.layer.name, (dy, *saved))
            self.gradients.update(zip(ran.layer.parameters, rest))
            dy = dx.view(ran.shape)
        return self.gradients

    def update(self, rate: float) -> None:
        """w <- w - rate g, for every parameter."""
        for name, value in self.parameters.items():
            self._update(value, self.gradients[name], rate)

    def _update(self, value: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        made = self._run(sgd_step, "update", (value, gradient, rate))
        if made[0] is not value:  # the reference returns what the weights shall become
            value.copy_(made[0])

    def zero(self) -> None:
        """Nothing: gradients are overwritten."""


def _arch(device: str) -> str:
    if not device.startswith("cuda"):
        return DEFAULT_ARCH
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"
