"""Lanes, warps and blocks that wait for one another; and those that wait for nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest
from common import only, run, words, zeros

pytestmark = pytest.mark.full

LOCK = """L: atom.global.cas.b32 %r1, [%a0], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;
ld.volatile.global.u32 %r2, [%a0+4]; add.u32 %r2, %r2, 1; st.volatile.global.u32 [%a0+4], %r2;
membar.gl;
atom.global.exch.b32 %r3, [%a0], 0;"""
"""A counter behind a spin lock."""
BARE_LOCK = LOCK.replace("membar.gl;", "").replace(".volatile", ".relaxed.gpu")


@pytest.mark.parametrize("body", [LOCK, BARE_LOCK])
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (1, 70), (9, 32), (3, 96)])
def test_a_spin_lock(body: str, grid: int, block: int) -> None:
    out = zeros(2)
    launched = run(body, out, grid=(grid,), block=(block,))
    assert list(out) == [0, grid * block]
    assert "deadlock" not in words(launched)
    assert "endless" not in words(launched)


def test_all_blocks_wait_for_the_last_without_a_fence() -> None:
    """A counter that every block waits to be full: the blocks must be there together."""
    out = zeros(1)
    body = """setp.ne.u32 %p1, %t, 0; @%p1 bra E;
red.global.add.u32 [%a0], 1; mov.u32 %r2, %nctaid.x;
W: atom.global.add.u32 %r1, [%a0], 0; setp.lt.u32 %p1, %r1, %r2; @%p1 bra W;
E: bar.sync 0;"""
    for grid in (2, 40, 300):
        out[:] = 0
        assert run(body, out, grid=(grid,), block=(64,)).faults == ()
        assert out[0] == grid


def test_a_wait_for_a_later_block_by_plain_atomics() -> None:
    """The loop polls with `red`'s counterpart `ld.relaxed`: no fence anywhere."""
    out = zeros(64)
    body = """add.u32 %r5, %b, 1; mov.u32 %r6, %nctaid.x; setp.eq.u32 %p2, %r5, %r6; @%p2 bra LAST;
mul.wide.u32 %d1, %r5, 4; add.s64 %d1, %a0, %d1;
W: ld.relaxed.gpu.global.u32 %r1, [%d1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;
add.u32 %r1, %r1, 1; st.relaxed.gpu.global.u32 [%q0], %r1; bra E;
LAST: st.relaxed.gpu.global.u32 [%q0], 1;
E: mov.u32 %r1, 0;"""
    assert run(body, out, grid=(64,), block=(1,)).faults == ()
    np.testing.assert_array_equal(out, np.arange(64, 0, -1))


def test_decoupled_look_back() -> None:
    """Each block adds its part to what the block before it has published behind a fence."""
    blocks = 200
    part, total, flag = zeros(blocks * 4), zeros(blocks * 4), zeros(blocks)
    part[:] = np.arange(blocks * 4)
    body = """mov.u32 %r9, 0; setp.eq.u32 %p1, %b, 0; @%p1 bra FIRST;
sub.u32 %r5, %b, 1; mul.wide.u32 %d1, %r5, 4; add.s64 %d2, %a2, %d1;
W: ld.volatile.global.u32 %r1, [%d2]; setp.eq.u32 %p1, %r1, 0; @%p1 bra W;
membar.gl; shl.b32 %r6, %r5, 4; cvt.u64.u32 %d3, %r6; add.s64 %d3, %a1, %d3; \
ld.global.u32 %r9, [%d3];
FIRST: ld.global.u32 %r2, [%q0]; add.u32 %r9, %r9, %r2; st.global.u32 [%q1], %r9;
membar.gl; bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra E;
mul.wide.u32 %d1, %b, 4; add.s64 %d2, %a2, %d1; st.volatile.global.u32 [%d2], 1;
E: mov.u32 %r1, 0;"""
    for order in (0, 3):
        total[:] = flag[:] = 0
        launched = run(body, part, total, flag, grid=(blocks,), block=(4,), order=order)
        assert launched.faults == (), order
        np.testing.assert_array_equal(total[::4], np.cumsum(part[::4], dtype=np.uint32))


def test_a_flag_needs_a_fence_on_both_sides() -> None:
    data, flag, out = zeros(32), zeros(1), zeros(32)
    body = """setp.ne.u32 %p1, %b, 0; @%p1 bra READ;
st.global.u32 [%q0], %t;
FENCE
bar.sync 0; setp.ne.u32 %p1, %t, 0; @%p1 bra E; st.volatile.global.u32 [%a1], 1; bra E;
READ: ld.volatile.global.u32 %r1, [%a1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra READ;
ACQUIRE mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a0, %d1; ld.global.u32 %r2, [%d2];
add.s64 %d3, %a2, %d1; st.global.u32 [%d3], %r2;
E: mov.u32 %r1, 0;"""
    fence = "membar.gl;"
    for first, then, races in ((fence, fence, False), ("", fence, True), (fence, "", True)):
        flag[:] = 0
        source = body.replace("FENCE", first).replace("ACQUIRE", then)
        launched = run(source, data, flag, out, grid=(2,))
        if races:
            fault = only(launched)
            assert (fault.word, fault.line, fault.block) == ("race", 6, (1, 0, 0))
        else:
            assert launched.faults == ()


def test_a_chain_of_flags_between_warps_orders_the_first_and_the_last() -> None:
    """Warp 0 writes for warp 2, and tells warp 1, which tells warp 2."""
    out = zeros(96)
    declare = (
        ".shared .align 4 .b8 room[128]; .shared .align 4 .u32 one; .shared .align 4 .u32 two;"
    )
    body = """shr.u32 %r1, %t, 5; and.b32 %r2, %t, 31; shl.b32 %r3, %r2, 2; mov.u32 %r4, room; \
add.u32 %r4, %r4, %r3;
setp.eq.u32 %p3, %t, 0; @%p3 st.volatile.shared.u32 [one], 0; \
@%p3 st.volatile.shared.u32 [two], 0; bar.sync 0;
setp.eq.u32 %p1, %r1, 0; @%p1 bra A; setp.eq.u32 %p1, %r1, 1; @%p1 bra B; bra C;
A: st.shared.u32 [%r4], %t; bar.warp.sync -1; membar.cta; @%p3 st.volatile.shared.u32 [one], 1; \
bra E;
B: ld.volatile.shared.u32 %r5, [one]; setp.eq.u32 %p1, %r5, 0; @%p1 bra B; setp.eq.u32 %p4, %r2, 0;
membar.cta; @%p4 st.volatile.shared.u32 [two], 1; bra E;
C: ld.volatile.shared.u32 %r5, [two]; setp.eq.u32 %p1, %r5, 0; @%p1 bra C;
ld.shared.u32 %r6, [%r4]; st.global.u32 [%q0], %r6;
E: mov.u32 %r1, 0;"""
    for order in (0, 1, 2):
        assert run(body, out, block=(96,), declare=declare, order=order).faults == ()
        np.testing.assert_array_equal(out[64:], np.arange(32))


def test_an_endless_loop_is_found_at_once() -> None:
    begin = time.perf_counter()
    fault = only(run("mov.u32 %r1, 1;\nL: bra L;", zeros(1), grid=(20,), block=(64,)))
    assert (fault.word, fault.line) == ("endless", 2)
    fault = only(
        run(
            "L: ld.volatile.global.u32 %r1, [%a0]; setp.eq.u32 %p1, %r1, 0;\n@%p1 bra L;",
            zeros(1),
            grid=(2,),
        )
    )
    assert (fault.word, fault.line) == ("deadlock", 2)
    fault = only(run("ts: .branchtargets L;\nL: brx.idx 0, ts;", zeros(1)))
    assert (fault.word, fault.line) == ("endless", 2)
    assert time.perf_counter() - begin < 10


def test_a_long_loop_is_not_endless() -> None:
    """Neither where blocks may wait for one another, nor where the count is in local memory."""
    out = zeros(32)
    body = """FENCE
mov.b32 %r1, 0; mov.b32 %r2, 1;
L: mad.lo.u32 %r2, %r2, 5, %t; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 400000; @%p1 bra L;
st.global.u32 [%q0], %r1;"""
    for fence in ("", "membar.gl;"):
        out[:] = 0
        assert run(body.replace("FENCE", fence), out, grid=(2,), block=(16,)).faults == ()
        assert set(out) == {400000}
    body = """st.local.u32 [own], 0;
L: ld.local.u32 %r1, [own]; add.u32 %r1, %r1, 1; st.local.u32 [own], %r1; \
setp.lt.u32 %p1, %r1, 300000; @%p1 bra L;
st.global.u32 [%q0], %r1;"""
    assert run(f".local .align 4 .u32 own;\n{body}", out).faults == ()
    assert set(out) == {300000}


def test_a_lane_that_waits_for_a_lane_of_its_warp() -> None:
    """The lane that raises the flag comes after those that wait, by the order of the code."""
    out = zeros(2)
    body = """setp.eq.u32 %p1, %l, 31; @%p1 bra RAISE;
W: ld.volatile.global.u32 %r1, [%a0]; setp.eq.u32 %p2, %r1, 0; @%p2 bra W; bra E;
RAISE: st.volatile.global.u32 [%a0], 1;
E: red.global.add.u32 [%a0+4], 1;"""
    assert run(body, out).faults == ()
    assert list(out) == [1, 32]


def test_time_goes_on() -> None:
    out = zeros(1)
    body = (
        "mov.u64 %d1, %clock64;\nL: mov.u64 %d2, %clock64; "
        "sub.u64 %d3, %d2, %d1; setp.lt.u64 %p1, %d3, 1000; @%p1 bra L;"
    )
    assert run(body, out).faults == ()
