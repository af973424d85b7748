"""What Nsight Compute recorded of kernels: metrics by section, and what its rules said.

Numbers are kept as printed, with their unit; `Metric.base` is in seconds, bytes, hertz or as is.
Nsight Compute's units are decimal: 65.54 Kbyte are 65,540 bytes within rounding (65,536).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...errors import AssayError

Size = tuple[int, int, int]
PREFIXES = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
UNITS = {
    **{"s": 1.0, "second": 1.0, "sec": 1.0, "ms": 1e-3, "msecond": 1e-3, "msec": 1e-3},
    **{"us": 1e-6, "usecond": 1e-6, "usec": 1e-6, "ns": 1e-9, "nsecond": 1e-9, "nsec": 1e-9},
    **{"hz": 1.0, "Hz": 1.0, "Khz": 1e3, "Mhz": 1e6, "Ghz": 1e9},
    **{"cycle/nsecond": 1e9, "cycle/ns": 1e9, "cycle/usecond": 1e6, "cycle/second": 1.0},
    **{"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "Tbyte": 1e12},
}
"""Factor to seconds, hertz or bytes; of a unit a block or a second, that of its numerator."""


@dataclass(frozen=True)
class Metric:
    """One printed figure."""

    name: str
    unit: str
    text: str

    @property
    def value(self) -> float | None:
        """The number; None where it is none (`CachePreferNone`, `no data`, `nan`)."""
        try:
            number = float(self.text.replace(",", ""))
        except ValueError:
            return None
        return None if number != number else number

    @property
    def base(self) -> float | None:
        """In seconds, bytes or hertz where the unit is one of those, else as it is."""
        value = self.value
        if value is None:
            return None
        if self.unit in UNITS:
            return value * UNITS[self.unit]
        return value * UNITS.get(self.unit.split("/")[0], 1.0)


@dataclass(frozen=True)
class Finding:
    """What a rule said."""

    section: str
    kind: str
    """`OPT`, `INF` or `WRN`."""
    text: str
    rule: str = ""
    """Its name, where the file has it."""
    speedup_percent: float | None = None
    """Estimated. `local`: of what the rule looks at, not of the kernel."""
    speedup_kind: str = ""


@dataclass(frozen=True)
class Kernel:
    """One launch that was profiled."""

    name: str
    number: int
    """In the order of the file."""
    grid: Size | None = None
    block: Size | None = None
    capability: str = ""
    """`9.0`"""
    sections: Mapping[str, Mapping[str, Metric]] = field(default_factory=dict)
    """Metrics by section and name; pages without sections have one, named empty."""
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()

    def metric(self, name: str, section: str = "") -> Metric | None:
        """A figure by its name, in the first section that has it; None where there is none."""
        for title, metrics in self.sections.items():
            if name in metrics and section in ("", title):
                return metrics[name]
        return None

    def value(self, name: str, section: str = "") -> float | None:
        """The same, its number in base units."""
        found = self.metric(name, section)
        return None if found is None else found.base


@dataclass(frozen=True)
class Report:
    """The kernels of a file, in order."""

    file: str
    form: str
    """`details page`, `details CSV`, `raw CSV`, `ncu-rep`."""
    kernels: tuple[Kernel, ...]


def three(text: str) -> Size | None:
    """`(16, 32, 3)` as three numbers; None for anything else."""
    parts = text.strip().strip("()").split(",")
    if not all(part.strip().isdigit() for part in parts) or not 1 <= len(parts) <= 3:
        return None
    x, y, z = (*map(int, parts), 1, 1)[:3]
    return x, y, z


def not_one(file: str, why: str) -> AssayError:
    """The error for a file that is not of Nsight Compute."""
    return AssayError(f"reading {file} as a page of Nsight Compute: {why}")
