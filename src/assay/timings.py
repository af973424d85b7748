"""The nouns of speed: Timing and what stands in it; ceilings (Roof, Roofs); floor and share."""

from __future__ import annotations

import msgspec

SCHEMA = 1
"""Version of the row format; raised only when an old reader would misread a new row."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Every sample in time order, in seconds a call, and the conditions they were taken under."""

    samples: tuple[float, ...]
    method: str
    """`wall` (CPU: host clock); on a GPU `cupti` (start to end of the one kernel that a call is) or
    `events` (event to event behind a full queue, what they add taken off; for several kernels)."""
    cache: str
    """`cold L2` (refilled by reads before each sample), `cold, dirty L2` (by writes), `hot` (the
    same buffers again), `rotated` (each call on other buffers, more than the cache holds together);
    on a CPU `cold cache` and `cold, dirty cache`; `unknown L2` where a probe did not see the
    flush work."""
    schedule: str
    """Id of the schedule; ratios are formed only between timings that share it."""
    rounds: tuple[int, ...]
    """For each sample, the round of the schedule that it was taken in."""
    calls: int = 1
    """Calls a sample; a sample is divided by it."""
    windows: int = 1
    """Windows of one call that a sample is the mean of (GPU)."""
    median: float
    low: float
    high: float
    """95 % interval of the median, by moving-block bootstrap."""
    steady: str = ""
    """Empty, or how the samples drift or fall into modes."""
    ended: str = ""
    """What ended sampling: `interval` (the median was known to 0.25 %), or `budget`."""
    threads: int | None = None
    null_seconds: float | None = None
    """What an empty window reads on the same clock."""
    fixed_seconds: float | None = None
    """What two events read more than CUPTI's span of the same kernel (GPU). Samples are free of it;
    0 where CUPTI could not tell, and then a note says so."""
    warmup_seconds: float | None = None
    warmup_calls: int | None = None
    first_call_seconds: float | None = None
    """The very first call in this process: compiling, loading and all."""
    host_seconds: float | None = None
    """How long the host needs to queue one call (GPU)."""
    wall_seconds: float | None = None
    """What a user waits: from the call to the end of the synchronize behind it, hot, by the host's
    clock (GPU)."""
    sync_seconds: float | None = None
    """What a synchronize takes when there is nothing to wait for (GPU)."""
    memory: Memory | None = None
    """What one call allocates (GPU)."""
    sustained: Sustained | None = None
    """The same call back to back for seconds; only on request."""
    period_seconds: float | None = None
    """What one more call costs behind another in a CUDA graph, hot: (T(4n) - T(n)) / 3n."""
    no_period: str = ""
    """Why there is none, where it was asked for."""
    working_bytes: int | None = None
    """Inputs and outputs of one call."""
    cache_bytes: int | None = None
    """What the L2 (GPU) or the last-level cache (CPU) holds."""
    sets: int = 1
    """Sets of inputs and outputs that calls take in turn."""
    inputs: tuple[Input, ...] = ()
    """What fed it: data decides how much power a GPU takes, and with it the clock."""
    clock_hz: tuple[float, float] | None = None
    """Lowest and highest SM clock seen beside the samples."""
    watts: tuple[float, float] | None = None
    """The same of the GPU's power, by NVML's moving average."""
    celsius: tuple[float, float] | None = None
    """The same of its temperature."""
    hertz: tuple[float, ...] = ()
    """For each sample, the SM clock that NVML told in its round (GPU)."""
    held: dict[str, tuple[int, ...]] = {}
    """What slowed samples down, to their indices: `software power cap`, `interrupted`."""
    other_load: float | None = None
    """Share of this process's CPUs that other processes used meanwhile (CPU)."""
    noise: float | None = None
    """q: by how much equal kernels of this length differ here once in a thousand, by
    `assay selftest clock`; None where that was not run."""
    copy_rate: float | None = None
    """Bytes a second (read + written) of a large copy, measured in the same schedule."""
    kernels: int | None = None
    """Kernels, copies and fills that CUPTI saw one call run (GPU)."""
    kernel_seconds: float | None = None
    """Sum of their durations, traced in a pass of its own; the median of several calls."""
    span_seconds: float | None = None
    """From the first start to the last end on the current stream, traced in the same pass."""
    event_seconds: float | None = None
    """Median of the same calls by events, where the samples are CUPTI's: the second clock."""
    seed: int | None = None
    notes: tuple[str, ...] = ()
    floor: Floor | None = None
    """The least that a call can take here; None where no data sheet says."""
    share: Share | None = None
    """How much of a measured ceiling it reaches."""
    no_share: str = ""
    """Why there can be none; empty too where none of this size was measured."""


ON_GPU = ("cupti", "events")
"""Methods whose times may be set against one another: both tell how long the GPU worked."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """One input: a tensor by its form and some of its values, anything else by its text."""

    name: str
    text: str = ""
    """Of what is no tensor: `1e-05`."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    zeros: float | None = None
    """Share of zeros. These four are of at most 65,536 elements, evenly spread; None of none."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What torch's allocator gave out during one call; memory from elsewhere it does not see."""

    allocations: int
    bytes: int
    """Of all of them."""
    peak_bytes: int
    """Most that was held at once, above what was held before."""
    reserved_bytes: int
    """What the allocator holds of the device afterwards, for all kernels of the process."""


class Sustained(msgspec.Struct, frozen=True, kw_only=True):
    """Calls back to back for seconds: what clocks and power leave of the speed of a burst."""

    by: str
    """`graphs` of many calls, replayed; or `calls`, where none can be captured: then the host may
    be what is slow."""
    seconds: float
    """How long."""
    period: float
    """Seconds a call in the last third of it."""
    first_period: float
    """The same in the first tenth."""
    clock_hz: tuple[float, float] | None = None
    """Lowest and highest SM clock in the last third."""
    watts: float | None = None
    """Mean power in the last third."""
    celsius: float | None = None
    held: tuple[str, ...] = ()
    """`software power cap in 12 of 40 readings`."""


class Floor(msgspec.Struct, frozen=True, kw_only=True):
    """The least time that one call can take: from data sheets, so that nothing honest is below."""

    seconds: float
    by: str
    """What takes that long: `moving 134,217,728 bytes at 3,352 GB/s`."""
    bytes: int | None = None
    """Bytes that DRAM must move, in this state of the cache."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a ceiling a time reaches, of ceilings measured on the same machine."""

    value: float
    """What the ceiling takes over what the call takes: 0.97."""
    of: str
    """The ceiling that binds: `copy`, `bfloat16 matrix`, `empty launch`."""
    roofs: str
    """Id of the Roofs that it is of."""


class Roof(msgspec.Struct, frozen=True, kw_only=True):
    """One ceiling: the fastest of several kernels that do nothing but one thing."""

    name: str
    """`read`, `write`, `copy`, `shared memory`, `float32 FMA`, `tf32 matrix`, `empty launch`."""
    unit: str
    """`B/s`, `FLOP/s`, or `s` where it is a time."""
    value: float
    """The median, in that unit."""
    low: float
    high: float
    """95 % interval of the median."""
    samples: tuple[float, ...]
    """Seconds of each sample in time order, all of the kernel named by `by`."""
    work: float = 1.0
    """Bytes or FLOP of a sample; for a time, how many of it a sample holds."""
    bytes: int | None = None
    """Bytes that one pass moves, read and written: the size class of a rate of memory."""
    shape: str = ""
    """Of a matrix product: `4096^3`, its sides."""
    cache: str = ""
    """`cold L2`, `hot`, or `in cache`: passes over data that the cache holds."""
    by: str
    """The kernel that was fastest: `torch.sum`, `copy_tiles`."""
    beaten: tuple[str, ...] = ()
    """The kernels that were slower."""
    clock_hz: tuple[float, float] | None = None
    """Lowest and highest SM clock seen beside the samples; None where NVML does not tell."""
    steady: str = ""

    @property
    def seconds(self) -> float:
        """The median as a time: of one pass over `bytes`, of one product, of one launch."""
        if self.unit == "s":
            return self.value
        return (self.bytes if self.bytes is not None else self.work) / self.value


class Roofs(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="roofs"):
    """The ceilings of one device, measured; kept by what could change them."""

    schema: int = SCHEMA
    id: str
    device: str
    """`cpu` or `cuda:0`."""
    key: dict[str, str]
    """Card, driver, torch, clocks: with another of any of them they are measured anew."""
    time: str
    """When they were measured, UTC, ISO 8601."""
    roofs: tuple[Roof, ...]
    absent: dict[str, str] = {}
    """What could not be measured, and why."""
    datasheet: float | None = None
    """Bytes a second of DRAM by the data sheet."""
    source: str = ""
    """Where that comes from."""
    doubtful: str = ""
    """Why no percentage of these can be believed; empty: nothing speaks against them."""
    notes: tuple[str, ...] = ()
