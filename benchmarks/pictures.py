"""Pictures, the table of targets and a word on each operator in docs/pictures.md, made of rows.

    python -m benchmarks.pictures [FILE ...]
    python -m benchmarks.pictures --to FOLDER FILE ...      pictures alone, of any run's rows

Without files: the rows of the gallery under benchmarks/results/ of every card. A picture is of one
operator and dtype on one card: GB/s over the bytes of a call, a line for each way (its fastest
version and knobs at each size), and the copy that was timed in the same schedules.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from assay.rows import read
from assay.types import Machine, Row
from benchmarks import standing, targets
from benchmarks.first_operators import RESULTS, card
from benchmarks.paragraphs import paragraph

DOCS = Path(__file__).parent.parent / "docs"
FOLDER, PAGE = DOCS / "pictures", DOCS / "pictures.md"
FILES = ("first_operators.jsonl", "gallery.jsonl")
"""In a card's folder; of an operator that is in both, the later ones count."""
WIDTH, HEIGHT, LEFT, TOP, SIDE = 720, 320, 64, 40, 190
COLOURS = {
    "cuda": "#4e79a7",
    "triton": "#f28e2b",
    "eager": "#79706e",
    "compiled": "#59a14f",
    "compiled/max_autotune": "#8cd17d",
    "library/liger": "#b07aa1",
    "library/quack": "#d37295",
    "numba": "#76b7b2",
    "extension": "#edc948",
    "extension/cub": "#9c755f",
}
CEILING = "the copy beside"
LEAST_SPAN = 2.0
"""Powers of two that the axis of bytes spans at least: rows of other lengths can be as many."""
Point = tuple[float, float]


def series(rows: Sequence[Row]) -> dict[str, list[Point]]:
    """(bytes, bytes a second) by way; of several versions, and of several cases, the fastest."""
    found: dict[str, dict[int, float]] = {}
    for row in targets.middle(rows):
        if row.timing is None or not row.bytes or row.timing.method == "wall":
            continue
        name = row.variant if row.variant in COLOURS or row.way == "library" else row.way
        rates = found.setdefault(name, {})
        rates[row.bytes] = max(rates.get(row.bytes, 0.0), row.bytes / row.timing.median)
        if row.timing.copy_rate:
            found.setdefault(CEILING, {})[row.bytes] = row.timing.copy_rate
    order = [*COLOURS, *sorted(set(found) - set(COLOURS) - {CEILING}), CEILING]
    return {name: sorted(found[name].items()) for name in order if name in found}


def svg(op: str, dtype: str, rows: Sequence[Row], where: str) -> str:
    """The whole file of one operator and dtype."""
    lines = series(rows)
    points = [point for line in lines.values() for point in line]
    low, high = (math.log2(f(x for x, _ in points)) for f in (min, max))
    more = max(0.0, LEAST_SPAN - (high - low)) / 2
    low, high = low - more, high + more
    top = 1.1 * max(y for _, y in points)

    def place(point: Point) -> str:
        x = (math.log2(point[0]) - low) / (high - low)
        return f"{LEFT + x * WIDTH:.1f},{TOP + (1 - point[1] / top) * HEIGHT:.1f}"

    title = f"{', '.join(filter(None, (op, dtype, where)))}: GB/s over the bytes of a call, cold L2"
    parts = [_text(LEFT, TOP - 18, title), *_axes(low, high, top)]
    for number, (name, line) in enumerate(lines.items()):
        colour = "#e15759" if name == CEILING else COLOURS.get(name, "#9c755f")
        dashes = ' stroke-dasharray="6 4"' if name == CEILING else ""
        drawn = " ".join(place(point) for point in line)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}"{dashes}/>')
        if name != CEILING:
            for point in line:
                x, _, y = place(point).partition(",")
                parts.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        parts.append(_text(LEFT + WIDTH + 14, TOP + 12 + 18 * number, name, colour))
    size = f"{LEFT + WIDTH + SIDE} {TOP + HEIGHT + 40}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" font-size="12"'
    style = ' font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head + style, f"<title>{escape(title)}</title>", *parts, "</svg>", ""])


def _axes(low: float, high: float, top: float) -> Iterator[str]:
    """A grid: powers of two below, multiples of a round rate on the left."""
    step = 10 ** math.floor(math.log10(top / 2))
    step *= 5 if top / step > 10 else 2 if top / step > 5 else 1
    for number in range(int(top / step) + 1):
        y = TOP + (1 - number * step / top) * HEIGHT
        yield f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ddd"/>'
        yield _text(4, y + 4, f"{number * step / 1e9:,.0f}")
    apart = max(1, math.ceil((high - low) / 8))
    for power in range(math.ceil(low), math.floor(high) + 1, apart):
        x = LEFT + (power - low) / (high - low) * WIDTH
        yield f'<path d="M{x:.1f} {TOP}v{HEIGHT}" stroke="#eee"/>'
        yield _text(x - 16, TOP + HEIGHT + 18, _bytes(power))


def _bytes(power: int) -> str:
    """`64 MB` of 26, in powers of two."""
    unit = ("B", "KB", "MB", "GB")[min(3, power // 10)]
    return f"{1 << (power - 10 * min(3, power // 10))} {unit}"


def _text(x: float, y: float, said: str, colour: str = "#333") -> str:
    return f'<text x="{x:.0f}" y="{y:.1f}" fill="{colour}">{escape(said)}</text>'


def page(files: Sequence[Path]) -> Iterator[str]:
    """The lines of docs/pictures.md; the pictures are written beside them."""
    yield "# Pictures of the gallery"
    yield ""
    yield "Made by `python -m benchmarks.pictures` of rows under `benchmarks/results/`. GB/s: the"
    yield "bytes that a call must move over its time, cold L2. Of each way the fastest version."
    yield "What is seen of a target is a peer's time over ours, or our rate over another."
    for machine, rows in machines(files):
        name = machine.gpus[0].name if machine.gpus else machine.cpu
        yield f"\n## {name}\n"
        yield (
            "Versions: " + ", ".join(f"{n} {v}" for n, v in sorted(machine.versions.items())) + "."
        )
        yield from of_targets(rows)
        if standing.lines_of(RESULTS / card(machine)):
            yield from ("", *(f"-{line[1:]}" for line in standing.host(RESULTS / card(machine))))
        yield from of_losses(rows)
        shown = {(op, dtype): file for op, dtype, file in drawn(machine, rows, FOLDER)}
        for op in dict.fromkeys(op for op, _ in each(rows)):
            yield f"\n### {op}"
            for _, dtype in (one for one in each(rows) if one[0] == op):
                told = paragraph(some(rows, op, dtype))
                yield from ("", told) if told else ()
                if (op, dtype) in shown:
                    titled = " ".join(filter(None, (op, dtype)))
                    yield f"\n![{titled} on {name}](pictures/{shown[op, dtype].name})"


def each(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Operators and dtypes that there are rows of."""
    return sorted({(r.op, str(r.case.values.get("dtype", ""))) for r in rows})


def some(rows: Sequence[Row], op: str, dtype: str) -> list[Row]:
    """Those of one operator and dtype."""
    return [r for r in rows if (r.op, str(r.case.values.get("dtype", ""))) == (op, dtype)]


def drawn(machine: Machine, rows: Sequence[Row], folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Writes a picture of each operator and dtype of which several sizes were timed."""
    folder.mkdir(parents=True, exist_ok=True)
    name = machine.gpus[0].name if machine.gpus else machine.cpu
    for op, dtype in each(rows):
        mine = some(rows, op, dtype)
        if len({x for line in series(mine).values() for x, _ in line}) < 2:
            continue  # a single size is no line
        file = folder / f"{'_'.join(filter(None, (card(machine), op, dtype)))}.svg"
        file.write_text(svg(op, dtype, mine, name))
        yield op, dtype, file


def of_targets(rows: Sequence[Row]) -> Iterator[str]:
    """A table: what must be, what was seen, of several cases the worst too."""
    found = [answer for answer in targets.answers(rows) if answer.cases]
    if not found:
        yield "\nNo row of a target was timed on it yet."
        return
    yield "\n| target | must | | stretch | | seen (95 % interval) | cases | the worst of them |"
    yield "|---|---|---|---|---|---|---|---|"
    for answer in found:
        target, count = answer.target, len(answer.cases)
        assert answer.whole is not None
        label, interval = answer.worst
        worst = f"{targets.shown(interval)} {label}" if count > 1 else ""
        must, stretch = (
            f"{'' if least is None else f'{least:g}'} | {said}"
            for least, said in zip((target.must, target.stretch), answer.words)
        )
        asked = f"{target.number}: {target.what} | {must} | {stretch}"
        yield f"| {asked} | {targets.shown(answer.whole)} | {count} | {worst} |"
    for number, what, stretch, why in targets.UNMEASURED:
        yield f"| {number}: {what} | | | {stretch} | not measured: {why} | | | |"


def of_losses(rows: Sequence[Row]) -> Iterator[str]:
    """Every case in which the fastest peer is faster, worst first."""
    count = standing.compared(rows)
    if count:
        found = standing.losses(rows)
        yield f"\nThe fastest peer is faster than ours in {len(found)} of {count} cases:"
        yield ""
        yield from (f"- {loss.text}" for loss in found)


def machines(files: Sequence[Path]) -> Iterator[tuple[Machine, list[Row]]]:
    """The rows of each machine that has some; a later file's take the place of an earlier one's."""
    found: dict[str, tuple[Machine, dict[str, list[Row]]]] = {}
    for path in files:
        nouns = list(read(path))
        machine = next(noun for noun in nouns if isinstance(noun, Machine))
        _, ops = found.setdefault(card(machine), (machine, {}))
        made: dict[str, list[Row]] = {}
        for noun in nouns:
            if isinstance(noun, Row):
                made.setdefault(noun.op, []).append(noun)
        ops.update(made)
    for machine, ops in found.values():
        yield machine, [row for rows in ops.values() for row in rows]


def main() -> None:
    """Writes the page and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--to", type=Path, help="a folder for pictures alone, without the page")
    given = parser.parse_args()
    if given.to:
        for machine, rows in machines(given.files):
            for _, _, file in drawn(machine, rows, given.to):
                print(file)
        return
    kept = [p for folder in sorted(RESULTS.iterdir()) for n in FILES if (p := folder / n).is_file()]
    lines = list(page(given.files or kept))
    PAGE.write_text("\n".join(lines) + "\n")
    for file in FOLDER.glob("*.svg"):
        if not any(f"({FOLDER.name}/{file.name})" in line for line in lines):
            file.unlink()  # of rows that there are no more
    print(f"{PAGE}; pictures in {FOLDER}")


if __name__ == "__main__":
    main()
