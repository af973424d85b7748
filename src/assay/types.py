"""The data nouns: what was asked, what was found, where. Frozen, and lossless as JSON (rows.py).

Units are base units: seconds, bytes, hertz. A field that could not be known is None, never 0.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from .timings import SCHEMA as SCHEMA
from .timings import Floor as Floor
from .timings import Input as Input
from .timings import Memory as Memory
from .timings import Roof as Roof
from .timings import Roofs as Roofs
from .timings import Share as Share
from .timings import Sustained as Sustained
from .timings import Timing as Timing

Scalar = int | float | bool | str


PASS, FAIL, NO_EVIDENCE, ABSENT = "pass", "fail", "no evidence", "absent"

OUTCOMES: dict[str, str] = {
    "right": PASS,
    "refused": PASS,
    "wrong value": FAIL,
    "wrong shape": FAIL,
    "wrong dtype": FAIL,
    "wrong device": FAIL,
    "wrong strides": FAIL,
    "wrong gradient": FAIL,
    "not written": FAIL,
    "wrote outside": FAIL,
    "read outside": FAIL,
    "changed its input": FAIL,
    "shares memory": FAIL,
    "not the same twice": FAIL,
    "lower precision": FAIL,
    "stale answer": FAIL,
    "unfinished": FAIL,
    "tampered": FAIL,
    "race": FAIL,
    "read before written": FAIL,
    "divergent barrier": FAIL,
    "absent lanes": FAIL,
    "crashed": FAIL,
    "timed out": FAIL,
    "out of memory": FAIL,
    "did not build": FAIL,
    "did not launch": FAIL,
    "not supported": FAIL,
    "check too weak": NO_EVIDENCE,
    "not run": ABSENT,
}
"""Every verdict word and the class of outcome that it belongs to."""


class Case(msgspec.Struct, frozen=True):
    """One concrete input: ordered names to int (64 bit), float, bool or str, and a seed."""

    values: dict[str, Scalar] = {}
    seed: int = 0
    zoo: str = ""
    """Empty for a case that the Op declares, else the hostile input that was made of one:
    `x:nan`, `x:transposed`, `size`."""

    @property
    def label(self) -> str:
        """The values as a command line takes them: `n=4096 dtype=float32`."""
        said = [f"{name}={value}" for name, value in self.values.items()]
        return " ".join([*said, *([f"zoo={self.zoo}"] if self.zoo else [])])

    @property
    def size(self) -> int:
        """How large it is, without making its inputs: the product of its integers."""
        return math.prod(value for value in self.values.values() if type(value) is int)


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a kernel did wrong, seen while its compiled code was watched on a CPU."""

    word: str
    """`out of bounds`, `read before written`, `race`, `barrier in divergent code`, `misaligned`,
    `deadlock`, `endless`, `lane missing`, `read only`, `assertion`, `trap`, `bad barrier`,
    `copy not waited for`."""
    text: str
    """One sentence: who did what to which memory."""
    file: str = ""
    line: int = 0
    block: tuple[int, int, int] = (0, 0, 0)
    thread: tuple[int, int, int] = (0, 0, 0)
    instruction: str = ""
    """The PTX."""
    other: str = ""
    """Of a race, `file:line` of the other party where it is known."""
    count: int = 1
    """How many threads met it at this line."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        return f"{where}{self.word}: {self.text}"


class Barrier(msgspec.Struct, frozen=True, kw_only=True):
    """A barrier, wait or fence that was left out of a right kernel's compiled code."""

    kernel: str
    form: str
    """The PTX instruction: `bar.sync`, `cp.async.wait_group`, `membar.gl`."""
    file: str = ""
    line: int = 0
    needed: bool
    """Whether anything went wrong without it, on this case."""
    seen: str = ""
    """What went wrong first."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Right, or wrong and how."""

    word: str
    detail: str = ""
    advice: str = ""
    judge: str = ""
    """What ran the kernel: `cpu`, a GPU's device name, `interpreter`, `simulator`, or `sm_80`:
    code compiled for that architecture, run on the CPU and watched."""
    faults: tuple[Fault, ...] = ()
    barriers: tuple[Barrier, ...] = ()
    """With `--drop-barriers`: each in turn left out."""
    worst: float | None = None
    """Largest error in units of what rounding allows (1.0 is the limit)."""
    worst_at: tuple[int, ...] | None = None
    eager_worst: float | None = None
    """The same for the eager reference in the case's dtype: how hard this case is."""
    rms: float | None = None
    """Root mean square of all errors, in units of what rounding allows each element."""
    eager_rms: float | None = None
    """The same for the eager reference, where its errors were measured on the same scale."""
    precision: str = ""
    """The precision class that it was judged by, if right; else the one that it looks like."""
    bad: int | None = None
    """Number of elements beyond the limit, of `total`."""
    total: int | None = None
    seed: int | None = None
    """Seed of the inputs; `--seed` gives the same ones again."""
    findings: tuple[str, ...] = ()
    """What is worth knowing of a kernel that is right, e.g. that two runs differ in some bits."""

    map: str = ""
    """Of an output that is not wholly written, or wrong in part: which elements, as a grid of
    characters; a few lines."""

    @property
    def outcome(self) -> str:
        return OUTCOMES[self.word]


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """What a compiler says of one kernel. Bytes are per thread, shared memory per block."""

    name: str
    arch: str
    registers: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    dynamic_shared_bytes: int | None = None


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """What the compiler (later also the hardware) counted, kernel by kernel."""

    kernels: tuple[Compiled, ...] = ()


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """How a kernel came to be callable. Seconds are those of this build or of the cache look-up."""

    seconds: float
    cached: bool
    key: str = ""
    log: str = ""
    """The compiler's own output, whole."""


class GPU(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU as its driver describes it."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes_per_block_optin: int
    driver: str = ""
    uuid: str = ""
    sm_hz: float | None = None
    """Highest SM clock, as the driver says."""
    memory_hz: float | None = None
    """Memory clock; a line of the bus carries two bits a cycle."""
    bus_bits: int | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="machine"):
    """What a machine is; written once a file, and referred to by id."""

    schema: int = SCHEMA
    id: str
    cpu: str
    cores: int
    memory_bytes: int
    llc_bytes: int | None
    """Last-level cache of the CPU."""
    system: str
    versions: dict[str, str]
    gpus: tuple[GPU, ...] = ()
    no_gpu: str = ""
    """Why no GPU is used, where none is."""

    def gpu(self, device: str) -> GPU | None:
        """The GPU that `cuda:1` means; None for `cpu`, and for one that is not there."""
        index = int(device.partition(":")[2] or 0)
        return self.gpus[index] if device.startswith("cuda") and index < len(self.gpus) else None


class Row(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="row"):
    """One variant with one set of knobs on one case: outcome always, timing only if right."""

    schema: int = SCHEMA
    op: str
    variant: str
    way: str
    knobs: dict[str, Scalar] = {}
    source_hash: str = ""
    case: Case = Case()
    device: str = ""
    machine: str = ""
    outcome: str
    word: str
    reason: str = ""
    """One sentence for people: why it is absent, or what is wrong and where."""
    verdict: Verdict | None = None
    build: Build | None = None
    counters: Counters | None = None
    timing: Timing | None = None
    not_timed: str = ""
    """Why a right kernel has no timing."""
    rejected: Timing | None = None
    """The samples that give no number, as they were taken; `not_timed` says why."""
    bytes: int | None = None
    """Bytes that must move: by default each input read once and each output written once."""
    flops: int | None = None
    precision: str = ""
    lines: int | None = None
    """Lines of code of the variant with its kernel source, without blanks and comments."""
    time: str = ""
    """When the row was made, UTC, ISO 8601."""
    save: int | None = None
    """In `bench --watch`, the number of the save it belongs to; 0 is the file as it was found."""
    quick: bool = False
    """In `bench --watch`, the row of the first case, printed before the other cases are judged and
    before anything is timed. The row of the same case without it follows."""

    @property
    def label(self) -> str:
        """Variant and knobs as printed: `triton BLOCK=1024`."""
        return " ".join([self.variant, *(f"{k}={v}" for k, v in self.knobs.items())])


class Strength(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="strength"):
    """What the cases of one Op and dtype would notice: wrong answers, made of the right one."""

    schema: int = SCHEMA
    op: str
    dtype: str = ""
    """The `dtype` that the cases share; empty where they name none."""
    killed: dict[str, str] = {}
    """Wrong answer to the label of the case that tells it from the right one."""
    alive: tuple[str, ...] = ()
    """Those that would pass every case. With any, the check is too weak."""
    allowed: tuple[str, ...] = ()
    """Slightly wrong ones that would pass: within what rounding, or the Op's limit, allows."""
    equivalent: tuple[str, ...] = ()
    """Those that are within one rounding of the right answer in every case: not counted."""
    suggestion: str = ""
    """Which inputs would tell those that live from the right answer."""
    seconds: float | None = None

    @property
    def weak(self) -> str:
        """Empty, or why what is right on these cases is no evidence."""
        if not self.alive:
            return ""
        hint = f"; {self.suggestion}" if self.suggestion else ""
        return f"{_listed(self.alive)} would pass every case{hint}"


def _listed(names: tuple[str, ...]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def replace(noun: Any, **changes: Any) -> Any:
    """A copy of a frozen noun with some fields changed."""
    return msgspec.structs.replace(noun, **changes)
