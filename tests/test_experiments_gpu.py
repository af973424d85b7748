"""Experiments on a GPU: a planted cause is confirmed, and what can't be tried says why."""

from __future__ import annotations

import pytest

from assay.explain import explain
from assay.explain.cards import of_machine
from assay.explain.experiments.judging import CONFIRMED, NOT, Trial
from assay.explain.experiments.proving import Bench, prove
from assay.explain.gathering import chosen, facts_of
from assay.session import Session
from assay.target import parse

pytestmark = [pytest.mark.gpu, pytest.mark.alone]


def trials(session: Session, text: str, variant: str) -> dict[str, Trial]:
    target = parse(text)
    wanted = chosen(session, target, variant, {})
    card = of_machine(session.machine().gpus[0], None)
    found = explain(facts_of(session, target, wanted, card))
    with Bench(session, "cuda:0") as bench:
        values = wanted.case.case.values
        made = prove(bench, target, wanted.variant, values, found, seconds=1.0)
        again = prove(bench, target, wanted.variant, values, found, seconds=0.1)
    assert [one.name for one in again] == [one.name for one in made]
    for one in made:
        print(one.word, one.name, one.predicted, one.gain, one.said)
    return {one.name: one for one in made}


@pytest.mark.timeout(120)
def test_low_occupancy_is_confirmed(session: Session) -> None:
    found = trials(session, "tests/slow/launching.py:gather", "cuda/slow")
    lifted = found["more blocks resident"]
    assert lifted.word == CONFIRMED
    assert lifted.before is not None
    assert lifted.after is not None
    assert lifted.before > 3 * lifted.after
    assert found["half the blocks resident"].word == NOT  # there is one
    assert found["no stores"].gain is not None


@pytest.mark.timeout(120)
def test_waits_of_the_host_are_gone_in_a_graph(session: Session) -> None:
    found = trials(session, "tests/slow/chains.py:sums", "eager/slow")
    graph = found["a CUDA graph that waits for nothing"]
    assert graph.gain is not None, graph.said
    assert graph.gain[0] > 2
