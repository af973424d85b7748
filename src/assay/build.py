"""Variant + knobs + Case -> Kernel: something to call, and how it came to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import ways
from .adapt import autotune
from .errors import OpError
from .inputs import to_meta
from .op import Op, Variant
from .types import Build, Case, Counters, Scalar

Specs = list[tuple[tuple[int, ...], torch.dtype]]


@dataclass(frozen=True)
class Kernel:
    """A variant built for its knobs and a case."""

    variant: Variant
    knobs: dict[str, Scalar]
    run: Callable[[list[Any], list[Any]], list[Any]]
    """`run(outputs, inputs)` gives the outputs; it fills those given if the variant fills."""
    build: Build
    counters: Counters | None = None
    handle: Any = None
    """What its source became, which a launcher is given first; None without a source."""
    launch: Callable[[Any, list[Any], list[Any]], Any] | None = None
    """`launch(handle, outputs, inputs)`: the launcher with another handle."""


def find_variant(op: Op, name: str, *, dynamic: bool = False) -> Variant:
    """The variant as it is run: `compiled` becomes the compiled reference.

    dynamic: compiled once for all sizes.
    """
    variant = op.find(name)
    if variant.way != "compiled" or variant.function is not op.reference:
        return variant
    function = ways.way("compiled").function(op, dynamic=dynamic)
    return Variant(name, "compiled", function, fills=False, layouts="any")


def build(
    op: Op,
    variant: Variant,
    knobs: dict[str, Scalar],
    case: Case,
    inputs: tuple[Any, ...],
    specs: Specs,
    device: str,
    arch: str,
    say: Callable[[str], None] = lambda _: None,
    watch: Any = None,
) -> Kernel:
    """Loads the variant's source, if it has one, and binds the knobs.

    watch: what runs its launches on the CPU, where the judge is compiled code.
    Raises BuildError or LaunchError, which are the kernel's fault.
    """
    start = time.monotonic()
    passed = autotune.choose(variant.function, knobs)
    mutated = [op.input_names(len(inputs)).index(name) for name in op.mutates]

    def call(handle: Any, outputs: list[Any], given: list[Any]) -> Any:
        first = [handle] if handle is not None else []
        filled = outputs if variant.fills else []
        return variant.function(*first, *filled, *given, **passed)

    def dry_run(handle: Any) -> None:
        outputs = [torch.empty(s, dtype=d, device="meta") for s, d in specs[len(mutated) :]]
        call(handle, outputs, [to_meta(x) for x in inputs])

    loaded = None
    way = ways.way(variant.way)
    if device.startswith("cuda") and hasattr(way, "ready"):
        way.ready()
    if variant.source is not None:
        if not hasattr(way, "load"):
            raise OpError(
                f"{op.name}: variant {variant.name!r} names a source, and the way "
                f"{variant.way} takes none; drop source="
            )
        loaded = way.load(ways.Job(op, variant, passed, case, device, arch, dry_run, say, watch))
    handle = loaded.handle if loaded else None
    is_reference = _original(variant.function) is op.reference

    def run(outputs: list[Any], given: list[Any]) -> list[Any]:
        made = call(handle, outputs, given)
        changed = [given[i] for i in mutated]
        if variant.fills:
            return [*changed, *outputs]
        returned = list(made) if isinstance(made, (tuple, list)) else [made]
        if is_reference:  # it returns what its inputs must become, whether or not it changes them
            return returned
        # A function that changes its inputs in place may return nothing more.
        return [*changed, *(r for r in returned if r is not None)] if mutated else returned

    took = Build(seconds=time.monotonic() - start, cached=True)
    return Kernel(
        variant,
        knobs,
        run,
        loaded.build if loaded else took,
        loaded.counters if loaded else None,
        handle,
        call,
    )


def _original(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that torch.compile was given, or the function itself."""
    return getattr(function, "_torchdynamo_orig_callable", function)
