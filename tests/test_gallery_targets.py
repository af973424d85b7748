"""The gallery's sweep, its targets as arithmetic over rows, and its pictures; rows are made."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from assay.op import Op, cost, ops_in
from assay.rows import encode
from assay.rows import read as read_rows
from assay.session import Stopped
from assay.target import TOGETHER, library, load_op, parse
from assay.types import Case, Row, Share, Timing, replace
from benchmarks import gallery, paragraphs, pictures, standing, sweep, targets
from benchmarks.first_operators import RESULTS
from benchmarks.gallery import Turns, whole
from benchmarks.gallery_verdicts import tally
from benchmarks.sweep import SWEEP, Part

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden" / "gallery.svg"


def turns_of(*names: str) -> Turns:
    case = ({"n": 1},)
    return Turns([Part(name, case, ("cuda",)) for name in names], time.monotonic())


def row(op: str, variant: str, seconds: float, schedule: str = "s", **values: object) -> Row:
    """A right row with a timing of 40 samples that spread by a thousandth."""
    noise = 1 + 1e-3 * np.random.default_rng(len(variant)).standard_normal(40)
    samples = tuple(float(seconds * x) for x in noise)
    return Row(
        op=op,
        variant=variant,
        way=variant.partition("/")[0],
        case=Case({**values}),  # type: ignore[dict-item]
        device="cuda:0",
        machine="m",
        outcome="pass",
        word="right",
        bytes=1 << 29,
        timing=Timing(
            samples=samples,
            rounds=tuple(range(40)),
            schedule=schedule,
            method="cupti",
            cache="cold L2",
            median=seconds,
            low=0.999 * seconds,
            high=1.001 * seconds,
            copy_rate=3e12,
        ),
    )


def answered(rows: list[Row]) -> dict[str, targets.Answer]:
    """The answer to each target."""
    return {answer.target.what: answer for answer in targets.answers(rows)}


def said(rows: list[Row]) -> dict[str, str]:
    """The word for what each target must be, without what is still to come."""
    found = {what: answer.words[0] for what, answer in answered(rows).items()}
    return {what: word.partition(" so far")[0] for what, word in found.items() if word}


def test_a_part_of_the_sweep_says_so() -> None:
    """Two of the twelve cases of softmax; and the one case of a target is all of it."""
    part = [
        row("softmax", way, seconds, rows=8192, n=8192, dtype=dtype)
        for dtype in ("float32", "bfloat16")
        for way, seconds in (("cuda/held", 1e-4), ("compiled", 2e-4))
    ]
    found = {what: answer.words[0] for what, answer in answered(part).items()}
    whole = "softmax over compile, geometric mean"
    assert found[whole] == "met so far, 10 cases to come"
    assert found["softmax float32 8192 x 8192 over best torch"] == "met"
    assert found["softmax over Liger, geometric mean"] == "not measured"


SQUARE = {"rows": 8192, "n": 8192, "dtype": "bfloat16"}


@pytest.mark.parametrize(
    ("torch", "word"), [(1.9e-4, "met"), (1.7e-4, "missed"), (1.8e-4, "cannot tell")]
)
def test_a_target_is_held_against_the_fastest_peer(torch: float, word: str) -> None:
    rows = [
        row("softmax", "cuda/held", 1.0e-4, **SQUARE),
        row("softmax", "triton", 1.2e-4, **SQUARE),
        row("softmax", "eager", 3.0e-4, **SQUARE),
        row("softmax", "compiled", torch, **SQUARE),
    ]
    found = said(rows)
    assert found["softmax bfloat16 8192 x 8192 over best torch"] == word
    assert found["softmax float32 8192 x 8192 over best torch"] == "not measured"


@pytest.mark.parametrize(
    ("torch", "word"), [(2.3e-4, "met"), (1.9e-4, "not met"), (2.2e-4, "cannot tell")]
)
def test_the_stretch_stands_beside_what_must_be(torch: float, word: str) -> None:
    rows = [row("softmax", "cuda/held", 1e-4, **SQUARE), row("softmax", "eager", torch, **SQUARE)]
    answer = answered(rows)["softmax bfloat16 8192 x 8192 over best torch"]
    assert answer.words == ("met", word)
    (line,) = (one for one in targets.table(rows) if "bfloat16 8192 x 8192" in one)
    assert line.endswith(f", must 1.8: met, stretch 2.2: {word}")
    table = "\n".join(pictures.of_targets(rows))
    assert f"over best torch | 1.8 | met | 2.2 | {word} |" in table


def test_what_no_row_can_answer_has_a_reason() -> None:
    lines = "\n".join(targets.table([]))
    for what in ("sum of (128, 4096, 4095)", "rmsnorm over the channels"):
        assert re.search(rf"{re.escape(what)}.*: -, stretch .*: not measured: \w", lines)
    only = [one for one in targets.TARGETS if one.must is None]
    assert {one.number for one in only} == {2, 3}
    assert all(one.stretch for one in only)


def test_the_worst_case_is_not_hidden_by_the_mean() -> None:
    rows = []
    for n, ours in ((4096, 1.0e-4), (256, 2.2e-4)):
        values = {"rows": 32768, "n": n, "dtype": "float32"}
        rows += [
            row("softmax", "cuda/held", ours, str(n), **values),
            row("softmax", "compiled", 2.0e-4 if n == 256 else 4.0e-4, str(n), **values),
        ]
    found = said(rows)
    assert found["softmax over compile, geometric mean"] == "met"
    assert found["softmax, worst case over any peer"] == "missed"
    answer = answered(rows)["softmax over compile, geometric mean"]
    assert answer.worst[0] == "softmax rows=32768 n=256 dtype=float32"
    assert answer.worst[1][1] == pytest.approx(2 / 2.2, rel=1e-3)
    (line,) = (one for one in targets.table(rows) if "over compile, geometric" in one)
    assert ", worst softmax rows=32768 n=256 dtype=float32 0.909 (" in line
    assert any("| 0.909 (" in one for one in pictures.of_targets(rows))


def test_what_a_peer_wins_is_listed_worst_first() -> None:
    rows = []
    for n, ours in ((4096, 1.05e-4), (256, 2.2e-4), (512, 0.9e-4), (1024, 1.0e-4)):
        values = {"rows": 7, "n": n, "dtype": "float32"}
        rows += [
            row("softmax", "triton", 2 * ours, str(n), **values),
            row("softmax", "cuda/held", ours, str(n), **values),
            row("softmax", "numba", 1e-5, str(n), **values),  # no peer
            row("softmax", "eager", 1.5e-4 if n != 256 else 2.1e-4, str(n), **values),
            row("softmax", "library/liger", 1.0e-4 if n != 256 else 3e-4, str(n), **values),
        ]
    found = standing.losses(rows)
    assert [(loss.ours.case.values["n"], loss.peer.variant) for loss in found] == [
        *((4096, "library/liger"), (256, "eager"))
    ]
    assert found[0].interval[1] == pytest.approx(1 / 1.05, rel=2e-3)
    lines = list(standing.lost(rows))
    assert lines[0] == "losses to the fastest peer: 2 of 4 cases"
    assert re.fullmatch(
        r"  0\.95\d \(0\.\d+ to 0\.\d+\) softmax rows=7 n=4096 dtype=float32: "
        r"`cuda/held` 105 us, `library/liger` 100 us",
        lines[1],
    )
    assert list(gallery.report(rows, Path("no such folder")))[-2:] == lines[1:]
    assert any(loss in one for one in pictures.of_losses(rows) for loss in (lines[1].strip(),))
    assert not standing.losses([replace(one, device="cpu") for one in rows])


def processes(*ratios: float) -> list[Row]:
    """Softmax of one case, in a process each: of the peer's time over ours."""
    values = {"rows": 8192, "n": 8192, "dtype": "bfloat16"}
    return [
        row("softmax", variant, seconds, schedule, **values)
        for schedule, ratio in zip("abcde", ratios)
        for variant, seconds in (("cuda/held", 1e-4), ("compiled", ratio * 1e-4))
    ]


def test_of_several_processes_the_interval_holds_what_differs_between_them() -> None:
    what = "softmax bfloat16 8192 x 8192 over best torch"
    alone, alike, apart = (
        answered(processes(*ratios))[what]
        for ratios in ((1.9,), (1.90, 1.901, 1.899), (1.7, 1.9, 2.1))
    )
    assert [one.words[0] for one in (alone, alike, apart)] == ["met", "met", "cannot tell"]
    assert alike.whole is not None
    assert apart.whole is not None
    low, middle, high = apart.whole
    assert middle == pytest.approx((1.7 * 1.9 * 2.1) ** (1 / 3), rel=1e-3)
    assert low < 1.7 < 2.1 < high
    assert alike.whole[2] - alike.whole[0] < 0.02


def test_a_kernel_stands_for_its_middle_process() -> None:
    """The luckiest process of one is no better than the usual ones of another."""
    values = {"rows": 8192, "n": 8192, "dtype": "bfloat16"}
    rows = [
        row("softmax", variant, seconds, schedule, **values)
        for variant, times in (("cuda/held", (1.0, 1.3, 1.3)), ("cuda/cluster", (1.2, 1.2, 1.2)))
        for schedule, seconds in zip("abc", times)
    ]
    found = targets.best(rows, ways=("cuda",))
    assert found is not None
    assert found.variant == "cuda/cluster"
    assert [r.timing.median for r in targets.middle(rows) if r.timing] == pytest.approx(
        [1.3, 1.2], rel=1e-3
    )
    assert "3 processes" in "".join(standing.clocks(rows))


def test_kernels_of_no_common_process_are_set_against_each_other_by_nobody() -> None:
    ours, peer = processes(1.9)
    peer = replace(peer, timing=replace(peer.timing, schedule="b"))
    with pytest.raises(ValueError, match="no common schedule"):
        targets.against([ours, peer], ours, peer)


def test_a_cast_of_a_peers_answer_is_told_beside_its_time() -> None:
    """QuACK's loss is float32: in bfloat16 a kernel of torch's rounds it."""
    for dtype in ("float32", "bfloat16"):
        values = {"rows": 7, "n": 8, "dtype": dtype}
        ours = row("cross_entropy", "cuda/held", 1e-4, **values)
        peer = row("cross_entropy", "library/quack", 0.95e-4, **values)
        (lost,) = [loss.text for loss in standing.losses([ours, peer])]
        listed = "\n".join(gallery.lines([ours, peer]))
        for text in (lost, listed):
            assert (", a cast in it" in text) == (dtype == "bfloat16")
    names = {name for part in SWEEP for name in (part.op,)}
    assert {op for op, _ in sweep.CASTS} <= names


def test_a_report_says_which_clock_each_operator_was_timed_with() -> None:
    rows = [
        row("softmax", variant, 1e-4, rows=7, n=8, dtype=dtype)
        for variant in ("cuda/held", "compiled", "eager")
        for dtype in ("float32", "bfloat16")
    ]
    by_events = [
        replace(one, timing=replace(one.timing, method="events", kernels=kernels))
        for one, kernels in zip(rows[2:4], (3, 5))
    ]
    lines = list(standing.clocks([*rows[:2], *by_events, *rows[4:]]))
    assert lines[1:] == ["  softmax: 4 of 6 by CUPTI; 2 by events: compiled (3 to 5 kernels)"]
    assert lines[0] in list(gallery.report(rows, Path("no such folder")))


def test_the_host_has_a_place_in_the_report(tmp_path: Path) -> None:
    (line, more) = standing.host(tmp_path)
    assert "not measured: no host.jsonl" in line
    assert "Triton's and Numba's" in more
    text = "  target 15: {} (cuda/held, the usual one: x; native): 7.4 us, eager 9.9 us: {} x, must"
    said = [("softmax, current stream", "0.73 (0.70 to 0.78)"), ("square", "0.45 (0.44 to 0.46)")]
    (tmp_path / "host.txt").write_text("\n".join(text.format(*one) for one in said))
    (line, _) = standing.host(tmp_path)
    assert "2 calls: 0.45 to 0.73, worst softmax, current stream 0.73 (0.70 to 0.78)" in line
    assert line.endswith("at most 1: met, stretch 0.5: not met")


def test_what_did_not_run_is_told_once() -> None:
    rows = [
        replace(
            row("softmax", "library/quack", 1e-4, rows=7, n=n, dtype="float32"),
            outcome="absent",
            word="not run",
            reason="not here",
            timing=None,
        )
        for n in (8, 9)
    ]
    assert list(gallery.lines(rows)) == ["  softmax library/quack 2 cases: not run: not here"]


def test_a_rate_is_held_against_the_copy_of_its_schedule() -> None:
    seconds = (1 << 29) / 3e12 / 0.96
    rows = [row("transpose", "cuda/vectorised", seconds, m=8192, n=8192, dtype="float32")]
    assert said(rows)["transpose float32 of a copy"] == "met"
    small = [targets_small(rows[0])]
    assert said(small)["transpose float32 of a copy"] == "not measured"


def targets_small(one: Row) -> Row:
    from assay.types import replace

    return replace(one, bytes=1 << 20)


def test_reading_is_held_against_the_ceiling_of_reading_alone() -> None:
    from assay.types import replace

    made = row("sum", "cuda/two_stages", 1e-3, n=1 << 28, dtype="float32")
    assert made.timing
    for of, word in (("read", "met"), ("copy", "not measured")):
        share = Share(value=0.97, of=of, roofs="r")
        shared = replace(made, timing=replace(made.timing, share=share))
        assert said([shared])["sum of reading, 2^28"] == word


def test_no_case_outside_of_the_sweep_counts() -> None:
    values = {"rows": 8192, "n": 8193, "dtype": "float32"}
    rows = [row("softmax", "cuda/held", 1e-4, **values), row("softmax", "compiled", 2e-4, **values)]
    assert set(said(rows).values()) == {"not measured"}


def library_ops() -> list[Op]:
    """Every operator and gradient of the library."""
    modules = dict.fromkeys(TOGETHER.get(name, name) for name in library())
    return [op for m in modules for op in ops_in(importlib.import_module(f"assay.ops.{m}"))]


KERNELS = ("cuda", "triton", "numba", "extension")


def test_the_sweep_has_every_operator_and_every_gradient_with_kernels() -> None:
    """Two sizes at least, from what an L2 of 60 MiB holds to more than that; bfloat16 too."""
    parts = {part.op: part for part in SWEEP}
    assert len(parts) == len(SWEEP), "one part an operator"
    no_bfloat16 = set()
    for op in library_ops():
        ways = {variant.way for variant in op.variants} & {*KERNELS}
        if not ways:
            assert op.of is not None, f"{op.name} has no kernel"
            assert op.name not in parts
            continue
        part = parts.pop(op.name)
        names = {variant.name for variant in op.variants}
        assert set(part.ours) <= names, op.name
        assert {name.partition("/")[0] for name in part.ours} >= ways - {"extension"}, op.name
        by_dtype: dict[object, list[int]] = {}
        for case in part.cases:
            moved = cost(op, "bytes", Case(case)) or 0
            by_dtype.setdefault(case.get("dtype"), []).append(moved)
        single = by_dtype.get("float32") or by_dtype[None]
        assert len(single) >= 2, op.name
        if op.bytes is not None:
            # 32,768 rows of 256, the least of softmax, are just more than it holds.
            assert min(single) <= 64 << 20, op.name
            assert max(single) > 60 << 20, op.name
        if "bfloat16" not in by_dtype:
            no_bfloat16.add(op.name)
    assert not parts
    assert no_bfloat16 == {"hello", "philox", "histogram", "counters", "float_counters"}
    assert all("extension" in p.ours for p in SWEEP if p.op in ("square", "polynomial"))


def test_a_part_of_the_sweep_is_asked_for_by_operators_and_groups() -> None:
    assert sweep.chosen("") == list(SWEEP)
    assert [part.op for part in sweep.chosen("gelu,softmax")] == ["softmax", "gelu"]
    chosen = sweep.chosen("activations,softmax")
    assert {part.group for part in chosen} == {"targets", "activations"}
    assert len(chosen) == 15
    with pytest.raises(ValueError, match=r"no_such: no operator of the sweep, nor one of targets"):
        sweep.chosen("no_such")
    beside = {g: sum(part.group == g for part in SWEEP) for g in sweep.GROUPS}
    assert max(beside.values()) <= 16, "two candidates of each have 16 cores"


def test_of_each_kernel_dtype_and_inputs_the_last_judgement_counts(tmp_path: Path) -> None:
    def file(name: str, *rows: Row, whole: tuple[str, ...] = ("own", "torch")) -> Path:
        path = tmp_path / name
        ends = [{"kind": "whole", "name": "sum", "part": part} for part in whole]
        lines = [*map(encode, rows), *(json.dumps(end).encode() for end in ends)]
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    def found(*paths: Path) -> list[tuple[str, str, str, int]]:
        lines = map(json.loads, tally(paths))
        return [(one["kernel"], one["inputs"], one["word"], one["cases"]) for one in lines]

    right = row("sum", "eager", 1e-5, n=1, dtype="float32")
    hostile = replace(right, case=replace(right.case, zoo="x:nan"))
    wrong = replace(right, outcome="fail", word="wrong value", reason="2, expected 1")
    more = replace(right, case=replace(right.case, values={**right.case.values, "n": 2}))
    other = row("sum", "cuda", 1e-5, n=1, dtype="float32")
    first = tmp_path / "first.jsonl"
    first.write_text("\n".join(tally([file("a.jsonl", wrong, more, hostile, other)])))
    said = [
        ("cuda", "declared", "right", 1),
        ("eager", "declared", "right", 1),
        ("eager", "declared", "wrong value", 1),
        ("eager", "hostile", "right", 1),
    ]
    assert found(first) == said
    failure = next(json.loads(line) for line in first.read_text().splitlines() if "wrong" in line)
    assert failure["failures"] == ["n=1 dtype=float32: 2, expected 1"]
    # Declared inputs alone were judged again, one in two goes: the hostile stay as they were.
    again = file("b.jsonl", wrong, right, more, whole=("own",))
    assert found(first, again) == [said[0], ("eager", "declared", "right", 2), said[3]]
    cut = file("c.jsonl", right, hostile, whole=())
    assert found(first, cut) == said, "what was cut off says nothing"
    assert found(file("d.jsonl", wrong, hostile, whole=("own",))) == [said[2]]


def test_of_each_operator_the_last_file_that_timed_it_counts(tmp_path: Path) -> None:
    machine = next(iter(read_rows(RESULTS / "nvidia-h200" / "gallery.jsonl")))
    cut = replace(row("gelu", "triton", 1.0), timing=None)
    files = {
        "a": [row("square", "triton", 1.0), row("gelu", "triton", 1.0)],
        "b": [row("square", "triton", 2.0), cut],
    }
    for name, rows in files.items():
        (tmp_path / name).write_bytes(b"".join(encode(one) + b"\n" for one in (machine, *rows)))
    gallery.join([tmp_path / name for name in files], tmp_path / "both")
    medians = {one.op: one.timing for one in gallery.read(tmp_path / "both")}
    assert {op: timing and timing.median for op, timing in medians.items()} == {
        "square": 2.0,
        "gelu": 1.0,
    }
    part = next(part for part in SWEEP if part.op == "square")
    every = [row("square", "triton", 3.0, **case) for case in part.cases]
    for name, rows in {"whole": every, "part": every[:1]}.items():
        (tmp_path / name).write_bytes(b"".join(encode(one) + b"\n" for one in (machine, *rows)))
    gallery.join([tmp_path / name for name in ("a", "whole", "part")], tmp_path / "both")
    kept = [one for one in gallery.read(tmp_path / "both") if one.op == "square"]
    assert len(kept) == len(part.cases) > 1, "what was cut off is not put in place of all"
    (tmp_path / "none").write_bytes(encode(files["a"][0]) + b"\n")
    with pytest.raises(SystemExit, match="one card's files"):
        gallery.join([tmp_path / "none"], tmp_path / "both")


def test_who_has_most_to_do_gets_most_of_the_cores() -> None:
    group = [part for part in SWEEP if part.group == "targets"]
    turns = Turns(group, 0.0)
    shares = {part.op: turns.beside(part) for part in group}
    assert min(shares, key=lambda name: shares[name]) == "softmax"
    assert max(shares.values()) == len(group)
    alone = group[:1]
    assert Turns(alone, 0.0).beside(alone[0]) == 1


def test_groups_that_come_too_late_are_told_of() -> None:
    groups = [turns_of("a", "b"), turns_of("c")]
    for name in ("a", "b"):
        groups[0].over(name)
    gallery.stop(groups)
    assert [group.cut for group in groups] == [set(), {"c"}]
    with pytest.raises(Stopped):
        groups[1].take(None)  # type: ignore[arg-type]


def test_the_operators_of_targets_have_a_row_of_each_library() -> None:
    from benchmarks import peers

    for part in SWEEP:
        op = peers.OPS[part.op]
        variants = {variant.name: variant for variant in op.variants}
        assert "compiled/max_autotune" in variants
        assert getattr(peers, part.op) is op
        assert [case.values for case in op.cases] == list(part.cases)
        if part.group == "targets":
            assert {"library/liger", "library/quack"} <= {*variants}, part.op
    quack = peers.OPS["vecadd"].find("library/quack")
    assert quack.when is not None
    assert quack.when() == "QuACK has no vecadd"
    assert peers.fits_liger(65_536) is True
    assert "65,536" in str(peers.fits_liger(65_537))
    assert peers.fits_quack(1 << 19) is True
    assert "QuACK" in str(peers.fits_quack(1 << 22))
    # What an operator changes in place is known for what its reference returns.
    changed = peers.OPS["shift_left"]
    tuned = changed.find("compiled/max_autotune").function
    assert vars(tuned)["_torchdynamo_orig_callable"] is changed.reference
    assert load_op(parse("softmax"), "softmax").cases != peers.OPS["softmax"].cases


def test_a_statistic_is_what_a_forward_keeps() -> None:
    import torch

    from benchmarks import peers

    x = torch.randn(5, 33, generator=torch.Generator().manual_seed(0))
    _, mean, rstd = torch.native_layer_norm(x, [33], None, None, 1e-5)
    ours = peers.layernorm_statistics(x)
    torch.testing.assert_close(ours, (mean[:, 0], rstd[:, 0]))
    want = torch.rsqrt(x.square().mean(-1) + 1e-6)
    torch.testing.assert_close(peers.rmsnorm_statistics(x), want)
    assert peers.log_of_sum(x.to(torch.bfloat16)).dtype is torch.float32


@pytest.mark.gallery
def test_a_session_is_opened_without_what_can_not_be_imported_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    for name, told in (("benchmarks.loaded", False), ("benchmarks.no_such", True)):
        monkeypatch.setattr(gallery, "LOADED", name)
        with gallery.opened(tmp_path) as session:
            assert session.machine().cores
        assert ("can't be imported ahead" in capsys.readouterr().out) == told


@pytest.mark.full
def test_what_is_imported_ahead_never_asks_the_driver(tmp_path: Path) -> None:
    """Whether there is a GPU, and which, is told to whoever asks while it is imported."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 9.0\necho 9.0\n")
    tool.chmod(0o755)
    code = """if True:
        import os, torch
        asked = []
        torch.cuda.is_available = lambda: asked.append(1)
        from benchmarks import loaded
        loaded.pinned()
        with loaded.answered(True):
            told = torch.cuda.is_available()
        said = len(asked), told, os.environ["QUACK_ARCH"], os.environ["CUTE_DSL_ARCH"]
        torch.cuda.is_available()
        print(*said, len(asked), flush=True)
    """
    env = {k: v for k, v in os.environ.items() if k not in ("QUACK_ARCH", "CUTE_DSL_ARCH")}
    env["PATH"] = f"{tmp_path}{os.pathsep}{env['PATH']}"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.stdout == "0 True 90 sm_90a 1\n", done.stderr


@pytest.mark.full
def test_a_process_that_compiles_nothing_does_not_import_inductor() -> None:
    """It takes seconds, and every kernel of every operator is judged in a process of its own."""
    code = (
        "import os, sys; os.environ.pop('TORCHINDUCTOR_COMPILE_THREADS', None); "
        "import benchmarks.peers; assert 'torch._inductor' not in sys.modules; "
        "benchmarks.peers.untold(); import torch._inductor.config as c; "
        "assert not c.autotune_local_cache"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_every_target_speaks_of_cases_that_the_sweep_has() -> None:
    parts = {part.op: part for part in SWEEP}
    for target in targets.TARGETS:
        cases = [case for op in target.ops for case in parts[op].cases if target.where(case)]
        assert cases, target.what


def test_a_picture_shows_every_way_and_the_ceiling() -> None:
    rows = [
        row("softmax", variant, seconds * n, str(n), rows=64, n=n, dtype="float32")
        for n in (1, 4)
        for variant, seconds in (("cuda/held", 2e-4), ("eager", 4e-4))
    ]
    made = pictures.svg("softmax", "float32", rows, "A card")
    xml.etree.ElementTree.fromstring(made)
    for text in (">cuda<", ">eager<", "the copy beside", "A card"):
        assert text in made
    assert len(re.findall("<polyline", made)) == 3
    if "--update-golden" in sys.argv:
        GOLDEN.write_text(made)
    assert made == GOLDEN.read_text()


def test_operators_are_timed_in_order_once_all_are_judged() -> None:
    """Whoever is judged first waits for the last; what comes to nothing holds nobody up."""
    names = ["a", "b", "c", "d"]
    turns = turns_of(*names)
    timed: list[str] = []

    def one(name: str, seconds: float) -> None:
        time.sleep(seconds)
        if name != "b":  # fails while it is judged
            turns.judged(name)
            assert not turns.judging
            timed.append(name)
            time.sleep(0.02)
            turns.judged(name)  # of a second case: it is its turn still
        turns.over(name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, names, (0.0, 0.1, 0.05, 0.0)))
    assert timed == ["a", "c", "d"]


def test_a_limit_ends_those_that_wait_for_their_turn() -> None:
    turns = turns_of("a", "b")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(turns.judged, "b")
        turns.stop()
        with pytest.raises(Stopped):
            waiting.result(5)
    assert turns.cut == {"a", "b"}
    with pytest.raises(Stopped):
        turns.take(None)  # type: ignore[arg-type]


def test_a_paragraph_says_what_is_fastest_by_which_idea_and_beside_whom() -> None:
    rows = [
        row("softmax", way, seconds, rows=8192, n=8192, dtype="float32")
        for way, seconds in (
            ("cuda/held", 1e-4),
            ("cuda/streamed", 1.1e-4),
            ("compiled", 2e-4),
            ("eager", 3e-4),
        )
    ]
    said = paragraphs.paragraph(rows)
    assert said.startswith("**softmax, rows=8192 n=8192 dtype=float32**: `cuda/held` takes 100 us")
    assert "A row lies in the registers of a warp or a block: largest value, exps and their" in said
    assert "versions take `cuda/streamed` 1.10 times as long" in said
    assert said.endswith("Others: `compiled` 2.00, `eager` 3.00 times.")
    on_cpu = [replace(one, device="cpu") for one in rows]
    assert paragraphs.paragraph(on_cpu) == "", "times of a CPU stand beside none of a GPU"
    assert paragraphs.paragraph([replace(one, bytes=1000) for one in rows]) == ""


HEADER = """\
// y = f(x), in steps: one after the other.
//
// op_one, op_two   both of them,
//                  over two lines
// op_three  a third
// op_four, _grad_four
//           the same; but later. What it costs, other.cu shows.
// *_five    a star; op_six the same in shared memory
// assay::map1  wide (include/x.cuh has it): many at once
//
// bytes   8
op_seven  not here
"""


@pytest.mark.parametrize(
    ("name", "idea"),
    [
        ("op_one", "both of them, over two lines"),
        ("op_two", "both of them, over two lines"),
        ("op_three", "a third"),
        ("op_four", "a third; but later."),
        ("op_grad_four", "a third; but later."),
        ("op_five", "a star"),
        ("op_six", "a star; the same in shared memory"),
        ("wide", "many at once"),
        ("op_seven", "one after the other"),
    ],
)
def test_the_idea_of_a_kernel_is_what_its_file_says(name: str, idea: str) -> None:
    assert paragraphs.of_header(HEADER, [name]) == idea
    assert paragraphs.of_header(HEADER, ["op", name]) == idea, "the first that it knows"


def test_without_a_name_the_idea_is_what_the_opening_says(tmp_path: Path) -> None:
    said = "// y = x.\n//\n// The idea: one a thread. More.\n//\n// bytes   8\n"
    assert paragraphs.of_header(said, ["op"]) == "one a thread"
    assert paragraphs.of_header("// y = x.\n", ["op"]) == ""
    (tmp_path / "other.py").write_text('"""y = F(a) in Triton: one program for BLOCK."""')
    (tmp_path / "op").mkdir()
    for text, idea in (
        ("y in Triton: one program a row.", "one program a row"),
        ("y, in Triton.\n\nA lane an element. More.", "A lane an element"),
        ("y in Numba by halves.\n\nA block a row.", "by halves: a block a row"),
        ("y in Triton, and its gradient.\n\nA lane each.", "A lane each"),
        ("y by Triton's own way of doing it.", "Triton's own way of doing it"),
        ("y in Triton: what ../other.py maps over it.", "one program for BLOCK"),
        ("y in Triton.\n\nshapes  n", ""),
    ):
        file = tmp_path / "op" / "op_triton.py"
        file.write_text(f'"""{text}"""')
        assert paragraphs.of_module(file) == idea
    assert paragraphs.idea("softmax", "no/such") == ""
    assert paragraphs.idea("no_such_operator", "cuda/held") == ""
    walked = paragraphs.idea("lrn_grad", "cuda", ["lrn_grad_walked"])
    assert walked.startswith("a thread walks a strip")
    assert paragraphs.idea("lrn_grad", "cuda", ["lrn_grad_terms"]).startswith("wider windows")


def test_every_kernel_that_is_timed_has_an_idea_to_quote() -> None:
    swept = {(part.op, variant) for part in SWEEP for variant in part.ours}
    kept = [path for name in pictures.FILES for path in sorted(RESULTS.glob(f"*/{name}"))]
    rows = [one for path in kept for one in gallery.read(path) if one.timing]
    seen = {(one.op, one.variant) for one in rows if one.way in KERNELS}
    seen = {one for one in seen if one[1] not in sweep.PEERS}
    assert len(seen) > 30
    found = {one: paragraphs.idea(*one) for one in sorted(swept | seen)}
    assert not [one for one, idea in found.items() if len(idea) < 12], "no idea"
    assert not [idea for idea in found.values() if idea[0] in ",.:;'"]


def test_a_sweep_goes_on_with_operators_that_are_not_whole() -> None:
    (part,) = (one for one in SWEEP if one.op == "transpose")
    (other,) = (one for one in SWEEP if one.op == "sum")
    rows = [row("transpose", "triton", 1e-4, **case) for case in part.cases]
    rows += [row("sum", "triton", 1e-4, **case) for case in other.cases[:-1]]
    rows += [row("sum", "eager", 1e-4, **case) for case in other.cases]  # ours is not there
    assert whole(rows) == {"transpose"}
