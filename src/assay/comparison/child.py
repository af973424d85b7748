"""`python -m assay.comparison.child JSON`: one bench in a process of its own; nouns on stdout.

It runs in the folder whose files it benches, so that what they import comes from there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import msgspec

from ..errors import AssayError
from ..pipeline import run
from ..request import Progress, Request
from ..rows import encode
from ..session import Session
from ..target import parse
from ..types import Scalar


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to bench; fields as in request.Request."""

    target: str
    device: str = "auto"
    arch: str = ""
    case: dict[str, Scalar] = {}
    dtypes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    budget: float = 0.0
    quick: bool = False
    seed: int | None = None


def main() -> int:
    """Prints every noun as a line; 2 for what is the user's mistake, told on stderr."""
    order = msgspec.json.decode(sys.argv[1], type=Order)
    try:
        with tempfile.TemporaryDirectory() as logs, Session(Path(logs)) as session:
            for noun in run(session, _request(order), Progress()):
                print(encode(noun).decode(), flush=True)
    except AssayError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _request(order: Order) -> Request:
    return Request(
        targets=(parse(order.target),),
        device=order.device,
        arch=order.arch,
        case=dict(order.case) or None,
        dtypes=order.dtypes,
        variants=order.variants,
        budget=order.budget,
        quick=order.quick,
        seed=order.seed,
    )


if __name__ == "__main__":
    sys.exit(main())
