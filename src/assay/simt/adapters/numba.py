"""Numba without a GPU: an unmodified `kernel[grid, block](arrays)` compiled to PTX and handed on.

    with shim(run):
        scale[(4,), (256,)](x, y, 2.0)

Kernels are compiled by the public `numba.cuda.compile` for the types of their arguments, always
with line information. Launching is taken over at `CUDADispatcher`; what a program calls around a
launch (`cuda.to_device`, `cuda.synchronize`, ...) works on the CPU, see numba_host.py.

What of numba-cuda is used beyond its documented functions, tried on 0.20.1, 0.24.0, 0.28.2 and
0.30.4: `numba.cuda.dispatcher` (CUDADispatcher with py_func, targetoptions, overloads and
typeof_pyval; the names get_current_device and get_context), `numba.cuda.errors`
(normalize_kernel_dimensions), `numba.cuda.core.sigutils` (normalize_signature).
"""

from __future__ import annotations

import enum
import re
import struct
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import cuda, types
from numba.cuda import dispatcher as dispatching
from numba.cuda.core.sigutils import normalize_signature
from numba.cuda.errors import normalize_kernel_dimensions

from ...errors import NotRun
from . import DEFAULT_ARCH, Compiled, Run, Size, capability, grid_sync, parameters, whole
from . import numba_host as host

FORALL_THREADS = 256
"""Threads of a block of `kernel.forall(n)`, where CUDA would be asked for the occupancy."""
ENTRY = re.compile(r"\.visible \.entry (\w+)\(")
CHECKS_LEFT_OUT = (
    "{name} is compiled with lineinfo=True in place of debug=True: exceptions that it raises "
    "are not seen"
)


@dataclass
class Shim:
    """What is in force between install and undo."""

    run: Run
    arch: str
    undo: Callable[[], None] = lambda: None
    kernels: Any = field(default_factory=weakref.WeakKeyDictionary)
    """Dispatcher to what it was compiled to, by argument types."""
    declared: Any = field(default_factory=weakref.WeakKeyDictionary)
    """Dispatcher to the argument types of the signatures in its decorator."""


@contextmanager
def shim(run: Run, arch: str = DEFAULT_ARCH) -> Iterator[Shim]:
    """Within it, launches of @cuda.jit kernels on CPU arrays are compiled for arch and go to run.

    Arrays may be torch CPU tensors or NumPy arrays. Raises NotRun in Numba's simulator.
    """
    made = install(run, arch)
    try:
        yield made
    finally:
        made.undo()


def install(run: Run, arch: str = DEFAULT_ARCH) -> Shim:
    """The same for the rest of the process, or until its `undo()`; undone in reverse order."""
    if "simulator" in type(cuda.jit(lambda: None)).__module__:
        raise NotRun("NUMBA_ENABLE_CUDASIM is set, so @cuda.jit compiles nothing: unset it")
    made = Shim(run, arch)
    device = host.Device(capability(arch))
    kind = dispatching.CUDADispatcher
    changes: list[tuple[Any, str, Any]] = [
        (dispatching, "get_current_device", lambda: device),
        (dispatching, "get_context", lambda *_: host.Context(device)),
        (kind, "__getitem__", lambda self, given: _indexed(made, self, given)),
        (kind, "configure", lambda self, *given, **named: _configured(made, self, *given, **named)),
        (kind, "forall", lambda self, *given, **named: _ForAll(made, self, *given, **named)),
        (kind, "specialize", lambda self, *args: _specialize(made, self, args)),
        (kind, "compile", lambda self, signature: _declare(made, self, signature)),
        *((cuda, name, value) for name, value in host.functions(device).items()),
    ]
    kept = [(owner, name, vars(owner).get(name)) for owner, name, _ in changes]

    def undo() -> None:
        for owner, name, value in kept:
            delattr(owner, name) if value is None else setattr(owner, name, value)

    for owner, name, value in changes:
        setattr(owner, name, value)
    made.undo = undo
    return made


@dataclass(frozen=True)
class _Configured:
    """`kernel[grid, block, stream, shared]`: called with the arguments, it launches."""

    made: Shim
    dispatcher: Any
    griddim: Size
    blockdim: Size
    sharedmem: int

    def __call__(self, *args: Any) -> None:
        compiled, argtypes = _kernel(self.made, self.dispatcher, args)
        after: list[Callable[[], Any]] = []
        extensions = self.dispatcher.targetoptions.get("extensions") or ()
        flat = [
            argument
            for type_, value in zip(argtypes, args)
            for argument in _flat(type_, value, extensions, after)
        ]
        wanted = parameters(compiled.ptx, compiled.name)
        if len(flat) != len(wanted):
            raise NotRun(f"{len(flat)} arguments for a kernel that takes {len(wanted)}")
        converted = [
            whole(value, nbytes) if type(value) is int else value
            for value, (_, nbytes) in zip(flat, wanted)
        ]
        self.made.run(compiled, self.griddim, self.blockdim, converted, self.sharedmem)
        for step in after:
            step()


def _indexed(made: Shim, dispatcher: Any, given: Any) -> _Configured:
    if not isinstance(given, tuple) or not 2 <= len(given) <= 4:
        raise ValueError("must specify at least the griddim and blockdim")
    return _configured(made, dispatcher, *given)


def _configured(
    made: Shim, dispatcher: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0
) -> _Configured:
    """The stream is of no concern: a launch has ended when it returns."""
    grid, block = normalize_kernel_dimensions(griddim, blockdim)
    return _Configured(made, dispatcher, grid, block, int(sharedmem))


class _ForAll:
    """`kernel.forall(n)`: as many blocks as n threads need."""

    def __init__(
        self,
        made: Shim,
        dispatcher: Any,
        ntasks: int,
        tpb: int = 0,
        stream: Any = 0,
        sharedmem: int = 0,
    ) -> None:
        if ntasks < 0:
            raise ValueError(f"Can't create ForAll with negative task count: {ntasks}")
        self.threads = tpb or FORALL_THREADS
        self.blocks = -(-ntasks // self.threads)
        self.configured = (
            _configured(made, dispatcher, self.blocks, self.threads, stream, sharedmem)
            if ntasks
            else None
        )

    def __call__(self, *args: Any) -> None:
        if self.configured:
            self.configured(*args)


def _specialize(made: Shim, dispatcher: Any, args: Any) -> Any:
    """A dispatcher for these types alone."""
    argtypes = tuple(_type_of(dispatcher, value) for value in args)
    only = dispatching.CUDADispatcher(dispatcher.py_func, targetoptions=dispatcher.targetoptions)
    _declare(made, only, argtypes)
    only.disable_compile()
    only._specialized = True
    return only


@dataclass(frozen=True)
class _Overload:
    """In the place of Numba's compiled kernel, for a signature in the decorator."""

    compiled: Compiled
    signature: Any
    objectmode: bool = False
    entry_point: None = None

    def inspect_asm(self, cc: Any = None) -> str:
        return self.compiled.ptx

    def launch(self, *_: Any) -> None:
        raise NotRun(f"{self.compiled.name} was compiled to be checked on a CPU: launch it there")


def _declare(made: Shim, dispatcher: Any, signature: Any) -> _Overload:
    """What the decorator does with each signature that it was given."""
    from numba.cuda import typing

    argtypes, _ = normalize_signature(signature)
    compiled = _compiled(made, dispatcher, argtypes)
    made.declared.setdefault(dispatcher, []).append(argtypes)
    overload = _Overload(compiled, typing.signature(types.none, *argtypes))
    dispatcher.overloads[argtypes] = overload
    return overload


def _kernel(made: Shim, dispatcher: Any, args: Any) -> tuple[Compiled, tuple[Any, ...]]:
    """What to launch for these arguments, and the types that it was compiled for."""
    declared = made.declared.get(dispatcher, [])
    if len(declared) == 1:  # as Numba does: the only signature is taken, whatever the arguments
        argtypes = declared[0]
    else:
        argtypes = tuple(_type_of(dispatcher, value) for value in args)
        if declared:
            argtypes = _matching(dispatcher, argtypes, declared)
    if len(argtypes) != len(args):
        raise TypeError(f"{_name(dispatcher)} takes {len(argtypes)} arguments, not {len(args)}")
    return _compiled(made, dispatcher, argtypes), argtypes


def _matching(dispatcher: Any, actual: tuple[Any, ...], declared: list[Any]) -> tuple[Any, ...]:
    convert = dispatcher.typingctx.can_convert
    exact = [s for s in declared if s == actual]
    close = [
        s
        for s in declared
        if len(s) == len(actual) and all(convert(a, b) is not None for a, b in zip(actual, s))
    ]
    if not exact + close:
        raise TypeError(
            f"No matching definition for argument type(s) {', '.join(map(str, actual))}"
        )
    return tuple((exact + close)[0])


def _compiled(made: Shim, dispatcher: Any, argtypes: tuple[Any, ...]) -> Compiled:
    known = made.kernels.setdefault(dispatcher, {})
    if argtypes not in known:
        known[argtypes] = _compile(made.arch, dispatcher, argtypes)
    compiled: Compiled = known[argtypes]
    return compiled


def _compile(arch: str, dispatcher: Any, argtypes: tuple[Any, ...]) -> Compiled:
    options = dispatcher.targetoptions
    if options.get("link"):
        raise NotRun(f"{_name(dispatcher)} links {options['link']}: only its own PTX is run here")
    if options.get("debug"):
        warnings.warn(CHECKS_LEFT_OUT.format(name=_name(dispatcher)), stacklevel=2)
    named = {name: options[name] for name in ("fastmath", "launch_bounds") if options.get(name)}
    opt = True if options.get("debug") else options.get("opt")
    ptx, _ = cuda.compile(
        dispatcher.py_func,
        argtypes,
        cc=divmod(capability(arch), 10),
        output="ptx",
        abi="numba",
        device=False,
        lineinfo=True,
        debug=False,
        opt=opt,
        **named,
    )
    entry = ENTRY.search(ptx)
    if not entry:
        raise NotRun(f"the PTX of {_name(dispatcher)} has no entry")
    code = dispatcher.py_func.__code__
    return Compiled(
        entry.group(1),
        grid_sync.linked(ptx),
        arch,
        "numba",
        settings=tuple({**named, **_of_the_linker(options)}.items()),
        cooperative=bool(grid_sync.DECLARED.search(ptx)),
        file=code.co_filename,
        line=code.co_firstlineno,
    )


def _of_the_linker(options: dict[str, Any]) -> dict[str, Any]:
    """What changes the machine code and not the PTX."""
    return {name: options[name] for name in ("max_registers",) if options.get(name)}


def _name(dispatcher: Any) -> str:
    return str(dispatcher.py_func.__name__)


def _type_of(dispatcher: Any, value: Any) -> Any:
    if type(value) is tuple:
        return types.BaseTuple.from_types(tuple(_type_of(dispatcher, part) for part in value))
    return dispatcher.typeof_pyval(host.array_of(value))


def _flat(type_: Any, value: Any, extensions: Any, after: list[Callable[[], Any]]) -> Iterator[Any]:
    """The parameters of the PTX entry that an argument becomes, as Numba's launch makes them.

    after: what is to be done once the kernel has run.
    """
    for extension in reversed(extensions):
        type_, value = extension.prepare_args(type_, value, stream=0, retr=after)
    if isinstance(type_, types.Array):
        yield from _array(host.array_of(value), value)
    elif isinstance(type_, types.Record):
        yield _record(host.unhinted(value), after)
    elif isinstance(type_, types.BaseTuple):
        for inner, part in zip(type_, value):
            yield from _flat(inner, part, extensions, after)
    elif isinstance(type_, types.EnumMember):
        yield from _flat(type_.dtype, value.value, extensions, after)
    elif isinstance(type_, types.Complex):
        yield float(value.real)
        yield float(value.imag)
    elif isinstance(type_, (types.NPDatetime, types.NPTimedelta)):
        yield int(value.view(np.int64))
    elif type_ == types.float16:
        yield struct.pack("<e", value)
    elif isinstance(type_, types.Float):
        yield float(value)
    elif isinstance(type_, (types.Integer, types.Boolean)):
        yield int(value.value if isinstance(value, enum.Enum) else value)
    else:
        raise NotRun(f"an argument of Numba's type {type_} is not passed here")


def _array(array: Any, value: Any) -> Iterator[Any]:
    """meminfo, parent, elements, bytes of one, data, shape, strides in bytes: Numba's array."""
    yield None
    yield None
    yield array.size
    yield array.itemsize
    value = host.unhinted(value)
    yield value.detach() if hasattr(value, "untyped_storage") else array
    yield from array.shape
    yield from array.strides


def _record(value: Any, after: list[Callable[[], Any]]) -> Any:
    """A record goes as a pointer to a copy, which is copied back."""
    copied = np.array(value, dtype=value.dtype)

    def back() -> None:
        for name in value.dtype.names:
            value[name] = copied[name]

    after.append(back)
    return copied
