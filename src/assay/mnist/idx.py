"""IDX, the format of MNIST: a big-endian header (magic, sizes), then bytes; often gzipped.

The magic number is 0x00 0x00 TYPE DIMENSIONS: 0x803 is a stack of images of unsigned bytes, 0x801 a
list of labels. Format: the page of MNIST by LeCun, Cortes and Burges.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from ..errors import AssayError

IMAGES, LABELS = 0x803, 0x801
KINDS = {IMAGES: "images", LABELS: "labels"}
MOST_BYTES = 1 << 30
"""No set of digits is larger: a header that says so is damaged."""


class DataError(AssayError):
    """A file of digits that can't be read, or is not what it should be."""


def read(path: Path, magic: int) -> np.ndarray:
    """The array in a file: uint8, (n, rows, columns) for IMAGES and (n,) for LABELS.

    The file may be gzipped, whatever its name. Raises DataError naming the file and what is wrong:
    missing, not IDX, of another kind, shorter or longer than its header says.
    """
    content = _content(path)
    kind, dimensions = KINDS[magic], magic & 0xFF
    need = 4 + 4 * dimensions
    if len(content) < need:
        raise DataError(
            f"{path}: {len(content)} bytes, too few for the header of IDX {kind} ({need} bytes); "
            "fetch it again"
        )
    (found,) = struct.unpack(">I", content[:4])
    if found != magic:
        raise DataError(_other(path, found, magic))
    sizes = struct.unpack(f">{dimensions}I", content[4:need])
    wanted, given = math.prod(sizes), len(content) - need
    said = " x ".join(f"{size:,}" for size in sizes)
    if wanted > MOST_BYTES:
        raise DataError(
            f"{path}: its header says {said} {kind}, which no such file has; it is damaged"
        )
    if given != wanted:
        how = "truncated" if given < wanted else "too long"
        raise DataError(
            f"{path}: {how}: its header says {said} {kind}, {wanted:,} bytes, and {given:,} "
            f"follow; fetch it again"
        )
    return np.frombuffer(content, np.uint8, offset=need).reshape(sizes)


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: can't be read: {error.strerror or error}") from None
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except EOFError:
        raise DataError(f"{path}: truncated: its gzip stream ends early; fetch it again") from None
    except (OSError, zlib.error) as error:
        raise DataError(f"{path}: damaged gzip: {error}; fetch it again") from None


def _other(path: Path, found: int, magic: int) -> str:
    """What a file with another magic number is, as far as that tells."""
    swapped = int.from_bytes(found.to_bytes(4, "little"), "big")
    if found in KINDS:
        return f"{path}: holds {KINDS[found]}, not {KINDS[magic]}: were the two files exchanged?"
    if swapped in KINDS:
        return f"{path}: little-endian, and IDX is big-endian: write its header in network order"
    return (
        f"{path}: not IDX {KINDS[magic]}: it begins with {found:#010x}, not {magic:#010x}; "
        "give a file such as train-images-idx3-ubyte.gz"
    )


def write(path: Path, array: np.ndarray) -> None:
    """Writes uint8 images (n, rows, columns) or labels (n,) as IDX, gzipped if named `.gz`."""
    magic = IMAGES if array.ndim == 3 else LABELS
    head = struct.pack(f">{1 + array.ndim}I", magic, *array.shape)
    content = head + np.ascontiguousarray(array, np.uint8).tobytes()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
