"""A digit as text: each pixel two characters wide, by shades of grey."""

from __future__ import annotations

import numpy as np

SHADES = " .:-=+*#%@"


def text(image: np.ndarray) -> str:
    """An image (rows, columns) uint8 as lines of characters, each pixel two wide."""
    levels = image.astype(int) * (len(SHADES) - 1) // 255
    return "\n".join("".join(SHADES[v] * 2 for v in row).rstrip() for row in levels)
