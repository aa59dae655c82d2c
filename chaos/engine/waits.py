"""Waits of a run: for the steady state before the first step, and for the conditions of a step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec

from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.api_fact import node_path
from chaos.core.errors import Aborted, NodefallError, Refused
from chaos.core.kube import Node
from chaos.core.plan import PlannedStep
from chaos.core.ports import Clock, KubeApi
from chaos.core.result import pending_if
from chaos.core.verdict import Status
from chaos.engine.recorder import fact_entry
from chaos.engine.session import TICK, RunSession

AWAIT_SECONDS = 240.0  # systemd stops a container's scopes for 90 s, and kills for 90 s more
Check = Callable[[PlannedStep], str]


OnEach = Callable[[Sequence[PlannedStep], Check], list[str]]
_SECONDS = 180.0  # for the workload to become available
_MOMENT = 0.001  # seconds


def await_any(session: RunSession, group: Sequence[PlannedStep], on_each: OnEach) -> None:
    """Wait until one of the awaited checks of each step holds, and record it.

    ``on_each`` runs a function of each step at the same time, and returns its results in order. Raises Aborted after
    ``AWAIT_SECONDS``, naming what was observed.
    """
    clock = session.clock
    waiting = [planned for planned in group if planned.awaits]
    deadline, is_announced = clock.now() + AWAIT_SECONDS, False
    while waiting:
        observed = on_each(waiting, lambda planned: _observe(session, planned))
        waiting, observed = _unmet(waiting, observed)
        if not waiting:
            return
        if clock.now() > deadline:
            awaited = " or ".join(str(check) for check in waiting[0].awaits)
            raise Aborted(
                f"step {waiting[0].label} was not done: waited {AWAIT_SECONDS:g} s until {awaited}, but {observed[0]}"
            )
        if not is_announced:
            session.progress.step(waiting[0].step, waiting[0].node, f"waits, as {observed[0]}")
            is_announced = True
        session.tick()
        clock.sleep(TICK)


def _unmet(group: Sequence[PlannedStep], observed: Sequence[str]) -> tuple[list[PlannedStep], list[str]]:
    pairs = [(planned, why) for planned, why in zip(group, observed, strict=True) if why]
    return [planned for planned, _ in pairs], [why for _, why in pairs]


def _observe(session: RunSession, planned: PlannedStep) -> str:
    """ "" if one of the checks holds, otherwise the observation."""
    observed = []
    for check in planned.awaits:
        holds, what = session.hosts.check(planned.node, check)
        if holds:
            session.recorder.emit(fact_entry(session.clock.now(), planned.node, check.fact, check.value))
            return ""
        observed.append(what)
    return "; ".join(observed)


def await_steady_state(session: RunSession) -> None:
    """Wait until the steady state holds and everything that led to it is received. Raises Refused and names what is
    missing.
    """
    session.progress.phase("steady state")
    deadline = session.clock.now() + _SECONDS
    since = math.inf  # when it was first seen to hold
    while True:
        session.stop.check()
        verdicts = session.judge.steady_state()
        unmet = [verdict for verdict in verdicts if verdict.status is not Status.HELD]
        if not unmet and math.isinf(since):
            since = session.clock.now()
            session.observers.prove_at([since])
            session.clock.settle()
        if not unmet and not (unmet := list(session.judge.late_watches(since))):
            if session.clock.now() <= since:  # simulated time; what was seen when a step begins was not seen before it
                session.clock.sleep(_MOMENT)
            return
        if session.clock.now() > deadline:
            raise Refused(f"no steady state: {unmet[0].name}: {unmet[0].because}")
        session.progress.tick(session.clock.now())
        session.show(pending_if(verdicts, {Status.VIOLATED, Status.INCONCLUSIVE}), ())
        session.clock.sleep(TICK)


# evictionPressureTransitionPeriod of the kubelet, by default 5 min, and some heartbeats.
TAINT_SECONDS = 330.0
_POLL = 2.0
_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_BY_PEOPLE = ("node.kubernetes.io/out-of-service",)


def lifecycle_taints(kube: KubeApi, node: str) -> frozenset[str]:
    """``KEY:EFFECT`` of the taints that controllers put on the node; none if there is no such node.

    Raises NodefallError.
    """
    response = kube.request("GET", node_path(node))
    if response.status == 404:
        return frozenset()
    if response.status != 200:
        raise NodefallError(f"node {node}: the API server answered {response.status}")
    try:
        found = msgspec.json.decode(response.body, type=Node)
    except DECODE_ERRORS as error:
        raise NodefallError(f"node {node}: {error}") from error
    return taints_of(found)


def taints_of(node: Node) -> frozenset[str]:
    """``KEY:EFFECT`` of the taints that controllers have put on a Node."""
    taints = (node.spec.taints if node.spec else None) or ()
    return frozenset(
        f"{taint.key}:{taint.effect}"
        for taint in taints
        if taint.key.startswith(_PREFIXES) and taint.key not in _BY_PEOPLE
    )


def read_taints(kube: KubeApi, nodes: Iterable[str]) -> dict[str, frozenset[str]]:
    """The lifecycle taints of the nodes whose taints can be read."""
    found = {}
    for node in nodes:
        with suppress(NodefallError):
            found[node] = lifecycle_taints(kube, node)
    return found


def await_taints(
    kube: KubeApi,
    clock: Clock,
    before: Mapping[str, frozenset[str]],
    nodes: Iterable[str],
    seconds: float,
    on_wait: Callable[[Sequence[str]], None] = lambda _remaining: None,
) -> list[str]:
    """Wait until the nodes have no lifecycle taints except those in ``before``. Returns the remaining ones, for people.

    Waits for at most ``seconds`` of cluster time, and not beyond a signal. ``on_wait`` is called before each pause.
    """
    deadline = clock.now() + seconds
    waiting = sorted({*nodes} & before.keys())
    while True:
        remaining = [text for node in waiting for text in _remaining(kube, node, before[node])]
        if not remaining or clock.now() >= deadline:
            return remaining
        on_wait(remaining)
        if not clock.sleep(_POLL):
            return remaining


def _remaining(kube: KubeApi, node: str, before: frozenset[str]) -> list[str]:
    try:
        return [
            f"taint {taint} of {node}: Kubernetes has not removed it yet"
            for taint in sorted(lifecycle_taints(kube, node) - before)
        ]
    except NodefallError as error:
        return [f"the taints of {node} are unknown: {error.message}"]
