"""The peers: how others decide whether a kernel's output is right. Each raises, or returns True."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SEEDS = 5


@dataclass(frozen=True)
class Peer:
    """One way of comparing."""

    name: str
    close: Callable[[Any, Any], bool]
    """Of what a kernel gave and what was expected. An exception is a rejection too."""
    seeds: int = 1
    package: str = "torch"

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)

    @property
    def missing(self) -> str:
        """Why it can't be asked here, or empty."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed: pip install {self.package} --no-deps"
        return ""


def allclose(got: Any, expected: Any) -> bool:
    import torch

    return bool(torch.allclose(got, expected))


def torch_assert(got: Any, expected: Any) -> bool:
    import torch

    torch.testing.assert_close(got, expected)
    return True


def triton_assert(got: Any, expected: Any) -> bool:
    from triton.testing import assert_close

    assert_close(got, expected)
    return True


def kernelbench(got: Any, expected: Any) -> bool:
    """The rule of its eval.py: equal shapes, then allclose at 1e-2 for both limits."""
    import torch

    return got.shape == expected.shape and bool(torch.allclose(expected, got, atol=1e-2, rtol=1e-2))


def gpucheck(got: Any, expected: Any) -> bool:
    """Its assert_close with what it chooses by dtype, as in its README."""
    from gpucheck import assert_close

    assert_close(got, expected)
    return True


PEERS = (
    Peer("torch.allclose", allclose),
    Peer("torch.testing.assert_close", torch_assert),
    Peer("triton.testing.assert_close", triton_assert, package="triton"),
    Peer("KernelBench", kernelbench, seeds=SEEDS),
    Peer("gpucheck", gpucheck, package="gpucheck"),
)
