"""Steps as lines of torch, CUDA C++ and Triton."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .expression import Chain, Step, Value
from .functions import FUNCTIONS, TRUTH


def torch_lines(steps: Sequence[Step]) -> list[str]:
    """`t0 = b * c`: what eager runs, a kernel each."""
    return [f"{s.name} = {_filled(FUNCTIONS[s.function].torch, s.takes, repr)}" for s in steps]


def cuda_lines(steps: Sequence[Step]) -> Iterator[str]:
    """`const A t0 = b * c;`."""
    for step in steps:
        function = FUNCTIONS[step.function]
        kind = "bool" if function.gives == TRUTH else "A"
        yield f"const {kind} {step.name} = {_filled(function.cuda, step.takes, _number)};"


def triton_lines(steps: Sequence[Step]) -> Iterator[str]:
    """`t0 = b * c`, on blocks of values in registers."""
    for step in steps:
        yield f"{step.name} = {_filled(FUNCTIONS[step.function].triton, step.takes, repr)}"


def needed(chain: Chain, results: Sequence[Value]) -> list[Step]:
    """The steps that these results need, in order."""
    wanted, found = {value for value in results if isinstance(value, str)}, []
    for step in reversed(chain.steps):
        if step.name in wanted:
            found.append(step)
            wanted |= {value for value in step.takes if isinstance(value, str)}
    return found[::-1]


def _number(value: float) -> str:
    return f"A({value!r})"


def _filled(text: str, takes: Sequence[Value], number: object) -> str:
    assert callable(number)
    return text.format(*(v if isinstance(v, str) else _held(number(v)) for v in takes))


def _held(text: str) -> str:
    """A negative number in brackets."""
    return f"({text})" if text.startswith("-") else text
