"""`assay explain`: why a variant, a run, or a file of another tool is as fast as it is."""

from __future__ import annotations

import dataclasses
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from ..cases import parse_values
from ..errors import AssayError, NotRun, RowsError
from ..explain import Explanation, Facts, explain
from ..explain.cards import Card, of_architecture, of_machine
from ..explain.experiments.judging import Trial
from ..explain.experiments.proving import Bench, prove
from ..explain.experiments.text import lines as lines_of_trials
from ..explain.gathering import Wanted, chosen, facts_of
from ..explain.picture import svg
from ..explain.predictions import Outcome, remember
from ..explain.predictions import text as text_of_outcome
from ..explain.recorded import explained, host_bound, of_file, timed
from ..explain.roofline import Point, point, roofline
from ..explain.text import WIDTH, lines
from ..pipeline import known_of
from ..rows import find_run, read
from ..session import Session
from ..target import parse
from ..types import GPU, Machine, Roofs, Row
from ..ways import DEFAULT_ARCH

RUN = re.compile(r"last(~\d+)?|\d{8}-\d{6}(-\d{3})?|.*\.jsonl")


@dataclass(frozen=True)
class Options:
    """As the command line has them; empty: not given."""

    what: str = "last"
    variant: str = ""
    case: str = ""
    arch: str = ""
    run: str = ""
    prove: bool = False
    picture: Path | None = None
    as_json: bool = False


def run(given: Options) -> int:
    """Prints it; exit code 0, or 3 where too little is known to explain anything."""
    path = Path(given.what)
    if given.picture is not None and given.picture.suffix != ".svg":
        raise AssayError(f"drawing {given.picture}: the picture is SVG; name a file ending in .svg")
    if RUN.fullmatch(given.what):
        if given.variant or given.case or given.prove:
            raise AssayError(
                f"explaining run {given.what}: -k, --case and --prove go with a TARGET"
            )
        return _print(list(_rows(given)), given)
    if path.is_file() and path.suffix != ".py":
        if given.prove:
            raise AssayError(
                f"explaining {given.what}: --prove goes with a TARGET, not a recording"
            )
        if given.picture is not None:
            raise AssayError(
                f"explaining {given.what}: --picture goes with a TARGET or a run, not a recording"
            )
        return _file(path)
    if not given.variant:
        raise AssayError(f"explaining {given.what}: name the variant with -k way/name")
    return _target(given)


@dataclass(frozen=True)
class Answer:
    """An explanation, what came of the last one, and what experiments showed of it."""

    found: Explanation
    outcome: Outcome | None = None
    trials: tuple[Trial, ...] | None = None


def _rows(given: Options) -> Iterator[Answer]:
    """Of every timed row; what is predicted of a run kept here is remembered."""
    for row, gpu, found in explained(read(find_run(given.what))):
        if gpu is None or given.what.endswith(".jsonl"):
            yield Answer(found)
        else:
            yield Answer(found, _remembered(row, gpu, found))


def _remembered(row: Row, gpu: GPU, found: Explanation) -> Outcome | None:
    """Where nothing can be kept, the explanation still stands, and it is said."""
    try:
        return remember(row, gpu, found)
    except OSError as error:
        print(f"assay: the prediction is not kept: {error}", file=sys.stderr)
        return None


def _target(given: Options) -> int:
    """Of one variant on one case; with --prove, its findings tried on the GPU."""
    values = parse_values(given.case) if given.case else {}
    target = parse(given.what)
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        wanted = chosen(session, target, given.variant, values)
        known = _measured(given, wanted)
        gpu = session.machine().gpu("cuda:0") if given.prove else None
        card = known.facts.card if known else _card(given, session.machine(), gpu)
        facts = facts_of(session, target, wanted, card)
        if known is not None:
            facts = replace(facts, **{n: getattr(known.facts, n) for n in MEASURED})
        else:
            of = (
                card.source if card.source.startswith("measured") else f"those of the {card.source}"
            )
            said = f"speed: not measured here; rates are {of}"
            facts = replace(facts, unknown=(*facts.unknown, said))
        found = explain(facts)
        answer = Answer(found, _remembered(known.row, known.gpu, found) if known else None)
        if not given.prove:
            return _print([answer], given)
        if gpu is None:
            _print([answer], given)
            why = session.machine().no_gpu or "there is none"
            print(f"assay: nothing tried: experiments need a GPU: {why}", file=sys.stderr)
            return 3
        with Bench(session, "cuda:0") as bench:
            trials = prove(bench, target, wanted.variant, wanted.case.case.values, found)
        return _print([replace(answer, trials=trials)], given)


def _card(given: Options, machine: Machine, gpu: GPU | None) -> Card:
    """The GPU that experiments run on, by its ceilings if they were measured; else the one best
    known for an architecture."""
    if gpu is not None and not given.arch:
        return of_machine(gpu, known_of(machine).roofs.get("cuda:0"))
    return of_architecture(given.arch or DEFAULT_ARCH)


MEASURED = (
    *("seconds", "method", "host_seconds", "wall_seconds", "sync_seconds"),
    *("kernel_seconds", "host_bound", "share", "share_of"),
)


@dataclass(frozen=True)
class Known:
    """A timed row of the very variant, source and case."""

    row: Row
    gpu: GPU
    facts: Facts


def _measured(given: Options, wanted: Wanted) -> Known | None:
    """The newest timing on a GPU of the same variant and case, of the same source, in a run."""
    try:
        nouns = list(read(find_run(given.run or "last")))
    except RowsError:
        if given.run:
            raise
        return None  # nothing was ever timed here, and nobody said it was
    machines = {one.id: one for one in nouns if isinstance(one, Machine)}
    roofs = {one.device: one for one in nouns if isinstance(one, Roofs)}
    name = wanted.variant.split()[0]
    hashes = {v.name: v.source_hash for v in wanted.op.variants}
    for row in reversed(nouns):
        if not isinstance(row, Row) or row.source_hash != hashes[name]:
            continue
        machine = machines.get(row.machine)
        gpu = machine.gpu(row.device) if machine else None
        same = (row.op, row.variant, row.case.values) == (
            wanted.op.name,
            name,
            wanted.case.case.values,
        )
        told = row.timing is not None or host_bound(row)
        if gpu is not None and told and same and _knobs(row, wanted):
            fields = timed(row)
            return Known(row, gpu, Facts(of_machine(gpu, roofs.get(row.device)), **fields))
    return None


def _knobs(row: Row, wanted: Wanted) -> bool:
    given = wanted.variant.split()[1:]
    first = next(v for v in wanted.op.variants if v.name == row.variant).configurations
    usual = not given and (not first or row.knobs == first[0])
    return usual or (bool(given) and row.knobs == parse_values(" ".join(given)))


def _file(path: Path) -> int:
    try:
        print("\n".join(of_file(path)))
    except NotRun as reason:
        print(f"assay: not run: {reason}", file=sys.stderr)
        return 3
    return 0


def _print(answers: list[Answer], given: Options) -> int:
    if not answers:
        print(f"assay: nothing to explain: {given.what} has no timed row", file=sys.stderr)
        return 3
    for number, one in enumerate(answers):
        if given.as_json:
            print(msgspec.json.encode(_data(one)).decode())
            continue
        print("\n".join([*([""] if number else []), *lines(one.found)]))
        if one.outcome is not None:
            said = text_of_outcome(one.outcome, one.found.facts.counts is not None)
            print("\n".join(textwrap.wrap(said, WIDTH, subsequent_indent="  ")))
        if one.trials is not None:
            print("\n".join(["", *lines_of_trials(one.trials)]))
    if given.picture is not None:
        _draw([one.found for one in answers], given.picture)
    return 0 if any(one.found.bound for one in answers) else 3


def _data(one: Answer) -> dict[str, Any]:
    data = as_data(one.found)
    if one.outcome is not None:
        data["last_prediction"] = msgspec.to_builtins(one.outcome)
    if one.trials is not None:
        data["trials"] = [dataclasses.asdict(trial) for trial in one.trials]
    return data


def _draw(found: list[Explanation], to: Path) -> None:
    """Writes the roofline; where it lies, and what has no point in it, go beside the results."""
    made = roofline(found)
    try:
        to.write_text(svg(made))
    except OSError as error:
        raise AssayError(f"drawing {to}: {error.strerror}") from None
    print(f"assay: roofline: {to}", file=sys.stderr)
    for reason in made.absent:
        print(f"assay: no point: {reason}", file=sys.stderr)


def as_data(found: Explanation) -> dict[str, Any]:
    """An explanation as JSON has it: the conclusion, findings and model, without the raw counts."""
    facts, at = found.facts, point(found)
    return {
        "op": facts.op,
        "variant": facts.label,
        "case": facts.case,
        "counted_case": facts.counted_case,
        "card": facts.card.name,
        "rates": facts.card.source,
        "seconds": facts.seconds,
        "bound": found.bound,
        "sentence": found.sentence,
        "sound": found.sound,
        "findings": [dataclasses.asdict(one) for one in found.findings],
        "costs": found.costs,
        "point": dataclasses.asdict(at) if isinstance(at, Point) else None,
        "no_point": "" if isinstance(at, Point) else at,
        "unknown": list(facts.unknown),
    }
