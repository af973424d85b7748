"""What is measured on a GPU, and by which kernels. A kernel's result is checked before it counts.

Reading, writing and copying are timed in the window that kernels are timed in (events behind a busy
GPU, L2 refilled before), by size; so is an empty launch. What runs many passes in one launch (data
in the L2, shared memory, multiplications) has no need of a cold cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from ..clock import events, graphs
from ..clock.gpu import gpu as gpu_of
from ..errors import NotRun
from .kernels import Kernels
from .sampling import Ask, Candidate

TILE = 512 * 4 * 16
"""Bytes of a tile of roofs.cu."""
SIZES = tuple(1 << power for power in (20, 22, 24, 26, 27, 28, 30, 32))
L2_SHARE = 0.6
"""Of the L2: what passes over it may hold, so that the rest of the machine leaves it there."""
L2_BYTES = 1 << 31
"""Bytes that all passes of a launch move: some tenths of a millisecond."""
TRANSFERS = tuple(1 << power for power in (16, 20, 24, 28))
SHARED_ROUNDS, FMA_ROUNDS, WAITS = 512, 1024, 1000
NODES = 64
MATRICES = (4096, 8192)
ERRORS = {
    "float64 matrix": (0.0, 1e-13),
    "float32 matrix": (1e-8, 1e-5),
    "tf32 matrix": (2e-5, 2e-3),
    "float16 matrix": (1e-5, 2e-3),
    "bfloat16 matrix": (1e-4, 1e-2),
    "float8 matrix": (1e-5, 1e-2),
}
"""Root mean square error over that of the values: between these, or another precision ran."""

Plan = tuple[str, Callable[[], Ask]]


def plans(device: str, arch: str, say: Callable[[str], None]) -> list[Plan]:
    """Names of ceilings, and what prepares each. Raises BuildError if roofs.cu does not build."""
    torch.cuda.set_device(device)
    gpu = Gpu(device, Kernels(device, arch, say))
    found: list[Plan] = [
        ("empty window", gpu.empty_window),
        ("empty launch", gpu.empty_launch),
        ("launch, host", gpu.host_launch),
        ("graph node", gpu.graph_node),
        ("grid sync", gpu.grid_sync),
    ]
    for size in SIZES:
        for name, make in (("read", gpu.read), ("write", gpu.write), ("copy", gpu.copy)):
            found.append((f"{name} {size} bytes cold L2", partial(make, size)))
    for name, shares in (("read", (1, 2, 3)), ("write", (1, 2, 3)), ("copy", (1,))):
        for share in shares:
            found.append((f"{name} in L2 {share}", partial(gpu.in_l2, name, share)))
    for size in TRANSFERS:
        for name in ("host to device", "device to host"):
            for memory in ("pinned", "pageable"):
                found.append(
                    (f"{name}, {memory} {size}", partial(gpu.transfer, name, memory, size))
                )
    found += [("shared memory", gpu.shared), ("float32 FMA", gpu.multiply_add)]
    for kind in ERRORS:
        for n in MATRICES:
            if (kind, n) != ("float64 matrix", MATRICES[-1]):
                found.append((f"{kind} {n}", partial(gpu.matrix, kind, n)))
    return found


@dataclass
class Gpu:
    """Prepares asks on one GPU."""

    device: str
    kernels: Kernels

    def __post_init__(self) -> None:
        self.multiprocessors = torch.cuda.get_device_properties(self.device).multi_processor_count
        self.sum = torch.zeros(1, dtype=torch.int32, device=self.device)
        self.flush, self.fixed = gpu_of(self.device).flush, gpu_of(self.device).fixed or 0.0
        """What two events add, as in the times that are set against these ceilings."""

    # One window each

    def empty_window(self) -> Ask:
        clock = events.Events(lambda: None, None, self.flush, 0.0)
        return Ask("empty window", "s", 1, [Candidate("nothing between the events", clock)])

    def empty_launch(self) -> Ask:
        call = self.kernels.call("nothing", 1, 32)
        return Ask("empty launch", "s", 1, [self._cold("one block of one warp", call)])

    def host_launch(self) -> Ask:
        clock = _Host(self.kernels.call("nothing", 1, 32, stream=self.kernels.stream()))
        return Ask("launch, host", "s", 1, [Candidate("cuda.core from Python", clock)])

    def graph_node(self) -> Ask:
        call = self.kernels.call("nothing", 1, 32)
        call()
        short, long = (self._hot(graphs.captured(call, n).replay) for n in (NODES, 4 * NODES))
        clock = _Slope(short, long)
        return Ask("graph node", "s", 3 * NODES, [Candidate("4n nodes less n nodes", clock)])

    def grid_sync(self) -> Ask:
        grid = self.multiprocessors
        state = torch.zeros(64, dtype=torch.int32, device=self.device)
        count, rounds = state[:1], state[32:33]  # in lines of their own
        found = []
        for threads in (128, 1024):
            for name, args in (("wait_on_count", (count,)), ("wait_on_round", (count, rounds))):
                call = self.kernels.call(name, grid, threads, *args, WAITS, cooperative=True)
                clock = events.Events(
                    call, state.zero_, _no_flush, 1e-4, fixed=self.fixed, cache="hot"
                )
                clock.sample()
                _must(name, int(count) == WAITS * grid)
                found.append(Candidate(f"{name}, {threads} threads a block", clock))
        return Ask("grid sync", "s", WAITS, found)

    # Traffic, cold, by size

    def read(self, size: int) -> Ask:
        x = self._random(size)
        words = x.view(torch.int32)
        tiles = size // TILE
        walks = self.kernels.call(
            "read_walks", min(tiles, 4 * self.multiprocessors), 512, self.sum, x, tiles
        )
        for call in (one := self.kernels.call("read_tiles", tiles, 512, self.sum, x), walks):
            self._must_sum("read", call, int(words.sum(dtype=torch.int64)))
        out = torch.empty((), device=self.device)
        found = [
            self._cold("read_tiles", one),
            self._cold("read_walks", walks),
            self._cold("torch.sum", lambda: torch.sum(x, dim=0, out=out)),
        ]
        return Ask("read", "B/s", size, found, bytes=size, cache="cold L2")

    def write(self, size: int) -> Ask:
        y = self._random(size)
        call = self.kernels.call("write_tiles", size // TILE, 512, y, 7)
        call()
        _must("write_tiles", bool((y.view(torch.int32) == 7).all()))
        found = [
            self._cold("write_tiles", call),
            self._cold("torch fill_", lambda: y.fill_(1.5)),
            self._cold("torch zero_", lambda: y.zero_()),
        ]
        return Ask("write", "B/s", size, found, bytes=size, cache="cold L2")

    def copy(self, size: int) -> Ask:
        x, y = self._random(size // 2), torch.zeros(size // 8, device=self.device)
        call = self.kernels.call("copy_tiles", size // 2 // TILE, 512, y, x)
        call()
        _must("copy_tiles", torch.equal(x, y))
        found = [
            self._cold("copy_tiles", call),
            self._cold("torch copy_", lambda: y.copy_(x)),
            self._cold("torch.neg", lambda: torch.neg(x, out=y)),
        ]
        return Ask("copy", "B/s", size, found, bytes=size, cache="cold L2")

    # Between host and device, by size

    def transfer(self, name: str, memory: str, size: int) -> Ask:
        """One copy, from the call to the end of the synchronize behind it."""
        there = torch.randint(0, 255, (size,), dtype=torch.uint8, device=self.device)
        here = torch.empty(size, dtype=torch.uint8, pin_memory=memory == "pinned")
        source, target = (here, there) if name == "host to device" else (there, here)
        if name == "host to device":
            here.random_(0, 255)

        def call() -> None:
            target.copy_(source, non_blocking=True)

        call()
        torch.cuda.synchronize()
        _must(name, torch.equal(source.cpu(), target.cpu()))
        found = [Candidate(f"torch copy_, {memory} memory", _Wall(call))]
        return Ask(f"{name}, {memory}", "B/s", size, found, bytes=size)

    # Many passes in one launch

    def in_l2(self, name: str, share: int) -> Ask:
        tiles = share * 2 * self.multiprocessors
        footprint = tiles * TILE * (2 if name == "copy" else 1)
        if footprint > L2_SHARE * self.flush.l2_bytes:
            raise NotRun(f"{footprint:,} bytes are too much for {L2_SHARE:.0%} of the L2")
        passes = max(8, L2_BYTES // footprint)
        x, y = self._random(tiles * TILE), self._random(tiles * TILE)
        args = {
            "read": (self.sum, x, tiles, passes),
            "write": (y, 7, tiles, passes),
            "copy": (y, x, tiles, passes),
        }[name]
        found = []
        for grid in (2 * self.multiprocessors, 4 * self.multiprocessors):
            if tiles % grid:
                continue
            call = self.kernels.call(f"{name}_in_l2", grid, 512, *args)
            if name == "read":
                words = int(x.view(torch.int32).sum(dtype=torch.int64))
                self._must_sum("read_in_l2", call, passes * words)
            else:
                call()
                wanted = x.view(torch.int32) if name == "copy" else 7
                _must(f"{name}_in_l2", bool((y.view(torch.int32) == wanted).all()))
            found.append(Candidate(f"{name}_in_l2, {grid} blocks", self._hot(call)))
        return Ask(name, "B/s", passes * footprint, found, bytes=footprint, cache="in cache")

    def shared(self) -> Ask:
        grid, threads = 2 * self.multiprocessors, 1024
        call = self.kernels.call("read_shared", grid, threads, self.sum, SHARED_ROUNDS)
        of_block = sum(16 * (t + 64 * i) + 6 for t in range(threads) for i in range(16))
        self._must_sum("read_shared", call, grid * SHARED_ROUNDS * of_block)
        moved = grid * threads * SHARED_ROUNDS * 16 * 16
        found = [Candidate("read_shared", self._hot(call))]
        return Ask("shared memory", "B/s", moved, found)

    def multiply_add(self) -> Ask:
        grid, threads = 4 * self.multiprocessors, 512
        y = torch.zeros(grid * threads, device=self.device)
        call = self.kernels.call("multiply_add", grid, threads, y, 0.5, 1.0, FMA_ROUNDS)
        call()
        _must("multiply_add", bool((y == 32).all()))  # each of 16 chains ends at 2
        work = grid * threads * FMA_ROUNDS * 16 * 8 * 2
        return Ask("float32 FMA", "FLOP/s", work, [Candidate("multiply_add", self._hot(call))])

    def matrix(self, name: str, n: int) -> Ask:
        """One product of n x n matrices of normal values, by cuBLAS through torch."""
        kind = name.split()[0]
        made = _float8(n, self.device) if kind == "float8" else _product(kind, n, self.device)
        error = made.error()
        least, most = ERRORS[name]
        if not least <= error <= most:
            raise NotRun(f"{made.by} erred by {error:.1e}: it did not compute in {kind}")
        found = [self._cold(made.by, made.call)]
        return Ask(name, "FLOP/s", 2 * n**3, found, shape=f"{n}^3")

    # Clocks, data, checks

    def _cold(self, by: str, call: Callable[[], Any]) -> Candidate:
        call()
        host = events.host_seconds(call)
        return Candidate(by, events.Events(call, None, self.flush, host, fixed=self.fixed))

    def _hot(self, call: Callable[[], Any]) -> events.Events:
        host = events.host_seconds(call)
        return events.Events(call, None, _no_flush, host, fixed=self.fixed, cache="hot")

    def _random(self, size: int) -> torch.Tensor:
        """Normal float32 of so many bytes. Raises NotRun where memory is short."""
        free, _ = torch.cuda.mem_get_info(self.device)
        held = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        if 4 * size > free + held:
            raise NotRun(f"it takes {4 * size:,} bytes, and {free + held:,} are free")
        return torch.randn(size // 4, device=self.device)

    def _must_sum(self, name: str, call: Callable[[], None], wanted: int) -> None:
        self.sum.zero_()
        call()
        _must(name, int(self.sum) % (1 << 32) == wanted % (1 << 32))


@dataclass(frozen=True)
class _Made:
    """A matrix product, ready to be timed."""

    by: str
    call: Callable[[], Any]
    error: Callable[[], float]


def _product(kind: str, n: int, device: str) -> _Made:
    dtype = torch.float32 if kind == "tf32" else getattr(torch, kind)
    a, b, c = (torch.randn(n, n, device=device).to(dtype) for _ in range(3))

    def call() -> None:
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        torch.mm(a, b, out=c)

    return _Made("cuBLAS through torch.mm", call, lambda: _error(call, a, b, lambda: c))


def _float8(n: int, device: str) -> _Made:
    if torch.cuda.get_device_capability(device) < (8, 9):
        raise NotRun("this GPU has no float8 arithmetic")
    a, b = (torch.randn(n, n, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device=device)
    last: list[torch.Tensor] = []

    def call() -> None:
        last.clear()
        last.append(
            torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
        )

    by = "cuBLASLt through torch._scaled_mm, e4m3 to bfloat16, fast accumulation"
    return _Made(by, call, lambda: _error(call, a, b.t(), lambda: last[0]))


def _error(
    call: Callable[[], None], a: torch.Tensor, b: torch.Tensor, c: Callable[[], torch.Tensor]
) -> float:
    """Root mean square error of a corner of the product, over that of its values."""
    call()
    truth = a[:64].double() @ b[:, :64].double()
    off = c()[:64, :64].double() - truth
    return float(off.pow(2).mean().sqrt() / truth.pow(2).mean().sqrt())


def _must(name: str, right: bool) -> None:
    if not right:
        raise NotRun(f"{name} gave a wrong result: its time means nothing")


def _no_flush() -> None:
    """For kernels that find or make their own state of the cache."""


@dataclass
class _Slope:
    """What 3 n more nodes take: launch, events and first node cost the same in both."""

    short: events.Events
    long: events.Events

    def sample(self) -> float:
        return self.long.sample() - self.short.sample()

    @property
    def late(self) -> int:
        return self.short.late + self.long.late


@dataclass
class _Wall:
    """From the call to the end of the synchronize behind it, by the host's clock."""

    call: Callable[[], None]

    def sample(self) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin


@dataclass
class _Host:
    """What the host needs to queue a launch, while the GPU is busy."""

    call: Callable[[], None]
    calls: int = 50

    def sample(self) -> float:
        torch.cuda.synchronize()
        torch.cuda._sleep(int(2e-3 * events.SLEEP_HZ))
        begin = time.perf_counter()
        for _ in range(self.calls):
            self.call()
        taken = time.perf_counter() - begin
        torch.cuda.synchronize()
        return taken / self.calls
