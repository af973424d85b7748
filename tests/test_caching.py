"""`assay cache MATCH --log`: all that is known of a build; and where others keep theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay import cache
from assay.commands import caching

MAIN = """#include <torch/csrc/utils/pybind.h>
int twice(int n) { return 2 * n; }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("twice", &twice);
}
"""


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A cache of two builds, as their ways leave them: name -> key."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))

    def extension(folder: Path) -> str:
        (folder / "main.cpp").write_text(MAIN)
        (folder / "build.ninja").write_text("rule compile\n")
        return "[1/2] c++ -O3 -c main.cpp\n[2/2] c++ main.o -shared"

    def cuda(folder: Path) -> str:
        (folder / "kernel.ptx").write_text("x" * 2000)
        return "nvrtc --gpu-architecture=sm_90 twice.cu\nptxas info    : Used 9 registers"

    parts = {
        "way": "extension",
        "flags": ["-O3", "-std=c++20"],
        "torch": "2.13.0",
        "compiler": "g++ 12.2.0 on model name : Some CPU flags : sse avx",
        "sources": {"/there/twice.cpp": "0123"},
        "arch": "",
    }
    made = {}
    _, built = cache.build("double extension", parts, extension)
    made["extension"] = built.key
    parts = {"way": "cuda", "flags": ["-lineinfo"], "arch": "sm_90", "nvrtc": "13.5"}
    _, built = cache.build("double cuda/naive", parts, cuda)
    made["cuda"] = built.key
    return made


def shown(capsys: pytest.CaptureFixture[str], match: str, *, log: bool = True) -> list[str]:
    caching.show(match, clear=False, log=log)
    return capsys.readouterr().out.splitlines()


def test_the_log_tells_how_a_build_was_made(
    builds: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, "extension")
    assert lines[0] == f"double extension  {builds['extension']}"
    assert lines[1].startswith("  built in ")
    assert "  flags: -O3 -std=c++20" in lines
    assert "  compiler: g++ 12.2.0" in lines
    assert "  torch: 2.13.0" in lines
    assert "  source: /there/twice.cpp" in lines
    assert not any(line.startswith("  arch") for line in lines), "it has none"
    assert f"    main.cpp  {len(MAIN)} B" in lines
    at = lines.index("  binding:")
    assert lines[at + 1 : at + 4] == [
        "    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {",
        '      m.def("twice", &twice);',
        "    }",
    ]
    assert lines[at + 4 : at + 6] == ["  log:", "    [1/2] c++ -O3 -c main.cpp"]
    assert not any("cuda/naive" in line for line in lines)


def test_a_build_is_found_by_its_key_too_and_nvrtc_needs_no_binding(
    builds: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, builds["cuda"][:8])
    assert lines[0] == f"double cuda/naive  {builds['cuda']}"
    assert "  arch: sm_90" in lines
    assert "    kernel.ptx  2 kB" in lines
    assert "  binding: none; its kernels are launched by name" in lines
    assert "    ptxas info    : Used 9 registers" in lines


def test_the_table_stays_short(builds: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "", log=False)
    named = sorted(line.split()[:2] for line in lines[1:3])
    assert named == [["double", "cuda/naive"], ["double", "extension"]]
    assert not any("ptxas" in line for line in lines)


def test_where_triton_and_inductor_keep_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "none"))
    lines = shown(capsys, "", log=False)
    assert lines[-2:] == [
        f"Triton keeps its own in {tmp_path}",
        f"Inductor keeps its own in {tmp_path / 'none'} (nothing there)",
    ]


@pytest.mark.full
@pytest.mark.parametrize("setting", [{}, {"TRITON_HOME": "/some/home"}])
def test_the_places_are_those_that_they_use(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, str]
) -> None:
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    code = (
        "import sys\n"
        "from assay.commands import caching\n"
        "mine = caching.others()\n"
        "assert 'triton' not in sys.modules and 'torch' not in sys.modules\n"
        "import triton.knobs\n"
        "from torch._inductor.runtime.cache_dir_utils import default_cache_dir\n"
        "assert str(mine['Triton']) == triton.knobs.cache.dir, triton.knobs.cache.dir\n"
        "assert str(mine['Inductor']) == default_cache_dir(), default_cache_dir()\n"
    )
    pytest.importorskip("triton")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
