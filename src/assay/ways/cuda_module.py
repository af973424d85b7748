"""`k` on a GPU: the kernels of a compiled source, launched on torch's current stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from .. import hardware
from ..errors import LaunchError
from ..types import Compiled
from .cuda import Built
from .launch import Launch, arguments, check_geometry, check_shared, configured_as, refused, type_of

KEPT = 1024
"""Launches of one source, by kernel and geometry, that are kept ready."""
EARLY_FROM = (9, 0)
"""Compute capability from which a kernel may start early; below, it is launched as usual."""


class Module:
    """`k[name](grid=, block=, shared=)(out, x, n, 1.0)`.

    early=True: the kernel may start before the one in front of it on the stream has ended, and has
    to wait for that itself before it touches anything that others read or write.
    """

    def __init__(self, built: Built, device: str, arch: str, more: Callable[[str], Built]):
        """arch: what it was compiled for; more: compiles the source with another of its kernels."""
        self._more, self._on = more, device
        self._kernels: dict[str, Any] = {}
        self._configured: dict[tuple[Any, ...], Callable[..., None]] = {}
        """What launches a kernel, by its name and geometry."""
        self._allowed: dict[str, int] = {}
        """Bytes of dynamic shared memory that a kernel was allowed, 0 where it needs no leave."""
        self.type = type_of
        self.arch = arch
        self._load(built)

    def _load(self, built: Built) -> None:
        import torch
        from cuda.core import Device, ObjectCode

        self._device = Device(torch.device(self._on).index or 0)
        self._device.set_current()
        code = ObjectCode.from_cubin(built.cubin.read_bytes())
        for name, lowered in built.lowered.items():
            self._kernels[name] = (
                code.get_kernel(lowered),
                built.parameters[name],
                built.facts[name],
            )

    def _kernel(self, name: str) -> Any:
        if name not in self._kernels:
            self._load(self._more(name))
        return self._kernels[name]

    def ready(self, launch: Launch) -> tuple[Any, list[list[Any]], Any]:
        """For a launch that the caller packs himself: the driver's handle, the parameters, and
        what makes the device the current one of a thread. Raises LaunchError as a launch does."""
        kernel, parameters, facts = self._kernel(launch.name)
        check_geometry(launch)
        check_shared(launch, facts.shared_bytes, facts.arch)
        self._allow(kernel, launch, facts)
        return handle_of(kernel), parameters, self._device.set_current

    def _allow(self, kernel: Any, launch: Launch, facts: Compiled) -> None:
        """Lets it have as much shared memory and as large clusters as it asks for, where that is
        more than usual."""
        over = launch.shared + (facts.shared_bytes or 0) > hardware.SHARED_DEFAULT
        before = self._allowed.get(launch.name)
        if before is None:
            allow_clusters(kernel, self._device.device_id)
            before = self._allowed[launch.name] = 0
        if over and before < launch.shared:
            allow_shared(kernel, launch.shared, self._device.device_id)
            self._allowed[launch.name] = launch.shared

    def __getitem__(self, name: str) -> Any:
        self._kernel(name)  # an unknown name is told before anything is asked of it

        def configured(*, grid: Any, block: Any, shared: int = 0, early: bool = False) -> Any:
            launch = configured_as(name, grid, block, shared, early)
            key = name, launch.grid, launch.block, launch.shared, early
            found = self._configured.get(key)
            if found is None:
                if len(self._configured) >= KEPT:
                    self._configured.clear()
                found = self._configured[key] = self._launching(launch)
            return found

        return configured

    def _launching(self, launch: Launch) -> Callable[..., None]:
        """What launches a kernel so. Raises LaunchError for what can't be launched.

        It holds nothing of this object, so that kernels are unloaded with it.
        """
        import torch

        handle, parameters, wake = self.ready(launch)
        start, index = Start(launch, handle, self._at_once(launch)), self._device.device_id
        # torch.cuda.current_stream makes an object, which takes longer than a launch.
        device, stream = torch._C._cuda_getDevice, torch._C._cuda_getCurrentRawStream

        def launched(*args: Any) -> None:
            packed = [_packed(value) for value in arguments(launch.name, args, parameters)]
            if device() == index:
                start(packed, stream(index), wake)
                return
            with torch.cuda.device(index):
                start(packed, stream(index), wake)

        return launched

    def _at_once(self, launch: Launch) -> bool:
        """Whether it may start early, and this GPU can have it so."""
        import torch

        return launch.early and torch.cuda.get_device_capability(self._on) >= EARLY_FROM


class Start:
    """A kernel of known geometry as the driver launches it."""

    def __init__(self, launch: Launch, handle: Any, early: bool):
        from cuda.bindings import driver

        self._driver, self._early = driver, early
        self._handle = driver.CUfunction(int(handle))
        self._launch, self._geometry = launch, (*launch.grid, *launch.block, launch.shared)
        self._new_thread = driver.CUresult.CUDA_ERROR_INVALID_CONTEXT

    def __call__(self, packed: list[Any], stream: int, wake: Callable[[], None]) -> None:
        """packed: arguments as `_packed` makes them. wake: makes the device the current one of a
        thread that is new to CUDA. Raises LaunchError with what the driver says."""
        table = (ctypes.c_void_p * max(1, len(packed)))(*map(ctypes.addressof, packed))
        status = self._start(ctypes.addressof(table), stream)
        if status == self._new_thread:
            wake()
            status = self._start(ctypes.addressof(table), stream)
        if status:
            refused(self._launch.name, status)

    def _start(self, table: int, stream: int) -> Any:
        if self._early:
            return self._driver.cuLaunchKernelEx(self._config(stream), self._handle, table, 0)[0]
        return self._driver.cuLaunchKernel(self._handle, *self._geometry, stream, table, 0)[0]

    def _config(self, stream: int) -> Any:
        """Of a kernel that may start before the one in front of it has ended, and waits for that
        itself (griddepcontrol.wait): programmatic dependent launch, CUDA Programming Guide."""
        driver, launch = self._driver, self._launch
        attribute, config = driver.CUlaunchAttribute(), driver.CUlaunchConfig()
        kinds = driver.CUlaunchAttributeID
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
        config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
        config.sharedMemBytes, config.hStream = launch.shared, driver.CUstream(stream)
        config.attrs, config.numAttrs = [attribute], 1
        return config


def handle_of(kernel: Any) -> Any:
    """The driver's handle of a cuda.core kernel, which older versions keep to themselves."""
    return getattr(kernel, "handle", None) or kernel._handle


def allow_shared(kernel: Any, shared: int, device: int) -> None:
    """Lets a block of a cuda.core kernel have so many bytes of dynamic shared memory.

    cuda.core shows the attribute and, in most versions, can't set it. Raises LaunchError.
    """
    from cuda.bindings import driver

    name = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    status = set_attribute(kernel, name, shared, device)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"{shared:,} bytes of dynamic shared memory are refused: {status.name}")


def allow_clusters(kernel: Any, device: int) -> None:
    """Lets a kernel whose clusters have more than 8 blocks have them: not every GPU has room for
    those, so the driver wants to be asked. Raises LaunchError."""
    from cuda.bindings import driver

    names = driver.CUfunction_attribute
    blocks = get_attribute(kernel, names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, device)
    if blocks <= hardware.CLUSTER:
        return
    wide = names.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    status = set_attribute(kernel, wide, 1, device)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise LaunchError(f"clusters of {blocks} blocks are refused: {status.name}")


def set_attribute(kernel: Any, name: Any, value: int, device: int) -> Any:
    """The driver's status."""
    from cuda.bindings import driver

    handle = handle_of(kernel)
    if isinstance(handle, driver.CUfunction):
        return driver.cuFuncSetAttribute(handle, name, value)[0]
    return driver.cuKernelSetAttribute(name, value, handle, driver.CUdevice(device))[0]


def get_attribute(kernel: Any, name: Any, device: int) -> int:
    """An attribute of a kernel; 0 where the driver does not know it."""
    from cuda.bindings import driver

    handle = handle_of(kernel)
    if isinstance(handle, driver.CUfunction):
        status, value = driver.cuFuncGetAttribute(name, handle)
    else:
        status, value = driver.cuKernelGetAttribute(name, handle, driver.CUdevice(device))
    return int(value) if status == driver.CUresult.CUDA_SUCCESS else 0


def _packed(value: Any) -> Any:
    """An argument as memory that the driver reads: a pointer, a number, or a struct's bytes."""
    if isinstance(value, int):
        return ctypes.c_uint64(value)
    if isinstance(value, ctypes._SimpleCData):
        return value
    return ctypes.create_string_buffer(value.tobytes(), value.nbytes)
