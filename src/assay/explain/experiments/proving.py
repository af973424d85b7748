"""Experiments that try an explanation on a GPU: the parent's side of `assay explain --prove`."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec

from ... import ways
from ...errors import AssayError
from ...op import way_of
from ...processes import Child, Ended, TimedOut
from ...session import Session
from ...target import Target
from ...types import Scalar
from ..model import Explanation
from .catalogue import ALL, Experiment, of_cause
from .judging import CANNOT, NOT, Trial, capped, seen, word
from .predicting import predicted

FINDINGS = 3
"""The first ones of an explanation are tried."""
SECONDS = 3.0
"""Of sampling, in all, beyond the fewest rounds."""
TAIL = 12
"""Lines of a child's log that say why it ended."""
DEADLINE = 60.0
"""Between two messages of the child."""
NONE = "no experiment that there is tries this cause"


class Bench:
    """The process that experiments run in: kept from kernel to kernel, until one brings it down.

    Use it in a `with`, and `close` it early where a GPU is to be left alone.
    """

    def __init__(self, session: Session, device: str):
        self.session, self.device = session, device
        self.name = ""
        """Of its log."""
        self.kept = False
        """Whether the job at hand is not the child's first."""
        self._held = contextlib.ExitStack()
        self._child: Child | None = None
        self._env: dict[str, str] = {}

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def asked(self, variant: str, job: dict[str, Any]) -> Child:
        """The child, at work on the job."""
        env = ways.here(way_of(variant), self.device).env
        if self._child is not None and env == self._env:
            try:
                self._child.send(**job)
                self.kept = True
                return self._child
            except Ended:
                pass  # between two jobs: nothing is lost
        self.close()
        self.kept = False
        self._env, self.name = env, f"prove {variant}"
        self._child = self._held.enter_context(
            self.session.child(
                "assay.explain.experiments.child:main",
                {"device": self.device, **job},
                name=self.name,
                env=env,
            )
        )
        return self._child

    def close(self) -> None:
        """Ends the child, if there is one."""
        self._held.close()
        self._held, self._child = contextlib.ExitStack(), None


def prove(
    bench: Bench,
    target: Target,
    variant: str,
    case: dict[str, Scalar],
    found: Explanation,
    *,
    general: bool = True,
    seconds: float = SECONDS,
) -> tuple[Trial, ...]:
    """Tries the first findings, and the model (`general`), on a GPU.

    An experiment that brings its process down costs its own result: the others are tried again.
    """
    plan, trials = _plan(found, general)
    done: dict[str, dict[str, Any]] = {}
    reasons: dict[str, str] = {}
    left = list(plan)
    while left:
        job = {
            "target": msgspec.to_builtins(target),
            "wanted": variant,
            "case": case,
            "names": [one.name for one in left],
            "seconds": seconds,
        }
        lost = _try(bench, variant, job, left, done, reasons)
        if lost is None:
            break
        left = [one for one in left if one.name != lost and one.name not in reasons]
    for one in plan:
        trials.append(_trial(one, found, done, reasons.get(one.name, "")))
    return tuple(trials)


def _plan(found: Explanation, general: bool) -> tuple[list[Experiment], list[Trial]]:
    plan, trials = list[Experiment](), list[Trial]()
    for finding in found.findings[:FINDINGS]:
        tries = of_cause(finding.cause)
        plan += tries
        if not tries:
            trials.append(Trial("", finding.cause, "", NOT, NONE))
    if general and found.facts.counts is not None:
        plan += [one for one in ALL if not one.cause]
    return plan, trials


def _try(
    bench: Bench,
    variant: str,
    job: dict[str, Any],
    left: list[Experiment],
    done: dict[str, dict[str, Any]],
    reasons: dict[str, str],
) -> str | None:
    """One job. The name of the experiment that brought its process down; None: it came to its
    end."""
    now, heard = "", False
    try:
        child = bench.asked(variant, job)
        while True:
            message = child.receive(DEADLINE)
            heard = True
            if "mistake" in message:
                raise AssayError(message["mistake"])
            if "not_run" in message:
                reasons |= {one.name: message["not_run"] for one in left}
                return None
            if "not_tried" in message:
                reasons[message["not_tried"]] = message["reason"]
            elif "trying" in message:
                now = message["trying"]
            elif "sampling" in message:
                now = ""
            elif "done" in message:
                done |= {f"{one['clock']} {one['name']}": one for one in message["done"]}
                if message.get("spent"):
                    bench.close()
                return None
    except TimedOut:
        how = f"no answer within {DEADLINE:.0f} s; it was ended"
    except Ended as ended:
        if bench.session.stopped.is_set():
            raise
        tail = bench.session.log_tail(bench.name, TAIL)
        how = f"it ended its process with {ended.status.label}: {tail}"
    again = bench.kept and not heard
    bench.close()
    if again:  # it ended between two jobs: this one is not to blame
        return _try(bench, variant, job, left, done, reasons)
    if not now:  # the unchanged call, or all of them in turn
        reasons |= {one.name: f"while no single one ran: {how}" for one in left}
        return None
    reasons[now] = how
    return now


def _trial(
    one: Experiment, found: Explanation, done: dict[str, dict[str, Any]], reason: str
) -> Trial:
    said, base = done.get(f"{one.clock} {one.name}"), done.get(f"{one.clock} ")
    expected = predicted(one, found)
    if said is None or base is None:
        why = reason or "the process was over before it"
        return Trial(one.name, one.cause, one.what, NOT, why, one.clock, expected)
    gain = seen(base["samples"], base["rounds"], said["samples"], said["rounds"], said["work"])
    told = CANNOT
    if expected is not None:
        expected = capped(expected, said["most"])
        told = word(expected, gain)
    return Trial(
        name=one.name,
        cause=one.cause,
        what=one.what,
        word=told,
        said=said["said"],
        clock=one.clock,
        predicted=expected,
        before=base["median"],
        after=said["median"],
        gain=gain,
        late=said["late"] + base["late"],
    )
