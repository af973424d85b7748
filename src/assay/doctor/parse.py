"""Turns what tools print into values. Pure: text in, values out."""

from __future__ import annotations

import re

from assay.doctor.facts import Board, Management

_VERSIONS = (
    r"\bV(\d+\.\d+(?:\.\d+)*)",  # nvcc, ptxas, nvdisasm, cuobjdump
    r"(?i)\bversion:?\s+v?(\d+(?:\.\d+)+)",  # ncu, nsys, compute-sanitizer
    r"(?i)\brelease\s+(\d+\.\d+)",
    r"(?m)^(?:NVIDIA \(R\) )?(?:cuda-gdb|NVIDIA).*?(\d+\.\d+)",  # cuda-gdb names its CUDA first
    r"\b(\d+\.\d+(?:\.\d+)*)\b",
)


def numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: "2.13.0+cpu" is (2, 13, 0), "" is ()."""
    match = re.match(r"\d+(?:\.\d+)*", version.strip())
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def tool_version(text: str) -> str:
    """The version in a program's `--version` output; "" if there is none."""
    for pattern in _VERSIONS:
        if match := re.search(pattern, text):
            return match.group(1)
    return ""


def torch_build(text: str) -> tuple[str, str]:
    """(CUDA version, ROCm version) out of torch/version.py, "" for None, without running it."""
    return _assigned(text, "cuda"), _assigned(text, "hip")


def _assigned(text: str, name: str) -> str:
    match = re.search(rf"(?m)^{name}\s*(?::[^=\n]*)?=\s*['\"]([^'\"]*)['\"]", text)
    return match.group(1) if match else ""


def nvidia_smi(text: str) -> Management:
    """The driver and its boards out of `nvidia-smi -q`; `error` says what it complained of."""
    driver = re.search(r"(?m)^Driver Version\s*:\s*(\S+)", text)
    if not driver:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return Management(error=lines[0] if lines else "printed nothing", source="nvidia-smi")
    cuda = re.search(r"(?m)^CUDA Version\s*:\s*(\d+\.\d+)", text)
    blocks = re.split(r"(?m)^GPU (?=[0-9A-Fa-f]+:)", text)[1:]
    return Management(
        driver=driver.group(1),
        cuda=cuda.group(1) if cuda else "",
        boards=tuple(_board(block) for block in blocks),
        source="nvidia-smi",
    )


def _board(block: str) -> Board:
    ecc = re.search(r"(?m)^\s+ECC Mode\s*\n\s+Current\s*:\s*(\w+)", block)
    clocks = re.search(r"(?m)^    Max Clocks\s*\n((?:        .*\n?)*)", block)
    listed = clocks.group(1) if clocks else ""
    return Board(
        pci=block.split()[0],
        ecc={"Enabled": True, "Disabled": False}.get(ecc.group(1)) if ecc else None,
        sm_clock_hertz=_megahertz(listed, "SM"),
        memory_clock_hertz=_megahertz(listed, "Memory"),
    )


def _megahertz(text: str, name: str) -> int | None:
    match = re.search(rf"(?m)^\s*{name}\s*:\s*(\d+) MHz", text)
    return int(match.group(1)) * 1_000_000 if match else None


def same_card(one: str, other: str) -> bool:
    """Whether two PCI bus ids name one card: tools write 4 or 8 digits of domain, either case."""

    def tail(pci: str) -> tuple[int, str]:
        domain, _, rest = pci.lower().partition(":")
        return int(domain, 16), rest

    return tail(one) == tail(other)


def counters(params: str) -> bool | None:
    """Whether only administrators may read the GPU's counters, by /proc/driver/nvidia/params."""
    match = re.search(r"(?m)^RmProfilingAdminOnly:\s*(\d+)", params)
    return match.group(1) != "0" if match else None


def administrator(status: str) -> bool:
    """Whether /proc/self/status grants CAP_SYS_ADMIN (21) or CAP_PERFMON (38).

    The second is enough from driver 565 on; source: NVIDIA's page on ERR_NVGPUCTRPERM.
    """
    match = re.search(r"(?m)^CapEff:\s*([0-9a-fA-F]+)", status)
    bits = int(match.group(1), 16) if match else 0
    return bool(bits >> 21 & 1 or bits >> 38 & 1)


def os_family(release: str) -> str:
    """The package manager's family out of /etc/os-release: debian, fedora, suse, arch, alpine."""
    words = re.findall(r'(?m)^(?:ID|ID_LIKE)="?([^"\n]*)', release)
    names = " ".join(words).split()
    families = {
        "debian": {"debian", "ubuntu"},
        "fedora": {"fedora", "rhel", "centos", "amzn", "rocky", "almalinux"},
        "suse": {"suse", "opensuse", "sles"},
        "arch": {"arch"},
        "alpine": {"alpine"},
    }
    return next((family for family, ids in families.items() if ids & set(names)), "")


def define(text: str, name: str) -> int | None:
    """The number that a C header defines `name` as."""
    match = re.search(rf"(?m)^\s*#\s*define\s+{name}\s+(\d+)", text)
    return int(match.group(1)) if match else None


def host_limit(text: str) -> bool:
    """Whether nvcc refused its host compiler for being too new, not the code."""
    return "unsupported GNU version" in text or "unsupported clang version" in text
