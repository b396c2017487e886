"""Finds circles among computed defaults."""

from __future__ import annotations

from collections.abc import Mapping


def cycles(sources: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Every circle in a mapping of leaf to source leaf, each once, beginning at its first name."""
    found: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(sources):
        trail: list[str] = []
        leaf = start
        while leaf in sources and leaf not in done:
            done.add(leaf)
            trail.append(leaf)
            leaf = sources[leaf]
        if leaf in trail:
            circle = trail[trail.index(leaf) :]
            first = circle.index(min(circle))
            found.append((*circle[first:], *circle[:first]))
    return found
