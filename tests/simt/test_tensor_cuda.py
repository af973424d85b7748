"""nvcuda::wmma and inline mma.sync from CUDA C++, end to end; and what is wrong with them."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import assay.simt as simt

pytestmark = pytest.mark.full

SOURCE = Path(__file__).parent / "tensor" / "kernels.cu"
WARP = (32, 1, 1)


@lru_cache
def headers() -> Path:
    """A folder with mma.h and what that includes: a toolkit's, or the one that Triton brings."""
    from assay.ways.cuda import toolkit_headers

    triton = find_spec("triton")
    folders = [*toolkit_headers()]
    if triton and triton.origin:
        folders.append(Path(triton.origin).parent / "backends/nvidia/include")
    for folder in folders:
        if (folder / "crt" / "mma.h").exists():
            return folder
    pytest.skip("no crt/mma.h here: pip install nvidia-cuda-crt")


@lru_cache
def ptx() -> str:
    pytest.importorskip("cuda.bindings.nvrtc")
    from cuda.bindings import nvrtc

    _, program = nvrtc.nvrtcCreateProgram(SOURCE.read_bytes(), str(SOURCE).encode(), 0, [], [])
    options = ["--gpu-architecture=compute_80", "-std=c++17", "-lineinfo", f"-I{headers()}"]
    (failed,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    _, size = nvrtc.nvrtcGetProgramLogSize(program)
    log = b" " * size
    nvrtc.nvrtcGetProgramLog(program, log)
    assert failed == 0, log.decode()
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b" \0").decode()


def random(*shape: int, kind: type = np.float16) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(kind)


def run(name: str, grid: tuple[int, int, int], *args: object) -> simt.Launched:
    return simt.load(ptx(), entry=name).launch(grid=grid, block=WARP, args=[*args])


@pytest.mark.parametrize("name", ["gemm_f16", "gemm_inline"])
def test_products_of_f16(name: str) -> None:
    m, n, k = 32, 48, 64
    a, b, c = random(m, k), random(n, k), np.zeros((m, n), np.float32)
    wide = 16 if name == "gemm_f16" else 8
    launched = run(name, (n // wide, m // 16, 1), a, b, c, n, k)
    assert launched.faults == ()
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    weight = np.abs(a).astype(np.float64) @ np.abs(b.T).astype(np.float64)
    wanted = 2 * exact + 1 if name == "gemm_f16" else exact
    # Each of the 4 steps rounds once, by less than a last bit of what is summed by then.
    assert np.all(np.abs(c - wanted) <= 2 * 6 * 2.0**-23 * (weight + 1))


def test_tf32_rounds_where_it_is_told_to() -> None:
    a, b = random(16, 8, kind=np.float32), random(8, 16, kind=np.float32)
    c = random(16, 16, kind=np.float32)
    wanted = tf32(a) @ tf32(b) + c.T.astype(np.float64)
    assert run("tile_tf32", (1, 1, 1), a, b, c).faults == ()
    np.testing.assert_allclose(c.T, wanted, rtol=0, atol=1e-5)


def tf32(x: np.ndarray) -> np.ndarray:
    """To the nearest with 10 bits of mantissa, ties away from zero, as cvt.rna.tf32 does."""
    return ((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)


def test_integers_are_clamped() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-128, 128, shape, dtype=np.int8) for shape in ((32, 16), (8, 16)))
    c = rng.choice([2**31 - 1, -(2**31), 0], (32, 8)).astype(np.int32)
    wanted = np.clip(a.astype(np.int64) @ b.T.astype(np.int64) + c, -(2**31), 2**31 - 1)
    assert run("tile_s8", (1, 1, 1), a, b, c).faults == ()
    np.testing.assert_array_equal(c, wanted)


def test_products_of_f64() -> None:
    a, b, c = (random(*s, kind=np.float64) for s in ((8, 4), (8, 4), (8, 8)))
    wanted = a @ b.T + c
    assert run("tile_f64", (1, 1, 1), a, b, c).faults == ()
    np.testing.assert_allclose(c, wanted, rtol=0, atol=1e-14)


def test_products_of_bf16() -> None:
    bits = [random(*s, kind=np.float32).view(np.uint32) >> 16 for s in ((8, 16), (32, 16))]
    a, b = ((x << 16).view(np.float32).astype(np.float64) for x in bits)
    c = random(8, 32, kind=np.float32)
    wanted = a @ b.T + c
    assert run("tile_bf16", (1, 1, 1), *(x.astype(np.uint16) for x in bits), c).faults == ()
    np.testing.assert_allclose(c, wanted, rtol=0, atol=1e-5)


def test_products_in_f16() -> None:
    a, b, c = random(16, 16), random(16, 16), random(16, 16)
    wanted = a.astype(np.float64) @ b.T.astype(np.float64) + c
    assert run("tile_half", (1, 1, 1), a, b, c).faults == ()
    np.testing.assert_array_equal(c, wanted.astype(np.float16))


def test_every_lane_must_take_part() -> None:
    a, c = np.zeros(8, np.uint32), np.zeros((32, 4), np.float32)
    (fault,) = run("half_a_warp", (1, 1, 1), a, c).faults
    assert fault.instruction.startswith("mma.sync")
    assert Path(fault.file).name == SOURCE.name


def test_a_load_beyond_the_matrix_is_caught() -> None:
    a, b, c = (random(*s, kind=np.float64) for s in ((8, 4), (8, 4), (8, 8)))
    (fault,) = run("one_row_too_far", (1, 1, 1), a, b, c).faults
    assert (fault.word, fault.count) == ("out of bounds", 4)
    assert fault.instruction.startswith("wmma.load.a")
