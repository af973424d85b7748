"""The oracle process: one for each Op. It knows the truth, and sees a candidate's bytes only after.

Messages in: {do: specs, case}, {do: strength, cases}, {do: zoo, cases, near},
{do: judge, case, runs, ...}.
Out: {specs: [...]}, {strengths: [...]}, {zoo: [...]},
{verdict: ...}, or {mistake: text} for a fault of the Op itself.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict
from functools import partial
from typing import Any

import msgspec
import torch

from ..build import Specs
from ..describe import case_facts, variant_facts
from ..errors import AssayError, OpError
from ..faults import told
from ..inputs import dtype_name, inputs_of, tensor_bytes
from ..op import Op, supported
from ..processes.channel import Channel
from ..target import Target, load_op
from ..types import Case, Verdict
from .budget import Expected, Truth, arithmetic, budgeted, truth_of
from .compare import form, memory, poison_left, received, same_bits, same_values, unchanged, values
from .honest import kept, not_waiting, spread, unfinished, unsound
from .joined import as_gradient, check_formula
from .picture import beyond, pictured
from .precision import class_of, explained
from .protocol import Ran
from .reference import clone, output_specs
from .room import kept_bytes, tidy
from .shipped import Received
from .strength import strengths
from .tamper import taken
from .watched import watched
from .zoo import hostile, unasked

FREE_SHARE = 0.4
"""Most of the free GPU memory that a truth may take before it is computed on the CPU."""


def main(
    channel: Channel, target: dict, op: str, device: str, threads: int, beside: int = 1
) -> None:
    """Answers until the parent closes the channel. beside: oracles that share the device."""
    torch.set_num_threads(threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    oracle: Oracle | None = None
    noted, tampered = taken(), ""
    while True:
        message = channel.receive()
        assert message is not None
        try:
            if oracle is None:
                oracle = Oracle(load_op(msgspec.convert(target, Target), op), device, beside)
                tampered = noted.changed()
            judges = message["do"] == "judge"
            answer = {} if judges and tampered else oracle.answer(message)
            # After every message: what it ran may have laid a trap for the next one.
            tampered = tampered or noted.changed()
            if judges and tampered:
                detail = f"{tampered}, in the process that knows the truth"
                answer = {"verdict": {"word": "tampered", "detail": detail}}
            channel.send(**answer)
            tidy(device)
        except AssayError as error:
            channel.send(mistake=str(error))
        except torch.cuda.OutOfMemoryError as error:
            channel.send(mistake=f"{op}: the reference in float64 ran out of memory: {error}")


class Oracle:
    """Knows the truth of one Op, and keeps the last few."""

    def __init__(self, op: Op, device: str, beside: int = 1):
        self.op, self.device = op, device
        self._keep = kept_bytes(device, beside)
        self._specs: dict[tuple[str, int, int], Specs] = {}
        """Shapes and dtypes of outputs: of every case whose truth was once known."""
        self._kept: OrderedDict[tuple[str, int, int], Known] = OrderedDict()
        self._joined: set[tuple[str, int]] = set()
        """Cases for which a gradient's formula was found to be its forward's."""

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["do"] == "strength":
            cases = [msgspec.convert(c, Case) for c in message["cases"]]
            found = strengths(self.op, cases, message["seed"], self._truth)
            return {"strengths": msgspec.to_builtins(found)}
        if message["do"] == "zoo":
            cases = [msgspec.convert(c, Case) for c in message["cases"]]
            near, asked = tuple(message["near"]), message["asked"]
            return {"zoo": self.zoo(cases, near, message["seed"], asked)}
        if message["do"] == "specs":
            case = msgspec.convert(message["case"], Case)
            specs = self._specs.get((case.label, case.seed, message["seed"]))
            if specs is None:
                inputs = inputs_of(self.op, case, message["seed"])
                specs = output_specs(self.op, inputs, case)
            return {"specs": [{"shape": list(s), "dtype": dtype_name(d)} for s, d in specs]}
        runs = [msgspec.convert(r, Ran) for r in message["runs"]]
        case = msgspec.convert(message["case"], Case)
        verdict = self.judge(case, runs, message["precision"], message["device"])
        places = partial(self._wrong_places, case, message["precision"])
        verdict = pictured(verdict, runs, places)
        if self.op.of is not None:
            verdict = as_gradient(self.op, verdict, self._known(case, runs[0].seed).inputs)
        return {"verdict": msgspec.to_builtins(verdict)}

    def judge(self, case: Case, runs: list[Ran], precision: str, device: str) -> Verdict:
        """The first thing that is wrong in the runs, or `right`.

        The first two runs have different inputs and poisons; a third repeats the first.
        """
        op, known = self.op, [self._known(case, run.seed) for run in runs[:2]]
        seen = unsound(runs, known[0].inputs) or watched(runs) or unfinished(runs)
        if seen is not None:
            return seen
        names = op.input_names(len(known[0].inputs))
        for number, run in enumerate(runs):
            truth = known[number % len(known)]
            found = form(run, truth.specs, device)
            found = found or unchanged(run, truth.inputs, names, op.mutates) or memory(run, names)
            if found and number >= len(known):
                return not_waiting(run) or _unlike_before(found.detail)
            if found:
                return self._reproducible(case, run, found)
        if op.accept is not None:
            return _unwritten(runs) or kept(runs) or self._accepted(runs, known)
        answers: list[Verdict] = []
        for number, (run, truth) in enumerate(zip(runs, known), 1):
            if answers and self._surely_right(run, truth, precision):
                continue
            verdict, wrong = self._values(run, truth, precision)
            answers.append(verdict)
            if wrong:
                return _unwritten(runs) or _stale(runs[:number]) or verdict
        return kept(runs) or self._repeat(runs, known[0], answers[0], precision)

    def _surely_right(self, run: Ran, known: Known, precision: str) -> bool:
        """Whether a run that only has to be right is, at a fraction of what accuracy costs."""
        if self.op.limit is not None:
            return False
        return known.truth.surely_has(received(run), known.roundoff(precision))

    def _values(self, run: Ran, known: Known, precision: str) -> tuple[Verdict, bool]:
        """The values of one run; those that are wrong with what explains them."""
        op, outs, roundoff = self.op, received(run), known.roundoff(precision)
        given = dict(zip(op.input_names(len(known.inputs)), known.inputs))
        found, wrong = values(outs, known.expected, roundoff, op.limit, given)
        if wrong:
            asked = op, known.inputs, outs, known.expected, roundoff, precision
            return explained(found, *asked), True
        if all(moved is None for moved in known.expected.moved):
            return found, False  # exact: there is no precision to speak of
        found = msgspec.structs.replace(found, precision=class_of(roundoff, precision))
        native = known.roundoff("")
        if native < roundoff and not values(outs, known.expected, native, op.limit)[1]:
            note = f"declares {found.precision}, and is as exact as {class_of(native, '')}"
            found = msgspec.structs.replace(found, findings=(*found.findings, note))
        return found, False

    def _reproducible(self, case: Case, run: Ran, found: Verdict) -> Verdict:
        """What was found, unless the Op's inputs are to blame: they differ each time."""
        if found.word == "changed its input":
            one, two = (inputs_of(self.op, case, run.seed) for _ in range(2))
            if not all(same_values(a, b) for a, b in zip(one, two)):
                raise OpError(
                    f"{self.op.name}: inputs({case.label}) gives other values at every call, so "
                    "no two processes can agree on them; draw them from `make`"
                )
        return found

    def _repeat(self, runs: list[Ran], known: Known, first: Verdict, precision: str) -> Verdict:
        """The first of the right answers; with a finding if equal inputs gave other bits."""
        if self.op.limit is not None:
            note = f"limit set by you: |error| <= {self.op.limit:g}"
            first = msgspec.structs.replace(first, findings=(*first.findings, note))
        if len(runs) < 3:
            return first
        pairs = list(zip(runs[0].outputs, runs[2].outputs))
        if all(same_bits(a, b) for a, b in pairs):
            return first
        again, wrong = self._values(runs[2], known, precision)
        if wrong:
            return not_waiting(runs[2]) or _stale(runs[1:]) or _unlike_before(again.detail)
        note = f"{spread(runs)}, all within the limit"
        if self.op.deterministic:
            return Verdict(word="not the same twice", detail=note, advice="fix the order of sums")
        return msgspec.structs.replace(first, findings=(*first.findings, note))

    def _wrong_places(self, case: Case, precision: str, run: Ran, index: int) -> torch.Tensor:
        """Where an output of a run is wrong, for the picture of a verdict."""
        known = self._known(case, run.seed)
        if self.op.accept is not None:  # there is no one right answer to be beyond
            return torch.zeros(run.outputs[index].shape, dtype=torch.bool)
        allowed = known.expected.allowed(index, known.roundoff(precision), self.op.limit)
        out = Received(run.outputs[index]).tensor()
        return beyond(out, known.expected.truth[index], allowed)

    def _accepted(self, runs: list[Ran], known: list[Known]) -> Verdict:
        from .shipped import Received

        assert self.op.accept is not None
        for number, run in enumerate(runs):
            outputs = [Received(s).tensor() for s in run.outputs]
            inputs = [clone(x) for x in known[number % len(known)].inputs]
            answer = self.op.accept(outputs, inputs)
            if answer is not True:
                said = Verdict(word="wrong value", detail=str(answer or "the Op's accept said no"))
                return not_waiting(run) or said
        return Verdict(word="right", findings=("judged by the Op's own accept",))

    def zoo(
        self, cases: list[Case], near: tuple[int, ...], seed: int, asked: list[str]
    ) -> list[dict[str, Any]]:
        """{facts} of every hostile case made of these, or {case, why} of one that asks nothing."""
        variants, found = variant_facts(self.op), []
        for one in hostile(self.op, cases, near, seed, asked):
            try:
                facts = case_facts(
                    self.op, one.case, variants, strided=one.strided, grid=one.grid, of=one.of
                )
                runs = [self._known(one.case, s) for s in (seed, seed + 1)]
                why = unasked(one, [(k.inputs, k.expected) for k in runs], self.op)
            except Exception as error:  # noqa: BLE001 - whatever the Op's functions raise is told
                why = supported(self.op, one.case) or told(error)
            case = msgspec.to_builtins(one.case)
            found.append(
                {"case": case, "why": why} if why else {"facts": msgspec.to_builtins(facts)}
            )
        return found

    def _truth(self, case: Case, seed: int) -> tuple[tuple[Any, ...], Expected]:
        known = self._known(case, seed)
        return known.inputs, known.expected

    def _known(self, case: Case, seed: int) -> Known:
        key = (case.label, case.seed, seed)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        inputs = inputs_of(self.op, case, seed)
        known = self._worked_out(case, inputs, seed)
        self._kept[key], self._specs[key] = known, known.specs
        while len(self._kept) > 2 and sum(k.bytes for k in self._kept.values()) > self._keep:
            self._kept.popitem(last=False)
        return known

    def _worked_out(self, case: Case, inputs: tuple[Any, ...], seed: int) -> Known:
        """On the CPU, too, where others have the GPU's memory: the truth is the same."""
        place = self._place(inputs)
        try:
            return self._known_at(place, case, inputs, seed)
        except torch.cuda.OutOfMemoryError:
            self._kept.clear()
            torch.cuda.empty_cache()
        return self._known_at("cpu", case, inputs, seed)

    def _known_at(self, place: str, case: Case, inputs: tuple[Any, ...], seed: int) -> Known:
        if self.op.of is not None and not case.zoo and (case.label, case.seed) not in self._joined:
            check_formula(self.op, case, seed, place)
            self._joined.add((case.label, case.seed))
        return Known(self.op, case, inputs, place)

    def _place(self, inputs: tuple[Any, ...]) -> str:
        """Where the truth is computed: on the GPU if it fits there with its float64 copies."""
        if not self.device.startswith("cuda"):
            return "cpu"
        free, _ = torch.cuda.mem_get_info(self.device)
        return self.device if 40 * tensor_bytes(inputs) < FREE_SHARE * free else "cpu"


def _unwritten(runs: list[Ran]) -> Verdict | None:
    """What two runs under two poisons left unwritten; one run alone can't tell."""
    return poison_left(runs[0], runs[1]) if len(runs) > 1 else None


def _stale(runs: list[Ran]) -> Verdict | None:
    """Whether the last run, which is wrong, has the bits of the one before with other inputs."""
    if len(runs) < 2 or not all(
        same_bits(a, b) for a, b in zip(runs[-2].outputs, runs[-1].outputs)
    ):
        return None
    return Verdict(
        word="stale answer",
        detail="a call with new inputs returned the answer of the call before",
        advice="compute the result at every call; keep nothing between calls",
    )


def _unlike_before(detail: str) -> Verdict:
    return Verdict(
        word="not the same twice",
        detail=f"right at first, then with the same inputs: {detail}",
        advice="look for a race, and for what is kept between calls",
    )


class Known:
    """Inputs, output shapes and truth of one case under one seed."""

    def __init__(self, op: Op, case: Case, inputs: tuple[Any, ...], device: str):
        self.inputs = inputs
        self._op, self._device = op, device
        there = self._there()
        self.specs: Specs = output_specs(op, there, case)
        self.truth: Truth = truth_of(op, there, self.specs)
        self._dtypes = [x.dtype for x in inputs if isinstance(x, torch.Tensor)]
        self._check_specs(op)

    def _there(self) -> tuple[Any, ...]:
        return tuple(x.to(self._device) if isinstance(x, torch.Tensor) else x for x in self.inputs)

    @functools.cached_property
    def expected(self) -> Expected:
        """The truth and what is allowed, which costs several times as much."""
        try:
            return budgeted(self._op, self._there(), self.truth)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
        self._device = "cpu"
        outputs = tuple(t.cpu() for t in self.truth.outputs)
        self.truth = dataclasses.replace(self.truth, outputs=outputs)
        return budgeted(self._op, self._there(), self.truth)

    def _check_specs(self, op: Op) -> None:
        shapes = [tuple(t.shape) for t in self.truth.outputs]
        said = [tuple(shape) for shape, _ in self.specs]
        if shapes != said:
            raise AssayError(
                f"{op.name}: outputs() says {said}, and the reference gives {shapes}; "
                "correct the one that is wrong"
            )

    def roundoff(self, precision: str) -> float:
        return arithmetic(self._dtypes, precision)

    @property
    def bytes(self) -> int:
        held = [*self.inputs, *self.truth.outputs]
        if "expected" in self.__dict__:
            held += [*self.expected.moved, *self.expected.cache.values()]
        return tensor_bytes(held)
