"""Where lanes meet again, and how calls become one body."""

from __future__ import annotations

import numpy as np
import pytest
from common import HEAD, kernel, run, text, words, zeros
from hypothesis import given, settings
from hypothesis import strategies as st

import assay.simt as simt
from assay.simt.flow import flow_of
from assay.simt.inline import flatten
from assay.simt.parse import parse
from assay.simt.ptx import Function, Instruction, Label

Edges = list[tuple[int, int | None]]
"""Of each block: where its guarded branch goes, and its unguarded one (None: it falls through)."""


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    count = draw(st.integers(1, 9))
    block = st.integers(0, count - 1)
    return [(draw(block), draw(st.none() | block)) for _ in range(count)]


def function_of(edges: Edges) -> Function:
    body: list[Instruction | Label] = []
    for index, (to, last) in enumerate(edges):
        body += [Label(f"L{index}"), Instruction("bra", (f"L{to}",), guard="%p")]
        if last is not None:
            body.append(Instruction("bra", (f"L{last}",)))
    return Function("k", True, (), body=[*body, Instruction("ret", ())])


def post_dominators(successors: list[list[int]], leave: int) -> list[set[int]]:
    """Of each node: those without which the exit can't be reached. By leaving each out in turn."""

    def reaches(start: int, without: int) -> bool:
        seen, stack = {start}, [start]
        while stack:
            for to in successors[stack.pop()]:
                if to != without and to not in seen:
                    seen.add(to)
                    stack.append(to)
        return leave in seen

    nodes = range(leave + 1)
    return [{d for d in nodes if d == n or (d != n and not reaches(n, d))} for n in nodes]


@settings(max_examples=200, deadline=None)
@given(graphs())
def test_depths_against_leaving_each_block_out(edges: Edges) -> None:
    flow = flow_of(function_of(edges))
    successors = [list(block.successors) for block in flow.blocks] + [[]]

    def ends(start: int) -> bool:
        seen, stack = {start}, [start]
        while stack:
            stack += [to for to in successors[stack.pop()] if not (to in seen or seen.add(to))]
        return flow.exit in seen

    if not all(ends(block.index) for block in flow.blocks):
        return  # an endless loop has no post-dominators; see below
    dominators = post_dominators(successors, flow.exit)
    for block in flow.blocks:
        assert block.depth == len(dominators[block.index]) - 1


@settings(max_examples=100, deadline=None)
@given(graphs())
def test_every_graph_has_depths(edges: Edges) -> None:
    assert all(block.depth >= 1 for block in flow_of(function_of(edges)).blocks)


def test_a_large_graph_is_quick() -> None:
    edges: Edges = [((7 * n) % 3000, None) for n in range(3000)]
    assert len(flow_of(function_of(edges)).blocks) >= 3000


CALLEES = """
.func (.param .b32 r) twice(.param .b32 x)
{ .reg .b32 %r<4>; ld.param.b32 %r1, [x]; add.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }
.func (.param .b32 r) early(.param .align 8 .b8 pair[16])
{ .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p<2>;
ld.param.u32 %r1, [pair]; ld.param.u64 %d1, [pair+8]; cvt.u32.u64 %r2, %d1;
setp.lt.u32 %p1, %r1, 10; @%p1 st.param.b32 [r], 7; @%p1 ret;
{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call (b), twice, (a); \
ld.param.b32 %r3, [b]; }
add.u32 %r3, %r3, %r1; st.param.b32 [r], %r3; ret; }
.func again(.param .b32 x)
{ .reg .b32 %r<2>; ld.param.b32 %r1, [x]; { .param .b32 a; st.param.b32 [a], %r1; \
call again, (a); } ret; }
.func pick(.param .b64 at)
{ .reg .b64 %d<2>; .reg .b32 %r<3>; .local .align 4 .b8 own[8];
ld.param.b64 %d1, [at]; mov.b32 %r1, 3; st.local.u32 [own+4], %r1; ld.local.u32 %r2, [own+4];
st.global.u32 [%d1], %r2; ret; }
"""


def test_calls_are_inlined_with_structs_and_early_returns() -> None:
    out = zeros(32)
    body = """{ .param .align 8 .b8 s[16]; .param .b32 v;
st.param.u32 [s], %t; cvt.u64.u32 %d1, %t; st.param.u64 [s+8], %d1;
call.uni (v), early, (s); ld.param.b32 %r1, [v]; }
st.global.u32 [%q0], %r1;"""
    assert run(body, out, declare=CALLEES).faults == ()
    lane = np.arange(32)
    np.testing.assert_array_equal(out, np.where(lane < 10, 7, 3 * lane))


def test_a_guarded_call_is_of_those_lanes_alone() -> None:
    out = zeros(32)
    body = """setp.lt.u32 %p1, %t, 5;
{ .param .b64 a; st.param.b64 [a], %q0; @!%p1 call pick, (a); }"""
    assert run(body, out, declare=CALLEES).faults == ()
    np.testing.assert_array_equal(out, np.where(np.arange(32) < 5, 0, 3))


def test_calls_that_are_refused() -> None:
    with pytest.raises(simt.NotCheckable, match="recursive call of again"):
        kernel("{ .param .b32 a; st.param.b32 [a], 1; call again, (a); }", 1, CALLEES)
    with pytest.raises(simt.NotCheckable, match="call malloc"):
        kernel(
            "{ .param .b64 a; .param .b64 b; st.param.b64 [a], 8; call (b), malloc, (a); }",
            1,
            ".extern .func (.param .b64 r) malloc(.param .b64 n);",
        )
    with pytest.raises(simt.NotCheckable, match="other arguments"):
        kernel("{ .param .b32 a; call twice, (a); }", 1, CALLEES)


def test_a_kernel_need_not_end_with_a_return() -> None:
    source = (
        HEAD
        + """.visible .entry k(.param .u64 p0)
{ .reg .b64 %d<2>; .reg .b32 %r<3>; .reg .pred %p; ld.param.u64 %d1, [p0]; mov.b32 %r1, 0;
L: add.u32 %r1, %r1, 1; mov.u32 %r2, %tid.x; red.global.add.u32 [%d1], 1;
setp.lt.u32 %p, %r1, %r2; @%p bra L; }"""
    )
    function = flatten(parse(source), "k")
    assert isinstance(function.body[-1], Instruction)
    assert function.body[-1].form == "ret"
    out = zeros(1)
    assert simt.load(source).launch((1,), (4,), [out]).faults == ()
    assert out[0] == 1 + 1 + 2 + 3


def test_a_guarded_barrier_and_a_guarded_shuffle_are_of_those_lanes() -> None:
    """A warp none of whose lanes has the guard does not come to the barrier."""
    out = zeros(64)
    body = """setp.lt.u32 %p1, %t, 32; mov.b32 %r1, %t;
@%p1 bar.sync 1, 32;
@%p1 shfl.sync.bfly.b32 %r1, %t, 1, 31, -1;
st.global.u32 [%q0], %r1;"""
    launched = run(body, out, block=(64,))
    assert words(launched) == set()
    lane = np.arange(64)
    np.testing.assert_array_equal(out, np.where(lane < 32, lane ^ 1, lane))


def test_two_entries_of_one_text() -> None:
    source = text("st.global.u32 [%q0], 1;", name="one") + text(
        "st.global.u32 [%q0], 2;", name="two"
    ).removeprefix(HEAD)
    with pytest.raises(Exception, match="one, two"):
        simt.load(source)
    out = zeros(32)
    simt.load(source, "two").launch((1,), (32,), [out])
    assert set(out) == {2}
