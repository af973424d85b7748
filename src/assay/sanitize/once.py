"""`python -m assay.sanitize.once JOB`: one variant, one case, one call, under compute-sanitizer.

The job is JSON; beside it DONE is written when the call has ended, with what it ended in. Nothing
is filled beforehand, so that initcheck sees what no kernel wrote, and nothing is read back.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec
import torch

from .. import faults
from ..build import Specs, build, find_variant
from ..errors import AssayError
from ..inputs import dtype_of, inputs_of
from ..target import load_op
from .job import DONE, SanitizeJob


def main(path: Path) -> int:
    """Exit code 0 if the call ended well, else 1; DONE says more."""
    job = msgspec.json.decode(path.read_bytes(), type=SanitizeJob)
    done: dict[str, str] = {"word": "", "reason": ""}
    try:
        _run(job)
    except AssayError as error:
        done = {"word": "mistake", "reason": str(error)}
    except BaseException as error:  # noqa: BLE001 - every fault of a kernel is told to the parent
        traceback.print_exc()
        word, reason = faults.word_of(error)
        done = {"word": word, "reason": reason}
    (path.parent / DONE).write_bytes(msgspec.json.encode(done))
    return 1 if done["word"] else 0


def _run(job: SanitizeJob) -> None:
    op = load_op(job.target, job.op)
    variant = find_variant(op, job.variant)
    on_gpu = job.device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(job.device)
    specs: Specs = [(tuple(spec.shape), dtype_of(spec.dtype)) for spec in job.specs]
    made = inputs_of(op, job.case, job.seed)
    kernel = build(op, variant, job.knobs, job.case, made, specs, job.device, job.arch)
    inputs = [placed(x, job.device, contiguous=variant.layouts != "any") for x in made]
    filled = specs[len(op.mutates) :] if variant.fills else []
    outputs = [torch.empty(shape, dtype=dtype, device=job.device) for shape, dtype in filled]
    with torch.no_grad():
        kernel.run(outputs, inputs)
    if on_gpu:
        torch.cuda.synchronize()


def placed(value: Any, device: str, *, contiguous: bool) -> Any:
    """A tensor in an allocation of its own, copied there whole; in its own layout if asked for.

    By a copy of the storage, not by a kernel of torch's: what holes hold is copied too.
    """
    if not isinstance(value, torch.Tensor):
        return value
    if contiguous:
        return value.contiguous().clone().to(device)
    storage = value.untyped_storage()
    flat = torch.empty(0, dtype=torch.uint8).set_(storage).clone().to(device)
    there = torch.empty(0, dtype=value.dtype, device=device)
    there.set_(flat.untyped_storage(), value.storage_offset(), value.shape, value.stride())
    return there


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(main(Path(sys.argv[1])))
