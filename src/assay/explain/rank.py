"""From facts to findings: each cause's predicted gain by the model, ranked, and one conclusion."""

from __future__ import annotations

from . import causes, costs, reached
from .costs import HOST, LAUNCHES, OCCUPANCY
from .model import MEASURED, Explanation, Facts, Finding
from .text import micro

WORTH = 1.15
"""Times faster, from which a cause is a finding. The model itself is no better than that."""
SATURATED = 0.9
"""Of a measured ceiling: what is left is not worth advice."""
UNEXPLAINED = 1.5
"""Times what good kernels reach: above, a measured time has a cause that the model does not see."""
BOUND = {
    "DRAM": "memory",
    "L2": "memory",
    "shared memory": "shared memory",
    "instructions": "compute",
    "latency": "latency",
    "atomics": "atomics",
    "starting blocks": "starting blocks",
    "launches": "launches",
    "host": "the host",
}


DOES = {
    "DRAM": "moving what must move",
    "L2": "traffic to L2",
    "shared memory": "reading and writing it",
    "instructions": "running the instructions",
    "latency": "waiting for loads",
    "atomics": "queueing for one address",
    "starting blocks": "starting them all",
    "launches": "launching",
    "host": "dispatching operators",
}


def explain(facts: Facts) -> Explanation:
    """The explanation of one call."""
    parts = costs.costs(facts)
    by = max(parts, key=lambda name: parts[name])
    if facts.host_bound:
        return _of_the_host(facts, parts)
    known = facts.counts is not None or len(facts.operators) > 0 or facts.seconds is not None
    if not known or (by == "launches" and facts.must_bytes is None and facts.counts is None):
        return Explanation(facts, "", "too little is known to say what decides", (), parts)
    if facts.share is not None and facts.share >= SATURATED:
        sentence = f"{_measured(facts)}: {facts.share:.0%} of {facts.share_of}"
        return Explanation(facts, _of_share(facts.share_of), sentence, (), parts)
    found = sorted(_findings(facts), key=lambda one: -one.gain)
    took = facts.seconds
    if took is not None and not found and took > UNEXPLAINED * reached.seconds(facts):
        why = "the counts show no cause; counters may (assay profile --ncu)"
        if facts.counts is None:
            why = "nothing was counted, so no cause is known"
        sentence = (
            f"{_measured(facts)}, where {micro(reached.seconds(facts))} would be usual ({by} alone "
            f"takes {micro(parts[by])}): {why}"
        )
        return Explanation(facts, "", sentence, (), parts)
    return Explanation(facts, BOUND[by], _sentence(facts, by, parts[by]), tuple(found), parts)


def _of_the_host(facts: Facts, parts: dict[str, float]) -> Explanation:
    """Of a row whose GPU waited for the host: that is what was measured, whatever the counts say.

    Which of its causes it is, operators tell; of a row alone it is the host, and nothing finer.
    """
    took = facts.wall_seconds or facts.host_seconds or 0.0
    sentence = f"the host decides: {micro(took)} until it goes on (measured); {facts.host_bound}"
    cause = next((c for c in (HOST, LAUNCHES) if causes.CAUSES[c][0](facts)), HOST)
    said = causes.CAUSES[cause][0](facts)
    evidence = said[0] if said else "the GPU waited for the launch"
    confidence = f"{said[1]}, {MEASURED}" if said else MEASURED
    left = _one_call(facts, cause)
    if not facts.operators and facts.kernel_seconds:
        left = max(left, facts.kernel_seconds)  # nothing tells whether one kernel could do it
    how = f"{micro(took)} until the host goes on (measured); without it {micro(left)}"
    advice = causes.CAUSES[cause][1]
    made = Finding(cause, evidence, took / left, how, confidence, advice)
    found = (made,) if made.gain >= WORTH else ()
    return Explanation(facts, BOUND["host"], sentence, found, parts)


def _one_call(facts: Facts, cause: str) -> float:
    """What a user waits for one kernel: the host's part of it as measured, if it was, else as
    usual. A wait of the host is no part of it."""
    if facts.one_call_seconds is not None:
        return facts.one_call_seconds
    fixed = facts.card.launch_seconds + (facts.sync_seconds or 0)
    if cause == LAUNCHES and facts.host_seconds is not None:
        fixed += facts.host_seconds / costs.kernels(facts)
    return max(fixed, reached.ONE_CALL_SECONDS)


def _findings(facts: Facts) -> list[Finding]:
    """A cause is one by the ceilings and by what good kernels reach: a gain that only one of the
    two shows is within the model's error."""
    ceiling, usual = costs.seconds(facts), reached.seconds(facts)
    seen = []
    for cause, (look, advice) in causes.CAUSES.items():
        said = look(facts)
        if said is None or ceiling < WORTH * costs.seconds(facts, (cause,)):
            continue
        gain = usual / reached.seconds(facts, (cause,))
        if gain >= WORTH or facts.seconds is not None:
            seen.append((gain, cause, said, advice))
    most = max((gain for gain, *_ in seen), default=0.0)
    made = []
    for gain, cause, (evidence, confidence), advice in seen:
        how = _modelled(facts, cause)
        measured = _of_measured(facts, cause) if gain == most else None
        if measured is not None:
            gain, how = measured
            confidence = f"{confidence}, {MEASURED}"
        if gain < WORTH:
            continue  # it is as fast already as it would be without
        advised = causes.lift(facts) if cause == OCCUPANCY else advice
        made.append(Finding(cause, evidence, gain, how, confidence, advised))
    return made


def _modelled(facts: Facts, cause: str) -> str:
    now, after = reached.seconds(facts), reached.seconds(facts, (cause,))
    part, left = costs.deciding(facts), costs.deciding(facts, (cause,))
    return (
        f"{part} takes most of {micro(now)}; without it {left} does, and {micro(after)} are usual"
    )


def _of_measured(facts: Facts, cause: str) -> tuple[float, str] | None:
    """(gain, arithmetic) of the first cause, which is held to account for all that was measured
    beyond the model; None where nothing was measured."""
    wall = facts.wall_seconds
    if cause in (LAUNCHES, HOST) and wall is not None:
        one = _one_call(facts, cause)
        said = f"{micro(wall)} until the host goes on (measured); one kernel: {micro(one)}"
        return wall / one, said
    if facts.seconds is None:
        return None
    left, after = costs.deciding(facts, (cause,)), reached.seconds(facts, (cause,))
    said = f"{_measured(facts)}; without it {left} takes most, and {micro(after)} are usual"
    return facts.seconds / after, said


def _sentence(facts: Facts, by: str, seconds: float) -> str:
    basis = f"{micro(seconds)} by the model, {facts.card.source}"
    if facts.seconds is not None:
        basis = f"{_measured(facts)}, {basis}"
    return f"{BOUND[by]} decides: {DOES[by]} takes {basis}"


def _measured(facts: Facts) -> str:
    assert facts.seconds is not None
    method = f" ({facts.method})" if facts.method else ""
    return f"{micro(facts.seconds)} measured{method}"


def _of_share(name: str) -> str:
    return (
        "compute"
        if "FMA" in name or "matrix" in name
        else ("launches" if name == "empty launch" else "memory")
    )
