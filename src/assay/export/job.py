"""The export process: loads the user's code, and writes the files into a given folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from .. import faults, single
from ..errors import AssayError, LaunchError, NotSupported
from ..processes.channel import Channel
from ..target import Target
from ..types import Scalar
from . import program, project

LEAST = 100
"""A smaller case shows little: it is taken only if there is none larger."""


def main(
    channel: Channel, target: dict, wanted: str, case: dict[str, Scalar], arch: str, folder: str
) -> None:
    """The child's job: sends {files, way, label, case} or {mistake: text}."""
    try:
        one = single.pick(msgspec.convert(target, Target), wanted, case, LEAST)
        way = one.variant.way
        if way not in ("cuda", "extension") or one.variant.source is None:
            raise AssayError(
                f"exporting {one.label}: only cuda and extension variants with a source can be; "
                "choose one with -k"
            )
        try:
            if way == "cuda":
                files = program.write(one, arch, Path(folder))
            else:
                files = project.write(one, Path(folder))
        except (LaunchError, NotSupported) as error:
            word, reason = faults.word_of(error)
            raise AssayError(f"exporting {one.label}, {one.case.label}: {word}: {reason}") from None
        channel.send(files=files, way=way, label=one.label, case=one.case.label)
    except AssayError as error:
        channel.send(mistake=str(error))
