"""Who touched which byte: records of launches against brute force, lane by lane."""

from __future__ import annotations

import numpy as np
import pytest
from common import kernel, run, zeros

from assay.errors import NotRun
from assay.simt import Memory, Watch
from assay.simt.record import CELL, MOST_BYTES

SIZE = 2048
WIDTHS = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v4.u32"}
REGISTERS = {1: "%r5", 2: "%h5", 4: "%r5", 8: "%d5", 16: "{%r5, %r6, %r7, %r8}"}
CHOOSE = """mul.lo.u32 %r1, %b, 132; cvt.u64.u32 %d1, %r1; add.s64 %d1, %a1, %d1; \
ld.global.u32 %r1, [%d1];
mul.wide.u32 %d3, %t, 4; add.s64 %d1, %d1, %d3; ld.global.u32 %r2, [%d1+4]; \
cvt.u64.u32 %d2, %r2; add.s64 %d2, %a0, %d2;
"""
"""%r1: bytes of an access; %r2: a lane's offset, -1 where it is off; %d2: its address."""


def body(access: str) -> str:
    return CHOOSE + "\n".join(
        f"setp.eq.u32 %p1, %r1, {width}; setp.ne.and.u32 %p2, %r2, -1, %p1; "
        + access.format(kind=kind, register=REGISTERS[width])
        for width, kind in WIDTHS.items()
    )


def patterns(seed: int, blocks: int) -> np.ndarray:
    """A row a block: bytes of its access, and offsets of 32 lanes."""
    chance = np.random.default_rng(seed)
    rows = []
    for number in range(blocks):
        width = list(WIDTHS)[number % 5]
        dense = np.arange(32) + int(chance.integers(0, 9))
        at = dense if number % 2 else chance.permutation(SIZE // width)[:32]
        kept = chance.random(32) < (1.0 if number % 3 else 0.6)
        rows.append([width, *np.where(kept, at * width, -1)])
    return (np.array(rows, np.int64) & 0xFFFFFFFF).astype(np.uint32)


def expected(table: np.ndarray) -> tuple[np.ndarray, list[set[int]], np.ndarray, np.ndarray]:
    """Of each byte: how often, by which blocks, and the first block and thread."""
    counts, blocks = np.zeros(SIZE, int), [set() for _ in range(SIZE)]
    first, thread = np.zeros(SIZE, int), np.zeros(SIZE, int)
    for block, (width, *offsets) in enumerate(table.tolist()):
        for lane, offset in enumerate(offsets):
            for byte in range(offset, offset + width) if offset != 0xFFFFFFFF else ():
                counts[byte] += 1
                if not blocks[byte]:
                    first[byte], thread[byte] = block + 1, lane
                blocks[byte].add(block)
    return counts, blocks, first, thread


@pytest.mark.parametrize("seed", range(4))
def test_loads_and_stores_of_every_width_are_recorded_byte_by_byte(seed: int) -> None:
    table = patterns(seed, 20)
    counts, blocks, first, thread = expected(table)
    for access, names in (
        ("@%p2 ld.global.{kind} {register}, [%d2];", ("reads", "readers", "first_read")),
        ("@%p2 st.global.{kind} [%d2], {register};", ("writes", "writers", "first_writ")),
        ("@%p2 ld.{kind} {register}, [%d2];", ("reads", "readers", "first_read")),
        ("@%p2 st.volatile.global.{kind} [%d2], {register};", ("writes", "writers", "first_writ")),
    ):
        data = zeros(SIZE // 4)
        done = run(body(access), data, table, grid=(len(table),), record=MOST_BYTES)
        cells = done.record.windows[0][1]
        assert done.record.shift == 0
        assert len(cells) == SIZE
        often, who, began = names
        np.testing.assert_array_equal(cells[often], counts)
        np.testing.assert_array_equal(cells[f"{began}er"], first, err_msg=access)
        np.testing.assert_array_equal(cells[f"{began}ing"], thread)
        if done.record.in_turn:
            np.testing.assert_array_equal(cells[who], [len(b) for b in blocks])
        other = "writes" if often == "reads" else "reads"
        assert not cells[other].any()
        assert not cells["atomics"].any()


def test_atomic_operations_are_neither_reads_nor_writes() -> None:
    out = zeros(8)
    launched = run(
        "and.b32 %r1, %t, 7; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %a0, %d1;\n"
        "atom.global.add.u32 %r2, [%d1], 1;",
        out,
        grid=(3,),
        record=MOST_BYTES,
    )
    cells = launched.record.windows[0][1]
    assert not launched.faults
    assert cells["atomics"].tolist() == [12] * 8
    assert cells["writers"].tolist() == [3] * 8
    assert not cells["writes"].any()
    assert not cells["reads"].any()
    assert out.tolist() == [12] * 8


def test_an_asynchronous_copy_reads_its_source() -> None:
    declare = ".shared .align 16 .b8 room[512];"
    data = zeros(128)
    launched = run(
        "mov.u32 %r1, room; shl.b32 %r2, %t, 4; add.u32 %r1, %r1, %r2; cvt.u64.u32 %d1, %r2;\n"
        "add.s64 %d1, %a0, %d1; setp.lt.u32 %p1, %t, 20;\n"
        "@%p1 cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.wait_all;",
        data,
        declare=declare,
        record=MOST_BYTES,
    )
    assert not launched.faults
    reads = launched.record.windows[0][1]["reads"]
    assert reads.tolist() == [1] * 80 + [0] * 48


@pytest.mark.full
def test_an_access_that_is_refused_is_not_recorded() -> None:
    launched = run("st.global.u32 [%q0], 1;", zeros(20), record=MOST_BYTES)
    assert launched.faults[0].word == "out of bounds"
    assert launched.record.windows[0][1]["writes"].tolist() == [1] * 20


def test_results_and_counts_are_those_of_a_plain_launch() -> None:
    text = "ld.global.u32 %r1, [%q0]; add.u32 %r1, %r1, %b; st.global.u32 [%q1], %r1;"
    seen = []
    for record in (0, MOST_BYTES):
        out = zeros(640)
        done = run(text, np.arange(640, dtype=np.uint32), out, grid=(20,), record=record)
        assert (done.record is None) == (record == 0)
        seen.append((out.tolist(), done.counts, done.faults))
    assert seen[0] == seen[1]


def test_too_much_to_record_is_refused_with_what_to_do() -> None:
    out = zeros(64)
    with pytest.raises(NotRun, match=r"recording who touches 64 granules .* smaller case"):
        run("st.global.u32 [%q0], 1;", out, grid=(2,), record=64 * CELL.itemsize - 1)
    assert not out.any()
    run("st.global.u32 [%q0], 1;", out, grid=(2,), record=64 * CELL.itemsize)
    assert out.all()


def test_a_window_that_comes_later_is_recorded_from_then_on() -> None:
    memory = Memory()
    store = kernel("st.global.u32 [%q0], 1;")
    one, two = zeros(32), zeros(32)
    first = store.launch((1,), (32,), [one], memory=memory, record=MOST_BYTES).record
    second = store.launch((1,), (32,), [two], memory=memory, record=MOST_BYTES).record
    assert [len(cells) for _, cells in first.windows] == [32]
    assert [cells["writes"].sum() for _, cells in second.windows] == [0, 32]


def test_a_watch_keeps_nothing_unless_asked() -> None:
    assert not Watch().record
    assert Watch()._room() == 0
