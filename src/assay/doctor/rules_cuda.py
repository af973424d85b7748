"""Judges the driver, the toolkit and torch against one another. Pure."""

from __future__ import annotations

from assay.doctor import fixes
from assay.doctor.capability import OLDEST_DRIVER, ptx_of
from assay.doctor.facts import Facts
from assay.doctor.judged import PIP, Fix, Judged, driver_cuda, has_gpu, note, problem, two
from assay.doctor.parse import numbers


def torch_build(facts: Facts) -> Judged:
    """A torch that cannot use the GPU that is here."""
    torch = facts.probe("torch")
    if torch.state != "found" or facts.torch_cuda or not has_gpu(facts):
        return
    build = f"built for ROCm {facts.torch_hip}" if facts.torch_hip else "a CPU-only build"
    card = facts.cuda.devices[0].name if facts.cuda.devices else "an NVIDIA GPU"
    yield problem(
        "torch-cpu-only",
        f"torch {torch.version} is {build}, but this machine has {card}",
        f'{PIP} --force-reinstall "torch=={torch.version.partition("+")[0]}"',
    )


def nvcc_and_torch(facts: Facts) -> Judged:
    """An extension compiled by another CUDA major version than torch's does not load."""
    nvcc, built = facts.probe("nvcc"), two(facts.torch_cuda)
    version = two(nvcc.version)
    if not built or not version:
        return
    said = f"nvcc is {nvcc.version} (from {nvcc.origin}), torch was built with {facts.torch_cuda}"
    if version[0] != built[0]:
        fix = fixes.nvcc_of(built[0], nvcc, facts.host)
        yield problem("nvcc-torch-major", f"{said}: extensions will not build or load", fix)
    elif version[1] != built[1]:
        yield note("nvcc-torch-minor", f"{said}: works, CUDA keeps minor versions compatible")


def driver_and_torch(facts: Facts) -> Judged:
    """A driver takes any minor version of its own CUDA major, and no later major."""
    driver, built = two(driver_cuda(facts)), two(facts.torch_cuda)
    if not driver or not built:
        return
    named = f"driver {facts.management.driver}".strip()
    takes = f"{named} takes CUDA up to {driver_cuda(facts)}"
    said = f"{takes}, torch was built with {facts.torch_cuda}"
    if driver[0] < built[0]:
        oldest = OLDEST_DRIVER.get(built[0], f"for CUDA {built[0]}")
        yield problem("driver-old", said, fixes.driver(facts.host, oldest))
    elif driver[0] == built[0] and driver[1] < built[1]:
        yield note("driver-minor", f"{said}: works, but newer PTX may be refused")


def nvrtc_and_driver(facts: Facts) -> Judged:
    """PTX newer than the driver is refused; a cubin of the same CUDA major is not."""
    nvrtc, driver = facts.probe("NVRTC"), two(driver_cuda(facts))
    version = two(nvrtc.version)
    if not driver or not version or version <= driver:
        return
    takes = ptx_of(driver_cuda(facts))
    written = f"NVRTC {nvrtc.version} writes PTX {facts.nvrtc_ptx}"
    limit = f"takes up to {takes}" if takes else f"is of CUDA {driver_cuda(facts)}"
    said = f"{written}, the driver {limit}"
    pin = f'{PIP} "nvidia-cuda-nvrtc=={driver[0]}.{driver[1]}.*"'
    if driver[0] < 13:  # the wheels carried the major version in their names until then
        pin = f'{PIP} "nvidia-cuda-nvrtc-cu{driver[0]}=={driver[0]}.{driver[1]}.*"'
    if version[0] == driver[0]:
        yield note("nvrtc-newer", f"{said}: compile to cubin, which works, or pin", pin)
    else:
        yield problem("nvrtc-major", f"{said}: nothing that it compiles will load", pin)


def nvrtc_and_headers(facts: Facts) -> Judged:
    """Headers of another CUDA major version do not parse, or parse to something else."""
    nvrtc, header = facts.probe("NVRTC"), facts.probe("cuda_runtime.h")
    majors = numbers(nvrtc.version)[:1], numbers(header.version)[:1]
    if all(majors) and majors[0] != majors[1]:
        said = f"NVRTC is {nvrtc.version}, cuda_runtime.h is of {header.version} ({header.path})"
        major = majors[0][0]
        wheel = "nvidia-cuda-runtime" if major >= 13 else f"nvidia-cuda-runtime-cu{major}"
        yield problem("nvrtc-headers", said, f'{PIP} "{wheel}=={major}.*"')


def architectures(facts: Facts) -> Judged:
    """A compiler too old, or too new, for a GPU that is here."""
    cards = {device.capability: device for device in facts.cuda.devices}
    for name, wheel in (("NVRTC", "nvidia-cuda-nvrtc"), ("nvcc", "nvidia-cuda-nvcc")):
        tool = facts.probe(name)
        known = [numbers(architecture) for architecture in tool.architectures]
        for capability, device in cards.items():
            if known and capability not in known:
                # From CUDA 13 on, cards before compute capability 7.5 are no longer built for.
                fix = f"{PIP} --upgrade {wheel}"
                fix = f"{PIP} {wheel}-cu12" if capability < min(known) else fix
                yield problem(
                    f"{name.lower()}-architecture",
                    f"{name} {tool.version} cannot build for {device.name} (compute capability "
                    f"{capability[0]}.{capability[1]}); it knows {', '.join(tool.architectures)}",
                    fix,
                )
    if facts.probe("nvprof").state == "found" and any(card >= (8, 0) for card in cards):
        yield note("nvprof", "nvprof does not support compute capability 8.0 and up: use ncu")


def driver_state(facts: Facts) -> Judged:
    """A card or a driver that is there, and CUDA that does not start."""
    host, cuda = facts.host, facts.cuda
    boards = len(facts.management.boards)
    if hidden(facts):
        what = "CUDA_VISIBLE_DEVICES hides every GPU from this process"
        yield note("gpus-hidden", what, "unset CUDA_VISIBLE_DEVICES")
    elif cuda.code == -1 and (boards or host.nvidia_cards):
        count = boards or host.nvidia_cards
        fix = (
            (f"start the container with: {host.container} run --gpus all ...", False)
            if host.container
            else fixes.driver(host, OLDEST_DRIVER[13])
        )
        what = f"{count} NVIDIA GPU(s) are in this machine, but libcuda cannot be loaded"
        # Cards on the bus of a container may well be somebody else's.
        make = problem if boards or not host.container else note
        yield make("libcuda-missing", what, fix)
    elif cuda.code and cuda.code != -1 and (boards or cuda.code != 100):
        yield problem("cuda-init", f"CUDA does not start: {cuda.error}", _start(facts))
    if "version mismatch" in facts.management.error:
        what = f"nvidia-smi: {facts.management.error}: the driver was updated and not reloaded"
        yield problem("driver-mismatch", what, f"{fixes.admin(host)}reboot")
    for device in cuda.devices:
        if device.compute_mode == 2:
            yield problem(
                "compute-prohibited", f"GPU {device.index} is set to allow no CUDA program",
                f"{fixes.admin(host)}nvidia-smi -i {device.pci} -c DEFAULT",
            )  # fmt: skip


def hidden(facts: Facts) -> bool:
    """Whether the user's own environment hides the GPUs that are here."""
    value = dict(facts.host.environment).get("CUDA_VISIBLE_DEVICES")
    return value in ("", "-1") and bool(facts.management.boards) and not facts.cuda.devices


def _start(facts: Facts) -> Fix:
    """What mends each CUresult of cuInit (names in cuda.h)."""
    sudo = fixes.admin(facts.host)
    by_code = {
        -2: ("nvidia-smi -q -d PERFORMANCE  (a GPU that hangs needs a reset or a reboot)", False),
        802: (f"{sudo}systemctl start nvidia-fabricmanager", True),
        803: (f"{sudo}reboot", True),
        804: ("take the folder of cuda-compat out of LD_LIBRARY_PATH", False),
        999: (f"{sudo}modprobe nvidia_uvm", True),
    }
    return by_code.get(facts.cuda.code, (f"{sudo}dmesg | grep -i nvrm", True))
