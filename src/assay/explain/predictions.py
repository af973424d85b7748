"""What an explanation predicted, kept beside the runs, and set against the time after an edit.

A prediction is of one variant, its knobs, a case and a device, at a hash of the source. When the
source has another hash and a newer time, the gain that was seen is old time over new time. The two
times are of two runs, not of one schedule: to their intervals comes what processes may differ by.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..errors import AssayError
from ..rows import RUNS, decode, encode, home
from ..types import GPU, Row, Scalar
from .costs import HOST, LAUNCHES
from .experiments.judging import CANNOT, CONFIRMED, REFUTED, word
from .model import Explanation
from .recorded import host_bound
from .text import micro

FILE = "predictions.jsonl"
SCHEMA = 1
APART = 0.05
"""Two processes on one H100 timed the same call of 4.6 us up to 4.9 % apart."""
LEFT = "not tried"
WORDS = {CONFIRMED: "came true", REFUTED: "did not come true", CANNOT: "cannot tell"}


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The first finding on one timed row."""

    schema: int = SCHEMA
    op: str
    variant: str
    knobs: dict[str, Scalar]
    case: dict[str, Scalar]
    device: str
    card: str
    """Name and UUID that the driver gives."""
    source_hash: str
    time: str
    """When the row was made, UTC, ISO 8601."""
    cause: str
    gain: float
    clock: str
    """`cupti, cold L2`, or `wall` where the host is what the cause slows."""
    seconds: float
    low: float
    high: float


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction, and what came of it."""

    prediction: Prediction
    word: str
    """CONFIRMED, REFUTED, CANNOT, or LEFT: the edit did not take the cause away, or it can't be
    compared."""
    why: str = ""
    """Of LEFT."""
    source_hash: str = ""
    """Of the source now."""
    seconds: float | None = None
    gain: tuple[float, float, float] | None = None
    """(low, middle, high): old time over new, with what processes may differ by in the ends."""


def remember(row: Row, gpu: GPU, found: Explanation, root: Path | None = None) -> Outcome | None:
    """What came of the prediction before this source; then keeps what is predicted now."""
    seen, made = outcome(row, gpu, found, root), of_row(row, gpu, found)
    if made is not None:
        keep(made, root)
    return seen


def of_row(row: Row, gpu: GPU, found: Explanation) -> Prediction | None:
    """What is predicted of a timed row; None where there is nothing to gain."""
    if not found.findings:
        return None
    first = found.findings[0]
    read = _read(row, first.cause)
    if read is None:
        return None
    clock, seconds, low, high = read
    return Prediction(
        **_key(row, gpu),
        source_hash=row.source_hash,
        time=row.time,
        cause=first.cause,
        gain=first.gain,
        clock=clock,
        seconds=seconds,
        low=low,
        high=high,
    )


def keep(made: Prediction, root: Path | None = None) -> None:
    """Appends it, if it is not there yet."""
    if made not in _all(root):
        with open(home(root) / FILE, "ab", buffering=0) as file:
            file.write(encode(made) + b"\n")


def outcome(row: Row, gpu: GPU, found: Explanation, root: Path | None = None) -> Outcome | None:
    """Of the newest prediction made before this row on another source; None: there is none."""
    key = _key(row, gpu)
    before = [
        one
        for one in _all(root)
        if one.source_hash != row.source_hash
        and one.time < row.time
        and {name: getattr(one, name) for name in key} == key
    ]
    return judged(max(before, key=lambda one: one.time), row, found) if before else None


def judged(last: Prediction, row: Row, found: Explanation) -> Outcome:
    """What the time of a row says of a prediction on an earlier source."""
    read = _read(row, last.cause)
    why = ""
    if read is None:
        why = f"the run has no time by {last.clock}"
    elif read[0] != last.clock:
        why = f"it was timed by {last.clock} then and by {read[0]} now"
    elif any(one.cause == last.cause for one in found.findings):
        why = f"the edit left {last.cause} in"
    if why or read is None:
        return Outcome(prediction=last, word=LEFT, why=why, source_hash=row.source_hash)
    _, seconds, low, high = read
    gain = (
        last.low / high / (1 + APART),
        last.seconds / seconds,
        last.high / low * (1 + APART),
    )
    return Outcome(
        prediction=last,
        word=word(last.gain, gain),
        source_hash=row.source_hash,
        seconds=seconds,
        gain=gain,
    )


def text(one: Outcome, counted: bool) -> str:
    """One sentence. counted: the code was counted now, so that it is known whether the cause is
    gone."""
    last = one.prediction
    said = f"last time: predicted {last.gain:.1f} times faster without {last.cause}"
    if one.gain is None or one.seconds is None:
        return f"{said}: {LEFT}, {one.why}"
    low, middle, high = one.gain
    then = f"{last.source_hash[:8]} to {one.source_hash[:8]}"
    seen = (
        f"the edit ({then}) made it {middle:.2f} ({low:.2f} to {high:.2f}: {micro(last.seconds)} "
        f"then, {micro(one.seconds)} now, two runs, not side by side)"
    )
    gone = "" if counted else "; whether the cause is gone, rows alone do not tell"
    return f"{said}; {seen}: {WORDS[one.word]}{gone}"


def _key(row: Row, gpu: GPU) -> dict[str, Any]:
    return {
        "op": row.op,
        "variant": row.variant,
        "knobs": row.knobs,
        "case": row.case.values,
        "device": row.device,
        "card": f"{gpu.name} {gpu.uuid}".strip(),
    }


def _read(row: Row, cause: str) -> tuple[str, float, float, float] | None:
    """(clock, seconds, low, high) of what a cause slows: the GPU, or what a user waits, which is
    known as well where the GPU waited for the host; None where the row has no such time."""
    timing = row.timing
    if cause in (HOST, LAUNCHES):
        timing = row.rejected if timing is None and host_bound(row) else timing
        wall = timing.wall_seconds if timing else None
        return None if wall is None else ("wall", wall, wall, wall)
    if timing is None:
        return None
    return f"{timing.method}, {timing.cache}", timing.median, timing.low, timing.high


def _all(root: Path | None) -> list[Prediction]:
    """In the order in which they were made. Raises AssayError for a file that can't be read."""
    path = (root or Path.cwd()) / RUNS.parent / FILE
    if not path.is_file():
        return []
    try:
        lines = path.read_bytes().splitlines()
        return [
            decode(line, Prediction, f"{path}, line {number}")
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
    except OSError as error:
        raise AssayError(f"reading {path}: {error.strerror}") from None
