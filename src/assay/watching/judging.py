"""One version of a file: its first case judged and told at once, then all the rest, then timed.

What was judged before stays where neither the Op nor the variant's code changed. Verdicts are those
of `assay bench`: the same runs, the same oracle, the same schedule of timing.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from ..choosing import chosen
from ..clock.schedule import Timer
from ..describe import CaseFacts, OpFacts, VariantFacts, label
from ..errors import AssayError, TargetError
from ..pipeline import known_of, stamped, weakened
from ..processes import Ended
from ..request import Progress, Request
from ..session import Session, Stopped
from ..types import Case, Machine, Row, Strength, replace
from ..verdict.asking import Conditions
from ..verdict.judge import judge
from .files import Files
from .look import Seen, key_of
from .oracles import Kept, Oracles
from .pool import Spares

SECONDS = 0.75
"""Of sampling a case, unless `--budget` says otherwise: an edit wants an answer soon."""
LOOK_SECONDS = 60.0
ABANDONED, CLOSED = "saved again before its turn", "the watch ended before its turn"
UNTIMED = "something else went wrong before its turn"

Id = tuple[str, str, str]
"""Op, variant with knobs, case: what a row is the row of."""


def id_of(row: Row) -> Id:
    """What a row is the row of."""
    return row.op, row.label, row.case.label


@dataclass(frozen=True)
class Looked:
    """A version was imported."""

    save: int
    changed: tuple[str, ...]
    """Variants of which something is judged; the rest keep their rows."""


@dataclass(frozen=True)
class Timed:
    """A case was timed: its rows, in one schedule, and those that keep an earlier one's time."""

    save: int
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Finished:
    """Nothing more will come of a version."""

    save: int


@dataclass(frozen=True)
class Held:
    """A row that stays as long as its keys are those of the file."""

    row: Row
    core: str
    key: str

    @property
    def untimed(self) -> bool:
        """Right, and not timed yet."""
        return self.row.word == "right" and not self.row.not_timed and self.row.timing is None


@dataclass(frozen=True)
class Setting:
    """What stays the same from one save to the next."""

    request: Request
    conditions: Conditions
    machine: Machine
    oracles: Oracles
    spares: Spares
    progress: Progress
    rows: dict[Id, Held]
    """Every row that was judged, by any version."""


class Judging:
    """One version judged, in a thread of its own. What it finds goes to `tell`, row by row."""

    def __init__(
        self,
        setting: Setting,
        session: Session,
        save: int,
        files: Files,
        tell: Callable[[Any], None],
    ):
        """files: those known to belong to the target, as they were when the save was noticed."""
        self.setting, self.session, self.save = setting, session, save
        self.files, self._tell = files, tell
        self.why = UNTIMED
        self._ops: list[_One] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, after: Judging | None) -> None:
        """Begins; times nothing before the judging `after` has ended, which is being stopped."""
        self._after = after
        self._thread.start()

    def stop(self, why: str) -> None:
        """Ends its children and waits for it. why: what rows say that wait to be timed."""
        self.why = why
        self.session.stop()
        self.join()
        self.session.close()

    def join(self) -> None:
        """Waits until it ended."""
        self._thread.join()

    def _run(self) -> None:
        try:
            seen = self._look()
            self._ops = [_One(self, seen, op) for op in seen.ops]
            self._tell(Looked(self.save, tuple(name for op in self._ops for name in op.changed())))
            for op in self._ops:
                op.run()
        except (Ended, Stopped):
            pass  # stopped: a newer version takes its place
        except AssayError as error:
            if not self.stale:
                self._tell(error)
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which raises
            self._tell(error)
        finally:
            self._tell(Finished(self.save))

    def _look(self) -> Seen:
        """Imports the file in a child. Raises AssayError for what is wrong with it."""
        request = self.setting.request
        args = {
            "target": msgspec.to_builtins(self.setting.conditions.target),
            "case": request.case or {},
            "dtypes": list(request.dtypes),
        }
        name = f"look at {self.setting.conditions.target.text}"
        ask = self.session.ask
        answer = ask("assay.watching.look:main", args, name=name, seconds=LOOK_SECONDS, linger=True)
        if "broken" in answer:  # what it needs may be beside it, under a name not known yet
            self.files = self.files.joined([*map(Path, answer["files"]), *self._folders()])
            raise TargetError(answer["broken"])
        seen = msgspec.convert(answer["seen"], Seen)
        self.files = self.files.only(map(Path, seen.files))
        return seen

    def _folders(self) -> set[Path]:
        return {path.parent for path in self.files.marks if path.is_file()}

    def rows(self) -> list[Row]:
        """Every row that holds for this version."""
        return [row for op in self._ops for row in op.rows()]

    @property
    def stale(self) -> bool:
        """Whether a newer version is there; what is found from now on may be of either."""
        return self.session.stopped.is_set() or bool(self.files.changed())

    def tell(self, noun: Row | Strength | Timed) -> None:
        """Hands on a row as it is final, or what the cases would notice."""
        if isinstance(noun, Row):
            noun = stamped(replace(noun, save=self.save))
        self._tell(noun)

    def settled(self) -> None:
        """Waits for the version before and for the spares, so that nothing runs beside timing."""
        if self._after is not None:
            self._after.join()
            self._after = None
        self.setting.spares.wait()


class _One:
    """One Op of a version."""

    def __init__(self, judging: Judging, seen: Seen, op: OpFacts):
        self.judging, self.setting, self.op = judging, judging.setting, op
        self.seen, self.core = seen, seen.core
        self.variants = chosen(op, self.setting.request.variants)
        self.cases = by_size(list(op.cases))
        self._strengths: list[Strength] = []

    def run(self) -> None:
        """Raises Ended or Stopped when a newer version is there, AssayError for an Op's fault."""
        kept = self.setting.oracles.of(self.op.name, self.core)
        try:
            self._judged(kept)
            self._strengths = self._asked(kept)
            self._timed(kept)
        except AssayError:
            if not self.judging.stale:
                self.setting.oracles.drop(self.op.name)
            raise
        finally:
            for held in [h for h in self._held() if h.untimed and h.row.save == self._save]:
                self._tell(replace(held.row, not_timed=self.judging.why))

    def changed(self) -> list[str]:
        """Variants of which something has to be judged."""
        return [v.name for v in self.variants if self._missing(v)]

    def rows(self) -> list[Row]:
        """The rows that hold for this version, as they were told last."""
        return [self._final(held.row) for held in self._held()]

    @property
    def _save(self) -> int:
        return self.judging.save

    def _tell(self, row: Row) -> None:
        self.judging.tell(self._final(row))

    def _final(self, row: Row) -> Row:
        why = {s.dtype: s.weak for s in self._strengths}
        weak = why.get(str(row.case.values.get("dtype", "")), "")
        return weakened(row, weak) if weak and row.word == "right" else row

    def _key(self, variant: str) -> str:
        return self.seen.keys[key_of(self.op.name, variant)]

    def _held(self) -> Iterator[Held]:
        """The rows that hold for this version, in the order of the file."""
        for variant in self.variants:
            for case in self.cases:
                for knobs in variant.configurations:
                    held = self._one_held(variant, case, knobs)
                    if held is not None:
                        yield held

    def _one_held(self, variant: VariantFacts, case: CaseFacts, knobs: Any) -> Held | None:
        id_ = self.op.name, label(variant.name, knobs), case.case.label
        held = self.setting.rows.get(id_)
        same = held is not None and (held.core, held.key) == (self.core, self._key(variant.name))
        return held if same else None

    def _missing(self, variant: VariantFacts) -> list[CaseFacts]:
        """Cases of which some row is missing."""
        return [
            case
            for case in self.cases
            if any(self._one_held(variant, case, k) is None for k in variant.configurations)
        ]

    def _judged(self, kept: Kept) -> None:
        """Judges what is missing: the first case of all variants, then the others."""
        missing = {v.name: self._missing(v) for v in self.variants}
        changed = [v for v in self.variants if missing[v.name]]
        changed.sort(key=lambda v: v.way in ("eager", "compiled"))  # what was edited is asked first
        first = self.cases[0]
        strengths = kept.known([c.case for c in self.op.cases])
        if strengths is None:  # a new oracle: nothing but the first case is worked out for it
            self._phase(kept, changed, {n: [first] for n, cs in missing.items() if first in cs})
            self._strengths = self._asked(kept)
            rest = {n: [c for c in cases if c is not first] for n, cases in missing.items()}
            self._phase(kept, changed, rest)
        else:
            self._strengths = strengths
            self._phase(kept, changed, missing)

    def _asked(self, kept: Kept) -> list[Strength]:
        """What the cases would notice; told once for each oracle."""
        cases = [c.case for c in self.op.cases]
        known = kept.known(cases)
        if known is not None:
            return known
        self.setting.progress.step(f"{self.op.name}: what its cases would notice", 0, 1)
        found = kept.strengths(cases, self.setting.conditions.seed)
        for strength in found:
            self.judging.tell(strength)
        return found

    def _phase(
        self, kept: Kept, variants: list[VariantFacts], cases: dict[str, list[CaseFacts]]
    ) -> None:
        """Judges these cases of these variants, several children at a time."""
        out: queue.Queue[Any] = queue.Queue()
        todo = [v for v in variants if cases.get(v.name)]

        def one(variant: VariantFacts) -> None:
            asked = self.judging.session, self.setting.conditions, kept.oracle, self.op, variant
            try:
                for row in judge(*asked, cases[variant.name]):
                    out.put(row)
            except BaseException as error:  # noqa: BLE001 - raised again by who reads the queue
                out.put(error)
            out.put(None)

        errors: list[BaseException] = []
        with ThreadPoolExecutor(self.setting.conditions.workers) as pool:
            running = len([pool.submit(one, variant) for variant in todo])
            try:
                while running:
                    item = out.get()
                    if item is None:
                        running -= 1
                    elif isinstance(item, BaseException):
                        errors.append(item)
                    else:
                        self._keep(item)
            except Stopped:
                self.judging.session.stop()  # else leaving the pool would wait for every child
                raise
        if errors:
            raise errors[0]

    def _keep(self, row: Row) -> None:
        """Keeps a row and tells it, unless it may be of a newer version."""
        if self.judging.stale:
            raise Stopped
        row = replace(row, save=self._save)
        held = Held(row, self.core, self._key(row.variant))
        self.setting.rows[id_of(row)] = held
        self.setting.progress.step(f"judged {row.op} {row.label} {row.case.label}", 0, 1)
        if row.case == self.cases[0].case:
            self._tell(replace(row, quick=True))
        if not held.untimed:
            self._tell(row)

    def _timed(self, kept: Kept) -> None:
        """Times the cases in which something right has no time: all that is right, together."""
        seconds = self.setting.request.budget or SECONDS
        by_case = [(c.case, [h for h in self._held() if h.row.case == c.case]) for c in self.cases]
        todo = [(case, held) for case, held in by_case if any(h.untimed for h in held)]
        if not todo:
            return
        self.judging.settled()
        known = known_of(self.setting.machine)
        asked = self.judging.session, self.setting.conditions, kept.oracle, known
        with Timer(*asked, seconds, self.setting.request.wish) as timer:
            for number, (case, held) in enumerate(todo):
                what = f"timing {self.op.name} {case.label}"
                self.setting.progress.step(what, number, len(todo))
                self._schedule(timer, case, held)

    def _schedule(self, timer: Timer, case: Case, held: list[Held]) -> None:
        weak = {s.dtype for s in self._strengths if s.weak}
        timed = [h for h in held if h.untimed or (h.row.timing and h.row.way != "compiled")]
        if str(case.values.get("dtype", "")) in weak:
            done = [h.row for h in timed]  # no evidence that it is right: it gets no time
        else:
            done = timer.rows([replace(h.row, timing=None) for h in timed])
        if self.judging.stale:
            raise Stopped
        for was, row in zip(timed, done):
            row = replace(row, save=self._save)
            if row.timing is None and row.word == "right" and not row.not_timed:
                row = replace(row, not_timed="its check is too weak")
            self.setting.rows[id_of(row)] = Held(row, was.core, was.key)
            self._tell(row)
        rows = [row for row in self.rows() if row.case == case]
        self.judging.tell(Timed(self._save, tuple(rows)))


def by_size(cases: list[CaseFacts]) -> list[CaseFacts]:
    """The smallest case of the first dtype, then the others as they were declared."""
    dtype = cases[0].case.values.get("dtype")
    small = min(
        (c for c in cases if c.case.values.get("dtype") == dtype), key=lambda one: one.case.size
    )
    return [small, *(c for c in cases if c is not small)]
