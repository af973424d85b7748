"""PNG of 8 bits a channel, written and read: enough for digits, without another package.

Format: Portable Network Graphics, third edition (W3C), sections 5, 9 and 11.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from .idx import DataError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Of the kinds of colour that are read: grey, RGB, grey and alpha, RGB and alpha."""
LUMINANCE = np.array([0.299, 0.587, 0.114])
"""Of red, green and blue: ITU-R BT.601."""
MOST_PIXELS = 1 << 24


def write(path: Path, image: np.ndarray) -> None:
    """Writes a grey image (rows, columns) of uint8."""
    rows, columns = image.shape
    head = struct.pack(">IIBBBBB", columns, rows, 8, 0, 0, 0, 0)
    lines = np.zeros((rows, columns + 1), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = image
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    path.write_bytes(SIGNATURE + b"".join(_chunk(kind, content) for kind, content in parts))


def _chunk(kind: bytes, content: bytes) -> bytes:
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


def read(path: Path) -> np.ndarray:
    """The image in a file as grey, (rows, columns) uint8; what is transparent counts as black.

    Raises DataError naming the file: no PNG, damaged, or of a kind that is not read here.
    """
    content = path.read_bytes()
    if not content.startswith(SIGNATURE):
        raise DataError(f"{path}: not a PNG")
    head, data = b"", b""
    at = len(SIGNATURE)
    while at + 12 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, at)
        body = content[at + 8 : at + 8 + size]
        sums = content[at + 8 + size : at + 12 + size]
        if len(sums) < 4 or zlib.crc32(kind + body) != int.from_bytes(sums, "big"):
            raise DataError(f"{path}: damaged: the checksum of its {kind!r} is wrong")
        head, data = (body if kind == b"IHDR" else head), data + (body if kind == b"IDAT" else b"")
        if kind == b"IEND":
            return _image(path, head, data)
        at += 12 + size
    raise DataError(f"{path}: truncated: it has no end")


def _image(path: Path, head: bytes, data: bytes) -> np.ndarray:
    if len(head) != 13:
        raise DataError(f"{path}: damaged: its header has {len(head)} bytes, not 13")
    columns, rows, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head)
    if bits != 8 or colour not in CHANNELS or interlaced:
        raise DataError(
            f"{path}: {bits} bits of colour type {colour}{', interlaced' if interlaced else ''}; "
            "save it as a grey PNG of 8 bits, not interlaced"
        )
    if not 0 < rows * columns <= MOST_PIXELS:
        raise DataError(f"{path}: {columns}x{rows} pixels; the most read is {MOST_PIXELS:,}")
    channels = CHANNELS[colour]
    stride = columns * channels + 1
    try:
        raw = zlib.decompressobj().decompress(data, rows * stride + 1)
    except zlib.error as error:
        raise DataError(f"{path}: damaged: {error}") from None
    if len(raw) != rows * stride:
        raise DataError(f"{path}: damaged: {len(raw):,} bytes of pixels, not {rows * stride:,}")
    lines = np.frombuffer(raw, np.uint8).reshape(rows, stride)
    return _grey(_unfiltered(path, lines, channels).reshape(rows, columns, channels))


def _unfiltered(path: Path, lines: np.ndarray, channels: int) -> np.ndarray:
    """The bytes of each line from its differences; section 9 of the format."""
    made = np.zeros((len(lines), lines.shape[1] - 1), np.uint8)
    above = [0] * made.shape[1]
    for row, (kind, *given) in enumerate(lines.tolist()):
        if kind > 4:
            raise DataError(f"{path}: damaged: line {row} has filter {kind}")
        line: list[int] = []
        for i, value in enumerate(given):
            left = line[i - channels] if i >= channels else 0
            corner = above[i - channels] if i >= channels else 0
            line.append((value + _predicted(kind, left, above[i], corner)) & 0xFF)
        made[row], above = line, line
    return made


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    guess = left + up - corner  # Paeth: the neighbour nearest to it
    return min((left, up, corner), key=lambda value: abs(guess - value))


def _grey(image: np.ndarray) -> np.ndarray:
    channels = image.shape[2]
    colour = image[..., :3] @ LUMINANCE if channels >= 3 else image[..., 0].astype(float)
    if channels in (2, 4):
        colour = colour * (image[..., -1] / 255)
    return np.rint(colour).astype(np.uint8)
