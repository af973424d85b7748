"""One run of a kernel on fresh buffers: what it left in memory, and what was still going on."""

from __future__ import annotations

import filecmp
import hashlib
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from ..build import Kernel, Specs
from ..inputs import dtype_of, inputs_of
from ..op import Op
from ..types import Case
from . import late
from .buffers import (
    ALIGNED,
    Poisoned,
    fence_like,
    fenced,
    inside,
    is_dense,
    overlap,
    plain,
    poisoned,
    sparse,
)
from .protocol import Ran, Settings, Task, runs_of
from .shipped import guards, raw_of, ship
from .tamper import Taken

if TYPE_CHECKING:
    from ..simt import Watch

MORE_RUNS, MORE_SECONDS = 7, 1.0
"""Where two equal runs differ: so many more tell how often, in so much time."""
POISON_PAIRS = 5
"""Runs with poison and without, each as expected: atomics that add in either of two orders at
random, and were seen in one of them five times by then, do that once in 2^15."""
MOST_KEPT = 1 << 30
"""Bytes of outputs that stay alive from run to run."""


@dataclass
class Runner:
    """All runs of one kernel on one case."""

    given: Settings
    op: Op
    kernel: Kernel
    case: Case
    task: Task
    watch: Watch | None
    taken: Taken
    scratch: Path
    _alive: list[torch.Tensor] = field(default_factory=list)
    """Outputs of earlier runs: no later run can get their memory, unless the kernel kept it."""

    def runs(self) -> list[Ran]:
        """The runs that are judged; the last one repeats the first."""
        plan, found = runs_of(self.given.seed), []
        begin = time.monotonic()
        for number, (seed, poison) in enumerate(plan):
            again = number == len(plan) - 1
            found.append(self.run(self._folder(str(number)), seed, poison, again=again))
        quick = time.monotonic() - begin < MORE_SECONDS
        if (quick or self._on_gpu) and not found[-1].late and not same_bytes(found[0], found[-1]):
            found[-1] = self._again(found[0], found[-1])
        return found

    def _again(self, first: Ran, last: Ran) -> Ran:
        """The last run, with what more runs say of why it differs from the first."""
        seen = {_digest(first), _digest(last)}
        repeats, end = 2, time.monotonic() + MORE_SECONDS
        while repeats < 2 + MORE_RUNS and (time.monotonic() < end or repeats == 2):
            more = self.run(self._folder("more"), first.seed, first.poison, order=repeats)
            if repeats == 2 and same_bytes(first, more) and self._late_again(first):
                if self._minds_poison_alone(first):
                    return msgspec.structs.replace(last, late=late.NOT_WAITING)
                last = msgspec.structs.replace(last, unlike_idle=True)
                break
            seen.add(_digest(more))
            repeats += 1
        return msgspec.structs.replace(last, different=len(seen), repeats=repeats)

    def _late_again(self, first: Ran) -> bool:
        """Whether a kernel that gave the same on an idle GPU gives something else on a busy one.

        Twice by now, so that it waits for nobody, or adds in another order there; a race would show
        on the idle GPU too.
        """
        if not self._on_gpu:
            return False
        busy = self.run(self._folder("busy"), first.seed, first.poison, again=True)
        idle = self.run(self._folder("more"), first.seed, first.poison)
        return not same_bytes(first, busy) and same_bytes(first, idle)

    def _minds_poison_alone(self, first: Ran) -> bool:
        """Whether it gives what an idle GPU gives whenever the inputs have their values while the
        stream is busy, and never when they hold poison. Else it may add in another order there."""

        def like_idle(in_place: bool) -> bool:
            folder = self._folder("busy")
            run = self.run(folder, first.seed, first.poison, again=True, in_place=in_place)
            return same_bytes(first, run)

        return all(like_idle(True) and not like_idle(False) for _ in range(POISON_PAIRS))

    @property
    def _on_gpu(self) -> bool:
        return self.given.judge.startswith("cuda")

    @property
    def specs(self) -> Specs:
        """Shapes and dtypes of the outputs that are not inputs."""
        own = self.task.specs[len(self.op.mutates) :]
        return [(spec.shape, dtype_of(spec.dtype)) for spec in own]

    def _folder(self, name: str) -> Path:
        folder = self.scratch / name
        folder.mkdir(exist_ok=True)
        return folder

    def run(
        self,
        folder: Path,
        seed: int,
        poison: int,
        *,
        again: bool = False,
        order: int = 0,
        in_place: bool = False,
    ) -> Ran:
        """One run on fresh buffers under one poison.

        again: compiled code goes through warps and blocks in another order; on a GPU, the caller's
        stream is a side stream, and busy, and inputs get their values on it (in_place: have them).
        """
        device = self.given.judge if self._on_gpu else "cpu"
        variant = self.kernel.variant
        contiguous = variant.layouts != "any"
        known = cached_inputs(self.op, self.case, seed)
        inputs = [fence_like(x, device, poison, contiguous) for x in known]
        outputs = [
            fenced(shape, torch.empty(shape, device="meta").stride(), dtype, device, poison)
            for shape, dtype in (self.specs if variant.fills else ())
        ]
        tensors = [t for t in [*inputs, *outputs] if isinstance(t, torch.Tensor)]
        placed = [t for t in tensors if not sparse(t)]
        if self.watch is not None:
            self.watch.clear()
            self.watch.order = order or (seed | 1 if again else 0)
            _show(self.watch, self.op, inputs, outputs)
        stream: AbstractContextManager[Any] = nullcontext()
        if self._on_gpu and again:
            tensors_in = [x for x in inputs if isinstance(x, torch.Tensor)]
            stream = late.busy(device, tensors_in, poison, in_place=in_place)
        before = late.threads()
        with torch.no_grad(), stream:
            with poisoned(poison, variant.way != "compiled", self.watch) as mode:
                returned = self.kernel.run(outputs, list(inputs))
                self.taken.check()
                made = [plain(value) for value in returned]
            exact = {_block(t) for t in placed}
            blocks = exact | {_block(t) for t in mode.fences}
            dense = [(i, v, _block(v) in blocks) for i, v in enumerate(made) if is_dense(v)]
            held = {i: raw_of(v, whole).clone() for i, v, whole in dense} if self._on_gpu else {}
        if self._on_gpu:
            torch.cuda.synchronize(device)
        owners = self._owners(made, inputs)
        shipped = tuple(
            ship(value, folder / f"output{i}", blocks, owners[i], _block(value) in exact)
            for i, value in enumerate(made)
        )
        late.wait(before)
        unlike = [
            index
            for index, value, whole in dense
            if not late.same(raw_of(value, whole), held.get(index), folder / f"output{index}")
        ]
        kept = self._kept(made)
        return Ran(
            seed=seed,
            poison=poison,
            outputs=tuple(
                msgspec.structs.replace(s, kept=i in kept) for i, s in enumerate(shipped)
            ),
            inputs=tuple(
                (index, ship(x, folder / f"input{index}", blocks, exact=True))
                for index, x in enumerate(inputs)
                if isinstance(x, torch.Tensor)
            ),
            scratch=_scratch(mode, {_block(value) for value in made}),
            faults=tuple(self.watch.faults) if self.watch is not None else (),
            late=late.STILL_WRITTEN.format(unlike[0]) if unlike else "",
        )

    @property
    def _is_reference(self) -> bool:
        # It may return a view, such as x.t(), or a constant: it says what, not where.
        variant = self.kernel.variant
        return variant.function is self.op.reference or variant.way == "compiled"

    def _owners(self, made: list[Any], inputs: list[Any]) -> list[str]:
        """For each output the input, or the output before it, in whose memory it lies."""
        names = self.op.input_names(len(inputs))
        owned = [(x, name) for x, name in zip(inputs, names) if isinstance(x, torch.Tensor)]
        if self._is_reference:
            owned = []
        owners = []
        for index, value in enumerate(made):
            owner = ""
            if is_dense(value) and index >= len(self.op.mutates):
                owner = next((name for known, name in owned if overlap(value, known)), "")
                owned.append((value, f"output {index}"))
            owners.append(owner)
        return owners

    def _kept(self, made: list[Any]) -> set[int]:
        """Outputs in the memory of those of an earlier run, which are still alive."""
        if self.kernel.variant.fills or self._is_reference:
            return set()
        own = [(i, v) for i, v in enumerate(made) if is_dense(v) and i >= len(self.op.mutates)]
        found = {i for i, value in own if any(overlap(value, old) for old in self._alive)}
        for _, value in own:
            if sum(t.nbytes for t in self._alive) + value.nbytes <= MOST_KEPT:
                self._alive.append(value)
        return found


def same_bytes(one: Ran, two: Ran) -> bool:
    """Whether two runs shipped the same outputs, with what lies round them."""
    pairs = list(zip(one.outputs, two.outputs))
    return len(one.outputs) == len(two.outputs) and all(
        (a.kind, a.shape, a.dtype) == (b.kind, b.shape, b.dtype)
        and (not a.path or filecmp.cmp(a.path, b.path, shallow=False))
        for a, b in pairs
    )


def _digest(ran: Ran) -> bytes:
    """Stands for the outputs of a run."""
    whole = hashlib.blake2b(digest_size=16)
    for out in ran.outputs:
        whole.update(repr((out.kind, out.shape, out.dtype)).encode())
        if out.path:
            whole.update(Path(out.path).read_bytes())
    return whole.digest()


def _show(watch: Watch, op: Op, inputs: list[Any], outputs: list[Any]) -> None:
    """Tells the watch whose memory is whose, and that nobody has written the outputs."""
    names = op.input_names(len(inputs))
    for value, name in zip(inputs, names):
        if isinstance(value, torch.Tensor):
            start, size = inside(value)
            askew = start % ALIGNED  # a window begins aligned, and what does not must stay so
            start, size, own = start - askew, size + askew, name not in op.mutates
            watch.memory.add(start, size, name=name, read_only=own, keep=value)
    for index, value in enumerate(outputs):
        start, size = inside(value)
        watch.memory.add(start, size, name=f"output {index}", written=False, keep=value)


def _scratch(mode: Poisoned, returned: set[int]) -> tuple[tuple[int, int], ...]:
    """What happened to the guards of tensors that were allocated and not returned."""
    found = []
    for value in mode.fences:
        if _block(value) in returned:
            continue
        before, after = guards(raw_of(value, True), mode.poison)
        size = value.element_size()
        found.append((-(-before // size), -(-after // size)))
    return tuple(found)


_made: dict[tuple[str, int, int], tuple[Any, ...]] = {}


def cached_inputs(op: Op, case: Case, seed: int) -> tuple[Any, ...]:
    """The inputs, which the configurations of a case share; every run gets copies of them.

    A kernel may find them here, and its own answers for them would still have to be computed.
    """
    key = (case.label, case.seed, seed)
    if key not in _made:
        if any(known[:2] != key[:2] for known in _made):
            _made.clear()
        _made[key] = inputs_of(op, case, seed)
    return _made[key]


def _block(value: Any) -> int:
    return value.untyped_storage().data_ptr() if is_dense(value) else 0
