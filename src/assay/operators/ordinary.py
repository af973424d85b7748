"""Whether a call is an ordinary one, on whose way the dispatcher would ask nobody.

Whatever wraps a call shows in one of these: the keys that this thread includes and excludes
(autocast, vmap and other transforms, dispatch modes, fake tensors, tracing, inference mode), the
keys of a tensor (sparse, quantised, meta, conjugated, negated, wrapped), its type (subclasses), or
a setting that has no key (function modes, forward-mode AD, a profiler, deterministic algorithms).
Where one is unusual the call goes through the dispatcher.
native/ordinary.h asks the same of what is usual here; a question added to one belongs in both.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch._C import (
    DispatchKey,
    DispatchKeySet,
    _dispatch_keys,
    _dispatch_tls_local_exclude_set,
    _dispatch_tls_local_include_set,
    _get_deterministic_algorithms,
    _len_torch_function_stack,
)
from torch.autograd import _profiler_enabled, forward_ad

TYPES = (torch.Tensor, torch.nn.Parameter)
LEVEL = vars(forward_ad)
"""Has `_current_level`: at least 0 inside of forward-mode AD."""


def _keys(backend: str, *, inference: bool) -> int:
    """The key set of a plain tensor. One made in inference mode has no keys of autograd."""
    names = [backend, f"Autocast{backend}"]
    if not inference:
        names += ["ADInplaceOrView", f"Autograd{backend}"]
    found = DispatchKeySet(getattr(DispatchKey, names[0]))
    for name in names[1:]:
        found = found | DispatchKeySet(getattr(DispatchKey, name))
    return int(found.raw_repr())


PLAIN = frozenset(_keys(b, inference=i) for b in ("CPU", "CUDA") for i in (False, True))
"""Key sets of dense tensors on the CPU and on a GPU."""


def _of_thread() -> tuple[int, int]:
    included = _dispatch_tls_local_include_set().raw_repr()
    return int(included), int(_dispatch_tls_local_exclude_set().raw_repr())


def _untouched() -> frozenset[tuple[int, int]]:
    """What a thread includes and excludes where nothing is switched on, and in inference mode."""
    found: list[tuple[int, int]] = []

    def look() -> None:
        found.append(_of_thread())
        with torch.inference_mode():
            found.append(_of_thread())

    thread = threading.Thread(target=look)  # this one may be inside of anything
    thread.start()
    thread.join()
    return frozenset(found)


USUAL = _untouched()


def thread_is() -> bool:
    """Whether nothing is switched on in this thread that would see or change a call."""
    return not (
        (
            _dispatch_tls_local_include_set().raw_repr(),
            _dispatch_tls_local_exclude_set().raw_repr(),
        )
        not in USUAL
        or _len_torch_function_stack()
        or forward_ad._current_level >= 0
        or _profiler_enabled()
        or _get_deterministic_algorithms()
    )


def tensor_is(x: Any) -> bool:
    """Whether it is a tensor in plain memory of the CPU or a GPU, of no type of its own."""
    return type(x) in TYPES and _dispatch_keys(x).raw_repr() in PLAIN
