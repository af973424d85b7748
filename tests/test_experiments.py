"""Experiments without a GPU: what they change, counted; what is said of samples; the protocol."""

from __future__ import annotations

import ctypes
import gc
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from assay import single
from assay.errors import NotRun
from assay.explain import Explanation, Finding, Launch, costs, reached
from assay.explain.cards import of_architecture
from assay.explain.experiments import arithmetic, child, entry, proving, waiting
from assay.explain.experiments.catalogue import ALL, BY_NAME, DEVICE, of_cause
from assay.explain.experiments.driver import Driver, assembled, packed
from assay.explain.experiments.judging import (
    CANNOT,
    CONFIRMED,
    NOT,
    REFUTED,
    Trial,
    capped,
    seen,
    word,
)
from assay.explain.experiments.launched import Card, Changed, Launched
from assay.explain.experiments.predicting import predicted
from assay.explain.experiments.recording import Copies, noted
from assay.explain.experiments.text import lines
from assay.explain.model import Facts
from assay.inside.geometry import geometry
from assay.processes import Ended
from assay.processes.channel import Closed
from assay.simt import Watch
from assay.simt.adapters import Compiled
from assay.simt.counts import Counts
from assay.target import parse

CARD = Card(132, 228 << 10, 227 << 10)
SLOW = "tests/slow"


def launches(target: str, variant: str = "cuda/slow", per_sm: int = 4) -> tuple[Launched, ...]:
    made = noted(single.pick(parse(target), variant, {}), "sm_90")
    return tuple(replace(one, per_sm=per_sm) for one in made)


def played(made: tuple[Launched, ...]) -> Watch:
    """The launches on the CPU, watched and counted."""
    watch = Watch()
    for one in made:
        watch.run(one.compiled, one.grid, one.block, list(one.args), one.shared)
    return watch


def tried(name: str, made: tuple[Launched, ...]) -> Changed:
    change = BY_NAME[name].change
    assert change is not None
    return change(made, CARD)


def outputs(made: tuple[Launched, ...], place: int = 0) -> Any:
    return made[-1].args[place]


@pytest.mark.full
def test_neighbouring_addresses_touch_the_same_bytes_in_as_few_sectors_as_can_be() -> None:
    made = launches(f"{SLOW}/access.py:scale")
    before = played(made)
    right = outputs(made).clone()
    outputs(made).zero_()
    after = played(tried("neighbouring addresses", made).launches)
    assert not after.faults
    for kind in ("global load", "global store"):
        was, now = before.counts().access(kind), after.counts().access(kind)
        assert was.sectors == 8 * was.ideal_sectors
        assert now.sectors == now.ideal_sectors == was.ideal_sectors
        assert now.requests == was.requests
    assert torch.equal(outputs(made), right)  # every element once: places were only traded


@pytest.mark.full
def test_banks_of_their_own_leave_no_conflict_and_nothing_else_changes() -> None:
    made = launches(f"{SLOW}/access.py:row_sum")
    before = played(made).counts()
    after = played(tried("banks of their own", made).launches).counts()
    was, now = before.access("shared load"), after.access("shared load")
    assert was.wavefronts == 32 * was.ideal_wavefronts
    assert now.wavefronts == now.ideal_wavefronts == was.ideal_wavefronts
    assert after.access("global load") == before.access("global load")
    assert after.classes["fp32"] == before.classes["fp32"]


@pytest.mark.full
def test_atomics_are_left_out_and_what_feeds_them_is_not() -> None:
    made = launches(f"{SLOW}/access.py:total")
    before = played(made).counts()
    after = played(tried("no atomics", made).launches).counts()
    assert before.access("global atomic").contended == 1 << 14
    assert "global atomic" not in after.kinds
    assert after.access("global load") == before.access("global load")


@pytest.mark.full
def test_float32_arithmetic_takes_the_place_of_float64() -> None:
    made = launches(f"{SLOW}/inside.py:polynomial")
    before = played(made).counts()
    right = outputs(made).clone()
    after = played(tried("float32", made).launches).counts()
    assert before.classes["fp64"] == after.classes["fp32"] == 64 * 64
    assert "fp64" not in after.classes
    assert "convert" not in after.classes
    torch.testing.assert_close(outputs(made), right)


@pytest.mark.full
def test_the_lanes_of_a_warp_take_one_branch() -> None:
    made = launches(f"{SLOW}/inside.py:kinds")
    before = played(made).counts()
    after = played(tried("one branch a warp", made).launches).counts()
    assert before.active_lanes < 8
    assert after.active_lanes == 32
    assert after.classes["fp32"] == before.classes["fp32"] // 8  # one of eight kinds


@pytest.mark.full
def test_nothing_moves_between_the_kernels_of_a_chain() -> None:
    made = launches(f"{SLOW}/chains.py:large_chain")
    before = played(made).counts()
    after = played(tried("nothing between kernels", made).launches).counts()
    for kind in ("global load", "global store"):
        assert before.access(kind).requests == 4 * after.access(kind).requests > 0
    assert after.classes["fp32"] == before.classes["fp32"]


def test_loads_and_stores_are_left_out_alone() -> None:
    made = launches(f"{SLOW}/access.py:scale")
    before = played(made).counts()
    stored = played(tried("no loads", made).launches).counts()
    assert "global load" not in stored.kinds
    assert stored.access("global store") == before.access("global store")
    loaded = played(tried("no stores", made).launches).counts()
    assert "global store" not in loaded.kinds
    assert loaded.access("global load") == before.access("global load")
    assert stored.classes["fp32"] == loaded.classes["fp32"] == before.classes["fp32"]


@pytest.mark.full
def test_launch_bounds_go_and_ptxas_then_spills_nothing() -> None:
    from assay.inside.geometry.assembler import assembled as taken

    (made,) = launches(f"{SLOW}/inside.py:mix")
    text = older(made.compiled.ptx)
    assert taken(text, made.compiled.name, "sm_90").spill_store_bytes > 0
    (after,) = tried("no launch bounds", (made.with_ptx(text),)).launches
    assert taken(after.compiled.ptx, made.compiled.name, "sm_90").spill_store_bytes == 0


def older(ptx: str) -> str:
    """As a version of PTX that every ptxas here knows."""
    import re

    return re.sub(r"^\.version\s+\S+", ".version 8.4", ptx, flags=re.MULTILINE)


@pytest.mark.full
def test_a_grid_is_filled_by_sharing_the_work_or_by_copies_of_it() -> None:
    made = launches(f"{SLOW}/launching.py:negate")
    before = played(made).counts()
    right = outputs(made).clone()
    changed = tried("a full grid", made)
    assert changed.launches[0].grid == (528, 1, 1)
    assert changed.work == 1
    assert changed.most == 132
    after = played(changed.launches).counts()
    assert after.access("global load") == before.access("global load")
    assert torch.equal(outputs(made), right)

    made = launches(f"{SLOW}/launching.py:gather", per_sm=16)
    before = played(made).counts()
    right = outputs(made).clone()
    changed = tried("a full grid", made)
    assert changed.work == changed.most == 8
    after = played(changed.launches).counts()
    assert after.access("global load").requests == 8 * before.access("global load").requests
    assert torch.equal(outputs(made), right)


def test_whole_waves_leave_the_rest_of_the_work() -> None:
    (made,) = launches(f"{SLOW}/launching.py:gather", per_sm=1)
    changed = tried("whole waves", (made,))  # 256 blocks, 132 at a time
    assert changed.launches[0].grid == (132, 1, 1)
    assert changed.work == 132 / 256
    with pytest.raises(NotRun, match="no partial last wave"):
        tried("whole waves", (replace(made, per_sm=2),))


def test_blocks_are_kept_out_or_let_in_by_shared_memory() -> None:
    (made,) = launches(f"{SLOW}/launching.py:gather", per_sm=1)
    (free,) = tried("more blocks resident", (made,)).launches
    assert (made.shared, free.shared) == (200_000, 0)
    many = replace(made, shared=0, per_sm=8, grid=(4096, 1, 1))
    (half,) = tried("half the blocks resident", (many,)).launches
    assert CARD.shared_bytes // (half.shared + 1024) == 4
    with pytest.raises(NotRun, match="not what limits"):
        tried("more blocks resident", (replace(made, shared=0, registers=16),))


def test_empty_blocks_do_nothing_but_start() -> None:
    made = launches("tests/slow/launching.py:gather")
    changed = tried("empty blocks", made)
    assert changed.launches[0].blocks == made[0].blocks
    assert played(changed.launches).counts().warp_instructions <= 2 * 2 * made[0].blocks
    assert played(made).counts().warp_instructions > 10 * made[0].blocks
    assert assembled(changed.launches[0].compiled.ptx, "sm_90")


def test_what_the_host_hands_over_is_filled_in_and_not_copied() -> None:
    """Onto `meta`, which stands for a device that is not the CPU."""
    seen: list[str] = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    y = torch.empty(3, device="meta")
    with Seeing(), child.Answering():
        y[1].copy_(torch.tensor(4.0))
        y.copy_(torch.arange(3.0))
        assert torch.ones(1).sum().item() == 0.0
    assert seen.count("aten.fill_.Scalar") == 1
    assert seen.count("aten.copy_.default") == 1, "what is no single value is copied as it was"
    assert not any("local_scalar" in one for one in seen)


def test_waits_are_sampled_beside_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    sent: list[dict[str, Any]] = []
    channel = types.SimpleNamespace(send=lambda **message: sent.append(message))
    import msgspec

    target = msgspec.to_builtins(parse(f"{SLOW}/chains.py:sums"))
    waiting.main(channel, target, ["eager/slow", "eager/twin"], {}, "cpu", 0.05)  # type: ignore[arg-type]
    (answer,) = sent
    waited = answer["waited"]
    assert set(waited) == {"", "eager/slow", "eager/twin"}
    assert waited["eager/slow"] > 5 * waited["eager/twin"] > 0
    assert waited[""] > 0


def test_an_experiment_that_changes_nothing_is_not_tried() -> None:
    made = launches(f"{SLOW}/launching.py:gather")
    for name in ("banks of their own", "no atomics", "float32", "no local memory"):
        with pytest.raises(NotRun, match="its code"):
            tried(name, made)
    with pytest.raises(NotRun, match="one launch"):
        tried("nothing between kernels", made)


def test_bits_of_a_double_are_not_guessed_at() -> None:
    ptx = (
        ".version 8.4\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
        "\t.reg .f64 %fd<3>;\n\t.reg .b64 %rd<3>;\n\tld.param.u64 %rd1, [p];\n"
        "\tld.global.f64 %fd1, [%rd1];\n\tmov.b64 %rd2, %fd1;\n\tret;\n}\n"
    )
    with pytest.raises(NotRun, match="bits of a float64"):
        arithmetic.single(ptx, "k")
    fine = ptx.replace("mov.b64 %rd2, %fd1", "add.f64 %fd2, %fd1, 0d4000000000000000")
    made, changed = arithmetic.single(fine, "k")
    assert changed == 2
    assert "add.f32 %fd2, %fd1, 0f40000000;" in made
    assert "cvt.rn.f32.f64 %fd1, %xg0;" in made
    assert ".reg .f32 %fd<3>" in made
    assert ".reg .f64 %xg<1>" in made


def test_a_swap_that_is_left_out_has_won() -> None:
    new = entry.New({"%r": "b32", "%rd": "b64"})
    one = entry.read("\t@%p3 atom.global.cas.b32 %r1, [%rd1+4], %r2, %r3;")
    assert one is not None
    from assay.explain.experiments.access import without_atomics

    made = without_atomics(one, new)
    assert made is not None
    assert "mov.b32 %r1, %r2;" in made
    assert "and.pred %xp0, %xp0, %p3;" in made
    assert made[-1] == "@%xp0 atom.global.cas.b32 %r1, [%rd1+4], %r2, %r3;"


@pytest.mark.full
@pytest.mark.parametrize(("way", "kernels"), [("triton", 1), ("numba", 1)])
def test_launches_of_other_ways_are_noted_and_changed_as_well(way: str, kernels: int) -> None:
    pytest.importorskip(way)
    made = launches("softmax", way)
    assert len(made) == kernels
    changed = tried("no stores", made)
    assert assembled(changed.launches[0].compiled.ptx, "sm_90").startswith(b"\x7fELF")
    copies = Copies("cpu")
    args = packed(made[0], copies.address)
    assert len(copies.held) == 2  # x and y
    assert all(len(arg) in (1, 2, 4, 8) for arg in args)


def test_copies_point_to_the_same_element() -> None:
    copies, whole = Copies("cpu"), torch.arange(64, dtype=torch.float32)
    begin, inside = copies.address(whole), copies.address(whole[10:])
    assert inside - begin == 40
    assert begin != whole.data_ptr()


@pytest.mark.parametrize(
    ("predicted", "gain", "told"),
    [
        (4.0, (3.5, 4.0, 4.4), CONFIRMED),
        (4.0, (1.0, 1.1, 1.2), REFUTED),
        (4.0, (6.5, 7.0, 7.4), REFUTED),
        (4.0, (2.0, 2.8, 3.5), CANNOT),
        (1.2, (0.98, 1.0, 1.02), REFUTED),  # within the factor, and no gain at all
        (1.2, (1.1, 1.15, 1.2), CONFIRMED),
        (0.5, (0.45, 0.5, 0.6), CONFIRMED),
        (0.8, (1.0, 1.0, 1.0), REFUTED),
        (1.0, (0.9, 1.0, 1.1), CONFIRMED),
    ],
)
def test_a_word_is_said_of_the_whole_interval(
    predicted: float, gain: tuple[float, float, float], told: str
) -> None:
    assert word(predicted, gain) == told


def test_a_gain_is_for_the_same_work_and_paired_by_round() -> None:
    rounds = list(range(12))
    base = [4.0e-5 * (1 + 0.2 * (r % 3)) for r in rounds]
    changed = [time / 2 for time in base]
    low, middle, high = seen(base, rounds, changed, rounds)
    assert (low, high) == pytest.approx((2.0, 2.0))
    assert seen(base, rounds, changed, rounds, 0.5)[1] == pytest.approx(middle / 2)
    assert capped(120.0, 64) == 64
    assert capped(3.0, None) == 3.0


def finding(cause: str, gain: float) -> Finding:
    return Finding(cause, "evidence", gain, "arithmetic", "counted", "advice")


def explanation(*findings: Finding) -> Explanation:
    return Explanation(Facts(of_architecture("sm_90")), "memory", "said", findings)


class Session:
    """Gives children that say what they are told to, and then end."""

    def __init__(self, *scripts: list[dict[str, Any]]):
        self.scripts, self.asked = list(scripts), list[list[str]]()
        self.sent: list[list[str]] = []
        """Names in jobs that a child got behind its first."""
        self.stopped = types.SimpleNamespace(is_set=lambda: False)

    @contextmanager
    def child(self, job: str, args: dict[str, Any], **_: Any) -> Iterator[Any]:
        assert job == "assay.explain.experiments.child:main"
        self.asked.append(args["names"])
        said = iter(self.scripts.pop(0))

        def receive(seconds: float) -> dict[str, Any]:
            for message in said:
                return message
            raise Ended(types.SimpleNamespace(label="signal SIGSEGV"))  # type: ignore[arg-type]

        def send(**job: Any) -> None:
            self.sent.append(job["names"])

        yield types.SimpleNamespace(receive=receive, send=send)

    def log_tail(self, name: str, lines: int) -> str:
        return "illegal address"


def measured(name: str, seconds: float, **other: Any) -> dict[str, Any]:
    return {
        **{"name": name, "clock": DEVICE, "samples": [seconds] * 9, "rounds": list(range(9))},
        **{"median": seconds, "said": "2 in the code", "work": 1.0, "most": None, "late": 0},
        **other,
    }


def prove(session: Session, found: Explanation) -> tuple[Trial, ...]:
    with proving.Bench(session, "cuda:0") as bench:  # type: ignore[arg-type]
        return proving.prove(bench, parse("softmax"), "cuda/online", {}, found)


def test_an_experiment_that_dies_costs_its_own_result() -> None:
    found = explanation(finding("spills", 2.0), finding("tail", 1.5))
    session = Session(
        [{"trying": ""}, {"trying": "no launch bounds"}],
        [
            {"trying": ""},
            {"not_tried": "no local memory", "reason": "its code touches no local memory"},
            {"sampling": True},
            {"done": [measured("", 3e-5), measured("whole waves", 1e-5, work=0.5)]},
        ],
    )
    first, second, third = prove(session, found)
    assert session.asked == [
        ["no launch bounds", "no local memory", "whole waves"],
        ["no local memory", "whole waves"],
    ]
    assert first.word == NOT
    assert first.said == "it ended its process with signal SIGSEGV: illegal address"
    assert second.word == NOT
    assert third.word == CONFIRMED
    assert third.gain == pytest.approx((1.5, 1.5, 1.5))
    text = "\n".join(lines((first, second, third)))
    assert "1 of 1 came true" in text
    assert "1.50x predicted, 1.50x seen" in text
    assert "times of experiments, not of kernels" in " ".join(text.split())


def test_one_process_tries_kernel_after_kernel_until_it_ends() -> None:
    found = explanation(finding("tail", 1.5))
    done: dict[str, Any] = {"done": [measured("", 3e-5), measured("whole waves", 2e-5)]}
    session = Session([done, done], [done | {"spent": True}], [done])
    with proving.Bench(session, "cuda:0") as bench:  # type: ignore[arg-type]

        def word_of() -> str:
            (one,) = proving.prove(bench, parse("softmax"), "cuda/online", {}, found)
            return one.word

        assert [word_of(), word_of()] == [CONFIRMED, CONFIRMED]
        assert (len(session.asked), len(session.sent)) == (1, 1), "the child is kept"
        assert word_of() == CONFIRMED, "it ended between two jobs, which costs no result"
        assert (len(session.asked), len(session.sent)) == (2, 2)
        assert word_of() == CONFIRMED
        assert len(session.asked) == 3, "what a failed capture has spent is not used again"


def test_where_no_one_ran_alone_all_are_lost_with_the_reason() -> None:
    found = explanation(finding("tail", 1.5), finding("few bytes in flight", 2.0))
    trials = prove(Session([{"trying": ""}, {"trying": "whole waves"}, {"sampling": True}]), found)
    assert {one.word for one in trials} == {NOT}
    assert any(one.said == proving.NONE for one in trials)
    assert any("while no single one ran" in one.said for one in trials)


def test_an_experiment_that_leaves_the_blocks_shows_less_than_the_repair() -> None:
    """524,288 blocks of 64 threads at 1.33 clocks each take 352 us, however many are resident."""
    made = geometry(1 << 19, 64, arch="sm_90", registers=16, dynamic_shared=200_000)
    card = of_architecture("sm_90")
    facts = Facts(card, launches=(Launch(made),), must_bytes=8 << 24, seconds=2.5e-3)
    found = Explanation(facts, "latency", "", (finding(costs.OCCUPANCY, 40.0),))
    starts = reached.START_SECONDS + (1 << 19) * reached.BLOCK_CLOCKS / card.clock_hz
    assert reached.starting(replace(facts, counts=Counts())) == pytest.approx(starts)
    counted = replace(found, facts=replace(facts, counts=Counts()))
    lifted = predicted(BY_NAME["more blocks resident"], counted)
    usual = reached.seconds(counted.facts, (costs.OCCUPANCY,))
    assert lifted == pytest.approx(40.0 * usual / starts)
    four = Launch(geometry(1 << 16, 256, arch="sm_90", registers=16), times=4)
    chain = replace(counted.facts, launches=(four,), moved_bytes=32 << 24)
    begun = 4 * reached.START_SECONDS + (1 << 18) * reached.BLOCK_CLOCKS / card.clock_hz
    seen_less = reached.seconds(chain, (costs.CHAIN,)) / begun
    assert seen_less < 0.4
    found = Explanation(chain, "memory", "", (finding(costs.CHAIN, 4.0),))
    tried = predicted(BY_NAME["nothing between kernels"], found)
    assert tried == pytest.approx(4.0 * seen_less)
    work = replace(counted, findings=(finding(costs.WORK, 7.0),))
    assert predicted(BY_NAME["empty blocks"], work) == pytest.approx(2.5e-3 / starts)


def test_every_cause_but_one_has_an_experiment() -> None:
    from assay.explain.causes import CAUSES

    assert [cause for cause in CAUSES if not of_cause(cause)] == ["few bytes in flight"]
    assert len({one.name for one in ALL}) == len(ALL)


def test_the_child_loads_warms_and_samples_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its whole way, with a driver and clocks that only note what they are asked."""
    loaded: list[str] = []

    class Driver:
        def function(self, cubin: bytes, name: str) -> str:
            loaded.append(name)
            return name

        def attribute(self, function: str, number: int) -> int:
            return {child.REGISTERS: 16, child.LOCAL_BYTES: 0}.get(number, 0)

        def allow(self, function: str, shared: int) -> None:
            pass

        def resident(self, function: str, threads: int, shared: int) -> int:
            return 8

        def prepared(self, function: str, one: Launched, args: list[bytes]) -> Any:
            return lambda stream: None

    class Clock:
        windows, late = 1, 0

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def sample(self) -> float:
            return 2e-5

    has = types.SimpleNamespace(
        multi_processor_count=132,
        shared_memory_per_multiprocessor=228 << 10,
        shared_memory_per_block_optin=227 << 10,
    )
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: has)
    stream = types.SimpleNamespace(cuda_stream=0)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(child, "Driver", Driver)
    monkeypatch.setattr(child, "Copies", lambda device: Copies("cpu"))
    monkeypatch.setattr(child, "gpu_of", lambda device: types.SimpleNamespace(flush=0, fixed=0.0))
    monkeypatch.setattr(child.events, "Events", Clock)
    monkeypatch.setattr(child.events, "host_seconds", lambda call: 1e-5)
    sent: list[dict[str, Any]] = []
    import msgspec

    target = msgspec.to_builtins(parse(f"{SLOW}/access.py:scale"))
    names = ["neighbouring addresses", "no atomics", "no stores"]
    job = {"target": target, "wanted": "cuda/slow", "case": {}, "names": names, "seconds": 0.1}
    jobs = iter([job | {"wanted": "cuda/none"}])

    def receive() -> dict[str, Any]:
        for one in jobs:
            return one
        raise Closed

    channel = types.SimpleNamespace(send=lambda **message: sent.append(message), receive=receive)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    child.main(channel, "cuda:0", **job)  # type: ignore[arg-type]
    assert "cuda/none" in sent.pop()["mistake"], "the second job"
    done = sent[-1]["done"]
    assert [one["name"] for one in done] == ["", "neighbouring addresses", "no stores"]
    assert len(done[0]["samples"]) >= child.LEAST_ROUNDS
    assert [m["not_tried"] for m in sent if "not_tried" in m] == ["no atomics"]
    assert loaded == ["down"] * 3
    assert "16 registers" in done[0]["said"]


def test_a_launch_holds_the_arguments_that_it_points_to() -> None:
    seen: list[bytes] = []

    def start(function: object, *rest: object) -> int:
        pointers = rest[8]
        assert isinstance(pointers, ctypes.Array)
        seen.append(b"".join(ctypes.string_at(p, 8) for p in pointers))
        return 0

    made = Driver.__new__(Driver)
    made._cuda = types.SimpleNamespace(cuLaunchKernel=start)
    one = Launched(Compiled("k", "", "sm_90", "cuda"), (1, 1, 1), (1, 1, 1), (), 0)
    launch = made.prepared(ctypes.c_void_p(), one, [b"argument", b"number 2"])
    del made
    gc.collect()
    filled = [ctypes.create_string_buffer(b"x" * 8, 8) for _ in range(1000)]  # over what was freed
    launch(0)
    assert seen == [b"argumentnumber 2"]
    assert len(filled) == 1000
