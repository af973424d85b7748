"""`assay selftest verdict`: the score of the zoo, and everything that lowers it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.commands import selftest
from assay.errors import AssayError
from assay.selftest import judging, zoo

OP = """
import torch
import assay
{table}

op = assay.Op("doubled", lambda x: 2 * x, lambda make, n: (make.normal(n),), cases=[{{"n": 70}}])


@op.variant("eager/one")
def one(x):
    return {one}


@op.variant("eager/other")
def other(x):
    return {other}
"""
WRONG = (
    'EXPECT = {"eager/one": ("wrong value", "every element"), "eager/other": ("wrong shape", "")}'
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zoo of two files: of four kernels, one is named otherwise, and one right one accused."""
    for kind in ("wrong", "right"):
        (tmp_path / kind).mkdir()
    wrong = OP.format(table=WRONG, one="3 * x", other="4 * x")
    (tmp_path / "wrong" / "factors.py").write_text(wrong)
    right = OP.format(table='FINDS = {"eager/one": "no such finding"}', one="x + x", other="3 * x")
    (tmp_path / "right" / "sums.py").write_text(right)
    monkeypatch.setattr(zoo, "folder", lambda: tmp_path)
    return tmp_path


@pytest.mark.full
def test_each_miss_is_told_counted_and_fails(place: Path, capsys: pytest.CaptureFixture[str]):
    assert selftest.verdict("", as_json=True) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["wrong"] == {"kernels": 2, "named": 1}
    assert said["right"] == {"kernels": 2, "rejected": 2}
    assert said["words"] == {"wrong value": {"eager": 1}}
    told = {(m["kernel"], m["wanted"]): m["got"] for m in said["misses"]}
    assert told[("eager/other", "wrong shape, ''")].startswith("wrong value: every element")
    assert told[("doubled eager/other", "right")].startswith("wrong value: every element")
    assert ("eager/one", "the finding 'no such finding'") in told


def test_a_score_in_words(place: Path, session: object):
    sample = zoo.Sample(place / "wrong" / "factors.py")
    score = judging.judged(session, sample)
    assert selftest.line([score]) == "wrong: 1 of 2 named rightly · right: 0 of 0 rejected"
    assert [miss.label for miss in score.misses] == ["eager/other"]


def test_a_file_that_is_not_there_is_the_users_mistake(place: Path):
    with pytest.raises(AssayError, match="no file of the zoo has 'sofmax' in its name"):
        selftest.verdict("sofmax", as_json=True)


def test_the_zoo_lies_in_the_checkout_or_in_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    assert zoo.folder() == Path(__file__).parent
    monkeypatch.setattr(zoo, "CHECKOUT", tmp_path)
    with pytest.raises(AssayError, match="install assay from its wheel"):
        zoo.folder()
