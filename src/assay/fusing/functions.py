"""The functions that a chain may hold, and how each way spells them.

Numbers are computed in float32, or float64 where the data is. Spellings are the accurate ones:
what follows in the chain may take the difference of two results that are nearly equal.
"""

from __future__ import annotations

from dataclasses import dataclass

NUMBER, TRUTH = "number", "truth"


@dataclass(frozen=True)
class Function:
    """One step of a chain; {0}, {1}, {2} stand for what it takes."""

    torch: str
    cuda: str
    triton: str
    takes: str = NUMBER
    gives: str = NUMBER
    count: int = 1
    """How many values it takes."""


def _both(text: str, count: int = 2, gives: str = NUMBER) -> Function:
    return Function(text, text, text, gives=gives, count=count)


FUNCTIONS: dict[str, Function] = {
    # arithmetic
    "add": _both("{0} + {1}"),
    "sub": _both("{0} - {1}"),
    "mul": _both("{0} * {1}"),
    "div": _both("{0} / {1}"),
    "neg": _both("-{0}", 1),
    "pow2": Function("{0} ** 2", "{0} * {0}", "{0} * {0}"),
    "pow3": Function("{0} ** 3", "{0} * {0} * {0}", "{0} * {0} * {0}"),
    "pow4": Function("{0} ** 4", "({0} * {0}) * ({0} * {0})", "({0} * {0}) * ({0} * {0})"),
    # mathematics
    "exp": Function("torch.exp({0})", "exp({0})", "tl.exp({0})"),
    "log": Function("torch.log({0})", "log({0})", "libdevice.log({0})"),
    "sqrt": Function("torch.sqrt({0})", "sqrt({0})", "libdevice.sqrt({0})"),
    "rsqrt": Function("torch.rsqrt({0})", "A(1) / sqrt({0})", "1 / libdevice.sqrt({0})"),
    "sin": Function("torch.sin({0})", "sin({0})", "libdevice.sin({0})"),
    "cos": Function("torch.cos({0})", "cos({0})", "libdevice.cos({0})"),
    "tanh": Function("torch.tanh({0})", "tanh({0})", "libdevice.tanh({0})"),
    "erf": Function("torch.erf({0})", "erf({0})", "libdevice.erf({0})"),
    "sigmoid": Function(
        "torch.sigmoid({0})", "A(1) / (A(1) + exp(-{0}))", "1 / (1 + tl.exp(-{0}))"
    ),
    "abs": Function("torch.abs({0})", "fabs({0})", "tl.abs({0})"),
    "floor": Function("torch.floor({0})", "floor({0})", "libdevice.floor({0})"),
    # A NaN wins, as in torch.
    "maximum": Function(
        "torch.maximum({0}, {1})",
        "({0} != {0} || {0} > {1} ? {0} : {1})",
        "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
        count=2,
    ),
    "minimum": Function(
        "torch.minimum({0}, {1})",
        "({0} != {0} || {0} < {1} ? {0} : {1})",
        "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
        count=2,
    ),
    # relations
    **{
        name: _both(f"{{0}} {sign} {{1}}", 2, TRUTH)
        for name, sign in dict(lt="<", le="<=", gt=">", ge=">=", eq="==", ne="!=").items()
    },
    # logic
    "and": Function("{0} & {1}", "{0} && {1}", "{0} & {1}", TRUTH, TRUTH, 2),
    "or": Function("{0} | {1}", "{0} || {1}", "{0} | {1}", TRUTH, TRUTH, 2),
    "not": Function("~{0}", "!{0}", "{0} == 0", TRUTH, TRUTH, 1),
    # takes a truth and two numbers
    "where": Function(
        "torch.where({0}, {1}, {2})", "({0} ? {1} : {2})", "tl.where({0}, {1}, {2})", count=3
    ),
}
NAMED = tuple(name for name, one in FUNCTIONS.items() if one.torch.startswith("torch."))
"""Those that a formula calls by name."""
