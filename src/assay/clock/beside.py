"""What is sampled beside the kernels: a large copy, an empty window, clocks, power, other load."""

from __future__ import annotations

import os
from typing import Any

import torch

from . import cpu, events, neighbours, noise
from .gpu import Gpu
from .member import Member
from .power import Reading, held, summary
from .protocol import Plan

COPY_BYTES = 1 << 28
DRAWN_BYTES = 1 << 20
"""What a copy on the CPU holds, over and over: a CPU's memory compresses nothing, and drawing all
of it takes a second."""
COPY_ROUNDS = frozenset([*range(0, 32, 4), *range(64, 100_000, 64)])


class Beside:
    """Samples beside those of the kernels, by round."""

    def __init__(self, given: Plan, members: list[Member], gpu: Gpu | None, cpus: tuple[int, ...]):
        self.copies: dict[str, list[float]] = {}
        self.nulls: list[float] = []
        self.readings: dict[int, Reading] = {}
        self._clocks: dict[str, tuple[Any, int]] = {}
        self._null = None
        self._gpu, self._cpus, self._given = gpu, cpus, given
        for kind in dict.fromkeys(member.kind for member in members):
            device = given.device if kind == "cuda" else "cpu"
            size = (
                COPY_BYTES if kind == "cuda" else min(COPY_BYTES, max(4 * given.llc_bytes, 1 << 26))
            )
            source = filled(size, device)
            target = torch.empty_like(source)

            def copy(target: Any = target, source: Any = source) -> None:
                target.copy_(source)

            copy()
            if kind == "cuda":
                assert gpu is not None
                host, fixed = events.host_seconds(copy), gpu.fixed or 0.0
                clock: Any = events.Events(copy, None, gpu.flush, host, fixed=fixed)
                self._null = events.Events(lambda: None, None, gpu.flush, 0.0)
            else:
                clock = cpu.Cpu(copy, None, 1)
            self._clocks[kind] = (clock, 2 * size)
        self._strangers = self._seen_strangers()
        self._begun = noise.used(cpus)
        self._ended = self._begun

    def _seen_strangers(self) -> tuple[int, ...]:
        """Other processes on the GPU when sampling begins, as far as that can be told."""
        if self._gpu is None or self._gpu.nvml.missing:
            return ()
        listed = self._gpu.nvml.processes()
        return neighbours.others(listed, os.getpid(), self._given.owner) or ()

    def sample(self, number: int) -> None:
        """Once a round."""
        if self._null is not None:
            self.nulls.append(self._null.sample())
        if self._gpu is not None and not self._gpu.nvml.missing:
            self.readings[number] = self._gpu.nvml.read()
        if number not in COPY_ROUNDS:
            return
        for kind, (clock, size) in self._clocks.items():
            self.copies.setdefault(kind, []).append(size / clock.sample())

    def end(self) -> None:
        """The last round is over."""
        self._ended = noise.used(self._cpus)

    def facts(self, member: Member) -> dict[str, Any]:
        """What is told of one kernel."""
        rates = sorted(self.copies.get(member.kind, []))
        common = {"copy_rate": rates[len(rates) // 2] if rates else None}
        return common | (self._on_gpu(member) if member.kind == "cuda" else self._on_cpu(member))

    def _on_cpu(self, member: Member) -> dict[str, Any]:
        return {
            **summary([]),
            "null_seconds": None,
            "late": 0,
            "retaken": 0,
            "host_seconds": None,
            "wall_seconds": None,
            "sync_seconds": None,
            "cache_bytes": self._given.llc_bytes or None,
            "fixed_seconds": None,
            "windows": 1,
            "no_nvml": "",
            "hertz": [],
            "strangers": [],
            "held": {"interrupted": member.interrupted} if member.interrupted else {},
            "other_load": noise.others(self._begun, self._ended, len(self._cpus)),
        }

    def _on_gpu(self, member: Member) -> dict[str, Any]:
        assert self._gpu is not None
        nulls, clock = sorted(self.nulls), member.clock
        mine = [self.readings[number] for number in member.rounds if number in self.readings]
        whole = len(mine) == len(member.rounds)
        return {
            **summary(list(self.readings.values())),
            "null_seconds": nulls[len(nulls) // 2] if nulls else None,
            "late": clock.late,
            "retaken": clock.retaken,
            "wall_seconds": member.wall_seconds,
            "sync_seconds": self._gpu.sync_seconds,
            "cache_bytes": self._gpu.flush.l2_bytes,
            "fixed_seconds": clock.fixed,
            "windows": clock.windows,
            "no_nvml": self._gpu.nvml.missing,
            "hertz": [reading.hertz for reading in mine] if whole else [],
            "held": held(mine) if whole else {},
            "other_load": None,
            "strangers": list(self._strangers),
        }


def filled(size: int, device: str) -> torch.Tensor:
    """Bytes to copy: random ones on a GPU, which may compress; on a CPU a few, over and over."""
    if device != "cpu":
        return torch.randint(0, 255, (size,), dtype=torch.uint8, device=device)
    few = torch.randint(0, 255, (min(size, DRAWN_BYTES),), dtype=torch.uint8)
    return few.repeat(-(-size // len(few)))[:size]
