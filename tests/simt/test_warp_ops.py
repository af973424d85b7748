"""Exchanges between lanes against Python: partial masks, lanes that have left, clamps."""

from __future__ import annotations

import numpy as np
import pytest
from common import only, run, words, zeros

pytestmark = pytest.mark.full

LANES = np.arange(32)
VALUES = (LANES * 2654435761 % 97).astype(np.uint32)


def shuffled(mode: str, by: int, clamp: int) -> tuple[np.ndarray, np.ndarray]:
    """By the pseudocode of the PTX ISA: (values, whether the source is in range)."""
    result, valid = VALUES.copy(), np.zeros(32, np.uint32)
    bound, segment = clamp & 31, clamp >> 8 & 31
    for lane in range(32):
        most = (lane & segment) | (bound & ~segment)
        least = lane & segment
        j = {
            "up": lane - by,
            "down": lane + by,
            "bfly": lane ^ by,
            "idx": least | (by & ~segment & 31),
        }[mode]
        valid[lane] = j >= most if mode == "up" else j <= most
        result[lane] = VALUES[j] if valid[lane] else VALUES[lane]
    return result, valid


CASES = [
    (mode, by, clamp)
    for mode, clamps in (("up", (0, 0x1800, 0x1000)), ("down", (31, 0x181F, 0x100F)))
    for by in (0, 1, 5, 16, 31)
    for clamp in clamps
] + [(mode, by, c) for mode in ("bfly", "idx") for by in (1, 7, 16, 31) for c in (31, 0x181F, 15)]


def test_shuffles() -> None:
    out = np.zeros((len(CASES), 2, 32), np.uint32)
    value = VALUES.copy()
    body = "ld.global.u32 %r1, [%q0];\n" + "\n".join(
        f"shfl.sync.{mode}.b32 %r2|%p1, %r1, {by}, {clamp}, -1; selp.u32 %r3, 1, 0, %p1; "
        f"st.global.u32 [%q1+{256 * k}], %r2; st.global.u32 [%q1+{256 * k + 128}], %r3;"
        for k, (mode, by, clamp) in enumerate(CASES)
    )
    assert run(body, value, out).faults == ()
    for k, case in enumerate(CASES):
        result, valid = shuffled(*case)
        np.testing.assert_array_equal(out[k, 1], valid, err_msg=str(case))
        np.testing.assert_array_equal(out[k, 0], result, err_msg=str(case))


def test_a_shuffle_by_some_lanes() -> None:
    """Those named come from both sides of a branch; the others have left."""
    out = zeros(32)
    body = """setp.ge.u32 %p1, %l, 24; @%p1 ret;
and.b32 %r1, %l, 1; setp.eq.u32 %p2, %r1, 0; @%p2 bra A; mul.lo.u32 %r2, %l, 10; bra B;
A: mul.lo.u32 %r2, %l, 100;
B: shfl.sync.bfly.b32 %r3, %r2, 1, 31, 0x00ffffff; st.global.u32 [%q0], %r3;"""
    assert run(body, out).faults == ()
    lane = LANES[:24] ^ 1
    np.testing.assert_array_equal(out[:24], lane * np.where(lane % 2, 10, 100))


@pytest.mark.parametrize(
    ("body", "lanes"),
    [
        ("setp.ge.u32 %p1, %l, 8; @%p1 ret;\nshfl.sync.down.b32 %r1, %l, 4, 31, 0xff;", "8"),
        (
            "setp.lt.u32 %p1, %l, 8; @!%p1 bra E;\nshfl.sync.idx.b32 %r1, %l, 9, 31, 0xff;\nE: ;",
            "9",
        ),
        (
            (
                "setp.eq.u32 %p1, %l, 8; "
                "@%p1 bra E;\nvote.sync.ballot.b32 %r1, %p1, -1;\nE: bar.sync 0;"
            ),
            "8",
        ),
    ],
)
def test_lanes_that_do_not_take_part(body: str, lanes: str) -> None:
    fault = only(run(body.replace("E: ;", "E: mov.u32 %r1, 0;"), zeros(1)))
    assert (fault.word, fault.line) == ("lane missing", 2)
    assert f"lanes {lanes}" in fault.text


def test_votes_and_reductions() -> None:
    """By halves: each half of the warp names itself, and is alone with its own values."""
    out = np.zeros((12, 32), np.uint32)
    forms = [
        ("redux.sync.add.u32", lambda v: v.sum()),
        ("redux.sync.min.u32", lambda v: v.min()),
        ("redux.sync.max.u32", lambda v: v.max()),
        ("redux.sync.min.s32", lambda v: v.view(np.int32).min()),
        ("redux.sync.max.s32", lambda v: v.view(np.int32).max()),
        ("redux.sync.and.b32", np.bitwise_and.reduce),
        ("redux.sync.or.b32", np.bitwise_or.reduce),
        ("redux.sync.xor.b32", np.bitwise_xor.reduce),
    ]
    value = (VALUES * 77_777_777).astype(np.uint32)
    body = """ld.global.u32 %r1, [%q0]; setp.lt.u32 %p1, %l, 16; \
selp.b32 %r9, 0xffff, 0xffff0000, %p1;
and.b32 %r2, %r1, 1; setp.eq.u32 %p2, %r2, 1;
vote.sync.ballot.b32 %r3, %p2, %r9; st.global.u32 [%q1+1024], %r3;
vote.sync.any.pred %p3, %p2, %r9; selp.u32 %r3, 1, 0, %p3; st.global.u32 [%q1+1152], %r3;
vote.sync.all.pred %p3, !%p2, %r9; selp.u32 %r3, 1, 0, %p3; st.global.u32 [%q1+1280], %r3;
vote.sync.uni.pred %p3, %p2, %r9; selp.u32 %r3, 1, 0, %p3; st.global.u32 [%q1+1408], %r3;
""" + "\n".join(
        f"{form} %r3, %r1, %r9; st.global.u32 [%q1+{128 * k}], %r3;"
        for k, (form, _) in enumerate(forms)
    )
    assert run(body, value, out).faults == ()
    for half in (slice(0, 16), slice(16, 32)):
        for k, (form, function) in enumerate(forms):
            assert set(out[k, half]) == {np.uint32(int(function(value[half])) & 0xFFFFFFFF)}, form
        odd = value[half] % 2 == 1
        ballot = sum(1 << (half.start + k) for k in np.flatnonzero(odd))
        wanted = [ballot, odd.any(), (~odd).all(), odd.all() or not odd.any()]
        assert [int(out[8 + k, half.start]) for k in range(4)] == [int(w) for w in wanted]


def test_matches() -> None:
    out = np.zeros((4, 32), np.uint32)
    value = (VALUES % 5).astype(np.uint32)
    body = """ld.global.u32 %r1, [%q0]; cvt.u64.u32 %d1, %r1; shl.b64 %d1, %d1, 33;
match.any.sync.b32 %r2, %r1, -1; st.global.u32 [%q1], %r2;
match.any.sync.b64 %r2, %d1, -1; st.global.u32 [%q1+128], %r2;
match.all.sync.b32 %r2|%p1, %r1, -1; selp.u32 %r3, 77, %r2, %p1; st.global.u32 [%q1+256], %r3;
match.all.sync.b32 %r2|%p1, 5, -1; selp.u32 %r3, %r2, 77, %p1; st.global.u32 [%q1+384], %r3;"""
    assert run(body, value, out).faults == ()
    same = [sum(1 << k for k in range(32) if value[k] == value[lane]) for lane in range(32)]
    assert list(out[0]) == same
    assert list(out[1]) == same
    assert set(out[2]) == {0}
    assert set(out[3]) == {0xFFFFFFFF}


def test_masks_of_the_active_lanes() -> None:
    out = zeros(32)
    body = """activemask.b32 %r1; setp.lt.u32 %p1, %l, 9; @!%p1 bra B; activemask.b32 %r1; bra E;
B: mov.u32 %r2, %lanemask_ge; and.b32 %r1, %r1, %r2;
E: st.global.u32 [%q0], %r1;"""
    assert words(run(body, out)) == set()
    assert list(out[:9]) == [0x1FF] * 9
    assert list(out[9:]) == [0xFFFFFFFF << lane & 0xFFFFFFFF for lane in range(9, 32)]


def test_elect() -> None:
    out = zeros(20)
    body = """elect.sync %r1|%p1, 0xfffff; selp.u32 %r2, 100, 0, %p1; add.u32 %r1, %r1, %r2;
st.global.u32 [%q0], %r1;"""
    assert run(body, out, block=(20,)).faults == ()
    assert list(out) == [100] + [0] * 19
