"""Tables of `nsys stats`, made in the form of published ones: text, CSV, older heads, cut files."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.commands import explaining, profiling
from assay.errors import AssayError
from assay.inside.reading import files, nsys_stats, nsys_sums
from assay.inside.reading.nsys_stats import Stats, Sum

PAGE = Path(__file__).parent / "fixtures" / "reading" / "nsys_stats.txt"
KERNELS = (
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
    '75.0,300000,2,150000.0,150000.0,149000,151000,1414.2,"void softmax<float, 256>(T1 *, int)"\n'
    '25.0,100000,6,16666.7,16000.0,16000,18000,1032.8,"scale(float *, int)"\n'
)


def page() -> Stats:
    found = files.read(PAGE)
    assert isinstance(found, Stats)
    return found


def test_every_table_of_a_page_is_read() -> None:
    found = page()
    assert [(one.report, one.kind, len(one.rows)) for one in found.tables] == [
        ("nvtx_sum", "range", 1),
        ("cuda_api_sum", "call", 2),
        ("cuda_gpu_kern_sum", "kernel", 2),
        ("cuda_gpu_mem_time_sum", "memory", 1),
        ("cuda_gpu_mem_size_sum", "size", 1),
    ]
    softmax = found.of("kernel")[0]
    assert softmax.name == "void softmax<float, 256>(T1 *, const T1 *, int, float)"
    assert softmax.calls == 2
    assert softmax.seconds == pytest.approx(300e-6)
    assert softmax.least_seconds == pytest.approx(149e-6)
    assert softmax.most_seconds == pytest.approx(151e-6)
    assert found.of("range")[0].name == ":assay: one call"
    assert found.of("size") == (Sum("[CUDA memcpy Host-to-Device]", 1, bytes=2.5e6),)
    assert found.skipped[0] == (
        "osrt_sum",
        "timeline.sqlite does not contain OS Runtime trace data.",
    )


def test_kernels_and_copies_are_one_table_that_adds_up() -> None:
    said = list(nsys_sums.text(page()))
    assert max(map(len, said[1:])) <= 80
    text = "\n".join(said)
    table = said[said.index("") + 1 : said.index("") + 6]
    shares = {line[:10].strip(): line[44:51].strip() for line in table}
    assert shares["softmax<fl"] == "60.00"  # nsys says 75.0, of kernels alone
    assert shares["scale(floa"] == "20.00"
    assert shares["[CUDA memc"] == "20.00"
    assert shares["all"] == "100.00"
    assert "2.500 MB in 1, 25.0 GB/s" in text
    assert "no osrt_sum: timeline.sqlite does not contain OS Runtime trace data." in text
    assert "OpenMP" not in text
    assert "cudaStreamSynchronize                              2        430.0        215.0" in text


@pytest.mark.parametrize(
    ("name", "before", "report"),
    [
        ("x.csv", "", ""),
        ("x.csv", "\n ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n", "cuda_gpu_kern_sum"),
        (
            "x.txt",
            "[5/8] Executing 'gpukernsum' stats report\n\n",
            "gpukernsum",
        ),
    ],
)
def test_csv_is_read_with_and_without_a_title(
    tmp_path: Path, name: str, before: str, report: str
) -> None:
    path = tmp_path / name
    path.write_text(before + KERNELS)
    found = files.read(path)
    assert isinstance(found, Stats)
    (table,) = found.tables
    assert (table.report, table.kind) == (report, "kernel")
    assert [one.name for one in table.rows] == [
        "void softmax<float, 256>(T1 *, int)",
        "scale(float *, int)",
    ]
    assert [one.seconds for one in table.rows] == pytest.approx([300e-6, 100e-6])


def test_other_units_and_the_heads_of_older_versions() -> None:
    head = "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name"
    (row,) = nsys_stats.read("old", f"{head}\n100.0,3000,2,1500.0,1000,2000,k\n").of("kernel")
    assert (row.name, row.calls) == ("k", 2)
    seen = (row.seconds, row.least_seconds, row.most_seconds)
    assert seen == pytest.approx((3e-6, 1e-6, 2e-6))
    (row,) = nsys_stats.read("us", KERNELS.replace("(ns)", "(us)")).of("kernel")[:1]
    assert row.seconds == pytest.approx(0.3)


def test_calls_of_an_unnamed_table_are_not_guessed_at() -> None:
    """A bare CSV of cuda_api_sum looks as one of osrt_sum does."""
    head = "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name"
    found = nsys_stats.read("x", f"{head}\n100.0,10,1,10.0,10.0,10,10,0.0,poll\n")
    assert found.tables[0].kind == ""
    said = list(nsys_sums.text(found))
    assert said[-1] == "not shown: table one that its file does not name, 1 rows"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (KERNELS + "3.1,17,1\n", "line 4 is no row of the table above it"),
        (KERNELS.replace("300000", "lots"), "line 2 is no row"),
        (" ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n", "holds no table of sums"),
    ],
)
def test_what_was_cut_or_edited_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(AssayError, match=why):
        files.read(path)


def test_pages_of_other_tools_are_no_tables_of_nsys() -> None:
    for name in ("details.txt", "sgemm_notes.txt", "details.csv", "raw.csv", "torch_table.txt"):
        assert not nsys_stats.is_one((PAGE.parent / name).read_text())


def test_the_commands_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert profiling.run(profiling.Options(read=PAGE)) == 0
    assert "sums of Nsight Systems, 5 tables" in capsys.readouterr().out
    assert explaining.run(explaining.Options(str(PAGE))) == 0
    assert "sums have no gaps" in capsys.readouterr().out
