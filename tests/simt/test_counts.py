"""Counts against brute force: sectors as a set, wavefronts bank by bank, lanes by line."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from common import kernel, run, zeros

pytestmark = pytest.mark.full

WIDTHS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v4.u32"}
REGISTERS = {1: "%r5", 2: "%h5", 4: "%r5", 8: "%d5", 16: "{%r5, %r6, %r7, %r8}"}
SIZE = 1 << 14
PATTERNS = 60
LOADS = "\n".join(
    f"""setp.eq.u32 %p1, %r1, {width}; setp.ne.and.u32 %p2, %r2, -1, %p1; mov.u32 %r4, room; \
add.u32 %r4, %r4, %r2;
@%p2 ld.global.{kind} {REGISTERS[width]}, [%d2];
@%p2 ld.shared.{kind} {REGISTERS[width]}, [%r4];"""
    for width, kind in WIDTHS.items()
)
BODY = f"""mul.lo.u32 %r1, %b, 132; cvt.u64.u32 %d1, %r1; add.s64 %d1, %a1, %d1; \
ld.global.u32 %r1, [%d1];
mul.wide.u32 %d3, %t, 4; add.s64 %d1, %d1, %d3; ld.global.u32 %r2, [%d1+4]; \
cvt.u64.u32 %d2, %r2; add.s64 %d2, %a0, %d2;
{LOADS}"""


def patterns() -> list[tuple[int, list[int]]]:
    """(bytes, offsets of 32 lanes; -1 where a lane is off)."""
    chance = np.random.default_rng(5)
    made = []
    for number in range(PATTERNS):
        width = list(WIDTHS)[number % 5]
        kind = number // 5 % 4
        lanes = np.arange(32)
        if kind == 0:
            at = chance.integers(0, SIZE // width, 32)
        elif kind == 1:
            at = lanes * int(chance.integers(0, 20)) + int(chance.integers(0, 9))
        elif kind == 2:
            at = chance.integers(0, 40, 32)
        else:
            at = chance.permutation(lanes) + int(chance.integers(0, 9))
        offsets = at * width
        if number % 3:
            offsets = np.where(chance.random(32) < 0.7, offsets, -1)
        made.append((width, [int(x) for x in offsets]))
    return [*made, *((width, [0] * 32) for width in WIDTHS)]


def sectors(width: int, offsets: list[int]) -> int:
    return len({(at + k) // 32 for at in offsets if at >= 0 for k in range(width)})


def wavefronts(width: int, offsets: list[int]) -> int:
    """Groups of lanes whose words are 128 bytes; each takes as many passes as a bank has words.

    Groups are twice as large where lanes l and l ^ 1 (or l ^ 2) agree, as far as both take part.
    """
    group = 32 if width <= 4 else 128 // width
    for step in (1, 2):
        pairs = [(offsets[lane], offsets[lane ^ step]) for lane in range(32)]
        if width > 4 and all(a == b for a, b in pairs if a >= 0 and b >= 0):
            group = min(32, 256 // width)
    total = 0
    for begin in range(0, 32, group):
        words = {
            (at + k) // 4 for at in offsets[begin : begin + group] if at >= 0 for k in range(width)
        }
        banks = [sum(1 for word in words if word % 32 == bank) for bank in range(32)]
        total += max(banks)
    return total


def apart(width: int, rows: list[list[int]], unit: int) -> list[int]:
    """Of each, the units that lanes side by side would fill."""
    return [-(-sum(at >= 0 for at in offsets) * width // unit) for offsets in rows]


def test_random_addresses() -> None:
    given = patterns()
    table = np.array([[width, *offsets] for width, offsets in given], np.int64)
    table = (table & 0xFFFFFFFF).astype(np.uint32)
    # Shared memory is never written here: only what is counted matters, so without checks of bytes.
    declare = f".shared .align 16 .b8 room[{SIZE}];"
    data = zeros(SIZE // 4)
    for threads in (1, 2):
        launched = run(BODY, data, table, grid=(len(given),), declare=declare, threads=threads)
        loads = [line for line in launched.counts.lines if line.line > 2]
        for width in WIDTHS:
            rows = [offsets for w, offsets in given if w == width]
            lanes = sum(at >= 0 for offsets in rows for at in offsets)
            at = 3 + 3 * list(WIDTHS).index(width)
            found = {line.line: line for line in loads}
            load = found[at + 1].accesses["global load"]
            assert load.requests == len(rows)
            assert load.lanes == lanes
            assert load.bytes == lanes * width
            touched = [sectors(width, offsets) for offsets in rows]
            assert load.sectors == sum(touched), width
            assert load.ideal_sectors == sum(map(min, apart(width, rows, 32), touched)), width
            shared = found[at + 2].accesses["shared load"]
            passes = [wavefronts(width, offsets) for offsets in rows]
            assert shared.wavefronts == sum(passes), width
            assert shared.ideal_wavefronts == sum(map(min, apart(width, rows, 128), passes)), width


def test_instructions_by_line_and_class() -> None:
    body = """setp.lt.u32 %p1, %t, 40; @!%p1 bra E;
mul.f32 %f1, %f1, %f1; add.u32 %r1, %t, 1; mov.b32 %r2, 0;
E: add.f64 %e1, %e1, %e1;"""
    out = zeros(1)
    lines = {line.line: line for line in run(body, out, grid=(3,), block=(70,)).counts.lines}
    assert (lines[2].warps, lines[2].lanes) == (3 * 2 * 3, 3 * 40 * 3)
    assert lines[2].classes == {"fp32": 6, "integer": 6, "move": 6}
    assert lines[3].classes["fp64"] == 9
    assert lines[3].lanes >= 3 * 70


def test_counts_are_the_same_every_time() -> None:
    body = """and.b32 %r1, %t, 7; setp.eq.u32 %p1, %r1, 3; @%p1 bra E;
ld.global.u32 %r2, [%q0]; st.global.u32 [%q1], %r2;
E: bar.sync 0;"""
    data, out = zeros(64 * 40), zeros(64 * 40)
    seen = []
    for order, threads in ((0, 1), (0, 2), (3, 1), (7, 3)):
        seen.append(
            run(body, data, out, grid=(40,), block=(64,), order=order, threads=threads).counts
        )
    assert all(counts == seen[0] for counts in seen)
    assert seen[0].access("global load").requests == 80


def test_nothing_is_counted_without_checks() -> None:
    bare = dataclasses.replace(kernel("st.global.u32 [%q0], %t;"), checks=False)
    out = zeros(32)
    launched = bare.launch((1,), (32,), [out])
    np.testing.assert_array_equal(out, np.arange(32))
    assert launched.counts.access("global store").requests == 0
    assert bare.launch((1,), (64,), [out]).faults[0].word == "out of bounds"


@pytest.mark.parametrize("grid", [(1,), (3, 2), (2, 2, 2)])
def test_sums_of_counts(grid: tuple[int, ...]) -> None:
    once = run("st.global.u32 [%q0], 1;", zeros(64), grid=(1,)).counts
    more = run("st.global.u32 [%q0], 1;", zeros(64 * 8), grid=grid).counts
    total = once + more
    blocks = int(np.prod(grid))
    assert total.launches == 2
    assert total.access("global store").requests == 1 + blocks
    assert more.active_lanes == 32
