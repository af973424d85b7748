"""The gradient of a chain: the chain rule from the last step back to the inputs, as more steps."""

from __future__ import annotations

import math
from collections.abc import Callable

from .expression import Chain, Value
from .functions import NUMBER

INCOMING = "dy"
Rule = Callable[[Chain, str, str, tuple[Value, ...]], tuple[Value | None, ...]]
"""Chain, the gradient that comes, the step's own result, and what it took: a gradient each."""


def gradient(chain: Chain) -> tuple[Chain, dict[str, Value]]:
    """The steps of forward and backward together, and the gradient of each input.

    An input that the result does not depend on smoothly (floor, comparisons) gets 0.0. Where two
    values are equal, maximum and minimum give half to each, and abs gives 0, as torch does.
    """
    made = Chain(chain.text, list(chain.inputs), list(chain.steps))
    coming: dict[Value, Value] = {chain.result: INCOMING}
    for step in reversed(chain.steps):
        given = coming.get(step.name)
        if given is None or step.function not in RULES:
            continue
        parts = RULES[step.function](made, str(given), step.name, step.takes)
        for value, part in zip(step.takes, parts):
            if isinstance(value, str) and part is not None and chain.kind(value) == NUMBER:
                known = coming.get(value)
                coming[value] = part if known is None else made.add("add", known, part)
    return made, {name: coming.get(name, 0.0) for name in chain.inputs}


def _times(c: Chain, *values: Value) -> Value:
    found = values[0]
    for value in values[1:]:
        found = c.add("mul", found, value)
    return found


def _larger(sign: str, other: str) -> Rule:
    """Of maximum (gt, lt) and minimum (lt, gt)."""

    def rule(c: Chain, g: str, y: str, x: tuple[Value, ...]) -> tuple[Value, ...]:
        tie = c.add("where", c.add("eq", *x), _times(c, g, 0.5), 0.0)
        return (c.add("where", c.add(sign, *x), g, tie), c.add("where", c.add(other, *x), g, tie))

    return rule


def _abs(c: Chain, g: str, y: str, x: tuple[Value, ...]) -> tuple[Value, ...]:
    below = c.add("where", c.add("lt", x[0], 0.0), c.add("neg", g), 0.0)
    return (c.add("where", c.add("gt", x[0], 0.0), g, below),)


RULES: dict[str, Rule] = {
    "add": lambda c, g, y, x: (g, g),
    "sub": lambda c, g, y, x: (g, c.add("neg", g)),
    "mul": lambda c, g, y, x: (_times(c, g, x[1]), _times(c, g, x[0])),
    "div": lambda c, g, y, x: (
        c.add("div", g, x[1]),
        c.add("neg", c.add("div", _times(c, g, y), x[1])),
    ),
    "neg": lambda c, g, y, x: (c.add("neg", g),),
    "pow2": lambda c, g, y, x: (_times(c, g, 2.0, x[0]),),
    "pow3": lambda c, g, y, x: (_times(c, g, 3.0, c.add("pow2", x[0])),),
    "pow4": lambda c, g, y, x: (_times(c, g, 4.0, c.add("pow3", x[0])),),
    "exp": lambda c, g, y, x: (_times(c, g, y),),
    "log": lambda c, g, y, x: (c.add("div", g, x[0]),),
    "sqrt": lambda c, g, y, x: (c.add("div", _times(c, g, 0.5), y),),
    "rsqrt": lambda c, g, y, x: (_times(c, g, -0.5, c.add("pow3", y)),),
    "sin": lambda c, g, y, x: (_times(c, g, c.add("cos", x[0])),),
    "cos": lambda c, g, y, x: (c.add("neg", _times(c, g, c.add("sin", x[0]))),),
    "tanh": lambda c, g, y, x: (_times(c, g, c.add("sub", 1.0, c.add("pow2", y))),),
    "erf": lambda c, g, y, x: (
        _times(c, g, 2 / math.sqrt(math.pi), c.add("exp", c.add("neg", c.add("pow2", x[0])))),
    ),
    "sigmoid": lambda c, g, y, x: (_times(c, g, y, c.add("sub", 1.0, y)),),
    "abs": _abs,
    "maximum": _larger("gt", "lt"),
    "minimum": _larger("lt", "gt"),
    "where": lambda c, g, y, x: (
        None,
        c.add("where", x[0], g, 0.0),
        c.add("where", x[0], 0.0, g),
    ),
}
