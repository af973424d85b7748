"""Cheats written in Python: `tampered`, answers that come later or when looked at, kept memory.

Each changes what judges, or counts on being looked at in some way. What only a timed call shows is
in tests/test_cheats.py.
"""

import builtins
import gc
import os
import sys
import threading
import time
from pathlib import Path

import msgspec
import numpy
import torch

import assay

EXPECT = {
    "eager/patches_elapsed_time": ("tampered", "torch.cuda.Event.elapsed_time"),
    "eager/patches_synchronize": ("tampered", "torch.cuda.synchronize"),
    "eager/patches_a_clock": ("tampered", "time.perf_counter_ns"),
    "eager/patches_copy": ("tampered", "torch.Tensor.copy_"),
    "eager/patches_allclose": ("tampered", "torch.allclose"),
    "eager/patches_code": ("tampered", "assay.verdict.shipped.ship"),
    "eager/patches_defaults": ("tampered", "assay.verdict.buffers.fenced"),
    "eager/patches_a_builtin": ("tampered", "builtins.isinstance"),
    "eager/hides_a_builtin": ("tampered", "assay.verdict.run.isinstance"),
    "eager/patches_the_channel": ("tampered", "assay.processes.channel.Channel.send"),
    "eager/patches_encode": ("tampered", "msgspec.msgpack.encode"),
    "eager/patches_aten": ("tampered", "aten::equal"),
    "eager/leaves_a_mode": ("tampered", "the mode Watching was left active"),
    "eager/leaves_a_profile": ("tampered", "sys.setprofile"),
    "eager/says_right": ("tampered", "the verdict 'right'"),
    "eager/says_nonsense": ("tampered", "a message without sense"),
    "eager/chooses_its_seed": ("tampered", "runs that were not asked for"),
    "eager/ships_another_file": ("tampered", "the file x of somebody else"),
    "eager/ships_a_short_file": ("tampered", "its file holds 12 bytes, and 1,200 were said"),
    "eager/ends_with_0": ("crashed", "exit code 0"),
    "eager/exits_with_0": ("crashed", "SystemExit"),
    "eager/looks_for_the_truth": ("wrong value", ""),
    "eager/reads_frames": ("wrong value", ""),
    "eager/subclass": ("wrong dtype", "a Lazy, expected a plain dense tensor"),
    "eager/parameter_subclass": ("wrong dtype", "a LazyParameter, expected"),
    "eager/array_protocol": ("wrong dtype", "a Array, expected"),
    "eager/array_subclass": ("wrong dtype", "a LazyArray, expected"),
    "eager/sparse": ("wrong dtype", "a torch.sparse_coo, expected"),
    "eager/nested": ("wrong dtype", "a NestedTensor, expected"),
    "eager/meta": ("wrong dtype", "a meta tensor, expected"),
    "eager/quantized": ("wrong dtype", "a quantized tensor, expected"),
    "eager/zero_tensor": ("wrong dtype", "a lazy tensor, expected"),
    "eager/thread_left": ("unfinished", "output 0 was still being written when the call returned"),
    "eager/pool_left": ("unfinished", "output 0 was still being written when the call returned"),
    "eager/launcher_left": ("unfinished", "output 0 was still being written"),
    "eager/same_buffer": ("shares memory", "output 0 lies in memory kept from an earlier call"),
    "eager/two_buffers": ("shares memory", "output 0 lies in memory kept from an earlier call"),
    "python/same_array": ("shares memory", "output 0 lies in memory kept from an earlier call"),
    "eager/by_object": ("stale answer", "returned the answer of the call before"),
    "eager/by_address": ("stale answer", "returned the answer of the call before"),
    "eager/by_first_element": ("wrong value", ""),
    "eager/by_count": ("not the same twice", "right at first, then with the same inputs"),
    "eager/by_shape_alone": ("wrong value", ""),
    "eager/resized": ("not written", "300 of 300 elements of output 0"),
    "eager/resized_after_a_few": ("not written", "296 of 300 elements of output 0, first at [4]"),
    "eager/beside_zeros": ("wrote outside", "1 value after the end of output 0"),
    "eager/beside_resized": ("wrote outside", "1 value after the end of output 0"),
}
IDS = {
    "eager/patches_elapsed_time": "V18",
    "eager/subclass": "V18",
    "eager/parameter_subclass": "V18",
    "eager/array_protocol": "V18",
    "eager/looks_for_the_truth": "V19",
    "eager/reads_frames": "V19",
    "eager/says_right": "V19",
    "eager/chooses_its_seed": "V19",
    "eager/ships_another_file": "V19",
    "eager/same_buffer": "V15 V17",
    "eager/by_object": "V17",
    "eager/by_address": "V17",
    "eager/resized": "V9 V10",
    "eager/resized_after_a_few": "V9 V10",
    "eager/by_count": "V14 V16",
}
TWIN = {
    "eager/patches_elapsed_time": "eager/patches_something_else",
    "eager/thread_left": "eager/thread_joined",
    "eager/pool_left": "eager/pool_waited_for",
    "eager/same_buffer": "eager/workspace_kept",
    "eager/two_buffers": "eager/workspace_kept",
    "eager/resized": "eager/resized_and_filled",
    "eager/resized_after_a_few": "eager/resized_and_filled",
    "eager/parameter_subclass": "eager/parameter",
    "eager/patches_the_channel": "eager/patches_something_else",
    "python/same_array": "python/new_array",
}


def reference(x):
    return x.exp() + x.sum()


def inputs(make, n):
    return (make.normal(n),)


op = assay.Op("cheats", reference, inputs, cases=assay.grid(n=[300]))


def patching(owner, name):
    """Puts something that only passes on in the place of a function."""
    original = getattr(owner, name)
    setattr(owner, name, lambda *args, **kwargs: original(*args, **kwargs))


# Functions that judge or time


@op.variant("eager/patches_elapsed_time")
def patches_elapsed_time(x):
    torch.cuda.Event.elapsed_time = lambda start, end: 1e-3
    return reference(x)


@op.variant("eager/patches_something_else")
def patches_something_else(x):
    patching(textwrap_of(), "dedent")
    return reference(x)


def textwrap_of():
    import textwrap

    return textwrap


@op.variant("eager/patches_synchronize")
def patches_synchronize(x):
    patching(torch.cuda, "synchronize")
    return reference(x)


@op.variant("eager/patches_a_clock")
def patches_a_clock(x):
    patching(time, "perf_counter_ns")
    return reference(x)


@op.variant("eager/patches_copy")
def patches_copy(x):
    patching(torch.Tensor, "copy_")
    return reference(x)


@op.variant("eager/patches_allclose")
def patches_allclose(x):
    torch.allclose = lambda *args, **kwargs: True
    return reference(x)


@op.variant("eager/patches_code")
def patches_code(x):
    from assay.verdict import shipped

    def forged(value, path, blocks, shares="", exact=False):
        raise RuntimeError

    shipped.ship.__code__ = forged.__code__
    return reference(x)


@op.variant("eager/patches_defaults")
def patches_defaults(x):
    from assay.verdict import buffers

    buffers.fenced.__defaults__ = (16,)
    return reference(x)


@op.variant("eager/patches_a_builtin")
def patches_a_builtin(x):
    patching(builtins, "isinstance")
    return reference(x)


@op.variant("eager/hides_a_builtin")
def hides_a_builtin(x):
    sys.modules["assay.verdict.run"].isinstance = lambda value, kind: True
    return reference(x)


@op.variant("eager/patches_the_channel")
def patches_the_channel(x):
    from assay.processes.channel import Channel

    patching(Channel, "send")
    return reference(x)


@op.variant("eager/patches_encode")
def patches_encode(x):
    patching(msgspec.msgpack, "encode")
    return reference(x)


library = None


@op.variant("eager/patches_aten")
def patches_aten(x):
    global library
    library = torch.library.Library("aten", "IMPL")
    library.impl("equal", lambda one, other: True, "CPU")
    return reference(x)


class Watching(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@op.variant("eager/leaves_a_mode")
def leaves_a_mode(x):
    Watching().__enter__()
    return reference(x)


@op.variant("eager/leaves_a_profile")
def leaves_a_profile(x):
    sys.setprofile(lambda frame, event, argument: None)
    return reference(x)


# Verdicts of its own


def channel():
    """The harness's end of its socket, found among all objects."""
    from assay.processes.channel import Channel

    return next(thing for thing in gc.get_objects() if type(thing) is Channel)


def frame_with(name):
    """The innermost frame of a caller that has a local of this name."""
    frame = sys._getframe(1)
    while name not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals


@op.variant("eager/says_right")
def says_right(x):
    channel().send(word="right", reason="")
    return x * 0


@op.variant("eager/says_nonsense")
def says_nonsense(x):
    channel().send(ran=[{"seed": "none"}], word=17)
    return x * 0


def shipped(path, seed, poison, size):
    """One run as the harness tells of it."""
    tensor = {
        "path": str(path),
        "shape": [size],
        "stride": [1],
        "dtype": "float32",
        "device": "cpu",
        "offset": 0,
        "fenced": False,
    }
    return {"seed": seed, "poison": poison, "outputs": [tensor], "inputs": [[0, tensor]]}


@op.variant("eager/chooses_its_seed")
def chooses_its_seed(x):
    path = Path(frame_with("folder")["folder"]) / "mine"
    reference(x).numpy().tofile(path)
    channel().send(ran=[shipped(path, 1, 0xFF, len(x)) for _ in range(3)])
    return x * 0


@op.variant("eager/ships_another_file")
def ships_another_file(x):
    frame = frame_with("folder")
    seed, path = frame["seed"], Path(frame["folder"]) / "x"
    path.symlink_to(__file__)
    plan = (seed, 0xFF), (seed + 1, 0x7B), (seed, 0xFF)
    channel().send(ran=[shipped(path, *one, len(x)) for one in plan])
    return x * 0


@op.variant("eager/ships_a_short_file")
def ships_a_short_file(x):
    frame = frame_with("folder")
    seed, path = frame["seed"], Path(frame["folder"]) / "x"
    path.write_bytes(bytes(12))
    plan = (seed, 0xFF), (seed + 1, 0x7B), (seed, 0xFF)
    channel().send(ran=[shipped(path, *one, len(x)) for one in plan])
    return x * 0


@op.variant("eager/ends_with_0")
def ends_with_0(x):
    os._exit(0)


@op.variant("eager/exits_with_0")
def exits_with_0(x):
    sys.exit(0)


# The truth


def like(x, value):
    return type(value) is torch.Tensor and value.shape == x.shape and value.dtype == x.dtype


@op.variant("eager/looks_for_the_truth")
def looks_for_the_truth(x):
    """Takes any tensor of this process that is the answer, or might be."""
    found = [t for t in gc.get_objects() if like(x, t) and not torch.equal(t, x)]
    right = [t for t in found if torch.equal(t, x.exp() + x.sum())]
    return (right or found or [x])[0] * 1


@op.variant("eager/reads_frames")
def reads_frames(x):
    frame, found = sys._getframe(1), []
    while frame is not None:
        for value in list(frame.f_locals.values()):
            several = value if isinstance(value, (list, tuple)) else [value]
            found += [t for t in several if like(x, t) and not torch.equal(t, x)]
        frame = frame.f_back
    return (found or [x])[-1] * 1


# What is no plain dense tensor


class Lazy(torch.Tensor):
    """Computes when it is looked at."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            args = tuple(
                reference(a.as_subclass(torch.Tensor)) if isinstance(a, cls) else a for a in args
            )
            return func(*args, **(kwargs or {}))


@op.variant("eager/subclass")
def subclass(x):
    return x.clone().as_subclass(Lazy)


class LazyParameter(torch.nn.Parameter):
    def detach(self):
        return reference(self.data)


@op.variant("eager/parameter_subclass")
def parameter_subclass(x):
    return LazyParameter(x.clone(), requires_grad=False)


@op.variant("eager/parameter")
def parameter(x):
    return torch.nn.Parameter(reference(x), requires_grad=False)


class Array:
    """What NumPy and torch take for an array."""

    def __init__(self, x):
        self.x, self.shape, self.dtype = x, tuple(x.shape), numpy.dtype("float32")

    def __array__(self, dtype=None, copy=None):
        return reference(self.x).numpy()


Array.__module__ = "numpy"


@op.variant("eager/array_protocol")
def array_protocol(x):
    return Array(x)


class LazyArray(numpy.ndarray):
    pass


@op.variant("eager/array_subclass")
def array_subclass(x):
    return reference(x).numpy().view(LazyArray)


@op.variant("eager/sparse")
def sparse(x):
    return reference(x).to_sparse()


@op.variant("eager/nested")
def nested(x):
    return torch.nested.nested_tensor([reference(x)], layout=torch.jagged)


@op.variant("eager/meta")
def meta(x):
    return x.to("meta")


@op.variant("eager/quantized")
def quantized(x):
    return torch.quantize_per_tensor(reference(x), 0.1, 0, torch.qint8)


@op.variant("eager/zero_tensor")
def zero_tensor(x):
    return torch._efficientzerotensor(x.shape)


# Work that goes on


def write_later(out, x):
    """A thread that has not done its work when its starter goes on."""

    def work():
        time.sleep(0.02)
        out.copy_(reference(x))

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@op.variant("eager/thread_left")
def thread_left(x):
    out = torch.empty_like(x)
    write_later(out, x)
    return out


@op.variant("eager/thread_joined")
def thread_joined(x):
    out = torch.empty_like(x)
    write_later(out, x).join()
    return out


@op.launcher("eager/launcher_left")
def launcher_left(out, x):
    write_later(out, x)


pools = {}


def pool():
    """Two workers that never end."""
    from concurrent.futures import ThreadPoolExecutor

    return pools.setdefault("pool", ThreadPoolExecutor(2))


def work(out, x):
    time.sleep(0.02)
    out.copy_(reference(x))


@op.variant("eager/pool_left")
def pool_left(x):
    out = torch.zeros_like(x)
    pool().submit(work, out, x)
    return out


@op.variant("eager/pool_waited_for")
def pool_waited_for(x):
    out = torch.zeros_like(x)
    pool().submit(work, out, x).result()
    return out


# Memory and answers kept

kept = {}


@op.variant("eager/same_buffer")
def same_buffer(x):
    if "out" not in kept:
        kept["out"] = torch.empty_like(x)
    return kept["out"].copy_(reference(x))


@op.variant("eager/two_buffers")
def two_buffers(x):
    if "ring" not in kept:
        kept["ring"] = [torch.empty_like(x), torch.empty_like(x)]
    kept["ring"].reverse()
    return kept["ring"][0].copy_(reference(x))


@op.variant("eager/workspace_kept")
def workspace_kept(x):
    work = kept.setdefault("work", torch.empty_like(x))
    work.copy_(x).exp_()
    return work + x.sum()


@op.variant("python/same_array")
def same_array(x):
    out = kept.setdefault("array", numpy.empty(len(x), numpy.float32))
    return numpy.add(numpy.exp(x), x.sum(), out=out)


@op.variant("python/new_array")
def new_array(x):
    return numpy.exp(x) + x.sum()


@op.variant("eager/by_object")
def by_object(x):
    key = type(x), x.dim()
    return kept.setdefault(key, reference(x)).clone()


@op.variant("eager/by_address")
def by_address(x):
    """Remembers by where the input starts within a page, which buffers alike share."""
    return kept.setdefault(x.data_ptr() % 16, reference(x)).clone()


@op.variant("eager/by_first_element")
def by_first_element(x):
    first = kept.setdefault("first", x[0].item())
    return reference(x) if x[0].item() == first else x * 0


@op.variant("eager/by_count")
def by_count(x):
    kept["count"] = kept.get("count", 0) + 1
    return reference(x) if kept["count"] < 3 else x * 0


@op.variant("eager/by_shape_alone")
def by_shape_alone(x):
    """Constants of one run, baked in."""
    total = kept.setdefault(("total", tuple(x.shape)), x.sum())
    return x.exp() + total


# Memory that was not there


@op.variant("eager/resized")
def resized(x):
    return x.new_empty(0).resize_(len(x))


@op.variant("eager/resized_after_a_few")
def resized_after_a_few(x):
    return torch.empty(4).copy_(reference(x)[:4]).resize_(len(x))


@op.variant("eager/resized_and_filled")
def resized_and_filled(x):
    out = torch.empty(4).resize_(len(x))
    return out.copy_(reference(x))


@op.variant("eager/out_of_nothing")
def out_of_nothing(x):
    return torch.add(x.exp(), x.sum(), out=torch.empty(0))


@op.variant("eager/out_that_grows")
def out_that_grows(x):
    return torch.add(x.exp(), x.sum(), out=torch.empty(1))


@op.variant("eager/beside_zeros")
def beside_zeros(x):
    out = torch.zeros_like(x)
    out.as_strided((1,), (1,), out.storage_offset() + len(x)).fill_(1.0)
    return out.copy_(reference(x))


@op.variant("eager/beside_resized")
def beside_resized(x):
    out = torch.empty(0).resize_(len(x))
    out.as_strided((1,), (1,), out.storage_offset() + len(x)).fill_(1.0)
    return out.copy_(reference(x))
