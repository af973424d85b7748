"""What a compiled kernel is made for: machine code for one architecture, PTX for those to come.

A cubin runs on its own architecture alone; PTX is compiled by the driver when it is loaded, on any
architecture from its target on. Loading shows the price of that.
"""

from __future__ import annotations

import re
import struct
import time
from dataclasses import dataclass

from ..errors import AssayError

MACHINE_CUDA = 190
"""e_machine of a cubin."""
NEW_ABI = 8
"""e_ident[EI_ABIVERSION] from which e_flags holds the architecture in its second byte (LLVM,
llvm/BinaryFormat/ELF.h: EF_CUDA_SM_MASK); before, in its first."""


@dataclass(frozen=True)
class Embedded:
    """What lies in a build."""

    cubin: str
    """Architecture of the machine code, from the ELF header: `sm_90`."""
    ptx_target: str
    ptx_version: str


def embedded(cubin: bytes, ptx: str) -> Embedded:
    """Architectures of a cubin and of its PTX. Raises AssayError for anything else."""
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    version = re.search(r"^\.version\s+([\d.]+)", ptx, re.MULTILINE)
    if not target or not version:
        raise AssayError("reading PTX: it has no .version and .target line; build it again")
    return Embedded(architecture(cubin), target.group(1), version.group(1))


def architecture(cubin: bytes) -> str:
    """What a cubin was made for: `sm_90`. Raises AssayError for anything else than a cubin."""
    if len(cubin) < 64 or cubin[:5] != b"\x7fELF\x02" or _half(cubin, 18) != MACHINE_CUDA:
        raise AssayError("reading a cubin: it is no 64-bit CUDA ELF file; build it again")
    (flags,) = struct.unpack_from("<I", cubin, 48)
    number = flags >> 8 & 0xFF if cubin[8] >= NEW_ABI else flags & 0xFF
    return f"sm_{number}"


def _half(data: bytes, offset: int) -> int:
    (value,) = struct.unpack_from("<H", data, offset)
    return int(value)


def load_seconds(cubin: bytes, ptx: str, kernel: str) -> tuple[float, float]:
    """Seconds to load a kernel from machine code, and from PTX compiled by the driver. GPU only.

    kernel: its lowered name. Set CUDA_CACHE_DISABLE=1 before CUDA starts: otherwise the driver
    keeps what it compiled, and the second answer is that of reading its cache.
    """
    from cuda.core import Device, ObjectCode

    Device().set_current()
    seconds = []
    for make, content in ((ObjectCode.from_cubin, cubin), (ObjectCode.from_ptx, ptx.encode())):
        start = time.perf_counter()
        make(content).get_kernel(kernel)
        seconds.append(time.perf_counter() - start)
    return seconds[0], seconds[1]
