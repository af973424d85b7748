"""`assay selftest verdict`: judges kernels of which everybody knows what must be said of them."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..errors import AssayError
from ..op import way_of
from ..selftest import zoo
from ..selftest.judging import Miss, Score, judged
from ..session import Session


def verdict(match: str, *, as_json: bool) -> int:
    """Judges both zoos and prints the score; 1 if anything was missed. Raises AssayError."""
    console = Console(highlight=False, stderr=as_json)
    scores = list(_scores(match, console))
    misses = [miss for score in scores for miss in score.misses]
    if as_json:
        print(json.dumps(summary(scores), indent=1))
    else:
        console.print(by_word(scores))
        for miss in misses:
            console.print(f"missed: {miss.text}", soft_wrap=True, markup=False)
        console.print(line(scores))
    return 1 if misses else 0


def _scores(match: str, console: Console) -> Iterator[Score]:
    """The score of each file. They are judged as copies: a user's kernels lie in no package."""
    with tempfile.TemporaryDirectory(prefix="assay-selftest-") as name:
        place = Path(name)
        for kind in (zoo.WRONG, zoo.RIGHT):
            shutil.copytree(zoo.folder() / kind, place / kind)
        files = [*zoo.samples(zoo.WRONG, place), *zoo.samples(zoo.RIGHT, place)]
        chosen = [sample for sample in files if match in sample.name]
        if not chosen:
            names = ", ".join(sample.name for sample in files)
            raise AssayError(f"no file of the zoo has {match!r} in its name; there are {names}")
        with Session(place / "logs") as session:
            for number, sample in enumerate(chosen, 1):
                if console.is_terminal:
                    console.print(f"[{number}/{len(chosen)}] {sample.name}", markup=False)
                yield judged(session, sample)


def line(scores: list[Score]) -> str:
    """`wrong: 143 of 143 named rightly · right: 0 of 87 rejected`."""
    said = summary(scores)
    return (
        f"wrong: {said['wrong']['named']} of {said['wrong']['kernels']} named rightly · "
        f"right: {said['right']['rejected']} of {said['right']['kernels']} rejected"
    )


def summary(scores: list[Score]) -> dict[str, Any]:
    """The score as data: both counts, words by way, and every miss."""
    wrong = [score for score in scores if score.sample.wrong]
    right = [score for score in scores if not score.sample.wrong]
    missed = sum(len(score.missed & set(score.kernels)) for score in wrong)
    kernels = sum(len(score.kernels) for score in wrong)
    return {
        "wrong": {"kernels": kernels, "named": kernels - missed},
        "right": {
            "kernels": sum(len(score.kernels) for score in right),
            "rejected": sum(len(score.missed) for score in right),
        },
        "words": {word: dict(ways) for word, ways in _words(wrong).items()},
        "misses": [_as_data(miss) for score in scores for miss in score.misses],
    }


def _as_data(miss: Miss) -> dict[str, str]:
    return {"file": miss.file, "kernel": miss.label, "wanted": miss.wanted, "got": miss.got}


def _words(scores: list[Score]) -> dict[str, Counter[str]]:
    """For each word, how many kernels of each way were given it rightly."""
    found: dict[str, Counter[str]] = {}
    for score in scores:
        for label, word in score.kernels.items():
            if label not in score.missed:
                found.setdefault(word, Counter())[way_of(label)] += 1
    return dict(sorted(found.items()))


def by_word(scores: list[Score]) -> Table:
    """How many kernels of each way were named by each word."""
    words = _words([score for score in scores if score.sample.wrong])
    ways = sorted({way for count in words.values() for way in count})
    table = Table("named", *ways, box=None, pad_edge=False)
    for word, count in words.items():
        table.add_row(word, *(str(count[way] or "") for way in ways))
    return table
