"""Launching: arguments, limits, shapes of blocks, what is printed, asserts, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from common import HEAD, kernel, only, run, text, words, zeros

import assay.simt as simt
from assay.errors import LaunchError


def test_numbers_by_the_type_that_is_declared() -> None:
    kinds = ["u32", "s32", "u64", "f32", "f64", "u8", "b32"]
    declared = ", ".join(f".param .{kind} x{k}" for k, kind in enumerate(kinds))
    source = f"""{HEAD}.visible .entry k(.param .u64 out, {declared})
{{ .reg .b64 %d<9>; .reg .b32 %r<9>; .reg .f32 %f1; .reg .f64 %e1; ld.param.u64 %d1, [out];
ld.param.u32 %r1, [x0]; st.global.u32 [%d1], %r1; ld.param.u32 %r1, [x1]; \
st.global.u32 [%d1+4], %r1;
ld.param.u64 %d2, [x2]; st.global.u64 [%d1+8], %d2; ld.param.f32 %f1, [x3]; \
st.global.f32 [%d1+16], %f1;
ld.param.f64 %e1, [x4]; st.global.f64 [%d1+24], %e1; ld.param.u8 %r2, [x5]; \
st.global.u32 [%d1+20], %r2; ret; }}"""
    loaded = simt.load(source)
    out = np.zeros(32, np.uint8)
    loaded.launch((1,), (1,), [out, 7, -1, 2**63, 1e300, 0.1, True, 0])
    assert list(out[:8].view(np.int32)) == [7, -1]
    assert out[8:16].view(np.uint64)[0] == 2**63
    assert out[16:20].view(np.float32)[0] == np.inf
    assert out[20:24].view(np.uint32)[0] == 1
    assert out[24:].view(np.float64)[0] == 0.1
    for wrong in (
        [out, 1.5, 0, 0, 0, 0, 0, 0],
        [out, 2**32, 0, 0, 0, 0, 0, 0],
        [out],
        [out, "x", 0, 0, 0, 0, 0, 0],
        [out, out, 0, 0, 0, 0, 0, 0],
    ):
        with pytest.raises(LaunchError):
            loaded.launch((1,), (1,), wrong)


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((0,), (32,), 0),
        ((1,), (1025,), 0),
        ((1,), (32, 33), 0),
        ((1,), (1, 1, 65), 0),
        ((1, 70_000), (32,), 0),
        ((2**32 + 1,), (32,), 0),
        ((1,), (32,), 166_913),
        ((1,), (32,), -1),
        ((1, 1, 1, 1), (32,), 0),
    ],
)
def test_limits(grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> None:
    with pytest.raises(LaunchError):
        run("mov.u32 %r1, 0;", zeros(1), grid=grid, block=block, shared=shared)


def test_grids_beyond_what_can_be_run_here() -> None:
    with pytest.raises(simt.NotCheckable, match="blocks"):
        run("mov.u32 %r1, 0;", zeros(1), grid=(2**31 - 1,))
    with pytest.raises(simt.NotCheckable, match="blocks"):
        run("membar.gl;", zeros(1), grid=(2**20,))
    with pytest.raises(simt.NotCheckable, match="local memory"):
        run(".local .b8 big[1000000];\nst.local.u8 [big], %t;", zeros(1))


def test_the_block_that_a_kernel_was_compiled_for() -> None:
    source = text("st.global.u32 [%q0], 1;").replace("p0)\n{", "p0)\n.maxntid 64, 1, 1\n{")
    loaded = simt.load(source)
    assert loaded.launch((1,), (64,), [zeros(64)]).faults == ()
    with pytest.raises(LaunchError, match="at most 64"):
        loaded.launch((1,), (96,), [zeros(96)])


def test_blocks_of_three_dimensions() -> None:
    """1,000 threads: the last warp has 8 lanes."""
    out = zeros(10 * 10 * 10 * 8)
    body = """mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ctaid.x; \
mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z;
mad.lo.u32 %r6, %r2, 10, %r1; mad.lo.u32 %r6, %r6, 10, %t; mad.lo.u32 %r7, %r5, 2, %r4; \
mad.lo.u32 %r7, %r7, 2, %r3;
mad.lo.u32 %r8, %r7, 1000, %r6; mul.wide.u32 %d1, %r8, 4; add.s64 %d1, %a0, %d1; \
st.global.u32 [%d1], %r8;"""
    assert run(body, out, grid=(2, 2, 2), block=(10, 10, 10)).faults == ()
    np.testing.assert_array_equal(out, np.arange(8000))
    fault = only(run(body, zeros(7999), grid=(2, 2, 2), block=(10, 10, 10)))
    assert (fault.block, fault.thread) == ((1, 1, 1), (9, 9, 9))


def test_dynamic_shared_memory_at_the_limit() -> None:
    declare = ".extern .shared .align 128 .b8 dynamic[]; .shared .align 4 .b8 fixed[20];"
    body = (
        "st.shared.u8 [fixed], 1;\nsetp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [dynamic+1020], 7;"
    )
    assert run(body, zeros(1), declare=declare, shared=1024).faults == ()
    assert only(run(body, zeros(1), declare=declare, shared=1023)).line == 3
    assert run(body, zeros(1), declare=declare, shared=166_912 - 128).faults == ()


PRINTF = """.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 said[64] = {FORMAT};
.global .align 1 .b8 word[4] = {65, 66, 67, 68};
"""


def printed(form: str, stores: str = "", block: int = 1, grid: int = 1) -> str:
    declare = PRINTF.replace("FORMAT", ", ".join(str(byte) for byte in form.encode()))
    body = f""".local .align 8 .b8 pack[40];
{stores}
{{ .param .b64 f; .param .b64 a; .param .b32 r; mov.u64 %d1, said; st.param.b64 [f], %d1; \
mov.u64 %d2, pack;
cvta.local.u64 %d2, %d2; st.param.b64 [a], %d2; call (r), vprintf, (f, a); \
ld.param.b32 %r1, [r]; }}"""
    launched = run(body, zeros(1), declare=declare, block=(block,), grid=(grid,))
    assert launched.faults == ()
    return launched.printed


def packed(arguments: str) -> str:
    """Stores of `type value` pairs to the buffer of a printf, each at a multiple of its size."""
    words, stores, at = arguments.split(), "", 0
    for kind, value in zip(words[::2], words[1::2]):
        size = int(kind[1:]) // 8
        at = -(-at // size) * size
        register = {"f64": "%e9"}.get(kind, "%d9" if size == 8 else "%r9")
        stores += f"mov.{kind} {register}, {value}; st.local.{kind} [pack+{at}], {register}; "
        at += size
    return stores


@pytest.mark.parametrize(
    ("form", "arguments", "wanted"),
    [
        ("%d|%5u|%-5x|%c\n", "s32 -7 u32 7 u32 255 u32 65", "-7|    7|ff   |A\n"),
        ("%lld %zu %hhd", "s64 -5 u64 4294967297 u32 257", "-5 4294967297 1"),
        ("%.2f %5.1lf %g%%", "f64 1.5 f64 1.5 f64 1.5", "1.50   1.5 1.5%"),
        ("%*d|%.*f", "u32 4 u32 9 u32 1 f64 2.25", "   9|2.2"),
        ("%s.", "u64 word", "ABCD."),
        ("%s.", "u64 12345", "(null)."),
        ("%n %q %", "", "%n %q %"),
        ("%Lf %ls", "f64 0.5 u64 word", "0.500000 ABCD"),
    ],
)
def test_printing(form: str, arguments: str, wanted: str) -> None:
    assert printed(form, packed(arguments)) == wanted


def test_lanes_and_blocks_print_in_order() -> None:
    lines = printed("%d\n", "st.local.u32 [pack], %g;", block=40, grid=9).split()
    assert lines == [str(k) for k in range(360)]


def test_more_is_printed_than_there_is_room_for() -> None:
    out = printed("%200d\n", "st.local.u32 [pack], %g;", block=1024, grid=8)
    assert out.startswith(" " * 199 + "0\n")
    assert "\0" not in out


def test_trap_ends_the_launch() -> None:
    fault = only(
        run("setp.eq.u32 %p1, %g, 70;\n@%p1 trap;", zeros(1), grid=(20,), block=(32,), threads=2)
    )
    assert (fault.word, fault.line, fault.block, fault.thread) == ("trap", 2, (2, 0, 0), (6, 0, 0))


def test_the_first_of_many_faults_is_the_same_on_several_cores() -> None:
    for threads in (1, 2, 2, 2):
        fault = only(run("ld.global.u32 %r1, [%q0+4];", zeros(1), grid=(900,), threads=threads))
        assert (fault.block, fault.thread) == ((0, 0, 0), (0, 0, 0))


def test_loading_from_several_threads() -> None:
    source = text("st.global.u32 [%q0], 77;", name="t") + ".visible .entry u() { ret; }"
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda _: simt.load(source, "t"), range(8)))
    assert len({id(k.module) for k in loaded}) == 1
    outs = [zeros(320) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda at: at[0].launch((10,), (32,), [at[1]]), zip(loaded, outs)))
    assert all(d.faults == () for d in done)
    assert all(set(o) == {77} for o in outs)


def test_numbers_of_blocks_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 2^31 blocks in one process, as if nothing had happened."""
    from assay.simt.memory import Memory, _Pool

    memory, out = Memory(), zeros(512)
    write = kernel("st.global.u32 [%q0], %t; ld.global.u32 %r1, [%q0];")
    assert write.launch((16,), (32,), [out], memory=memory).faults == ()
    monkeypatch.setattr(_Pool, "blocks", (1 << 31) - 5)
    for _ in range(3):
        assert write.launch((16,), (32,), [out], memory=memory).faults == ()
    assert _Pool.blocks < 100


def test_denormals_and_nan_whatever_the_process_asked_for() -> None:
    import torch

    out = np.zeros(2, np.float32)
    body = (
        "mov.b32 %f1, 0x00000100; add.f32 %f2, %f1, %f1; st.global.f32 [%a0], %f2; "
        "mov.b32 %f3, 0x7fc00000; max.f32 %f4, %f3, %f1; st.global.f32 [%a0+4], %f4;"
    )
    torch.set_flush_denormal(True)
    try:
        run(body, out, block=(1,))
    finally:
        torch.set_flush_denormal(False)
    assert list(out.view(np.uint32)) == [0x200, 0x100]


def test_unknown_forms_are_refused_by_name() -> None:
    for line, form in (
        ("wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned"),
        ("add.q7.f32 %f1, %f1, %f1;", "add.q7.f32"),
        ("ld.global.v3.u32 {%r1, %r2, %r3}, [%a0];", "ld.global.v3.u32"),
        ("add.u32 %r1, %r2;", "add.u32 with 1 operands"),
        ("mov.u32 %r1, %nothing;", "operand %nothing"),
    ):
        with pytest.raises(simt.NotCheckable, match=rf"{form}.* at k.cu:2".replace("+", r"\+")):
            kernel(f"mov.u32 %r1, 0;\n{line}")


def test_dropping_each_barrier() -> None:
    declare = ".shared .align 4 .b8 room[256];"
    body = """shl.b32 %r1, %t, 2; mov.u32 %r2, room; add.u32 %r3, %r2, %r1; \
xor.b32 %r4, %r1, 128; add.u32 %r4, %r4, %r2;
st.shared.u32 [%r3], %t;
bar.sync 0;
ld.shared.u32 %r5, [%r4]; st.global.u32 [%q0], %r5;
bar.sync 0;"""
    source = text(body, declare=declare)
    found = simt.barriers(source)
    assert [str(b) for b in found] == ["bar.sync at k.cu:3", "bar.sync at k.cu:5"]
    without = [simt.load(source, drop=b.number).launch((1,), (64,), [zeros(64)]) for b in found]
    assert words(without[0])
    assert without[1].faults == ()
    assert simt.load(source).launch((1,), (64,), [zeros(64)]).faults == ()


def test_a_second_launch_in_the_same_memory_wants_no_more_of_it() -> None:
    memory, out = simt.Memory(), zeros(320)
    (kernel := simt.load(text("st.global.u32 [%q0], 77;"))).launch(
        (1,), (32,), [out], memory=memory
    )
    window, shift = memory.windows[0], kernel.code.granule.bit_length() - 1
    assert window.wants(1, shift) == 0
    assert window.wants(2, shift) > 0
