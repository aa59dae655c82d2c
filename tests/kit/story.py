"""Timelines described entry by entry, through the same decoding as real ones. Times in seconds after T0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self

import msgspec
import yaml

import chaos.faults.actions
import chaos.verdicts.assertions
from chaos.core.action import Action
from chaos.core.experiment import Expectation, Experiment
from chaos.core.recording import RecordingEntry
from chaos.core.registry import PluginRegistry, discover
from chaos.core.result import RunResult
from chaos.core.store.recording import build_timeline, read_recording
from chaos.core.timeline import Timeline
from chaos.core.verdict import Status, Verdict
from chaos.testing import recordings
from chaos.testing.recordings import RecordingBuilder
from chaos.verdicts.judge.context import JudgeContext, Options, bind
from chaos.verdicts.judge.evaluate import evaluate

T0, stamp = recordings.T0, recordings.stamp
_TESTS = Path(__file__).parents[1]
RECORDINGS = _TESTS / "recordings"
EXPERIMENTS = _TESTS.parent / "experiments"
HELD, VIOLATED, INCONCLUSIVE, PENDING = Status.HELD, Status.VIOLATED, Status.INCONCLUSIVE, Status.PENDING


@cache
def plugin_registry() -> PluginRegistry:
    return PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))


def details(result: RunResult) -> str:
    """The headline, and the name and reason of every verdict that is not held."""
    verdicts = (*result.steady_state, *result.hypothesis, *result.recovery, *result.abort)
    return "; ".join([result.headline, *(f"{v.name}: {v.because}" for v in verdicts if v.status is not HELD)])


class Story(RecordingBuilder):
    """A recording with all kinds of objects."""

    def pod(
        self,
        t: float,
        name: str,
        node: str = "n1",
        phase: str = "Running",
        disruption: str = "",
        type_: str = "MODIFIED",
        owner: tuple[str, str] = ("ReplicaSet", "web-1"),
        labels: dict[str, str] | None = None,
        reason: str = "",
        message: str = "",
        ready: bool = True,
        deleting: bool = False,
        started: float | None = -100,
        container: str = "c1",
        restarts: int = 0,
        namespace: str = "demo",
        grace: int = 30,
        tolerations: Sequence[dict[str, Any]] = (),
        static: bool = False,
        note: str = "",
        uid: str = "",
        priority: int = 0,
        ended: float | None = None,
        exit_code: int = 0,
        lost: bool = False,
        created: float | None = None,
    ) -> Self:
        metadata: dict[str, Any] = {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}", "labels": labels}
        if created is not None:
            metadata["creationTimestamp"] = stamp(created)
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
        if deleting:
            metadata |= {"deletionTimestamp": stamp(t + grace), "deletionGracePeriodSeconds": grace}
        if static:
            metadata["annotations"] = {"kubernetes.io/config.mirror": "hash"}
        conditions = [{"type": "Ready", "status": "True" if ready and phase == "Running" else "False"}]
        if disruption:
            text = "Pod was terminated in response to imminent node shutdown." if "Kubelet" in disruption else ""
            conditions.append({"type": "DisruptionTarget", "status": "True", "reason": disruption, "message": text})
        statuses = []
        if started is not None:
            state = "running" if phase == "Running" else "terminated"
            status = {"name": "c", "containerID": container, "restartCount": restarts}
            times: dict[str, Any] = {"startedAt": stamp(started)}
            if ended is not None:
                times |= {"finishedAt": stamp(ended), "exitCode": exit_code, "reason": "Unknown" if lost else "Error"}
            statuses.append(status | {"state": {state: times}})
        return self.add(
            t,
            "pods",
            type_,
            {
                "metadata": metadata,
                "spec": {
                    "nodeName": node,
                    "priority": priority,
                    "terminationGracePeriodSeconds": grace,
                    "tolerations": list(tolerations),
                    "containers": [{"name": "c"}],
                },
                "status": {
                    "phase": phase,
                    "reason": reason,
                    "message": message,
                    "conditions": conditions,
                    "containerStatuses": statuses,
                },
            },
            note=note,
        )

    def workload(
        self,
        t: float,
        name: str,
        ready: int,
        wanted: int = 3,
        plural: str = "deployments",
        namespace: str = "demo",
        generation: int = 1,
        observed: int = 1,
        type_: str = "MODIFIED",
    ) -> Self:
        status: dict[str, Any] = {"observedGeneration": observed, "availableReplicas": ready, "readyReplicas": ready}
        if plural == "daemonsets":
            status = {"observedGeneration": observed, "desiredNumberScheduled": wanted, "numberAvailable": ready}
        metadata = {"name": name, "namespace": namespace, "generation": generation}
        return self.add(t, plural, type_, {"metadata": metadata, "spec": {"replicas": wanted}, "status": status})

    def metrics(
        self, t: float, start: float | None, end: float | None = 0, node: str = "n1", status: str = "200"
    ) -> Self:
        """Start and end of the kubelet's last shutdown after T0; 0 stays 0, None: no such metric."""
        names = ("kubelet_graceful_shutdown_start_time_seconds", "kubelet_graceful_shutdown_end_time_seconds")
        values = [(n, v if v == 0 else T0 + v) for n, v in zip(names, (start, end), strict=True) if v is not None]
        return self.add(t, "metrics", status, [f"{n} {v:g}" if v == 0 else f"{n} {v}" for n, v in values], node)

    def lease(self, t: float, node: str = "n1", renewed: float | None = None, type_: str = "MODIFIED") -> Self:
        """The Lease of a node as its kubelet renewed it (default: at ``t``)."""
        at = datetime.fromtimestamp(T0 + (t if renewed is None else renewed), UTC).isoformat()
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": at}
        return self.add(t, "leases", type_, {"metadata": {"name": node, "uid": f"lease-{node}"}, "spec": spec})

    def event(
        self,
        t: float,
        reason: str,
        name: str = "n1",
        kind: str = "Node",
        message: str = "it happened",
        happened: float | None = None,
        count: int = 1,
        component: str = "kubelet",
        type_: str = "ADDED",
        uid: str = "",
    ) -> Self:
        """An Event about a Node, or about an object of namespace ``demo``."""
        namespace = "" if kind == "Node" else "demo"
        time = stamp(t if happened is None else happened)
        return self.add(
            t,
            "events",
            type_,
            {
                "metadata": {"name": f"{name}.{reason}", "uid": uid or f"{name}.{reason}.{t}"},
                "involvedObject": {"kind": kind, "namespace": namespace, "name": name, "uid": f"uid-{name}"},
                "reason": reason,
                "message": message,
                "type": "Normal",
                "source": {"component": component, "host": "n1"},
                "firstTimestamp": time,
                "lastTimestamp": time,
                "count": count,
            },
        )

    def budget(self, t: float, desired: int | None, name: str = "web", type_: str = "MODIFIED") -> Self:
        """A PodDisruptionBudget of namespace ``demo`` for pods labelled ``app: NAME``."""
        spec = {"minAvailable": desired, "selector": {"matchLabels": {"app": name}}}
        metadata, status = {"name": name, "namespace": "demo"}, {"desiredHealthy": desired}
        return self.add(t, "poddisruptionbudgets", type_, {"metadata": metadata, "spec": spec, "status": status})

    def attachment(
        self, t: float, volume: str = "pv-1", node: str = "n1", attached: bool = True, type_: str = "MODIFIED"
    ) -> Self:
        spec = {"attacher": "csi", "nodeName": node, "source": {"persistentVolumeName": volume}}
        document = {"metadata": {"name": f"{volume}-{node}"}, "spec": spec, "status": {"attached": attached}}
        return self.add(t, "volumeattachments", type_, document)

    def probe(self, t: float, name: str, ok: bool = True, seconds: float = 0.01, status: int = 200) -> Self:
        answer = {"ok": ok, "status": status if ok else 503, "error": "", "seconds": seconds}
        return self.add(t, "probe", name, answer)

    def query(self, t: float, name: str, *series: tuple[dict[str, str], Sequence[tuple[float, float | None]]]) -> Self:
        """One answer of Prometheus; times after T0."""
        result = [{"labels": labels, "values": [(T0 + at, value) for at, value in values]} for labels, values in series]
        return self.add(t, "prometheus", name, {"query": "q", "series": result})

    def killing(self, t: float, name: str, happened: float | None = None) -> Self:
        """The kubelet's Event when it begins to stop a pod."""
        return self.event(t, "Killing", name, "Pod", "Stopping container c", happened)

    def stopped(self, began: float, ended: float, name: str, exit_code: int = 0, **pod: Any) -> Self:
        """A pod that the kubelet stops in a graceful shutdown."""
        self.killing(began, name)
        given = {"phase": "Failed" if exit_code else "Succeeded", "disruption": "TerminationByKubelet"} | pod
        return self.pod(ended + 0.5, name, ended=ended, exit_code=exit_code, **given)


def experiment(
    hypothesis: str = "[{assert: nodes-ready, with: {nodes: all}, within: 10s}]",
    method: str = "[{name: stop, action: poweroff, target: victim}]",
    **spec: Any,
) -> Experiment:
    """An experiment with one target, ``victim``; YAML texts."""
    document = {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Experiment",
        "metadata": {"name": "test"},
        "spec": {
            "title": "A test",
            "targets": {"victim": {"role": "worker"}},
            "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "all"}}],
            "method": yaml.safe_load(method),
            "hypothesis": yaml.safe_load(hypothesis),
        }
        | spec,
    }
    return Experiment.model_validate(document)


def shipped(name: str) -> Experiment:
    return Experiment.model_validate(yaml.safe_load((EXPERIMENTS / f"{name}.yaml").read_text()))


def manifests(experiment: Experiment) -> list[tuple[str, str]]:
    """Kind and name of its workload's objects."""
    workload = experiment.spec.workload
    texts = [(EXPERIMENTS / name).read_text() for name in (workload.manifests if workload else ())]
    return [(d["kind"], d["metadata"]["name"]) for text in texts for d in yaml.safe_load_all(text) if d]


def recording(name: str) -> Timeline:
    return build_timeline(read_recording(next(RECORDINGS.glob(f"{name}*.gz"))))


def context_of(story: Story, made: Experiment, end: float, live: bool = False, **options: Any) -> JudgeContext:
    given = {"bind": {"victim": ("n1",)}} | options
    return bind(made, story.timeline(end), plugin_registry(), Options(**given), live)


def ask(
    story: Story, expectation: str, end: float = 100, live: bool = False, action: str = "poweroff", **options: Any
) -> Verdict:
    """The verdict on one expectation (YAML); a power-off of n1 begins at 10 unless the story has actions.

    ``action`` is what the step ``stop`` does.
    """
    if not any(line.kind == "action" for line in story.lines):
        story.done(10, "poweroff", step="stop")
    expected = Expectation.model_validate(yaml.safe_load(expectation))
    made = experiment(method=f"[{{name: stop, action: {action}, target: victim}}]")
    context = context_of(story, made, end, live, **options)
    return evaluate(expected, context, context.timeline.end)


def of_recording(
    lines: Iterable[RecordingEntry], action: str, expectation: str, params: str = "{}", **options: Any
) -> Verdict:
    """The verdict on one expectation about a recorded action, which is the step ``stop`` on ``victim``."""
    method = f"[{{name: stop, action: {action}, target: victim, with: {params}}}]"
    expected = Expectation.model_validate(yaml.safe_load(expectation))
    timeline = build_timeline(lines)
    nodes = {entry.node for entry, record in timeline.actions if (entry.type, record.phase) == (action, "begin")}
    made = experiment(method=method, targets={"victim": {"role": "worker", "count": max(len(nodes), 1)}})
    given = {"manifests": manifests(shipped("graceful-poweroff"))} | options
    return evaluate(expected, bind(made, timeline, plugin_registry(), Options(**given)), timeline.end)


@cache
def lines_of(number: str) -> tuple[RecordingEntry, ...]:
    return tuple(read_recording(next(RECORDINGS.glob(f"{number}-*.gz"))))


def blinded(
    lines: Sequence[RecordingEntry], sources: Sequence[str], start: float, length: float
) -> Iterator[RecordingEntry]:
    """As if a proxy had cut the API: nothing of ``sources`` arrives in the window, and the last state after it."""
    begin, end = lines[0].t + start, lines[0].t + start + length
    held: dict[tuple[str, str], RecordingEntry] = {}
    for source in sources:
        window = {"from": begin, "to": end, "reason": "connection refused"}
        yield RecordingEntry(end, "blind", source, msgspec.Raw(msgspec.json.encode(window)))
    for line in lines:
        if line.kind not in sources or not begin <= line.t < end or line.type == "BOOKMARK":
            yield line
            continue
        uid = msgspec.json.decode(line.object)["metadata"]["uid"]
        held[line.kind, uid] = line
    for line in held.values():
        note = {"note": "missing at relist"} if line.type == "DELETED" else {}
        yield msgspec.structs.replace(line, t=end, **note)
