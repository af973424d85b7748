"""What the doctor found: frozen facts, and the report made of them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

State = Literal["found", "missing", "failed"]

# Names of probes that are looked up again by the rules.
NVCC_HOST = "nvcc + host"
TRITON_KERNEL = "Triton kernel"


class Probe(Struct, frozen=True, kw_only=True):
    """One thing that was looked for: a program, header, library, package or compiler.

    `found` means that it was run (programs) or read (headers, packages), not only seen;
    `failed` means that it is there and does not work, and `detail` says how.
    """

    name: str
    state: State
    version: str = ""
    path: str = ""
    origin: str = ""  # the place searched that had it: CUDA_HOME, PATH, wheel, system, ...
    detail: str = ""  # what it is built for, why it failed, or what it is needed for
    others: tuple[str, ...] = ()  # further places that have it, not taken
    architectures: tuple[str, ...] = ()  # compute capabilities it can build for, such as "9.0"


class Device(Struct, frozen=True, kw_only=True):
    """One GPU as the CUDA driver describes it. A value the driver does not know is None."""

    index: int
    name: str
    capability: tuple[int, int]
    pci: str
    memory_bytes: int
    sms: int | None = None
    warp_threads: int | None = None
    max_threads_per_block: int | None = None
    max_threads_per_sm: int | None = None
    max_blocks_per_sm: int | None = None
    registers_per_block: int | None = None
    registers_per_sm: int | None = None
    shared_per_block_bytes: int | None = None
    shared_optin_bytes: int | None = None
    shared_per_sm_bytes: int | None = None
    shared_reserved_bytes: int | None = None  # taken by the system from every block
    constant_bytes: int | None = None
    l2_bytes: int | None = None
    l2_persisting_bytes: int | None = None
    sm_clock_hertz: int | None = None  # the largest allowed, not the present one
    memory_clock_hertz: int | None = None  # the largest allowed
    memory_bus_bits: int | None = None
    copy_engines: int | None = None
    cooperative_launch: bool | None = None
    ecc: bool | None = None
    compute_mode: int | None = None  # 0 default, 2 prohibited, 3 one process at a time
    features: tuple[str, ...] = ()  # what the compute capability brings, see capability.py


class Cuda(Struct, frozen=True, kw_only=True):
    """What libcuda said in a child process. `error` is empty if `cuInit` succeeded."""

    version: str = ""  # the newest CUDA this driver takes, such as "13.0"
    library: str = ""
    code: int = 0  # CUresult of cuInit; -1: libcuda could not be loaded; -2: no answer
    error: str = ""
    devices: tuple[Device, ...] = ()


class Board(Struct, frozen=True, kw_only=True):
    """One GPU as the management library or nvidia-smi describes it."""

    pci: str
    ecc: bool | None = None
    sm_clock_hertz: int | None = None
    memory_clock_hertz: int | None = None


class Management(Struct, frozen=True, kw_only=True):
    """The driver as nvidia-smi or NVML sees it. `error` is empty if it answered."""

    driver: str = ""  # such as "580.159.04"
    cuda: str = ""
    boards: tuple[Board, ...] = ()
    error: str = ""
    source: str = ""  # "NVML" or "nvidia-smi"
    detail: str = ""  # why it was not NVML, where nvidia-ml-py is installed


class Host(Struct, frozen=True, kw_only=True):
    """The machine and the process round the kernels."""

    python: str = ""
    executable: str = ""
    system: str = ""  # platform, kernel and processor
    family: str = ""  # of the distribution: debian, fedora, arch, suse, alpine or ""
    container: str = ""  # docker, podman, kubernetes, ... or "" for none seen
    wsl: bool = False
    root: bool = False
    cores: int = 0  # cores this process may use
    shm_bytes: int | None = None  # size of /dev/shm; None where there is none
    counters: Literal["everyone", "administrators", "unknown"] = "unknown"
    administrator: bool = False  # has CAP_SYS_ADMIN or CAP_PERFMON
    nvidia_cards: int = 0  # NVIDIA display or 3D controllers on the PCI bus
    environment: tuple[tuple[str, str], ...] = ()  # variables that change what kernels do


class Facts(Struct, frozen=True, kw_only=True):
    """Everything probed, before anything is judged."""

    host: Host = Host()
    cuda: Cuda = Cuda(code=-1, error="not probed")
    management: Management = Management(error="not probed")
    toolkit: tuple[Probe, ...] = ()
    compilers: tuple[Probe, ...] = ()
    packages: tuple[Probe, ...] = ()
    torch_cuda: str = ""  # CUDA version torch was built with; "" for a CPU-only build
    torch_hip: str = ""  # ROCm version torch was built with
    nvrtc_ptx: str = ""  # PTX ISA version that the NVRTC found writes

    def probe(self, name: str) -> Probe:
        """The probe of this name, or one that says `missing`."""
        for found in (*self.toolkit, *self.compilers, *self.packages):
            if found.name == name:
                return found
        return Probe(name=name, state="missing")


class Finding(Struct, frozen=True, kw_only=True):
    """Something to mend (a problem) or to know (a note)."""

    id: str  # stable, in kebab case
    what: str
    fix: str = ""
    command: bool = True  # `fix` can be pasted in a shell; else it is a line to read


class Report(Struct, frozen=True, kw_only=True):
    """The facts, and what they mean. `problems` is empty on a machine with nothing to mend."""

    facts: Facts
    problems: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    seconds: float
    schema: int = 1
