"""The parent's side of timing: one schedule, its samples made timings, or a reason for none."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import msgspec

from ..errors import AssayError
from ..processes import Child, Ended, TimedOut
from ..session import Session, threads_for
from ..types import FAIL, OUTCOMES, Machine, Row, replace
from ..verdict.asking import Conditions, Oracle
from ..verdict.judge import foreign
from ..verdict.protocol import Ran, Spec
from . import made
from .made import Known
from .protocol import Entry, Plan, Wish

LOAD_SECONDS, SAMPLE_SECONDS = 600.0, 120.0


class Timer:
    """The timing child of one Op: one process for all its cases, replaced if a kernel ends it."""

    def __init__(
        self,
        session: Session,
        conditions: Conditions,
        oracle: Oracle,
        known: Known,
        seconds: float,
        wish: Wish,
    ):
        """seconds: of sampling, a case."""
        self.session, self.conditions, self.oracle = session, conditions, oracle
        self.known, self.seconds, self.wish = known, seconds, wish
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
                self.known.machine,
                [rows[i] for i in left],
                self.oracle.specs(rows[0].case, self.conditions.seed),
                self.seconds,
                folder,
                self.wish,
            )
            outcome = self._one(plan)
            if isinstance(outcome, _Lost):
                index = left.pop(outcome.index)
                done[index] = _failed(rows[index], outcome.word, outcome.reason)
                shutil.rmtree(folder, ignore_errors=True)
                continue
            for number, index in enumerate(left):
                done[index] = outcome.row(number, rows[index], self.oracle, plan, self.known)
            shutil.rmtree(folder, ignore_errors=True)
            break
        return done

    def _one(self, plan: Plan) -> _Done | _Lost:
        name = f"timing {plan.op}"
        failed: dict[int, tuple[str, str]] = {}
        child = self._child or self._start(name)
        try:
            child.send(plan=msgspec.to_builtins(plan))
            done = _listen(self.session, child, plan, failed)
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
        try:
            if _details(child, plan, done):
                self._end()
        except (TimedOut, Ended):
            self._end()
            if self.session.stopped.is_set():
                raise
            self.session.say(f"{name}: a kernel ended it after it was timed")
        return done

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
    wish: Wish,
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
        wish=wish,
        owner=os.getpid(),
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


def _details(child: Child, plan: Plan, done: _Done) -> bool:
    """Adds what is measured after the samples; whether the process is of no more use then.

    Raises Ended or TimedOut, and has lost no sample then.
    """
    if not (plan.wish.period or plan.wish.sustained) or plan.device == "cpu" or not done.results:
        return False
    for said in done.results.values():  # until it is there
        said["no_period"] = "the process ended first" if plan.wish.period else ""
    while True:
        message = child.receive(SAMPLE_SECONDS + plan.wish.sustained)
        if "over" in message:
            return bool(message["spoiled"])
        said = done.results[message.pop("detail")]
        said.pop("no_period")
        said |= message


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

    def row(self, number: int, row: Row, oracle: Oracle, plan: Plan, known: Known) -> Row:
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
        if not said["samples"]:
            return replace(row, not_timed=f"CUPTI can't tell its calls apart: {said['uneven']}")
        timing = made.timing(said, row, plan, self.schedule, known)
        why = made.refused(said, timing)
        if why:
            return replace(row, not_timed=why, rejected=timing)
        return replace(row, timing=timing)


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


def _failed(row: Row, word: str, reason: str) -> Row:
    return replace(row, outcome=OUTCOMES[word], word=word, reason=reason, verdict=None)
