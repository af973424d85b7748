"""The experiments there are: which cause each tries, what it changes, on which clock it is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import costs
from . import access, arithmetic, gridded
from .entry import NotTried, Rule, rewritten
from .launched import Card, Changed, Launched, ruled

Launches = tuple[Launched, ...]
Change = Callable[[Launches, Card], Changed]
DEVICE, WALL = "device", "wall"


@dataclass(frozen=True)
class Experiment:
    """One thing that is changed."""

    name: str
    cause: str
    """Of an explanation; empty: it tries the model, whatever was found."""
    what: str
    change: Change | None = None
    """None: it changes how a call is made, which the child does (`graph`)."""
    clock: str = DEVICE


def _ruled(rule: Rule, what: str) -> Change:
    return lambda launches, card: ruled(launches, rule, what)


def _texts(change: Callable[[str, str], tuple[str, int]], what: str) -> Change:
    def made(launches: Launches, card: Card) -> Changed:
        texts, total = [], 0
        for one in launches:
            ptx, changed = change(one.compiled.ptx, one.compiled.name)
            texts.append(one.with_ptx(ptx))
            total += changed
        if not total:
            raise NotTried(f"its code has no {what}")
        return Changed(tuple(texts), f"{total} in the code")

    return made


def _unchained(launches: Launches, card: Card) -> Changed:
    """The first launch loads, the last one stores; nothing moves between them."""
    if len(launches) < 2:
        raise NotTried("a call is one launch")
    made, total = [], 0
    for number, one in enumerate(launches):
        ptx, name = one.compiled.ptx, one.compiled.name
        if number:
            ptx, changed = rewritten(ptx, name, access.without_loads("global"))
            total += changed
        if number < len(launches) - 1:
            ptx, changed = rewritten(ptx, name, access.without_stores("global"))
            total += changed
        made.append(one.with_ptx(ptx))
    return Changed(tuple(made), f"{total} loads and stores in the code")


def _no_local(launches: Launches, card: Card) -> Changed:
    """Loads from local memory and stores to it left out."""
    made, total = [], 0
    for one in launches:
        ptx, name = one.compiled.ptx, one.compiled.name
        for rule in (access.without_loads("local"), access.without_stores("local")):
            ptx, changed = rewritten(ptx, name, rule)
            total += changed
        made.append(one.with_ptx(ptx))
    if not total:
        raise NotTried("its code touches no local memory: what ptxas spills is not in it")
    return Changed(tuple(made), f"{total} loads and stores in the code")


ALL = (
    Experiment(
        "neighbouring addresses",
        costs.UNCOALESCED,
        "a warp's loads and stores of global memory made neighbours",
        _ruled(access.coalesced, "load or store of global memory with an address in a register"),
    ),
    Experiment(
        "banks of their own",
        costs.CONFLICTS,
        "a warp's accesses to shared memory given a bank each",
        _ruled(access.free_of_conflicts, "access to shared memory with an address in a register"),
    ),
    Experiment(
        "no launch bounds",
        costs.SPILLS,
        "launch bounds that keep registers down taken off",
        _texts(arithmetic.roomy, "bound on registers"),
    ),
    Experiment(
        "no local memory",
        costs.SPILLS,
        "loads from local memory and stores to it left out",
        _no_local,
    ),
    Experiment(
        "one branch a warp",
        costs.DIVERGENCE,
        "the lanes of a warp all branch as its first one does",
        _ruled(arithmetic.uniform, "conditional branch"),
    ),
    Experiment(
        "float32",
        costs.FP64,
        "float64 arithmetic done in float32",
        _texts(arithmetic.single, "float64 arithmetic"),
    ),
    Experiment(
        "no atomics",
        costs.ATOMICS,
        "atomics left out",
        _ruled(access.without_atomics, "atomic"),
    ),
    Experiment(
        "a full grid", costs.GRID, "as many blocks as the GPU holds at a time", gridded.more_blocks
    ),
    Experiment(
        "more blocks resident",
        costs.OCCUPANCY,
        "what limits the blocks of a multiprocessor taken away",
        gridded.more_resident,
    ),
    Experiment(
        "empty blocks",
        costs.WORK,
        "every block returns at once, so that starting them is all that is left",
        gridded.empty_blocks,
    ),
    Experiment(
        "whole waves",
        costs.TAIL,
        "the blocks of a last, partial wave left out",
        gridded.whole_waves,
    ),
    Experiment(
        "nothing between kernels",
        costs.CHAIN,
        "loads of all kernels but the first left out, and stores of all but the last",
        _unchained,
    ),
    Experiment(
        "a CUDA graph",
        costs.LAUNCHES,
        "the same launches replayed as a CUDA graph",
        clock=WALL,
    ),
    Experiment(
        "a CUDA graph that waits for nothing",
        costs.HOST,
        "the same launches as a CUDA graph; values that the host asks for answered by 0",
        clock=WALL,
    ),
    Experiment(
        "no stores",
        "",
        "stores to global memory left out",
        _ruled(access.without_stores("global"), "store to global memory"),
    ),
    Experiment(
        "no loads",
        "",
        "loads from global memory left out",
        _ruled(access.without_loads("global"), "load from global memory"),
    ),
    Experiment(
        "half the blocks resident",
        "",
        "half as many blocks on a multiprocessor at a time",
        gridded.half_resident,
    ),
)
BY_NAME = {one.name: one for one in ALL}


def of_cause(cause: str) -> tuple[Experiment, ...]:
    """Those that try a cause, the plainest first; empty for a cause that none can try."""
    return tuple(one for one in ALL if one.cause == cause)
