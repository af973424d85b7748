"""From a recorded call to a plan of the C++ module: what `Table.add` is given, and who answers it.

All that the module takes for usual comes from ordinary.py, and what it calls of CUDA is handed to
it by address, so that it runs as well on the CPU with another function in the driver's place.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ...ways.launch import refused
from ..autograd import Rules
from ..ordinary import LEVEL, PLAIN, TYPES, USUAL
from ..replay import Replay
from . import KINDS


@dataclass(frozen=True, slots=True)
class Kept:
    """What a backward reads, as the `ctx` of a torch.autograd.Function has it."""

    floating: list[int]
    plain: list[Any]
    saved_tensors: tuple[torch.Tensor, ...]
    needs_input_grad: tuple[bool, ...]


def addresses() -> tuple[int, int, int]:
    """cuLaunchKernel, torch's current stream, and the current device (0: torch is asked).

    Raises OSError or AttributeError for what there is not.
    """
    cuda = ctypes.CDLL("libcuda.so.1")
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cuda.so"))
    return _address(cuda.cuLaunchKernel), _address(library.aoti_torch_get_current_cuda_stream), 0


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def table(
    module: Any,
    kinds: Sequence[str],
    rules: Rules,
    missed: Callable[[tuple[Any, ...]], Any],
    elsewhere: object,
    most: int,
) -> Any:
    """The table of one operator, without plans yet.

    missed: does a call that it has no plan for. elsewhere: its answer for one that is not ordinary.
    Raises OSError or AttributeError where a function of CUDA or torch is missing.
    """

    def backward(noted: Any, saved: Any, needs: Any, grads: Any) -> Any:
        floating, plain = noted
        return rules.backward(Kept(floating, plain, saved, needs), *grads)

    return module.Table(
        "".join(KINDS[kind] for kind in kinds),
        rules.op.name,
        tuple(USUAL),
        tuple(PLAIN),
        TYPES,
        LEVEL,
        missed,
        elsewhere,
        refused,
        backward if rules.gradient is not None else None,
        addresses(),
        most,
    )


def added(made: Any, rules: Rules, inputs: Sequence[Any], replay: Replay) -> bool:
    """Whether a table serves inputs of this form from now on."""
    outputs = tuple((shape, dtype) for shape, _, dtype in replay.outputs)
    places = rules.places(len(inputs), len(outputs))
    plain: list[Any] = []
    saves: list[tuple[bool, int]] = []
    for is_output, i in places:
        tensor = is_output or isinstance(inputs[i], torch.Tensor)
        plain.append(None if tensor else inputs[i])
        if tensor:
            saves.append((is_output, i))
    floating = [i for i, (_, d) in enumerate(outputs) if d.is_floating_point or d.is_complex]
    launches = tuple(launch.parts() for launch in replay.launches)
    noted = (floating, plain)
    given = (tuple(inputs), replay.device, outputs, launches, tuple(saves), noted, replay)
    return bool(made.add(given))
