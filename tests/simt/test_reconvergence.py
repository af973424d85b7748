"""Random nested control flow against one thread after the other: values, and lanes by line."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from common import kernel
from nested import VARIABLES, Writer, program, run_thread

import assay.simt as simt

pytestmark = pytest.mark.full

EACH = 6
"""Programs of one kernel, a block each."""


def first(lane: int, number: int) -> list[int]:
    return [lane, (7 * lane + number) & 31, lane ^ 21, number]


def check(seed: int) -> None:
    chance = random.Random(seed)
    programs = [program(chance, jumps=number % 2 == 1) for number in range(EACH)]
    writer = Writer()
    for number, nodes in enumerate(programs):
        writer.lines.append(f"setp.ne.u32 %p1, %b, {number}; @%p1 bra N{number};")
        writer.lines.append(
            f"mov.b32 %r0, %t; mad.lo.u32 %r1, %t, 7, {number}; and.b32 %r1, %r1, 31; "
            f"xor.b32 %r2, %t, 21; mov.b32 %r3, {number};"
        )
        writer.write(nodes)
        writer.lines.append(f"bra END; N{number}:")
    writer.lines.append(
        "END: mul.wide.u32 %d1, %g, 16; add.s64 %d1, %a0, %d1; "
        "st.global.v4.u32 [%d1], {%r0, %r1, %r2, %r3};"
    )
    out = np.zeros((EACH, 32, VARIABLES), np.uint32)
    launched = kernel("\n".join(writer.lines)).launch((EACH,), (32,), [out])
    assert launched.faults == ()
    lines = {line.line: line for line in launched.counts.lines}
    for number, nodes in enumerate(programs):
        seen: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for lane in range(32):
            values = first(lane, number)
            run_thread(nodes, values, seen)
            assert values == list(out[number, lane]), (seed, number, lane)
        check_lanes(seed, lines, seen, number % 2 == 1)


def check_lanes(
    seed: int,
    lines: dict[int, simt.counts.Line],
    seen: Counter[tuple[int, tuple[int, ...]]],
    jumps: bool,
) -> None:
    """Lanes that are at one step in one iteration of all loops take it together.

    Where a jump leaves an `if`, its two sides meet again only where the jump goes: what follows
    the `if` does not post-dominate it, and one side may be ahead.
    """
    for line in {line for line, _ in seen}:
        lanes = sum(n for (at, _), n in seen.items() if at == line)
        together = sum(1 for at, _ in seen if at == line)
        assert lines[line].lanes == lanes, (seed, line)
        issued = lines[line].warps
        assert jumps or issued == together, (seed, line)


@pytest.mark.parametrize("seed", range(30))
def test_many_programs(seed: int) -> None:
    check(seed)
