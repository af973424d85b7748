"""The contract of a call: inputs left alone, memory of its own, a true fake, right values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ..faults import told
from ..verdict.compare import same_values
from .subject import Subject, Wrong, beyond, copies, layouts

REPEATS = 5


def arranged(subject: Subject) -> Iterator[tuple[str, list[Any]]]:
    """The inputs as given, then with one tensor at a time in each other layout."""
    yield "", copies(subject.inputs)
    for place, (name, x) in enumerate(zip(subject.names, subject.inputs)):
        if not isinstance(x, torch.Tensor):
            continue
        for kind, made in layouts(x):
            if name in subject.mutates and kind in ("expanded", "broadcast"):
                continue  # nothing can be written to it
            inputs = copies(subject.inputs)
            inputs[place] = made
            yield f"{name} {kind}, stride {tuple(made.stride())}: ", inputs


def inputs_unchanged(subject: Subject) -> Wrong | None:
    """No input changes but those that are declared (O3)."""
    for where, inputs in arranged(subject):
        before = copies(inputs)
        subject.outputs(inputs)
        for name, one, other in zip(subject.names, before, inputs):
            if name not in subject.mutates and not same_values(one, other):
                return Wrong(
                    "changed its input",
                    f"{where}{name}, not declared",
                    f'declare it: mutates_args=("{name}",), or Tensor(a!) {name} in its schema',
                )
    return None


def aliasing(subject: Subject) -> Wrong | None:
    """No output lies in the memory of an input or of another output."""
    inputs = copies(subject.inputs)
    made = subject.outputs(inputs)[len(subject.mutated) :]
    known = [(n, x) for n, x in zip(subject.names, inputs) if isinstance(x, torch.Tensor)]
    for index, value in enumerate(made):
        if not isinstance(value, torch.Tensor):
            continue
        for name, other in known:
            if value.numel() and _block(value) == _block(other):
                return Wrong(
                    "shares memory",
                    f"output {index} lies in the memory of {name}",
                    "return a clone, or declare the view in the schema: Tensor(a) -> Tensor(a)",
                )
        known.append((f"output {index}", value))
    return None


def _block(value: torch.Tensor) -> int:
    return value.untyped_storage().data_ptr()


def fake(subject: Subject) -> Wrong | None:
    """What torch.compile plans with equals what comes: shape, dtype, strides, device (O1, O2)."""
    for where, inputs in arranged(subject):
        real = subject.outputs(copies(inputs))
        try:
            planned = faked(subject, inputs)
        except Exception as error:  # noqa: BLE001 - a fake is the operator's own code
            return Wrong(
                "not supported",
                f"{where}its fake raises {told(error)}",
                "register one that gives each output's shape from the inputs': register_fake",
            )
        found = unlike(real, planned)
        if found is not None:
            return Wrong(found.word, where + found.detail, found.advice)
    return None


def faked(subject: Subject, inputs: list[Any]) -> list[Any]:
    """The outputs for tensors without values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        given = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs]
        return subject.outputs(given)


def unlike(real: list[Any], planned: list[Any]) -> Wrong | None:
    """How fake outputs differ from real ones."""
    if len(real) != len(planned):
        return Wrong("wrong shape", f"{len(real)} outputs, and its fake gives {len(planned)}")
    for index, (one, other) in enumerate(zip(real, planned)):
        if not isinstance(one, torch.Tensor):
            continue
        name = f"output {index}: " if len(real) > 1 else ""
        for word, mine, said in (
            ("wrong shape", tuple(one.shape), tuple(other.shape)),
            ("wrong dtype", one.dtype, other.dtype),
            ("wrong device", one.device, other.device),
        ):
            if mine != said:
                return Wrong(word, f"{name}real {mine}, fake {said}", "correct its fake")
        if _strides(one) != _strides(other):
            return Wrong(
                "wrong strides",
                f"{name}real {tuple(one.stride())}, fake {tuple(other.stride())}",
                "make them the same: compiled code reads by the fake's strides",
            )
    return None


def _strides(value: torch.Tensor) -> list[int]:
    """Strides that matter: along a dimension of one element there is no step."""
    if not value.numel():
        return []
    return [step for size, step in zip(value.shape, value.stride()) if size != 1]


def right_values(subject: Subject) -> Wrong | None:
    """Close to the reference in float64, for every layout of the inputs; else to its own."""
    for where, inputs in arranged(subject):
        got = subject.outputs(copies(inputs))
        if subject.reference is None:
            plain = [x.contiguous() if isinstance(x, torch.Tensor) else x for x in inputs]
            right = subject.outputs(copies(plain))
            usual: list[Any] = right
        else:
            right, usual = subject.truth(inputs), subject.eager(inputs)
        if len(got) != len(right):
            return Wrong("wrong shape", f"{len(got)} outputs, the reference has {len(right)}")
        for index, (one, truth, eager) in enumerate(zip(got, right, usual)):
            name = f"output {index}: " if len(got) > 1 else ""
            if one.dtype != eager.dtype:
                return Wrong("wrong dtype", f"{where}{name}{one.dtype}, reference {eager.dtype}")
            found = beyond(one, truth, eager)
            if found:
                return Wrong("wrong value", f"{where}{name}{found}")
    return None


def repeats(subject: Subject) -> Wrong | str | None:
    """Equal inputs give equal bits; if not, how many results there are (O6)."""
    runs = [subject.outputs(copies(subject.inputs)) for _ in range(REPEATS)]
    return spread(subject, runs, "")


def spread(subject: Subject, runs: list[list[Any]], what: str) -> Wrong | str | None:
    """Nothing if all runs agree bit for bit, else their number and spread."""
    kinds: list[list[Any]] = []
    for run in runs:
        if not any(all(same_values(a, b) for a, b in zip(run, kind)) for kind in kinds):
            kinds.append(run)
    if len(kinds) == 1:
        return None
    widest = max(
        float((a.double() - b.double()).abs().max())
        for kind in kinds[1:]
        for a, b in zip(kinds[0], kind)
        if a.numel()
    )
    said = f"{what}{len(runs)} equal calls gave {len(kinds)} results, up to {widest:.2g} apart"
    if subject.deterministic:
        return Wrong("not the same twice", said, "fix the order of sums: no atomics")
    return said
