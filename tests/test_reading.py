"""Readers of what other tools recorded: Chrome traces, Nsight Compute, Nsight Systems."""

from __future__ import annotations

import enum
import gzip
import json
import re
import sqlite3
import sys
import types
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import AssayError, NotRun
from assay.inside.reading import files, flame, ncu_csv, ncu_text, recorded
from assay.inside.reading.ncu import Kernel, Metric, Report
from assay.inside.reading.operators import Operator, inner, operators
from assay.inside.reading.spans import Span, covered_seconds, nested
from assay.inside.reading.table import first, percents, text, work_table
from assay.inside.reading.timeline import timeline
from assay.inside.reading.trace import Trace, read_trace

HERE = Path(__file__).parent / "fixtures" / "reading"
TRACE = HERE / "trace.json.gz"
MICRO = 1e-6


def report(name: str) -> Report:
    found = files.read(HERE / name)
    assert isinstance(found, Report)
    return found


# ---- the kernel table


def rows_of_torch() -> dict[tuple[str, int], list[float]]:
    """torch's own table: (name, calls) -> times in microseconds."""
    scale = {"us": 1.0, "ms": 1e3}
    found = {}
    for line in (HERE / "torch_table.txt").read_text().splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) == 11 and cells[-1].isdigit():
            times = [float(c[:-2]) * scale[c[-2:]] for c in cells if c[-2:] in scale]
            found[(cells[0], int(cells[-1]))] = times
    return found


def test_the_recorded_table_adds_up() -> None:
    trace = read_trace(TRACE)
    table = work_table(trace.spans)
    assert sum(line.share for line in table.lines) == pytest.approx(1, abs=1e-12)
    assert table.seconds / MICRO == pytest.approx(216.639, abs=1e-3), "torch's Self CUDA time total"
    for rows in (1, 3, 10, 100):
        shown = first(table, rows)
        assert len(shown) <= rows + 1
        assert sum(round(100 * float(p)) for p in percents(shown)) == 10_000
        assert sum(line.seconds for line in shown) == pytest.approx(table.seconds)
        assert sum(line.calls for line in shown) == table.calls == 48


def test_where_the_751_percent_come_from() -> None:
    """Ranges that the device repeats span kernels and gaps: they are no work of their own."""
    trace = read_trace(TRACE)
    table = work_table(trace.spans)
    ranges = trace.of("device range")
    assert {span.name for span in ranges} == {"ProfilerStep#2", "ProfilerStep#3"}
    share = sum(span.seconds for span in ranges) / table.seconds
    assert f"{share:.2%}" == "751.70%"
    assert "751.70%" in (HERE / "torch_table.txt").read_text()
    assert not [line for line in table.lines if "ProfilerStep" in line.name]


def test_operators_are_those_of_torchs_table() -> None:
    """Own and whole CPU time, own and whole device time of every row with an operator's name."""
    found = {op.name: op for op in operators(read_trace(TRACE))}
    compared = 0
    for (name, calls), times in rows_of_torch().items():
        name = name.removesuffix("...")
        if name not in found or "ProfilerStep" in name:
            continue
        own, whole, _, device_own, device, _ = times
        op = found[name]
        assert op.calls == calls
        ours = (op.own_seconds, op.seconds, op.device_own_seconds, op.device_seconds)
        assert [t / MICRO for t in ours] == pytest.approx(
            [own, whole, device_own, device], abs=0.6e-3, rel=5.1e-4
        ), name
        compared += 1
    assert compared == 6


def test_all_own_time_together_is_torchs_total() -> None:
    every = operators(read_trace(TRACE), ("operator", "range", "call"))
    assert sum(op.own_seconds for op in every) == pytest.approx(8.422e-3, abs=0.5e-6)


def span(name: str, start: float, seconds: float, kind: str = "kernel", **more: object) -> Span:
    return Span(name, kind, start, seconds, **more)  # type: ignore[arg-type]


def test_work_side_by_side_still_adds_up_and_is_said() -> None:
    spans = [
        span("a", 0, 4e-6, place="0/7"),
        span("b", 1e-6, 2e-6, place="0/8"),
        span("b", 3e-6, 2e-6, place="0/8"),
        span("all", 0, 9e-6, "device range", place="0/7"),
    ]
    table = work_table(spans)
    assert table.seconds == pytest.approx(8e-6)
    assert table.busy_seconds == pytest.approx(5e-6)
    assert [(line.name, line.calls, line.share) for line in table.lines] == [
        ("a", 1, pytest.approx(0.5)),
        ("b", 2, pytest.approx(0.5)),
    ]
    assert list(text(table))[-1] == "of which 3.0 us ran beside other work"


def test_thirds_are_printed_as_100_percent() -> None:
    table = work_table([span(name, i, 1.0) for i, name in enumerate("abc")])
    assert percents(table.lines) == ["33.34", "33.33", "33.33"]


def test_a_profile_of_the_cpu_alone_says_so() -> None:
    spans = (span("aten::mm", 0, 5e-6, "operator"),)
    assert list(text(work_table(spans))) == [
        "no work of a GPU was recorded: a profile of the CPU alone"
    ]
    found = timeline(Trace("t", "torch.profiler", spans))
    assert (found.bound, found.busy) == ("", 0.0)


def test_own_times_of_nested_and_overlapping_spans_add_up_to_what_passed() -> None:
    spans = [
        span("outer", 0, 10, "operator", place="t"),
        span("inner", 2, 5, "operator", place="t"),
        span("inner", 3, 1, "operator", place="t"),  # itself again, as aten::sum calls aten::sum
        span("late", 6, 3, "operator", place="t"),  # begins in the inner, ends in the outer
        span("outlasting", 8, 6, "operator", place="t"),  # as clocks that disagree leave it
        span("other thread", 0, 10, "operator", place="u"),
    ]
    by = {(e.span.name, e.span.start): e for e in nested(spans)}
    own = {key: entry.own_seconds for key, entry in by.items()}
    assert own == {
        ("outer", 0): 2, ("inner", 2): 3, ("inner", 3): 1, ("late", 6): 2, ("outlasting", 8): 6,
        ("other thread", 0): 10,
    }  # fmt: skip
    assert by["inner", 3].again
    assert not by["inner", 2].again
    within = {key: [s.name for s in entry.within] for key, entry in by.items()}
    assert within["inner", 3] == ["outer", "inner"]
    assert within["late", 6] == ["outer"]
    assert within["outlasting", 8] == []


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=25),
)
def test_own_times_always_add_up(pairs: list[tuple[int, int]]) -> None:
    spans = [span(str(i), start, length) for i, (start, length) in enumerate(pairs)]
    found = nested(spans)
    assert len(found) == len(spans)
    assert all(0 <= entry.own_seconds <= entry.span.seconds for entry in found)
    assert sum(entry.own_seconds for entry in found) == covered_seconds(spans)
    for entry in found:
        for outer in entry.within:
            assert outer.start <= entry.span.start
            assert entry.span.end <= outer.end + 1e-8


def test_who_waits_for_whom() -> None:
    found = timeline(read_trace(TRACE))
    assert (found.bound, f"{found.busy:.1%}") == ("host", "3.3%")
    assert found.launches == 46
    assert [(w.name, w.calls, w.implied) for w in found.waits] == [
        ("cudaDeviceSynchronize", 3, False)
    ]
    steady = [span("k", i, 0.95) for i in range(4)]
    assert timeline(Trace("t", "", tuple(steady))).bound == "device"


def test_an_item_is_seen_as_an_implied_wait_and_a_copy_has_its_bytes() -> None:
    spans = (
        span("aten::item", 0, 9, "operator", owner=4, place="t"),
        span("cudaMemcpyAsync", 1, 1, "call", owner=4, place="t"),
        span("cudaStreamSynchronize", 2, 6, "call", owner=4, place="t"),
        span("a range", 9, 3, "range", owner=5, place="t"),
        span("cudaDeviceSynchronize", 9, 1, "call", owner=5, place="t"),
        span("cudaStreamWaitEvent", 10, 1, "call", owner=5, place="t"),  # the host goes on
        span("cudaMemcpy", 11, 1, "call", owner=5, place="t"),
        span("Memcpy DtoH", 3, 1, "memcpy", owner=4, facts={"bytes": 4}),
    )
    found = timeline(Trace("t", "", spans))
    assert [(w.name, w.calls, w.implied) for w in found.waits] == [
        ("cudaDeviceSynchronize", 1, False),
        ("cudaMemcpy", 1, False),
        ("cudaStreamSynchronize", 1, True),
    ]
    assert [(c.name, c.bytes, c.calls) for c in found.copies] == [("Memcpy DtoH", 4, 1)]
    (item,) = operators(Trace("t", "", spans))
    assert item == Operator("aten::item", 1, 2, 9, 1, 1)


def test_begin_and_end_make_a_span_and_a_bare_list_is_a_trace(tmp_path: Path) -> None:
    events = [
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 10, "cat": "cpu_op"},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 12, "cat": "cpu_op"},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 15},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 20},
        {"ph": "i", "name": "mark", "ts": 11},
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events))
    found = files.read(path)
    assert isinstance(found, Trace)
    assert [(s.name, round(s.start / MICRO), round(s.seconds / MICRO)) for s in found.spans] == [
        ("inner", 2, 3),
        ("outer", 0, 10),
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "as a Chrome trace"),
        (gzip.compress(b"{}", mtime=0)[:-3], "as a Chrome trace"),
        (b'{"a": 1}', "it has no traceEvents"),
        (b'[{"ph": "X", "name": "a"}]', "event 0 is not one of a Chrome trace"),
        (b'[{"ph": "X", "name": "a", "ts": "soon"}]', "event 0 is not one"),
        (b"hello\n", "it has no line `NAME"),
        (b"\xff\xfe\x00\x01", "it is no Chrome trace, page of ncu"),
        (b'"ID","Name"\n', "its head begins"),
        (b"SQLite format 3\x00 and no more", "as an export of nsys"),
    ],
)
def test_what_is_none_of_them_is_refused(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(AssayError, match=why):
        files.read(path)


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(AssayError, match="No such file"):
        files.read(Path("nowhere.json"))


# ---- the flame graph


def test_a_flame_graph_is_as_wide_as_the_time_of_its_threads() -> None:
    trace = read_trace(TRACE)
    root = flame.frames(trace)
    assert [frame.name for frame in root.inner.values()] == ["thread 782/807", "thread 782/782"]
    for place, frame in root.inner.items():
        spans = [s for s in trace.of(*flame.KINDS) if s.place == place]
        assert frame.seconds == pytest.approx(covered_seconds(spans), rel=1e-6)
    picture = tree.fromstring(flame.svg(root))
    boxes = picture.findall(".//{*}rect")
    assert len(boxes) > 50
    assert sum(float(b.get("width", 0)) for b in boxes if b.get("y") == "0") == pytest.approx(
        flame.WIDTH, abs=0.2
    )
    assert all(float(b.get("x", 0)) + float(b.get("width", 0)) <= flame.WIDTH + 1 for b in boxes)
    said = "".join(picture.itertext())
    assert "stacks are too narrow to be drawn" in said
    assert "aten::addmm" in said
    assert " at 0x" not in said


def test_folded_stacks_merge_calls_and_leave_own_time() -> None:
    spans = (
        span("main", 0, 10e-6, "python", place="t"),
        span("f <obj at 0x7f00>", 1e-6, 3e-6, "python", place="t"),
        span("aten::mm", 2e-6, 1e-6, "operator", place="t"),
        span("f <obj at 0x7f99>", 5e-6, 4e-6, "python", place="t"),
        span("kernel", 2e-6, 1e-6, "kernel", place="gpu"),
    )
    root = flame.frames(Trace("t", "", spans))
    assert list(flame.folded(root)) == [
        "thread t;main 3",
        "thread t;main;f <obj> 6",
        "thread t;main;f <obj>;aten::mm 1",
    ]
    nothing = flame.svg(flame.frames(Trace("t", "", ())))
    assert "0.0 us on 0 threads" in nothing


# ---- Nsight Compute


def notes() -> Kernel:
    (kernel,) = report("sgemm_notes.txt").kernels
    return kernel


def test_the_block_of_the_notes_is_read_and_its_figures_follow_from_one_another() -> None:
    kernel = notes()
    assert (kernel.grid, kernel.block, kernel.capability) == ((16, 32, 3), (128, 1, 1), "8.6")
    assert kernel.metric("Function Cache Configuration") == Metric(
        "Function Cache Configuration", "", "CachePreferNone"
    )
    value = {m.name: m.value for metrics in kernel.sections.values() for m in metrics.values()}
    assert sum(map(len, kernel.sections.values())) == 40
    active, elapsed = value["Average L1 Active Cycles"], value["Total L1 Elapsed Cycles"]
    assert active is not None
    assert elapsed is not None
    share = active * 46 / elapsed
    assert value["L1/TEX Cache Throughput"] * share == pytest.approx(61.88, abs=0.005)
    dram = value["Average DRAM Active Cycles"] * 8 / value["Total DRAM Elapsed Cycles"]
    assert f"{dram:.2%}" == "29.87%"
    hertz = kernel.value("DRAM Frequency")
    assert hertz == 6.79e9
    assert value["Total DRAM Elapsed Cycles"] / 8 / hertz == pytest.approx(1.661e-3, abs=1e-6)
    assert value["Total SMSP Elapsed Cycles"] == 4 * elapsed
    seconds = kernel.value("Duration")
    assert seconds == pytest.approx(1.66e-3)
    assert 2 * 2048**3 / seconds / 1e12 == pytest.approx(10.35, abs=0.005)
    assert value["Achieved Occupancy"] == pytest.approx(100 * 15.51 / 48, abs=0.02)
    (finding,) = kernel.findings
    assert (finding.kind, finding.speedup_percent, finding.speedup_kind) == ("OPT", 66.67, "local")
    assert "limited by the number of required registers, and the required" in finding.text


@pytest.mark.parametrize(
    ("name", "figures"),
    [("sgemm_notes.txt", 10), ("details.txt", 11), ("details.csv", 11), ("raw.csv", 11)],
)
def test_geometry_reproduces_every_recorded_figure(name: str, figures: int) -> None:
    for kernel in report(name).kernels:
        pairs = recorded.compared(kernel, recorded.geometry_of(kernel))
        assert len(pairs) == figures
        assert [pair for pair in pairs if not pair.same] == []


def test_geometry_says_the_limiter_that_ncu_says() -> None:
    """Its rule on theoretical occupancy names warps a scheduler and what limits them."""
    seen = 0
    for kernel in [notes(), *report("details.txt").kernels]:
        held = recorded.geometry_of(kernel).occupancy
        assert held is not None
        (said,) = [f.text for f in kernel.findings if "theoretical warps per scheduler" in f.text]
        assert f"The {held.scheduler_warps:.2f} theoretical warps per scheduler" in said
        assert f"hardware maximum of {held.most_scheduler_warps}." in said
        assert ("number of required registers" in said) == ("registers" in held.limiters)
        assert ("shared memory" in said) == ("shared memory" in held.limiters)
        seen += 1
    assert seen == 3


def test_a_tail_is_what_ncu_says_it_is() -> None:
    gemm = report("details.txt").kernels[1]
    waves = recorded.geometry_of(gemm).waves
    assert waves is not None
    (finding,) = [f for f in gemm.findings if "partial wave" in f.text]
    assert f"{waves.full} full waves and a partial wave of 117" in finding.text
    assert waves.partial == 116
    assert finding.speedup_percent == 100 * waves.tail_most == 25.0


def test_a_wrong_figure_is_seen() -> None:
    kernel = notes()
    sections = {**kernel.sections, "Occupancy": dict(kernel.sections["Occupancy"])}
    sections["Occupancy"]["Block Limit Registers"] = Metric("", "block", "5")
    wrong = Kernel("k", 0, kernel.grid, kernel.block, "8.6", sections)
    pairs = recorded.compared(wrong, recorded.geometry_of(wrong))
    assert [(p.what, p.recorded, p.computed) for p in pairs if not p.same] == [
        ("limit registers", 5.0, 4.0)
    ]


def test_page_and_csv_hold_the_same() -> None:
    page, table = report("details.txt").kernels[1], report("details.csv").kernels[0]
    assert (page.name, page.grid, page.block) == (table.name, table.grid, table.block)
    filled = {title: metrics for title, metrics in page.sections.items() if metrics}
    assert filled == table.sections
    assert len(page.findings) == 7
    for one, other in zip(page.findings, table.findings):
        assert one.text == other.text, "also where the page cuts a word at its margin"
        assert (one.kind, one.speedup_percent) == (other.kind, other.speedup_percent)
        assert one.speedup_kind == other.speedup_kind
    assert table.findings[-1].rule == "UncoalescedSharedAccess"
    assert "fixed GPU frequencies" in page.warnings[0]


def test_a_raw_page_is_exact_where_the_details_are_rounded() -> None:
    raw = report("raw.csv").kernels
    assert [k.number for k in raw] == [0, 1, 2, 3]
    assert raw[2].value("launch__shared_mem_per_block_dynamic") == 67_584
    assert report("details.csv").kernels[0].value("Dynamic Shared Memory Per Block") == 67_580
    nothing = raw[0].metric("sass__inst_executed_register_spilling_mem_shared")
    assert nothing is not None
    assert (nothing.text, nothing.value) == ("no data", None)


def test_a_page_of_an_older_version_has_a_time_and_no_grid() -> None:
    head = "  kern(float *), 2022-Mar-01 10:00:00, Context 1, Stream 7\n    Section: Occupancy\n"
    (kernel,) = ncu_text.read("f", head).kernels
    assert (kernel.name, kernel.grid, kernel.sections) == ("kern(float *)", None, {"Occupancy": {}})
    with pytest.raises(AssayError, match="does not say how it was launched"):
        recorded.geometry_of(kernel)


def test_rows_that_were_cut_are_refused() -> None:
    lines = (HERE / "raw.csv").read_text().splitlines()
    with pytest.raises(AssayError, match="row 2 has 3 cells"):
        ncu_csv.read("f", "\n".join([*lines[:2], '"1","2","3"']))
    with pytest.raises(AssayError, match="units and no ID"):
        ncu_csv.read("f", "\n".join([lines[0], lines[2]]))
    before = "==PROF== Connected to process 1\n" + "\n".join(lines)
    assert len(ncu_csv.read("f", before).kernels) == 4


@pytest.mark.parametrize(
    ("unit", "text", "base"),
    [
        ("Kbyte/block", "12.80", 12_800), ("ms", "1.66", 1.66e-3), ("cycle/ns", "6.79", 6.79e9),
        ("%", "33.33", 33.33), ("", "196,608", 196_608), ("cycle", "nan", None),
        ("Gbyte/s", "832.33", 832.33e9), ("register/thread", "122", 122), ("", "all", None),
    ],
)  # fmt: skip
def test_units(unit: str, text: str, base: float | None) -> None:
    assert Metric("m", unit, text).base == (None if base is None else pytest.approx(base))


def test_a_report_needs_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    monkeypatch.delitem(sys.modules, "ncu_report")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(b"NVR\x00")
    with pytest.raises(NotRun, match=r"pip install ncu-report.*--page details --csv"):
        files.read(path)


def test_a_report_is_read_through_its_documented_interface(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in with the functions of NVIDIA's documentation; no real report is at hand."""
    raw = report("raw.csv").kernels[2]

    class Type(enum.IntEnum):
        OPTIMIZATION = 2
        LOCAL = 7

    def metric(name: str) -> object:
        found = raw.sections[""].get(name) or Metric(name, "", capability[name])
        return types.SimpleNamespace(unit=lambda: found.unit, value=lambda: found.text)

    capability = {f"device__attribute_compute_capability_{n}": v for n, v in
                  (("major", "9"), ("minor", "0"))}  # fmt: skip
    rules = [
        {"rule_identifier": "A", "section_identifier": "Occupancy",
         "rule_message": {"title": "T", "message": "m", "type": Type.OPTIMIZATION},
         "speedup_estimation": {"type": Type.LOCAL, "speedup": 87.5}},
        {"rule_identifier": "B", "section_identifier": "S", "rule_message": "{'message': 'text'}"},
    ]  # fmt: skip
    action = types.SimpleNamespace(
        name=lambda: raw.name,
        metric_names=lambda: [*raw.sections[""], *capability],
        metric_by_name=metric,
        rule_results_as_dicts=lambda: rules,
    )
    profiled = types.SimpleNamespace(num_actions=lambda: 1, action_by_idx=lambda i: action)
    context = types.SimpleNamespace(num_ranges=lambda: 1, range_by_idx=lambda i: profiled)
    module = types.ModuleType("ncu_report")
    module.__spec__ = types.SimpleNamespace(name="ncu_report")  # type: ignore[assignment]
    module.load_report = lambda path: context  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ncu_report", module)
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(b"NVR\x00")
    found = files.read(path)
    assert isinstance(found, Report)
    (kernel,) = found.kernels
    assert (kernel.grid, kernel.block, kernel.capability) == (raw.grid, raw.block, "9.0")
    pairs = recorded.compared(kernel, recorded.geometry_of(kernel))
    assert len(pairs) == 11
    assert all(pair.same for pair in pairs)
    said = [(f.kind, f.text, f.speedup_percent, f.speedup_kind) for f in kernel.findings]
    assert said == [("OPT", "T: m", 87.5, "local"), ("", "text", None, "")]
    context.num_ranges = lambda: 0
    with pytest.raises(AssayError, match="holds no profiled kernel"):
        files.read(path)


# ---- Nsight Systems


def export(path: Path) -> None:
    """A file made here to the documented schema; no real export is at hand."""
    base = sqlite3.connect(path)
    base.executescript(
        """
        create table StringIds (id integer primary key, value text not null);
        create table CUPTI_ACTIVITY_KIND_KERNEL (start int, end int, deviceId int, streamId int,
          correlationId int, demangledName int, shortName int, gridX int, registersPerThread int);
        create table CUPTI_ACTIVITY_KIND_MEMCPY (start int, end int, deviceId int, streamId int,
          correlationId int, bytes int, copyKind int);
        create table CUPTI_ACTIVITY_KIND_RUNTIME (start int, end int, globalTid int,
          correlationId int, nameId int);
        create table NVTX_EVENTS (start int, end int, globalTid int, text text, textId int);
        create table TARGET_INFO_GPU (name text);
        insert into TARGET_INFO_GPU values ('NVIDIA H100');
        insert into StringIds values (1, 'softmax<float>'), (2, 'cudaLaunchKernel'), (3, 'step');
        insert into CUPTI_ACTIVITY_KIND_KERNEL values
          (2000, 5000, 0, 7, 11, 1, 1, 64, 32), (6000, 9000, 0, 7, 12, 1, 1, 64, 32);
        insert into CUPTI_ACTIVITY_KIND_MEMCPY values (9000, 10000, 0, 7, 13, 4096, 1);
        insert into CUPTI_ACTIVITY_KIND_RUNTIME values
          (1000, 1500, 5, 11, 2), (1500, 1900, 5, 12, 2);
        insert into NVTX_EVENTS values (900, 11000, 5, null, 3), (950, null, 5, 'mark', null);
        """
    )
    base.commit()
    base.close()


def test_an_export_of_nsys_is_read(tmp_path: Path) -> None:
    path = tmp_path / "made.sqlite"
    export(path)
    trace = files.read(path)
    assert isinstance(trace, Trace)
    assert (trace.tool, trace.devices) == ("nsys", ("NVIDIA H100",))
    table = work_table(trace.spans)
    assert [(line.name, line.calls, round(line.share, 4)) for line in table.lines] == [
        ("softmax<float>", 2, 0.8571),
        ("Memcpy HtoD", 1, 0.1429),
    ]
    found = timeline(trace)
    assert found.launches == 2
    assert found.longest_gap_seconds == pytest.approx(1e-6)
    assert [(c.name, c.bytes) for c in found.copies] == [("Memcpy HtoD", 4096)]
    (step,) = operators(trace, ("range",))
    assert (step.name, step.calls, round(step.seconds / 1e-9)) == ("step", 1, 10_100)


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    base = sqlite3.connect(path)
    base.execute("create table t (a int)")
    base.commit()
    base.close()
    with pytest.raises(AssayError, match="it has none of CUPTI_ACTIVITY_KIND_KERNEL"):
        files.read(path)


def test_every_summary_fits_a_terminal() -> None:
    seen = 0
    for name in ("trace.json.gz", "details.txt", "details.csv", "raw.csv", "sgemm_notes.txt"):
        said = list(files.summary(HERE / name, 5))[1:]  # the first line names the file
        assert max(map(len, said)) <= 80, name
        assert not [line for line in said if "differs" in line]
        seen += len(said)
    assert seen > 50


# ---- a profile taken now


@pytest.mark.full
def test_square_calls_pow_and_own_time_is_not_whole_time(tmp_path: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(512, 512)
    with profile(activities=[ProfilerActivity.CPU]) as taken:
        torch.square(x)
    path = tmp_path / "cpu.json"
    taken.export_chrome_trace(str(path))
    trace = read_trace(path)
    assert inner(trace, "aten::square") == ("aten::pow",)
    assert inner(trace, "aten::cos") == ()
    found = {op.name: op for op in operators(trace)}
    square, power = found["aten::square"], found["aten::pow"]
    assert square.seconds >= power.seconds > power.own_seconds / 2
    assert square.own_seconds < square.seconds / 2 < power.own_seconds
    assert timeline(trace).bound == ""
