"""What an explanation is made of, and what it is: facts of one call, findings, one conclusion."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..inside.geometry.model import Geometry
from ..simt.counts import Counts
from .cards import Card

COUNTED, COMPILER, ESTIMATED, MEASURED = "counted", "from the compiler", "estimated", "measured"
"""How sure a finding's evidence is: exact counts of the code run on a CPU; what a compiler reports;
arithmetic with figures that nobody measured here; what a clock or a counter on a GPU said."""


@dataclass(frozen=True)
class Launch:
    """One kernel's launch; how often it occurs in a call; what the compiler says of it."""

    geometry: Geometry
    times: int = 1
    spill_bytes: int = 0
    """Stored to and loaded from local memory, written in the code of a thread: each once at least
    where a loop goes round it."""
    stack_bytes: int = 0


@dataclass(frozen=True)
class Operator:
    """An operator of torch that a call dispatches to, if it computes or moves anything."""

    name: str
    bytes: int
    """Of the tensors that it reads and writes."""
    waits: bool = False
    """It brings a value to the host: `.item()`, `nonzero`. On a GPU the host waits there."""


@dataclass(frozen=True)
class Facts:
    """All that is known of one call of a variant on a case. None or empty: not known."""

    card: Card
    op: str = ""
    label: str = ""
    case: str = ""
    launches: tuple[Launch, ...] = ()
    operators: tuple[Operator, ...] = ()
    """Of `eager` code, in order; each is a kernel or more."""
    counts: Counts | None = None
    """Of the whole call on `case`, extended from what was counted on `counted_case`."""
    loads: int = 1
    """Loads from global memory in the code of a kernel: so many can be on their way at once."""
    counted_case: str = ""
    scale: float = 1.0
    """How many times the work of `counted_case` a call on `case` does."""
    must_bytes: int | None = None
    """What must move: inputs and outputs once, or what the Op states."""
    moved_bytes: int | None = None
    """Of the arrays that all launches are given: what a chain of kernels moves."""
    flops: int | None = None
    precision: str = ""
    dtype: str = ""
    seconds: float | None = None
    """Measured, a call; on the card."""
    method: str = ""
    """How, and in which state of the cache."""
    host_seconds: float | None = None
    """Measured: what the host needs to queue a call."""
    wall_seconds: float | None = None
    """Measured: what a user waits for a call, and for the synchronize behind it."""
    sync_seconds: float | None = None
    """Measured: a synchronize with nothing to wait for."""
    one_call_seconds: float | None = None
    """Measured: what a user waits for one operator of torch on one element."""
    kernel_seconds: float | None = None
    """Measured: the kernels of a call, added up."""
    host_bound: str = ""
    """Why its times on the GPU are no number: the GPU waited for the host."""
    share: float | None = None
    """Measured: of the ceiling that binds."""
    share_of: str = ""
    unknown: tuple[str, ...] = ()
    """What could not be found out, each with its reason."""


@dataclass(frozen=True)
class Finding:
    """One cause of lost time."""

    cause: str
    """A key of `causes.ADVICE`: `uncoalesced access`, `bank conflicts`, ..."""
    evidence: str
    """The numbers, and where from."""
    gain: float
    """Times faster without the cause, as predicted."""
    arithmetic: str
    """How the gain follows."""
    confidence: str
    """COUNTED, COMPILER, ESTIMATED or MEASURED: of the evidence. A gain is an estimate."""
    advice: str


@dataclass(frozen=True)
class Explanation:
    """The whole answer for one call."""

    facts: Facts
    bound: str
    """What decides: `memory`, `compute`, `latency`, `launches`, `the host`; empty: not known."""
    sentence: str
    findings: tuple[Finding, ...] = ()
    """The largest predicted gain first."""
    costs: dict[str, float] = field(default_factory=dict)
    """Seconds that each part takes by itself, by the model."""

    @property
    def sound(self) -> bool:
        """Nothing left to gain: what decides is known, and there is no finding."""
        return bool(self.bound) and not self.findings
