"""Explanations against clocks: planted slow kernels and their repaired twins, timed on a GPU.

    python -m benchmarks.explain_planted [--seed 1] [--held-out] [--prove] [--limit 220] [--to FILE]
        [--counts FILE] [--again FILE] [--only small_chain,softmax]

Each file of tests/slow is copied under random names. A slow kernel and its twin are timed in one
schedule on the largest case; explain sees the slow one's row and counts. A cause counts as named if
it is the first finding, the twin is faster, and the predicted gain within FACTOR of the true one.
--prove: the first finding is tried by experiments too; a cause is confirmed if it is the true one
and an experiment that tries it came true.
Where the host or launches are the cause, both are timed beside one another by what a user waits.
--counts: what a CPU counts of every kernel, without a GPU written there, else read from there, so
that no time of a GPU is spent on it. What is in the file is not counted again: delete it after an
edit of a kernel.
--only: operators by name, as they are known; the others are left out.
--again: explains anew from times of an earlier run (its --to) and --counts, and needs no GPU: with
it, a change of the model is set against a clock.
Printed: a line for each kernel as it is known, slow ones and their twins first, the confusion
table, how many causes count and are confirmed, and how much advice is wrong; --to keeps the lines.
What fails, or comes after --limit seconds, is a line with its reason. Exit code 0 if all causes
count and no sound kernel is advised, else 1; 3 without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from slow_kernels import Planted, planted, table

from assay.errors import NotRun
from assay.explain import Explanation, Facts, explain, reached
from assay.explain.cards import Card, of_architecture, of_machine
from assay.explain.costs import HOST, LAUNCHES
from assay.explain.experiments.beside import ONE, waited
from assay.explain.experiments.judging import CONFIRMED
from assay.explain.experiments.proving import Bench as Experiments
from assay.explain.experiments.proving import prove
from assay.explain.gathering import Wanted, chosen, facts_of
from assay.explain.recorded import host_bound, timed
from assay.pipeline import known_of, run
from assay.request import Progress, Request
from assay.session import Session
from assay.target import Target, parse
from assay.types import Row
from assay.ways import DEFAULT_ARCH

FACTOR = 1.5
DEVICE = "cuda:0"
SAMPLING, PROVING = 0.4, 0.3
"""Seconds a case, and of the experiments of a kernel, beyond the fewest rounds."""
AT_ONCE = 6
"""Kernels counted at a time: each is compiled for the CPU, in a process of its own."""
LIBRARY = (("softmax", "cuda/online"), ("softmax", "triton"), ("square", "cuda/vectorised"))
Said = dict[str, Any]
Counted = dict[str, tuple[Wanted, Facts]]
"""By the known name of a kernel."""


@dataclass(frozen=True)
class One:
    """A kernel, as it is known and as explain sees it."""

    target: str
    variant: str
    known: str
    cause: str
    held_out: bool = False


def everything(folder: Path, seed: int, held_out: bool) -> list[list[One]]:
    """By op: its variants. The planted ones first, the sound ones last."""
    by: dict[tuple[Path, str], list[Planted]] = {}
    for one in planted(folder, seed, held_out=held_out):
        by.setdefault((one.path, one.op), []).append(one)
    groups = [
        [One(f"{o.path}:{o.op}", o.variant, o.known, o.cause, o.held_out) for o in ones]
        for ones in by.values()
    ]
    groups.sort(key=lambda ones: not any(one.cause for one in ones))  # held-out ones among them
    return [*groups, *([One(op, variant, f"{op} {variant}", "")] for op, variant in LIBRARY)]


class Bench:
    """What is known of every kernel before anything is timed, and the session."""

    def __init__(self, session: Session, groups: list[list[One]], counted: Counted):
        self.session, self.counted = session, counted
        self.card = card_of(session)
        self.experiments = Experiments(session, DEVICE)
        self.pool = ThreadPoolExecutor(min(AT_ONCE, max(1, (os.cpu_count() or 2) // 2)))
        every = [one for ones in groups for one in ones]
        self.facts = {one: self.pool.submit(self._facts, one) for one in every}

    def _facts(self, one: One) -> tuple[Target, Wanted, Facts]:
        target = parse(one.target)
        if one.known in self.counted:
            wanted, facts = self.counted[one.known]
            # Its name was another where other files were there, or another seed was drawn.
            return target, replace(wanted, variant=one.variant), replace(facts, card=self.card)
        wanted = chosen(self.session, target, one.variant, {})
        return target, wanted, facts_of(self.session, target, wanted, self.card)

    def rows(self, ones: list[One]) -> dict[str, Row]:
        """The largest case, timed in one schedule, by variant."""
        target, wanted, _ = self.facts[ones[0]].result()
        request = Request(
            (target,),
            device="cuda",
            case=dict(wanted.case.case.values),
            variants=tuple(one.variant for one in ones),
            budget=SAMPLING,
        )
        nouns = run(self.session, request, Progress())
        return {noun.variant: noun for noun in nouns if isinstance(noun, Row)}

    def waited(self, ones: list[One]) -> dict[str, float]:
        """What a user waits for each variant, beside one another; of ONE as well."""
        target, wanted, _ = self.facts[ones[0]].result()
        names = [one.variant for one in ones]
        values = wanted.case.case.values
        return waited(self.session, target, names, values, DEVICE)

    def trials(self, one: One, found: Explanation) -> list[Said]:
        """The experiments on its first finding."""
        target, wanted, _ = self.facts[one].result()
        first = replace(found, findings=found.findings[:1])
        values = wanted.case.case.values
        made = prove(
            self.experiments,
            *(target, wanted.variant, values, first),
            general=False,
            seconds=PROVING,
        )
        return [dataclasses.asdict(each) for each in made]


def measured(row: Row, waits: dict[str, float]) -> Said:
    """What a clock said of a kernel, as facts have it. Raises NotRun where it said nothing."""
    if row.timing is None and not host_bound(row):
        raise NotRun(f"it has no time: {row.word} {row.reason} {row.not_timed}".strip())
    found: Said = timed(row)
    if waits:
        found |= {"wall_seconds": waits[row.variant], "one_call_seconds": waits[ONE]}
    return found


def true_gain(slow: Said, twin: Said, cause: str) -> float:
    """By what a user waits where the host or launches are the cause, else by the time of the
    GPU. slow, twin: as `measured` says."""
    name = "wall_seconds" if cause in (HOST, LAUNCHES) else "seconds"
    pair = slow.get(name), twin.get(name)
    if not isinstance(pair[0], float) or not isinstance(pair[1], float):
        raise NotRun(f"the kernel or its twin has no {name.replace('_', ' ')}")
    return pair[0] / pair[1]


def judged(bench: Bench, ones: list[One], proving: bool) -> Iterator[Said]:
    """What is said of one op's variants, beside what is true."""
    begun = time.monotonic()
    rows = bench.rows(ones)
    by_wall = any(one.cause in (HOST, LAUNCHES) for one in ones)
    waits = bench.waited(ones) if by_wall else {}
    took = time.monotonic() - begun
    for one in ones:
        yield guarded(one, lambda one=one: of_one(bench, one, ones, rows, waits, proving, took))


def of_one(
    bench: Bench,
    one: One,
    ones: list[One],
    rows: dict[str, Row],
    waits: dict[str, float],
    proving: bool,
    took: float,
) -> Said:
    """One kernel's line. took: seconds of judging and timing its op."""
    mine = measured(rows[one.variant], waits)
    found = explain(replace(bench.facts[one].result()[2], **mine))
    twin = next((x for x in ones if not x.cause), one)
    true = None
    if one.cause:
        true = true_gain(mine, measured(rows[twin.variant], waits), one.cause)
    said = line(one, found, mine, true)
    said["took"] = {"timed": round(took, 2)}
    if proving and one.cause:
        begun = time.monotonic()
        trials = bench.trials(one, found)
        said["took"]["proven"] = round(time.monotonic() - begun, 2)
        named = said["found"] == one.cause
        said["confirmed"] = named and any(t["word"] == CONFIRMED for t in trials)
        said["trials"] = trials
    return said


def line(one: One, found: Explanation, mine: Said, true: float | None) -> Said:
    """What is said of a kernel. mine: what was measured of it; true: how much faster its twin is,
    of one that has a cause."""
    first = found.findings[0] if found.findings else None
    said: Said = {
        "found": first.cause if first else "" if found.bound else UNEXPLAINED,
        "seconds": mine.get("seconds"),
        "measured": mine,
        "usual": reached.seconds(found.facts),
        "predicted": first.gain if first else None,
        "sentence": found.sentence,
    }
    if true is None:
        return said | {"counts": said["found"] == ""}
    ratio = max(true / first.gain, first.gain / true) if first else None
    named = first is not None and first.cause == one.cause
    said |= {"true": true, "off": ratio}
    said["counts"] = bool(named and true > 1 and ratio and ratio <= FACTOR)
    return said


def again(path: Path, counted: Counted, groups: list[list[One]], card: Card) -> Iterator[Said]:
    """Lines made anew of an earlier run's times, in its order. What it tried is kept as it was."""
    known = {one.known: one for ones in groups for one in ones}
    for text in path.read_text().splitlines():
        old: Said = json.loads(text)
        one = known[str(old["kernel"])]
        said: Said = {"kernel": one.known, "cause": one.cause, "held_out": one.held_out}
        mine = old.get("measured") or {"seconds": old.get("seconds")}
        if not any(mine.get(name) for name in ("seconds", "host_bound")):
            yield said | {"found": old["found"], "counts": False, "why": old.get("why", "")}
            continue
        if one.known not in counted:
            yield said | {"found": "not run", "counts": False, "why": "it is not among the counts"}
            continue
        facts = replace(counted[one.known][1], card=card, **mine)
        said |= line(one, explain(facts), mine, old.get("true"))
        if one.cause in (HOST, LAUNCHES) and not mine.get("wall_seconds"):
            said |= {"counts": False, "why": "nobody noted what a user waits for it"}
        yield said | {n: old[n] for n in ("trials", "confirmed") if n in old}


def guarded(one: One, make: Callable[[], Said]) -> Said:
    """A line; where making it fails, one with the reason."""
    said: Said = {"kernel": one.known, "cause": one.cause, "held_out": one.held_out}
    try:
        return said | make()
    except Exception as error:  # noqa: BLE001 - it costs its own line, which says so
        traceback.print_exc()
        return said | {"found": "failed", "counts": False, "why": f"{error}"[:500]}


def every_line(
    bench: Bench, groups: list[list[One]], proving: bool, until: float
) -> Iterator[Said]:
    """Lines in the order in which they are known."""
    for ones in groups:
        if time.monotonic() > until:
            for one in ones:
                late = {"found": "not run", "counts": False, "why": "the time was over"}
                yield {"kernel": one.known, "cause": one.cause, "held_out": one.held_out, **late}
            continue
        try:
            yield from judged(bench, ones, proving)
        except Exception as error:  # noqa: BLE001 - of the whole op: each line says so
            traceback.print_exc()
            why = f"{error}"[:500]
            for one in ones:
                lost = {"found": "failed", "counts": False, "why": why}
                yield {"kernel": one.known, "cause": one.cause, "held_out": one.held_out, **lost}


UNANSWERED = ("failed", "not run")
UNEXPLAINED = "not explained"
"""The model saw that the measured time has a cause, and not which."""


def summary(said: list[Said], proving: bool) -> Iterator[str]:
    """The confusion tables and the counts; what has no answer is in neither, and is counted."""
    for held, title in ((False, "the model was tuned on"), (True, "it has never seen")):
        some = [s for s in said if bool(s["held_out"]) == held]
        if not some:
            continue
        answered = [s for s in some if s["found"] not in UNANSWERED]
        yield f"kernels that {title}:"
        yield from table([(str(s["cause"]), str(s["found"])) for s in answered])
        slow = [s for s in answered if s["cause"]]
        named = sum(s["cause"] == s["found"] for s in slow)
        good = sum(bool(s["counts"]) for s in slow)
        yield f"{named} of {len(slow)} causes named, {good} count (gain within {FACTOR})"
        yield from wrong(answered)
        if proving:
            came = sum(bool(s.get("confirmed")) for s in slow)
            yield f"{came} of {len(slow)} confirmed by experiment"
        if len(answered) < len(some):
            lost = [s for s in some if s["found"] in UNANSWERED]
            yield f"{len(lost)} without an answer: {', '.join(str(s['kernel']) for s in lost)}"


def wrong(answered: list[Said]) -> Iterator[str]:
    """Wrong advice: on what is sound, and for another cause than the true one. Silence about a
    slow kernel is no advice, and is told apart."""
    sound = [s for s in answered if not s["cause"]]
    slow = [s for s in answered if s["cause"] and s["found"] != s["cause"]]
    advised = sum(s["found"] not in ("", UNEXPLAINED) for s in sound)
    other = sum(s["found"] not in ("", UNEXPLAINED) for s in slow)
    praised = sum(s["found"] == "" for s in slow)
    yield (
        f"wrong advice: {advised + other} ({advised} of {len(sound)} sound kernels advised, "
        f"{other} slow ones given another cause); {praised} slow ones called sound, "
        f"{len(slow) - other - praised} not explained"
    )


def main() -> int:
    """Prints what was found; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prove", action="store_true", help="try the first findings")
    parser.add_argument("--held-out", action="store_true", help="kernels never tuned on as well")
    parser.add_argument(
        "--limit", type=float, default=220.0, help="seconds after which none begins"
    )
    parser.add_argument("--to", type=Path, default=None, help="JSON lines, as they are known")
    parser.add_argument("--counts", type=Path, default=None, help="counts of an earlier run")
    parser.add_argument("--only", default="", help="operators by name, by comma")
    parser.add_argument("--again", type=Path, default=None, help="times of an earlier run")
    given = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as place, Session(Path(place) / "logs") as session:
        if given.again is not None:
            return replayed(given.again, given.counts, everything(Path(place), given.seed, True))
        gpus = session.machine().gpus
        if not gpus and given.counts is None:
            print("not run: there is no GPU", file=sys.stderr)
            return 3
        groups = everything(Path(place), given.seed, given.held_out)
        if given.only:
            groups = [g for g in groups if g[0].known.split()[0] in given.only.split(",")]
        if not gpus:
            return count(Bench(session, groups, read(given.counts)), given.counts)
        print(gpus[0].name, flush=True)
        bench = Bench(session, groups, read(given.counts))
        wait(list(bench.facts.values()), begun + given.limit)
        print(f"counted on the CPU after {time.monotonic() - begun:.0f} s", flush=True)
        said = []
        for line in every_line(bench, groups, given.prove, begun + given.limit):
            said.append(line)
            print(json.dumps(line), flush=True)
            if given.to is not None:
                given.to.write_text("".join(json.dumps(one) + "\n" for one in said))
        bench.pool.shutdown(wait=False, cancel_futures=True)
        bench.experiments.close()
    print("\n".join(summary(said, given.prove)))
    print(f"{time.monotonic() - begun:.0f} s in all")
    return 0 if all(s["counts"] for s in said) else 1


def replayed(path: Path, counts: Path | None, groups: list[list[One]]) -> int:
    """Prints what is said now of an earlier run's times; the exit code."""
    if counts is None or not counts.is_file():
        print("--again needs --counts FILE, which a run without a GPU writes", file=sys.stderr)
        return 2
    said = list(again(path, read(counts), groups, of_architecture("sm_90")))
    for one in said:
        gains = " ".join(f"{n} {one[n]:.3g}" for n in ("true", "predicted", "off") if one.get(n))
        usual = f"{one['seconds']:.3g} s, usual {one['usual']:.3g}" if one.get("seconds") else ""
        why = one.get("why", "")[:60]
        print(f"{one['kernel']:<24} {one['cause']:<24} {one['found']:<24} {gains}  {usual}  {why}")
    print("\n".join(summary(said, any("trials" in one for one in said))))
    return 0 if all(one["counts"] for one in said) else 1


def card_of(session: Session) -> Card:
    """Of this machine, by its measured ceilings where `assay roofs` has measured them here."""
    machine = session.machine()
    if not machine.gpus:
        return of_architecture(DEFAULT_ARCH)
    return of_machine(machine.gpus[0], known_of(machine).roofs.get(DEVICE))


def read(path: Path | None) -> Counted:
    """What an earlier run counted; empty if there is no file."""
    if path is None or not path.is_file():
        return {}
    found: Counted = pickle.loads(path.read_bytes())  # of our own run alone: a pickle is a program
    return found


def count(bench: Bench, to: Path) -> int:
    """Writes what a CPU counts of every kernel; 1 if one can't be counted."""
    made: Counted = {}
    for one, future in bench.facts.items():
        try:
            _, wanted, facts = future.result()
            made[one.known] = wanted, facts
        except Exception as error:  # noqa: BLE001 - it costs its own counts, which says so
            print(f"{one.known}: not counted: {error}", file=sys.stderr)
    bench.pool.shutdown()
    to.write_bytes(pickle.dumps(made))
    print(f"counted {len(made)} of {len(bench.facts)} kernels: {to}")
    return int(len(made) < len(bench.facts))


def wait(futures: list[Future[tuple[Target, Wanted, Facts]]], until: float) -> None:
    """Until all are done, since counting would disturb what is timed; what fails says so later."""
    for future in futures:
        with contextlib.suppress(TimeoutError, CancelledError):
            future.exception(max(0.0, until - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
