"""Control flow of a kernel: blocks, where lanes meet again, which registers outlive a block."""

from __future__ import annotations

from dataclasses import dataclass, field

from .faults import NotCheckable
from .ptx import Function, Instruction, Label

ENDS = frozenset({"bra", "brx", "ret", "exit", "trap"})


@dataclass
class Block:
    """Instructions that are entered only at the first and left only after the last."""

    index: int
    instructions: list[Instruction] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    depth: int = 0
    """In the tree of post-dominators; the exit has 0."""
    above: int = 0
    """Its parent there: where all ways on from it meet first."""

    @property
    def only_ends(self) -> bool:
        """Whether nothing is done in it but to end."""
        return all(item.opcode in ("ret", "exit") for item in self.instructions)


@dataclass(frozen=True)
class Flow:
    """The blocks of a kernel in the order of its text. The exit is the index after the last."""

    blocks: list[Block]
    labels: dict[str, int]

    @property
    def exit(self) -> int:
        return len(self.blocks)


def suspends(instruction: Instruction) -> bool:
    """Whether a warp, or some of its lanes, may have to wait at it."""
    opcode, form = instruction.opcode, instruction.form
    if opcode in ("bar", "barrier"):
        return ".arrive" not in form
    return opcode in ("shfl", "vote", "match", "redux", "elect", "mma", "ldmatrix", "stmatrix") or (
        opcode == "wmma" or form.startswith("movmatrix")
    )


def flow_of(function: Function) -> Flow:
    """The control flow graph. An instruction that may have to wait begins a block."""
    wanted = _targets(function)
    blocks: list[Block] = []
    labels: dict[str, int] = {}
    current: Block | None = None

    def begin() -> Block:
        made = Block(len(blocks))
        blocks.append(made)
        return made

    for item in function.body:
        if isinstance(item, Label):
            if item.name in wanted:
                if current is None or current.instructions:
                    current = begin()
                labels[item.name] = current.index
            continue
        if current is None or (suspends(item) and current.instructions):
            current = begin()
        current.instructions.append(item)
        if item.opcode in ENDS:
            current = None
    if not blocks:
        begin()
    for item in function.body:
        if isinstance(item, Instruction) and item.opcode in ("bra", "brx"):
            _check_labels(function, item, labels)
    for block in blocks:
        block.successors = _successors(function, block, labels, len(blocks))
    _depths(blocks)
    return Flow(blocks, labels)


def _targets(function: Function) -> set[str]:
    wanted = set()
    for item in function.body:
        if isinstance(item, Instruction) and item.opcode == "bra":
            wanted.add(item.operands[0])
        if isinstance(item, Instruction) and item.opcode == "brx":
            table = item.operands[1]
            if table not in function.tables:
                raise NotCheckable(f"{item.form} without its table", item.places)
            wanted.update(function.tables[table])
    return wanted


def _check_labels(function: Function, item: Instruction, labels: dict[str, int]) -> None:
    """Raises NotCheckable for a branch to where nothing is."""
    named = function.tables[item.operands[1]] if item.opcode == "brx" else item.operands[:1]
    missing = [name for name in named if name not in labels]
    if missing or not named:
        raise NotCheckable(f"{item.form} to {', '.join(missing) or 'nowhere'}", item.places)


def _successors(
    function: Function, block: Block, labels: dict[str, int], exit_index: int
) -> list[int]:
    following = block.index + 1  # of the last block: the exit
    last = block.instructions[-1] if block.instructions else None
    if last is None or last.opcode not in ENDS:
        return [following]
    if last.opcode == "brx":
        return sorted({labels[name] for name in function.tables[last.operands[1]]})
    to = labels[last.operands[0]] if last.opcode == "bra" else exit_index
    return sorted({to, following}) if last.guard else [to]


def _depths(blocks: list[Block]) -> None:
    """Depth in the post-dominator tree, by the iterative algorithm of Cooper, Harvey, Kennedy."""
    count = len(blocks)
    exit_index = count
    successors = {block.index: list(block.successors) for block in blocks}
    for index in _without_exit(successors, exit_index):
        successors[index].append(exit_index)  # an endless loop, as if it could end
    predecessors: dict[int, list[int]] = {index: [] for index in range(count + 1)}
    for index, following in successors.items():
        for to in following:
            predecessors[to].append(index)
    order = _postorder(predecessors, exit_index)
    number = {index: place for place, index in enumerate(order)}
    dominator: dict[int, int] = {exit_index: exit_index}
    changed = True
    while changed:
        changed = False
        for index in reversed(order):
            if index == exit_index:
                continue
            known = [s for s in successors[index] if s in dominator]
            best = known[0]
            for other in known[1:]:
                best = _meet(best, other, dominator, number)
            if dominator.get(index) != best:
                dominator[index] = best
                changed = True
    for index in reversed(order):
        if index != exit_index:
            above = blocks[index].above = dominator[index]
            blocks[index].depth = 1 + (blocks[above].depth if above != exit_index else 0)


def _without_exit(successors: dict[int, list[int]], exit_index: int) -> list[int]:
    """One block of each part of the graph from which the exit can't be reached."""
    predecessors: dict[int, list[int]] = {index: [] for index in (*successors, exit_index)}
    for index, following in successors.items():
        for to in following:
            predecessors[to].append(index)
    seen = set(_postorder(predecessors, exit_index))
    chosen = []
    for index in sorted(successors, reverse=True):
        if index not in seen:
            chosen.append(index)
            seen.update(_postorder(predecessors, index))
    return chosen


def _postorder(edges: dict[int, list[int]], root: int) -> list[int]:
    seen, order = {root}, []
    stack = [(root, iter(edges[root]))]
    while stack:
        node, rest = stack[-1]
        for to in rest:
            if to not in seen:
                seen.add(to)
                stack.append((to, iter(edges[to])))
                break
        else:
            stack.pop()
            order.append(node)
    return order


def _meet(a: int, b: int, dominator: dict[int, int], number: dict[int, int]) -> int:
    while a != b:
        while number[a] < number[b]:
            a = dominator[a]
        while number[b] < number[a]:
            b = dominator[b]
    return a
