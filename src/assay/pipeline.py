"""The one loop: describe, judge every variant apart, time together what is right, give rows.

It serves check and bench alike, and yields each row as soon as it is final. However it ends,
whatever was judged is yielded first.
"""

from __future__ import annotations

import datetime
import queue
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from .choosing import chosen, matching
from .clock.made import Known
from .clock.schedule import Timer
from .describe import CaseFacts, OpFacts, VariantFacts
from .errors import AssayError, OpError
from .processes import Ended
from .request import Progress, Request, chosen_device, conditions_of
from .roofs.store import stored
from .sanitize import Sanitizer, reason_not_to
from .sanitize import tool as sanitizer
from .selftest.store import load as rulers_of
from .selftest.store import noise_of
from .session import Session, Stopped
from .target import Target
from .types import OUTCOMES, Case, Machine, Roofs, Row, Scalar, Strength, replace
from .unsynced import warnings
from .verdict.asking import Conditions, Oracle
from .verdict.judge import judge

DESCRIBE_SECONDS = 120.0
FULL_SECONDS, QUICK_SECONDS = 6.0, 1.5


def run(
    session: Session, request: Request, progress: Progress
) -> Iterator[Row | Machine | Strength | Roofs]:
    """The machine and its ceilings, where they are known; then of each Op what its cases would
    notice, and every row.

    Raises AssayError for the user's mistakes, after the rows.
    """
    machine = session.machine()
    yield machine
    device = chosen_device(request.device, machine)
    known = known_of(machine) if request.timed else Known(machine, {}, {})
    yield from known.roofs.values()
    for target in request.targets:
        for text in _unsynced(target):
            progress.note(text)
        wanted = {n: v for n, v in (request.case or {}).items() if n != "zoo"}
        for op in describe(session, target, wanted, request.dtypes):
            conditions = conditions_of(request, target, machine, device)
            yield from _Loop(session, request, progress, conditions, known, op).rows()


def _unsynced(target: Target) -> list[str]:
    """Warnings of timings in a user's own file. What can't be read is told when it is imported."""
    if not target.file or not Path(target.file).is_file():
        return []
    return warnings(Path(target.file).read_text(errors="replace"), target.file)


def known_of(machine: Machine) -> Known:
    """What was measured on this machine before: its ceilings, and the noise of its clock."""
    devices = ["cpu", *(f"cuda:{index}" for index in range(len(machine.gpus)))]
    rulers = {device: rulers_of(machine.id, device) for device in devices}
    noise = {device: noise_of(ruler) for device, ruler in rulers.items() if ruler}
    return Known(machine, {one.device: one for one in stored(machine)}, noise)


def describe(
    session: Session,
    target: Target,
    case: dict[str, Scalar] | None = None,
    dtypes: tuple[str, ...] = (),
) -> list[OpFacts]:
    """What is in a target, with the chosen cases. Raises AssayError."""
    args = {
        "target": msgspec.to_builtins(target),
        "case": case or {},
        "dtypes": list(dtypes),
    }
    answer = session.ask(
        "assay.describe:main",
        args,
        name=f"describe {target.text}",
        seconds=DESCRIBE_SECONDS,
    )
    return [msgspec.convert(op, OpFacts) for op in answer["ops"]]


class _Loop:
    """Judging and timing of one Op."""

    def __init__(
        self,
        session: Session,
        request: Request,
        progress: Progress,
        conditions: Conditions,
        known: Known,
        op: OpFacts,
    ):
        self.session, self.request, self.progress = session, request, progress
        self.conditions, self.known, self.op = conditions, known, op
        self.variants = chosen(op, request.variants)
        self.asked = matching(self.variants, request.zoo_of)
        """Variants that hostile inputs are asked of."""
        self.only = str((request.case or {}).get("zoo", ""))
        """The one kind of hostile input that is asked for by `--case zoo=...`."""
        self.held: list[Row] = []
        """Right, and waiting to be timed."""

    def rows(self) -> Iterator[Row | Strength]:
        cases = list(self.op.cases)
        try:
            with Oracle(self.session, self.conditions, self.op.name) as oracle:
                self.progress.step(f"{self.op.name}: reference in float64", 0, 1)
                strengths = self._strengths(oracle, cases)
                yield from strengths
                weak = {s.dtype: s.weak for s in strengths}
                hostile, unasked = self._hostile(oracle)
                yield from map(stamped, unasked)
                declared = [] if self._hostile_alone else cases
                for row in self._judged(oracle, declared, hostile):
                    why = weak.get(str(row.case.values.get("dtype", "")), "")
                    if why and row.word == "right" and not row.case.zoo:
                        yield stamped(weakened(row, why))
                    elif (
                        row.word == "right"
                        and self.request.timed
                        and not row.not_timed
                        and not row.case.zoo
                    ):
                        self.held.append(row)
                    else:
                        yield stamped(row)
                yield from self._timed(oracle, cases)
        except (Ended, Stopped):
            pass  # interrupted: the caller knows, and what was judged follows
        finally:
            held, self.held = self.held, []
            for row in held:
                yield stamped(replace(row, not_timed="the run ended before its turn"))

    @property
    def _hostile_alone(self) -> bool:
        return bool(self.only) or not self.request.declared

    def _strengths(self, oracle: Oracle, cases: list[CaseFacts]) -> list[Strength]:
        if self._hostile_alone:
            return []
        return oracle.strengths([c.case for c in cases], self.conditions.seed)

    def _hostile(self, oracle: Oracle) -> tuple[list[CaseFacts], list[Row]]:
        """The zoo made of the Op's cases; and a row for each of it that asks nothing, with why."""
        if not (self.request.zoo or self.only) or not self.asked:
            return [], []
        self.progress.step(f"{self.op.name}: hostile inputs", 0, 1)
        cases = [c.case for c in self.op.cases]
        made, unasked = [], []
        asked = [variant.name for variant in self.asked]
        for one in oracle.zoo(cases, _near(self.variants), self.conditions.seed, asked):
            case = msgspec.convert(one.get("case") or one["facts"]["case"], Case)
            if self.only and case.zoo != self.only:
                continue
            if "facts" in one:
                made.append(msgspec.convert(one["facts"], CaseFacts))
            else:
                unasked.append(self._unasked(case, one["why"]))
        if self.only and not made and not unasked:
            raise OpError(
                f"{self.op.name}: no hostile input zoo={self.only}; `assay check` without --case "
                "lists those there are"
            )
        return made, unasked

    def _unasked(self, case: Case, why: str) -> Row:
        return Row(
            op=self.op.name,
            variant="eager",
            way="eager",
            case=case,
            device=self.conditions.device,
            machine=self.conditions.machine,
            outcome=OUTCOMES["not run"],
            word="not run",
            reason=f"asked of no variant: {why}",
        )

    def _judged(
        self, oracle: Oracle, declared: list[CaseFacts], hostile: list[CaseFacts]
    ) -> Iterator[Row]:
        """Rows of all variants, several children at a time, in the order in which they end."""
        out: queue.Queue[Any] = queue.Queue()
        of = {v.name: [*declared, *(hostile if v in self.asked else ())] for v in self.variants}
        total = sum(len(v.configurations) * len(of[v.name]) for v in self.variants)

        sanitized = self._sanitized(oracle)

        def one(variant: VariantFacts) -> None:
            try:
                for row in judge(
                    self.session, self.conditions, oracle, self.op, variant, of[variant.name]
                ):
                    out.put(sanitized(row))
            except (AssayError, Stopped, Ended) as error:
                out.put(error)
            except BaseException as error:  # noqa: BLE001 - handed to the main thread, which raises
                out.put(error)
            out.put(None)

        with ThreadPoolExecutor(self.conditions.workers) as pool:
            for variant in self.variants:
                pool.submit(one, variant)
            try:
                errors = yield from self._drained(out, total)
            except BaseException:
                self.session.stop()  # else leaving the pool would wait for every child
                raise
        if errors:
            raise errors[0]

    def _sanitized(self, oracle: Oracle) -> Callable[[Row], Row]:
        """What makes of each row one that compute-sanitizer was asked about, if that is wanted."""
        if not self.request.sanitize:
            return lambda row: row
        program = sanitizer.find()
        why_not = reason_not_to(self.conditions.device, self.known.machine.no_gpu, program)
        args = self.session, self.conditions, oracle, why_not, program, self.progress.note
        return Sanitizer(*args).row

    def _drained(self, out: queue.Queue[Any], total: int) -> Generator[Row, None, list[Any]]:
        """Rows out of the queue until every variant has put its None; what went wrong meanwhile."""
        running, done, errors = len(self.variants), 0, []
        while running:
            item = _patient(out)
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                errors.append(item)
            else:
                done += 1
                what = f"{self.op.name} {item.label} {item.case.label}"
                self.progress.step(f"judged {what}", done, total)
                yield item
        return errors

    def _timed(self, oracle: Oracle, cases: list[CaseFacts]) -> Iterator[Row]:
        self.progress.judged()
        again: list[Row] = []
        for row in self._once(oracle, cases, ""):
            again += [row] if row.timing else []
            yield row
        for number in range(1, self.request.processes):
            self.held = [replace(row, timing=None) for row in again]
            which = f", process {number + 1} of {self.request.processes}"
            yield from self._once(oracle, cases, which)

    def _once(self, oracle: Oracle, cases: list[CaseFacts], which: str) -> Iterator[Row]:
        """Times what is held in a fresh process, case by case."""
        order = [v.name for v in self.variants]
        seconds = self.request.budget or (QUICK_SECONDS if self.request.quick else FULL_SECONDS)
        wish = self.request.wish
        with Timer(self.session, self.conditions, oracle, self.known, seconds, wish) as timer:
            for number, case in enumerate(cases):
                mine = [r for r in self.held if r.case == case.case]
                if not mine:
                    continue
                mine.sort(key=lambda row: order.index(row.variant))
                what = f"timing {self.op.name} {case.case.label}: {len(mine)} kernels{which}"
                self.progress.step(what, number, len(cases))
                done = timer.rows(mine)
                self.held = [r for r in self.held if r.case != case.case]
                yield from map(stamped, done)


MOST_NEAR = 4096


def _near(variants: list[VariantFacts]) -> list[int]:
    """Sizes just above the smallest and the largest integer knob: what is left over by a block."""
    knobs = {v for one in variants for made in one.configurations for v in made.values()}
    blocks = sorted(k for k in knobs if isinstance(k, int) and 1 < k <= MOST_NEAR)
    return sorted({k + 1 for k in (blocks[0], blocks[-1])}) if blocks else []


def _patient(out: queue.Queue[Any]) -> Any:
    """The next item; wakes up now and then, so that Ctrl-C is heard."""
    while True:
        try:
            return out.get(timeout=0.5)
        except queue.Empty:
            continue


def weakened(row: Row, why: str) -> Row:
    """A right row of cases that would not notice what is wrong, and so no evidence."""
    word = "check too weak"
    return replace(row, outcome=OUTCOMES[word], word=word, reason=why)


def stamped(row: Row) -> Row:
    """The row with the time of now."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return replace(row, time=now.isoformat(timespec="seconds"))


def exit_code(rows: list[Row], require: tuple[str, ...] = ()) -> int:
    """0: no fail and a pass; 1: a fail; 3: nothing judged, or too weak."""
    outcomes = [row.outcome for row in rows]
    missing = [r for r in rows if r.outcome == "absent" and r.way in require]
    unseen = [w for w in require if all(r.way != w for r in rows)]
    if "fail" in outcomes or missing or unseen:
        return 1
    if "pass" in outcomes and "no evidence" not in outcomes:
        return 0
    return 3
