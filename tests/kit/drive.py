"""One action on a real machine through the real engine: arm, inject, proof, undo. Only Kubernetes is a stand-in."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

import chaos.faults.actions
import chaos.faults.readings
import chaos.verdicts.assertions
from chaos.cluster.cluster_state import get_objects
from chaos.core.action import Action, AnyAction, Target
from chaos.core.clock import SystemClock
from chaos.core.cluster_view import ClusterView
from chaos.core.decode import decode
from chaos.core.errors import Refused, Unreachable
from chaos.core.fact import HostFact
from chaos.core.kube import Node
from chaos.core.ports import Clock, PowerControl, Response, Session
from chaos.core.registry import PluginRegistry, discover
from chaos.core.result import RunResult
from chaos.core.verdict import Verdict
from chaos.documents.experiment import load_experiment
from chaos.engine.inspection import inspect_hosts
from chaos.engine.load import api_reads
from chaos.engine.observations import HostObservations
from chaos.engine.observers import RunObservers
from chaos.engine.planning.planner import PlanInputs, make_plan
from chaos.engine.recorder import Recorder
from chaos.engine.run import execute
from chaos.engine.stop import StopRequest
from chaos.machines.observer import HostObserver
from chaos.machines.pool import Hosts
from chaos.machines.sessions.arming import RetryingSession
from chaos.machines.sessions.settings import HostSettings
from chaos.machines.transports.docker import Container, DockerSession
from chaos.machines.transports.ssh import open_session
from chaos.verdicts.judge.context import Options, bind
from chaos.verdicts.judge.judge import judge, steady_state
from tests.kit.fakes import FakeKube, FakeProgress
from tests.kit.kind_standin import StandIn
from tests.kit.machines import RealHost
from tests.kit.sessions import FakeJudge, session_of
from tests.kit.vms import VirtualMachine

CATALOGUE = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))
Machine = RealHost | VirtualMachine
ALWAYS = ("machine", "boot-id", "pid1-start", "inhibitor-locks")


def open_hosts(
    hosts: Mapping[str, Machine],
    folder: Path,
    clock: SystemClock,
    ipv6: bool = False,
    transport: str = "ssh",
    kube: FakeKube | None = None,
) -> Hosts:
    """Sessions by SSH with verified keys or by docker; without ``kube`` every node is Ready as far as the API says."""
    nodes = {name: _node(name) for name in hosts}
    answers = {f"/api/v1/nodes/{name}": Response(200, json.dumps(node).encode(), {}) for name, node in nodes.items()}

    def session(name: str) -> Session:
        host = hosts[name]
        if transport == "docker":
            return RetryingSession(DockerSession(Container(host.name, "docker")), clock)
        if not host.running:
            raise Unreachable(f"{name} is off")
        address = host.addresses[ipv6]
        known = folder / f"known_hosts_{name}"
        called = address if host.port == 22 else f"[{address}]:{host.port}"
        known.write_text("".join(f"{called} {key}\n" for key in host.host_keys))
        settings = HostSettings(name, address, "chaos", known, port=host.port, identity_file=host.identity, agent=False)
        return RetryingSession(open_session(settings), clock)

    def power(name: str) -> PowerControl | None:
        return hosts[name].power()

    return Hosts(session, power, kube or FakeKube(answers), discover(chaos.faults.readings, HostFact), clock)


def _node(name: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": [ready]}}


def drive(
    host: Machine | list[RealHost],
    action: str,
    given: Mapping[str, Any],
    folder: Path,
    *,
    then: str = "2s",
    during: Callable[[Hosts], None] | None = None,
    more: list[dict[str, Any]] | None = None,
    max_duration: str = "3m",
    recovery: str = "10s",
    transport: str = "ssh",
    standin: Callable[[Clock], StandIn] | None = None,
    stop: StopRequest | None = None,
    registry: PluginRegistry = CATALOGUE,
) -> RunResult:
    """The result of a run whose method is one step ``do`` (and the steps ``more``).

    ``then``: how long after the fault the undo begins. ``recovery``: the time for it; a run takes all of it, or a
    minute, if the kubelet's lock was never lost. ``during`` is called once, from the first look after the fault,
    while it lasts. ``registry`` has the actions and assertions, see :func:`registry_with`.
    """
    hosts = {h.name: h for h in (host if isinstance(host, list) else [host])}
    with ExitStack() as stack:
        clock = SystemClock()
        stack.callback(clock.close)
        kube = standin(clock) if standin else None
        there = open_hosts(hosts, folder, clock, transport=transport, kube=kube)
        stack.callback(there.close)
        file = _experiment(folder, action, given, list(hosts), then, more or [], max_duration, recovery)
        experiment = load_experiment(file, registry)
        view = ClusterView("uid", {n: msgspec.convert(kube.node if kube else _node(n), Node) for n in hosts}, ())
        wanted = frozenset(f for step in experiment.spec.method for f in _facts(registry, step.action, step.with_))
        reads = api_reads(experiment, {"victim": tuple(hosts)}, "", view)
        draft = PlanInputs(
            run="real",
            now=clock.now(),
            seed=1,
            experiment_text=file.read_bytes(),
            view=view,
            nodes_by_target={"victim": tuple(hosts)},
            targets=_targets(
                inspect_hosts(dict.fromkeys(hosts, wanted), view, there, kube or FakeKube({}), clock, str)
            ),
            namespace="",
            objects=get_objects(reads, kube or FakeKube({})),
        )
        plan = make_plan(experiment, draft)
        recorder = Recorder(decode, clock)
        options = Options(bind={"victim": tuple(hosts)})
        called: list[bool] = []

        def judged(live: bool) -> RunResult:
            result = judge(experiment, recorder.timeline(), registry, options, live=live)
            if live and during and not called and result.steps and result.steps[0].returned is not None:
                called.append(True)
                during(there)
            return result

        def steady() -> tuple[Verdict, ...]:
            timeline = recorder.timeline()
            return steady_state(bind(experiment, timeline, registry, options, live=True), timeline.end)

        progress = FakeProgress()
        stack.callback(lambda: sys.stdout.write("\n".join(progress.reports)))  # for a test that fails
        facts = set(ALWAYS)
        for step in plan.steps:
            plugin = registry.actions[step.action]
            facts.update(plugin.needs_with(plugin.params.model_validate(step.params)).proof_facts)
        watch = HostObserver(there, clock, list(hosts), sorted(facts))
        observers = RunObservers([[watch, *([kube] if kube else [])]])
        session = session_of(
            folder,
            experiment,
            plan,
            there,
            FakeKube({}),
            clock,
            progress,
            FakeJudge(judged, steady),
            recorder,
            observers,
            registry,
        )
        stack.callback(session.journal.close)
        session.stop = stop or session.stop
        return execute(session)


def registry_with(*actions: AnyAction) -> PluginRegistry:
    """The built-in actions and assertions, and more actions."""
    return replace(CATALOGUE, actions={**CATALOGUE.actions, **{action.name: action for action in actions}})


def _facts(registry: PluginRegistry, action: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """References of the facts that a step prepares with."""
    plugin = registry.actions[action]
    return plugin.needs_with(plugin.params.model_validate(given)).facts


def _targets(found: Mapping[str, HostObservations]) -> dict[str, Target]:
    """Raises Refused as preflight does for hosts that do not answer, or whose power control does not."""
    for signs in found.values():
        if why := signs.error or signs.target.power_error:
            raise Refused(why, hint=signs.hint or signs.target.power_hint)
    return {name: signs.target for name, signs in found.items()}


def _experiment(
    folder: Path,
    action: str,
    given: Mapping[str, Any],
    nodes: list[str],
    then: str,
    more: list[dict[str, Any]],
    limit: str,
    recovery: str,
) -> Path:
    held = {"assert": "inhibitor-held", "with": {"node": "victim"}}
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Experiment",
        "metadata": {"name": "real"},
        "spec": {
            "title": f"{action} on a real machine",
            "targets": {"victim": {"nodes": nodes}},
            "steadyState": [held],
            "method": [{"name": "do", "action": action, "target": "victim", "with": dict(given)}, *more],
            "hypothesis": [{"assert": "inhibitor-held", "with": {"node": "victim"}, "never": {"for": then}}],
            "recovery": {"within": recovery},
            "maxDuration": limit,
        },
    }
    path = folder / "real.yaml"
    path.write_text(json.dumps(document))
    path.chmod(0o644)
    return path
