"""What was seen while compiled code was watched, as a verdict."""

from __future__ import annotations

from ..types import Fault, Verdict
from .protocol import Ran

ADVICE = {
    "race": "put a barrier between the two (__syncwarp within a warp), or make them atomic",
    "read before written": "write it first; for a copy that is asynchronous, wait for it",
    "divergent barrier": "take the barrier out of the branch: every thread must reach it",
    "absent lanes": "name only lanes that take part, or let all of them come this far",
    "wrote outside": "mask the store, or stop at the end of the tensor",
    "read outside": "mask the load, or stop at the end of the tensor",
    "timed out": "look for who should have ended the wait",
}
WORDS = {
    "race": "race",
    "read before written": "read before written",
    "copy not waited for": "read before written",
    "barrier in divergent code": "divergent barrier",
    "bad barrier": "divergent barrier",
    "lane missing": "absent lanes",
    "misaligned": "crashed",
    "assertion": "crashed",
    "trap": "crashed",
    "deadlock": "timed out",
    "endless": "timed out",
    "read only": "changed its input",
}


def word_of(fault: Fault) -> str:
    """The verdict's word for a fault."""
    if fault.word != "out of bounds":
        return WORDS[fault.word]
    instruction = fault.instruction.split(maxsplit=1)[-1] if fault.instruction[:1] == "@" else ""
    opcode = (instruction or fault.instruction).split(".")[0]
    return "read outside" if opcode in ("ld", "ldmatrix", "cp", "wmma") else "wrote outside"


def watched(runs: list[Ran]) -> Verdict | None:
    """The first thing that was seen to go wrong, with all others as faults; None if nothing was."""
    run = next((run for run in runs if run.faults), None)
    if run is None:
        return None
    first = min(run.faults, key=_severity)
    word = word_of(first)
    where = f"{first.file}:{first.line}: " if first.file else ""
    others = f" (and {first.count - 1:,} more threads)" if first.count > 1 else ""
    against = f"; the other one: {first.other}" if first.other else ""
    return Verdict(
        word=word,
        detail=f"{where}{first.text}{others}{against}",
        advice=ADVICE.get(word, ""),
        faults=run.faults,
    )


def _severity(fault: Fault) -> int:
    """What is told first: that which lies outside, then what nobody wrote, then races."""
    order = ("out of bounds", "misaligned", "read only", "read before written", "race")
    return order.index(fault.word) if fault.word in order else len(order)
