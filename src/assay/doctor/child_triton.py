"""Compiles the smallest Triton kernel and prints one line of JSON. Runs only as a child.

A file of its own, because Triton reads a kernel's source from the file it stands in.
argv: the folder that holds triton; "gpu" to build what a launch needs too (C compiler, Python.h,
libcuda), else "cpu".
"""

import json
import sys

if sys.argv[1] not in sys.path:
    sys.path.append(sys.argv[1])

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def nothing(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i)


def main() -> None:
    source = ASTSource(nothing, {"x": "*i32", "BLOCK": "constexpr"}, {"BLOCK": 32})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    lines = compiled.asm["ptx"].splitlines()
    if sys.argv[2] == "gpu":
        from triton.backends.nvidia.driver import CudaUtils

        CudaUtils()
    version = next(line.split()[1] for line in lines if line.startswith(".version"))
    print(json.dumps({"ptx": version, "cubin_bytes": len(compiled.asm["cubin"])}))


if __name__ == "__main__":
    main()
