"""Experiments on a launch: whole waves, more blocks, fewer or more of them resident."""

from __future__ import annotations

import math
from dataclasses import replace

from .arithmetic import at_most
from .entry import Instruction, New, NotTried, instructions, rewritten
from .launched import RESERVED, Card, Changed, Launched, largest, only

MOST_COPIES = 64
REGISTERS = 65536
LEAST_REGISTERS = 24
STEP = 8
"""Registers are given out to a thread by eights."""


def whole_waves(launches: tuple[Launched, ...], card: Card) -> Changed:
    """Only the blocks of the waves that are full: the rest of the work is left undone."""
    one = only(launches)
    wave = one.per_sm * card.multiprocessors
    fits = one.blocks // wave * wave if wave else 0
    if not fits or fits == one.blocks:
        raise NotTried(f"{one.blocks:,} blocks, {wave:,} at a time: there is no partial last wave")
    _, y, z = one.grid
    rows = fits // (y * z)
    if not rows:
        raise NotTried("one step of the grid's first axis is more than a wave")
    grid = (rows, y, z)
    said = f"{math.prod(grid):,} of {one.blocks:,} blocks"
    return Changed((replace(one, grid=grid),), said, math.prod(grid) / one.blocks)


def more_blocks(launches: tuple[Launched, ...], card: Card) -> Changed:
    """As many blocks as the GPU holds: sharing the work where the kernel asks how many there are,
    else copies that each do what one of them does."""
    one = only(launches)
    wave = one.per_sm * card.multiprocessors
    times = wave // one.blocks
    if times < 2:
        raise NotTried(f"{one.blocks:,} blocks are more than half of what the GPU holds ({wave:,})")
    x, y, z = one.grid
    code = instructions(one.compiled.ptx, one.compiled.name)
    if any("%nctaid.x" in inst.operands for inst in code):
        made = replace(one, grid=(x * times, y, z))
        return Changed((made,), f"{made.blocks:,} blocks for {one.blocks:,}", 1.0, times)
    times = min(times, MOST_COPIES)
    copied = copies(one, times)
    said = f"{times} copies of its {one.blocks:,} blocks side by side"
    return Changed((copied,), said, times, times)


def copies(one: Launched, times: int) -> Launched:
    """So many times the blocks, each doing what a block of the grid does."""
    x, y, z = one.grid

    def rule(inst: Instruction, new: New) -> list[str] | None:
        if inst.opcode != "mov" or "%ctaid.x" not in inst.operands:
            return None
        return [inst.text(), f"rem.u32 {inst.operands[0]}, {inst.operands[0]}, {x};"]

    ptx, _ = rewritten(one.compiled.ptx, one.compiled.name, rule)
    return replace(one.with_ptx(ptx), grid=(x * times, y, z))


def empty_blocks(launches: tuple[Launched, ...], card: Card) -> Changed:
    """The same blocks, each of which returns at once: what is left is starting them."""
    made = []
    for one in launches:
        begun = False

        def rule(inst: Instruction, new: New) -> list[str] | None:
            nonlocal begun
            if begun:
                return None
            begun = True
            return ["ret;", inst.text()]

        ptx, _ = rewritten(one.compiled.ptx, one.compiled.name, rule)
        made.append(one.with_ptx(ptx))
    return Changed(tuple(made), f"{sum(one.blocks for one in launches):,} blocks")


def half_resident(launches: tuple[Launched, ...], card: Card) -> Changed:
    """Half as many blocks resident, by dynamic shared memory that nobody uses."""
    place = largest(launches)
    one = launches[place]
    held = min(one.per_sm, -(-one.blocks // card.multiprocessors))
    if held < 2:
        raise NotTried(f"a multiprocessor holds {held} block of it: there is no half")
    share = card.shared_bytes // (held // 2) - RESERVED - one.static_shared
    shared = min(share, card.block_shared_bytes - one.static_shared) // 128 * 128
    if shared <= one.shared or card.shared_bytes // (shared + RESERVED) >= held:
        raise NotTried("a block can't have enough shared memory for that")
    made = replace(one, shared=shared)
    said = f"{shared:,} bytes of shared memory a block, unused: {held // 2} for {held} blocks"
    return Changed((*launches[:place], made, *launches[place + 1 :]), said)


def more_resident(launches: tuple[Launched, ...], card: Card) -> Changed:
    """Shared memory that nothing touches is not asked for; else fewer registers a thread."""
    place = largest(launches)
    one = launches[place]
    code = instructions(one.compiled.ptx, one.compiled.name)
    uses = any("shared" in inst.form or "call" in inst.form for inst in code)
    if one.shared and not uses:
        made = replace(one, shared=0)
        said = f"0 bytes of dynamic shared memory for {one.shared:,}, which nothing touches"
    else:
        fit = REGISTERS // (2 * max(1, one.per_sm) * one.threads) // STEP * STEP
        if one.shared + one.static_shared:
            raise NotTried("its shared memory is in use, so it can't be taken away")
        if one.registers and fit >= one.registers:
            raise NotTried(f"{one.registers} registers a thread are not what limits it")
        if fit < LEAST_REGISTERS:
            raise NotTried(f"{fit} registers a thread for twice the blocks would all be spilled")
        made = one.with_ptx(at_most(one.compiled.ptx, one.compiled.name, fit))
        said = f"at most {fit} registers a thread"
    return Changed((*launches[:place], made, *launches[place + 1 :]), said)
