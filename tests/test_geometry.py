"""Launch geometry by arithmetic: the course notes' block, waves, lifts, refusals, the text."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay import AssayError
from assay.cli import app
from assay.inside.geometry import (
    MOST,
    Footprint,
    Geometry,
    Waves,
    geometry,
    lines,
    multiprocessor,
    occupancy,
)


def notes(**more: object) -> Geometry:
    """`ampere_sgemm_128x64_tn` of the notes: 12.80 Kbyte are 12,800 bytes (ncu is decimal)."""
    given: dict = {"registers": 122, "static_shared": 12_800, "multiprocessors": 46, **more}
    return geometry((16, 32, 3), 128, arch="sm_86", name="ampere_sgemm_128x64_tn", **given)


def test_the_block_of_the_notes_is_reproduced() -> None:
    found = notes()
    assert (found.blocks, found.threads) == (1536, 196_608)
    held, waves = found.occupancy, found.waves
    assert held is not None
    assert waves is not None
    assert held.limits == {
        "registers": 4, "shared memory": 4, "warps": 12, "blocks": 16, "barriers": None
    }  # fmt: skip
    assert (held.registers, held.shared_bytes) == (4 * 4096, 108 * 128)
    assert held.carveout_bytes == 65_536, "predicted, and what the notes' card was set to"
    assert held.limiters == ("registers", "shared memory")
    assert (held.warps, held.most_warps, f"{held.fraction:.2%}") == (16, 48, "33.33%")
    assert (held.scheduler_warps, held.most_scheduler_warps) == (4.0, 12)
    assert f"{1 - held.fraction:.2%}" == "66.67%", "ncu's estimated local speed-up"
    assert (f"{waves.number:.2f}", waves.full, waves.partial) == ("8.35", 8, 64)
    assert f"{waves.tail_most:.1%}" == "11.1%"
    assert found.active_warps == 16.0, "of which 15.51 were measured"


def test_set_to_the_most_shared_memory_is_no_limit_and_as_many_blocks_fit() -> None:
    held = notes(carveout=MOST).occupancy
    assert held is not None
    assert (held.limits["shared memory"], held.limiters, held.blocks) == (7, ("registers",), 4)
    small = notes(carveout=16_384).occupancy
    assert small is not None
    assert (small.carveout_bytes, small.blocks, small.limiters) == (16_384, 1, ("shared memory",))
    changes = {lift.change: lift.blocks for lift in notes(carveout=16_384).lifts}
    assert changes["shared memory set to 102,400 bytes"] == 4
    assert changes["96 registers a thread or fewer"] == 5
    with pytest.raises(AssayError, match=r"sm_86 has at most 102,400"):
        notes(carveout=200_000)


def test_a_lift_is_the_least_change_that_helps() -> None:
    (lift,) = notes().lifts
    assert lift.change == "96 registers a thread or fewer"
    sm = multiprocessor("sm_86")
    taken = notes().taken
    assert taken is not None
    for registers, warps in ((96, 20), (97, 16)):
        less = Footprint(128, registers, taken.static_shared_bytes)
        assert occupancy(less, sm, MOST).warps == warps


def test_registers_and_shared_memory_are_lifted_together() -> None:
    found = geometry(1000, 128, arch="sm_90", registers=128, dynamic_shared=54_000)
    assert found.occupancy is not None
    assert found.occupancy.blocks == 4
    changes = [lift.change for lift in found.lifts]
    assert changes == [
        "96 registers a thread or fewer and 45,568 bytes of shared memory a block or fewer"
    ]
    sm = multiprocessor("sm_90")
    assert occupancy(Footprint(128, 96, 0, 45_568), sm, MOST).blocks == 5
    for registers, shared in ((97, 45_568), (96, 45_569)):
        assert occupancy(Footprint(128, registers, 0, shared), sm, MOST).blocks == 4


def test_a_block_size_that_wastes_warps_is_lifted_by_another() -> None:
    found = geometry(1000, 1024, arch="sm_86", registers=32)
    assert found.occupancy is not None
    assert found.occupancy.limiters == ("warps",)
    assert [(lift.change, lift.fraction) for lift in found.lifts] == [
        ("blocks of 768 threads", 1.0)
    ]
    full = geometry(1000, 768, arch="sm_86", registers=32)
    assert (full.occupancy and full.occupancy.limiters, full.lifts) == ((), ())


@pytest.mark.parametrize(
    ("blocks", "per_wave", "full", "partial", "most"),
    [
        (1823, 128 * 12, 1, 287, 1 / 2),  # ncu prints 286
        (864, 648, 1, 216, 1 / 2),  # ncu prints 215
        (512, 132, 3, 116, 1 / 4),  # ncu prints 117, and 25 %
        (1024, 128, 8, 0, 0.0),
        (100, 128, 0, 100, 0.0),
    ],
)
def test_waves_and_their_tail(
    blocks: int, per_wave: int, full: int, partial: int, most: float
) -> None:
    waves = Waves(blocks, per_wave)
    assert (waves.full, waves.partial, waves.tail_most) == (full, partial, most)
    assert (blocks + waves.padding) % per_wave == 0
    assert waves.padding < per_wave
    assert Waves(blocks + waves.padding, per_wave).idle == 0
    assert (waves.idle > 0) == (partial > 0)


def test_what_nsight_compute_prints_of_a_partial_wave_is_a_rounding() -> None:
    """286, 215 and 117 are truncated or rounded up from (waves - full) x blocks in doubles."""
    parts = {n: (n / w - n // w) * w for n, w in ((1823, 1536), (864, 648), (512, 132))}
    assert (int(parts[1823]), int(parts[864])) == (286, 215)
    assert -int(-parts[512] // 1) == 117


def test_a_partial_warp_and_a_small_grid_are_said() -> None:
    found = geometry(40, (33, 3), arch="sm_90", registers=20, multiprocessors=132)
    assert (found.block_warps, found.idle_lanes, found.warps) == (4, 29, 160)
    text = " ".join(" ".join(lines(found)).split())
    assert "29 lanes of the last warp unused" in text
    assert "the grid is too small to fill the GPU" in text
    assert found.active_warps == pytest.approx(40 / 132 * 4)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"block": 1025}, "1,025 threads a block, limit 1,024"),
        ({"grid": (1, 65_536)}, "grid y = 65,536, limits 1 to 65,535"),
        ({"registers": 128, "block": 1024}, "128 registers x 1024 threads do not fit"),
        ({"dynamic_shared": 232_449}, "232,449 bytes of shared memory, limit 232,448"),
        ({"static_shared": 50_000}, "what is beyond has to be dynamic"),
        ({"arch": "sm_61"}, "no limits are known of 'sm_61'; those known are sm_75"),
        ({"registers": -1}, "registers = -1"),
        ({"multiprocessors": 0}, "a GPU has at least one"),
        ({"grid": "4"}, "give one to three ints"),
    ],
)
def test_what_cannot_be_launched_is_refused_with_the_limit(given: dict, why: str) -> None:
    usual = {"grid": 10, "block": 128, "arch": "sm_90", "registers": 32}
    with pytest.raises(AssayError, match=why.replace("(", r"\(")):
        geometry(**{**usual, **given})


def test_unknown_registers_give_no_occupancy_but_the_reason() -> None:
    found = geometry(10, 128, arch="sm_90", registers=None, why="no ptxas")
    assert (found.occupancy, found.waves, found.threads) == (None, None, 1280)
    assert list(lines(found))[-1].split(maxsplit=1) == ["occupancy", "not known: no ptxas"]


def test_few_blocks_and_a_partial_wave_are_advised_on() -> None:
    """At least 4 blocks a multiprocessor, and no wave that is nearly empty."""
    found = geometry(150, 1024, arch="sm_90", registers=64, multiprocessors=132)
    text = " ".join(" ".join(lines(found)).split())
    assert "1.1 blocks an SM in all; fewer than 4 leave it little to choose from" in text
    assert "1.14: 1 full, then 18 of 132 blocks" in text
    assert "at most 50.0 % of the time" in text
    assert "114 more blocks would fill them" in text
    even = " ".join(lines(geometry(132 * 8, 1024, arch="sm_90", registers=64)))
    assert "fewer than 4" not in even
    assert "tail" not in even


def test_the_page_shows_what_is_printed() -> None:
    page = (Path(__file__).parents[1] / "docs" / "geometry.md").read_text()
    (shown,) = re.findall(r"```console\n\$ (.*?)\n(.*?)```", page, re.DOTALL)
    command, text = shown
    found = CliRunner().invoke(app, shlex.split(command)[1:])
    assert found.exit_code == 0
    assert found.stdout == text


def test_the_text_of_the_notes() -> None:
    text = list(lines(notes()))
    assert max(map(len, text)) <= 80
    assert text == [
        "ampere_sgemm_128x64_tn",
        "  launch        grid 16x32x3, block 128; sm_86, 46 SMs",
        "                1,536 blocks of 4 warps, 196,608 threads",
        "  takes         122 registers a thread; shared memory: 12,800 B static",
        "  blocks an SM  4 (by registers 4, shared memory 4, warps 12, blocks 16)",
        "  occupancy     33.33 %, limited by registers and shared memory",
        "                16 of 48 warps, 4.00 of 12 a scheduler",
        "                if shared memory is set to 65,536 B, which just suffices",
        "  waves         8.35: 8 full, then 64 of 184 blocks",
        "  tail          at most 11.1 % of the time; 7.2 % of the block places are empty",
        "                if all blocks take equally long; 120 more blocks would fill them",
        "  to lift it    96 registers a thread or fewer: 41.67 %",
    ]
