"""Source as text: a launcher's `source=` with line breaks in it, and `assay.load_inline`."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import assay
from assay import cache
from assay.types import Row

Judge = Callable[..., list[Row]]
EXAMPLE = Path(__file__).parents[1] / "examples" / "hello_extension.py"

OP = '''
import assay

op = assay.Op(
    "double",
    lambda x: 2 * x,
    lambda make, n: (make.normal(n),),
    cases=assay.grid(n=[1000]),
)

CPP = """
#include <cstdint>
#include "twice.h"
extern "C" void twice(float* y, const float* x, int64_t n) {
    for (int64_t i = 0; i < n - LEFT; i++) y[i] = FACTOR * x[i];
}
"""

CUDA = """
extern "C" __global__ void twice(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
"""


@op.launcher("cpp", source=CPP)
def by_cpp(k, y, x):
    k.twice(y, x, x.numel())


@op.launcher("cuda", source=CUDA)
def by_cuda(k, y, x):
    k["twice"](grid=4, block=256)(y, x, x.numel())
'''


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that does not exist yet."""
    folder = tmp_path / "none" / "yet"
    monkeypatch.setenv("ASSAY_CACHE", str(folder))
    return folder


def test_a_text_becomes_a_checked_kernel(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "twice.h").write_text("#define FACTOR 2\n#define LEFT 0\n")
    rows = judge(OP, variants=("cpp", "cuda"))
    words = {row.variant: (row.word, row.reason) for row in rows}
    assert words["cpp"][0] == "right"
    assert words["cuda"][0] == "right"
    cuda = next(row for row in rows if row.way == "cuda")
    assert cuda.counters is not None
    assert cuda.counters.kernels[0].registers


def test_a_wrong_text_is_named_and_its_header_is_part_of_the_key(
    judge: Judge, tmp_path: Path
) -> None:
    header = tmp_path / "twice.h"
    header.write_text("#define FACTOR 2\n#define LEFT 3\n")
    (row,) = judge(OP, variants=("cpp",))
    assert (row.word, row.reason) == (
        "not written",
        "3 of 1,000 elements of output 0, first at [997]",
    )
    header.write_text("#define FACTOR 2\n#define LEFT 0\n")
    (row,) = judge(OP, variants=("cpp",))
    assert row.word == "right"


def test_a_text_is_kept_by_its_content(own_cache: Path) -> None:
    def made(text: str, name: str) -> Path | None:
        op = assay.Op("twice", lambda x: 2 * x, lambda make, n: (), cases=[{"n": 1}])
        op.launcher(name, source=text)(lambda k, y, x: None)
        return op.variants[-1].source

    first = made("// one\n", "cuda/a")
    assert first is not None
    assert first.parent == own_cache / "sources"
    assert first.read_text() == "// one\n"
    assert (first.name[:5], first.suffix) == ("cuda-", ".cu")
    assert made("// one\n", "cuda/b") == first
    other = made("// two\n", "extension")
    assert other is not None
    assert other.suffix == ".cpp"
    assert len(list(first.parent.iterdir())) == 2


@pytest.mark.gallery
def test_the_example_says_hello_and_its_build_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = runpy.run_path(str(EXAMPLE), run_name="read")["SOURCE"]
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, cwd=tmp_path, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["Hello World!", "Hello kernel! Hello kernel!"]
    assert "-std=c++20" in done.stdout  # verbose: the compiler's command
    before = [e.key for e in cache.entries() if e.what == "inline hello_world greet"]
    assert len(before) == 1

    module = assay.load_inline(source, ["hello_world", "greet"])
    assert module.greet("you", 1) == "Hello you!"
    assert assay.load_inline(source, ["hello_world", "greet"]).hello_world() == "Hello World!"
    assert [e.key for e in cache.entries() if e.what.startswith("inline")] == before
    assert capfd.readouterr().out == ""

    # An edited text is another build: this one's first error is on its second line.
    edited = source + '#include "no_such_header.h"\n'
    with pytest.raises(assay.AssayError, match=r"did not build: .*cpp:11:.* no_such_header\.h"):
        assay.load_inline(edited, ["hello_world", "greet"])
    assert [e.key for e in cache.entries() if e.what.startswith("inline")] == before


@pytest.mark.parametrize("functions", [[], "hello world", ["a", "b()"]])
def test_load_inline_wants_names(functions: object) -> None:
    with pytest.raises(assay.AssayError, match="give the names of functions"):
        assay.load_inline("// nothing\n", functions)


def test_load_inline_without_a_compiler_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(assay.AssayError, match=r"no-such-compiler is not on PATH; apt install"):
        assay.load_inline("void f() {}\n", "f")


def test_public_names_import_nothing_heavy() -> None:
    code = (
        "import sys, assay; assay.grid; print('torch' in sys.modules, callable(assay.load_inline))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.stdout.split() == ["False", "True"], done.stderr
