"""The timing process: loads the kernels that are right side by side, and samples them in turn.

Messages out: {loading: i}, {failed: i, word, reason}, {progress: share}, {fresh: true}, which is
answered by {seed: n}, and at last {done: ...} with every sample, and the outputs of timed calls for
the oracle to check again. Before each step the number of the kernel is written to a small shared
file, so that the parent can name the one that brought the process down.
"""

from __future__ import annotations

import mmap
import random
import secrets
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import torch

from .. import faults
from ..build import build, find_variant
from ..errors import AssayError
from ..inputs import dtype_of, inputs_of, varies
from ..op import Op
from ..processes.channel import Channel
from ..target import load_op
from ..verdict.buffers import POISONS, fence_like, fenced
from ..verdict.tamper import Taken, Tampered, taken
from . import cpu, events, fresh
from .member import Lost, Member
from .protocol import Entry, Plan
from .statistics import interval

LEAST_ROUNDS, GOOD_ROUNDS, WARM_ROUNDS = 12, 32, 2
GOOD_WIDTH = 0.0025
"""Half-width of the interval of the median, relative, at which a kernel is known well enough."""
WARM_SECONDS = 0.1
SWAP_ROUNDS = 8
"""Every so many rounds the inputs get other values, in the same memory, so that an answer kept from
an earlier call is a wrong one."""
COPY_BYTES = 1 << 28
FAIR_SHARE = 0.5
"""Share of the sampling time after which a kernel takes part in no further round."""
COPY_ROUNDS = frozenset([*range(0, 32, 4), *range(64, 100_000, 64)])


def main(channel: Channel, threads: int, device: str) -> None:
    """Runs schedules, one after the other, as long as the parent sends plans."""
    torch.set_num_threads(threads)
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    noted = taken()
    while True:
        message = channel.receive()
        assert message is not None
        given = msgspec.convert(message["plan"], Plan)
        try:
            with open(given.state, "r+b") as file, mmap.mmap(file.fileno(), 0) as state:
                _run(channel, given, state, noted)
        except AssayError as error:
            channel.send(mistake=str(error))
        except Lost as lost:
            channel.send(failed=lost.index, word=lost.word, reason=lost.reason)
            return  # nothing that is left can be trusted: the others get a new process


def _run(channel: Channel, given: Plan, state: mmap.mmap, noted: Taken) -> None:
    op = load_op(given.target, given.op)
    try:
        noted.check()
    except Tampered as found:
        for index in range(len(given.entries)):
            reason = f"{found}, when its file was imported"
            channel.send(failed=index, word="tampered", reason=reason)
        return
    inputs = inputs_of(op, given.case, given.seed)
    if not varies(inputs):
        channel.send(
            refused="constant data runs faster than real data: give inputs that vary to time it"
        )
        return
    specs = [(spec.shape, dtype_of(spec.dtype)) for spec in given.specs]
    contents = _Contents(op, given, inputs)
    on_gpu = given.device.startswith("cuda")
    gpu = _Gpu(given.device) if on_gpu else None
    members = []
    for index, entry in enumerate(given.entries):
        state[0] = index
        channel.send(loading=index)
        try:
            members.append(_member(channel, given, op, contents, specs, index, entry, gpu))
            noted.check()
        except AssayError:
            raise
        except Tampered as found:
            raise Lost(index, "tampered", str(found)) from None
        except BaseException as error:  # noqa: BLE001 - a kernel's fault is its verdict
            traceback.print_exc()
            word, reason = faults.word_of(error)
            if on_gpu and faults.poisons_process(word):
                raise Lost(index, word, reason) from None
            channel.send(failed=index, word=word, reason=reason)
    if members:
        _sample(channel, given, members, contents, gpu, state, noted)
        last = fresh.Last(channel, given, members, contents, state, noted)
        last.run()
        _finish(channel, members)


class _Contents:
    """Two sets of values for the inputs, of the two seeds that the oracle knows from judging; at
    the end, those of a seed that this process learns only then."""

    def __init__(self, op: Op, given: Plan, first: tuple[Any, ...]):
        self.now = 0
        self._op, self._case = op, given.case
        self.sets = [first, inputs_of(op, given.case, given.seed + 1)]
        self._on: dict[str, list[tuple[Any, ...]]] = {}

    def renew(self, seed: int) -> None:
        """Values that nobody has seen take the place of all others."""
        self.now, self._on = 0, {}
        self.sets = [inputs_of(self._op, self._case, seed)]

    def swap(self, members: list[Member]) -> None:
        """Gives every member the other values."""
        self.now = 1 - self.now
        for member in members:
            self.fill(member, range(len(member.inputs)))

    def fill(self, member: Member, which: Iterable[int]) -> None:
        """Puts the present values into some of a member's inputs."""
        for index in which:
            target = member.inputs[index]
            if isinstance(target, torch.Tensor) and target.numel():
                _owned(target).copy_(_owned(self._values(str(target.device))[index]))

    def _values(self, device: str) -> tuple[Any, ...]:
        if device not in self._on:
            self._on[device] = [
                tuple(x.to(device) if isinstance(x, torch.Tensor) else x for x in values)
                for values in self.sets
            ]
        return self._on[device][self.now]


def _owned(value: torch.Tensor) -> torch.Tensor:
    """Each element once: an expanded dimension, which repeats one in memory, is cut to it."""
    for dim, step in enumerate(value.stride()):
        if step == 0 and value.shape[dim] > 1:
            value = value.narrow(dim, 0, 1)
    return value


class _Gpu:
    """What all members on a GPU share."""

    def __init__(self, device: str):
        from .witness import Witness

        self.flush = events.Flush(device)
        self.witness = Witness(device)


def _member(
    channel: Channel,
    given: Plan,
    op: Op,
    contents: _Contents,
    specs: Any,
    index: int,
    entry: Entry,
    gpu: _Gpu | None,
) -> Member:
    """Builds a kernel, warms it up, and chooses its clock."""
    variant = find_variant(op, entry.variant)
    inputs = contents.sets[0]
    kernel = build(op, variant, entry.knobs, given.case, inputs, specs, given.device, given.arch)
    device = entry.judge if entry.judge.startswith("cuda") else "cpu"
    poison = POISONS[0]
    placed = [fence_like(x, device, poison, variant.layouts != "any") for x in inputs]
    filled = specs[len(op.mutates) :] if variant.fills else ()
    outputs = [
        fenced(shape, torch.empty(shape, device="meta").stride(), dtype, device, poison)
        for shape, dtype in filled
    ]
    last: list[Any] = []

    def call() -> None:
        last.clear()  # so that the allocator can give the same memory again
        last.append(kernel.run(outputs, placed))

    member = Member(index, None, call, device, last, placed)
    changed = [op.input_names(len(placed)).index(name) for name in op.mutates]
    restore = (lambda: contents.fill(member, changed)) if changed else None
    with torch.no_grad():
        seconds = _warm(member, call, restore, device)
        if device == "cpu":
            member.clock = cpu.Cpu(call, restore, cpu.calls_for(seconds, restore is not None))
        else:
            assert gpu is not None
            if restore:
                restore()
            seen = gpu.witness.watch(call)
            if seen is not None:
                member.seen = {
                    "kernels": seen.kernels,
                    "elsewhere": seen.elsewhere,
                    "kernel_seconds": seen.seconds,
                }
            else:
                member.seen = {"no_witness": gpu.witness.missing}
            member.clock = events.Events(call, restore, gpu.flush, events.host_seconds(call))
    return member


def _warm(
    member: Member, call: Callable[[], None], restore: Callable[[], None] | None, device: str
) -> float:
    """Calls until the time is spent; the first call apart. Seconds of the fastest later call."""

    def once() -> float:
        if restore:
            restore()
        _sync(device)
        begin = time.perf_counter()
        call()
        _sync(device)
        return time.perf_counter() - begin

    member.first_seconds = once()
    start, best = time.perf_counter(), float("inf")
    while member.warm_calls < 3 or time.perf_counter() - start < WARM_SECONDS:
        best = min(best, once())
        member.warm_calls += 1
    member.warm_seconds = time.perf_counter() - start + member.first_seconds
    return best


def _sync(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _sample(
    channel: Channel,
    given: Plan,
    members: list[Member],
    contents: _Contents,
    gpu: _Gpu | None,
    state: mmap.mmap,
    noted: Taken,
) -> None:
    """Rounds in random order until every kernel is known well enough or the time is spent."""
    order = random.Random(given.seed)
    extra = _Extra(given, members, gpu.flush if gpu else None)
    for member in WARM_ROUNDS * members:  # alone they were warm; together they share caches, memory
        member.sample(state, noted)
    start, share = time.monotonic(), FAIR_SHARE * given.seconds
    number, told = 0, 0.0
    looked_at = secrets.randbelow(SWAP_ROUNDS)
    while True:
        if number % SWAP_ROUNDS == 0:
            contents.swap([m for m in members if not m.done(number, LEAST_ROUNDS, share)])
        turn = list(members)
        order.shuffle(turn)
        for member in turn:
            if member.done(number, LEAST_ROUNDS, share):
                continue
            begun = time.monotonic()
            member.samples.append(member.sample(state, noted))
            member.rounds.append(number)
            member.spent += time.monotonic() - begun
            if number == looked_at:
                member.keep("early", given.seed + contents.now, given.scratch)
        extra.sample(number)
        number += 1
        spent = time.monotonic() - start
        if spent - told > 0.25:
            told = spent
            channel.send(progress=min(1.0, spent / given.seconds))
        if number >= LEAST_ROUNDS and spent > given.seconds:
            break
        if number >= GOOD_ROUNDS and number % SWAP_ROUNDS == 0 and all(_known(m) for m in members):
            break
        if number >= SWAP_ROUNDS and spent > 20 * given.seconds:  # a very slow kernel
            break
    for member in members:
        member.facts = extra.facts(member)


def _known(member: Member) -> bool:
    low, middle, high = interval(member.samples, draws=200)
    return (high - low) / 2 <= GOOD_WIDTH * middle


class _Extra:
    """What is sampled beside the kernels: a large copy, an empty window, the clocks."""

    def __init__(self, given: Plan, members: list[Member], flush: events.Flush | None):
        self.copies: dict[str, list[float]] = {}
        self.nulls: list[float] = []
        self.hertz: list[float] = []
        self._clocks: dict[str, tuple[Any, int]] = {}
        self._null = None
        devices = {
            "cuda" if isinstance(m.clock, events.Events) else "cpu": given.device for m in members
        }
        for kind in devices:
            device = given.device if kind == "cuda" else "cpu"
            size = (
                COPY_BYTES if kind == "cuda" else min(COPY_BYTES, max(4 * given.llc_bytes, 1 << 26))
            )
            source = torch.randint(0, 255, (size,), dtype=torch.uint8, device=device)
            target = torch.empty_like(source)

            def copy(target: Any = target, source: Any = source) -> None:
                target.copy_(source)

            copy()
            if kind == "cuda":
                assert flush is not None
                clock: Any = events.Events(copy, None, flush, events.host_seconds(copy))
                self._null = events.Events(lambda: None, None, flush, 0.0)
            else:
                clock = cpu.Cpu(copy, None, 1)
            self._clocks[kind] = (clock, 2 * size)
        self._nvml = sm_clock(given.device)

    def sample(self, number: int) -> None:
        if self._null is not None:
            self.nulls.append(self._null.sample())
        if self._nvml is not None:
            self.hertz.append(self._nvml())
        if number not in COPY_ROUNDS:
            return
        for kind, (clock, size) in self._clocks.items():
            self.copies.setdefault(kind, []).append(size / clock.sample())

    def facts(self, member: Member) -> dict[str, Any]:
        on_gpu = isinstance(member.clock, events.Events)
        rates = sorted(self.copies.get("cuda" if on_gpu else "cpu", []))
        nulls = sorted(self.nulls)
        return {
            "copy_rate": rates[len(rates) // 2] if rates else None,
            "null_seconds": nulls[len(nulls) // 2] if nulls and on_gpu else None,
            "clock_hz": [min(self.hertz), max(self.hertz)] if self.hertz and on_gpu else None,
            "late": member.clock.late if on_gpu else 0,
            "retaken": member.clock.retaken if on_gpu else 0,
            "host_seconds": member.clock.host_seconds if on_gpu else None,
            "l2_bytes": member.clock.flush.l2_bytes if on_gpu else None,
        }


def sm_clock(device: str) -> Callable[[], float] | None:
    """A reader of the SM clock in hertz; None without a GPU or without nvidia-ml-py."""
    if not device.startswith("cuda"):
        return None
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.removeprefix('GPU-')}")
        pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
    except pynvml.NVMLError as error:
        print(f"NVML does not tell the clocks: {error}")
        return None
    return lambda: 1e6 * pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)


def _finish(channel: Channel, members: list[Member]) -> None:
    """Sends every sample, and where the outputs of timed calls lie."""
    channel.send(
        done=[
            {
                "index": member.index,
                "samples": member.samples,
                "rounds": member.rounds,
                "calls": member.clock.calls,
                "method": member.clock.method,
                "cache": member.clock.cache,
                "warm_calls": member.warm_calls,
                "warm_seconds": member.warm_seconds,
                "first_seconds": member.first_seconds,
                "ran": [msgspec.to_builtins(ran) for ran in member.kept],
                **member.facts,
                **member.seen,
            }
            for member in members
        ]
    )
