"""A training on disk: an .npz of the parameters and of all that is needed to go on bit for bit.

Written beside and renamed over the old one, so that a kill at any moment leaves one or the other.
Nothing in it is unpickled.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import torch

from ..errors import AssayError
from .model import Sizes, check, digest
from .train import Plan, State

FORMAT = 1


def save(state: State, path: Path) -> None:
    """Keeps a state, whole or not at all. Raises AssayError if the file can't be written."""
    about = {
        "format": FORMAT,
        "plan": dataclasses.asdict(state.plan),
        "data": state.data,
        "steps": state.steps,
        "losses": state.losses,
        "accuracies": state.accuracies,
        "digest": digest(state.parameters),
    }
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    arrays = {name: value.numpy() for name, value in state.parameters.items()}
    scratch = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with scratch.open("wb") as file:
            np.savez(file, about=text, **arrays)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        raise AssayError(
            f"{path}: the checkpoint can't be written: {error.strerror or error}"
        ) from None
    finally:
        scratch.unlink(missing_ok=True)


def load(path: Path) -> State:
    """The state in a file. Raises AssayError if it is missing, damaged, or no checkpoint."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
        about = json.loads(arrays.pop("about").tobytes())
        plan = about["plan"]
        state = State(
            Plan(**{**plan, "sizes": Sizes(**plan["sizes"])}),
            about["data"],
            about["steps"],
            {name: torch.from_numpy(value.copy()) for name, value in arrays.items()},
            tuple(about["losses"]),
            tuple(about["accuracies"]),
        )
        said = about["digest"]
    except FileNotFoundError:
        raise AssayError(
            f"{path}: no such checkpoint; `assay mnist train --checkpoint {path}` makes one"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise AssayError(
            f"{path}: no checkpoint of `assay mnist train`, or a damaged one: "
            f"{type(error).__name__}: {error}"
        ) from None
    check(state.plan.sizes, state.parameters, str(path))
    if digest(state.parameters) != said:
        raise AssayError(f"{path}: its parameters are not those that were saved; it is damaged")
    return state
