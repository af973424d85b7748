"""Explanations: causes planted in counts, predicted gains, measured times, files, the command."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
from command import assay

from assay.commands import explaining
from assay.errors import AssayError
from assay.explain import Explanation, Facts, Launch, costs, explain, reached
from assay.explain.cards import of_architecture, of_machine
from assay.explain.extending import extended
from assay.explain.gathering import FIRST, chosen, smaller
from assay.explain.model import Operator
from assay.explain.peers import of_kernel, of_trace
from assay.explain.recorded import of_file, of_rows
from assay.explain.text import lines
from assay.inside.geometry import geometry
from assay.inside.reading.files import read
from assay.inside.reading.ncu import Finding, Kernel
from assay.rows import encode
from assay.session import Session
from assay.simt.counts import Access, Counts, Line
from assay.target import parse
from assay.types import GPU, Case, Compiled, Counters, Machine, Roof, Roofs, Row, Share, Timing

READING = Path(__file__).parent / "fixtures" / "reading"
CARD = of_architecture("sm_90")
N = 1 << 24
REQUESTS = N // 32
TIMED = {"method": "cupti", "cache": "cold L2", "schedule": "s", "rounds": (0,)}


def launch(
    blocks: int = N // 256, block: int = 256, registers: int = 16, shared: int = 0
) -> Launch:
    made = geometry(blocks, block, arch="sm_90", registers=registers, dynamic_shared=shared)
    return Launch(made)


def whole(sectors: int = 4, **more: int) -> Access:
    """A coalesced access of 4 bytes a lane, unless told otherwise."""
    ideal = 4 * REQUESTS
    return Access(REQUESTS, N, sectors * REQUESTS, ideal, bytes=4 * N, **more)


def counts(loads: Access | None = None, lanes: int = 32, **classes: int) -> Counts:
    mix = {"global": 2 * REQUESTS, "integer": 6 * REQUESTS, **classes}
    issued = sum(mix.values())
    accesses = {"global load": loads or whole(), "global store": whole()}
    return Counts((Line("k.cu", 7, issued, issued * lanes, mix, accesses),))


BASE = Facts(
    CARD, "copy", "cuda", "n", (launch(),), counts=counts(), counted_case="n", must_bytes=8 * N
)


def with_shared(access: Access) -> Counts:
    one = counts()
    more = Line("k.cu", 9, 0, 0, {}, {"shared load": access})
    return Counts((*one.lines, more))


def causes(facts: Facts) -> list[str]:
    return [one.cause for one in explain(facts).findings]


def changed(**fields: object) -> Facts:
    return dataclasses.replace(BASE, **fields)


def test_a_coalesced_copy_has_nothing_left_to_gain() -> None:
    found = explain(BASE)
    assert (found.bound, found.findings, found.sound) == ("memory", (), True)
    assert found.costs["DRAM"] == pytest.approx(8 * N / 3.35e12)
    said = " ".join(" ".join(lines(found)).split())
    assert "nothing left to gain in this kernel, by the model" in said
    assert "data sheet of the H100 SXM" in said


@pytest.mark.parametrize(
    ("cause", "fields"),
    [
        (costs.UNCOALESCED, {"counts": counts(whole(32))}),
        (
            costs.CONFLICTS,
            {"counts": with_shared(Access(REQUESTS, N, 0, 0, 64 * REQUESTS, REQUESTS))},
        ),
        (costs.DIVERGENCE, {"counts": counts(lanes=4, fp32=400 * REQUESTS)}),
        (costs.FP64, {"counts": counts(fp64=300 * REQUESTS), "dtype": "float32"}),
        (costs.SPILLS, {"launches": (dataclasses.replace(launch(), spill_bytes=64),)}),
        (costs.ATOMICS, {"counts": counts(whole(contended=N))}),
        (
            costs.TAIL,
            {
                "launches": (launch(133, 1024, shared=120_000),),
                "counts": counts(fp32=300 * REQUESTS),
            },
        ),
        (costs.GRID, {"launches": (launch(4),)}),
        (costs.OCCUPANCY, {"launches": (launch(N // 64, 64, shared=200_000),)}),
        (
            costs.WORK,
            {"launches": (launch(N // 64, 64),), "must_bytes": 2 * N},
        ),
        (
            costs.FLIGHT,
            {
                "launches": (launch(1056),),
                "must_bytes": 2 * N,
                "counts": counts(Access(REQUESTS, N, REQUESTS, REQUESTS, bytes=N)),
            },
        ),
        (
            costs.CHAIN,
            {"launches": (dataclasses.replace(launch(), times=4),), "moved_bytes": 32 * N},
        ),
        (
            costs.LAUNCHES,
            {
                "counts": None,
                "launches": (),
                "operators": (Operator("add", 64),) * 9,
                "must_bytes": 64,
            },
        ),
        (
            costs.HOST,
            {
                "counts": None,
                "launches": (),
                "operators": (Operator("_local_scalar_dense", 4, True),) * 9,
                "must_bytes": 64,
            },
        ),
    ],
)
def test_each_cause_is_found_alone_and_goes_with_its_repair(
    cause: str, fields: dict[str, object]
) -> None:
    facts = changed(**fields)
    found = explain(facts)
    (one,) = found.findings
    assert one.cause == cause
    assert one.gain == pytest.approx(reached.seconds(facts) / reached.seconds(facts, (cause,)))
    assert costs.seconds(facts) > 1.15 * costs.seconds(facts, (cause,))
    assert one.gain > 1.15
    assert not found.sound
    assert one.advice


def test_float64_is_no_accident_on_float64() -> None:
    assert causes(changed(counts=counts(fp64=300 * REQUESTS), dtype="float64")) == []


def test_occupancy_is_advised_on_with_what_lifts_it() -> None:
    (one,) = explain(changed(launches=(launch(N // 64, 64, shared=200_000),))).findings
    assert "limited by shared memory" in one.evidence
    assert "bytes of shared memory a block or fewer" in one.advice or "threads" in one.advice
    assert one.confidence == "from the compiler"


def test_a_measured_time_makes_the_prediction() -> None:
    facts = changed(counts=counts(whole(32)), seconds=400e-6, method="cupti, cold L2")
    (one,) = explain(facts).findings
    after = reached.seconds(facts, (costs.UNCOALESCED,))
    assert one.gain == pytest.approx(400e-6 / after)
    assert "400.0 us measured (cupti, cold L2)" in one.arithmetic
    assert one.confidence == "counted, measured"


def test_waits_are_measured_by_what_a_user_waits() -> None:
    waits = (Operator("_local_scalar_dense", 4, True),) * 10
    facts = changed(
        counts=None,
        launches=(),
        operators=waits,
        must_bytes=64,
        seconds=20e-6,
        wall_seconds=300e-6,
        host_seconds=100e-6,
        sync_seconds=5e-6,
    )
    (one,) = explain(facts).findings
    assert one.cause == costs.HOST
    assert one.gain == pytest.approx(300e-6 / reached.ONE_CALL_SECONDS)
    (one,) = explain(dataclasses.replace(facts, one_call_seconds=15e-6)).findings
    assert one.gain == pytest.approx(300e-6 / 15e-6)
    many = dataclasses.replace(facts, operators=(Operator("add", 64),) * 10)
    (one,) = explain(many).findings
    assert one.cause == costs.LAUNCHES
    assert one.gain == pytest.approx(300e-6 / (100e-6 / 10 + CARD.launch_seconds + 5e-6))


def test_a_row_whose_gpu_waited_for_the_host_says_that_the_host_decides() -> None:
    import msgspec

    one = row(4e-3, None)
    assert one.timing is not None
    seen = msgspec.structs.replace(
        one.timing, wall_seconds=4.4e-3, host_seconds=4.3e-3, kernel_seconds=0.2e-3
    )
    why = "host-bound: in 16 of 16 samples the GPU waited for the launch, which took 4401 us"
    bound = msgspec.structs.replace(one, timing=None, rejected=seen, not_timed=why)
    other = msgspec.structs.replace(bound, not_timed="throttled: in 9 of 16 samples")
    (found,) = of_rows([machine(), bound, other])
    assert found.bound == "the host"
    assert why in found.sentence
    (first,) = found.findings
    assert (first.cause, first.confidence) == (costs.HOST, "measured")
    assert first.gain == pytest.approx(4.4e-3 / 0.2e-3)
    waits = (Operator("_local_scalar_dense", 4, True), Operator("sum", 64)) * 8
    known = explain(dataclasses.replace(found.facts, operators=waits))
    assert known.findings[0].evidence.startswith("the host waits for a value 8 times")
    assert known.findings[0].gain == pytest.approx(4.4e-3 / reached.ONE_CALL_SECONDS)


def test_what_reaches_its_measured_ceiling_gets_no_advice() -> None:
    facts = changed(counts=counts(whole(32)), seconds=45e-6, share=0.97, share_of="copy")
    found = explain(facts)
    assert (found.findings, found.sound, found.bound) == ((), True, "memory")
    assert "97% of copy" in found.sentence


def test_what_the_model_can_not_explain_is_said_so() -> None:
    found = explain(changed(seconds=400e-6))
    assert (found.bound, found.findings, found.sound) == ("", (), False)
    assert "the counts show no cause" in found.sentence


def test_nothing_is_said_of_nothing() -> None:
    found = explain(Facts(CARD))
    assert (found.bound, found.sound) == ("", False)


def test_counts_are_extended_by_what_is_fixed_and_what_grows() -> None:
    def of(n: int) -> Counts:
        access = Access(requests=10 + 3 * n, contended=7)
        return Counts((Line("k", 1, 100 + n, 32 * n, {"fp32": 5 * n}, {"global atomic": access}),))

    assert extended(of(64), of(32), 2.0, 512.0) == of(64 * 512)
    assert extended(of(60), of(20), 3.0, 10.0) == of(600)
    twice = extended(of(64), of(32), 2.0, 4.0, times=2.0)
    assert twice.lines[0].warps == 2 * of(256).lines[0].warps


def test_a_case_is_made_smaller_by_halves() -> None:
    values = {"rows": 4096, "n": 8192, "dtype": "float32"}
    assert smaller(values, 1 << 17) == {"rows": FIRST, "n": 4096, "dtype": "float32"}
    assert smaller({"n": 999}, 100) == {"n": 999}
    assert smaller({"n": 64}, 100) == {"n": 64}


def row(seconds: float, share: float | None) -> Row:
    held = Share(value=share, of="copy", roofs="r") if share else None
    timing = Timing(
        samples=(seconds,), median=seconds, low=seconds, high=seconds, share=held, **TIMED
    )
    taken = Compiled(
        name="k",
        arch="sm_90",
        registers=16,
        shared_bytes=0,
        dynamic_shared_bytes=0,
        grid=(4, 1, 1),
        block=(256, 1, 1),
    )
    return Row(
        op="copy",
        variant="cuda/k",
        way="cuda",
        case=Case({"n": N}),
        device="cuda:0",
        machine="m",
        outcome="pass",
        word="right",
        timing=timing,
        bytes=8 * N,
        counters=Counters(kernels=(taken,)),
    )


def machine() -> Machine:
    gpu = GPU(
        name="NVIDIA H200",
        capability=(9, 0),
        multiprocessors=132,
        memory_bytes=1,
        l2_bytes=60 << 20,
        shared_bytes_per_block_optin=1,
        sm_hz=1.98e9,
    )
    return Machine(
        id="m",
        cpu="c",
        cores=1,
        memory_bytes=1,
        llc_bytes=None,
        system="s",
        versions={},
        gpus=(gpu,),
    )


def roofs() -> Roofs:
    made = [("copy", "B/s", 4.1e12, "cold L2"), ("empty launch", "s", 2.1e-6, "")]
    each = tuple(
        Roof(name=n, unit=u, value=v, low=v, high=v, samples=(), by="k", cache=c)
        for n, u, v, c in made
    )
    return Roofs(id="r", device="cuda:0", key={}, time="t", roofs=each)


def test_rows_are_explained_by_what_they_hold() -> None:
    sound, slow = of_rows([machine(), roofs(), row(33e-6, 0.97), row(900e-6, 0.04)])
    assert sound.sound
    assert not slow.sound
    assert slow.facts.card.dram == 4.1e12
    assert slow.facts.card.source.startswith("measured")
    assert any("rows have no counts" in text for text in slow.facts.unknown)


def test_a_time_on_a_cpu_says_nothing_of_a_gpu() -> None:
    import msgspec

    held = msgspec.structs.replace(row(33e-6, 0.5), device="cpu")
    (found,) = of_rows([machine(), held])
    assert (found.bound, found.findings, found.sound) == ("", (), False)
    assert "33.0 us measured on cpu, 50% of copy: no GPU was timed" in found.sentence
    assert "H100" not in found.sentence


def test_a_card_without_rates_says_what_to_do() -> None:
    unknown = dataclasses_gpu("NVIDIA Unheard Of")
    with pytest.raises(AssayError, match="nothing tells its DRAM rate; assay roofs does"):
        of_machine(unknown, None)
    with pytest.raises(AssayError, match="no card of it is known"):
        of_architecture("sm_87")


def dataclasses_gpu(name: str) -> GPU:
    import msgspec

    made: GPU = msgspec.structs.replace(machine().gpus[0], name=name)
    return made


def test_counters_of_ncu_are_explained() -> None:
    report = read(READING / "details.txt")
    said = {kernel.name[:12]: "\n".join(of_kernel(kernel)) for kernel in report.kernels}
    softmax = next(text for name, text in said.items() if name.startswith("void <unnam"))
    assert "latency decides: neither unit is busy" in softmax
    assert "tiny grid: 456 blocks" in softmax
    gemm = next(text for name, text in said.items() if name.startswith("sm80_xmma"))
    assert "compute decides" in gemm
    assert "nothing left to gain" in gemm
    assert "occupancy" not in gemm, "advice on what is not in the way"


def test_stalls_on_memory_get_the_advice_for_them() -> None:
    stalled = "On average, each warp is stalled waiting for a scoreboard dependency on a L1TEX op"
    kernel = Kernel("k", 0, findings=(Finding("Warp State", "OPT", stalled),))
    said = " ".join("\n".join(of_kernel(kernel)).split())
    assert "coalesce accesses, keep what is used again in shared memory" in said
    assert "no Speed Of Light section" in said
    quiet = dataclasses.replace(kernel, findings=(Finding("Warp State", "OPT", "all is well"),))
    assert "coalesce" not in "\n".join(of_kernel(quiet))


def test_a_trace_is_explained() -> None:
    said = "\n".join(of_trace(read(READING / "trace.json.gz")))
    assert "host-bound" in said
    assert "46" in said


def test_a_file_of_ncu_from_the_command_line(tmp_path: Path) -> None:
    done = assay(tmp_path, "explain", str(READING / "sgemm_notes.txt"))
    assert done.returncode == 0, done.stderr
    assert "compute decides" in done.stdout
    assert list(of_file(READING / "sgemm_notes.txt"))


@pytest.mark.full
def test_times_of_a_run_are_taken_for_the_same_source_and_case_only(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run as a GPU would have left it, read by the command for a TARGET."""
    target = "tests/slow/launching.py:gather"
    monkeypatch.chdir(Path(__file__).parents[1])
    wanted = chosen(session, parse(target), "cuda/slow", {})
    (variant,) = (v for v in wanted.op.variants if v.name == "cuda/slow")
    import msgspec

    timed = msgspec.structs.replace(
        row(640e-6, None), op="gather", variant="cuda/slow", source_hash=variant.source_hash
    )
    other = msgspec.structs.replace(timed, source_hash="another")
    for name, held, says in (
        ("same", timed, "640.0 us measured"),
        ("other", other, "by the model"),
    ):
        file = tmp_path / f"{name}.jsonl"
        file.write_bytes(b"".join(encode(n) + b"\n" for n in (machine(), roofs(), held)))
        done = assay(Path.cwd(), "explain", target, "-k", "cuda/slow", "--run", str(file), "--json")
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert said["findings"][0]["cause"] == "low occupancy"
        assert says in said["sentence"]
        assert said["card"] == ("NVIDIA H200" if name == "same" else "H100 SXM")
        if name == "same":
            # 32.7 us of DRAM, and 39.0 us in which 64 warps wait
            left = 1.4e-6 + math.hypot(8 * N / 4.1e12, 39.0e-6)
            assert said["findings"][0]["gain"] == pytest.approx(640e-6 / left, rel=0.03)


def sectioned(text: str) -> str:
    return text.split("```console\n", 1)[1].split("```", 1)[0]


@pytest.mark.full
def test_the_session_of_the_docs_is_as_it_is_shown() -> None:
    root = Path(__file__).parents[1]
    head, *shown = sectioned((root / "docs" / "explain.md").read_text()).strip().splitlines()
    done = assay(root, *head.removeprefix("$ assay ").split())
    assert done.stdout.splitlines() == shown


def test_mistakes_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssayError, match="name the variant with -k"):
        explaining.run(explaining.Options("softmax"))
    with pytest.raises(AssayError, match="go with a TARGET"):
        explaining.run(explaining.Options("last", variant="cuda"))
    with pytest.raises(AssayError, match="bench first"):
        explaining.run(explaining.Options("last"))


def test_an_explanation_is_data_too(capsys: pytest.CaptureFixture[str]) -> None:
    found: Explanation = explain(changed(counts=counts(whole(32))))
    said = json.loads(json.dumps(explaining.as_data(found)))
    assert said["findings"][0]["cause"] == "uncoalesced access"
    assert said["sound"] is False


def test_a_last_wave_costs_what_waits_more_than_what_is_busy() -> None:
    """4,096 blocks of 32 a multiprocessor on 108: 1.19 waves, but 38 blocks where 37.9 would do."""
    card = of_architecture("sm_80")
    made = geometry(4096, 64, arch="sm_80", registers=16, multiprocessors=108)
    facts = dataclasses.replace(BASE, card=card, launches=(Launch(made),))
    assert made.waves is not None
    assert made.waves.per_wave == 3456
    assert costs.tail_factor(facts) == pytest.approx(2 / (4096 / 3456))
    assert costs.uneven(facts) == pytest.approx(38 / (4096 / 108))
