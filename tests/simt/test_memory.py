"""Spaces, windows and their edges, bytes that nobody wrote, addresses that are none."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from common import ROOM, kernel, only, run, words, zeros

from assay.simt import Memory

MARGINS = [
    ("[%a0-4]", "out of bounds", "4 bytes before argument 0"),
    ("[%a0+128]", "out of bounds", "past the end of argument 0 (128 bytes)"),
    ("[%a0+126]", "out of bounds", "across the end"),
    ("[%a0+2]", "misaligned", "multiple of 4"),
    ("[0]", "out of bounds", "null pointer"),
    ("[0xfffffffffffffffc]", "out of bounds", "belongs to no tensor"),
    ("[0x7fffffffffff0000]", "out of bounds", "belongs to no tensor"),
    ("[0xF00000000000]", "out of bounds", "not in the memory it names"),
]


@pytest.mark.parametrize("access", ["ld.global.u32 %r1, {};", "st.global.u32 {}, 1;"])
def test_the_edges_of_a_window(access: str) -> None:
    """A second tensor lies elsewhere: what is beyond the first is never in it."""
    body = "\n".join(f"@%p1 {access.format(at)}" for at, _, _ in MARGINS)
    launched = run(f"setp.eq.u32 %p1, %t, 9;\n{body}", zeros(32), zeros(32))
    faults = {fault.line: fault for fault in launched.faults}
    for line, (_, word, said) in enumerate(MARGINS, 2):
        fault = faults[line]
        assert (fault.word, fault.thread, fault.count) == (word, (9, 0, 0), 1)
        assert said in fault.text


def test_what_is_loaded_from_nowhere_is_zero() -> None:
    out = zeros(32)
    body = """mov.u32 %r1, 7; mov.u32 %r2, 7; setp.eq.u32 %p1, %t, 9; selp.b64 %d1, 8, %a0, %p1;
ld.global.v2.u32 {%r1, %r2}, [%d1]; add.u32 %r1, %r1, %r2; st.global.u32 [%q0], %r1;"""
    run(body, out)
    assert out[9] == 0


@pytest.mark.parametrize("space", ["shared", "local"])
def test_the_edges_of_shared_and_local_memory(space: str) -> None:
    declare = f".{space} .align 16 .b8 own[64];"
    outer, inner = (declare, "") if space == "shared" else ("", declare)
    places = ("own+60", "own+64", "own-4", "own+62", "own+2147483647")
    body = "\n".join(f"@%p1 st.{space}.u32 [{at}], 1;" for at in places)
    launched = run(f"setp.eq.u32 %p1, %t, 3; {inner}\n{body}", zeros(1), declare=outer)
    assert words(launched) == {"out of bounds"}
    assert {(f.line, f.thread) for f in launched.faults} == {(k, (3, 0, 0)) for k in (3, 4, 5, 6)}


def test_generic_addresses_of_every_space() -> None:
    out = zeros(6)
    declare = ROOM + ".const .align 4 .u32 fixed = 40; .global .align 4 .u32 seen = 50;"
    body = """.local .align 4 .b8 own[8];
mov.u64 %d1, own; cvta.local.u64 %d1, %d1; st.u32 [%d1+4], 10; ld.local.u32 %r1, [own+4];
mov.u64 %d2, room; cvta.shared.u64 %d2, %d2; st.u32 [%d2+8], 20; ld.shared.u32 %r2, [room+8];
ld.u32 %r3, [%a0]; mov.u64 %d3, fixed; cvta.const.u64 %d3, %d3; ld.u32 %r4, [%d3]; \
ld.const.u32 %r6, [fixed];
mov.u64 %d4, seen; cvta.global.u64 %d4, %d4; ld.u32 %r5, [%d4]; mov.b64 %d5, p0; \
cvta.param.u64 %d5, %d5; ld.u64 %d6, [%d5];
isspacep.shared %p1, %d2; isspacep.local %p2, %d1; isspacep.global %p3, %d4; \
isspacep.global %p4, %d1;
and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3; not.pred %p4, %p4; and.pred %p1, %p1, %p4;
cvta.to.shared.u64 %d7, %d2; cvt.u32.u64 %r7, %d7; mov.u32 %r8, room; \
setp.eq.and.u32 %p1, %r7, %r8, %p1;
st.global.v2.u32 [%d6], {%r1, %r2}; add.u32 %r4, %r4, %r6; \
st.global.v2.u32 [%d6+8], {%r4, %r5}; selp.u32 %r9, 1, 0, %p1; st.global.u32 [%d6+16], %r9;"""
    assert run(body, out, block=(1,), declare=declare).faults == ()
    assert list(out) == [10, 20, 80, 50, 1, 0]


def test_constant_memory_is_read_only() -> None:
    declare = ".const .align 4 .u32 fixed = 40;"
    fault = only(run("mov.u64 %d1, fixed;\nst.global.u32 [%d1], 1;", zeros(1), declare=declare))
    assert (fault.word, fault.line) == ("read only", 2)


def test_memory_that_must_not_be_written_is_not() -> None:
    """A NumPy array over bytes: the process would die of a store to some such memory."""
    out = np.frombuffer(bytes(128), np.uint32)
    fault = only(run("st.global.u32 [%q0], 1;", out))
    assert (fault.word, fault.count) == ("read only", 32)
    assert set(out) == {0}


def test_an_empty_array() -> None:
    fault = only(run("ld.global.u8 %r1, [%a0];", zeros(0), block=(1,)))
    assert fault.word == "out of bounds"
    assert run("setp.eq.u32 %p1, %t, 99; @%p1 ld.global.u8 %r1, [%a0];", zeros(0)).faults == ()


def test_views_are_in_the_memory_they_are_a_view_of() -> None:
    whole = zeros(64)
    assert run("st.global.u32 [%q0], %t;", whole[16:]).faults == ()
    np.testing.assert_array_equal(whole[16:48], np.arange(32))
    assert run("st.global.u32 [%q0-64], %t;", whole[16:]).faults == ()
    assert words(run("st.global.u32 [%q0-68], %t;", whole[16:])) == {"out of bounds"}
    assert run("st.global.u32 [%q0], %t;", whole[::-1], block=(1,)).faults == ()
    assert whole[63] == 0


def test_pointers_in_structs_and_in_memory() -> None:
    """A struct by value with a pointer, and an array of real addresses in memory."""
    data, out = np.arange(32, dtype=np.uint32), zeros(32)
    table = np.array([data.ctypes.data + 16], np.uint64)
    memory = Memory()
    memory.window_of(data, "data")
    body = """ld.global.u64 %d1, [%a0]; add.s64 %d1, %d1, %off; ld.global.u32 %r1, [%d1];
st.global.u32 [%q1], %r1;"""
    launched = kernel(body, 2).launch((1,), (28,), [table, out], memory=memory)
    assert launched.faults == ()
    np.testing.assert_array_equal(out[:28], np.arange(4, 32))
    source = """.version 8.0\n.target sm_80\n.visible .entry k(.param .align 8 .b8 s[24])
{ .reg .b64 %d<3>; .reg .b32 %r<3>; ld.param.u64 %d1, [s+8]; ld.param.u32 %r1, [s]; \
ld.param.u64 %d2, [s+16];
ld.global.u32 %r2, [%d1+8]; add.u32 %r2, %r2, %r1; st.global.u32 [%d2], %r2; ret; }"""

    class Given(ctypes.Structure):
        _fields_ = (("add", ctypes.c_uint32), ("at", ctypes.c_void_p), ("to", ctypes.c_void_p))

    from assay import simt

    memory.window_of(out, "out")
    given = Given(1000, data.ctypes.data, out.ctypes.data)
    assert simt.load(source).launch((1,), (1,), [bytes(given)], memory=memory).faults == ()
    assert out[0] == 1002


@pytest.mark.parametrize("space", ["global", "shared"])
def test_bytes_that_nobody_wrote(space: str) -> None:
    """By bytes, with accesses of 1, 2, 4 and 8 bytes in one kernel."""
    base = "%d9" if space == "global" else "room"
    store = f"""mov.u64 %d9, %a0; mov.u32 %r1, 1; cvt.u16.u32 %h1, %r1; mov.u64 %d1, 1;
st.{space}.u8 [{base}], %r1; st.{space}.u16 [{base}+2], %h1; st.{space}.u32 [{base}+4], %r1; \
st.{space}.u64 [{base}+16], %d1;
"""
    loads = [
        ("u8", 0, True),
        ("u8", 1, False),
        ("u8", 3, True),
        ("u16", 0, False),
        ("u16", 2, True),
        ("u32", 0, False),
        ("u32", 4, True),
        ("u64", 0, False),
        ("u64", 16, True),
        ("u32", 20, True),
        ("u32", 24, False),
        ("u64", 24, False),
    ]
    body = store + "\n".join(
        f"ld.{space}.{kind} {'%d2' if kind == 'u64' else '%r2'}, [{base}+{at}];"
        for kind, at, _ in loads
    )
    memory, data = Memory(), zeros(64)
    memory.add(data.ctypes.data, data.nbytes, name="data", written=False, keep=data)
    launched = kernel(body, 1, ROOM).launch((1,), (1,), [data], memory=memory)
    assert words(launched) == {"read before written"}
    assert {f.line - 3 for f in launched.faults} == {k for k, row in enumerate(loads) if not row[2]}


def test_what_one_launch_wrote_the_next_may_read() -> None:
    memory, data = Memory(), zeros(32)
    memory.add(data.ctypes.data, data.nbytes, written=False, keep=data)
    read, write = kernel("ld.global.u32 %r1, [%q0];"), kernel("st.global.u32 [%q0], 5;")
    assert words(read.launch((1,), (32,), [data], memory=memory)) == {"read before written"}
    assert write.launch((1,), (32,), [data], memory=memory).faults == ()
    assert read.launch((1,), (32,), [data], memory=memory).faults == ()


MODULE = """.version 8.0
.target sm_80
.global .align 4 .u32 spare = 1;
.global .align 4 .u32 count = 3;
.global .align 8 .u64 kept = 0;
.global .align 8 .u64 named = count;
.visible .entry store(.param .u64 p) { .reg .b64 %d<3>; ld.param.u64 %d1, [p]; \
st.global.u64 [kept], %d1; ret; }
.visible .entry use(.param .u64 q)
{ .reg .b64 %d<4>; .reg .b32 %r<3>; ld.global.u64 %d1, [kept]; ld.global.u64 %d2, [named]; \
ld.global.u32 %r1, [%d2];
add.u32 %r1, %r1, 1; st.global.u32 [count], %r1; st.global.u32 [%d1], %r1; \
ld.global.u32 %r2, [spare]; ret; }
"""


def test_kernels_of_a_module_share_its_variables() -> None:
    """A pointer that one kernel keeps in one of them means the same to the next."""
    from assay import simt

    memory, first, second = Memory(), zeros(1), zeros(1)
    store, use = simt.load(MODULE, "store"), simt.load(MODULE, "use")
    assert store.launch((1,), (1,), [first], memory=memory).faults == ()
    for wanted in (4, 5):
        assert use.launch((1,), (1,), [second], memory=memory).faults == ()
        assert (first[0], second[0]) == (wanted, 0)
    assert int(use.variable("count").view(np.uint32)[0]) == 5


def test_more_local_memory_than_64_kb() -> None:
    out = zeros(32)
    body = """.local .align 16 .b8 big[100000];
mov.u32 %r1, big; mul.lo.u32 %r2, %t, 3000; add.u32 %r1, %r1, %r2; st.local.u32 [%r1], %t; \
ld.local.u32 %r3, [%r1]; st.global.u32 [%q0], %r3;"""
    assert run(body, out).faults == ()
    np.testing.assert_array_equal(out, np.arange(32))


def test_integer_division_by_zero_does_not_end_the_process() -> None:
    out = zeros(32)
    body = """mov.s32 %r1, -2147483648; mov.s32 %r2, -1; div.s32 %r3, %r1, %r2; \
rem.s32 %r4, %r1, %r2;
mov.u32 %r5, 0; div.s32 %r3, %r1, %r5; rem.u32 %r4, %r1, %r5; cvt.u64.u32 %d1, %r5; \
div.u64 %d2, %a0, %d1;
st.global.u32 [%q0], 1;"""
    assert run(body, out).faults == ()
