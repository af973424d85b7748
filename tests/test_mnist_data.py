"""IDX files, PNG files and the sample: what is read, and what is refused by name."""

from __future__ import annotations

import gzip
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from assay.mnist import data, digit, idx, png
from assay.mnist.idx import IMAGES, LABELS, DataError


def images(count=3, rows=28, columns=28):
    made = np.random.default_rng(0).integers(0, 256, (count, rows, columns))
    return made.astype(np.uint8)


def folder(place: Path, **other: bytes) -> Path:
    """A whole set of 3 digits, with some files' bytes in place of the right ones."""
    for part in ("train", "t10k"):
        idx.write(place / f"{part}-images-idx3-ubyte.gz", images())
        idx.write(place / f"{part}-labels-idx1-ubyte.gz", np.array([1, 2, 9], np.uint8))
    for name, content in other.items():
        (place / f"{name.replace('_', '-')}-ubyte.gz").write_bytes(content)
    return place


@pytest.mark.parametrize("name", ["x.gz", "x"])
def test_idx_comes_back_as_it_went(tmp_path, name):
    idx.write(tmp_path / name, images())
    assert (idx.read(tmp_path / name, IMAGES) == images()).all()
    head = gzip.decompress((tmp_path / "x.gz").read_bytes())[:16] if name == "x.gz" else None
    assert head in (None, struct.pack(">4I", 0x803, 3, 28, 28))


WHOLE = struct.pack(">4I", 0x803, 2, 28, 28) + bytes(2 * 784)
WRONG = {
    "truncated": (
        WHOLE[:-1],
        "truncated: its header says 2 x 28 x 28 images, 1,568 bytes, .* 1,567",
    ),
    "too long": (WHOLE + b"0", "too long"),
    "no header": (b"\0\0\x08", "3 bytes, too few for the header"),
    "empty": (b"", "0 bytes"),
    "labels": (struct.pack(">2I", 0x801, 2000) + bytes(2000), "holds labels, not images: were"),
    "little-endian": (struct.pack("<4I", 0x803, 2, 28, 28) + bytes(1568), "little-endian"),
    "a page": (b"<!doctype html><html> not found", "not IDX images: it begins with 0x3c21646f"),
    "huge": (
        struct.pack(">4I", 0x803, 0xFFFFFFFF, 28, 28),
        "which no such file has; it is damaged",
    ),
    "cut gzip": (gzip.compress(WHOLE)[:-12], "its gzip stream ends early"),
    "bad gzip": (gzip.compress(WHOLE)[:10] + b"\xff" * 20, "damaged gzip"),
    "bad sum": (gzip.compress(WHOLE)[:-8] + bytes(8), "damaged gzip"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_files_are_refused_by_name(tmp_path, what):
    content, said = WRONG[what]
    path = tmp_path / "train-images"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said) as refused:
        idx.read(path, IMAGES)
    assert str(path) in str(refused.value)


def test_a_missing_file_and_a_missing_folder_are_named(tmp_path):
    with pytest.raises(DataError, match="can't be read: No such file"):
        idx.read(tmp_path / "none", LABELS)
    with pytest.raises(DataError, match=r"no train-images-idx3-ubyte\.gz and no train-images"):
        data.load(tmp_path)
    with pytest.raises(DataError, match="no such folder"):
        data.load(tmp_path / "none")


def test_a_folder_is_read_and_its_parts_must_fit(tmp_path):
    found = data.load(folder(tmp_path))
    assert len(found.train) == len(found.test) == 3
    assert not found.sample
    labels = struct.pack(">2I", 0x801, 2) + b"\1\2"
    with pytest.raises(DataError, match="3 images and 2 labels"):
        data.load(folder(tmp_path, train_labels_idx1=labels))
    labels = struct.pack(">2I", 0x801, 3) + b"\1\2\x0a"
    with pytest.raises(DataError, match="label 10 at 2"):
        data.load(folder(tmp_path, train_labels_idx1=labels))


def test_images_of_another_size_are_refused(tmp_path):
    idx.write(folder(tmp_path) / "t10k-images-idx3-ubyte.gz", images(rows=27))
    with pytest.raises(DataError, match="images of 27x28; the network takes 28x28"):
        data.load(tmp_path)


def test_the_sample_is_real_and_says_that_it_is_one():
    found = data.load()
    assert found.sample
    assert "a sample of MNIST" in found.source
    assert (len(found.train), len(found.test)) == (5000, 1000)
    # The first digits of MNIST, as every page about it shows them.
    assert found.train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert found.test.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert abs(found.train.images.mean() / 255 - 0.1307) < 0.003


def test_a_download_that_fails_says_where_and_what_else_to_do(monkeypatch):
    import sys
    import types

    def retrieve(url, known_hash, fname, path):
        assert known_hash.startswith("md5:")
        raise ValueError(f"hash of {fname} is another")

    fake = types.SimpleNamespace(os_cache=lambda name: Path(name), retrieve=retrieve)
    monkeypatch.setitem(sys.modules, "pooch", fake)
    with pytest.raises(DataError, match=r"no mirror gave it.*hash of .*--data DIR"):
        data.load(download=True)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match="pip install"):
        data.load(download=True)


def test_a_digit_is_printed_row_by_row():
    image = np.zeros((2, 3), np.uint8)
    image[0, 1], image[1, 2] = 255, 128
    assert digit.text(image) == "  @@\n    =="


def chunk(kind, content):
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def made_png(colour, lines, columns, rows, bits=8):
    head = struct.pack(">IIBBBBB", columns, rows, bits, colour, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b"")
    return png.SIGNATURE + b"".join(parts)


def test_png_comes_back_as_it_went(tmp_path):
    path = tmp_path / "x.png"
    png.write(path, images()[0])
    assert (png.read(path) == images()[0]).all()


def filtered(image):
    """The lines of a grey image, each by another of the five filters; by the format's formulas."""
    lines, above = b"", np.zeros(image.shape[1], int)
    for row, line in enumerate(image.astype(int)):
        left, corner = np.r_[0, line[:-1]], np.r_[0, above[:-1]]
        guess = left + above - corner
        near = np.abs(guess - np.stack([left, above, corner])).argmin(0)
        paeth = np.choose(near, [left, above, corner])
        by = [0 * line, left, above, (left + above) // 2, paeth][row % 5]
        lines += bytes([row % 5]) + ((line - by) % 256).astype(np.uint8).tobytes()
        above = line
    return lines


def test_every_filter_and_kind_of_colour_is_read(tmp_path):
    image, path = images()[0][:11], tmp_path / "x.png"
    path.write_bytes(made_png(0, filtered(image), 28, 11))
    assert (png.read(path) == image).all()
    path.write_bytes(made_png(2, b"\0" + bytes([255, 0, 0, 255, 255, 255]), 2, 1))
    assert png.read(path).tolist() == [[76, 255]]
    path.write_bytes(made_png(4, b"\0" + bytes([200, 255, 200, 0]), 2, 1))
    assert png.read(path).tolist() == [[200, 0]]


GREY = made_png(0, b"\0\1\2", 2, 1)
PNGS = {
    "checksum": (GREY[:-20] + b"!" + GREY[-19:], "checksum"),
    "cut": (GREY[:-12], "truncated"),
    "16 bits": (made_png(0, bytes(5), 2, 1, bits=16), "16 bits .* save it as a grey PNG"),
    "short": (made_png(0, b"\0\1", 2, 1), "2 bytes of pixels, not 3"),
    "filter": (made_png(0, b"\7\1\2", 2, 1), "line 0 has filter 7"),
    "other": (b"GIF89a", "not a PNG"),
}


@pytest.mark.parametrize("what", PNGS)
def test_wrong_png_files_are_refused_by_name(tmp_path, what):
    content, said = PNGS[what]
    path = tmp_path / "x.png"
    path.write_bytes(content)
    with pytest.raises(DataError, match=said) as refused:
        png.read(path)
    assert str(path) in str(refused.value)
