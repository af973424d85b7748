"""The last calls: on values that nobody has seen, so that no kept answer can be right, or quick.

The parent draws the seed only now. The outputs of these calls are judged, and a kernel that takes
much longer for new values than for the same ones again is one that looks answers up.
"""

from __future__ import annotations

import mmap
import random
import secrets
import statistics
import time

import torch

from ..processes.channel import Channel
from ..verdict.tamper import Taken, Tampered
from .contents import Contents
from .member import Lost, Member
from .protocol import Plan

MUCH, LEAST_SECONDS = 3.0, 5e-5
"""Longer by this factor, and by this much: no cache and no branch predictor explains that."""
AGAIN = 4
"""Calls on the same values, of which the fastest counts: a slow one would hide what is kept."""
MORE = 12
"""New values again, before a kernel is accused: one slow call may be anybody's."""
REST = 5e-4, 5e-3
"""Seconds before each of those calls, by chance: a busy machine that interrupts whoever has worked
for so long would else interrupt every other call, and so all those on new values."""


class Last:
    """The last calls of all members."""

    def __init__(
        self,
        channel: Channel,
        given: Plan,
        members: list[Member],
        contents: Contents,
        state: mmap.mmap,
        noted: Taken,
    ):
        self.channel, self.given, self.contents = channel, given, contents
        self.state, self.noted = state, noted
        self.members = random.Random(secrets.randbits(64)).sample(members, len(members))

    def run(self) -> None:
        """Raises Lost for a kernel that looks its answers up."""
        self.contents.renew(secrets.randbits(31))
        for member in self.members:
            new = self._timed(member)
            again = min(self._timed(member) for _ in range(AGAIN))
            if _much(new, again):
                self._confirm(member, [new], [again])
        seed = self._asked()
        self.contents.renew(seed)
        for member in self.members:
            self._timed(member)
            try:
                self.noted.check()
            except Tampered as found:
                raise Lost(member.index, "tampered", str(found)) from None
            member.keep("fresh", seed, self.given.scratch)
            member.scrub()

    def _asked(self) -> int:
        self.channel.send(fresh=True)
        answer = self.channel.receive()
        assert answer is not None
        return int(answer["seed"])

    def _confirm(self, member: Member, new: list[float], again: list[float]) -> None:
        # The same values are drawn anew before the second call too: whoever has just worked that
        # long is the first whom a busy machine interrupts.
        for _ in range(MORE):
            seed = secrets.randbits(31)
            for seconds in (new, again):
                self.contents.renew(seed)
                time.sleep(random.uniform(*REST))
                seconds.append(self._timed(member))
            if not _much(min(new), statistics.median(again)):
                return
        raise Lost(
            member.index,
            "stale answer",
            f"new values take at least {1e6 * min(new):.0f} us a call, and the same ones again "
            f"{1e6 * statistics.median(again):.0f} us: it looks its answers up",
        )

    def _timed(self, member: Member) -> float:
        """Seconds of one call on the present values, which were just put in place."""
        self.contents.fill(member, range(len(member.inputs[0])))
        return member.guarded(self.state, self.noted, lambda: _seconds(member))


def _much(longer: float, shorter: float) -> bool:
    return longer > MUCH * shorter and longer - shorter > LEAST_SECONDS


def _seconds(member: Member) -> float:
    now, wait, on_gpu = time.perf_counter, torch.cuda.synchronize, member.device != "cpu"
    if on_gpu:
        wait(member.device)
    begin = now()
    member.call()
    if on_gpu:
        wait(member.device)
    return now() - begin
