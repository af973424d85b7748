"""What a trained network makes of images: the digits and their probabilities.

Batchnorm knows its batch alone, and one image is no batch like those of training. So images are
judged among companions: enough of the sample's training digits to make up 1,000. Each part of up to
100 images is judged so, and what is said of an image hardly depends on the others given with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from .data import SIDE, Digits, check_size, sample
from .idx import IMAGES, DataError, read
from .png import SIGNATURE
from .png import read as read_png
from .train import EVALUATED, State, network, scores

AT_ONCE = 100


@dataclass(frozen=True)
class Guess:
    """What is read in one image."""

    digit: int
    probabilities: tuple[float, ...]


def images_in(path: Path) -> np.ndarray:
    """The images (n, 28, 28) uint8 in a PNG or IDX file, white on black.

    Raises DataError for a file that is neither, is damaged, or has images of another size.
    """
    if path.is_dir():
        raise DataError(f"{path}: a folder; give a PNG or an IDX file")
    try:
        with path.open("rb") as file:
            start = file.read(len(SIGNATURE))
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from None
    if start == SIGNATURE:
        image = read_png(path)
        check_size(image[None], f"{path}")
        return image[None]
    if start[:2] not in (b"\x1f\x8b", b"\x00\x00"):
        raise DataError(f"{path}: neither a PNG nor IDX; give an image of {SIDE}x{SIDE} as PNG")
    images = read(path, IMAGES)
    check_size(images, f"{path}")
    return images


def predict(state: State, images: np.ndarray) -> list[Guess]:
    """What the network of a state reads in images (n, 28, 28) uint8."""
    net = network(state.plan, state.parameters)
    companions = sample().train.images
    found: list[Guess] = []
    for first in range(0, len(images), AT_ONCE):
        part = images[first : first + AT_ONCE]
        batch = np.concatenate([part, companions[: EVALUATED - len(part)]])
        logits = scores(net, Digits(batch, np.zeros(len(batch), np.uint8)))[: len(part)]
        for chances in torch.softmax(logits.double(), 1):
            found.append(Guess(int(chances.argmax()), tuple(chances.tolist())))
    return found
