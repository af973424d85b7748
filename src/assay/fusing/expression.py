"""A formula in Python's spelling to steps, each a function of inputs, numbers and earlier steps."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ..errors import AssayError
from .functions import FUNCTIONS, NAMED, NUMBER, TRUTH

Value = str | float
"""The name of an input or step, or a number."""
ARITHMETIC: dict[type, tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
}
RELATIONS: dict[type, str] = {
    **{ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"},
    **{ast.Eq: "eq", ast.NotEq: "ne"},
}
POWERS = {2.0: "pow2", 3.0: "pow3", 4.0: "pow4", 0.5: "sqrt", -0.5: "rsqrt"}
RESERVED = {
    *(
        "y",
        "n",
        "k",
        "i",
        "dy",
        "kept",
        "wide",
        "widened",
        "tile",
        "kernel",
        "torch",
        "assay",
        "tl",
        "triton",
    ),
    *("libdevice", "A", "T", "BLOCK", "UNROLL", "make", "dtype", "bool", "float", "double", "int"),
}
"""Names of the generated files."""
MOST_INPUTS = 6
"""As many as include/elementwise.cuh maps."""


@dataclass(frozen=True)
class Step:
    """One function of the chain."""

    name: str
    function: str
    takes: tuple[Value, ...]


@dataclass
class Chain:
    """Inputs, and steps in order; the last one is the result."""

    text: str
    inputs: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def kind(self, value: Value) -> str:
        """Number or truth."""
        for step in self.steps:
            if step.name == value:
                return FUNCTIONS[step.function].gives
        return NUMBER

    def add(self, function: str, *takes: Value) -> str:
        """The name of a step; the one that is there if it does the same."""
        for step in self.steps:
            if (step.function, step.takes) == (function, takes):
                return step.name
        name = f"t{len(self.steps)}"
        self.steps.append(Step(name, function, takes))
        return name

    @property
    def result(self) -> str:
        return self.steps[-1].name

    @property
    def gives(self) -> str:
        """Number or truth."""
        return FUNCTIONS[self.steps[-1].function].gives


def parse(text: str) -> Chain:
    """The chain of a formula such as `sigmoid(a + b * c)`. Raises AssayError with the place."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise _refused(text, (error.offset or 1) - 1, error.msg) from None
    chain = Chain(text)
    found = _value(chain, tree.body)
    if not chain.steps or not isinstance(found, str) or not chain.inputs:
        raise _refused(text, 0, "there is no function of an input in it")
    if chain.steps[-1].name != found:  # what another step needed was there already
        chain.steps.append(
            chain.steps.pop(next(i for i, s in enumerate(chain.steps) if s.name == found))
        )
    return chain


def _refused(text: str, place: int, why: str) -> AssayError:
    return AssayError(f"fusing {text!r}: {why}, at {text[place : place + 12]!r}")


def _value(chain: Chain, node: ast.expr) -> Value:
    def no(why: str) -> AssayError:
        return _refused(chain.text, node.col_offset, why)

    match node:
        case ast.Constant(value=bool()):
            raise no("a formula has numbers and comparisons, not True or False")
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.Name(id=name):
            return _input(chain, name, no)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(chain, _value(chain, left), _value(chain, right), no)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            name, folded = ARITHMETIC[type(op)]
            return _step(chain, name, [_value(chain, left), _value(chain, right)], no, folded)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
            name = "and" if isinstance(op, ast.BitAnd) else "or"
            return _step(chain, name, [_value(chain, left), _value(chain, right)], no)
        case ast.BoolOp(op=op, values=values):
            name = "and" if isinstance(op, ast.And) else "or"
            found = _value(chain, values[0])
            for other in values[1:]:
                found = _step(chain, name, [found, _value(chain, other)], no)
            return found
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _value(chain, operand)
            return -value if isinstance(value, float) else _step(chain, "neg", [value], no)
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return _step(chain, "not", [_value(chain, operand)], no)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in RELATIONS:
            return _step(
                chain, RELATIONS[type(op)], [_value(chain, left), _value(chain, right)], no
            )
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in NAMED:
            return _step(chain, name, [_value(chain, arg) for arg in args], no)
        case ast.Call():
            raise no(f"there are no functions but {', '.join(NAMED)}")
    raise no("this is no part of a formula (+ - * / **, comparisons, and or not, calls)")


def _input(chain: Chain, name: str, no: Callable[[str], AssayError]) -> str:
    if name in RESERVED or name in FUNCTIONS or re.fullmatch(r"t\d+", name):
        raise no(f"the generated file uses the name {name} itself")
    if name not in chain.inputs:
        chain.inputs.append(name)
        if len(chain.inputs) > MOST_INPUTS:
            raise no(f"more than {MOST_INPUTS} inputs")
    return name


def _power(chain: Chain, base: Value, exponent: Value, no: Callable[[str], AssayError]) -> Value:
    if isinstance(base, float) and isinstance(exponent, float):
        return float(base**exponent)
    if exponent == 1.0:
        return base
    if not isinstance(exponent, float) or exponent not in POWERS:
        raise no("of powers there are 2, 3, 4, 0.5 and -0.5; others are exp(b * log(a))")
    return _step(chain, POWERS[exponent], [base], no)


def _step(
    chain: Chain,
    name: str,
    takes: list[Value],
    no: Callable[[str], AssayError],
    folded: Callable[[float, float], float] | None = None,
) -> Value:
    if folded is not None and all(isinstance(value, float) for value in takes):
        try:
            made = folded(*map(float, takes))
        except ZeroDivisionError:
            raise no("a division by zero") from None
        if not math.isfinite(made):
            raise no("a number that is not finite")
        return made
    function = FUNCTIONS[name]
    if len(takes) != function.count:
        raise no(f"{name} takes {function.count} values, not {len(takes)}")
    kinds = [TRUTH, NUMBER, NUMBER] if name == "where" else [function.takes] * len(takes)
    for value, kind in zip(takes, kinds):
        if chain.kind(value) != kind:
            said = (
                "where(a > 0, b, 0) makes a number of a comparison" if kind == NUMBER else "compare"
            )
            raise no(f"{name} takes a {kind} here: {said}")
    if all(isinstance(value, float) for value in takes[1 if name == "where" else 0 :]):
        raise no(f"{name} of numbers alone")
    if name in ("maximum", "minimum") and any(isinstance(value, float) for value in takes):
        raise no(f"{name} with a number: write where(a > 0, a, 0), and say so what a NaN becomes")
    return chain.add(name, *takes)
