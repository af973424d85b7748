"""What torch.compile's Inductor makes of a function for a GPU, run kernel by kernel without one.

    done = run(lambda x: torch.softmax(x, -1), [torch.randn(256, 1024)], runner)

The function is traced to a graph, and Inductor gets the graph with *fake* CUDA tensors, which a
torch without CUDA can make too, and the sizes of a card; so tiling, fusion and configurations are
those of its CUDA backend, not of its CPU backend. The program that it writes is then run on CPU
tensors: its Triton kernels go to `runner`, by the driver in triton.py; what it leaves to aten (a
matmul, a convolution) runs as aten on the CPU and is listed as `extern`: no compiled code, and not
checked.

What differs from a GPU: where Inductor has several configurations of a kernel it times them, and
here the first is taken; what torch itself decides by device is decided as for the CPU (which
attention is called). Gradients are not traced, and random numbers are Inductor's own.

Meant for a process of its own: torch's functions are replaced while it runs. All are put back, but
torch may keep what it found out about the card. Of Inductor are used, tried on torch 2.13.0:
`compile_fx.compile_fx`, `AsyncCompile.triton`, `PyCodeCache.write` and `load`,
`CachingAutotuner._precompile_config` with the result's `make_launcher`, `CudaInterface`.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._dynamo.device_interface import CudaInterface
from torch._functorch import config as functorch_config
from torch._inductor import async_compile, codecache, compile_fx
from torch._inductor import config as inductor_config
from torch._inductor.fx_passes import misc_patterns
from torch._inductor.runtime import hints, triton_helpers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_aggregate
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from ... import hardware
from ...errors import NotRun
from . import DEFAULT_ARCH, Compiled, Run, Size, capability
from . import triton as triton_adapter

NOTE = (
    "generated with Inductor's heuristics for CUDA and {arch}; of several configurations "
    "of a kernel the first is taken, where a GPU would time them"
)
CONFIG: dict[str, Any] = {
    **{"compile_threads": 1, "cpp_wrapper": False, "max_autotune": False, "freezing": False},
    **{"triton.cudagraphs": False, "triton.multi_kernel": 0, "coordinate_descent_tuning": False},
    **{"triton.autotune_at_compile_time": False, "use_static_cuda_launcher": False},
    "shape_padding": False,  # decided by timing matrix products, which are aten's anyway
    # caches: what was compiled without this adapter must not come back here, nor the reverse
    **{"fx_graph_cache": False, "fx_graph_remote_cache": False, "autotune_local_cache": False},
    **{"autotune_remote_cache": False, "bundled_autotune_remote_cache": False},
}
ON_THE_CPU = (
    (r"guards\._empty_strided_cuda\b", "guards._empty_strided_cpu"),
    (r"from torch\._C import _cuda_getCurrentRawStream as (\w+)", r"\1 = int"),
    (r"with torch\.cuda\._DeviceGuard\(\d+\):", "if True:"),
    (r"torch\.cuda\.(set_device\(\d+\)|synchronize\(\))", "pass"),
    (r"device\(type='cuda'(, index=\d+)?\)", "device(type='cpu')"),
    # what aten computes gets the layout that it has on the card
    (
        r"assert_size_stride\((buf\d+), (\(.*?\)), (\(.*?\)), '[^']*'\)",
        r"\1 = torch.empty_strided(\2, \3, dtype=\1.dtype).copy_(\1)",
    ),
)
"""What of the program that calls the kernels is replaced, so that its tensors are on the CPU."""
THREADS_OF_A_MULTIPROCESSOR = {
    **{75: 1024, 80: 2048, 86: 1536, 89: 1536, 90: 2048, 100: 2048, 120: 1536}
}
"""CUDA C++ Programming Guide, technical specifications by compute capability."""
EXTERN = re.compile(r"(?:extern_kernels|torch\.ops)\.([\w.]+)\(")


@dataclass(frozen=True)
class Generated:
    """A launch of a kernel that Inductor wrote.

    name: the kernel's. source: its module in Python. args: what each parameter of the PTX entry
    was, as "float32[256, 1024]", "null" or a number. configs: how many Inductor would choose from.
    """

    name: str
    source: str
    compiled: Compiled
    grid: Size
    block: Size
    shared: int
    args: tuple[str, ...]
    configs: int
    note: str

    @property
    def ptx(self) -> str:
        return self.compiled.ptx


@dataclass(frozen=True)
class Done:
    """A function computed by the kernels that Inductor wrote for it.

    outputs: as the function returns them. kernels: its launches, in order. extern: what aten
    computed instead, on the CPU. program: the Python that calls them all, its tensors on the CPU.
    graph: what was traced, as Python. written: the program as Inductor wrote it.
    """

    outputs: Any
    kernels: tuple[Generated, ...]
    extern: tuple[str, ...]
    program: str
    note: str
    graph: str = ""
    written: str = ""


@dataclass
class _Work:
    """What is noted while one function is compiled and run."""

    arch: str
    runner: Run | None
    kernels: dict[str, _Kernel] = field(default_factory=dict)
    launches: list[Generated] = field(default_factory=list)
    programs: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def generated(
    function: Callable[..., Any], inputs: Sequence[Any], arch: str = DEFAULT_ARCH
) -> list[Generated]:
    """The launches that Inductor makes of a function of CPU tensors; none of them is run."""
    return list(_compute(function, inputs, None, arch).kernels)


def run(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    runner: Run | None,
    arch: str = DEFAULT_ARCH,
) -> Done:
    """The function's outputs by way of the generated kernels, each launched through runner.

    function: of tensors and Python numbers, or a module. inputs: CPU tensors, of which the ones
    that the function changes are changed. runner: None to launch none of the kernels; the outputs
    are then of no use. Raises NotRun if it can't be compiled this way.
    """
    return _compute(function, inputs, runner, arch)


def _compute(
    function: Callable[..., Any], inputs: Sequence[Any], runner: Run | None, arch: str
) -> Done:
    call, tensors, shape = _lifted(function, inputs)
    work = _Work(arch, runner)
    with torch.no_grad():
        graph = make_fx(call, tracing_mode="fake", _allow_non_fake_inputs=True)(*tensors)
        text = graph.print_readable(print_output=False)
        tensors += _moved_to_cuda(graph)
    with _pretending(work), torch.no_grad(), _Unguarded():
        with FakeTensorMode():
            fakes = [_on_cuda(tensor) for tensor in tensors]
        compiled = compile_fx.compile_fx(graph, fakes)
        flat = compiled(*tensors)
    outputs = pytree.tree_unflatten(list(flat), shape[0])
    program = "\n".join(work.programs)
    extern = tuple(dict.fromkeys(EXTERN.findall(program)))
    note, written = NOTE.format(arch=arch), "\n".join(work.written)
    return Done(outputs, tuple(work.launches), extern, program, note, text, written)


def _lifted(
    function: Any, inputs: Sequence[Any]
) -> tuple[Callable[..., Any], list[Any], list[pytree.TreeSpec]]:
    """A function of tensors alone that returns a flat tuple, those tensors, and its outputs' shape.

    Parameters of a module come first; numbers are left out. The shape is there once it was traced.
    """
    held = {}
    if isinstance(function, torch.nn.Module):
        held = dict(function.named_parameters()) | dict(function.named_buffers())
    positions = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
    tensors = [tensor.detach() for tensor in (*held.values(), *(inputs[i] for i in positions))]
    shape: list[pytree.TreeSpec] = []
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise NotRun(f"a tensor on {tensor.device}: here all tensors are on the CPU")

    def call(*given: Any) -> Any:
        values = list(inputs)
        for position, tensor in zip(positions, given[len(held) :]):
            values[position] = tensor
        if isinstance(function, torch.nn.Module):
            out = torch.func.functional_call(function, dict(zip(held, given)), tuple(values))
        else:
            out = function(*values)
        flat, spec = pytree.tree_flatten(out)
        shape[:] = [spec]
        return tuple(flat)

    return call, tensors, shape


def _moved_to_cuda(graph: Any) -> list[Any]:
    """Makes the traced graph one for CUDA; returns the tensors that it captured, now its inputs.

    It is traced on the CPU because Python's indexing of a CUDA tensor needs a torch with CUDA.
    """
    nodes = list(graph.graph.nodes)
    last = next(n for n in nodes if n.op != "placeholder")
    captured: dict[str, Any] = {}
    for node in nodes:
        for name in ("val", "tensor_meta", "example_value"):
            node.meta.pop(name, None)
        node.args, node.kwargs = map_aggregate((node.args, node.kwargs), _cuda_for_cpu)
        if node.op == "get_attr":
            captured[node.target] = operator.attrgetter(node.target)(graph).detach()
            with graph.graph.inserting_before(last):
                placeholder = graph.graph.placeholder(node.name + "_input")
            node.replace_all_uses_with(placeholder)
            graph.graph.erase_node(node)
    graph.graph.lint()
    graph.recompile()
    return list(captured.values())


def _cuda_for_cpu(value: Any) -> Any:
    return torch.device("cuda", 0) if value == torch.device("cpu") else value


def _on_cuda(tensor: Any) -> Any:
    """In a fake mode, a CUDA tensor of the same form."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cuda")


class _Unguarded(TorchFunctionMode):
    """Copies into fake CUDA tensors by way of aten: Python's `copy_` needs a torch with CUDA."""

    def __torch_function__(self, func: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.copy_ and isinstance(args[1], torch.Tensor):
            return torch.ops.aten.copy_.default(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _seed_form(seeds: Any, index: int) -> Any:
    """What Inductor says of `seeds[index]`, without indexing a fake CUDA tensor."""
    return torch._prims.TensorMeta(torch.ops.aten.select.int(seeds, 0, index))


@contextmanager
def _pretending(work: _Work) -> Iterator[None]:
    """There is a card of this kind, and its kernels are run by whoever the work names."""
    properties = _properties(work.arch)
    number = capability(work.arch)
    known = {name: value for name, value in CONFIG.items() if _has(inductor_config, name)}
    settings = mock.patch.object
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ))
        stack.enter_context(triton_adapter.shim(_launching(work), work.arch))
        stack.enter_context(inductor_config.patch(known))
        stack.enter_context(functorch_config.patch(enable_autograd_cache=False))
        for owner in (torch.cuda, CudaInterface, CudaInterface.Worker):
            for name, value in _answers(properties, number, owner).items():
                stack.enter_context(settings(owner, name, value))
        # traced by making real random numbers on the device, for a pattern that is of no use here
        stack.enter_context(settings(misc_patterns, "_misc_patterns_init", lambda *_: None))
        stack.enter_context(settings(triton_helpers, "set_driver_to_gpu", lambda: None))
        stack.enter_context(settings(async_compile.AsyncCompile, "triton", _loading(work)))
        seed = torch.ops.prims.inductor_lookup_seed.default
        stack.enter_context(settings(seed, "prim_meta_impl", _seed_form))
        write = codecache.PyCodeCache.write
        stack.enter_context(settings(codecache.PyCodeCache, "write", _writing(work, write)))
        _forget()
        stack.callback(_forget)
        yield


def _has(config: Any, name: str) -> bool:
    owner: Any = config
    for part in name.split("."):
        if not hasattr(owner, part):
            return False
        owner = getattr(owner, part)
    return True


def _forget() -> None:
    """What torch remembers of the card."""
    hints.DeviceProperties.create.cache_clear()
    for function in (torch.utils._triton.has_triton, torch._inductor.utils.is_big_gpu):
        function.cache_clear()


def _properties(arch: str) -> Any:
    """Those of the card's properties that Inductor looks at; bytes, or counts."""
    number = capability(arch)
    major, minor = divmod(number, 10)
    return SimpleNamespace(
        name=f"{arch} on the CPU",
        gcnArchName="",
        major=major,
        minor=minor,
        multi_processor_count=hardware.MULTIPROCESSORS[number],
        regs_per_multiprocessor=65536,
        max_threads_per_multi_processor=THREADS_OF_A_MULTIPROCESSOR[number],
        max_threads_per_block=1024,
        warp_size=32,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=hardware.SHARED[number],
        L2_cache_size=(50 if major == 9 else 40) << 20,
        total_memory=80 << 30,
    )


def _answers(properties: Any, number: int, owner: Any) -> dict[str, Any]:
    """What is asked of torch.cuda, of its interface and of the interface's worker."""
    answers: dict[str, Callable[..., Any]] = {
        "get_device_properties": lambda device=None: properties,
        "current_device": lambda: 0,
    }
    if owner is torch.cuda:
        # not available, so that nothing is allocated on a card that is there
        return answers | {
            "is_available": lambda: False,
            "get_device_capability": lambda device=None: divmod(number, 10),
        }
    if owner is CudaInterface:
        answers |= {
            "is_available": lambda: True,
            "get_compute_capability": lambda device=None: number,
            "is_bf16_supported": lambda including_emulation=False: True,
            "get_raw_stream": lambda device: 0,
        }
    return {name: staticmethod(answer) for name, answer in answers.items()}


def _writing(work: _Work, original: Callable[..., Any]) -> Any:
    """`PyCodeCache.write`, for programs that call kernels: with their tensors on the CPU."""

    def write(cls: Any, source_code: str, *args: Any, **named: Any) -> Any:
        if "async_compile = AsyncCompile()" in source_code:
            work.written.append(source_code)
            for pattern, text in ON_THE_CPU:
                source_code = re.sub(pattern, text, source_code)
            work.programs.append(source_code)
        return original(source_code, *args, **named)

    return classmethod(write)


def _loading(work: _Work) -> Callable[..., Any]:
    def triton(self: Any, kernel_name: str, source_code: str, device_str: str = "cuda") -> _Kernel:
        kernel = _Kernel(kernel_name, source_code)
        work.kernels[kernel_name] = kernel
        return kernel

    return triton


class _Kernel:
    """What the generated program has for each Triton kernel: it compiles and launches it."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self.tuner = getattr(codecache.PyCodeCache.load(source), name)
        self.launcher: Any = None

    def run(self, *args: Any, stream: Any = None, **named: Any) -> None:
        if self.launcher is None:
            result = self.tuner._precompile_config(self.tuner.configs[0])
            self.launcher = result.make_launcher()
        self.launcher(*args, **named, stream=0)


def _launching(work: _Work) -> Run:
    def launch(compiled: Compiled, grid: Size, block: Size, args: list[Any], shared: int) -> None:
        kernel = work.kernels[compiled.name]
        compiled = replace(compiled, way="inductor")
        said = tuple(map(_said, args))
        count, note = len(kernel.tuner.configs), NOTE.format(arch=work.arch)
        work.launches.append(
            Generated(
                *(kernel.name, kernel.source, compiled, grid, block, shared, said, count, note)
            )
        )
        if work.runner is not None:
            work.runner(compiled, grid, block, args, shared)

    return launch


def _said(argument: Any) -> str:
    if argument is None:
        return "null"
    if isinstance(argument, torch.Tensor):
        return f"{str(argument.dtype).removeprefix('torch.')}{list(argument.shape)}"
    return str(argument)
