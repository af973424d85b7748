"""The timing process: loads the kernels that are right side by side, and samples them in turn.

Messages out: {loading: i}, {failed: i, word, reason}, {progress: share}, {fresh: true}, which is
answered by {seed: n}, and at last {done: ...} with every sample, and the outputs of timed calls for
the oracle to check again. Before each step the number of the kernel is written to a small shared
file, so that the parent can name the one that brought the process down.
"""

from __future__ import annotations

import itertools
import math
import mmap
import random
import secrets
import statistics
import time
import traceback
from collections.abc import Callable, Sequence
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
from ..types import Input
from ..verdict.buffers import POISONS, fence_like, fenced
from ..verdict.tamper import Taken, Tampered, taken
from . import caches, cpu, details, events, fresh, noise, traced, warm
from .beside import Beside
from .choose import choose
from .contents import Contents, described
from .gpu import Gpu
from .gpu import gpu as gpu_of
from .member import Lost, Member
from .protocol import Entry, Plan
from .statistics import interval
from .witness import Seen

LEAST_ROUNDS, GOOD_ROUNDS = 12, 32
GOOD_WIDTH = 0.0025
"""Half-width of the interval of the median, relative, at which a kernel is known well enough."""
WARM_SHARE, WARM_SECONDS = 0.5, 3.0
"""Warming up together may take this share of the sampling time, and no longer than that."""
SWAP_ROUNDS = 8
"""Every so many rounds the inputs get other values, in the same memory, so that an answer kept from
an earlier call is a wrong one."""
FAIR_SHARE = 0.5
"""Share of the sampling time after which a kernel takes part in no further round."""


def main(channel: Channel, threads: int, device: str) -> None:
    """Runs schedules, one after the other, as long as the parent sends plans."""
    torch.set_num_threads(threads)
    cpus = noise.pin(threads)
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
                _run(channel, given, state, noted, cpus)
        except AssayError as error:
            channel.send(mistake=str(error))
        except Lost as lost:
            channel.send(failed=lost.index, word=lost.word, reason=lost.reason)
            return  # nothing that is left can be trusted: the others get a new process


def _run(
    channel: Channel, given: Plan, state: mmap.mmap, noted: Taken, cpus: tuple[int, ...]
) -> None:
    on_gpu = given.device.startswith("cuda")
    gpu = gpu_of(given.device) if on_gpu else None
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
    shared = _Shared(given, op, Contents(op, given, inputs), gpu)
    members = []
    for index, entry in enumerate(given.entries):
        state[0] = index
        channel.send(loading=index)
        try:
            members.append(_member(shared, index, entry))
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
        _sample(channel, shared, members, state, noted, cpus)
        last = fresh.Last(channel, given, members, shared.contents, state, noted)
        last.run()
        fed = described(op.input_names(len(inputs)), inputs)
        _finish(channel, members, fed)
        if on_gpu and (given.wish.period or given.wish.sustained):
            _details(channel, shared, members, state)


class _Shared:
    """What the kernels of one case share."""

    def __init__(self, given: Plan, op: Op, contents: Contents, gpu: Gpu | None):
        self.given, self.op, self.contents, self.gpu = given, op, contents, gpu
        self.specs = [(spec.shape, dtype_of(spec.dtype)) for spec in given.specs]
        self._flush: cpu.Flush | None = None

    def cache_bytes(self, kind: str) -> int:
        """Of the L2, or of the last-level cache of the CPU; 0 where it is not known."""
        if kind == "cpu":
            return self.given.llc_bytes
        assert self.gpu is not None
        return self.gpu.flush.l2_bytes

    def state(self, kind: str) -> str:
        return self.given.wish.cache or caches.DEFAULT[kind]

    def flush(self, kind: str, hot: Callable[[], None]) -> Callable[[], None] | None:
        """What brings the cache into its state before a sample; None: nothing does."""
        state = self.state(kind)
        if kind == "cuda":
            assert self.gpu is not None
            flush = self.gpu.flush
            made: dict[str, Callable[[], None]] = {
                "cold": flush,
                "dirty": flush.write,
                "hot": hot,
                "rotated": lambda: None,
            }
            return made[state]
        if state in ("hot", "rotated"):
            return None
        self._flush = self._flush or cpu.Flush(self.given.llc_bytes)
        return self._flush.read if state == "cold" else self._flush.write


def _member(shared: _Shared, index: int, entry: Entry) -> Member:
    """Builds a kernel, warms it up, and chooses its clock."""
    given, op, contents, specs = shared.given, shared.op, shared.contents, shared.specs
    variant = find_variant(op, entry.variant)
    inputs = contents.sets[0]
    kernel = build(op, variant, entry.knobs, given.case, inputs, specs, given.device, given.arch)
    device = entry.judge if entry.judge.startswith("cuda") else "cpu"
    kind, poison = device.partition(":")[0], POISONS[0]
    filled = specs[len(op.mutates) :] if variant.fills else ()

    def placed() -> tuple[list[Any], list[Any]]:
        """Outputs to fill, and inputs."""
        fills = [
            fenced(shape, torch.empty(shape, device="meta").stride(), dtype, device, poison)
            for shape, dtype in filled
        ]
        return fills, [fence_like(x, device, poison, variant.layouts != "any") for x in inputs]

    working, cache = _working(inputs, specs[len(op.mutates) :]), shared.cache_bytes(kind)
    count = caches.sets_for(working, cache) if shared.state(kind) == "rotated" else 1
    sets = [placed() for _ in range(count)]
    turns = itertools.cycle(sets)
    last: list[Any] = []

    def call() -> None:
        last.clear()  # so that the allocator can give the same memory again
        fills, given_in = next(turns)
        last.append(kernel.run(fills, given_in))

    member = Member(index, None, call, device, last, [given_in for _, given_in in sets])
    changed = [op.input_names(len(inputs)).index(name) for name in op.mutates]
    restore = (lambda: contents.fill(member, changed)) if changed else None

    def hot() -> None:
        call()
        if restore:
            restore()

    with torch.no_grad():
        seconds = warm.alone(member, call, restore, device)
        flush = shared.flush(kind, hot)
        if kind == "cpu":
            once = restore is not None or flush is not None
            member.clock = cpu.Cpu(call, restore, cpu.calls_for(seconds, once), flush)
        else:
            gpu = shared.gpu
            assert gpu is not None
            before = None if flush is hot else restore
            chosen = choose(gpu, call, seconds, restore=before, flush=flush)
            member.clock = chosen.clock
            member.seen = {
                **_seen(chosen.seen, gpu),
                "memory": details.memory(member, device),
                "host_seconds": events.queued_seconds(call, chosen.host_seconds),
            }
            member.persisting = gpu.persisting()
    label = caches.label(kind, shared.state(kind), count, working, cache)
    proven = shared.gpu is None or shared.gpu.flushes or label not in caches.COLD
    member.seen |= {
        "cache": label if proven else caches.UNKNOWN,
        "working_bytes": working,
        "sets": count,
    }
    return member


def _working(
    inputs: tuple[Any, ...], outputs: Sequence[tuple[tuple[int, ...], torch.dtype]]
) -> int:
    """Bytes of inputs and outputs."""
    read = sum(x.numel() * x.element_size() for x in inputs if isinstance(x, torch.Tensor))
    return read + sum(math.prod(shape) * dtype.itemsize for shape, dtype in outputs)


def _seen(seen: Seen | None, gpu: Gpu) -> dict[str, Any]:
    """What CUPTI says of calls that are prepared as a sample is."""
    if seen is None:
        return {"no_witness": gpu.witness.missing}
    return {
        "kernels": seen.kernels,
        "elsewhere": seen.elsewhere,
        "kernel_seconds": statistics.median(seen.seconds) if seen.seconds else None,
        "span_seconds": statistics.median(seen.spans) if seen.spans else None,
        "uneven": seen.uneven,
    }


def _sample(
    channel: Channel,
    shared: _Shared,
    members: list[Member],
    state: mmap.mmap,
    noted: Taken,
    cpus: tuple[int, ...],
) -> None:
    """Rounds in random order until every kernel is known well enough or the time is spent."""
    given, contents, gpu = shared.given, shared.contents, shared.gpu
    order = random.Random(given.seed)
    cap = min(WARM_SECONDS, WARM_SHARE * given.seconds)
    warm.together(members, lambda member: member.sample(state, noted), cap)
    for member in members:
        if member.kind == "cuda":
            member.clock.forget()
    step = traced.BLOCK if any(m.clock.method == traced.METHOD for m in members) else 1
    beside = Beside(given, members, gpu, cpus)
    start, share = time.monotonic(), FAIR_SHARE * given.seconds
    number, told = 0, 0.0
    looked_at = secrets.randbelow(SWAP_ROUNDS)
    while True:
        if number % SWAP_ROUNDS == 0:
            contents.swap([m for m in members if not m.done(number, LEAST_ROUNDS, share)])
        turn = [m for m in members if not m.done(number, LEAST_ROUNDS, share)]
        _rounds(turn, number, step, order, state, noted, gpu)
        if number <= looked_at < number + step:
            for member in turn:
                member.keep("early", given.seed + contents.now, given.scratch)
        for each in range(number, number + step):
            beside.sample(each)
        number += step
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
    beside.end()
    for member in members:
        member.facts = {**beside.facts(member), "ended": "interval" if _known(member) else "budget"}


def _rounds(
    turn: list[Member],
    number: int,
    step: int,
    order: random.Random,
    state: mmap.mmap,
    noted: Taken,
    gpu: Gpu | None,
) -> None:
    """`step` rounds of all of them, those that are traced in one trace, and the others after it."""
    traces = [member for member in turn if isinstance(member.clock, traced.Traced)]
    owner = {id(member.clock): member for member in traces}
    if traces:
        begun = time.monotonic()

        def guard(clock: traced.Traced, take: Callable[[], None]) -> None:
            member = owner[id(clock)]
            member.guarded(state, noted, take)
            _aside(member, gpu)

        made = traced.blocks([member.clock for member in traces], order, guard)
        spent = (time.monotonic() - begun) / len(traces)
        for place, samples in made.items():
            traces[place].add(samples, number)
        for member in traces:
            member.spent += spent
    others = [member for member in turn if id(member.clock) not in owner]
    for each in range(number, number + step):
        for member in order.sample(others, len(others)):
            begun, before = time.monotonic(), noise.interruptions()
            member.add([member.sample(state, noted)], each)
            member.spent += time.monotonic() - begun
            if member.kind == "cpu" and noise.interruptions() > before:
                member.interrupted.append(len(member.samples) - 1)
            _aside(member, gpu)


def _aside(member: Member, gpu: Gpu | None) -> None:
    """Notes what of the L2 a kernel set aside, and gives it back."""
    if member.kind == "cuda" and gpu is not None:
        member.persisting = max(member.persisting, gpu.persisting())


def _known(member: Member) -> bool:
    if len(member.samples) < LEAST_ROUNDS:
        return False
    low, middle, high = interval(member.samples, draws=200)
    return (high - low) / 2 <= GOOD_WIDTH * middle


def _finish(channel: Channel, members: list[Member], fed: tuple[Input, ...]) -> None:
    """Sends every sample, and where the outputs of timed calls lie."""
    channel.send(
        done=[
            {
                "index": member.index,
                "samples": member.samples,
                "rounds": member.rounds,
                "calls": member.clock.calls,
                "method": member.clock.method,
                "warm_calls": member.warm_calls,
                "warm_seconds": member.warm_seconds,
                "first_seconds": member.first_seconds,
                "still": member.still,
                "persisting": member.persisting,
                "inputs": [msgspec.to_builtins(each) for each in fed],
                "ran": [msgspec.to_builtins(ran) for ran in member.kept],
                **member.facts,
                **member.seen,
                **_second(member),
            }
            for member in members
        ]
    )


def _second(member: Member) -> dict[str, Any]:
    """What a traced clock tells beside its samples."""
    clock = member.clock
    if not isinstance(clock, traced.Traced):
        return {}
    found: dict[str, Any] = {"event_seconds": clock.event_seconds}
    return found | ({"uneven": clock.uneven, "span_seconds": None} if clock.uneven else {})


def _details(channel: Channel, shared: _Shared, members: list[Member], state: mmap.mmap) -> None:
    """What may cost a process its life comes last: all samples are with the parent by now."""
    gpu, spoiled = shared.gpu, False
    assert gpu is not None
    for member in members:
        if member.kind != "cuda":
            continue
        state[0] = member.index
        found: dict[str, Any] = {}
        about = statistics.median(member.samples or [member.wall_seconds])
        with torch.no_grad():
            if shared.given.wish.sustained:
                call, seconds = member.call, shared.given.wish.sustained
                found["sustained"] = details.sustained(call, about, seconds, gpu.nvml)
            if shared.given.wish.period:
                found |= details.period(member, about)
        channel.send(detail=member.index, **found)
        by_calls = found.get("sustained", {}).get("by") == "calls"
        spoiled = spoiled or by_calls or found.get("no_period", "").startswith(details.UNCAPTURED)
    channel.send(over=True, spoiled=spoiled)
