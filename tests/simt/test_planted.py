"""A planted fault is named with its word, line, block and thread; its right twin has none."""

from __future__ import annotations

import importlib.util

import pytest
from planted import ORDER, PLANTED, Planted, outcome, run
from tiers import tier

QUICK = {"store_beyond", "no_wait", "two_branches", "embrace"}
PACKAGES = {"cuda": "cuda.bindings", "triton": "triton", "numba": "numba"}


def listed(entries: tuple[Planted, ...]) -> list[object]:
    return [pytest.param(p, id=p.name, marks=tier(p.name, QUICK)) for p in entries]


def available(planted: Planted) -> None:
    package = PACKAGES[planted.way]
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("planted", listed(PLANTED))
def test_said_with_its_line_and_its_twin_is_right(planted: Planted) -> None:
    available(planted)
    assert outcome(planted) == ""


RACES = tuple(p for p in PLANTED if p.source == ORDER and p.word == "race")


@pytest.mark.full
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("planted", [pytest.param(p, id=p.name) for p in RACES])
def test_a_race_is_said_in_any_order_of_warps_and_blocks(planted: Planted, order: int) -> None:
    available(planted)
    assert any(fault.word == "race" for fault in run(planted, False, order=order))
    assert not run(planted, True, order=order)


def test_there_are_enough() -> None:
    assert len(PLANTED) == len({planted.name for planted in PLANTED}) >= 30
