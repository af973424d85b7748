"""Atomic operations: every type against Python, old values in lane order, contention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from common import ROOM, run, words, zeros

pytestmark = pytest.mark.full

WORD = {"u32": np.uint32, "s32": np.int32, "b32": np.uint32, "u64": np.uint64, "s64": np.int64}
WORD |= {"b64": np.uint64, "f32": np.float32, "f64": np.float64}


def inc(a: Any, b: Any) -> Any:
    return type(a)(0) if a >= b else type(a)(a + 1)


def dec(a: Any, b: Any) -> Any:
    return b if a == 0 or a > b else type(a)(a - 1)


OPERATIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("u32 s32 u64 s64 f32 f64", lambda a, b: a + b),
    "min": ("u32 s32 u64 s64", min),
    "max": ("u32 s32 u64 s64", max),
    "and": ("b32 b64", lambda a, b: a & b),
    "or": ("b32 b64", lambda a, b: a | b),
    "xor": ("b32 b64", lambda a, b: a ^ b),
    "exch": ("b32 b64", lambda a, b: b),
    "inc": ("u32", inc),
    "dec": ("u32", dec),
}
FORMS = [(op, kind) for op, (kinds, _) in OPERATIONS.items() for kind in kinds.split()]


def operand(lane: int, kind: str) -> Any:
    value = (lane * 37 + 11) % 23 - (9 if kind[0] in "sf" else 0)
    return WORD[kind](value)


@pytest.mark.parametrize("space", ["global", "shared"])
def test_every_type(space: str) -> None:
    """Lane k updates cell k % 4 of its form; the old values are those of the lanes before it."""
    cells, old = np.zeros((len(FORMS), 4), np.uint64), np.zeros((len(FORMS), 32), np.uint64)
    given = np.zeros((len(FORMS), 32), np.uint64)
    for k, (_, kind) in enumerate(FORMS):
        given[k].view(np.uint8).reshape(32, 8)[:, : WORD[kind]().nbytes] = (
            np.array([operand(lane, kind) for lane in range(32)]).view(np.uint8).reshape(32, -1)
        )
    lines = ["and.b32 %r9, %l, 3; mul.wide.u32 %d1, %r9, 8; shl.b32 %r8, %r9, 3;"]
    lines.append("mul.wide.u32 %d2, %l, 8; add.s64 %d3, %a1, %d2; add.s64 %d5, %a2, %d2;")
    for k, (op, kind) in enumerate(FORMS):
        letter = {"f32": "f", "f64": "e"}.get(kind, "d" if kind.endswith("64") else "r")
        was, value = f"%{letter}9" if letter != "r" else "%r1", f"%{letter}8".replace("r8", "r2")
        move = ("f" if kind[0] == "f" else "b") + kind[-2:]
        lines.append(f"ld.global.{move} {value}, [%d3+{256 * k}]; add.s64 %d4, %a0, %d1;")
        if space == "global":
            lines.append(f"atom.global.{op}.{kind} {was}, [%d4+{32 * k}], {value};")
        else:
            lines += [
                "mov.u32 %r7, room; add.u32 %r7, %r7, %r8; st.shared.b64 [%r7], 0;",
                f"bar.warp.sync -1; atom.shared.{op}.{kind} {was}, [%r7], {value};",
                f"bar.warp.sync -1; ld.shared.b64 %d20, [%r7]; st.global.b64 [%d4+{32 * k}], %d20;",
                "bar.warp.sync -1;",
            ]
        lines.append(f"st.global.{move} [%d5+{256 * k}], {was};")
    launched = run("\n".join(lines), cells, given, old, declare=ROOM)
    assert launched.faults == ()
    for k, (op, kind) in enumerate(FORMS):
        width = WORD[kind]().nbytes
        now = [WORD[kind](0) for _ in range(4)]
        for lane in range(32):
            was = old[k, lane : lane + 1].view(np.uint8)[:width].view(WORD[kind])[0]
            assert was == now[lane % 4], (op, kind, lane)
            with np.errstate(over="ignore"):
                now[lane % 4] = WORD[kind](OPERATIONS[op][1](now[lane % 4], operand(lane, kind)))
        assert (
            list(cells[k].view(np.uint8).reshape(4, 8)[:, :width].copy().view(WORD[kind])[:, 0])
            == now
        )


def test_compare_and_swap_of_2_4_and_8_bytes() -> None:
    for kind, width, register in (("b16", 2, "%h"), ("b32", 4, "%r"), ("b64", 8, "%d")):
        out = np.zeros(64, np.uint8)
        body = f"""cvt.u{8 * width}.u32 {register}9, %l; \
add.u{8 * width} {register}8, {register}9, 1;
atom.global.cas.{kind} {register}7, [%a0], {register}9, {register}8;
st.global.{kind} [%a0+8], {register}7;"""
        run(body, out)
        assert int(out[:width].view(f"u{width}")[0]) == 32
        assert int(out[8 : 8 + width].view(f"u{width}")[0]) == 31


def test_contention_is_the_most_lanes_of_one_address() -> None:
    chance = np.random.default_rng(0)
    where = chance.integers(0, 12, 64).astype(np.uint32)
    out = zeros(12)
    body = """ld.global.u32 %r1, [%q0]; mul.wide.u32 %d1, %r1, 4; add.s64 %d1, %a1, %d1;
red.global.add.u32 [%d1], 1;"""
    access = run(body, where, out, block=(64,)).counts.access("global atomic")
    np.testing.assert_array_equal(out, np.bincount(where, minlength=12))
    most = sum(int(np.bincount(where[k : k + 32]).max()) for k in (0, 32))
    assert (access.requests, access.lanes, access.contended) == (2, 64, most)


def test_subnormals_of_global_and_shared_sums() -> None:
    """atom.add.f32 flushes them in global memory alone (PTX ISA, atom)."""
    tiny = np.float32(1e-40)
    out = np.array([tiny, 0], np.float32)
    declare = ".shared .align 4 .f32 one;"
    body = f"""mov.b32 %f1, 0f{tiny.view(np.uint32):08X}; red.global.add.f32 [%a0], %f1;
st.shared.f32 [one], %f1; red.shared.add.f32 [one], %f1; ld.shared.f32 %f2, [one]; \
st.global.f32 [%a0+4], %f2;"""
    assert run(body, out, block=(1,), declare=declare).faults == ()
    assert list(out) == [0, tiny + tiny]


def test_a_plain_access_beside_an_atomic_one() -> None:
    out = zeros(2)
    body = """setp.eq.u32 %p1, %t, 40; @%p1 st.global.u32 [%a0], 7;
red.global.add.u32 [%a0], 1;"""
    assert words(run(body, out, block=(64,))) == {"race"}
    assert words(run(body.replace("\n", " bar.sync 0;\n"), out, block=(64,))) == set()


def test_atomics_through_generic_addresses() -> None:
    out = zeros(2)
    body = """cvta.shared.u64 %d1, 0; mov.u32 %r1, room; cvt.u64.u32 %d2, %r1; \
cvta.shared.u64 %d2, %d2;
setp.ne.u32 %p1, %t, 0; @!%p1 st.u32 [%d2], 0; bar.sync 0;
selp.b64 %d3, %a0, %d2, %p1; atom.add.u32 %r2, [%d3], 1; bar.sync 0;
@!%p1 ld.u32 %r3, [%d2]; @!%p1 st.global.u32 [%a0+4], %r3;"""
    assert run(body, out, declare=ROOM).faults == ()
    assert list(out) == [31, 1]
