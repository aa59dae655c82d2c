"""The pause between two runs of a day: until the nodes are as they were before the day, and for a while."""

from __future__ import annotations

from functools import partial

from chaos.app.day.session import DaySession
from chaos.app.day.waits import Wait, wait_until
from chaos.cluster.cluster_state import list_nodes
from chaos.core.duration import parse_duration
from chaos.core.kube import Node, is_ready
from chaos.core.ports import KubeApi
from chaos.engine.lifecycle_taints import taints_of
from chaos.gameday.document import Pause
from chaos.gameday.state import MAX_IMPAIRED, DayRun, RunStatus
from chaos.gameday.transitions import skip_rest

_POLL = 5.0  # seconds
_SHOWN = 3  # nodes in one reason


def await_pause(session: DaySession) -> None:
    """Wait for the pause after the last run. Without recovery, the rest of the day is skipped."""
    previous = _previous(session)
    if previous is None or previous.ended is None:
        return
    pause = session.entries[previous.key.entry].entry.pause or session.request.day.document.spec.pause
    end = previous.ended + parse_duration(pause.at_least)
    wait_until(session, Wait("the pause", partial(_remaining, session, pause, end), _POLL, expected=end))
    if pause.recovery is None:
        return
    deadline = session.now() + parse_duration(pause.recovery)
    what = f"the recovery after {previous.key}"
    reason = wait_until(session, Wait(what, partial(_unrecovered, session), _POLL, deadline))
    if reason:
        why = f"the cluster has not recovered within {pause.recovery} after {previous.key}: {reason}"
        session.note(f"stopping the day: {why}")
        session.update(lambda state: skip_rest(state, why, session.epoch, session.now()))


def impaired_nodes(kube: KubeApi) -> dict[str, str]:
    """What is wrong with the nodes that are not as they should be, by name. Raises NodefallError."""
    return {node.metadata.name: why for node in list_nodes(kube) if (why := impairment(node))}


def names_of_impaired(kube: KubeApi) -> tuple[str, ...]:
    """Names of the nodes that no pause waits for, as they were impaired before the day. Raises NodefallError."""
    return tuple(sorted(impaired_nodes(kube)))[:MAX_IMPAIRED]


def impairment(node: Node) -> str:
    """What a fault may have left behind on a node: it is not Ready, cordoned or tainted; else ""."""
    if not is_ready(node):
        return "is not Ready"
    if node.spec and node.spec.unschedulable:
        return "is cordoned"
    taints = sorted(taints_of(node))
    return f"has the taint {taints[0]}" if taints else ""


def _previous(session: DaySession) -> DayRun | None:
    """The run that ended last."""
    done = [each for each in session.state.runs if each.status is RunStatus.DONE and each.ended is not None]
    return max(done, key=lambda each: each.ended or 0.0, default=None)


def _remaining(session: DaySession, pause: Pause, end: float) -> str:
    return f"at least {pause.at_least} between two runs" if session.now() < end else ""


def _unrecovered(session: DaySession) -> str:
    found = impaired_nodes(session.connection.kube)
    waiting = [f"{node} {why}" for node, why in sorted(found.items()) if node not in session.state.impaired]
    more = f" and {len(waiting) - _SHOWN} more" if len(waiting) > _SHOWN else ""
    return ", ".join(waiting[:_SHOWN]) + more
