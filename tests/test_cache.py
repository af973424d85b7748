"""The build cache: content decides, one builds and others wait, a killed builder blocks nobody."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay import cache
from assay.errors import BuildError

BUILDER = Path(__file__).parent / "fixtures" / "builder.py"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "builds"


def writes(text: str, log: str = "") -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / "kernel").write_text(text)
        return log

    return make


def never(folder: Path) -> str:
    raise AssertionError("this is in the cache")


def start(seconds: float, log: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(BUILDER), str(seconds), str(log)], stdout=subprocess.PIPE, text=True
    )


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end, "waited 30 s"
        time.sleep(0.01)


# Content decides


def test_unchanged_parts_are_built_once() -> None:
    place, first = cache.build("square cpp", {"a": 1, "b": [2]}, writes("x", "a log"))
    again, second = cache.build("square cpp", {"b": [2], "a": 1}, never)
    assert again == place
    assert (place / "kernel").read_text() == "x"
    assert (first.cached, second.cached) == (False, True)
    assert first.key == second.key == place.name
    assert first.log == second.log == "a log"


def test_the_name_for_people_decides_nothing_and_any_part_does() -> None:
    cache.build("square", {"flags": ["-O2"]}, writes("x"))
    cache.build("another name", {"flags": ["-O2"]}, never)
    _, other = cache.build("square", {"flags": ["-O3"]}, writes("y"))
    assert not other.cached


def test_a_changed_source_header_or_included_header_is_a_miss(tmp_path: Path) -> None:
    far = tmp_path / "include"
    far.mkdir()
    source, near, deep = tmp_path / "k.cu", tmp_path / "near.cuh", far / "deep.cuh"
    source.write_text('#include "near.cuh"\n#include <cuda_fp16.h>\nint a;')
    near.write_text("  #  include <deep.cuh>\n")
    deep.write_text('#define K 1\n#include "../near.cuh"\n')  # a circle ends
    seen = [cache.source_digests([source], [far])]
    assert {Path(p).name for p in seen[0]} == {"k.cu", "near.cuh", "deep.cuh"}
    assert cache.source_digests([source], [far]) == seen[0]
    for path in (source, near, deep):
        path.write_text(path.read_text() + " ")
        seen.append(cache.source_digests([source], [far]))
    (tmp_path / "deep.cuh").write_text("")  # found first from now on
    seen.append(cache.source_digests([source], [far]))
    assert all(a != b for i, a in enumerate(seen) for b in seen[:i])


# Failures are not kept


def test_a_failure_is_not_kept_and_leaves_nothing(own_cache: Path) -> None:
    def fails(folder: Path) -> str:
        (folder / "half").write_text("")
        raise BuildError("k.cu:1:1: error: no", "log")

    with pytest.raises(BuildError, match="error: no"):
        cache.build("square", {"a": 1}, fails)
    assert [p for p in own_cache.rglob("*") if p.is_file() and p.suffix != ".lock"] == []
    _, build = cache.build("square", {"a": 1}, writes("x"))
    assert not build.cached


# Several processes


def test_two_processes_build_one_entry_once(tmp_path: Path) -> None:
    log = tmp_path / "built"
    both = [start(0.6, log), start(0.6, log)]
    said = [process.communicate(timeout=60)[0] for process in both]
    assert len(log.read_text().split()) == 1, "built once"
    assert sorted("cached=True" in text for text in said) == [False, True]
    assert all("entry.json first second" in text for text in said), "both see it whole"


def test_who_waits_says_for_whom(tmp_path: Path) -> None:
    log = tmp_path / "built"
    first = start(1.0, log)
    until(log.exists)
    second = start(1.0, log)
    said = second.communicate(timeout=60)[0]
    first.communicate(timeout=60)
    assert f"waiting for pid {first.pid}, building softmax\n" in said
    assert said.count("waiting") == 1
    assert "cached=True" in said


def test_a_killed_builder_blocks_nobody(tmp_path: Path, own_cache: Path) -> None:
    log = tmp_path / "built"
    first = start(300, log)
    until(lambda: log.exists() and bool(list(own_cache.glob("*/*/first"))))
    second = start(0, log)
    assert second.stdout
    assert second.stdout.readline() == "started\n"
    assert second.stdout.readline() == f"waiting for pid {first.pid}, building softmax\n"
    os.kill(first.pid, signal.SIGKILL)
    begun = time.monotonic()
    said = second.communicate(timeout=60)[0]
    first.communicate(timeout=60)
    assert time.monotonic() - begun < 10
    assert "cached=False entry.json first second" in said
    assert len(log.read_text().split()) == 2
    assert len([p for p in own_cache.glob("*/*") if p.is_dir()]) == 1, "no half entry is left"


def test_waiting_has_an_end_that_names_the_holder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = start(300, tmp_path / "built")
    try:
        until((tmp_path / "built").exists)
        monkeypatch.setattr(cache, "SAY_AFTER_SECONDS", 0.05)
        monkeypatch.setattr(cache, "WAIT_SECONDS", 0.2)
        with pytest.raises(BuildError, match=rf"waited 0 s for pid {first.pid}, building softmax"):
            cache.build("softmax", {"key": "shared"}, never)
    finally:
        first.kill()
        first.communicate(timeout=60)


def test_nobody_sees_an_entry_before_it_is_whole(own_cache: Path) -> None:
    def looks(folder: Path) -> str:
        (folder / "kernel").write_text("x")
        (folder / "entry.json").write_text('{"what": "early", "seconds": 0, "log": ""}')
        assert list(cache.entries()) == []
        return ""

    cache.build("square", {"a": 1}, looks)
    (entry,) = cache.entries()
    assert entry.what == "square"


@pytest.mark.parametrize("damage", ["entry.json is gone", "entry.json is cut off"])
def test_a_damaged_entry_is_built_again(damage: str) -> None:
    place, _ = cache.build("square", {"a": 1}, writes("x"))
    entry = place / "entry.json"
    if "gone" in damage:
        entry.unlink()
    else:
        entry.write_text(entry.read_text()[:20])
    assert list(cache.entries()) == []
    again, build = cache.build("square", {"a": 1}, writes("y"))
    assert (again, build.cached) == (place, False)
    assert (again / "kernel").read_text() == "y"


# Listing and clearing


def test_entries_are_listed_the_last_used_first_and_cleared_by_name() -> None:
    assert list(cache.entries()) == []
    made = {}
    for age, what in enumerate(("softmax cuda/online", "softmax cpp", "square cpp")):
        place, _ = cache.build(what, {"what": what}, writes("x" * 1000))
        os.utime(place / "entry.json", (1e9 + age, 1e9 + age))
        made[what] = place
    assert [e.what for e in cache.entries()] == ["square cpp", "softmax cpp", "softmax cuda/online"]
    cache.build("softmax cpp", {"what": "softmax cpp"}, never)
    first = next(cache.entries())
    assert first.what == "softmax cpp"
    assert first.bytes > 1000
    assert first.place == made["softmax cpp"]
    assert cache.clear("square") == 1
    assert cache.clear(made["softmax cpp"].name[:8]) == 1
    assert [e.what for e in cache.entries()] == ["softmax cuda/online"]
    assert cache.clear() == 1
    assert cache.clear() == 0
    assert not any(place.exists() for place in made.values())
    _, build = cache.build("square cpp", {"what": "square cpp"}, writes("x"))
    assert not build.cached


def test_the_place_is_the_environments(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.root() == own_cache
    monkeypatch.delenv("ASSAY_CACHE")
    assert cache.root().name == "builds"
    assert "assay" in str(cache.root())
