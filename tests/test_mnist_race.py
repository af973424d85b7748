"""The race: its phases, and that nobody wins who does not agree; and the network as ONNX."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from assay import AssayError
from assay.commands import digits as command
from assay.commands import mnist_app, racing
from assay.mnist import (
    agreement,
    checkpoint,
    data,
    inference,
    onnx_file,
    png,
    predict,
    profile,
    race,
    train,
)
from assay.mnist.data import Data, Digits
from assay.mnist.idx import DataError
from assay.mnist.model import LAYERS, LOSS, Sizes, initial
from assay.mnist.network import Network

SMALL = Sizes(first=3, second=5, hidden=7)


@pytest.fixture(scope="module")
def few() -> Data:
    whole = data.load()
    return Data(
        Digits(whole.train.images[:64], whole.train.labels[:64]),
        Digits(whole.test.images[:40], whole.test.labels[:40]),
        "the first digits of the sample",
    )


@pytest.fixture(scope="module")
def ran(few) -> list[race.Ran]:
    peers = race.chosen(["cpp", "eager"])
    return race.race(few, peers, batch=16, steps=20, sizes=SMALL)


def test_every_phase_of_every_step_is_timed_in_rounds(ran):
    assert [r.name for r in ran] == ["cpp", "eager"]
    for r in ran:
        assert set(r.seconds) == {*race.PHASES, "total"}
        assert all(len(times) == len(r.rounds) == 20 for times in r.seconds.values())
        phases = [r.seconds[phase] for phase in race.PHASES]
        for total, *parts in zip(r.seconds["total"], *phases):
            assert min(parts) >= 0
            assert total == pytest.approx(sum(parts))
        assert all(a.holds for a in r.agreements)
        assert len(r.losses) == 20 + race.WARM
    ours, other = ran
    assert ours.losses == pytest.approx(other.losses, rel=1e-3)


def longer(r: race.Ran, seconds: float) -> race.Ran:
    """The same as if it had run long enough for a verdict, every step in the same time."""
    count = race.LEAST
    steady = tuple(seconds * (1 + 0.001 * (i % 7)) for i in range(count))
    return replace(r, seconds={"total": steady}, rounds=tuple(range(count)))


def test_who_agrees_can_win_and_who_does_not_cannot(ran):
    ours, other = ran
    too_few = race.judged([ours, other])[0]
    assert too_few.word == "no winner"
    assert "20 steps, and a verdict needs 100" in too_few.reasons
    ours, other = longer(ours, 1.0), longer(other, 2.0)
    won = race.judged([ours, other])[0]
    assert won.word == "faster"
    assert won.ratio == pytest.approx(2)
    assert 1.99 < won.low <= won.ratio <= won.high < 2.01
    assert race.judged([longer(ours, 4.0), other])[0].word == "slower"
    off = replace(ours.agreements[3], error=1.0)
    wrong = {
        "the gradient of bn1.bias is off by 1.0e": replace(
            ours, agreements=(*ours.agreements[:3], off)
        ),
        "loss curves are": replace(ours, losses=tuple(v + 1 for v in ours.losses)),
        "accuracies are": replace(ours, accuracy=ours.accuracy + 0.006),
    }
    for said, cheat in wrong.items():
        (found,) = race.judged([cheat, other])
        assert found.word == "no winner"
        assert [said in reason for reason in found.reasons] == [True]
    assert "no winner against eager" in racing.sentence(found)
    assert race.judged([other]) == [], "nobody of ours ran"


def test_loss_curves_may_be_as_far_apart_as_those_of_others_are(ran):
    ours, other = (longer(r, s) for r, s in zip(ran, (1.0, 2.0)))
    first = other.losses[0]
    moved = {share: tuple(v + share * first for v in other.losses) for share in (0.03, 0.05, -0.01)}
    ours = replace(ours, losses=moved[0.03])
    (alone,) = race.judged([ours, other])
    assert alone.word == "no winner"
    assert alone.apart == pytest.approx(0.03)
    assert alone.allowed == agreement.LOSS
    far = replace(other, name="compile", losses=moved[0.05])
    found = race.judged([ours, other, far])
    assert [c.word for c in found] == ["faster", "faster"]
    assert [c.allowed for c in found] == pytest.approx([0.05, 0.05], rel=0.06)
    near = replace(far, losses=moved[-0.01])
    assert {c.word for c in race.judged([ours, other, near])} == {"no winner"}


def test_a_profile_has_every_kernel_of_a_step(few):
    net = Network(initial(SMALL, 0))
    spent = profile.profile(net, few, batch=16, steps=10)
    layers = [*LAYERS, LOSS]
    forward = [(layer.name, layer.op.name) for layer in layers]
    backward = [(layer.name, layer.gradient.name) for layer in reversed(layers)]
    wanted = [("load", "load_batch"), *forward, *backward, ("update", "sgd_step")]
    assert [(s.layer, s.op) for s in spent] == wanted
    assert all(len(s.seconds) == 10 and min(s.seconds) > 0 for s in spent)
    assert net.around is None
    with pytest.raises(AssayError, match="fewer than 10 steps tell nothing"):
        profile.profile(net, few, batch=16, steps=9)


def test_only_equal_precision_is_compared(ran):
    ours, other = ran
    half = replace(other, peer=replace(other.peer, precision="bf16"))
    assert race.judged([ours, half]) == []


def test_a_race_needs_one_of_ours_and_a_peer(few):
    for names in (["cpp"], ["eager", "eager channels_last"]):
        with pytest.raises(AssayError, match="one of ours and a peer at least"):
            race.chosen(names)
    with pytest.raises(AssayError, match="no peer 'jax' here; there are cpp, eager"):
        race.chosen(["jax", "cpp"])
    with pytest.raises(AssayError, match="there are 64 training digits"):
        race.race(few, race.chosen(["cpp", "eager"]), batch=65)


def test_the_table_has_a_row_for_each_and_marks_ours(ran):
    made = racing.table(ran)
    assert made.row_count == 2
    assert "cpp (ours)" in [*made.columns[0].cells]
    assert {"95 %", "mean"} < {column.header for column in made.columns}


def test_several_batches_race_one_after_the_other(monkeypatch):
    asked = []
    monkeypatch.setattr(racing, "race", lambda *given: asked.append(given[2]) or 0)
    monkeypatch.setattr(racing, "pinned", lambda *given: 3)
    for words, batches, code in (
        ([], [256], 0),
        (["--batch", "64", "--batch", "1024"], [64, 1024], 0),
        (["--pinned"], [], 3),
    ):
        asked.clear()
        ended = CliRunner().invoke(mnist_app.app, ["race", *words])
        assert (ended.exit_code, asked) == (code, batches)


@pytest.fixture(scope="module")
def state(few) -> train.State:
    return train.train(train.start(train.Plan(epochs=2, batch=16, sizes=SMALL), few), few)


def test_an_image_is_read_among_companions(state, few, tmp_path):
    path = tmp_path / "x.png"
    png.write(path, few.test.images[0])
    alone = predict.predict(state, predict.images_in(path))
    assert len(alone) == 1
    assert sum(alone[0].probabilities) == pytest.approx(1)
    assert alone[0].digit == int(np.argmax(alone[0].probabilities))
    # Others beside it hardly change what is said of it.
    beside = predict.predict(state, few.test.images)
    assert len(beside) == 40
    assert beside[0].probabilities == pytest.approx(alone[0].probabilities, abs=0.05)


def test_files_that_are_no_digits_are_refused(tmp_path):
    (tmp_path / "x.txt").write_text("seven")
    png.write(tmp_path / "large.png", np.zeros((30, 28), np.uint8))
    for name, said in {
        "x.txt": "neither a PNG nor IDX",
        "large.png": "images of 30x28; the network takes 28x28",
        "none.png": "can't be read",
        ".": "a folder",
    }.items():
        with pytest.raises(DataError, match=said):
            predict.images_in(tmp_path / name)


def test_a_loss_curve_is_one_line_of_blocks():
    assert command.curve((4.0, 2.0, 0.0)) == "█▅▁"
    assert len(command.curve(tuple(range(1000)))) == command.CURVE


def test_commands_train_go_on_predict_and_show(few, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data, "load", lambda *_, **__: replace(few, sample=True))
    kept = tmp_path / "kept.npz"
    given = dict(data=None, download=False, backend=None, epochs=1, batch=None, rate=None,
                 seed=None, checkpoint=kept, every=1, resume=False)  # fmt: skip
    command.train(given)
    assert checkpoint.load(kept).steps == 2  # 64 digits in batches of 32
    command.train({**given, "epochs": 2, "resume": True})
    assert checkpoint.load(kept).steps == 4
    with pytest.raises(AssayError, match="was trained with 32; going on with another"):
        command.train({**given, "batch": 16, "resume": True})
    said = capsys.readouterr().out
    assert "figures below are of this sample, not of MNIST" in said
    assert "from step 2" in said
    assert "held out" in said
    image = tmp_path / "x.png"
    command.show(7, None, False, image, "train")
    assert "train digit 7, a 3; the first digits" in capsys.readouterr().out
    assert (png.read(image) == few.train.images[7]).all()
    with pytest.raises(AssayError, match="train has digits 0 to 63"):
        command.show(64, None, False, None, "train")


def test_export_without_onnx_says_what_to_install(state, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(AssayError, match=r"export needs onnx.*assay\[mnist\]"):
        onnx_file.write(state, tmp_path / "x.onnx")


def test_onnx_runtime_reads_what_we_read(state, few, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "x.onnx"
    onnx_file.write(state, path)
    net = Network(state.parameters)
    images, labels = few.test.images, few.test.labels
    for count in (40, 33):
        part = Digits(images[:count], labels[:count])
        ours = train.scores(net, part).numpy()
        x = ((images[:count, None] / 255 - 0.1307) / 0.3081).astype(np.float32)
        assert onnx_file.difference(onnx_file.logits(path, x), ours) <= onnx_file.ALLOWED
    # And a file with other weights does not pass.
    other = train.start(replace(state.plan, seed=1), few)
    onnx_file.write(other, path)
    assert onnx_file.difference(onnx_file.logits(path, x), ours) > onnx_file.ALLOWED


def test_onnx_runtime_reads_beside_us(state, few, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    path = tmp_path / "x.onnx"
    onnx_file.write(state, path)
    net, order = Network(state.parameters), torch.arange(40)
    images, labels = (torch.from_numpy(x.copy()) for x in (few.test.images, few.test.labels))
    pixels, _ = net.load(images, labels, order)
    found, why = inference.side_by_side(net, pixels, pixels, state, path, rounds=12)
    assert [one.name for one in found] == ["ours", "PyTorch, eager", "ONNX Runtime"]
    assert why == ""
    assert all(len(one.samples) == 12 and 0 < one.seconds[1] < 1 for one in found)
    low, middle, high, word = found[0].over(found[0])
    assert (low, middle, high, word) == (1, 1, 1, "same")
