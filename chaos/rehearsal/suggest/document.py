"""The result of ``nodefall suggest``, as reports show it and ``--json`` prints it."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from chaos.core.moments import rounded
from chaos.rehearsal.forecast.document import format_document
from chaos.rehearsal.suggest.risks import Checked, Risk

VERSION = 1  # another one if a key is renamed, removed or gets another meaning; keys may be added


class Group(Struct, frozen=True):
    """Nodes that are alike: the one that was rehearsed, and all that it stands for."""

    node: str
    stands_for: tuple[str, ...]


class Experiment(Struct, frozen=True):
    """An experiment for a risk. ``file``: its name; ``predicted``: what a run is expected to show, in words."""

    file: str
    workload: str
    event: str
    predicted: str
    text: str


class Suggestion(Struct, frozen=True):
    """``risks``: what rehearsals lost, the worst first. ``weaknesses``: what the snapshot shows without any.

    ``runs``: number of rehearsals. ``limits``: what the answer does not cover, one line each.
    """

    snapshot: str
    snapshot_hash: str
    kubernetes: str
    namespace: str
    seeds: tuple[int, ...]
    headline: str
    risks: tuple[Risk, ...]
    weaknesses: tuple[Checked, ...]
    groups: tuple[Group, ...]
    zones: tuple[str, ...]
    runs: int
    experiments: tuple[Experiment, ...]
    limits: tuple[str, ...]
    simulated: bool = True
    version: int = VERSION


def render_suggestion(found: Suggestion) -> str:
    """The document as JSON, the same bytes for the same result; durations to the microsecond."""
    return format_document(rounded(msgspec.to_builtins(found, str_keys=True)))
