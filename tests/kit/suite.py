"""Tests that are not run: parameters for the night alone, and the programs that skipped tests waited for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pytest


def others_nightly(values: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """All ``values``, of which those outside ``always`` run at night alone. Raises ValueError for an unknown one."""
    every = list(values)
    if unknown := [each for each in always if each not in every]:
        raise ValueError(f"parameters for every run: not among the values: {unknown}")
    return [each if each in always else pytest.param(each, marks=pytest.mark.nightly) for each in every]


_ALIASES = {"sshd": "openssh-server", "docker": "docker.io", "dockerd": "docker.io", "vcsim": "golang-go"}
_NAMING = (  # the first that matches; each group is a name
    r"\b(Docker) does not answer, and only root",
    r"\bneeds Debian's package ([\w.-]+)",
    r"\b(Chromium)\b",
    r"\bthere is no (?:program |package )?([\w.-]+)(?: and no ([\w.-]+))?(?: and no ([\w.-]+))?",
    r"\bno (vcsim)\b",
    r"\bcould not import '([\w.]+)'",
    r"\b([\w.-]+) is not installed",
    r"^(?:Skipped: )?needs ([\w.-]+)$",
    r"^(?:Skipped: )?no ([\w.-]+)$",
)


def missing_programs(reasons: Iterable[str]) -> dict[str, int]:
    """How many of the skip reasons name each program, most frequent first. Other reasons are left out."""
    found = Counter(name for reason in reasons for name in _named(reason))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def describe_missing(reasons: Iterable[str]) -> str:
    """One line for the end of a test run, "" if no program was missing."""
    found = missing_programs(reasons)
    if not found:
        return ""
    return "missing programs, and how many tests need them: " + ", ".join(f"{name} {n}" for name, n in found.items())


def _named(reason: str) -> Iterator[str]:
    for pattern in _NAMING:
        if match := re.search(pattern, reason):
            names = [name for name in match.groups() if name]
            yield from dict.fromkeys(_ALIASES.get(name, name.lower()) for name in names)
            return
