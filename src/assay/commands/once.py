"""`python -m assay.commands.once TARGET -k VARIANT`: runs a variant once, in this very process.

For debuggers and sanitizers: no child, no guards around tensors, one launch of what was asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from .. import ways
from ..cases import parse_values
from ..errors import AssayError, BuildError, LaunchError
from ..op import way_of
from ..target import parse


def main(arguments: list[str] | None = None) -> int:
    """Runs it and prints the first values of each output; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m assay.commands.once", description=__doc__)
    parser.add_argument("target", metavar="TARGET")
    parser.add_argument("-k", dest="variant", required=True, help="way/name, and knobs if any")
    parser.add_argument("--case", default="", help="'n=1000 dtype=float32'; default: the smallest")
    parser.add_argument("--arch", default="", help="compile for this: sm_90")
    parser.add_argument("--device-debug", action="store_true", help="device code for cuda-gdb (-G)")
    parser.add_argument(
        "--profiled",
        action="store_true",
        help="on a GPU: once to warm up, then once between cudaProfilerStart and cudaProfilerStop",
    )
    given = parser.parse_args(arguments)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        _run(given)
    except (AssayError, BuildError, LaunchError) as error:
        print(f"assay: {error}", file=sys.stderr)
        return 2
    return 0


def _run(given: Any) -> None:
    way = way_of(given.variant)
    device, found = _here(way)
    os.environ.update(found.env)  # before the user's file imports the framework
    if not found.judge:
        raise AssayError(f"{given.variant}: it can't run here: {found.reason}")
    from .. import closeup, single

    case = parse_values(given.case) if given.case else {}
    one = single.pick(parse(given.target), given.variant, case)
    single.unlimited(way, found.judge)
    placed = single.place(one, found.device)
    flags = ("-G",) if given.device_debug and way == "cuda" else ()
    watch = ways.watching(found.judge)
    kernel = single.built(placed, device, given.arch or _arch(device), flags, watch)
    print(f"{one.op.name} {one.label}  {one.case.label}  on {found.judge}", flush=True)
    made = _profiled(placed, kernel, device) if given.profiled else single.run(placed, kernel)
    for index, value in enumerate(made):
        shown = closeup.value(f"output {index}", value)
        print(f"{shown['name']}  {shown['kind']}  {' '.join(shown['values'])}")
    for fault in watch.faults if watch else ():
        print(fault)


def _profiled(placed: Any, kernel: Any, device: str) -> list[Any]:
    """The outputs of a second call, which alone a profiler below us records."""
    if not device.startswith("cuda"):
        raise AssayError("--profiled: there is no GPU, so a profiler has nothing to record")
    import torch

    from .. import single

    single.run(placed, kernel)
    torch.cuda.profiler.start()
    try:
        with torch.cuda.nvtx.range("assay: one call"):
            return single.run(placed, kernel)
    finally:
        torch.cuda.profiler.stop()


def _here(way: str) -> tuple[str, ways.Here]:
    """The GPU, unless there is none or the interpreter or simulator was asked for by its switch."""
    import torch

    on_cpu = ways.stepped(way, "cpu")
    asked = bool(on_cpu.env) and all(os.environ.get(k) == v for k, v in on_cpu.env.items())
    if asked or not torch.cuda.is_available():
        return "cpu", on_cpu
    return "cuda:0", ways.here(way, "cuda:0")


def _arch(device: str) -> str:
    if not device.startswith("cuda"):
        return ways.DEFAULT_ARCH
    import torch

    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


if __name__ == "__main__":
    sys.exit(main())
