"""The parent's side of timing: one schedule, its samples made timings, or a reason for none."""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from ..errors import AssayError
from ..processes import Child, Ended, TimedOut
from ..session import Session, threads_for
from ..types import FAIL, OUTCOMES, Machine, Roofs, Row, Share, Timing, replace
from ..verdict.judge import Conditions, Oracle, foreign
from ..verdict.protocol import Ran, Spec
from . import floor, plausible
from .protocol import Entry, Plan
from .statistics import interval, steadiness

LOAD_SECONDS, SAMPLE_SECONDS = 600.0, 120.0


class Timer:
    """The timing child of one Op: one process for all its cases, replaced if a kernel ends it."""

    def __init__(
        self,
        session: Session,
        conditions: Conditions,
        oracle: Oracle,
        machine: Machine,
        seconds: float,
        roofs: Sequence[Roofs] = (),
    ):
        self.session, self.conditions, self.oracle = session, conditions, oracle
        self.machine, self.seconds = machine, seconds
        self.roofs = {one.device: one for one in roofs}
        self._stack = contextlib.ExitStack()
        self._child: Child | None = None

    def __enter__(self) -> Timer:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def rows(self, rows: list[Row]) -> list[Row]:
        """The rows of one case, all right, with their timings: one schedule.

        A kernel that brings the process down becomes a failed row, the others are timed again.
        """
        done = list(rows)
        left = list(range(len(rows)))
        while left:
            folder = self.session.folder()
            plan = _plan(
                self.conditions,
                self.machine,
                [rows[i] for i in left],
                self.oracle.specs(rows[0].case, self.conditions.seed),
                self.seconds,
                folder,
            )
            outcome = self._one(plan)
            if isinstance(outcome, _Lost):
                index = left.pop(outcome.index)
                done[index] = _failed(rows[index], outcome.word, outcome.reason)
                shutil.rmtree(folder, ignore_errors=True)
                continue
            for number, index in enumerate(left):
                done[index] = outcome.row(
                    number, rows[index], self.oracle, self.machine, plan, self.roofs
                )
            shutil.rmtree(folder, ignore_errors=True)
            break
        return done

    def _one(self, plan: Plan) -> _Done | _Lost:
        name = f"timing {plan.op}"
        failed: dict[int, tuple[str, str]] = {}
        child = self._child or self._start(name)
        try:
            child.send(plan=msgspec.to_builtins(plan))
            return _listen(self.session, child, plan, failed)
        except TimedOut:
            self._end()
            return _Lost(_culprit(plan), "timed out", "no answer while it was timed; it was ended")
        except Ended as ended:
            self._end()
            if self.session.stopped.is_set():
                raise
            if ended.status.harness:
                tail = self.session.log_tail(name)
                raise AssayError(
                    f"{name}: Assay itself failed; please report this\n{tail}"
                ) from None
            index = _culprit(plan)
            if index in failed:
                return _Lost(index, *failed[index])
            how = f"right when judged; when timed, it ended its process with {ended.status.label}"
            return _Lost(index, "crashed", how)

    def _start(self, name: str) -> Child:
        threads = threads_for(1)
        env = {"OMP_NUM_THREADS": str(threads), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        self._child = self._stack.enter_context(
            self.session.child(
                "assay.clock.timing:main",
                {"threads": threads, "device": self.conditions.device},
                name=name,
                env=env,
            )
        )
        return self._child

    def _end(self) -> None:
        self._stack.close()
        self._child = None


def _plan(
    conditions: Conditions,
    machine: Machine,
    rows: list[Row],
    specs: list[dict[str, Any]],
    seconds: float,
    folder: Path,
) -> Plan:
    state = folder / "state"
    state.write_bytes(b"\0")
    entries = tuple(Entry(variant=r.variant, knobs=r.knobs, judge=r.device) for r in rows)
    return Plan(
        target=conditions.target,
        op=rows[0].op,
        case=rows[0].case,
        specs=tuple(msgspec.convert(spec, Spec) for spec in specs),
        entries=entries,
        device=conditions.device if any(r.device != "cpu" for r in rows) else "cpu",
        arch=conditions.arch,
        seed=conditions.seed,  # the oracle still has its truth; this process never saw it
        seconds=seconds,
        threads=threads_for(1),
        scratch=str(folder),
        state=str(state),
        llc_bytes=machine.llc_bytes or 0,
    )


class _Lost:
    """A kernel that ended or hung the process."""

    def __init__(self, index: int, word: str, reason: str):
        self.index, self.word, self.reason = index, word, reason


def _culprit(plan: Plan) -> int:
    return Path(plan.state).read_bytes()[0]


def _listen(
    session: Session, child: Child, plan: Plan, failed: dict[int, tuple[str, str]]
) -> _Done:
    seconds, fresh = LOAD_SECONDS, -1
    while True:
        message = child.receive(seconds)
        if "mistake" in message:
            raise AssayError(message["mistake"])
        if "refused" in message:
            return _Done([], {}, message["refused"])
        if "failed" in message:
            failed[message["failed"]] = _own_word(str(message["word"]), str(message["reason"]))
            if len(failed) == len(plan.entries):
                return _Done([], failed, "")
        elif "progress" in message:
            seconds = SAMPLE_SECONDS + 20 * plan.seconds
            session.say(f"timing {plan.case.label}: {100 * message['progress']:.0f} %")
        elif "fresh" in message:  # no sooner, so that nobody can know the answers beforehand
            fresh = secrets.randbelow(1 << 31)
            child.send(seed=fresh)
        elif "done" in message:
            return _Done(message["done"], failed, "", fresh)


class _Done:
    """What a timing process measured."""

    def __init__(
        self,
        results: list[dict[str, Any]],
        failed: dict[int, tuple[str, str]],
        refused: str,
        fresh: int = -1,
    ):
        self.results = {r["index"]: r for r in results}
        self.failed, self.refused, self.fresh = failed, refused, fresh
        self.schedule = secrets.token_hex(5)

    def row(
        self,
        number: int,
        row: Row,
        oracle: Oracle,
        machine: Machine,
        plan: Plan,
        roofs: Mapping[str, Roofs],
    ) -> Row:
        if self.refused:
            return replace(row, not_timed=self.refused)
        if number in self.failed:
            return _failed(row, *self.failed[number])
        said = self.results[number]
        forged = _forged(said["ran"], plan, self.fresh)
        if forged:
            return _failed(row, "tampered", f"its timing process shipped {forged}")
        for ran in said["ran"]:
            verdict = oracle.verdict(row.case, [ran], row.precision, row.device, row.device)
            if verdict.word != "right":
                reason = f"right when judged; in the timed calls: {verdict.detail}"
                word = "stale answer" if _is_old(oracle, row, ran, plan) else verdict.word
                return replace(_failed(row, word, reason), verdict=replace(verdict, word=word))
        low, middle, high = interval(said["samples"])
        work = _work(row, plan)
        least = floor.floor(
            work,
            machine.gpu(row.device),
            cold=said["cache"] != "hot",
            copy_rate=said["copy_rate"],
            null_seconds=_null(said),
        )
        why = plausible.refuse(
            said["samples"],
            middle,
            null_seconds=said["null_seconds"],
            late=said["late"],
            host_seconds=said["host_seconds"],
            floor=least,
            kernels=said.get("kernels"),
            elsewhere=said.get("elsewhere", 0),
            fixed_seconds=said["fixed_seconds"],
            span_seconds=said.get("span_seconds"),
            uneven=said.get("uneven", ""),
        )
        if why:
            return replace(row, not_timed=why)
        reached, no_share = _share(work, middle, said["cache"], row.device, roofs)
        timing = Timing(
            samples=tuple(said["samples"]),
            rounds=tuple(said["rounds"]),
            calls=said["calls"],
            windows=said["windows"],
            method=said["method"],
            cache=said["cache"],
            schedule=self.schedule,
            median=middle,
            low=low,
            high=high,
            steady=steadiness(said["samples"]),
            threads=plan.threads if row.device == "cpu" else None,
            null_seconds=said["null_seconds"],
            fixed_seconds=said["fixed_seconds"],
            warmup_seconds=said["warm_seconds"],
            warmup_calls=said["warm_calls"],
            first_call_seconds=said["first_seconds"],
            host_seconds=said["host_seconds"],
            clock_hz=_pair(said["clock_hz"]),
            watts=_pair(said["watts"]),
            celsius=_pair(said["celsius"]),
            copy_rate=said["copy_rate"],
            kernels=said.get("kernels"),
            kernel_seconds=said.get("kernel_seconds"),
            span_seconds=said.get("span_seconds"),
            seed=plan.seed,
            notes=_notes(said),
            floor=least,
            share=reached,
            no_share=no_share,
        )
        return replace(row, timing=timing)


def _null(said: dict[str, Any]) -> float | None:
    """What nothing reads in the time of the samples; None where less than nothing is left of it."""
    if said["null_seconds"] is None:
        return None
    left = float(said["null_seconds"]) - float(said["fixed_seconds"] or 0.0)
    return left if left > 0 else None


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    return (float(values[0]), float(values[1])) if values else None


def _own_word(word: str, reason: str) -> tuple[str, str]:
    """What a timing process says of a kernel; nothing good is believed."""
    if OUTCOMES.get(word) == FAIL or word == "not run":
        return word, reason
    return "tampered", f"its timing process sent the verdict {word!r}"


def _forged(raw: list[Any], plan: Plan, fresh: int) -> str:
    """What in the outputs of timed calls was not asked for, or empty."""
    runs = [msgspec.convert(ran, Ran) for ran in raw]
    if len(runs) != 2 or runs[0].seed not in (plan.seed, plan.seed + 1) or runs[1].seed != fresh:
        return "answers to other inputs"
    return foreign(runs, Path(plan.scratch))


def _is_old(oracle: Oracle, row: Row, ran: dict[str, Any], plan: Plan) -> bool:
    """Whether a wrong answer is the right one for inputs that were there before."""
    seeds = [seed for seed in (plan.seed, plan.seed + 1) if seed != ran["seed"]]
    return any(
        oracle.verdict(
            row.case, [{**ran, "seed": seed}], row.precision, row.device, row.device
        ).word
        == "right"
        for seed in seeds
    )


def _notes(said: dict[str, Any]) -> tuple[str, ...]:
    notes = []
    if said["retaken"]:
        notes.append(f"{said['retaken']} samples taken again: the launch was not hidden")
    if said.get("no_witness"):
        notes.append(f"no-cupti: {said['no_witness']}; what events add is still in the times")
    if said.get("uneven"):
        notes.append(said["uneven"])
    if said.get("no_nvml"):
        notes.append(f"clocks and power are not known: {said['no_nvml']}")
    notes += [f"held down: {reason}" for reason in said["throttled"]]
    return tuple(notes)


def _work(row: Row, plan: Plan) -> floor.Work:
    """What one call must do; what it writes is the size of its outputs."""
    written = sum(prod(spec.shape) * _item_bytes(spec.dtype) for spec in plan.specs)
    kind = floor.kind_of(row.precision, str(row.case.values.get("dtype", "")))
    return floor.Work(row.bytes, written, row.flops, kind)


def _item_bytes(dtype: str) -> int:
    """Of an element, by the number in torch's name of its dtype; `bool` has none, and one byte."""
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits else 1


NO_ROOFS = "no ceilings of {device} are known: `assay roofs --device {device}` measures them"


def _share(
    work: floor.Work, seconds: float, cache: str, device: str, known: Mapping[str, Roofs]
) -> tuple[Share | None, str]:
    """The share of a ceiling, and why there can be none."""
    roofs = known.get(device)
    if roofs is None:
        return None, NO_ROOFS.format(device=device)
    if roofs.doubtful:
        return None, f"ceiling doubtful: {roofs.doubtful}"
    return floor.share(work, seconds, cache, roofs), ""


def _failed(row: Row, word: str, reason: str) -> Row:
    return replace(row, outcome=OUTCOMES[word], word=word, reason=reason, verdict=None)
