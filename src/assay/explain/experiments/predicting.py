"""What the model says that an experiment will show, before anybody has seen it."""

from __future__ import annotations

from dataclasses import replace

from ...simt.counts import Counts
from .. import costs, reached
from ..costs import CHAIN, HOST, LAUNCHES, OCCUPANCY, WORK
from ..model import Explanation, Facts, Launch
from .catalogue import Experiment


def predicted(experiment: Experiment, found: Explanation) -> float | None:
    """Times faster; None: the model says nothing of it."""
    facts = found.facts
    if experiment.cause in (HOST, LAUNCHES):
        return _graph(facts)
    if experiment.cause == WORK:
        return (facts.seconds or reached.seconds(facts)) / reached.starting(facts)
    if experiment.cause:
        gain = next((f.gain for f in found.findings if f.cause == experiment.cause), None)
        kept = {OCCUPANCY: _same_blocks, CHAIN: _same_launches}.get(experiment.cause)
        return gain * kept(facts) if gain and kept else gain
    changed = {
        "no stores": lambda: _without(facts, "store"),
        "no loads": lambda: _without(facts, "load"),
        "half the blocks resident": lambda: _half(facts),
    }[experiment.name]()
    if changed is None:
        return None
    return reached.seconds(facts) / reached.seconds(changed)


def _graph(facts: Facts) -> float:
    """Without the host, a call takes its kernels in turn; what waits launches none."""
    number = costs.kernels(facts) - sum(one.waits for one in facts.operators)
    left = max(1, number) * reached.START_SECONDS + (facts.sync_seconds or 0.0)
    now = facts.wall_seconds
    if now is None:
        parts = costs.costs(facts)
        now = max(parts.get("host", 0.0), parts["launches"])
    return now / max(left, reached.ONE_CALL_SECONDS)


def _same_blocks(facts: Facts) -> float:
    """The experiment leaves blocks as they are, where the advice makes fewer, larger ones of them:
    what the start of them all takes of the gain."""
    kept = tuple(replace(one, geometry=replace(one.geometry, lifts=())) for one in facts.launches)
    same = reached.seconds(replace(facts, launches=kept), (OCCUPANCY,))
    return reached.seconds(facts, (OCCUPANCY,)) / same


def _same_launches(facts: Facts) -> float:
    """The experiment starts every block of a chain, where one kernel would start those of one."""
    fused = reached.seconds(facts, (CHAIN,))
    return fused / max(fused, reached.starting(facts))


def _without(facts: Facts, kind: str) -> Facts | None:
    """Without the global loads or stores: their share of what must move is not moved."""
    counts = facts.counts
    if counts is None:
        return None
    name = f"global {kind}"
    both = [counts.access(k).ideal_sectors for k in ("global load", "global store")]
    mine = counts.access(name).ideal_sectors
    if not mine:
        return None
    left = 1 - mine / sum(both)
    lines = tuple(
        replace(line, accesses={k: a for k, a in line.accesses.items() if k != name})
        for line in counts.lines
    )
    return replace(
        facts,
        counts=Counts(lines, counts.launches),
        must_bytes=None if facts.must_bytes is None else round(left * facts.must_bytes),
        moved_bytes=None if facts.moved_bytes is None else round(left * facts.moved_bytes),
    )


def _half(facts: Facts) -> Facts | None:
    """With half the warps resident of the launch with most threads."""
    largest = costs.largest(facts)
    if largest is None or largest.geometry.occupancy is None:
        return None

    def halved(one: Launch) -> Launch:
        held = one.geometry.occupancy
        if one is not largest or held is None:
            return one
        fewer = replace(held, warps=max(1, held.warps // 2))
        return replace(one, geometry=replace(one.geometry, occupancy=fewer))

    return replace(facts, launches=tuple(map(halved, facts.launches)))
