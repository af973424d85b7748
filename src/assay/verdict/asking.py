"""The oracle's child of an Op, as the parent asks it; and what a run is judged under."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import msgspec

from ..errors import AssayError
from ..processes import Child, Ended, TimedOut
from ..session import Session, threads_for
from ..target import Target
from ..types import Case, Strength, Verdict

ORACLE_SECONDS = 600.0


@dataclass(frozen=True)
class Conditions:
    """What a whole run is judged under."""

    target: Target
    device: str
    arch: str
    seed: int
    budget: float
    """Seconds that an interpreter or simulator may take for a case; 0: no limit."""
    deadline: float
    machine: str
    workers: int
    drop_barriers: bool = False
    beside: int = 1
    """Operators that are judged at the same time on this machine, and share it."""

    @property
    def threads(self) -> int:
        """Threads of each candidate."""
        return threads_for(self.workers * self.beside)


class Oracle:
    """The oracle child of one Op; threads ask it one at a time."""

    def __init__(self, session: Session, conditions: Conditions, op: str):
        self._session, self._name = session, f"oracle {op}"
        self._lock = threading.Lock()
        self._specs: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._context = session.child(
            "assay.verdict.oracle:main",
            {
                "target": msgspec.to_builtins(conditions.target),
                "op": op,
                "device": conditions.device,
                "threads": threads_for(conditions.beside),  # the candidates wait for it
                "beside": conditions.beside,
            },
            name=self._name,
        )

    def __enter__(self) -> Oracle:
        self._child: Child = self._context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)

    def ask(self, **message: Any) -> dict[str, Any]:
        """Raises AssayError if the Op itself is at fault or the oracle is gone."""
        with self._lock:
            try:
                self._child.send(**message)
                answer = self._child.receive(ORACLE_SECONDS)
            except TimedOut:
                raise AssayError(
                    f"{self._name}: the reference took more than {ORACLE_SECONDS:.0f} s in "
                    "float64; choose smaller cases"
                ) from None
            except Ended as ended:
                tail = self._session.log_tail(self._name)
                raise AssayError(
                    f"{self._name}: the reference ended its process ({ended.status.label})\n{tail}"
                ) from None
        if "mistake" in answer:
            raise AssayError(answer["mistake"])
        return answer

    def verdict(
        self, case: Case, runs: list[Any], precision: str, device: str, judge: str
    ) -> Verdict:
        """What the oracle says of these runs."""
        answer = self.ask(
            do="judge",
            case=msgspec.to_builtins(case),
            runs=runs,
            precision=precision,
            device=device,
        )
        verdict = msgspec.convert(answer["verdict"], Verdict)
        return msgspec.structs.replace(verdict, judge=judge, seed=runs[0]["seed"])

    def specs(self, case: Case, seed: int) -> list[dict[str, Any]]:
        """Shape and dtype of each output of a case; worked out once, for all candidates."""
        key = case.label, case.seed
        if key not in self._specs:
            answer = self.ask(do="specs", case=msgspec.to_builtins(case), seed=seed)
            self._specs[key] = answer["specs"]
        return self._specs[key]

    def zoo(
        self, cases: list[Case], near: list[int], seed: int, asked: list[str]
    ) -> list[dict[str, Any]]:
        """The hostile cases made of these for variants of these names: {facts} each, or {case, why}
        where one asks nothing."""
        raw = [msgspec.to_builtins(case) for case in cases]
        made: list[dict[str, Any]]
        made = self.ask(do="zoo", cases=raw, near=near, seed=seed, asked=asked)["zoo"]
        return made

    def strengths(self, cases: list[Case], seed: int) -> list[Strength]:
        """What the cases of each dtype would notice."""
        raw = [msgspec.to_builtins(case) for case in cases]
        answer = self.ask(do="strength", cases=raw, seed=seed)
        return msgspec.convert(answer["strengths"], list[Strength])
