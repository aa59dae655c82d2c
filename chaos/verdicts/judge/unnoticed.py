"""The times in which the API was wrong: a machine was off, and its node, or pods on it, were reported Ready."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from chaos.core.api_fact import PseudoFact
from chaos.core.history import History, Version
from chaos.core.kube import Node, Pod, is_finished, is_ready
from chaos.core.result import Unnoticed
from chaos.core.timeline import Timeline
from chaos.verdicts.judge import pods
from chaos.verdicts.judge.machines import Down, machine_of

_T = TypeVar("_T", Node, Pod)
_End = tuple[float, int]  # when nothing was reported Ready any more, by which entry; infinite if that did not happen


def unnoticed(timeline: Timeline) -> tuple[Unnoticed, ...]:
    """All of them, in order: each from the first reading ``off`` until nothing on the node is reported Ready.

    At the latest until the machine runs again, or until the timeline ends.
    """
    read = {node for node, fact in timeline.host if fact == PseudoFact.MACHINE}
    nodes = sorted(read | {entry.node for entry, _ in timeline.actions})
    downs = ((node, down) for node in nodes for down in machine_of(timeline, node).downs)
    found = (each for node, down in downs if (each := _unnoticed(timeline, node, down)))
    return tuple(sorted(found, key=lambda each: (each.since, each.node)))


def _unnoticed(timeline: Timeline, node: str, down: Down) -> Unnoticed | None:
    if down.off is None:
        return None
    first, last = down.off
    history = timeline.nodes.get(node)
    of_node = list(_ends([history], first.t, is_ready)) if history else []
    of_pods = list(_ends(timeline.pods.on_nodes([node]), first.t, _is_ready_pod))
    if not of_node and not of_pods:
        return None
    noticed, seq = max([*of_node, *of_pods])
    limit = timeline.end if down.back is None else max(down.back.lo, last.t)
    evidence = (first.seq, seq) if noticed <= limit else (first.seq,)
    is_over = noticed <= limit or down.back is not None
    return Unnoticed(node, first.t, min(noticed, limit), is_over, bool(of_node), len(of_pods), evidence)


def _ends(histories: Iterable[History[_T]], t: float, is_reported: Callable[[_T], bool]) -> Iterator[_End]:
    """The end of each that was reported Ready at ``t``."""

    def holds(version: Version[_T]) -> bool:
        return not version.is_deleted and is_reported(version.object)

    for history in histories:
        before = history.at(t)
        if before is not None and holds(before):
            ended = next((version for version in history.after(t) if not holds(version)), None)
            yield (min(ended.t, ended.latest), ended.seq) if ended else (math.inf, 0)


def _is_ready_pod(pod: Pod) -> bool:
    return pods.is_ready(pod) and not is_finished(pod)
