"""Random programs of nested ifs and loops with breaks and continues: as PTX, and by thread."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

VARIABLES = 4
WORD = (1 << 32) - 1


@dataclass
class Step:
    """`%rA = %rA * 3 + %rB + constant`, the one instruction of its line."""

    to: int
    source: int
    constant: int
    line: int = 0


@dataclass
class Jump:
    """break or continue of the loop that it is in."""

    out: bool


@dataclass
class If:
    variable: int
    mask: int
    below: int
    then: list[Node]
    otherwise: list[Node]


@dataclass
class Loop:
    """Runs its body `variable & mask` times, as the variable is at its start."""

    variable: int
    mask: int
    body: list[Node]


Node = Step | Jump | If | Loop


def program(chance: random.Random, jumps: bool, size: int = 14) -> list[Node]:
    left = [size]

    def block(depth: int, loops: int) -> list[Node]:
        made: list[Node] = []
        for _ in range(chance.randint(1, 4)):
            left[0] -= 1
            kind = chance.random()
            variable = chance.randrange(VARIABLES)
            if depth >= 4 or left[0] < 0 or kind < 0.4:
                made.append(Step(variable, chance.randrange(VARIABLES), chance.randrange(99)))
            elif kind < 0.7:
                mask = chance.choice([1, 3, 7, 31])
                other = block(depth + 1, loops) if chance.random() < 0.6 else []
                below = chance.randint(0, mask)
                made.append(If(variable, mask, below, block(depth + 1, loops), other))
            elif kind < 0.85 and loops < 3:
                mask = chance.choice([1, 3])
                made.append(Loop(variable, mask, block(depth + 1, loops + 1)))
            elif loops and jumps:
                made.append(Jump(chance.random() < 0.5))
                return made
        return made

    return block(0, 0)


@dataclass
class Writer:
    """Writes programs one after the other, a line for each step."""

    lines: list[str] = field(default_factory=list)
    labels: int = 0

    def write(self, nodes: list[Node], loop: tuple[str, str] = ("", ""), depth: int = 0) -> None:
        for node in nodes:
            if isinstance(node, Step):
                to, other = f"%r{node.to}", f"%r{node.source}"
                self.lines.append(f"mad.lo.u32 {to}, {to}, 3, {other};")
                node.line = len(self.lines)
                self.lines.append(f"add.u32 {to}, {to}, {node.constant};")
            elif isinstance(node, Jump):
                self.lines.append(f"bra {loop[1] if node.out else loop[0]};")
            elif isinstance(node, If):
                self._if(node, loop, depth)
            else:
                self._loop(node, depth)

    def _if(self, node: If, loop: tuple[str, str], depth: int) -> None:
        self.labels += 1
        otherwise, end = f"E{self.labels}", f"F{self.labels}"
        self.lines.append(
            f"and.b32 %r9, %r{node.variable}, {node.mask}; setp.ge.u32 %p1, %r9, {node.below}; "
            f"@%p1 bra {otherwise};"
        )
        self.write(node.then, loop, depth + 1)
        self.lines.append(f"bra {end};\n{otherwise}:".replace("\n", " "))
        self.write(node.otherwise, loop, depth + 1)
        self.lines.append(f"{end}:")

    def _loop(self, node: Loop, depth: int) -> None:
        self.labels += 1
        head, end = f"H{self.labels}", f"X{self.labels}"
        count, bound = f"%r{10 + 2 * depth}", f"%r{11 + 2 * depth}"
        self.lines += [
            f"mov.b32 {count}, 0; and.b32 {bound}, %r{node.variable}, {node.mask};",
            (
                f"{head}: setp.ge.u32 %p1, {count}, {bound}; "
                f"@%p1 bra {end}; add.u32 {count}, {count}, 1;"
            ),
        ]
        self.write(node.body, (head, end), depth + 1)
        self.lines.append(f"bra {head}; {end}:")


class Left(Exception):
    """A jump on its way out of a loop's body."""


def run_thread(
    nodes: list[Node], values: list[int], seen: Counter[tuple[int, tuple[int, ...]]]
) -> None:
    """Runs one thread; notes (line, iterations of the loops around it) of each step."""

    def block(nodes: list[Node], around: tuple[int, ...]) -> None:
        for node in nodes:
            if isinstance(node, Step):
                values[node.to] = (values[node.to] * 3 + values[node.source] + node.constant) & WORD
                seen[node.line, around] += 1
            elif isinstance(node, Jump):
                raise Left(node.out)
            elif isinstance(node, If):
                taken = values[node.variable] & node.mask < node.below
                block(node.then if taken else node.otherwise, around)
            else:
                for turn in range(values[node.variable] & node.mask):
                    try:
                        block(node.body, (*around, turn))
                    except Left as left:
                        if left.args[0]:
                            break

    block(nodes, ())
