"""Triton without a GPU: an unmodified `kernel[grid](cpu_tensors)` compiled to PTX and handed on.

    with shim(run) as launches:
        softmax[(256,)](x, y, 1000, BLOCK=1024)

Triton asks its active *driver* for the target, loads kernels with it and launches through it, and
asks a *backend* for the stages from source to machine code. Both are replaced here for a while: the
driver by one that hands PTX to `run`, the backend by one that stops at PTX (no ptxas, which would
take a third of the compile time) and that keeps apart from real compilations in Triton's cache.

What of Triton is used beyond its documented functions, tried on 3.6.0 and 3.9.0:
`triton.backends.backends`, `triton.runtime.driver` (set_active, _active), the driver's protocol
(launcher_cls, utils.load_binary), `Autotuner.run` with its attributes cache, cache_results and
do_bench.
"""

from __future__ import annotations

import re
import struct
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import triton
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import TensorWrapper

from ... import hardware
from ...errors import NotRun
from . import (
    DEFAULT_ARCH,
    Compiled,
    Run,
    bfloat16,
    capability,
    parameters,
    whole,
)
from .registers import Registers

MOST_THREADS = 1024
FLOATS: dict[str, Callable[[float], Any]] = {
    "fp16": lambda value: struct.pack("<e", value),
    "bf16": bfloat16,
    "fp32": float,
    "f32": float,
    "fp64": float,
}
"""A number as an argument, by Triton's name of its type; 16-bit types are passed as bytes."""


@dataclass(frozen=True)
class Tuned:
    """What @triton.autotune decided here, where nothing is timed.

    chosen: the first configuration that could be launched. ran: those that were run, in order.
    refused: those that were not, and why.
    """

    kernel: str
    chosen: str
    ran: tuple[str, ...]
    refused: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        tried = len(self.ran) + len(self.refused)
        why = f"the first of {len(self.ran)} that ran, of {tried} tried; nothing is timed here"
        return f"{self.kernel}: {self.chosen} ({why})"


@dataclass
class Shim:
    """What is in force between install and undo: the function that runs, and what was tuned."""

    run: Run
    arch: str
    tune: str = "every"
    tuned: list[Tuned] = field(default_factory=list)
    undo: Callable[[], None] = lambda: None


@contextmanager
def shim(run: Run, arch: str = DEFAULT_ARCH, tune: str = "every") -> Iterator[Shim]:
    """Within it, launches of Triton kernels on CPU tensors are compiled for arch and go to run.

    tune: "every" runs each configuration of an autotuned kernel once, "first" stops at the first
    that can be launched. Raises NotRun if Triton's interpreter is switched on.
    """
    made = install(run, arch, tune)
    try:
        yield made
    finally:
        made.undo()


def install(run: Run, arch: str = DEFAULT_ARCH, tune: str = "every") -> Shim:
    """The same for the rest of the process, or until its `undo()`; undone in reverse order."""
    if triton.knobs.runtime.interpret:
        raise NotRun(
            "TRITON_INTERPRET is set, so @triton.jit makes nothing that can be compiled: unset it"
        )
    if tune not in ("every", "first"):
        raise ValueError(f"tune is {tune!r}; it can be 'every' or 'first'")
    made = Shim(run, arch, tune)
    active, backend, autotuned = triton.runtime.driver._active, backends["nvidia"], Autotuner.run

    def undo() -> None:
        triton.runtime.driver._active = active
        backends["nvidia"], Autotuner.run = backend, autotuned

    triton.runtime.driver.set_active(_Driver(made))
    backends["nvidia"] = replace(backend, compiler=_ending_in_ptx(backend.compiler))
    Autotuner.run = _tuning(made, autotuned)
    made.undo = undo
    return made


def _ending_in_ptx(backend: Any) -> Any:
    """The CUDA backend without its last stage: what it calls cubin is the PTX."""

    class EndsInPtx(backend):
        def parse_options(self, options: Any) -> Any:
            if options.get("num_ctas", 1) != 1:
                raise NotRun(f"num_ctas={options['num_ctas']}: clusters of blocks are not run here")
            return super().parse_options(options)

        def add_stages(self, stages: Any, options: Any, *rest: Any) -> None:
            super().add_stages(stages, options, *rest)
            stages["cubin"] = lambda ptx, metadata: ptx.encode()

        def hash(self) -> str:
            return f"ends-in-ptx-{super().hash()}"

    return EndsInPtx


class _Driver:
    """What Triton asks of a device, answered for one that is not there."""

    def __init__(self, made: Shim) -> None:
        self.made, self.number = made, capability(made.arch)
        self.utils, self.launcher_cls = _Utils(self.number, made.arch), _Launcher

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.number, 32)

    def get_current_device(self) -> int:
        """Of no card: Triton keeps its compiled kernels by this number."""
        return -self.number

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def set_current_device(self, device: Any) -> None:
        pass

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        return divmod(self.number, 10)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> _Device:
        return _Device()

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return _once

    def get_empty_cache_for_benchmark(self) -> Any:
        raise NotRun("nothing is timed without a GPU, so there is no cache to clear")

    def clear_cache(self, cache: Any) -> None:
        self.get_empty_cache_for_benchmark()

    def is_active(self) -> bool:
        return True


class _Device:
    """In place of torch.cuda: it waits for nothing, and times nothing."""

    def synchronize(self, device: Any = None) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise NotRun(f"{name} of a CUDA device: kernels run on the CPU here, and nothing is timed")


class _Utils:
    """The part of the driver that loads kernels and knows the card."""

    def __init__(self, number: int, arch: str) -> None:
        self.number, self.arch = number, arch

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        """Sizes of the card; clocks in kHz and the memory bus in bits are those of an A100."""
        return {
            "max_shared_mem": hardware.SHARED[self.number],
            "max_num_regs": 65536,
            "multiprocessor_count": hardware.MULTIPROCESSORS[self.number],
            "warpSize": 32,
            "sm_clock_rate": 1_410_000,
            "mem_clock_rate": 1_593_000,
            "mem_bus_width": 5120,
        }

    def load_binary(self, name: str, ptx: bytes, shared: int, device: Any) -> tuple[Any, ...]:
        """(module, function, registers, spills, most threads of a block).

        module is None, so that Triton never gives it to another driver to unload.
        """
        compiled = Compiled(name, ptx.decode(), self.arch, "triton")
        return None, compiled, Registers(compiled.ptx, self.arch), 0, MOST_THREADS

    def unload_module(self, module: Any) -> None:
        pass

    def set_printf_fifo_size(self, nbytes: int) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise NotRun(f"{name} of Triton's CUDA driver needs a GPU")


class _Launcher:
    """One compiled kernel's way from Triton's arguments to those of its PTX entry."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.metadata = metadata
        self.signature = tuple(source.signature.values())
        function = getattr(source, "fn", None)
        self.file, self.line = _begins(function)
        names = getattr(function, "arg_names", ())
        constants = getattr(source, "constants", {})
        constant = [(names[key[0]], value) for key, value in constants.items() if len(key) == 1]
        given = {type_: value for type_, value in constant if value is not None}
        warps = {"num_warps": metadata.num_warps, "num_stages": metadata.num_stages}
        self.settings = tuple((given | warps).items())
        self.compiled: Compiled | None = None
        self.types: list[tuple[str, int]] = []

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: Any,
        loaded: Compiled,
        packed: Any,
        launch_metadata: Any,
        enter: Any,
        leave: Any,
        *values: Any,
    ) -> None:
        driver = triton.runtime.driver.active
        if not isinstance(driver, _Driver):
            raise NotRun(f"{loaded.name} was compiled to be checked on a CPU: launch it there")
        if self.compiled is None:
            self.types = parameters(loaded.ptx, loaded.name)
            self.compiled = replace(
                loaded,
                ptx=_in_file(loaded.ptx, self.file),
                settings=self.settings,
                cooperative=bool(self.metadata.launch_cooperative_grid),
                file=self.file,
                line=self.line,
            )
        if not x * y * z:  # Triton launches nothing for an empty grid
            return
        args = self._arguments(values, (x, y, z))
        if enter is not None:
            enter(launch_metadata)
        block = (32 * self.metadata.num_warps, 1, 1)
        driver.made.run(self.compiled, (x, y, z), block, args, self.metadata.shared)
        if leave is not None:
            leave(launch_metadata)

    def _arguments(self, values: Any, grid: tuple[int, int, int]) -> list[Any]:
        args = [a for type_, value in zip(self.signature, values) for a in self._flat(type_, value)]
        scratch = (self.metadata.global_scratch_size, self.metadata.profile_scratch_size)
        args += [_scratch(nbytes, grid) for nbytes in scratch]
        if len(args) != len(self.types):
            wanted = ", ".join(type_ for type_, _ in self.types)
            raise NotRun(
                f"{len(args)} arguments for an entry that takes {len(self.types)}: {wanted}"
            )
        return [
            whole(arg, nbytes) if type(arg) is int else arg
            for arg, (_, nbytes) in zip(args, self.types)
        ]

    def _flat(self, type_: Any, value: Any) -> Iterator[Any]:
        """The arguments that one argument of a Triton kernel becomes."""
        if isinstance(type_, tuple):
            for inner, part in zip(type_, value):
                yield from self._flat(inner, part)
        elif type_ == "constexpr":
            return
        elif type_.startswith("*"):
            yield _memory(value, type_)
        elif type_.startswith("tensordesc"):
            yield from self._descriptor(value)
        elif type_ in FLOATS:
            yield FLOATS[type_](value)
        elif re.fullmatch(r"[iu]\d+", type_):
            yield int(value) & 1 if type_[1:] == "1" else int(value)
        else:
            raise NotRun(f"an argument of Triton's type {type_} is not passed here")

    def _descriptor(self, value: Any) -> list[Any]:
        """A host-side tensor descriptor where the target has no TMA: pointer, shape, strides.

        Triton's own launcher passes them twice: before and after its lowering of descriptors.
        """
        if getattr(self.metadata, "tensordesc_meta", None):
            raise NotRun(
                f"a tensor descriptor on {self.metadata.target.arch} is a TMA tensor map, "
                "which is not run here; check the kernel as sm_80"
            )
        sizes = [int(n) for n in (*value.shape, *value.strides)]
        options = [int(value.padding == "nan")]
        if hasattr(value, "round_f32_to_tf32"):  # not in 3.6.0
            options.append(int(value.round_f32_to_tf32))
        return [_memory(value.base, "*"), *sizes, *options, *sizes]


def _in_file(ptx: str, file: str) -> str:
    """The PTX with the kernel's own file named as it is now.

    Triton keeps compiled kernels by their text and line, so that the PTX may name another file
    with the same kernel. The first `.loc` of an entry is the line of its `def`.
    """
    first = re.search(r"^\s*\.loc\s+(\d+)\s", ptx, re.MULTILINE)
    if not file or not first:
        return ptx
    named = rf'^(\s*\.file\s+{first.group(1)}\s+)"[^"]*"'
    return re.sub(named, lambda m: f'{m.group(1)}"{file}"', ptx, count=1, flags=re.MULTILINE)


def _begins(function: Any) -> tuple[str, int]:
    code = getattr(getattr(function, "fn", None), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code else ("", 0)


def _memory(value: Any, type_: str) -> Any:
    """The tensor behind a pointer argument."""
    if isinstance(value, TensorWrapper):
        value = value.base
    if value is None or not hasattr(value, "data_ptr"):
        raise NotRun(
            f"{value!r} for a {type_}: a pointer is passed as a tensor, so that it has ends"
        )
    if not hasattr(value, "untyped_storage"):
        raise NotRun(
            f"a {type(value).__name__} for a {type_}: how far its memory goes is not known, "
            "pass the tensor"
        )
    if value.device.type != "cpu":
        raise NotRun(f"a tensor on {value.device} for a {type_}: here all tensors are on the CPU")
    return value.detach()


def _scratch(nbytes: int, grid: tuple[int, int, int]) -> Any:
    """Memory that Triton's runtime gives a kernel, a piece for each block, or None."""
    if not nbytes:
        return None
    import torch

    x, y, z = grid
    return torch.empty(nbytes * x * y * z, dtype=torch.uint8)


def _once(call: Callable[[], Any], quantiles: Any = None, **_: Any) -> Any:
    """In place of a benchmark: runs it, and calls every time equal."""
    call()
    return [1.0] * len(quantiles) if quantiles else 1.0


def _tuning(made: Shim, original: Callable[..., Any]) -> Callable[..., Any]:
    """`Autotuner.run` that runs instead of timing, and keeps its choice away from a GPU's."""
    caches: Any = weakref.WeakKeyDictionary()

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        configs, cache = caches.get(self, (None, None))
        if configs != list(map(id, self.configs)):
            configs, cache = list(map(id, self.configs)), {}
            caches[self] = configs, cache
        known, outcome = len(cache), []

        def bench(call: Callable[[], Any], quantiles: Any = None, **_: Any) -> Any:
            if made.tune == "first" and "" in outcome:
                outcome.append("not tried: the first that can be launched was found")
                return [float("inf")] * 3
            outcome.append("out of resources, or not compiled")  # what the tuner itself catches
            try:
                call()
            except NotRun as error:
                outcome[-1] = str(error)
                return [float("inf")] * 3
            outcome[-1] = ""
            return [1.0] * 3

        kept = dict(vars(self))
        vars(self).update(cache=cache, cache_results=False, do_bench=bench)
        try:
            return original(self, *args, **kwargs)
        finally:
            if len(cache) > known and outcome:
                made.tuned.append(_decided(self, outcome))
            for name in ("cache", "cache_results", "do_bench"):
                vars(self).pop(name)
                if name in kept:
                    vars(self)[name] = kept[name]

    return run


def _decided(tuner: Any, outcome: list[str]) -> Tuned:
    tried = list(zip(map(str, tuner.configs_timings), outcome))
    ran = tuple(config for config, why in tried if not why)
    refused = tuple((config, why) for config, why in tried if why)
    return Tuned(tuner.base_fn.__name__, str(tuner.best_config), ran, refused)
