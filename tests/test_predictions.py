"""The last prediction against a new time: made rows of a kernel before and after an edit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import msgspec
import pytest
from test_explain import BASE, changed, counts, machine, roofs, row, whole

from assay.commands import explaining
from assay.errors import RowsError
from assay.explain import Explanation, explain, predictions, reached
from assay.explain.experiments.judging import CANNOT, CONFIRMED, REFUTED
from assay.explain.model import Operator
from assay.explain.predictions import LEFT, Outcome, remember, text
from assay.rows import RUNS, encode
from assay.types import Row

GPU = machine().gpus[0]
SLOW, SOUND = counts(whole(32)), BASE.counts


def made(
    hash_: str, hour: int, seconds: float = 640e-6, spread: float = 0.01, **more: object
) -> Row:
    one = row(seconds, None)
    timing = msgspec.structs.replace(
        one.timing, low=seconds * (1 - spread), high=seconds * (1 + spread)
    )
    time = f"2026-11-28T{hour:02}:00:00+00:00"
    fields = {"source_hash": hash_, "time": time, "timing": timing, **more}
    return msgspec.structs.replace(one, **fields)


def of(row_: Row, counted: object = SOUND) -> Explanation:
    assert row_.timing is not None
    facts = changed(counts=counted, seconds=row_.timing.median, method="cupti, cold L2")
    return explain(facts)


def edited(root: Path, seconds: float, counted: object = SOUND, **more: object) -> Outcome | None:
    """After an explanation of a slow kernel, that of its edit."""
    before = made("aaaaaaaaaaaa", 10)
    assert remember(before, GPU, of(before, SLOW), root) is None
    after = made("bbbbbbbbbbbb", 11, seconds, **more)
    return remember(after, GPU, of(after, counted), root)


PREDICTED = 640e-6 / reached.seconds(BASE)
"""Without uncoalesced access, what is usual of a sound copy is left: 57.6 us."""


@pytest.mark.parametrize(
    ("seconds", "told", "said"),
    [
        (45e-6, CONFIRMED, "came true"),
        (640e-6, REFUTED, "did not come true"),
        (400e-6, REFUTED, "did not come true"),
        (86e-6, CANNOT, "cannot tell"),
    ],
)
def test_an_edit_shows_whether_the_last_prediction_came_true(
    tmp_path: Path, seconds: float, told: str, said: str
) -> None:
    found = edited(tmp_path, seconds)
    assert found is not None
    assert found.prediction.gain == pytest.approx(PREDICTED)
    assert found.word == told
    assert found.gain is not None
    low, middle, high = found.gain
    assert middle == pytest.approx(640e-6 / seconds)
    # the intervals of both medians, and what two processes may differ by
    assert low == pytest.approx(middle * 0.99 / 1.01 / 1.05)
    assert high == pytest.approx(middle * 1.01 / 0.99 * 1.05)
    sentence = text(found, counted=True)
    assert sentence.startswith("last time: predicted 11.1 times faster without uncoalesced access;")
    assert sentence.endswith(f": {said}")
    assert "the edit (aaaaaaaa to bbbbbbbb) made it" in sentence
    assert "two runs, not side by side" in sentence
    assert "rows alone do not tell" in text(found, counted=False)


def test_a_cause_that_is_still_there_tries_nothing(tmp_path: Path) -> None:
    found = edited(tmp_path, 600e-6, SLOW)
    assert found is not None
    assert (found.word, found.gain) == (LEFT, None)
    assert text(found, counted=True).endswith("not tried, the edit left uncoalesced access in")


def test_times_of_two_clocks_are_not_set_against_one_another(tmp_path: Path) -> None:
    other = msgspec.structs.replace(made("b", 11, 40e-6).timing, method="events")
    found = edited(tmp_path, 40e-6, timing=other)
    assert found is not None
    assert found.word == LEFT
    assert found.why == "it was timed by cupti, cold L2 then and by events, cold L2 now"


@pytest.mark.parametrize(
    "more",
    [
        {"variant": "cuda/other"},
        {"knobs": {"BLOCK": 64}},
        {"device": "cuda:1"},
        {"time": "2026-11-28T09:00:00+00:00"},  # an older run, explained again
        {"source_hash": "aaaaaaaaaaaa"},  # no edit
    ],
)
def test_only_an_edit_of_the_same_thing_is_compared(
    tmp_path: Path, more: dict[str, object]
) -> None:
    assert edited(tmp_path, 40e-6, **more) is None


def test_another_card_of_the_same_name_is_another_card(tmp_path: Path) -> None:
    before, after = made("a", 10), made("b", 11, 40e-6)
    remember(before, msgspec.structs.replace(GPU, uuid="one"), of(before, SLOW), tmp_path)
    other = msgspec.structs.replace(GPU, uuid="two")
    assert remember(after, other, of(after), tmp_path) is None


def test_a_prediction_on_the_host_is_set_against_what_a_user_waits(tmp_path: Path) -> None:
    operators = tuple(Operator(f"aten::add{i}", 8, waits=True) for i in range(8))
    facts = changed(
        counts=None,
        launches=(),
        operators=operators,
        must_bytes=8,
        **{"seconds": 1e-5, "host_seconds": 8e-5, "wall_seconds": 4e-4, "sync_seconds": 1e-5},
    )

    def walled(hash_: str, hour: int, wall: float) -> Row:
        one = made(hash_, hour, 1e-5)
        return msgspec.structs.replace(
            one, timing=msgspec.structs.replace(one.timing, wall_seconds=wall)
        )

    before = walled("a", 10, 4e-4)
    found = explain(facts)
    assert found.findings[0].cause == "waits of the host"
    remember(before, GPU, found, tmp_path)
    gain = found.findings[0].gain
    after = walled("b", 11, 4e-4 / gain)
    sound = explain(dataclasses.replace(facts, operators=()))
    seen = remember(after, GPU, sound, tmp_path)
    assert seen is not None
    assert (seen.prediction.clock, seen.word) == ("wall", CONFIRMED)
    assert seen.gain is not None
    assert seen.gain[1] == pytest.approx(gain)
    # the same, of a row that has no time of the GPU since the host was too slow for it
    bound = msgspec.structs.replace(
        before, timing=None, rejected=before.timing, not_timed="host-bound: in 9 of 9 samples"
    )
    kept = predictions.of_row(bound, GPU, found)
    assert kept == predictions.of_row(before, GPU, found)
    other = msgspec.structs.replace(bound, not_timed="throttled: in 9 of 9 samples")
    assert predictions.of_row(other, GPU, found) is None


def test_a_prediction_is_kept_once_and_only_where_there_is_one(tmp_path: Path) -> None:
    before = made("a", 10)
    for _ in range(2):
        remember(before, GPU, of(before, SLOW), tmp_path)
    fast = made("b", 11, 42e-6)
    remember(fast, GPU, of(fast), tmp_path)
    file = tmp_path / ".assay" / predictions.FILE
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["cause"] == "uncoalesced access"
    assert (tmp_path / ".assay" / ".gitignore").read_text() == "*\n"


def test_a_cut_off_line_is_named(tmp_path: Path) -> None:
    before = made("a", 10)
    remember(before, GPU, of(before, SLOW), tmp_path)
    file = tmp_path / ".assay" / predictions.FILE
    file.write_text(file.read_text() + '{"schema":1,')
    with pytest.raises(RowsError, match=r"predictions\.jsonl, line 2"):
        remember(before, GPU, of(before, SLOW), tmp_path)


def test_runs_are_explained_and_the_next_one_says_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs as a GPU would have left them: four tiny kernels a call, then one."""
    monkeypatch.chdir(tmp_path)

    def run(hash_: str, hour: int, kernels: int, wall: float) -> Row:
        one = made(hash_, hour, kernels * 2e-6, bytes=4096)
        timing = msgspec.structs.replace(
            one.timing, wall_seconds=wall, host_seconds=kernels * 5e-6, sync_seconds=1e-6
        )
        held = msgspec.structs.replace(one.counters, kernels=one.counters.kernels * kernels)
        return msgspec.structs.replace(one, timing=timing, counters=held)

    slow, fast = run("aaaaaaaaaaaa", 10, 4, 29e-6), run("bbbbbbbbbbbb", 11, 1, 8.3e-6)
    said = []
    for name, one in (("20261128-100000", slow), ("20261128-110000", fast)):
        folder = tmp_path / RUNS / name
        folder.mkdir(parents=True)
        lines = b"".join(encode(n) + b"\n" for n in (machine(), roofs(), one))
        (folder / "rows.jsonl").write_bytes(lines)
        assert explaining.run(explaining.Options("last", as_json=True)) == 0
        said.append(json.loads(capsys.readouterr().out))
    first, second = said
    assert "last_prediction" not in first
    assert first["findings"][0]["cause"] == "launches"
    assert second["last_prediction"]["prediction"]["cause"] == "launches"
    assert second["last_prediction"]["word"] == CONFIRMED
    assert explaining.run(explaining.Options("last")) == 0
    assert "came true; whether the cause is" in " ".join(capsys.readouterr().out.split())
    # a file of rows from elsewhere is read, and nothing is kept of it
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    explaining.run(explaining.Options(str(folder / "rows.jsonl")))
    assert not [*elsewhere.iterdir()]


def test_where_nothing_can_be_kept_the_explanation_still_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".assay").write_text("a file in the way")
    before = made("a", 10)
    found = of(before, SLOW)
    assert explaining._remembered(before, GPU, found) is None
    assert "the prediction is not kept: " in capsys.readouterr().err
