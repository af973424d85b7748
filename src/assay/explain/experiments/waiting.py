"""The child that times what a user waits for several variants, and for one small operator.

Sampled round robin in random order in one process, from the call to the end of the synchronize
behind it, by the host's clock. Nothing is judged here: the variants were right in a run.
"""

from __future__ import annotations

from functools import partial

import msgspec
import torch

from ... import single
from ...errors import AssayError, BuildError, LaunchError, NotRun
from ...processes.channel import Channel
from ...target import Target
from ...types import Scalar
from .beside import ONE
from .catalogue import WALL
from .child import Tried, data_of, sample, walled


def main(
    channel: Channel,
    target: dict,
    variants: list[str],
    case: dict[str, Scalar],
    device: str,
    seconds: float,
) -> None:
    """Sends {waited: {variant: seconds}}, or {mistake | not_run}."""
    try:
        torch.cuda.set_device(device)
        major, minor = torch.cuda.get_device_capability(device)
        with torch.no_grad():
            small = torch.ones(1, device=device)
            calls = [Tried(ONE, WALL, walled(lambda: small.neg()))]
            for variant in variants:
                placed = single.place(
                    single.pick(msgspec.convert(target, Target), variant, case), device
                )
                kernel = single.built(placed, device, f"sm_{major}{minor}")
                args = placed.outputs, list(placed.inputs)
                calls.append(Tried(variant, WALL, walled(partial(kernel.run, *args))))
            sample(calls, seconds)
        channel.send(waited={one.name: data_of(one)["median"] for one in calls})
    except AssayError as error:
        channel.send(mistake=str(error))
    except (NotRun, BuildError, LaunchError) as error:
        channel.send(not_run=str(error))
