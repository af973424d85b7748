"""CUDA C++ and Triton to PTX, and PTX to the machine code of a card, with its listing."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "simt"))

from compiling import compiled  # noqa: E402

FOLDER = Path(tempfile.gettempdir()) / "simt_card"


@lru_cache
def tool(name: str) -> str:
    """A CUDA tool: of the toolkit, else the one that Triton brings."""
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if found is None:
        from importlib.util import find_spec

        spec = find_spec("triton")
        own = Path(spec.origin).parent / "backends/nvidia/bin" if spec and spec.origin else Path()
        found = shutil.which(name, path=str(own))
    if found is None:
        raise SystemExit(f"{name} is needed: it comes with the CUDA toolkit")
    return found


@lru_cache
def includes() -> tuple[str, ...]:
    """The toolkit's headers, for where the Python packages have none."""
    homes = (Path(tool("ptxas")).resolve().parents[1], Path("/usr/local/cuda"))
    folders = [home / "include" / part for home in homes for part in ("", "cccl")]
    return tuple(dict.fromkeys(f"-I{folder}" for folder in folders if folder.is_dir()))


def cuda(source: Path, kernels: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Kernels as C++ writes them -> (PTX for sm_80, entry)."""
    ptx, names = compiled(source, kernels, includes())
    return {kernel: (ptx, names[kernel]) for kernel in kernels}


def triton(kernel: Any, signature: dict[str, str], constants: dict[str, Any]) -> dict[str, Any]:
    """A @triton.jit kernel for sm_80: ptx, entry, shared (bytes), threads.

    signature: parameter -> type; "!" behind a type: a multiple of 16. constants: the constexpr
    parameters, and num_warps and num_stages.
    """
    import triton as package
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    options = {k: v for k, v in constants.items() if k in ("num_warps", "num_stages")}
    constants = {k: v for k, v in constants.items() if k not in options}
    types = {k: v.rstrip("!") for k, v in signature.items()}
    types |= dict.fromkeys(constants, "constexpr")
    names = list(kernel.arg_names)
    aligned = {
        (names.index(k),): [["tt.divisibility", 16]] for k, v in signature.items() if v[-1] == "!"
    }
    ordered = {name: types[name] for name in names}
    source = ASTSource(fn=kernel, signature=ordered, constexprs=constants, attrs=aligned)
    made = package.compile(source, target=GPUTarget("cuda", 80, 32), options=options)
    ptx = made.asm["ptx"]
    return {
        "ptx": ptx if isinstance(ptx, str) else ptx.decode(),
        "entry": made.metadata.name,
        "shared": made.metadata.shared,
        "threads": 32 * made.metadata.num_warps,
    }


@lru_cache
def cubin(ptx: str, arch: str) -> Path:
    """The machine code of all kernels of a PTX text."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{hashlib.sha256((arch + ptx).encode()).hexdigest()[:24]}.cubin"
    text = path.with_suffix(".ptx")
    text.write_text(ptx)
    command = [tool("ptxas"), f"-arch={arch}", "-lineinfo", str(text), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"ptxas: {done.stdout}{done.stderr}")
    return path


@lru_cache
def listing(path: Path) -> str:
    """SASS of all kernels of a cubin."""
    command = [tool("nvdisasm"), "-c", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def memory_instructions(path: Path, entry: str) -> dict[str, int]:
    """The memory instructions of a kernel's SASS, with how often each is written."""
    found: dict[str, int] = {}
    inside = False
    for line in listing(path).splitlines():
        section = re.match(r"\s*\.section\s+(\S+?),", line)
        if section:
            inside = section.group(1) == f".text.{entry}"
        named = re.search(r"\b((?:LD|ST|RED|ATOM|LDGSTS|REDUX|SUSTD?)[A-Z0-9_.]*)\b", line)
        if inside and named and "/*" in line:
            found[named.group(1)] = found.get(named.group(1), 0) + 1
    return dict(sorted(found.items()))


def packed(args: list[Any], parameters: tuple[tuple[str, str, int], ...]) -> list[Any]:
    """Arguments for `launch.py`, by the types of the PTX entry's parameters; missing: null."""
    made: list[Any] = []
    for position, (_, _, size) in enumerate(parameters):
        value = args[position] if position < len(args) else None
        if value is None:
            made.append(bytes(size))
        elif isinstance(value, np.ndarray):
            made.append(value)
        elif isinstance(value, float):
            made.append(np.array(value, {4: np.float32, 8: np.float64}[size]).tobytes())
        elif isinstance(value, bytes):
            made.append(value)
        else:
            made.append((int(value) % (1 << 8 * size)).to_bytes(size, "little"))
    return made
