"""What the cases of an Op and dtype would notice: which wrong answers die in at least one of them.

A mutant that is within one rounding of the truth in a case is equivalent there, and says nothing.
What a kernel returns that computes nothing is excused by no case, unless the Op itself is so: no
other data was found on which a copy, or a constant, would be wrong. Small cases are asked first,
and each mutant only until it dies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..errors import OpError
from ..inputs import Make, inputs_of
from ..op import Op, supported
from ..types import Case, Strength
from .budget import ROUNDOFF, Expected, arithmetic, expect
from .compare import within
from .mutants import Mutant, Outputs, Right, mutants
from .reference import clone, output_specs
from .zoo import size_names

MOST = 1 << 20
"""Size of a case from which only what is still in doubt is asked."""
MANY = 64
"""Elements of an answer that has rows, a tail and a middle."""
DEAD, EQUIVALENT, LIVES = "dead", "equivalent", "lives"
Truth = Callable[[Case, int], tuple[tuple[Any, ...], Expected]]
"""Inputs, where the truth is, and truth of a case under a seed."""


def strengths(op: Op, cases: list[Case], seed: int, truth: Truth) -> list[Strength]:
    """The strength of each dtype's cases."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        if not supported(op, case):
            groups.setdefault(str(case.values.get("dtype", "")), []).append(case)
    return [_Set(op, dtype, mine, seed, truth).strength() for dtype, mine in groups.items()]


class _Set:
    """The cases of one dtype, and what became of each mutant."""

    def __init__(self, op: Op, dtype: str, cases: list[Case], seed: int, truth: Truth):
        self.op, self.dtype, self.seed, self.truth = op, dtype, seed, truth
        self.cases = sorted(cases, key=size_of)
        self.killed: dict[str, str] = {}
        self.fates: dict[str, set[str]] = {}
        """What became of a mutant in the cases asked; empty where there is no such answer."""
        self.constant: list[float | None] = []
        self.many = False
        """Whether a case was asked whose answer has many elements: what no mutant could be made
        of there, such as a second output, it can be made of nowhere."""

    def strength(self) -> Strength:
        start = time.perf_counter()
        names = self.op.input_names(len(self.truth(self.cases[0], self.seed)[0]))
        every = mutants(self.op, names)
        for number, case in enumerate(self.cases):
            left = [m for m in every if self._open(m)]
            if number and size_of(case) > MOST:
                left = [m for m in left if self._in_doubt(m)]
            if left:
                self._ask(case, left)
        doubted = [m for m in every if self._lives(m)]
        alive, suggestion = Probe(self, doubted).told() if doubted else ([], "")
        return Strength(
            op=self.op.name,
            dtype=self.dtype,
            killed=self.killed,
            alive=tuple(m.name for m in alive),
            allowed=tuple(m.name for m in every if m.fine and LIVES in self._fate(m)),
            equivalent=tuple(m.name for m in every if self._is_same(m) and m not in alive),
            suggestion=suggestion,
            seconds=time.perf_counter() - start,
        )

    def _fate(self, mutant: Mutant) -> set[str]:
        if mutant.name in self.killed:
            return {DEAD}
        return self.fates.get(mutant.name, set())

    def _lives(self, mutant: Mutant) -> bool:
        fate = self._fate(mutant)
        if mutant.idle:
            return bool(fate) and DEAD not in fate
        return not mutant.fine and LIVES in fate

    def _is_same(self, mutant: Mutant) -> bool:
        """Whether nothing told it from the right answer, and nothing had to."""
        return self._fate(mutant) == {EQUIVALENT} or (mutant.idle and self._lives(mutant))

    def _open(self, mutant: Mutant) -> bool:
        """Whether another case can tell more: it has not died, and there is such an answer."""
        fate = self._fate(mutant)
        return DEAD not in fate and (bool(fate) or not self.many)

    def _in_doubt(self, mutant: Mutant) -> bool:
        """Whether a large case is worth its time for this mutant."""
        if mutant.fine or mutant.heavy:
            return False
        return mutant.idle or self._fate(mutant) != {EQUIVALENT}

    def _ask(self, case: Case, left: list[Mutant]) -> None:
        first: Right | None = None
        for seed in (self.seed, self.seed + 1):
            right = self._right(*self.truth(case, seed), first)
            first = first or right
            self.many |= sum(out.numel() for out in right.outputs) >= MANY
            for mutant in left:
                if mutant.name in self.killed or (mutant.heavy and right is not first):
                    continue
                fate = fate_of(right, mutant)
                if fate == DEAD:
                    self.killed[mutant.name] = case.label
                elif fate:
                    self.fates.setdefault(mutant.name, set()).add(fate)

    def _right(self, inputs: tuple[Any, ...], expected: Expected, first: Right | None) -> Right:
        right = right_of(self.op, inputs, expected, first, self.constant)
        if all(value is None for value in self.constant):
            self.constant[:] = [_mean(out) for out in right.outputs]
        return right


def size_of(case: Case) -> int:
    """A guess at how large a case is: the product of its counts."""
    total = 1
    for value in case.values.values():
        if isinstance(value, int) and not isinstance(value, bool):
            total *= max(1, value)
    return total


def right_of(
    op: Op,
    inputs: tuple[Any, ...],
    expected: Expected,
    first: Right | None,
    constant: list[float | None],
) -> Right:
    """The truth as a kernel would return it."""
    outputs = [t.to(dtype).contiguous() for t, dtype in zip(expected.truth, expected.dtypes)]
    return Right(op, inputs, expected, outputs, first, constant)


def _mean(out: torch.Tensor) -> float | None:
    """The mean of what is finite, as the output's dtype can hold it; None without any."""
    real = out.real if out.is_complex() else out
    wide = real.to(torch.float64)
    finite = wide[wide.isfinite()]
    if not finite.numel():
        return None
    mean = float(finite.mean())
    return mean if out.dtype in ROUNDOFF else float(round(mean))


def fate_of(right: Right, mutant: Mutant) -> str:
    """Whether the check would notice: dead, equivalent, lives; empty without such an answer."""
    made = mutant.make(right)
    if made is None:
        return ""
    if not passes(right, made):
        return DEAD
    if right.op.accept is not None and mutant.name not in ALWAYS_WRONG:
        return EQUIVALENT  # what `accept` takes is right
    same = all(one_rounding(m, out) for m, out in zip(made, right.outputs))
    return EQUIVALENT if same else LIVES


ALWAYS_WRONG = ("zeros", "one constant")


def passes(right: Right, made: Outputs) -> bool:
    """Whether these outputs would be judged right."""
    op = right.op
    if op.accept is not None:
        try:
            answer = op.accept([m.cpu() for m in made], [_home(x) for x in right.inputs])
        except Exception:  # noqa: BLE001 - a function that fails on an answer does not accept it
            return False
        return answer is True
    roundoff = arithmetic([x.dtype for x in right.inputs if isinstance(x, torch.Tensor)], "")
    return all(
        within(m, truth, right.expected.allowed(index, roundoff, op.limit))
        for index, (m, truth) in enumerate(zip(made, right.expected.truth))
    )


def _home(value: Any) -> Any:
    return value.cpu().clone() if isinstance(value, torch.Tensor) else clone(value)


def one_rounding(made: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether each element is the right one or its neighbour in the dtype."""
    if made.dtype not in ROUNDOFF:
        return torch.equal(made, right)
    wide = torch.complex128 if made.is_complex() else torch.float64
    one, two = made.to(wide), right.to(wide)
    step = 2 * ROUNDOFF[made.dtype] * two.abs() + torch.finfo(made.dtype).tiny
    near = (one - two).abs() <= step
    return bool((near | (one == two) | (one.isnan() & two.isnan())).all())


class Probe:
    """Looks for data that would tell living mutants from the right answer."""

    def __init__(self, mine: _Set, alive: list[Mutant]):
        self.op, self.seed, self.alive = mine.op, mine.seed, alive
        self.set = mine
        sized = [(case, inputs_of(mine.op, case, mine.seed)) for case in mine.cases]
        full = [pair for pair in sized if any(_numel(x) for x in pair[1])]
        self.case, self.inputs = (full or sized)[0]
        self.deaths: dict[str, str] = {}
        """What kills a mutant, in words."""

    def told(self) -> tuple[list[Mutant], str]:
        """The mutants that prove the check weak, and what would make it stronger.

        A copy or a constant that nothing kills is what the Op computes.
        """
        for text, case, inputs, limited in self._tries():
            self._try(text, case, inputs, limited)
            if len(self.deaths) == len(self.alive):
                break
        op = self.op
        weak = [m for m in self.alive if m.name in self.deaths or not m.idle or m.name == "zeros"]
        found = list(dict.fromkeys(self.deaths.values()))
        if not weak:
            return [], ""
        if not found:
            return weak, f"choose inputs on which {op.name} gives other answers"
        return weak, f"{found[0]} would tell {'it' if len(weak) == 1 else 'them'} apart"

    def _tries(self) -> Iterator[tuple[str, Case, tuple[Any, ...], bool]]:
        if self.op.limit is not None:
            yield f"a limit smaller than {self.op.limit:g}", self.case, self.inputs, False
        names = self.op.input_names(len(self.inputs))
        constant = [i for i, x in enumerate(self.inputs) if _numel(x) and _is_constant(x)]
        others = [i for i, x in enumerate(self.inputs) if _numel(x) and i not in constant]
        for index in (*constant, *others):
            made, how = _drawn(self.inputs[index], self.seed + index)
            text = f"values drawn from {how} in `{names[index]}`"
            yield text, self.case, _with(self.inputs, {index: made}), True
        every = {i: _drawn(self.inputs[i], self.seed + i)[0] for i in (*constant, *others)}
        said = " and ".join(f"`{names[i]}`" for i in every)
        yield f"random values in {said}", self.case, _with(self.inputs, every), True
        yield from self._larger()

    def _larger(self) -> Iterator[tuple[str, Case, tuple[Any, ...], bool]]:
        largest = self.set.cases[-1]
        sizes = [n for n in size_names(self.op, largest, self.seed) if size_of(largest) < MOST]
        grown = {n: max(LARGER, int(largest.values[n])) for n in sizes}
        if any(grown[n] != largest.values[n] for n in grown):
            case = Case({**largest.values, **grown}, largest.seed)
            said = " ".join(f"{n}={v}" for n, v in grown.items())
            try:
                yield f"a case of {said}", case, inputs_of(self.op, case, self.seed), True
            except OpError:
                return  # the Op makes no such case

    def _try(self, text: str, case: Case, inputs: tuple[Any, ...], limited: bool) -> None:
        op = self.op
        try:
            expected = expect(op, inputs, output_specs(op, inputs, case))
        except OpError:
            return  # the reference does not take it
        right = right_of(op, inputs, expected, None, self.set.constant)
        left = [m for m in self.alive if m.name not in self.deaths]
        for mutant in left:
            made = mutant.make(right)
            if made is None:
                continue
            noticed = (
                not passes(right, made)
                if limited
                else not all(one_rounding(m, out) for m, out in zip(made, right.outputs))
            )
            if noticed:
                self.deaths[mutant.name] = text


LARGER = 16


def _numel(value: Any) -> int:
    return value.numel() if isinstance(value, torch.Tensor) else 0


def _is_constant(x: torch.Tensor) -> bool:
    flat = x.reshape(-1)
    return bool(((flat == flat[0]) | (flat.isnan() & flat[0].isnan())).all())


def _drawn(x: torch.Tensor, seed: int) -> tuple[torch.Tensor, str]:
    """Random values in the shape and dtype of an input, and what they are drawn from."""
    make = Make(seed)
    if x.dtype is torch.bool:
        return make.booleans(tuple(x.shape)), "booleans()"
    if x.is_complex():
        parts = make.normal(tuple(x.shape)), make.normal(tuple(x.shape))
        return torch.complex(*parts).to(x.dtype), "normal()"
    if x.is_floating_point():
        return make.normal(tuple(x.shape), dtype=x.dtype), "normal()"
    return make.integers(tuple(x.shape), dtype=x.dtype), "integers()"


def _with(inputs: tuple[Any, ...], changed: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(changed.get(i, x) for i, x in enumerate(inputs))
