"""What compilers made of one variant, as data: the texts of every level, kernel by kernel."""

from __future__ import annotations

import msgspec

from ...types import Compiled


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of a variant, or one library of a variant whose code runs on the CPU."""

    name: str
    """As its author calls it: `square_vectorised<float, 256>`."""
    entry: str = ""
    """As it is called in PTX and SASS, where it is a GPU's kernel."""
    report: Compiled | None = None
    """Registers, spills, stack and shared memory as the compiler reports them, and the geometry of
    the first launch. A field is None where the compiler does not say."""
    reported_by: str = ""
    """Which compiler says so: `ptxas 13.4.59`."""
    launches: int = 0
    """How often the variant launches it on this case; 0: it is compiled, and not seen launched."""
    texts: dict[str, str] = {}
    """Level to its text."""
    absent: dict[str, str] = {}
    """Level to the reason why there is no text of it."""
    cubin: bytes = b""
    """Machine code whole, as a GPU's driver loads it; kernels of one source share it."""
    notes: tuple[str, ...] = ()


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One variant, compiled for one architecture and one case."""

    op: str
    label: str
    """Variant and knobs: `triton BLOCK=1024`."""
    way: str
    case: str
    dtypes: tuple[str, ...] = ()
    """Of its input and output tensors."""
    arch: str
    source_hash: str = ""
    parts: tuple[Part, ...] = ()
    texts: dict[str, str] = {}
    """Levels that belong to the variant as a whole: `fx`, `inductor`, `log`."""
    absent: dict[str, str] = {}
    notes: tuple[str, ...] = ()

    def of(self, level: str) -> tuple[tuple[str, str], ...]:
        """(name of a kernel or empty, text) of every text of a level."""
        whole = (("", self.texts[level]),) if level in self.texts else ()
        parts = tuple((p.name, p.texts[level]) for p in self.parts if level in p.texts)
        return (*whole, *parts)

    def why_not(self, level: str) -> str:
        """The reason why a level has no text; empty if nothing says."""
        reasons = [self.absent.get(level, ""), *(p.absent.get(level, "") for p in self.parts)]
        return "; ".join(dict.fromkeys(filter(None, reasons)))
