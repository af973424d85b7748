"""Where digits come from: a folder that you name, a download with checksums, or the sample.

The sample in this package is real: the first 5,000 training digits and the first 1,000 test digits
of MNIST. What is trained on it says so: its figures are not those of MNIST.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .idx import IMAGES, LABELS, DataError, read

SAMPLE = Path(__file__).parent / "sample"
FILES = {
    # name: md5 of the gzipped file as published
    "train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    "train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
    "t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
    "t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
SIDE = 28
CLASSES = 10


@dataclass(frozen=True)
class Digits:
    """Images (n, 28, 28) and labels (n,), both uint8."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Data:
    """What is trained on and what is held out, and where it came from."""

    train: Digits
    test: Digits
    source: str
    sample: bool = False


def load(folder: Path | None = None, *, download: bool = False) -> Data:
    """The digits of a folder, else downloaded ones, else the sample in this package.

    Raises DataError for files that are missing or wrong, or a download that failed.
    """
    if folder is not None:
        return _folder(folder, f"{folder}")
    if download:
        place = _downloaded()
        return _folder(place, f"MNIST, downloaded to {place}")
    data = _folder(SAMPLE, "")
    said = (
        f"a sample of MNIST: its first {len(data.train):,} training digits, and its first "
        f"{len(data.test):,} test digits held out"
    )
    return Data(data.train, data.test, said, sample=True)


def sample() -> Data:
    return load()


def _folder(folder: Path, source: str) -> Data:
    if not folder.is_dir():
        raise DataError(f"--data {folder}: no such folder; it holds {', '.join(FILES)}")
    train, test = (_digits(folder, part) for part in ("train", "t10k"))
    return Data(train, test, source)


def _digits(folder: Path, part: str) -> Digits:
    images = read(_file(folder, f"{part}-images-idx3-ubyte"), IMAGES)
    labels = read(_file(folder, f"{part}-labels-idx1-ubyte"), LABELS)
    return digits(images, labels, f"{folder}: {part}")


def digits(images: np.ndarray, labels: np.ndarray, where: str) -> Digits:
    """Images with their labels. Raises DataError where they don't fit together."""
    if len(images) != len(labels):
        raise DataError(f"{where}: {len(images):,} images and {len(labels):,} labels")
    if not len(images):
        raise DataError(f"{where}: no images")
    check_size(images, where)
    if labels.max() >= CLASSES:
        at = int((labels >= CLASSES).argmax())
        raise DataError(f"{where}: label {labels[at]} at {at}; labels are 0 to {CLASSES - 1}")
    return Digits(images, labels)


def check_size(images: np.ndarray, where: str) -> None:
    """Raises DataError unless images are 28x28."""
    if images.shape[1:] != (SIDE, SIDE):
        size = "x".join(str(s) for s in images.shape[1:])
        raise DataError(f"{where}: images of {size}; the network takes {SIDE}x{SIDE}")


def _file(folder: Path, name: str) -> Path:
    for candidate in (folder / f"{name}.gz", folder / name):
        if candidate.is_file():
            return candidate
    raise DataError(f"{folder}: no {name}.gz and no {name}; --data names a folder with all four")


def _downloaded() -> Path:
    """A folder with the four files, kept between runs, each with the checksum published."""
    try:
        import pooch
    except ImportError:
        raise DataError(
            "--download needs pooch: pip install 'assay[mnist]'; or give a folder: --data DIR"
        ) from None
    place = Path(pooch.os_cache("assay")) / "mnist"
    for name, md5 in FILES.items():
        failed = []
        for mirror in MIRRORS:
            try:
                pooch.retrieve(mirror + name, known_hash=f"md5:{md5}", fname=name, path=place)
                break
            # Every kind of failure of a network, or a file with another checksum.
            except (OSError, ValueError) as error:
                failed.append(f"{mirror}: {error}")
        else:
            raise DataError(f"{name}: no mirror gave it; {'; '.join(failed)}; or use --data DIR")
    return place
