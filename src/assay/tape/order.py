"""In which order a tape is walked: every node after all that were made of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Node(Protocol):
    """What a tape is made of."""

    @property
    def parents(self) -> Iterable[Node]: ...


Kind = TypeVar("Kind", bound=Node)


def backwards(root: Kind) -> list[Kind]:
    """The root and all that it was made of, each once, each after whatever was made of it.

    Without recursion: a loss over many samples is deeper than Python's stack.
    """
    found: list[Kind] = []
    seen: set[int] = {id(root)}
    waiting = [(root, iter(root.parents))]
    while waiting:
        node, parents = waiting[-1]
        following = next((p for p in parents if id(p) not in seen), None)
        if following is None:
            found.append(node)
            waiting.pop()
        else:
            seen.add(id(following))
            waiting.append((following, iter(following.parents)))  # type: ignore[arg-type]
    return found[::-1]
