"""What a compute capability or a CUDA version brings: NVIDIA's published tables, in figures."""

from __future__ import annotations

from assay.doctor.parse import numbers

# (first compute capability, first one without it, feature). Source: CUDA C++ Programming Guide,
# "Compute Capabilities"; PTX ISA, "target notes" of mma, wgmma, cp.async, tcgen05.
_FEATURES = (
    ((7, 0), None, "fp16 tensor cores"),
    ((7, 5), None, "int8 tensor cores"),
    ((8, 0), None, "bf16"),
    ((8, 0), None, "tf32 tensor cores"),
    ((8, 0), None, "cp.async"),
    ((8, 9), None, "fp8 tensor cores"),
    ((9, 0), None, "TMA"),
    ((9, 0), None, "clusters"),
    ((9, 0), (10, 0), "wgmma"),
    ((10, 0), (12, 0), "tcgen05"),
    ((10, 0), None, "fp4 tensor cores"),
)

# Oldest Linux driver for any release of a CUDA major version. Source: CUDA Toolkit release notes,
# "CUDA minor version compatibility".
OLDEST_DRIVER = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}

# The newest PTX ISA version that a CUDA release knows. Source: PTX ISA, "Release Notes".
_PTX = {
    (11, 0): "7.0", (11, 1): "7.1", (11, 2): "7.2", (11, 3): "7.3", (11, 4): "7.4",
    (11, 5): "7.5", (11, 6): "7.6", (11, 7): "7.7", (11, 8): "7.8", (12, 0): "8.0",
    (12, 1): "8.1", (12, 2): "8.2", (12, 3): "8.3", (12, 4): "8.4", (12, 5): "8.5",
    (12, 6): "8.5", (12, 7): "8.6", (12, 8): "8.7", (12, 9): "8.8",
}  # fmt: skip


def features(capability: tuple[int, int]) -> tuple[str, ...]:
    """What this compute capability can do beyond plain CUDA, by name."""
    return tuple(
        name
        for first, end, name in _FEATURES
        if capability >= first and (end is None or capability < end)
    )


def ptx_of(cuda: str) -> str:
    """The newest PTX that this CUDA version takes, such as "9.0" for "13.0"; "" if not known.

    CUDA 13.x has been counted as PTX 9.x: read off 13.0, 13.4 and 13.5.
    """
    version = numbers(cuda)[:2]
    if len(version) == 2 and version[0] == 13:
        return f"9.{version[1]}"
    return _PTX.get((version[0], version[1]), "") if len(version) == 2 else ""
