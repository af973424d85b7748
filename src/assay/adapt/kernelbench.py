"""A KernelBench-style pair as an Op: `Model`, `get_inputs`, `get_init_inputs` against `ModelNew`.

Both models are built from one seed; the new one takes the old one's weights where their names and
shapes agree. Truth is the old model in float64.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..errors import TargetError
from ..inputs import Make
from ..op import Op
from ..target import Target
from .ways import way_of

SEED = 0


def op(target: Target, import_file: Callable[[str], ModuleType]) -> Op:
    """The Op of a pair of files. Raises TargetError if one of the four names is missing."""
    old = import_file(target.kernelbench)
    new = import_file(target.file)
    for module, names in ((old, ("Model", "get_inputs")), (new, ("ModelNew",))):
        for name in names:
            if not hasattr(module, name):
                raise TargetError(
                    f"{target.text} --kernelbench {target.kernelbench}: {module.__file__} has no "
                    f"{name}; a pair is Model, get_inputs, get_init_inputs against ModelNew"
                )
    build = _builder(old, new)
    models: dict[tuple[str, torch.device, torch.dtype], torch.nn.Module] = {}

    def run(which: str, values: tuple[Any, ...]) -> Any:
        device, dtype = _where(values)
        if (which, device, dtype) not in models:
            models[which, device, dtype] = build(which, device, dtype)
        return models[which, device, dtype](*values)

    def reference(*values: Any) -> Any:
        return run("Model", values)

    def candidate(*values: Any) -> Any:
        return run("ModelNew", values)

    def inputs(make: Make) -> tuple[Any, ...]:
        torch.manual_seed(make.next_seed())
        return tuple(make.place(value) for value in old.get_inputs())

    made = Op(_name(target), reference, inputs, cases=[{}])
    way = way_of(new.ModelNew)
    candidate.__wrapped__ = new.ModelNew  # type: ignore[attr-defined]
    made.variant("eager/ModelNew" if way == "eager" else f"{way}/ModelNew", layouts="any")(
        candidate
    )
    return made


def _builder(old: ModuleType, new: ModuleType) -> Callable[..., torch.nn.Module]:
    def build(which: str, device: torch.device, dtype: torch.dtype) -> torch.nn.Module:
        # The first call may come under fake tensors, or where float64 is the default: the weights
        # are to be real, and those that float32 draws.
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            with _disable_current_modes():
                return made(which).to(device=device, dtype=dtype).eval()
        finally:
            torch.set_default_dtype(before)

    def made(which: str) -> torch.nn.Module:
        given: list[Any] = list(getattr(old, "get_init_inputs", list)())
        torch.manual_seed(SEED)
        model = old.Model(*copy.deepcopy(given))
        if which == "ModelNew":
            weights = model.state_dict()
            torch.manual_seed(SEED)
            model = new.ModelNew(*copy.deepcopy(given))
            mine = model.state_dict()
            same = {n: w for n, w in weights.items() if n in mine and mine[n].shape == w.shape}
            model.load_state_dict(same, strict=False)
        return model

    return build


def _where(values: tuple[Any, ...]) -> tuple[torch.device, torch.dtype]:
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    floats = [v.dtype for v in tensors if v.is_floating_point()]
    return (
        tensors[0].device if tensors else torch.device("cpu"),
        floats[0] if floats else torch.float32,
    )


def _name(target: Target) -> str:
    from pathlib import Path

    stem = Path(target.file).stem
    return "".join(c if c.isalnum() or c == "_" else "_" for c in stem) or "model"
