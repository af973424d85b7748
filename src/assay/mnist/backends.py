"""Which way of a layer's Op each back end means, and which back end each layer has.

A back end is chosen for the whole network, and for single layers in its place: `cpp,conv2=torch`.
"""

from __future__ import annotations

from ..errors import AssayError
from ..op import Op
from .model import LAYERS, LOSS

BACKENDS = {
    # back end: variants, the first that an Op has
    "torch": ("eager/batch_norm", "eager"),
    "cpp": ("cpp",),
    "cuda": ("cuda/naive",),
}
DEVICES = {"torch": "cpu", "cpp": "cpu", "cuda": "cuda"}
"""Where a back end runs unless a device is said."""
PARTS = (*(layer.name for layer in (*LAYERS, LOSS)), "load", "update")


def chosen(text: str) -> dict[str, str]:
    """The back end of every layer, and of `load` and `update`, from `cpp` or `cpp,conv2=torch`.

    Raises AssayError for a back end or layer that there is not, or two that can't share a device.
    """
    first, *others = [part.strip() for part in text.split(",")]
    picked = dict.fromkeys(PARTS, _known(first, text))
    for other in others:
        layer, is_one, backend = other.partition("=")
        if not is_one or layer not in PARTS:
            raise AssayError(
                f"--backend {text}: {other!r} is not LAYER=BACKEND; the layers are "
                f"{', '.join(PARTS)}"
            )
        picked[layer] = _known(backend, text)
    on_gpu = {name for name in picked.values() if DEVICES[name] == "cuda"}
    if on_gpu and "cpp" in picked.values():
        raise AssayError(f"--backend {text}: cpp runs on the CPU and {on_gpu.pop()} on a GPU")
    return picked


def _known(name: str, text: str) -> str:
    if name not in BACKENDS:
        raise AssayError(
            f"--backend {text}: no back end {name!r}; there are {', '.join(BACKENDS)}, and "
            "for the whole network alone fast, its step fused on tensor cores, and autograd, "
            "PyTorch's own training"
        )
    return name


def variant_of(op: Op, backend: str) -> str:
    """The name of the variant of an Op that a back end runs. Raises AssayError if it has none."""
    names = [variant.name for variant in op.variants]
    for name in BACKENDS[backend]:
        if name in names:
            return name
    raise AssayError(f"{op.name}: back end {backend} has no variant of it; there are {names}")


def device_of(picked: dict[str, str]) -> str:
    """`cuda` where any layer needs a GPU. Raises AssayError where there is none."""
    import torch

    if all(DEVICES[backend] == "cpu" for backend in picked.values()):
        return "cpu"
    if not torch.cuda.is_available():
        raise AssayError(
            "--backend cuda: no GPU here to train on; its layers are judged without one by "
            "assay check assay.mnist.layers.conv2d -k cuda"
        )
    return "cuda:0"
