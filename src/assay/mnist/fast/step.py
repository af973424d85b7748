"""One training step as seven launches: its tensors, the size of every grid, the arguments.

Nothing is allocated and nothing waited for after the first step of a batch size, so a step can be
captured in a CUDA graph. All parameters lie in one tensor, in the order of `Sizes.shapes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import torch

from ...errors import AssayError
from ...ways import DEFAULT_ARCH
from ..model import Parameters, Sizes
from . import kernels

SIZES = Sizes()
THREADS = 256
PARAMETERS = 207_018
FLAT, HIDDEN, CLASSES, CHUNKS, TILE = 1568, 128, 10, 49, 64
CONV2, HEAD, HEAD_LOSS, D1, KNOWN1, KNOWN2 = 4608, 1424, 1418, 256, 165, 128
FINISH_BLOCKS = 196 + 45 + 144 + 16
CONVS_SHARED = 111_736
"""Bytes of `ConvsShared` in convs_grad.cuh."""
RESIDENT = 2
"""Blocks of `second_conv`, `hidden_grad` and `convs_grad` on a multiprocessor."""


@dataclass(frozen=True)
class Grids:
    """How many blocks each kernel has for a batch, so that about one wave fills the device."""

    products: int
    convs: int
    tiles: int
    hidden_splits: int
    head: int
    weight_splits: int

    @property
    def inputs(self) -> int:
        """Blocks of `hidden_grad` that make the gradient of its inputs."""
        return self.tiles * 16


def grids(batch: int, processors: int) -> Grids:
    tiles, chunks = ceil(batch / TILE), ceil(batch / 32)
    room = (processors * RESIDENT - tiles * 16) // CHUNKS
    """Parts of the batch for which all blocks of `hidden_grad` are resident at once."""
    return Grids(
        products=min(batch, processors * RESIDENT),
        convs=min(batch, processors * RESIDENT),
        tiles=tiles,
        hidden_splits=max(1, min(24, processors // tiles)),
        head=min(ceil(batch / 8), processors),
        weight_splits=max(1, min(8, max(chunks // 8, min(chunks, room)))),
    )


@dataclass(frozen=True)
class Digits:
    """The digits of steps: images (n, 28, 28) and labels (n,) uint8, order int64, all on a device.

    Step s takes the `batch` digits at order[s * batch ...].
    """

    images: torch.Tensor
    labels: torch.Tensor
    order: torch.Tensor
    batch: int

    def __post_init__(self) -> None:
        if (
            self.images.dtype != torch.uint8
            or self.images.shape[1:] != (28, 28)
            or self.labels.dtype != torch.uint8
            or self.order.dtype != torch.int64
            or len(self.images) != len(self.labels)
            or not all(t.is_contiguous() for t in (self.images, self.labels, self.order))
        ):
            raise AssayError(
                f"digits: images {tuple(self.images.shape)} {self.images.dtype}, labels "
                f"{tuple(self.labels.shape)} {self.labels.dtype}, order {self.order.dtype}; the "
                "fast step takes (n, 28, 28) and (n,) uint8, int64, contiguous"
            )


class Step:
    """The kernels with their tensors, for one batch size."""

    def __init__(
        self,
        handle: Any,
        flat: torch.Tensor,
        gradients: torch.Tensor,
        batch: int,
        processors: int,
        *,
        early: bool = True,
    ):
        """early: kernels may start before the one in front of them has ended (see step.cu)."""
        self.kernels, self.flat, self.batch, self._early = handle, flat, batch, early
        self.grids = g = grids(batch, processors)
        self._gradients = gradients

        def floats(*shape: int) -> torch.Tensor:
            return torch.empty(shape, device=flat.device)

        self.products, self.known1 = floats(g.products, 64), floats(KNOWN1)
        self.m, self.parts2, self.known2 = floats(batch, FLAT), floats(g.convs, 64), floats(KNOWN2)
        self.hidden = floats(g.hidden_splits, batch, HIDDEN)
        self.logits, self.dh = floats(batch, CLASSES), floats(batch, HIDDEN)
        self.heads, self.dz = floats(g.head, HEAD), floats(batch, FLAT)
        self.parts2_grad, self.sums2 = floats(g.tiles, 64), floats(64)
        self.fc1 = floats(g.weight_splits, HIDDEN, FLAT)
        self.parts_k, self.parts_1 = floats(g.convs, CONV2), floats(g.convs, D1)

    def launch(
        self, name: str, grid: Any, *args: Any, shared: int = 0, follows: bool = True
    ) -> None:
        early = self._early and follows
        self.kernels[name](grid=grid, block=THREADS, shared=shared, early=early)(*args)

    def forward(
        self,
        digits: Digits,
        step: torch.Tensor,
        *,
        smooth: float = 0.0,
        train: bool = True,
        follows: bool = False,
    ) -> None:
        """Logits of step `step` (int32); with `train` its loss and the gradients of the head.

        follows: what was launched last on the stream is `finish` of this step's batch size.
        """
        g, p = self.grids, self.flat
        where = (digits.images, digits.order, step, self.batch)
        self.launch("patch_products", g.products, self.products, *where, follows=follows)
        self.launch(
            *("second_conv", g.convs, self.m, self.parts2, self.known1),
            *(self.products, g.products, p, *where),
        )
        self.launch(
            *("hidden", (g.tiles, g.hidden_splits), self.hidden, self.known2, self.m),
            *(self.parts2, g.convs, p, self.batch),
        )
        self.launch(
            *("head", g.head, self.logits, self.dh, self.heads, step, self.hidden),
            *(g.hidden_splits, p, digits.labels, digits.order, self.batch, smooth, int(train)),
        )

    def loss(self) -> torch.Tensor:
        """The mean loss of the last `forward`, a tensor without dimensions."""
        return self.heads[:, HEAD_LOSS].sum()

    def backward(self, digits: Digits, step: torch.Tensor, advance: int) -> None:
        """Partial gradients of all weights; `step` goes up by `advance`."""
        g, p = self.grids, self.flat
        self.launch(
            *("hidden_grad", g.inputs + CHUNKS * g.weight_splits, self.dz, self.parts2_grad),
            *(self.fc1, step, advance, self.dh, self.m, self.known2, p, self.batch),
            *(g.inputs, g.weight_splits),
        )
        self.launch(
            *("convs_grad", g.convs, self.parts_k, self.parts_1, self.sums2, self.dz),
            *(self.parts2_grad, g.tiles, self.known1, self.known2, p),
            *(digits.images, digits.order, self.batch),
            shared=CONVS_SHARED,
        )

    def finish(
        self,
        step: torch.Tensor,
        advance: int,
        losses: torch.Tensor,
        rates: torch.Tensor,
        *,
        keep: bool,
        momentum: float = 0.0,
        speed: torch.Tensor | None = None,
    ) -> None:
        """Sums the partial gradients: kept, or with `keep` False the weights go against them.

        losses and rates: float32, at least one for each step that `step` will count.
        """
        g, p = self.grids, self.flat
        self.launch(
            *("finish", FINISH_BLOCKS, p, speed if speed is not None else p),
            *(self._gradients, losses, rates, step, advance, momentum, int(keep)),
            *(self.fc1, g.weight_splits, self.parts_k),
            *(self.parts_1, g.convs, self.heads, g.head, self.known1, self.sums2, self.batch),
        )

    def update(self, rates: torch.Tensor) -> None:
        """w <- w - rates[0] g, of gradients that `finish` kept."""
        grid = ceil(PARAMETERS / THREADS)
        self.launch("update_all", grid, self.flat, self._gradients, rates, follows=False)


def flattened(parameters: Mapping[str, torch.Tensor], device: str) -> torch.Tensor:
    """All parameters in one float32 tensor. Raises AssayError for other sizes or types."""
    for name, shape in SIZES.shapes().items():
        value = parameters[name]
        if tuple(value.shape) != shape or value.dtype != torch.float32:
            raise AssayError(
                f"back end fast: {name} is {tuple(value.shape)} {value.dtype}; its kernels are "
                f"for {shape} float32, the sizes of the notes; use cuda for others"
            )
    return torch.cat([parameters[name].detach().flatten() for name in SIZES.shapes()]).to(device)


def views(flat: torch.Tensor) -> Parameters:
    """The parameters that lie in a flat tensor, by name."""
    made, at = {}, 0
    for name, shape in SIZES.shapes().items():
        count = torch.Size(shape).numel()
        made[name] = flat[at : at + count].view(shape)
        at += count
    return made


def loaded(device: str, watch: Any = None) -> tuple[Any, int]:
    """(what launches the kernels, multiprocessors of the device)."""
    if watch is not None:
        return kernels.load("cpu", DEFAULT_ARCH, watch), 132
    properties = torch.cuda.get_device_properties(device)
    arch = f"sm_{properties.major}{properties.minor}"
    return kernels.load(device, arch), properties.multi_processor_count
