"""Kernels that look answers up take longer for new values; honest ones may be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from assay.clock.fresh import Last
from assay.clock.member import Lost

SLOW = 3e-2


class Contents:
    """Knows what was drawn last, and whether that was just now."""

    def __init__(self) -> None:
        self.seed, self.just_drawn = 0, False

    def renew(self, seed: int) -> None:
        self.seed, self.just_drawn = seed, True

    def fill(self, member: Any, which: Any) -> None:
        """Nothing: the calls below have no inputs."""


def confirm(contents: Contents, call: Callable[[], None]) -> None:
    member = SimpleNamespace(
        index=0,
        device="cpu",
        inputs=[[]],
        call=call,
        guarded=lambda state, noted, work: work(),
    )
    last = Last(None, None, [member], contents, None, None)
    last._confirm(member, [SLOW], [SLOW / 100])


def test_who_is_interrupted_after_long_work_is_not_accused() -> None:
    contents = Contents()

    def honest() -> None:
        time.sleep(SLOW if contents.just_drawn else 0.0)
        contents.just_drawn = False

    confirm(contents, honest)


def test_a_machine_that_interrupts_every_other_call_accuses_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Work between two interruptions is as long as two calls: all on new values meet one."""
    worked, sleep = [0.002], time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: worked.__setitem__(0, worked[0] + seconds))

    def honest() -> None:
        worked[0] += 0.002
        interrupted = worked[0] >= 0.004
        if interrupted:
            worked[0] %= 0.004
        sleep(SLOW if interrupted else 0.0)

    confirm(Contents(), honest)


def test_who_looks_its_answers_up_is() -> None:
    contents, known = Contents(), set()

    def cheat() -> None:
        time.sleep(0.0 if contents.seed in known else SLOW)
        known.add(contents.seed)

    with pytest.raises(Lost, match="looks its answers up"):
        confirm(contents, cheat)
