"""PTX text as data: scopes, places, initial values, literals."""

from __future__ import annotations

import numpy as np
import pytest
from common import kernel, run, text, zeros

import assay.simt as simt
from assay.simt.parse import PTXError, parse
from assay.simt.ptx import Instruction, Label, Place, constant, split


def body_of(source: str) -> list[Instruction | Label]:
    return parse(source).functions["k"].body


def instructions(source: str) -> list[Instruction]:
    return [item for item in body_of(source) if isinstance(item, Instruction)]


@pytest.mark.parametrize(
    ("literal", "size", "bits"),
    [
        ("12", 4, 12),
        ("-7", 4, -7),
        ("0x1F", 4, 31),
        ("0X1fU", 4, 31),
        ("017", 4, 15),
        ("0b101", 4, 5),
        ("4294967295U", 4, 2**32 - 1),
        ("0f3F800000", 4, 0x3F800000),
        ("0f3F800000", 8, 0x3FF0000000000000),
        ("0d3FF0000000000000", 8, 0x3FF0000000000000),
        ("0d3FF0000000000000", 4, 0x3F800000),
        ("1.5", 4, 0x3FC00000),
        ("-2.0", 8, 0xC000000000000000),
        ("1e3", 8, 0x408F400000000000),
        ("WARP_SZ", 4, 32),
        ("%r1", 4, None),
        ("1.5", 2, None),
    ],
)
def test_literals(literal: str, size: int, bits: int | None) -> None:
    assert constant(literal, size) == bits


def test_split_leaves_brackets_whole() -> None:
    assert split("{%r1, %r2}, [%d1 + 4], (a, b)") == ["{%r1, %r2}", "[%d1 + 4]", "(a, b)"]
    assert split("") == []


def test_a_register_of_an_inner_scope_is_its_own() -> None:
    first, inner, last = (
        i
        for i in instructions(
            text("mov.b32 %r1, 1;\n{ .reg .b32 %r1; mov.b32 %r1, 2; }\nmov.b32 %r2, %r1;")
        )
        if i.form == "mov.b32" and i.operands[1] in ("1", "2", "%r1")
    )
    assert first.operands[0] == "%r1" == last.operands[1]
    assert inner.operands[0] != "%r1"


def test_registers_named_like_parts_of_literals() -> None:
    """In `0x1` and `%tid.x` there is no register x1 or x."""
    out = zeros(32)
    body = """{ .reg .b32 x1; .reg .b32 x; .reg .b32 f<2>;
mov.b32 x1, 0x1; mov.u32 x, %tid.x; add.u32 x, x, x1; mov.b32 f1, 0f00000001; add.u32 x, x, f1;
st.global.u32 [%q0], x; }"""
    assert run(body, out).faults == ()
    np.testing.assert_array_equal(out, np.arange(32) + 2)


def test_labels_belong_to_their_scope() -> None:
    """The wait loop of a library, twice in one function with the same labels."""
    loop = """{ .reg .pred P; .reg .b32 c; mov.b32 c, 0;
AGAIN: add.u32 c, c, 1; setp.ge.u32 P, c, %r1; @P bra DONE; bra AGAIN;
DONE: add.u32 %r2, %r2, c; }"""
    out = zeros(32)
    body = (
        f"mov.b32 %r2, 0; "
        f"mov.b32 %r1, 5;\n{loop}\nmov.b32 %r1, 7;\n{loop}\nst.global.u32 [%q0], %r2;"
    )
    assert run(body, out).faults == ()
    assert set(out) == {12}


def test_branch_targets_in_a_scope() -> None:
    out = zeros(32)
    body = """{ and.b32 %r1, %t, 1;
ts: .branchtargets A, B;
brx.idx %r1, ts;
A: mov.b32 %r2, 10; bra E;
B: mov.b32 %r2, 20;
E: st.global.u32 [%q0], %r2; }"""
    assert run(body, out).faults == ()
    np.testing.assert_array_equal(out, np.where(np.arange(32) % 2, 20, 10))


def test_inlined_places() -> None:
    source = (
        text("mov.b32 %r1, 1;").replace(
            ".loc 1 1 0\n",
            ".loc 2 5 3\n.loc 3 9 1, function_name $L__info_string0, inlined_at 2 5 3\n",
        )
        + '.file 2 "outer.cu"\n.file 3 "inner.h"\n'
    )
    move = next(i for i in instructions(source) if i.operands and i.operands[-1] == "1")
    assert move.places == (Place("inner.h", 9), Place("outer.cu", 5))


def test_a_file_whose_name_holds_two_slashes() -> None:
    source = text("mov.b32 %r1, 1; // a comment").replace('"k.cu"', '"/a//b.cu"')
    assert any(Place("/a//b.cu", 1) in i.places for i in instructions(source))


def test_initial_values() -> None:
    declare = """.global .align 4 .u32 one = 5;
.global .align 4 .b8 bytes[6] = {1, 0x02, -1};
.const .align 8 .f64 half = 0.5;
.global .f32 third[2] = {0f3F800000, 2.5};
.global .align 8 .u64 where[3] = {generic(bytes)+2, one, 0};
.extern .shared .align 16 .b8 room[];"""
    program = parse(text("", declare=declare))
    values = program.variables
    assert values["one"].values == (5).to_bytes(4, "little")
    assert values["bytes"].values == bytes([1, 2, 255, 0, 0, 0])
    assert values["half"].values == np.float64(0.5).tobytes()
    assert values["third"].values == np.array([1, 2.5], np.float32).tobytes()
    assert values["where"].addresses == ((0, "bytes", 2), (8, "one", 0))
    assert values["room"].external
    assert values["room"].bytes == 0
    assert [v.name for v in program.windows()] == ["one", "bytes", "half", "third", "where"]


def test_literals_reach_the_kernel() -> None:
    out = zeros(3, np.float64)
    body = """mov.f32 %f1, 1.5; cvt.f64.f32 %e1, %f1; st.global.f64 [%a0], %e1;
mov.f64 %e2, 0f40000000; st.global.f64 [%a0+8], %e2;
mov.f64 %e3, -0.25; st.global.f64 [%a0+16], %e3;"""
    assert run(body, out, block=(1,)).faults == ()
    assert list(out) == [1.5, 2.0, -0.25]


@pytest.mark.parametrize(
    "source",
    [
        text("mov.b32 %r1, 1;").replace("ret;\n}", "ret;\n"),
        text(".wrong thing;"),
        text("MOV %r1;"),
    ],
)
def test_what_is_no_ptx(source: str) -> None:
    with pytest.raises(PTXError):
        parse(source)


def test_what_is_not_understood_is_refused_by_name() -> None:
    with pytest.raises(simt.NotCheckable, match="texref"):
        parse(text("", declare=".global .texref picture;"))
    with pytest.raises(simt.NotCheckable, match="nowhere_at_all"):
        kernel("bra nowhere_at_all;")
    with pytest.raises(simt.NotCheckable, match=r"\[%d1\+%d2\]"):
        kernel("ld.global.u32 %r1, [%d1+%d2];")
    with pytest.raises(simt.NotCheckable, match="beyond the parameters"):
        kernel("ld.param.u32 %r1, [p0+4096];")
