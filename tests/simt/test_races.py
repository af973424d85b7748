"""Races in shared and global memory: named by line, and none where there is order."""

from __future__ import annotations

import numpy as np
import pytest
from common import ROOM, kernel, only, run, words, zeros

from assay.simt import Memory

SETUP = """shl.b32 %r1, %t, 2; mov.u32 %r2, room; add.u32 %r3, %r2, %r1; \
xor.b32 %r4, %r1, {other}; add.u32 %r4, %r4, %r2;
"""


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("st.shared.u32 [%r3], %t;", "ld.shared.u32 %r5, [%r4];"),
        ("st.shared.u32 [room], 1;", "st.shared.u32 [room], %t;"),
        ("ld.shared.u32 %r5, [%r3];", "st.shared.u32 [%r4], 7;"),
    ],
)
@pytest.mark.parametrize(
    ("other", "order"), [(4, "bar.warp.sync -1;"), (128, "bar.sync 0;")], ids=["lanes", "warps"]
)
def test_shared_memory(first: str, then: str, other: int, order: str) -> None:
    """Between lanes of a warp, and between warps: a fault without the barrier that orders them."""
    begin = "st.shared.u32 [%r3], 0; bar.sync 0;\n" if first.startswith("ld") else "\n"
    body = SETUP.format(other=other) + begin + f"{first}\nORDER\n{then}"
    guard = body.replace("[room], %t", "[room], 2")
    for seed in (0, 1, 2):
        wrong = run(guard.replace("ORDER", ""), zeros(1), block=(64,), declare=ROOM, order=seed)
        assert words(wrong) <= {"race", "read before written"}
        assert words(wrong), seed
    if "[room]" not in first:
        right = run(guard.replace("ORDER", order), zeros(1), block=(64,), declare=ROOM)
        assert right.faults == ()


BLOCKS = {
    "write-write": ("st.global.u32 [%a0], %b;", True),
    "same value": ("st.global.u32 [%a0], 3;", False),
    "read-write": (
        "setp.eq.u32 %p1, %b, 0; @%p1 st.global.u32 [%a0], 3;\n@!%p1 ld.global.u32 %r1, [%a0];",
        True,
    ),
    "write-read": (
        "setp.eq.u32 %p1, %b, 7; @%p1 st.global.u32 [%a0], 3;\n@!%p1 ld.global.u32 %r1, [%a0];",
        True,
    ),
    "own": ("st.global.u32 [%q0], 3; ld.global.u32 %r1, [%q0]; st.global.u32 [%q0], %r1;", False),
    "dense write of what all read": (
        "setp.eq.u32 %p1, %b, 7; ld.global.u32 %r1, [%a1]; @%p1 st.global.u32 [%a1], %t;",
        True,
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("threads", [1, 2])
def test_between_blocks(name: str, threads: int) -> None:
    body, races = BLOCKS[name]
    launched = run(body, zeros(512), zeros(32), grid=(16,), threads=threads)
    assert words(launched) == ({"race"} if races else set())


@pytest.mark.parametrize("threads", [1, 2])
def test_readers_of_an_earlier_launch_are_forgotten(threads: int) -> None:
    """All blocks read it all, once; in the next launch one block reads it and another writes."""
    memory, data = Memory(), zeros(32)
    read = kernel("mul.wide.u32 %d1, %t, 4; add.s64 %d1, %a0, %d1; ld.global.u32 %r1, [%d1];")
    mixed = kernel(
        """mul.wide.u32 %d1, %t, 4; add.s64 %d1, %a0, %d1; setp.eq.u32 %p1, %b, 0; \
setp.eq.u32 %p2, %b, 9;
@%p1 ld.global.u32 %r1, [%d1];
@%p2 st.global.u32 [%d1], 5;"""
    )
    for _ in range(2):
        assert read.launch((16,), (32,), [data], memory=memory, threads=threads).faults == ()
        data[:] = 0
        fault = only(mixed.launch((16,), (32,), [data], memory=memory, threads=threads))
        assert (fault.word, fault.line, fault.block) == ("race", 3, (9, 0, 0))


def test_a_race_names_both_sides() -> None:
    body = """setp.eq.u32 %p1, %t, 3;
@%p1 st.global.u32 [%a0], 3;
setp.eq.u32 %p1, %t, 40;
@%p1 st.global.u32 [%a0], 4;"""
    fault = only(run(body, zeros(1), block=(64,)))
    assert (fault.line, fault.thread, fault.other) == (4, (40, 0, 0), "k.cu:2")
    assert "thread 3" in fault.text


def test_two_values_in_one_store() -> None:
    fault = only(run("st.global.u32 [%a0], %t;", zeros(1), block=(2,)))
    assert fault.word == "race"
    assert "in the same store as thread 0" in fault.text
    fault = only(run("st.shared.u32 [room+4], %t;", zeros(1), block=(2,), declare=ROOM))
    assert "shared memory at byte 4" in fault.text
    assert run("st.relaxed.gpu.global.u32 [%a0], %t;", zeros(1)).faults == ()
    assert run("st.volatile.global.u32 [%a0], %t;", zeros(1), grid=(9,)).faults == ()


OF_WARP = "shr.u32 %r1, %t, 5; shl.b32 %r1, %r1, 2; mov.u32 %r2, room; add.u32 %r3, %r2, %r1;\n"
REPLICAS = {
    "lanes of one store": (OF_WARP + "st.shared.u32 [%r3], %t;", False),
    "warps of one store": (OF_WARP + "st.shared.u32 [room+64], %r1;", False),
    "another store": (
        OF_WARP
        + "st.shared.u32 [%r3], %t;\nsetp.eq.u32 %p1, %t, 37; @%p1 st.shared.u32 [room], 7;",
        True,
    ),
    "read at once": ("st.shared.u32 [room], %t;\nld.shared.u32 %r5, [room];", True),
    "read after a barrier": (
        "st.shared.u32 [room], %t;\nbar.sync 0; ld.shared.u32 %r5, [room];",
        False,
    ),
    "stored again while others read": (
        """mov.u32 %r6, 0; loop: st.shared.u32 [room], %t;
bar.sync 0; ld.shared.u32 %r5, [room];
add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 2; @%p1 bra loop;""",
        True,
    ),
    "global memory": ("st.global.u32 [%a0], %t;", True),
}


@pytest.mark.parametrize("name", REPLICAS)
def test_threads_of_one_program_store_replicas(name: str) -> None:
    """Of one element, by one instruction: no race in a Triton program, but in any other kernel."""
    body, races = REPLICAS[name]
    for seed in (0, 1, 2):
        options = {"block": (64,), "declare": ROOM, "order": seed}
        assert words(run(body, zeros(1), **options)) == {"race"}
        one = run(body, zeros(1), one_program=True, **options)
        assert words(one) == ({"race"} if races else set())


def test_bytes_of_one_word_are_apart() -> None:
    out = np.zeros(64, np.uint8)
    body = "cvt.u64.u32 %d1, %t; add.s64 %d1, %a0, %d1; st.global.u8 [%d1], %t;"
    assert run(body, out, block=(64,)).faults == ()
    np.testing.assert_array_equal(out, np.arange(64))


def test_a_sound_kernel_gives_one_result_in_every_order() -> None:
    body = (
        SETUP.format(other=252)
        + """st.shared.u32 [%r3], %g; bar.sync 0; ld.shared.u32 %r5, [%r4];
mad.lo.u32 %r5, %r5, 3, %b; st.global.u32 [%q0], %r5;"""
    )
    results = []
    for order, threads in ((0, 1), (0, 2), (1, 1), (1, 2), (-1, 2), (12345, 3)):
        out = zeros(64 * 24)
        assert (
            run(
                body, out, grid=(24,), block=(64,), declare=ROOM, order=order, threads=threads
            ).faults
            == ()
        )
        results.append(out)
    assert all((out == results[0]).all() for out in results)


def test_every_block_runs_once_on_several_cores() -> None:
    out, one = zeros(40), zeros(1)
    body = """mul.wide.u32 %d1, %b, 4; add.s64 %d1, %a0, %d1; ld.global.u32 %r1, [%d1]; \
add.u32 %r1, %r1, 1;
setp.eq.u32 %p1, %t, 0; @%p1 st.global.u32 [%d1], %r1;"""
    for order in range(4):
        out[:] = 0
        launched = run(body, out, one, grid=(40,), block=(1,), order=order, threads=3)
        assert launched.faults == ()
        assert set(out) == {1}
        assert launched.counts.access("global store").requests == 40
