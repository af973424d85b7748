"""Numbers for people; storage is in base units."""

from __future__ import annotations

from ..clock.statistics import seconds

__all__ = ["count", "rate", "seconds", "size", "work"]


def _scaled(value: float, unit: str, base: float = 1000.0) -> str:
    for prefix in ("", "k", "M", "G", "T"):
        if abs(value) < base or prefix == "T":
            digits = f"{value:.0f}" if prefix == "" or value >= 100 else f"{value:.3g}"
            return f"{digits} {prefix}{unit}"
        value /= base
    raise AssertionError("the last prefix always returns")


def size(value: int) -> str:
    """Bytes: `134 MB`, decimal as in bandwidths."""
    return _scaled(float(value), "B")


def work(value: int) -> str:
    """Floating-point operations: `67.1 MFLOP`."""
    return _scaled(float(value), "FLOP")


def rate(value: float, unit: str = "B") -> str:
    """Bytes or FLOP a second in GB/s or GFLOP/s."""
    scaled = value / 1e9
    return f"{scaled:,.0f} G{unit}/s" if scaled >= 100 else f"{scaled:.3g} G{unit}/s"


def count(number: int, noun: str) -> str:
    """`1 kernel`, `3 kernels`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
