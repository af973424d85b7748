"""bar.sync, bar.arrive, bar.red, bar.warp.sync: who waits for whom, and what that orders."""

from __future__ import annotations

import numpy as np
import pytest
from common import only, run, words, zeros

pytestmark = pytest.mark.full

ROOM = ".shared .align 16 .b8 room[512];"
PASS = """shl.b32 %r1, %t, 2; mov.u32 %r2, room; add.u32 %r2, %r2, %r1; xor.b32 %r3, %r1, 128;
mov.u32 %r4, room; add.u32 %r4, %r4, %r3; st.shared.u32 [%r2], %t;
BARRIER
ld.shared.u32 %r5, [%r4]; st.global.u32 [%q0], %r5;"""
"""Each thread reads what one of another warp wrote."""


def through(barrier: str, **options: object) -> tuple[np.ndarray, set[str]]:
    out = zeros(128)
    launched = run(PASS.replace("BARRIER", barrier), out, block=(128,), declare=ROOM, **options)
    return out, words(launched)


@pytest.mark.parametrize(
    "barrier",
    [
        "bar.sync 0;",
        "barrier.sync 3;",
        "bar.cta.sync 1, 128;",
        "shr.u32 %r8, %t, 6; add.u32 %r8, %r8, 1; bar.sync %r8, 64;",
        "bar.red.popc.u32 %r9, 0, %p1;",
    ],
)
def test_what_a_barrier_orders(barrier: str) -> None:
    for order in (0, 5):
        out, found = through(barrier, order=order)
        assert found == set()
        np.testing.assert_array_equal(out, np.arange(128) ^ 32)


@pytest.mark.parametrize(
    "barrier", ["", "bar.warp.sync -1;", "shr.u32 %r8, %t, 5; bar.sync %r8, 32;"]
)
def test_what_orders_too_little(barrier: str) -> None:
    for order in (0, 1, 2):
        _, found = through(barrier, order=order)
        assert found
        assert found <= {"race", "read before written"}


def test_producers_arrive_and_consumers_wait() -> None:
    out = zeros(64)
    body = """shl.b32 %r1, %t, 2; and.b32 %r1, %r1, 127; mov.u32 %r2, room; add.u32 %r2, %r2, %r1;
setp.lt.u32 %p1, %t, 32; @!%p1 bra CONSUME;
st.shared.u32 [%r2], %t;
ARRIVE bra E;
CONSUME: bar.sync 1, 64;
ld.shared.u32 %r3, [%r2]; st.global.u32 [%q0], %r3;
E: mov.u32 %r1, 0;"""
    for order in range(3):
        done = body.replace("ARRIVE", "bar.arrive 1, 64;")
        assert run(done, out, block=(64,), declare=ROOM, order=order).faults == ()
    np.testing.assert_array_equal(out[32:], np.arange(32))
    fault = only(run(body.replace("ARRIVE", ""), out, block=(64,), declare=ROOM))
    assert (fault.word, fault.line) == ("deadlock", 5)


@pytest.mark.parametrize(
    ("form", "value"), [("popc.u32 %r1", 21), ("and.pred %p2", 0), ("or.pred %p2", 1)]
)
def test_reductions(form: str, value: int) -> None:
    out = zeros(70)
    give = "" if form.startswith("popc") else "selp.u32 %r1, 1, 0, %p2;"
    body = f"setp.lt.u32 %p1, %t, 21; bar.red.{form}, 0, %p1; {give} st.global.u32 [%q0], %r1;"
    assert run(body, out, block=(70,)).faults == ()
    assert set(out) == {value}
    body = body.replace("0, %p1", "0, !%p1")
    run(body, out, block=(70,))
    assert set(out) == {{21: 49}.get(value, value)}


def test_threads_that_have_left_are_not_waited_for() -> None:
    out = zeros(96)
    body = """setp.ge.u32 %p1, %t, 40; @%p1 ret; bar.sync 0; st.global.u32 [%q0], 1;
bar.sync 0;"""
    assert run(body, out, block=(96,)).faults == ()
    np.testing.assert_array_equal(out, np.arange(96) < 40)


def test_divergent_barriers_of_one_warp() -> None:
    body = """setp.lt.u32 %p1, %l, 7; @%p1 bra A;
bar.sync 0;
bra E;
A: mov.u32 %r1, 0;
bar.sync 0;
E: mov.u32 %r1, 0;"""
    fault = only(run(body, zeros(1), block=(64,)))
    assert fault.word == "barrier in divergent code"
    assert fault.line in (2, 5)


def test_barriers_that_can_not_be() -> None:
    for barrier in ("mov.u32 %r1, 16; bar.sync %r1;", "bar.sync 0, 33;", "bar.sync 0, 128;"):
        assert only(run(barrier, zeros(1), block=(64,))).word == "bad barrier"


def test_half_of_a_block_waits_in_vain() -> None:
    body = "setp.lt.u32 %p1, %t, 32; @%p1 bra E;\nbar.sync 1, 64;\nE: mov.u32 %r1, 0;"
    fault = only(run(body, zeros(1), block=(64,)))
    assert (fault.word, fault.line, fault.thread) == ("deadlock", 2, (32, 0, 0))


def test_lanes_meet_at_two_warp_barriers() -> None:
    """Since sm_70 the lanes that bar.warp.sync names may be at different ones."""
    out = zeros(32)
    body = """shl.b32 %r1, %t, 2; mov.u32 %r2, room; add.u32 %r3, %r2, %r1; \
xor.b32 %r1, %r1, 64; add.u32 %r4, %r2, %r1;
setp.lt.u32 %p1, %l, 16; @%p1 bra A;
st.shared.u32 [%r3], %t; bar.warp.sync -1; ld.shared.u32 %r5, [%r4]; bra E;
A: st.shared.u32 [%r3], %t; bar.warp.sync -1; ld.shared.u32 %r5, [%r4]; add.u32 %r5, %r5, 100;
E: st.global.u32 [%q0], %r5;"""
    assert run(body, out, declare=ROOM).faults == ()
    lane = np.arange(32)
    np.testing.assert_array_equal(out, (lane ^ 16) + np.where(lane < 16, 100, 0))


def test_a_warp_barrier_does_not_wait_for_lanes_that_leave_later() -> None:
    body = """setp.lt.u32 %p1, %l, 16; @%p1 bra A;
mov.u32 %r1, 0;
L: add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 9; @%p2 bra L; ret;
A: bar.warp.sync -1; st.global.u32 [%q0], 1;"""
    out = zeros(32)
    assert run(body, out).faults == ()
    assert out.sum() == 16


def test_a_lane_that_never_comes() -> None:
    body = """setp.eq.u32 %p1, %l, 3; @%p1 bra A;
bar.warp.sync -1;
A: bar.sync 0;"""
    fault = only(run(body, zeros(1)))
    assert (fault.word, fault.line) == ("lane missing", 2)
    assert "lanes 3," in fault.text
