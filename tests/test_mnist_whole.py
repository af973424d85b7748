"""The race of whole steps, on the CPU and without graphs: bursts in turns, verdicts, absentees."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from assay import AssayError
from assay.commands import racing as racing_command
from assay.commands import until_race, whole_race
from assay.mnist import data, race
from assay.mnist.data import Data, Digits
from assay.mnist.fast.network import Fast
from assay.mnist.whole import bench, by_torch, by_us, energy, history, pinned, racing, until
from assay.mnist.whole.by_torch import TorchSteps
from assay.mnist.whole.by_us import LayerSteps
from assay.mnist.whole.peers import PEERS, Whole
from assay.mnist.whole.recipe import NOTES, Recipe, split
from assay.simt import Watch
from benchmarks import mnist_recipe


@pytest.fixture(scope="module")
def few() -> Data:
    whole = data.load()
    return Data(
        Digits(whole.train.images[:120], whole.train.labels[:120]),
        Digits(whole.test.images[:40], whole.test.labels[:40]),
        "the first digits of the sample",
    )


class Replayed:
    """In the place of a CUDA graph: runs the burst again."""

    def __init__(self, run, warm=3):
        self.replay = run
        run()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Batches of eight: threads would wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def on_the_cpu(monkeypatch, one_thread):
    """Peers whose bursts run here, timed by the host's clock."""

    def timed(run, cycles=0):
        begun = time.perf_counter()
        run()
        return time.perf_counter() - begun

    for module in (bench, by_us, by_torch, racing):
        monkeypatch.setattr(module, "BURST", 2)
    for module in (by_us, by_torch, until):
        monkeypatch.setattr(module, "captured", Replayed)
    monkeypatch.setattr(racing, "timed", timed)
    monkeypatch.setattr(until, "timed", timed)
    monkeypatch.setattr(until, "MODE", None)
    monkeypatch.setattr(by_torch, "tensor_cores", lambda: None)

    def broken(parameters, course):
        raise RuntimeError("no such kernel\nmore")

    peers = {
        "ours": Whole(lambda p, c: LayerSteps(p, c, "torch"), "float32", ours=True),
        "eager + graph": Whole(lambda p, c: TorchSteps(p, c, graph=True), "float32"),
        "eager": Whole(lambda p, c: TorchSteps(p, c, channels_last=True), "tf32"),
        "broken": Whole(broken, "float32"),
        "slow": Whole(broken, "float32", slow="takes a minute"),
    }
    monkeypatch.setattr(racing, "PEERS", peers)


def test_bursts_of_all_are_timed_in_turns_and_judged(few, on_the_cpu):
    result = racing.race(few, batch=8, steps=6, device="cpu")
    assert [r.name for r in result.ran] == ["ours", "eager + graph", "eager"]
    reasons = {a.name: a.reason for a in result.absent}
    assert reasons == {
        "broken": "RuntimeError: no such kernel",
        "slow": "takes a minute: races at batch 1024, or if named",
    }
    assert result.no_joules, "the CPU has no NVML, and says so"
    ours, graph, eager = result.ran
    assert all(len(r.seconds["total"]) == 3 and r.each == 2 for r in result.ran)
    assert all(len(r.losses) == (3 + racing.SETTLING) * bench.BURST for r in result.ran)
    # Same digits, same weights: every burst started where the last ended, warming up undone.
    assert graph.losses == pytest.approx(ours.losses, rel=2e-3)
    assert eager.losses == pytest.approx(ours.losses, rel=2e-3)
    assert ours.losses[-1] < ours.losses[0]
    assert all(a.holds for r in result.ran for a in r.agreements)
    assert max(a.allowed for a in ours.agreements) == 1e-3
    assert min(a.allowed for a in eager.agreements) >= 1e-2
    (verdict,) = race.judged(result.ran)
    assert verdict.peer == "eager + graph"
    assert verdict.word == "no winner"
    assert verdict.reasons[-1] == "6 steps, and a verdict needs 100"
    enough = [replace(r, each=50) for r in result.ran]
    assert race.judged(enough)[0].word != "no winner"


def test_no_peer_is_made_when_time_is_over(few, on_the_cpu):
    result = racing.race(few, batch=16, steps=10, device="cpu", until=time.monotonic() - 1)
    assert not result.ran
    assert {a.reason for a in result.absent[1:]} == {"no time left to make it"}


def test_peers_are_chosen_by_name(few):
    picked, absent = racing.chosen([], 64)
    assert "max-autotune + graph" not in picked
    assert {a.name for a in absent} >= {"naive", "max-autotune + graph"}
    assert set(racing.chosen([], 1024)[0]) == set(PEERS)
    assert set(racing.chosen(["fast", "max-autotune + graph"], 64)[0]) == {
        "fast", "max-autotune + graph"
    }  # fmt: skip
    with pytest.raises(AssayError, match="no peer 'jax' on a GPU"):
        racing.chosen(["jax"], 64)
    with pytest.raises(AssayError, match="one of ours and a peer at least"):
        racing.chosen(["eager"], 64)
    with pytest.raises(AssayError, match="there are 120 training digits"):
        racing.race(few, batch=64)


def test_a_burst_goes_back_to_the_weights_it_was_given(few, on_the_cpu):
    from assay.mnist.model import Sizes, digest, initial

    parameters = initial(Sizes(), 0)
    images = torch.from_numpy(few.train.images.copy())
    labels = torch.from_numpy(few.train.labels.copy())
    course = bench.course(images, labels, 4, 0.05)
    for made in (
        LayerSteps(parameters, course, "torch"),
        TorchSteps(parameters, course, graph=True),
    ):
        assert digest(made.parameters) == digest(parameters)
        made.run()
        assert digest(made.parameters) != digest(parameters)


def test_the_rate_rises_and_falls():
    rates = Recipe(steps=99, peak=0.5, warm=0.2).rates()
    assert len(rates) == 99
    assert max(rates) == pytest.approx(0.5)
    assert rates.index(max(rates)) == 19
    assert 0 < rates[-1] < rates[0] < 0.05


def test_trainings_of_a_seed_are_alike_whoever_trains(few, on_the_cpu):
    recipe = Recipe(batch=16, steps=9, peak=0.1, smooth=0.1)
    (once,) = until.trainings(few, recipe, [3, 4], device="cpu", names=["twin"])
    (again,) = until.trainings(few, recipe, [4, 3], device="cpu", names=["twin"])
    assert once.accuracies == again.accuracies[::-1]
    assert min(once.accuracies) > 0.2, "it learns, in nine steps"
    mean, low = once.accuracy
    assert low < min(once.accuracies) <= mean
    assert min(once.seconds) > 0


class Stream:
    """In the place of a CUDA stream or event: whatever is launched is done at once."""

    def __init__(self, *_, **__):
        pass

    def wait_stream(self, other):
        pass

    wait_event = wait_stream

    def record(self):
        pass


def test_digits_of_the_host_arrive_before_their_step(few, on_the_cpu, monkeypatch):
    for name in ("Stream", "Event", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    monkeypatch.setattr(pinned, "timed", racing.timed)
    for module in (bench, by_us, by_torch, racing, pinned):
        monkeypatch.setattr(module, "BURST", 4)  # the buffers are used again
    monkeypatch.setattr(pinned, "PEERS", racing.PEERS)
    names = ["ours", "eager + graph", "broken"]
    monkeypatch.setattr(pinned, "joules_or_why", lambda _: (None, "no meter"))
    seen, absent = pinned.beside(few, batch=8, names=names, steps=4, device="cpu")
    assert [one.name for one in seen] == names[:2]
    assert absent[0].reason.startswith("RuntimeError: no such kernel")
    for one in seen:
        assert one.apart == 0, "the same digits, step by step"
        assert one.holds
        assert len(one.resident) == len(one.pinned) == 1
        assert min(one.laying, *one.pinned, *one.ratio) > 0
    assert whole_race.pinned_table(seen).row_count == 2
    assert not replace(seen[0], apart=0.03).holds
    with pytest.raises(AssayError, match="no peer 'jax' on a GPU"):
        pinned.beside(few, batch=8, names=["jax"], device="cpu")


def test_energy_is_said_or_why_there_is_none(monkeypatch):
    class Meter:
        missing = ""
        spent = 0.0

        def __init__(self, device):
            self.spent = 0.0

        def joules(self):
            self.spent += 0.6
            return self.spent

    class Peer:
        device = "cpu"

        def run(self):
            time.sleep(1e-4)

    monkeypatch.setattr(energy, "Nvml", Meter)
    found, why = energy.joules_or_why(Peer(), least=1e-4)
    assert not why
    assert found == pytest.approx(0.6 / (10 * bench.BURST)), "ten bursts"
    monkeypatch.setattr(Meter, "missing", "no NVML")
    assert energy.joules_or_why(Peer()) == (None, "no NVML")


def test_the_history_names_what_each_version_gained():
    one = race.Ran("", PEERS["fast"], {}, (0, 1), (), 1.0, (), 0.0)
    names = list(history.VERSIONS.values())
    times = {names[1]: 8.0, names[3]: 2.0, names[2]: 4.0, names[4]: 1.0}
    made = [replace(one, name=n, seconds={"total": (s, s * 1.01)}) for n, s in times.items()]
    found = history.gains(made)
    assert [g.idea for g in found] == list(history.VERSIONS)[1:], "those that raced, in order"
    assert [g.ratio for g in found[1:]] == pytest.approx([2, 2, 2])
    assert history.gains(made[:1]) == []


def trained(name: str, accuracy: float, seconds: float) -> until.Trained:
    right = tuple(accuracy + s for s in (-1e-4, 0.0, 1e-4, 0.0))
    return until.Trained(
        *(name, tuple(range(4))), (seconds, seconds * 1.01, seconds, seconds), right, name == "fast"
    )


def test_who_does_not_reach_the_accuracy_wins_nothing():
    fast, twin = trained("fast", 0.9902, 0.03), trained("twin", 0.9903, 0.12)
    won = until.compared([fast, twin], 0.99)
    assert won.word == "faster"
    assert won.ratio == pytest.approx(4)
    assert "ours is faster: the twin's time over ours is 4.00" in until_race.sentence(won)
    lost = until.compared([fast, trained("twin", 0.9901, 0.12)], 0.99)
    assert lost.word == "no winner", "the mean reaches it, the lower end of its interval does not"
    assert "twin reads 99.010%, at least 98.9" in lost.reasons[0]
    assert until_race.table([fast, twin], 0.99).row_count == 2
    one = replace(fast, seeds=(0,), accuracies=(0.995,))
    assert one.accuracy[1] == float("-inf"), "of one seed nothing is known"


def test_accuracies_are_compared_seed_by_seed():
    ours, twin = trained("fast", 0.9902, 0.03), trained("twin", 0.9903, 0.12)
    near = replace(
        twin, accuracies=tuple(a - s for a, s in zip(ours.accuracies, (0, 2e-4, 0, -2e-4)))
    )
    same = until.alike(ours, near)
    assert same.word == "same within noise"
    assert same.low < 0 < same.high
    assert "ours reads +0.000 points more" in until_race.difference(same)
    apart = until.alike(ours, twin)
    assert (apart.word, apart.difference) == ("apart", pytest.approx(-1e-4)), (
        "the same in each seed"
    )
    wide = replace(
        twin, accuracies=tuple(a + s for a, s in zip(ours.accuracies, (0.01, -0.01, 0, 0)))
    )
    assert until.alike(ours, wide).word == "cannot tell"
    assert until_race.table([ours, twin], None).columns[6].header == "made in"


def test_the_notes_recipe_has_no_momentum_and_no_schedule():
    assert set(NOTES.rates()) == {NOTES.peak}
    assert NOTES.optimizer == {"lr": NOTES.peak}
    assert "no momentum" in NOTES.said


def test_a_recipe_is_chosen_without_the_test_digits(few):
    train = few.train
    times = 1 + 10_000 // len(train)
    many = Digits(train.images.repeat(times, 0), train.labels.repeat(times, 0))
    made = split(replace(few, train=many))
    assert (len(made.train), len(made.test)) == (len(many) - 5000, 5000)
    assert (made.test.images == many.images[-5000:]).all()
    assert (made.train.labels == many.labels[:-5000]).all()
    assert "judged on the other 5,000" in made.source
    with pytest.raises(AssayError, match="judged on 5,000 training digits"):
        split(few)


def test_the_search_for_a_recipe_finds_the_best_that_is_fast_enough(few, monkeypatch):
    """By trainings that follow a formula: 100 us a step, best at peak 0.2, momentum 0.85."""

    def trainings(_, recipe, seeds, *, names):
        off = abs(recipe.peak - 0.2) + abs(recipe.momentum - 0.85) + recipe.smooth
        right = 0.99 + 1e-6 * recipe.steps - 0.01 * off
        slow = 1e-4 if recipe.batch != 512 else 1e-3
        takes = tuple(recipe.steps * slow for _ in seeds)
        yield until.Trained("fast", tuple(seeds), takes, tuple(right for _ in seeds), True)

    monkeypatch.setattr(mnist_recipe, "trainings", trainings)
    written = io.StringIO()
    search = mnist_recipe.Search(few, 0.045, time.monotonic() + 60, written)
    for recipes, seeds in mnist_recipe.attempts(search, 2):
        for recipe in recipes:
            search.attempt(recipe, seeds)
    best = search.best(8)[0]
    assert (best.recipe.momentum, best.recipe.peak, len(best.shares)) == (0.85, 0.2, 8)
    assert best.recipe.batch != 512
    assert best.seconds <= 0.045
    count = len(search.tried)
    assert len(written.getvalue().splitlines()) == count
    search.end = 0.0
    search.attempt(Recipe(batch=64), 2)
    assert len(search.tried) == count, "the time is over"


def test_what_needs_a_gpu_says_so(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert until_race.race(None, False, 99, 50) == 3
    assert racing_command.pinned(None, False, 64, 100, 0, []) == 3
    assert until_race.accuracy(None, False, 20) == 3
    assert capsys.readouterr().out.count("no GPU here") == 3
    with pytest.raises(AssayError, match=r"--until 0\.99: a share of test digits in percent"):
        until_race.race(None, False, 0.99, 50)
    with pytest.raises(AssayError, match="--seeds 1: a mean with an interval"):
        until_race.race(None, False, 99, 1)


@pytest.mark.gallery
@pytest.mark.timeout(600)  # seven kernels become C++ first
def test_the_fast_training_is_that_of_the_twin(few, on_the_cpu, monkeypatch):
    """The same recipe, digits and seed by the compiled kernels, run on the CPU."""
    watch = Watch()
    monkeypatch.setattr(until, "Fast", lambda p, device: Fast(p, watch=watch))
    seen = {}

    def accuracy(net, digits):
        seen[type(net).__name__] = net.losses.clone()
        return 1.0

    monkeypatch.setattr(until, "accuracy", accuracy)
    recipe = Recipe(batch=8, steps=6, peak=0.05, smooth=0.1)
    until.trainings(few, recipe, [5], device="cpu")
    ours, twin = seen["FastTraining"], seen["TwinTraining"]
    assert ours.tolist() == pytest.approx(twin.tolist(), rel=5e-3)
    assert not watch.faults
