"""The shapes that an Op's kernels take, as its declaration says them: `{"x": "... n", "w": "n"}`.

A word is the size of a dimension, and the same size wherever it stands. `...` in front is any
number of dimensions, and the same ones wherever it stands. Eager broadcasts where a kernel written
for equal shapes would read past the end, so a public operator asks before it launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ANY = "..."


def fault(declared: Mapping[str, str], names: Sequence[str]) -> str:
    """What is wrong with a declaration for inputs of these names; empty if nothing is."""
    for name, text in declared.items():
        words = text.split()
        odd = [word for word in words if word != ANY and not word.isidentifier()]
        if name not in names:
            return f"shapes of {name!r}: it has no such input"
        if ANY in words[1:]:
            return f"shapes of {name!r}: in {text!r} {ANY} does not stand in front"
        if odd:
            return f"shapes of {name!r}: in {text!r} {odd[0]!r} is no name of a dimension"
    return ""


def misfit(declared: Mapping[str, str], given: Mapping[str, Sequence[int]]) -> str:
    """How the shapes of inputs, by name, are not those declared; empty if they are."""
    known: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name, text in declared.items():
        if name not in given:
            continue
        shape, words = tuple(given[name]), text.split()
        own = [word for word in words if word != ANY]
        lead = len(shape) - len(own)
        if lead < 0 or (lead and own == words):
            return f"{name} has the shape {_told(shape)}, which is not {_meant(text)}"
        sizes = {ANY: shape[:lead]} if own != words else {}
        for word, size in [*sizes.items(), *((w, (n,)) for w, n in zip(own, shape[lead:]))]:
            whose, first = known.setdefault(word, (name, size))
            if first != size:
                there = "" if whose == name else f" of {whose}"
                return (
                    f"{name} has the shape {_told(shape)}, meant as {_meant(text)}, where "
                    f"{word}{there} is {_told(first) if word == ANY else first[0]}"
                )
    return ""


def _told(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))})"


def _meant(text: str) -> str:
    return f"({', '.join(text.split())})"
