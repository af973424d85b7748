"""The one command that mends a thing, for this kind of machine."""

from __future__ import annotations

from assay.doctor.facts import Finding, Host, Probe
from assay.doctor.parse import numbers

_INSTALL = {
    "debian": "apt-get install",
    "fedora": "dnf install",
    "suse": "zypper install",
    "arch": "pacman -S",
    "alpine": "apk add",
}
_NAMES = {
    "g++": {"fedora": "gcc-c++", "suse": "gcc-c++", "arch": "gcc"},
    "gcc": {},
    "libgomp": {"debian": "libgomp1", "suse": "libgomp1", "arch": "gcc-libs"},
    "python-dev": {
        "fedora": "python3-devel",
        "suse": "python3-devel",
        "arch": "python",
        "alpine": "python3-dev",
    },
}


def install(host: Host, what: str) -> tuple[str, bool]:
    """(fix, is it a command) that installs `what` with this system's package manager."""
    name = _NAMES[what].get(host.family, what)
    if what == "python-dev" and host.family == "debian":
        name = f"python{'.'.join(map(str, numbers(host.python)[:2]))}-dev"
    if host.family not in _INSTALL:
        return f"install {name} with this system's package manager", False
    return f"{admin(host)}{_INSTALL[host.family]} {name}", True


def admin(host: Host) -> str:
    """ "sudo " unless this is root already."""
    return "" if host.root else "sudo "


def python_header(host: Host) -> tuple[str, bool]:
    """Only the system's own Python gets its headers from the package manager."""
    if host.executable.startswith("/usr/bin/") or not host.executable:
        return install(host, "python-dev")
    version = ".".join(map(str, numbers(host.python)[:2]))
    line = f"install the development files (Python.h) of Python {version}, the one in use"
    return line, False


def nvcc_of(major: int, nvcc: Probe, host: Host) -> tuple[str, bool]:
    """Another toolkit that is already here, else how to get nvcc of this CUDA major version."""
    for other in nvcc.others:
        folder, _, rest = other.rpartition("/bin/")
        if rest and f"cuda-{major}" in folder:
            return f"export CUDA_HOME={folder}", True
        if rest and f"/nvidia/cu{major}" in folder:
            return f"export CUDA_HOME={folder}", True
    if major >= 13:  # the wheels hold the whole compiler from CUDA 13 on
        return f'python -m pip install "nvidia-cuda-nvcc=={major}.*"', True
    line = f"install the CUDA {major} toolkit and set CUDA_HOME to its folder"
    return line, False


def driver(host: Host, oldest: str) -> tuple[str, bool]:
    """A newer driver; a container cannot bring its own."""
    where = f" on the machine that runs this {host.container} container" if host.container else ""
    if host.wsl:
        return f"update the NVIDIA driver in Windows to {oldest} or newer", False
    return f"install NVIDIA driver {oldest} or newer{where}", False


def shm(host: Host, wanted: str = "8g") -> tuple[str, bool]:
    """How to enlarge /dev/shm, which is set from outside in a container."""
    if host.container == "kubernetes":
        return 'mount an emptyDir with "medium: Memory" on /dev/shm in the pod', False
    if host.container in ("docker", "podman"):
        return f"start the container with: {host.container} run --shm-size={wanted} ...", False
    return f"{admin(host)}mount -o remount,size={wanted} /dev/shm", True


MODPROBE = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"


def counter_permission(host: Host) -> tuple[str, bool]:
    """Who can allow the GPU's counters, and the exact line. Nothing is edited here.

    Source: NVIDIA, "ERR_NVGPUCTRPERM: Permission issue with Performance Counters".
    """
    if host.container:
        line = (
            f"whoever starts the container adds --cap-add=SYS_ADMIN, or the host's administrator "
            f"puts `{MODPROBE}` in /etc/modprobe.d/ and reboots"
        )
        return line, False
    file = "/etc/modprobe.d/nvidia-counters.conf"
    return f"echo '{MODPROBE}' | {admin(host)}tee {file} && {admin(host)}reboot", True


def denied(text: str, host: Host) -> Finding | None:
    """Recognises a profiler's refusal in its output, for whoever ran it; None if it is not one."""
    if "ERR_NVGPUCTRPERM" not in text:
        return None
    fix, command = counter_permission(host)
    what = "the driver refuses the GPU's counters to this user (ERR_NVGPUCTRPERM)"
    return Finding(id="counters-forbidden", what=what, fix=fix, command=command)
