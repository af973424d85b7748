"""cp.async and mbarrier: what is in flight, until when, and whom it orders."""

from __future__ import annotations

import numpy as np
import pytest
from common import ROOM, only, run, words, zeros

pytestmark = pytest.mark.full

COPY = """shl.b32 %r1, %t, 4; mov.u32 %r2, room; add.u32 %r2, %r2, %r1; cvt.u64.u32 %d1, %r1; \
add.s64 %d1, %a0, %d1;
cp.async.cg.shared.global [%r2], [%d1], 16; cp.async.commit_group;
cp.async.cg.shared.global [%r2+512], [%d1+512], 16; cp.async.commit_group;
WAIT
ld.shared.u32 %r3, [%r2+FIRST];
st.global.u32 [%q1], %r3;"""
TWO = ".shared .align 16 .b8 room[1024];"


@pytest.mark.parametrize(
    ("wait", "first", "landed"),
    [
        ("", 0, False),
        ("cp.async.wait_group 2;", 0, False),
        ("cp.async.wait_group 1;", 0, True),
        ("cp.async.wait_group 1;", 512, False),
        ("cp.async.wait_group 0;", 512, True),
        ("cp.async.wait_all;", 512, True),
    ],
)
def test_wait_group_n_leaves_n_in_flight(wait: str, first: int, landed: bool) -> None:
    data, out = np.arange(256, dtype=np.uint32), zeros(32)
    body = COPY.replace("WAIT", wait).replace("FIRST", str(first))
    body += "\ncp.async.wait_all;"
    launched = run(body, data, out, declare=TWO)
    if landed:
        assert launched.faults == ()
        np.testing.assert_array_equal(out, np.arange(32) * 4 + first // 4)
    else:
        fault = only(launched)
        assert (fault.word, fault.line) == ("read before written", 5)
        assert "in flight" in fault.text


def test_a_copy_is_its_own_threads_until_a_barrier() -> None:
    data, out = np.arange(256, dtype=np.uint32), zeros(64)
    body = """and.b32 %r5, %t, 31; shl.b32 %r1, %r5, 4; mov.u32 %r2, room; \
add.u32 %r2, %r2, %r1; cvt.u64.u32 %d1, %r1;
add.s64 %d1, %a0, %d1; setp.lt.u32 %p1, %t, 32; @%p1 cp.async.ca.shared.global [%r2], [%d1], 16;
cp.async.wait_all; BARRIER
ld.shared.u32 %r3, [%r2]; st.global.u32 [%q1], %r3;"""
    right = run(body.replace("BARRIER", "bar.sync 0;"), data, out, block=(64,), declare=TWO)
    assert right.faults == ()
    np.testing.assert_array_equal(out[32:], np.arange(32) * 4)
    wrong = run(body.replace("BARRIER", ""), data, out, block=(64,), declare=TWO)
    assert words(wrong) <= {"race", "read before written"}
    assert words(wrong)


def test_memory_is_used_again_while_a_copy_is_in_flight() -> None:
    data, out = zeros(256), zeros(32)
    again = "st.shared.u32 [%r2], 1;"
    body = COPY.replace("WAIT", again).replace("ld.shared.u32 %r3, [%r2+FIRST];", "")
    launched = run(body + " cp.async.wait_all;", data, out, declare=TWO)
    assert (only(launched).word, only(launched).line) == ("race", 4)


def test_a_copy_that_nobody_waits_for() -> None:
    body = COPY.replace("WAIT", "").replace("ld.shared.u32 %r3, [%r2+FIRST];", "")
    assert "copy not waited for" in words(run(body, zeros(256), zeros(32), declare=TWO))


def test_a_copy_of_less_fills_with_zeros_and_reads_no_more() -> None:
    data, out = np.arange(1, 4, dtype=np.uint32), zeros(4)
    body = """st.shared.v4.u32 [room], {9, 9, 9, 9}; mov.u32 %r1, 12;
cp.async.ca.shared.global [room], [%a0], 16, %r1; cp.async.wait_all;
ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [room]; st.global.v4.u32 [%a1], {%r2, %r3, %r4, %r5};"""
    assert run(body, data, out, block=(1,), declare=ROOM).faults == ()
    assert list(out) == [1, 2, 3, 0]
    fault = only(run(body.replace("12;", "16;"), data, out, block=(1,), declare=ROOM))
    assert (fault.word, fault.line) == ("out of bounds", 2)
    fault = only(run(body.replace("[%a0]", "[%a0+4]"), zeros(9), out, block=(1,), declare=ROOM))
    assert (fault.word, fault.line) == ("misaligned", 2)


PIPE = """setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.sync 0; \
mov.u32 %r9, 0;
shl.b32 %r1, %t, 2; and.b32 %r1, %r1, 127; mov.u32 %r2, room; add.u32 %r2, %r2, %r1; \
setp.lt.u32 %p2, %t, 32; @!%p2 bra READ;
st.shared.u32 [%r2], %t;
ARRIVE bra E;
READ: mbarrier.test_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra READ;
ld.shared.u32 %r3, [%r2]; st.global.u32 [%q0], %r3;
E: mov.u32 %r9, 1;"""
BARRED = ROOM + ".shared .align 8 .b64 bar;"


def test_an_mbarrier_orders_those_who_arrive_before_those_who_pass() -> None:
    out = zeros(64)
    for order in range(3):
        arrive = "mbarrier.arrive.shared.b64 %d1, [bar];"
        body = PIPE.replace("ARRIVE", arrive)
        assert run(body, out, block=(64,), declare=BARRED, order=order).faults == ()
        np.testing.assert_array_equal(out[32:], np.arange(32))


def test_an_mbarrier_that_too_few_arrive_at() -> None:
    body = PIPE.replace(
        "ARRIVE", "setp.ne.u32 %p4, %t, 5; @%p4 mbarrier.arrive.shared.b64 %d1, [bar];"
    )
    fault = only(run(body, zeros(64), block=(64,), declare=BARRED))
    assert (fault.word, fault.line) == ("deadlock", 5)


def test_phases_of_an_mbarrier() -> None:
    """The state that an arrival gives is passed by the next phase alone."""
    out = zeros(4)
    body = """mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive.shared.b64 %d1, [bar];
mbarrier.test_wait.shared.b64 %p1, [bar], %d1; selp.u32 %r1, 1, 0, %p1;
mbarrier.arrive.shared.b64 %d2, [bar]; mbarrier.test_wait.shared.b64 %p1, [bar], %d1; \
selp.u32 %r2, 1, 0, %p1;
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; selp.u32 %r3, 1, 0, %p1; \
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 1;
selp.u32 %r4, 1, 0, %p1; st.global.v4.u32 [%a0], {%r1, %r2, %r3, %r4}; \
mbarrier.inval.shared.b64 [bar];"""
    assert run(body, out, block=(1,), declare=BARRED).faults == ()
    assert list(out) == [0, 1, 1, 0]
    fault = only(run("mbarrier.arrive.shared.b64 %d1, [bar];", out, block=(1,), declare=BARRED))
    assert fault.word == "read before written"


def test_copies_that_arrive_at_an_mbarrier() -> None:
    data, out = np.arange(128, dtype=np.uint32), zeros(32)
    body = """setp.eq.u32 %p1, %t, 0; @%p1 mbarrier.init.shared.b64 [bar], 32; bar.sync 0;
shl.b32 %r1, %t, 4; mov.u32 %r2, room; add.u32 %r2, %r2, %r1; cvt.u64.u32 %d1, %r1; \
add.s64 %d1, %a0, %d1;
cp.async.ca.shared.global [%r2], [%d1], 16; cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
W: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra W;
xor.b32 %r1, %r1, 496; mov.u32 %r2, room; add.u32 %r2, %r2, %r1; ld.shared.u32 %r3, [%r2]; \
st.global.u32 [%q1], %r3;"""
    assert run(body, data, out, declare=BARRED).faults == ()
    np.testing.assert_array_equal(out, (np.arange(32) ^ 31) * 4)
