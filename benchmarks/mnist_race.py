"""The MNIST race on one GPU: gradients, seconds of every kernel, whole steps against PyTorch.

    python -m benchmarks.mnist_race --data DIR [--batches 64,256,1024,4096] [--steps 300] [--quick]
        [--peer NAME ...] [--limit 240] [--until] [--accuracy] [--seeds 50] [--pinned] [--to FILE]

Every line is printed and written to FILE (JSON lines) as it is known, so a run that is cut off
leaves what it had. --limit bounds it: batches and peers that there is no time for are named.
Without --data it runs on the sample in the package, and says so. --until: time to accuracy alone;
--accuracy: that of the notes' recipe over seeds alone; --pinned: digits in pinned host memory
beside resident ones alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from assay.errors import AssayError
from assay.mnist import agreement, data
from assay.mnist.fast import kernels, rounded, timing
from assay.mnist.fast.network import Fast
from assay.mnist.model import Sizes, initial
from assay.mnist.race import judged
from assay.mnist.whole import pinned as pinning
from assay.mnist.whole import racing
from assay.mnist.whole.history import gains
from assay.mnist.whole.recipe import NOTES, Recipe
from assay.mnist.whole.until import Trained, alike, compared, trainings
from benchmarks.first_operators import RESULTS, folder_of

QUICK = [1024]
PINNED = ["fast", "compile channels_last + graph"]


def main() -> None:
    given = _given()
    end = time.monotonic() + given.limit
    digits = data.load(given.data)
    with given.to.open("a") as file:

        def tell(**row: Any) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()
            if row["kind"] != "curve":  # 300 numbers are for the file
                print(text(row), flush=True)

        tell(kind="machine", **machine(), digits=digits.source)
        if given.until:
            trained = seeded(digits, Recipe(**given.recipe), given.seeds, tell)
            return tell(kind="until_verdict", **dataclasses.asdict(compared(trained, 0.99)))
        if given.accuracy:
            trained = seeded(digits, NOTES, given.seeds, tell)
            return tell(kind="accuracy", **dataclasses.asdict(alike(*trained)))
        if given.pinned:
            for batch in QUICK if given.quick else given.batches:
                if time.monotonic() > end - 60:
                    tell(kind="absent", batch=batch, what="pinned", reason="no time left")
                    continue
                pinned(digits, batch, given, tell)
            return
        for name, facts in kernels.facts(arch()).items():
            tell(kind="built", kernel=name, registers=facts.registers,
                 spilled=facts.spill_store_bytes, shared=facts.shared_bytes)  # fmt: skip
        batches = QUICK if given.quick else given.batches
        for batch in batches:
            for row in checked(digits, batch):
                tell(**row)
        for batch in batches:
            tell(kind="kernels", batch=batch, seconds=kernel_times(digits, batch))
        for batch in sorted(batches, key=lambda b: b != 1024):  # the main one first
            if time.monotonic() > end - 5:
                tell(kind="absent", batch=batch, reason="no time left")
                continue
            race(digits, batch, given, end, tell)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the four IDX files")
    parser.add_argument("--batches", type=lambda t: [int(b) for b in t.split(",")],
                        default=[64, 256, 1024, 4096])  # fmt: skip
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--peer", action="append", default=[], help="only these, ours among them")
    parser.add_argument("--until", action="store_true", help="time to accuracy, nothing else")
    parser.add_argument("--accuracy", action="store_true", help="of the notes' recipe over seeds")
    parser.add_argument(
        "--pinned",
        action="store_true",
        help="digits in pinned host memory beside resident ones, nothing else",
    )
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--recipe", type=json.loads, default={}, help="JSON of fields of Recipe")
    parser.add_argument("--quick", action="store_true", help="batch 1024 alone")
    parser.add_argument("--limit", type=float, default=240, help="seconds, building included")
    parser.add_argument("--to", type=Path, help="default: benchmarks/results/<card>")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU here: this race needs one")
    if given.to is None:
        given.to = RESULTS / folder_of(torch.cuda.get_device_name()) / "mnist_race.jsonl"
        given.to.parent.mkdir(parents=True, exist_ok=True)
    return given


def arch() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"


def machine() -> dict[str, Any]:
    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
        "cudnn": torch.backends.cudnn.version(),
    }


def placed(digits: data.Data) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = digits.train.images.copy(), digits.train.labels.copy()
    return torch.from_numpy(images).cuda(), torch.from_numpy(labels).cuda()


def checked(digits: data.Data, batch: int) -> Iterator[dict[str, Any]]:
    """Gradients of the fast step on the GPU, against both float64s (see fast/rounded.py)."""
    parameters, at = initial(Sizes(), 0), torch.arange(batch)
    images, labels = placed(digits)
    net = Fast(parameters)
    loss = net.forward(*net.load(images, labels, at.cuda()))
    found = net.backward()
    aim, alike = rounded.truth(parameters, images, labels, at)
    true = agreement.truth(parameters, images, labels, at)
    errors = [
        {a.name: a.error for a in agreement.gradients(found, t, "tf32")} for t in (alike, true)
    ]
    rounding = {a.name: a.error for a in agreement.gradients(alike, true, "tf32")}
    yield {
        "kind": "gradients",
        "batch": batch,
        "loss": float(loss),
        "loss_rounded_alike": aim,
        "worst_against_rounded_alike": max(errors[0].values()),
        "worst_against_float64": max(errors[1].values()),
        "worst_of_rounding_alone": max(rounding.values()),
        "against_rounded_alike": errors[0],
        "against_float64": errors[1],
    }


def kernel_times(digits: data.Data, batch: int) -> dict[str, float]:
    images, labels = placed(digits)
    net = Fast(initial(Sizes(), 0))
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))[:batch]
    where, _ = net.load(images, labels, order.cuda())
    return timing.kernel_seconds(net, where)


def race(digits: data.Data, batch: int, given: argparse.Namespace, end: float, tell: Any) -> Any:
    try:
        result = racing.race(
            digits, batch=batch, steps=given.steps, peers=given.peer, until=end - 20,
            seen=lambda what: print(f"  {batch}: {what}", flush=True),
        )  # fmt: skip
    except AssayError as error:
        return tell(kind="absent", batch=batch, reason=str(error))
    for absent in result.absent:
        tell(kind="absent", batch=batch, peer=absent.name, reason=absent.reason)
    for r in sorted(result.ran, key=lambda r: r.median("total")[1]):
        low, middle, high = r.median("total")
        worst = max(r.agreements, key=lambda a: a.error / a.allowed)
        tell(kind="step", batch=batch, peer=r.name, ours=r.peer.ours, precision=r.peer.precision,
             seconds=middle, low=low, high=high, host_seconds=result.host[r.name],
             made_seconds=r.first, bytes=result.bytes[r.name], first_loss=r.losses[0],
             last_loss=r.losses[-1], accuracy=r.accuracy, worst_gradient=worst.error,
             allowed=worst.allowed, worst_of=worst.name,
             joules=result.joules.get(r.name))  # fmt: skip
        tell(kind="curve", batch=batch, peer=r.name, losses=[round(v, 5) for v in r.losses],
             gradients={a.name: float(f"{a.error:.3g}") for a in r.agreements})  # fmt: skip
    for c in judged(result.ran):
        tell(kind="verdict", batch=batch, against=c.peer, word=c.word, ratio=c.ratio, low=c.low,
             high=c.high, reasons=c.reasons, curves_apart=c.apart,
             curves_allowed=c.allowed)  # fmt: skip
    for g in gains(result.ran):
        tell(kind="history", batch=batch, **dataclasses.asdict(g))
    if result.no_joules:
        tell(kind="absent", batch=batch, what="energy", reason=result.no_joules)


def pinned(digits: data.Data, batch: int, given: argparse.Namespace, tell: Any) -> None:
    seen, absent = pinning.beside(
        digits, batch=batch, names=given.peer or PINNED, steps=given.steps,
        seen=lambda what: print(f"  {batch}: {what}", flush=True),
    )  # fmt: skip
    for one in absent:
        tell(kind="absent", batch=batch, peer=one.name, reason=one.reason)
    for one in seen:
        low, middle, high = one.ratio
        tell(kind="pinned", batch=batch, peer=one.name, resident=one.median("resident")[1],
             pinned=one.median("pinned")[1], ratio=middle, low=low, high=high, laying=one.laying,
             losses_apart=one.apart, holds=one.holds, joules=one.joules,
             no_joules=one.no_joules)  # fmt: skip


def seeded(digits: data.Data, recipe: Recipe, seeds: int, tell: Any) -> list[Trained]:
    """Trainings of both by a recipe, told as they are known."""
    tell(kind="recipe", **dataclasses.asdict(recipe))

    def seen(what: str) -> None:
        if not what.startswith("seed") or what.endswith("0 fast"):
            print(f"  {what}", flush=True)

    trained = trainings(digits, recipe, range(seeds), seen=seen)
    for t in trained:
        mean, low = t.accuracy
        tell(kind="until", trainer=t.name, seeds=len(t.seeds), mean_seconds=t.mean_seconds,
             accuracy=mean, accuracy_low=low, seconds=t.seconds,
             accuracies=t.accuracies, made_seconds=t.made_seconds)  # fmt: skip
    return trained


def energy(joules: float | None) -> str:
    return "" if joules is None else f"{joules * 1e3:.3g} mJ, "


def text(row: dict[str, Any]) -> str:
    """A row as a line to read."""
    kind, us = row["kind"], 1e6
    if kind == "kernels":
        parts = ", ".join(f"{n} {s * us:.1f}" for n, s in row["seconds"].items())
        return f"kernels  {row['batch']}: {parts} us; sum {sum(row['seconds'].values()) * us:.1f}"
    if kind == "step":
        return (
            f"step     {row['batch']}: {row['peer']:36} {row['seconds'] * us:9.1f} us "
            f"({row['low'] * us:.1f} to {row['high'] * us:.1f}), host "
            f"{row['host_seconds'] * us:.1f}, {row['precision']}, loss "
            f"{row['last_loss']:.4f}, {row['accuracy']:.2%}, gradient "
            f"{row['worst_gradient']:.1e} of {row['allowed']:.0e}, {row['bytes'] / 1e6:.0f} MB, "
            f"{energy(row['joules'])}made in {row['made_seconds']:.1f} s"
        )
    if kind == "verdict":
        return (
            f"verdict  {row['batch']}: {row['word']} than {row['against']}: {row['ratio']:.2f} "
            f"({row['low']:.2f} to {row['high']:.2f}) {'; '.join(row['reasons'])}"
        )
    if kind == "history":
        over = f", {row['ratio']:.2f} times faster than {row['before']}" if row["before"] else ""
        return f"history  {row['batch']}: {row['idea']:24} {row['seconds'] * us:9.1f} us{over}"
    if kind == "pinned":
        return (
            f"pinned   {row['batch']}: {row['peer']:36} {row['resident'] * us:.1f} us resident, "
            f"{row['pinned'] * us:.1f} us pinned, ratio {row['ratio']:.3f} ({row['low']:.3f} to "
            f"{row['high']:.3f}), laid by the host in {row['laying'] * us:.1f} us, losses "
            f"{row['losses_apart']:.1e} apart"
        )
    if kind == "until":
        return (
            f"until    {row['trainer']}: {row['mean_seconds'] * 1e3:.2f} ms a training, "
            f"{row['accuracy']:.3%} right, at least {row['accuracy_low']:.3%} (95 %), "
            f"{row['seeds']} seeds"
        )
    if kind == "gradients":
        return (
            f"gradients {row['batch']}: {row['worst_against_rounded_alike']:.1e} from float64 "
            f"rounded alike, {row['worst_against_float64']:.1e} from float64, where rounding alone "
            f"is {row['worst_of_rounding_alone']:.1e} off"
        )
    return f"{kind:8} " + ", ".join(f"{k} {v}" for k, v in row.items() if k != "kind")


if __name__ == "__main__":
    main()
