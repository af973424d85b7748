"""`assay profile`: where the time of a call goes; by torch's profiler, ncu or a file of a peer."""

from __future__ import annotations

import datetime
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..cases import parse_values
from ..errors import AssayError, NotRun
from ..explain import explain
from ..explain.cards import of_architecture, of_machine
from ..explain.gathering import Wanted, chosen, facts_of
from ..explain.recorded import of_file
from ..explain.text import lines as text_of
from ..inside.profiling import drilling, tools
from ..inside.profiling.timeline import Recorded, Schedule, draw, lines, recorded
from ..inside.reading.files import summary
from ..inside.reading.trace import read_trace
from ..request import chosen_device
from ..rows import home
from ..session import Session
from ..target import Target, parse
from ..ways import DEFAULT_ARCH

KEPT = "profiles"


@dataclass(frozen=True)
class Options:
    """As the command line has them; None or empty: not given."""

    target: str = ""
    variant: str = ""
    case: str = ""
    device: str = "auto"
    wait: int = 1
    warmup: int = 1
    active: int = 2
    rows: int = 10
    flame: bool = False
    ncu: bool = False
    drill: bool = False
    nsys: bool = False
    read: Path | None = None
    to: Path | None = None


def run(given: Options) -> int:
    """Prints it; exit code 0, or 3 with the reason where it can't be recorded here."""
    if given.read is not None:
        return _read(given)
    if sum((given.ncu, given.drill, given.nsys)) > 1:
        raise AssayError("profiling: --ncu, --drill and --nsys exclude one another; give one")
    if not given.target or not given.variant:
        raise AssayError("profiling what? give a TARGET with -k way/name, or --read FILE")
    target, values = parse(given.target), parse_values(given.case) if given.case else {}
    with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
        device = chosen_device(given.device, session.machine())
        wanted = chosen(session, target, given.variant, values)
        program = tools.Program(given.target, wanted.variant, wanted.case.case.label)
        if given.nsys:
            return _nsys(program, given)
        if given.ncu:
            return _ncu(session, target, wanted, program, device, given)
        folder = _folder(given, wanted)
        found = _timeline(session, target, wanted, device, folder, given)
        if found is None:
            return 3
        return _drill(session, target, wanted, program, found, given) if given.drill else 0


def _read(given: Options) -> int:
    assert given.read is not None
    if given.target or given.variant:
        raise AssayError(f"--read {given.read}: it goes without a TARGET")
    try:
        print("\n".join(summary(given.read, given.rows)))
    except NotRun as reason:
        print(f"assay: not run: {reason}", file=sys.stderr)
        return 3
    return 0


def _timeline(
    session: Session, target: Target, wanted: Wanted, device: str, folder: Path, given: Options
) -> Recorded | None:
    """Prints it; None, with the reason printed, where it can't be recorded here."""
    plan = Schedule(given.wait, given.warmup, given.active)
    values = wanted.case.case.values
    try:
        found = recorded(
            session, target, wanted.variant, values, device, folder, plan, stacks=given.flame
        )
    except NotRun as reason:
        print(f"assay: not run: {reason}", file=sys.stderr)
        return None
    print("\n".join(lines(found, given.rows)))
    print(f"\ntrace: {found.trace} (chrome://tracing, ui.perfetto.dev)")
    if given.flame:
        print(f"flame graph: {draw(found)}")
    return found


def _drill(
    session: Session,
    target: Target,
    wanted: Wanted,
    program: tools.Program,
    found: Recorded,
    given: Options,
) -> int:
    """Counters of the kernels that the timeline shows to take longest; 3 where some are missing."""
    hot = drilling.hottest(read_trace(found.trace))
    if not hot:
        print("assay: nothing to drill into: no kernel of a GPU was recorded", file=sys.stderr)
        return 3
    share = sum(one.share for one in hot)
    print(f"\ndrill: {len(hot)} of the kernels, {share:.1%} of the time of the device's work")
    missed = 0
    try:
        ncu = tools.find("ncu")
        for number, one in enumerate(drilling.drill(ncu, program, found.trace.parent, hot), 1):
            place = f"launch {one.hot.place + 1} of {one.hot.launches} of a call"
            of = "its only launch" if one.hot.times == 1 else f"the longest of {one.hot.times}"
            print(f"\n{number}. {one.hot.share:.1%}, {place}, {of}")
            if one.why:
                missed += 1
                print(f"assay: no counters: {one.why}", file=sys.stderr)
                continue
            print("\n".join(of_file(one.page, given.rows)))
            print(f"report: {one.page.with_suffix('.ncu-rep')} (ncu-ui opens it)")
    except NotRun as reason:
        return _without_counters(session, target, wanted, found.judge, reason)
    return 3 if missed else 0


def _nsys(program: tools.Program, given: Options) -> int:
    """Prints the commands; where nsys is, and what it says, is the user's."""
    folder = given.to or Path()
    report = folder / "timeline"
    print(shlex.join(tools.nsys_command("nsys", program, report)))
    print(shlex.join(tools.nsys_export("nsys", report)))
    print(f"assay profile --read {report}.sqlite")
    try:
        tools.find("nsys")
    except NotRun as reason:
        print(f"assay: {reason}", file=sys.stderr)
    return 0


def _ncu(
    session: Session,
    target: Target,
    wanted: Wanted,
    program: tools.Program,
    device: str,
    given: Options,
) -> int:
    """Counters; where there are none, the reason, and estimates marked as such with exit code 3."""
    try:
        if not device.startswith("cuda"):
            raise NotRun("there is no GPU, so there are no counters to read")
        found = tools.find("ncu")
        page = tools.ncu(found, program, _folder(given, wanted) / "counters")
    except NotRun as reason:
        return _without_counters(session, target, wanted, device, reason)
    print(f"ncu: clocks as they are (--clock-control {tools.CLOCK}), caches flushed before each")
    print(f"replay (--cache-control {tools.CACHE}), one call after a warm-up")
    print("\n".join(of_file(page, given.rows)))
    print(f"\nreport: {page.with_suffix('.ncu-rep')} (ncu-ui opens it)")
    return 0


def _without_counters(
    session: Session, target: Target, wanted: Wanted, device: str, reason: NotRun
) -> int:
    print(f"assay: no counters: {reason}", file=sys.stderr)
    print("estimates and counts in place of counters:")
    gpu = session.machine().gpu(device)
    card = of_machine(gpu, None) if gpu else of_architecture(DEFAULT_ARCH)
    print("\n".join(text_of(explain(facts_of(session, target, wanted, card)))))
    return 3


def _folder(given: Options, wanted: Wanted) -> Path:
    """A new folder for what is kept, or the one that was given."""
    if given.to is not None:
        given.to.mkdir(parents=True, exist_ok=True)
        return given.to
    kept = home(Path()) / KEPT
    kept.mkdir(exist_ok=True)
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H%M%S-%f")
    name = "".join(c if c.isalnum() else "-" for c in f"{wanted.op.name}-{wanted.variant}")
    made = kept / f"{stamp}-{name}"
    made.mkdir()
    return made
