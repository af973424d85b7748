"""The parent's side of judging: drives one candidate child a variant."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from .. import ways
from ..describe import CaseFacts, OpFacts, VariantFacts, label
from ..errors import AssayError
from ..processes import Child, Ended, Status, TimedOut
from ..session import Session
from ..types import FAIL, OUTCOMES, Barrier, Build, Case, Counters, Row, Scalar, Verdict
from .asking import Conditions, Oracle
from .protocol import Ran, Settings, runs_of

LOAD_SECONDS, BUILD_SECONDS, RUN_SECONDS = 120.0, 600.0, 30.0
MOST_CRASHES = 3
INTERRUPTED = "interrupted"
FAR = "an input that spans more than 2^31 elements needs a GPU; --device cuda runs it"
OWN_WORDS = frozenset(
    {"not run", "did not build", "did not launch", "not supported", "out of memory", "crashed"}
    | {"tampered"}
)
"""What a candidate may say of itself. Anything better is said by the oracle alone, of bytes."""


def judge(
    session: Session,
    conditions: Conditions,
    oracle: Oracle,
    op: OpFacts,
    variant: VariantFacts,
    cases: list[CaseFacts],
) -> Iterator[Row]:
    """A row for each configuration of one variant on each case, as soon as it is known."""
    return _Judge(session, conditions, oracle, op, variant, cases).rows()


class _Judge:
    def __init__(
        self,
        session: Session,
        conditions: Conditions,
        oracle: Oracle,
        op: OpFacts,
        variant: VariantFacts,
        cases: list[CaseFacts],
    ):
        self.session, self.conditions, self.oracle = session, conditions, oracle
        self.op, self.variant, self.cases = op, variant, cases
        self.here = ways.here(variant.way, conditions.device)
        self.stepped = ways.stepped(variant.way, conditions.device)
        """What judges it where its compiled code can't be run here."""
        self.name = f"{op.name} {variant.name}"
        self._phase, self._seconds = "loading", LOAD_SECONDS
        self._scratch = Path()
        self.unchecked: list[tuple[CaseFacts, dict[str, Scalar], str]] = []
        self.why: dict[int, str] = {}
        """Why a case's compiled code could not be run, where something else judged it."""

    def rows(self) -> Iterator[Row]:
        todo: deque[tuple[CaseFacts, dict[str, Scalar]]] = deque()
        for case in self.cases:
            if case.strided and self.variant.layouts != "any":
                continue  # it would get a contiguous copy
            if case.grid and self.variant.way not in ways.WITH_GRID:
                continue
            if case.of and self.variant.name not in case.of:
                continue  # it was asked the same of the base
            for knobs in self.variant.configurations:
                skip = case.skip.get(label(self.variant.name, knobs), "")
                if skip:
                    yield self._absent(case, knobs, skip)
                elif case.far and self.here.judge not in ("cpu", self.conditions.device):
                    yield self._absent(case, knobs, FAR)
                elif not self.here.judge and not self.here.compiles:
                    yield self._absent(case, knobs, self.here.reason)
                else:
                    todo.append((case, knobs))
        yield from self._judged(todo)
        if self.unchecked:
            todo = deque((case, knobs) for case, knobs, _ in self.unchecked)
            self.why = {id(case): reason for case, _, reason in self.unchecked}
            self.unchecked, self.here = [], self.stepped
            yield from self._judged(todo)

    def _judged(self, todo: deque[tuple[CaseFacts, dict[str, Scalar]]]) -> Iterator[Row]:
        crashes = 0
        while todo:
            scratch = self.session.folder()
            ended = yield from self._child(todo, str(scratch))
            shutil.rmtree(scratch, ignore_errors=True)
            if ended is None:
                continue
            case, knobs = todo.popleft()
            yield ended(case, knobs)
            crashes += 1
            if crashes >= MOST_CRASHES or ended is self._hung:
                why = "it timed out" if ended is self._hung else f"it ended {crashes} processes"
                while todo:
                    case, knobs = todo.popleft()
                    yield self._absent(case, knobs, f"{why} on an earlier case; run it alone")

    def _child(
        self, todo: deque[tuple[CaseFacts, dict[str, Scalar]]], scratch: str
    ) -> Generator[Row, None, Callable[[CaseFacts, dict[str, Scalar]], Row] | None]:
        """Rows of as many tasks as one child survives; returns how to name what ended it."""
        seed = self.conditions.seed
        tasks = [
            {
                "case": msgspec.to_builtins(c.case),
                "knobs": k,
                "specs": self.oracle.specs(c.case, seed),
            }
            for c, k in todo
        ]
        args = {"settings": self._settings(scratch), "tasks": tasks}
        self._scratch = Path(scratch)
        env = {"OMP_NUM_THREADS": str(self.conditions.threads), **self.here.env}
        with self.session.child(
            "assay.verdict.candidate:main", args, name=self.name, env=env
        ) as child:
            while todo:
                case, knobs = todo[0]
                try:
                    answer = self._answer(child)
                except TimedOut:
                    return self._hung
                except Ended as ended:
                    return self._ended(ended.status)
                todo.popleft()
                if answer.get("uncheckable") and self.here.judge != self.stepped.judge:
                    self.unchecked.append((case, knobs, str(answer["reason"])))
                else:
                    yield self._row(case, knobs, answer)
                if answer.get("last"):
                    return None
                if todo:
                    try:
                        child.send(go=True)
                    except Ended:
                        return None
        return None

    def _settings(self, scratch: str) -> dict[str, Any]:
        c = self.conditions
        made: dict[str, Any] = msgspec.to_builtins(
            Settings(
                target=c.target,
                op=self.op.name,
                variant=self.variant.name,
                judge=self.here.judge,
                device=c.device,
                arch=c.arch,
                seed=c.seed,
                budget=c.budget,
                threads=c.threads,
                scratch=scratch,
                drop_barriers=c.drop_barriers,
                why=f"{self.here.reason}: compiled for {c.arch}, not run",
            )
        )
        return made

    def _answer(self, child: Child) -> dict[str, Any]:
        """The child's word on the task at hand, under the deadline of its phase."""
        run = self.conditions.deadline
        if self.here.judge in ("interpreter", "simulator"):
            run = max(run, 3 * self.conditions.budget) if self.conditions.budget else 86_400.0
        # What is left of each for the whole task: whoever goes to and fro gains nothing by it.
        left = {"loading": LOAD_SECONDS, "build": BUILD_SECONDS, "run": run}
        whole, now, begun = dict(left), "loading", time.monotonic()
        while True:
            remaining = left[now] - (time.monotonic() - begun)
            if remaining <= 0:  # even where there are messages: it may send them all the time
                raise TimedOut
            message = child.receive(remaining)
            if "phase" in message:
                left[now] -= time.monotonic() - begun
                now = message["phase"] if message["phase"] in left else "run"
                begun = time.monotonic()
                self._phase, self._seconds = now, whole[now]
            elif "note" in message:
                self.session.say(f"{self.name}: {message['note']}")
            elif "mistake" in message:
                raise AssayError(message["mistake"])
            else:
                return message

    def _row(self, case: CaseFacts, knobs: dict[str, Scalar], answer: dict[str, Any]) -> Row:
        forged = _forged(answer, self.conditions.seed, self._scratch)
        if forged:
            reason = f"its process sent what Assay's own code never sends: {forged}"
            return self._make(case, knobs, "tampered", reason)
        facts: dict[str, Any] = {}
        if answer.get("build"):
            facts["build"] = msgspec.convert(answer["build"], Build)
        if answer.get("counters"):
            facts["counters"] = msgspec.convert(answer["counters"], Counters)
        facts["bytes"] = case.bytes if case.bytes is not None else answer.get("touched")
        if "ran" in answer:
            verdict = self.oracle.verdict(
                case.case,
                answer["ran"],
                self.variant.precision,
                self.here.device,
                answer.get("arch") or self.here.judge,
            )
            launched = answer.get("arch") or not verdict.total  # nothing to do launches nothing
            if self.here.judge == "simt" and not launched and verdict.word == "right":
                return self._absent(case, knobs, "it launched no kernel that could be watched")
            if answer.get("gpu_code") and verdict.word == "right":
                verdict = self._with_gpu_code(case, verdict, answer["gpu_code"])
            if answer.get("barriers") and verdict.word == "right":
                barriers = tuple(msgspec.convert(b, Barrier) for b in answer["barriers"])
                verdict = msgspec.structs.replace(verdict, barriers=barriers)
            if id(case) in self.why:
                findings = (*verdict.findings, self.why[id(case)])
                verdict = msgspec.structs.replace(verdict, findings=findings)
            if case.strided and verdict.outcome == FAIL:
                verdict = msgspec.structs.replace(verdict, advice=_blind(case.case))
            reason = verdict.detail
            word = verdict.word
            not_timed = "" if self.here.timed or word != "right" else self.here.reason
            return self._make(
                case, knobs, word, reason, verdict=verdict, not_timed=not_timed, **facts
            )
        word, reason = str(answer["word"]), str(answer["reason"])
        if word == "not supported" and case.unsupported:
            word = "refused"
        if answer.get("log"):
            facts["build"] = Build(seconds=0.0, cached=False, log=answer["log"])
        return self._make(case, knobs, word, reason, **facts)

    def _with_gpu_code(self, case: CaseFacts, verdict: Verdict, said: dict[str, Any]) -> Verdict:
        """The verdict, with what was found of the code that the same variant runs on a GPU."""
        if "why" in said:
            note = f"its GPU code was not run: {said['why']}"
            return msgspec.structs.replace(verdict, findings=(*verdict.findings, note))
        found = self.oracle.verdict(
            case.case, [said["ran"]], self.variant.precision, "cpu", said["arch"]
        )
        if found.word != "right":
            return msgspec.structs.replace(found, detail=f"its GPU code: {found.detail}")
        kernels = "1 kernel" if said["kernels"] == 1 else f"{said['kernels']} kernels"
        note = f"its GPU code ({kernels}) is right too, checked as {said['arch']}"
        if said["extern"]:
            note += f"; not checked: {', '.join(said['extern'])}"
        return msgspec.structs.replace(verdict, findings=(*verdict.findings, note))

    def _hung(self, case: CaseFacts, knobs: dict[str, Scalar]) -> Row:
        how = f"no answer after {self._seconds:.0f} s ({self._phase}); it was ended"
        return self._make(case, knobs, "timed out", how)

    def _ended(self, status: Status) -> Callable[[CaseFacts, dict[str, Scalar]], Row]:
        if self.session.stopped.is_set():
            return lambda case, knobs: self._absent(case, knobs, INTERRUPTED)
        if status.harness and self._phase == "loading":  # later, a kernel may have had its hands in
            tail = self.session.log_tail(self.name)
            raise AssayError(f"{self.name}: Assay itself failed; please report this\n{tail}")
        how = f"it ended its process with {status.label} ({self._phase})"
        if status.label == "SIGKILL":
            how += ", most often the system's answer to want of memory"
        if status.left:
            how += f"; processes {', '.join(map(str, status.left))} could not be ended"
        return lambda case, knobs: self._make(case, knobs, "crashed", how)

    def _absent(self, case: CaseFacts, knobs: dict[str, Scalar], why: str) -> Row:
        return self._make(case, knobs, "not run", why)

    def _make(
        self, case: CaseFacts, knobs: dict[str, Scalar], word: str, reason: str, **facts: Any
    ) -> Row:
        facts.setdefault("bytes", case.bytes)
        return Row(
            op=self.op.name,
            variant=self.variant.name,
            way=self.variant.way,
            knobs=knobs,
            source_hash=self.variant.source_hash,
            case=case.case,
            device=self.here.device if self.here.judge else self.conditions.device,
            machine=self.conditions.machine,
            outcome=OUTCOMES[word],
            word=word,
            reason=reason,
            flops=case.flops,
            precision=self.variant.precision,
            lines=self.variant.lines,
            **facts,
        )


def _forged(answer: dict[str, Any], seed: int, scratch: Path) -> str:
    """What in an answer can't come from the candidate's own code; empty if nothing is.

    A kernel finds its process's socket if it looks for it. It can't forge a right answer, for the
    oracle compares bytes with a truth that no candidate knows; but it must not choose the inputs
    either, ship another process's files, or stop the parent with nonsense.
    """
    try:
        if "ran" not in answer:
            word, _ = str(answer["word"]), str(answer["reason"])
            return "" if word in OWN_WORDS else f"the verdict {word!r}"
        runs = [msgspec.convert(run, Ran) for run in answer["ran"]]
        ran = [*runs]
        if answer.get("gpu_code") and "ran" in answer["gpu_code"]:
            ran.append(msgspec.convert(answer["gpu_code"]["ran"], Ran))
        for name, kind in (("build", Build), ("counters", Counters)):
            if answer.get(name):
                msgspec.convert(answer[name], kind)
        for barrier in answer.get("barriers") or ():
            msgspec.convert(barrier, Barrier)
    except (msgspec.ValidationError, KeyError, TypeError) as error:
        return f"a message without sense ({error})"
    if tuple((run.seed, run.poison) for run in runs) != runs_of(seed):
        return "runs that were not asked for"
    if any(run.seed != seed for run in ran[len(runs) :]):
        return "inputs that were not asked for"
    return foreign(ran, scratch)


def foreign(runs: list[Ran], scratch: Path) -> str:
    """A file among those shipped that is not the process's own, or empty."""
    for run in runs:
        for shipped in (*run.outputs, *(s for _, s in run.inputs)):
            path = Path(shipped.path)
            if shipped.path and (
                path.is_symlink() or scratch.resolve() not in path.resolve().parents
            ):
                return f"the file {path.name} of somebody else"
    return ""


def _blind(case: Case) -> str:
    """What to do about a variant that is wrong on a layout which it says it takes."""
    name = case.zoo.partition(":")[0]
    if case.zoo.endswith(":far"):
        return f"compute offsets into {name} in 64 bits: a row times its stride passes 2^31"
    return (
        f"it takes {name} for contiguous: use {name}.stride(), or declare "
        'layouts="contiguous", and it is given a contiguous copy'
    )
