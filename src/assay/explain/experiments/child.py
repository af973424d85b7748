"""The child that tries experiments on a GPU: nothing of what they compute is judged or kept.

Messages out: {trying: name} before each, {not_tried: name, reason}, {sampling: true}, and at last
{done: [...], spent} with the samples of each and of the unchanged call beside it; or {mistake |
not_run}. Then it waits for the next job, if it is not spent.
A kernel that brings the process down is the one that was named last.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ... import single
from ...clock import events
from ...clock.gpu import gpu as gpu_of
from ...clock.graphs import capturing
from ...clock.protocol import windows_for
from ...errors import AssayError, BuildError, LaunchError, NotRun
from ...processes.channel import Channel, Closed
from ...target import Target
from ...types import Scalar
from .catalogue import BY_NAME, DEVICE, WALL, Experiment
from .driver import LOCAL_BYTES, REGISTERS, STATIC_SHARED, Driver, assembled, packed
from .launched import Card, Changed, Launched
from .recording import Copies, noted

LEAST_ROUNDS, MOST_ROUNDS = 9, 41
WARM_CALLS = 5
BASE = ""
"""The name of the unchanged call."""


def main(channel: Channel, device: str, **job: Any) -> None:
    """Sends what there is of a job, and then does the next one that it is sent, until nobody asks:
    starting CUDA and its clocks takes longer than most experiments."""
    while True:
        whole = _job(channel, device, **job)
        gc.collect()
        torch.cuda.empty_cache()
        if not whole:
            return
        try:
            job = channel.receive() or {}
        except Closed:
            return


def _job(
    channel: Channel,
    device: str,
    target: dict,
    wanted: str,
    case: dict[str, Scalar],
    names: list[str],
    seconds: float,
) -> bool:
    """names: of the experiments; seconds: of sampling, in all. False: the process is in no state
    to go on, which `spent` says as well."""
    try:
        torch.cuda.set_device(device)
        one = single.pick(msgspec.convert(target, Target), wanted, case)
        trying = [BY_NAME[name] for name in names]
        with torch.no_grad():
            made, whole = _made(channel, one, device, trying)
            channel.send(sampling=True)
            sample(made, seconds)
        channel.send(done=[data_of(each) for each in made], spent=not whole)
        return whole
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, BuildError, LaunchError) as error:
        channel.send(not_run=str(error))
    return True


@dataclass
class Tried:
    """One call in the schedule."""

    name: str
    clock: str
    sample: Callable[[], float]
    said: str = ""
    work: float = 1.0
    most: float | None = None
    late: Callable[[], int] = lambda: 0
    samples: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)


def _made(
    channel: Channel, one: single.Single, device: str, trying: list[Experiment]
) -> tuple[list[Tried], bool]:
    """What is to be sampled, and whether no capture failed, which may leave nothing to go on."""
    found: list[Tried] = []
    on_device = [each for each in trying if each.clock == DEVICE]
    on_wall = [each for each in trying if each.clock == WALL]
    if on_device:
        found += _replayed(channel, one, device, on_device)
    if on_wall:
        found += _graphs(channel, one, device, on_wall)
    walls = sum(each.clock == WALL for each in found)
    return found, not on_wall or walls == len(on_wall) + 1


def _replayed(
    channel: Channel, one: single.Single, device: str, trying: list[Experiment]
) -> list[Tried]:
    """The unchanged launches and those of each experiment, all loaded the same way."""
    major, minor = torch.cuda.get_device_capability(device)
    arch = f"sm_{major}{minor}"
    try:
        launches = noted(one, arch)
    except (NotRun, BuildError, LaunchError) as reason:
        for each in trying:
            channel.send(not_tried=each.name, reason=str(reason))
        return []
    has = torch.cuda.get_device_properties(device)
    card = Card(
        has.multi_processor_count,
        has.shared_memory_per_multiprocessor,
        has.shared_memory_per_block_optin,
    )
    bench = _Bench(device, arch)
    channel.send(trying=BASE)
    base, launches = bench.loaded(launches)
    found = [bench.tried(BASE, base, Changed(launches, ""), bench.facts)]
    for each in trying:
        channel.send(trying=each.name)
        try:
            assert each.change is not None
            changed = each.change(launches, card)
            call, _ = bench.loaded(changed.launches)
            found.append(bench.tried(each.name, call, changed, bench.facts))
        except NotRun as reason:
            channel.send(not_tried=each.name, reason=str(reason))
    return found


class _Bench:
    """Loads launches and times calls of them, on one device."""

    def __init__(self, device: str, arch: str):
        self.gpu = gpu_of(device)
        self.device, self.arch = device, arch
        self.driver, self.copies = Driver(), Copies(device)
        self.facts = ""

    def loaded(
        self, launches: tuple[Launched, ...]
    ) -> tuple[Callable[[], None], tuple[Launched, ...]]:
        """A call that makes them, and they with what the driver says of each."""
        steps, known, said = [], [], []
        for one in launches:
            cubin = assembled(one.compiled.ptx, self.arch)
            function = self.driver.function(cubin, one.compiled.name)
            static = self.driver.attribute(function, STATIC_SHARED)
            self.driver.allow(function, one.shared)
            held = self.driver.resident(function, one.threads, one.shared)
            registers = self.driver.attribute(function, REGISTERS)
            local = self.driver.attribute(function, LOCAL_BYTES)
            said.append(f"{registers} registers, {local} bytes of local memory, {held} blocks")
            args = packed(one, self.copies.address)
            steps.append(self.driver.prepared(function, one, args))
            known.append(replace(one, static_shared=static, per_sm=held, registers=registers))
        self.facts = "; ".join(dict.fromkeys(said))

        kept = self.driver, self.copies  # what launches point to lives as long as the call

        def call(_: Any = kept) -> None:
            stream = torch.cuda.current_stream().cuda_stream
            for step in steps:
                step(stream)

        return call, tuple(known)

    def tried(self, name: str, call: Callable[[], None], changed: Changed, facts: str) -> Tried:
        """Warmed up, with its clock."""
        taken = []
        for _ in range(WARM_CALLS):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            call()
            torch.cuda.synchronize()
            taken.append(time.perf_counter() - begin)
        host = events.host_seconds(call)
        clock = events.Events(call, None, self.gpu.flush, host, fixed=self.gpu.fixed or 0.0)
        clock.windows = windows_for(min(taken))
        said = "; ".join(part for part in (changed.said, facts) if part)
        most = None if changed.most == float("inf") else changed.most
        return Tried(name, DEVICE, clock.sample, said, changed.work, most, late=lambda: clock.late)


class Answering(TorchDispatchMode):
    """Values that the host asks for are 0, at once; one that it hands over is filled in.

    torch makes a tensor of the CPU of `y[i] = 0.0` and copies it, which a graph can't hold.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if "_local_scalar_dense" in str(func):
            kind = args[0].dtype
            return 0.0 if kind.is_floating_point else False if kind == torch.bool else 0
        if func is torch.ops.aten.copy_.default and _handed_over(*args[:2]):
            return args[0].fill_(args[1].item())
        return func(*args, **(kwargs or {}))


def _handed_over(to: torch.Tensor, value: torch.Tensor) -> bool:
    return value.numel() == 1 and value.device.type == "cpu" != to.device.type


def _graphs(
    channel: Channel, one: single.Single, device: str, trying: list[Experiment]
) -> list[Tried]:
    """The call as it is made, and as a graph, by what a caller waits."""
    major, minor = torch.cuda.get_device_capability(device)
    channel.send(trying=BASE)
    placed = single.place(one, device)
    kernel = single.built(placed, device, f"sm_{major}{minor}")

    def call() -> None:
        kernel.run(placed.outputs, list(placed.inputs))

    for _ in range(WARM_CALLS):
        call()
    torch.cuda.synchronize()
    found = [Tried(BASE, WALL, walled(call))]
    for each in trying:
        channel.send(trying=each.name)
        try:
            replay = _captured(call, waits="waits" in each.name)
        except RuntimeError as error:
            traceback.print_exc()
            why = str(error).strip().split("\n")[0]
            channel.send(not_tried=each.name, reason=f"it can't be captured: {why}")
            break  # a failed capture may leave the process in no state to go on
        found.append(Tried(each.name, WALL, walled(replay), "one graph launch"))
    return found


def _captured(call: Callable[[], None], waits: bool) -> Callable[[], None]:
    graph = torch.cuda.CUDAGraph()
    with capturing(graph):
        if waits:
            with Answering():
                call()
        else:
            call()
    graph.replay()
    torch.cuda.synchronize()
    return graph.replay


def walled(call: Callable[[], Any]) -> Callable[[], float]:
    """A sample of what a user waits for it, in seconds."""

    def sample() -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    return sample


def sample(made: list[Tried], seconds: float) -> None:
    """Rounds of all, in random order, until the time is spent; the first ones are not kept."""
    order, start = random.Random(0), time.monotonic()
    for each in made:
        for _ in range(3):
            each.sample()
    for number in range(MOST_ROUNDS):
        if number >= LEAST_ROUNDS and time.monotonic() - start > seconds:
            break
        for each in order.sample(made, len(made)):
            each.samples.append(each.sample())
            each.rounds.append(number)


def data_of(one: Tried) -> dict[str, Any]:
    return {
        "name": one.name,
        "clock": one.clock,
        "samples": one.samples,
        "rounds": one.rounds,
        "median": statistics.median(one.samples),
        "said": one.said,
        "work": one.work,
        "most": one.most,
        "late": one.late(),
    }
