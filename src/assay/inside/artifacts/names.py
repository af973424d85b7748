"""Mangled names as their authors wrote them, by c++filt where it is there."""

from __future__ import annotations

import re
import shutil
from functools import lru_cache

from ...doctor.bounded import run

SECONDS = 5.0
TAG = re.compile(r"\[abi:\w+\]")


@lru_cache
def readable(name: str) -> str:
    """`square_kernel<float>(float*, float const*, long)` of a mangled name; else it as it is."""
    program = shutil.which("c++filt")
    if not name.startswith("_Z") or program is None:
        return name
    done = run([program, "--", name], SECONDS)
    text = done.out.strip()
    if done.failure or not text:
        return name
    return TAG.sub("", text).replace("(anonymous namespace)::", "").removeprefix("void ")


@lru_cache
def brief(name: str) -> str:
    """The same without namespaces and parameters: `square_kernel<float>`, `kernel`."""
    text = readable(name)
    depth = 0
    for index, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and not depth:
            text = text[:index]
            break
    head, angle, rest = text.partition("<")
    return head.rpartition("::")[2] + angle + rest
