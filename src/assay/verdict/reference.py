"""Runs of a reference: what it gives, in its own dtypes or in float64, and of which shapes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ..errors import AssayError, OpError
from ..faults import told
from ..inputs import dtype_name, dtype_of, to_meta
from ..op import Op, call_with
from .perturb import ROUNDOFF


def outputs_of(op: Op, inputs: list[Any]) -> list[torch.Tensor]:
    """The reference's outputs as a list. Raises OpError if it raises or they are no tensors."""
    _seed()
    try:
        made = op.reference(*inputs)
    except (AssayError, torch.cuda.OutOfMemoryError):
        raise
    except Exception as error:
        dtypes = " ".join(dtype_name(x.dtype) for x in inputs if isinstance(x, torch.Tensor))
        raise OpError(f"{op.name}: the reference, on {dtypes}: {told(error)}") from error
    outputs = list(made) if isinstance(made, (tuple, list)) else [made]
    for index, value in enumerate(outputs):
        if not isinstance(value, torch.Tensor):
            raise OpError(
                f"{op.name}: output {index} of the reference is a {type(value).__name__}; "
                "a reference returns a tensor, or a tuple of tensors"
            )
    return outputs


def _seed() -> None:
    """As torch.manual_seed(0), which takes a millisecond for devices that were never used."""
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(0)


def clone(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def widen(value: Any) -> Any:
    """A float tensor in float64, a complex one in complex128; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    wide = torch.complex128 if value.is_complex() else torch.float64
    # A copy even of what is wide already: a reference may work in place.
    return value.to(wide, copy=True) if value.dtype in ROUNDOFF else value.clone()


@contextmanager
def default_float64() -> Iterator[None]:
    """So that 1/2 of integers, or torch.ones(3), is float64 in the reference."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def output_specs(op: Op, inputs: tuple[Any, ...], case: Any) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and dtype of each output, by the Op's word or by what the reference gives."""
    if op.outputs is not None:
        said = call_with(op.outputs, case.values, f"{op.name}: outputs")
        return [(tuple(shape), dtype_of(dtype)) for shape, dtype in said]
    with torch.no_grad():
        try:
            made = outputs_of(op, [clone(x) for x in inputs])
        except OpError as error:  # no such operation for this dtype here? Its shape may be known
            made = _without_values(op, inputs, error)
    return [(tuple(int(s) for s in t.shape), t.dtype) for t in made]


def _without_values(op: Op, inputs: tuple[Any, ...], error: OpError) -> list[torch.Tensor]:
    """The reference's outputs on tensors that hold no values; else raises the first error."""
    try:
        with torch.device("meta"):
            return outputs_of(op, [to_meta(x) for x in inputs])
    except OpError as why:
        if "device" not in str(why):  # else it has tensors of its own, such as constants
            raise error from None
    # Imported only here: it brings torch._dynamo, which would be half of a child's life.
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs]
        try:
            return outputs_of(op, fakes)
        except OpError:
            raise error from None
