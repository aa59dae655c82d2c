"""Addresses of machines that changed during a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from chaos.core.api_fact import PseudoFact
from chaos.core.timeline import Timeline


def address_changes(timeline: Timeline, nodes: Iterable[str]) -> tuple[str, ...]:
    """One sentence for each change: ``worker-1 is now at 172.18.0.5 (was 172.18.0.3)``.

    The addresses are those that the power control of a container reported, else the internal ones of the Node object.
    """
    found = (text for node in nodes for text in _changes(node, _reported(timeline, node) or _posted(timeline, node)))
    return tuple(dict.fromkeys(found))


def _changes(node: str, found: Iterable[frozenset[str]]) -> Iterator[str]:
    for before, now in pairwise(addresses for addresses in found if addresses):
        if new := now - before:
            former = before - now
            yield f"{node} is now at {_join(new)}" + (f" (was {_join(former)})" if former else "")


def _reported(timeline: Timeline, node: str) -> list[frozenset[str]]:
    readings = timeline.readings(node, PseudoFact.ADDRESSES)
    return [frozenset(map(str, r.value)) for r in readings if isinstance(r.value, list)]


def _posted(timeline: Timeline, node: str) -> list[frozenset[str]]:
    history = timeline.nodes.get(node, ())
    statuses = (version.object.status for version in history if not version.is_deleted)
    return [
        frozenset(each.address for each in (status.addresses if status else None) or () if each.type == "InternalIP")
        for status in statuses
    ]


def _join(addresses: Iterable[str]) -> str:
    return " and ".join(sorted(addresses))
