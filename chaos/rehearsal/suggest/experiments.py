"""Experiments for risks: of each the gentlest event first, up to the one that costs the most.

What must hold is what the workload's budget or replicas ask for; what is expected in fact is the rehearsals' band. Of a
weak workload the first is violated, and the second holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from chaos.cluster.snapshot.document import Object, name_of
from chaos.core.text import count_of
from chaos.documents.yaml_text import dump
from chaos.lab.facade import labels_of
from chaos.rehearsal.suggest.document import Experiment
from chaos.rehearsal.suggest.events import API_VERSION, BACK, FAULT, MINUTES, Event, Victim, steps
from chaos.rehearsal.suggest.groups import victim_called
from chaos.rehearsal.suggest.losses import Loss
from chaos.rehearsal.suggest.model import Model, Workload, is_ready, is_static
from chaos.rehearsal.suggest.of_nodes import is_graceful
from chaos.rehearsal.suggest.risks import Risk

_STEADY, MARGIN, SHARE = 30, 15, 1.1  # seconds, seconds, and a factor of the longest time that was seen
_COUNTED = ("Deployment", "StatefulSet")  # whose availability the assertion workload-available knows
_PHRASES = {Event.DRAIN: "is drained", Event.POWEROFF: "is shut down", Event.POWER_CUT: "loses power"}


def experiments_of(risks: Sequence[Risk], model: Model) -> Iterator[Experiment]:
    """Files for each risk, the gentlest event first. A bare pod without labels has none: nothing selects it."""
    workloads = {each.key: each for each in model.workloads}
    for number, risk in enumerate(risks, 1):
        workload = workloads[risk.workload]
        if workload.kind != "Pod" or labels_of(workload.obj):
            yield from _of_risk(number, risk, workload, model)


def _of_risk(number: int, risk: Risk, workload: Workload, model: Model) -> Iterator[Experiment]:
    events = list(Event)[: list(Event).index(risk.worst.event) + 1]
    victim = victim_called(risk.worst.victim, model)
    for event in events:
        loss = risk.loss(event)
        file = f"{number:02}-{_slug(workload)}-{event}"
        predicted = loss.what if loss else "nothing is lost"
        document = _document(event, victim, loss, workload, model)
        head = [
            f"Suggested for {risk.workload}: {risk.sentence}",
            f"Predicted for {event.words} in {count_of(loss.runs if loss else 1, 'rehearsal')}: {predicted}.",
            *(
                [f"It evicts pods that lose data, or that nothing replaces: {sorted(allow)}"]
                if (allow := _drained(document))
                else []
            ),
        ]
        text = "".join(f"# {' '.join(line.split())}\n" for line in head) + dump([document])
        yield Experiment(f"{file}.yaml", risk.workload, str(event), predicted, text)


def _drained(document: dict[str, Any]) -> set[str]:
    given = document["spec"]["method"][0].get("with", {})
    return {"force", "delete-emptydir-data"} & {key for key, value in given.items() if value}


def _document(event: Event, victim: Victim, loss: Loss | None, workload: Workload, model: Model) -> dict[str, Any]:
    nodes = victim.nodes
    drain = _drain_flags(nodes, model) if event is Event.DRAIN else {}
    spec: dict[str, Any] = {"title": f"{workload.name} keeps serving when {_where(victim, workload)} {_PHRASES[event]}"}
    if allow := _allowed(event, drain, nodes, model):
        spec["allow"] = allow
    spec |= {
        "targets": {"victim": _target(victim, workload)},
        "steadyState": [{"assert": "nodes-ready", "with": {"nodes": "victim"}}, available(workload, 0)],
        "method": steps(event, f"{MINUTES[event]}m", drain),
        "hypothesis": list(_hypotheses(event, loss, workload, model)),
        "abort": [{"assert": "nodes-ready", "with": {"not-ready-at-most": len(nodes) + _not_ready(model)}}],
        "recovery": {"within": "10m", "timing": "loose"},
        "maxDuration": "40m",
    }
    return {"apiVersion": API_VERSION, "kind": "Experiment", "metadata": {"name": _name(workload, event)}, "spec": spec}


def _where(victim: Victim, workload: Workload) -> str:
    return victim.words if victim.is_zone or not workload.is_on_one_node else "the node that runs it"


def _target(victim: Victim, workload: Workload) -> dict[str, Any]:
    """By what runs there; by its name if the workload is on several nodes, of which this one is the worst."""
    if victim.is_zone:
        return {"role": "worker", "zone": victim.name, "count": "100%"}
    runs: dict[str, Any] = {"namespace": workload.namespace}
    if workload.kind == "Pod":
        runs["matchLabels"] = labels_of(workload.obj)
    else:
        runs["owner"] = f"{workload.kind}/{workload.name.partition('/')[2]}"
    named = {} if workload.is_on_one_node else {"nodes": [victim.name]}
    return {"role": "worker", **named, "count": 1, "runs": runs}


def _allowed(event: Event, drain: dict[str, bool], nodes: Sequence[str], model: Model) -> list[str]:
    configs = [config for node in nodes if (config := model.contents.configs.get(node))]
    is_ungraceful = event is Event.POWEROFF and not all(map(is_graceful, configs))
    return [*(["irreversible"] if drain else []), *(["ungraceful"] if is_ungraceful else [])]


def _drain_flags(nodes: Sequence[str], model: Model) -> dict[str, bool]:
    """What kubectl drain needs for the pods that are on the nodes."""
    pods = [pod for node in nodes for pod in model.pods_on.get(node, []) if not is_static(pod)]
    bare = any(not pod["metadata"].get("ownerReferences") for pod in pods)
    scratch = any("emptyDir" in each for pod in pods for each in pod["spec"].get("volumes") or ())
    return ({"force": True} if bare else {}) | ({"delete-emptydir-data": True} if scratch else {})


def available(workload: Workload, spare: int) -> dict[str, Any]:
    """The assertion that all but ``spare`` pods of a workload are available."""
    name = workload.name.partition("/")[2]
    if workload.kind in _COUNTED:
        params: dict[str, Any] = {"namespace": workload.namespace, "names": [name], "kinds": [workload.kind]}
        more = {"unavailable-at-most": spare} if spare else {}
        return {"assert": "workload-available", "with": params | more}
    least = max(workload.replicas - spare, 0)
    chosen = (
        {"labels": labels_of(workload.obj)}
        if workload.kind == "Pod"
        else {"owner": {"kind": workload.kind, "name": name}}
    )
    count = {"ready": True, "deleting": False, "least": least}
    return {"assert": "pods", "with": {"namespace": workload.namespace, **chosen, "count": count}}


def spare_pods(workload: Workload, model: Model) -> int:
    """How many pods may be unavailable: as the budget says, else all but one."""
    names = {name for pod in workload.pods for name in model.budgets_of.get(id(pod), ())}
    for budget, pods in model.budgets:
        status: Object = budget.get("status") or {}
        if name_of(budget) in names and len(pods) == workload.replicas:
            return max(0, len(pods) - int(status.get("desiredHealthy") or 0))
    return workload.replicas - 1


def _hypotheses(event: Event, loss: Loss | None, workload: Workload, model: Model) -> Iterator[dict[str, Any]]:
    """What the spec of the workload asks for, then what is predicted."""
    spare = spare_pods(workload, model)
    least = workload.replicas - spare
    yield {
        "name": f"{workload.name} always has {least} of {count_of(workload.replicas, 'pod')}, as its spec asks",
        **available(workload, spare),
        "after": FAULT,
        "always": {"until": BACK},
    }
    if event is Event.DRAIN and workload.kind != "Pod":
        yield {
            "name": f"the pods of {workload.name} on the node are evicted",
            "assert": "pods",
            "with": {**_on_victim(workload), "at": FAULT, "each": {"gone": True}},
            "after": FAULT,
            "within": f"{event.seconds}s",
        }
    if loss and loss.waiting:
        yield {
            "name": f"all pods of {workload.name} find room before the node is back",
            **available(workload, 0),
            "after": FAULT,
            "within": f"{event.seconds - 2 * _STEADY}s",
            "for": f"{_STEADY}s",
        }
    if loss and loss.mean:
        yield _predicted(loss, workload)


def _predicted(loss: Loss, workload: Workload) -> dict[str, Any]:
    """When one of its pods serves again: within the longest time that was seen and a margin, or not at all."""
    serves = available(workload, workload.replicas - 1)
    if loss.lasting == loss.runs:
        name = f"as predicted, {workload.name} has no pod before the node is back"
        return {"name": name, **serves, "after": f"{FAULT} + {_STEADY}s", "never": {"until": BACK}}
    return {
        "name": f"{workload.name} serves again within the predicted time of {loss.length}",
        **serves,
        "after": FAULT,
        "within": f"{math.ceil(loss.high * SHARE + MARGIN)}s",
        "for": f"{_STEADY}s",
        "timing": "loose",
    }


def _on_victim(workload: Workload) -> dict[str, Any]:
    name = workload.name.partition("/")[2]
    return {"node": "victim", "namespace": workload.namespace, "owner": {"kind": workload.kind, "name": name}}


def _not_ready(model: Model) -> int:
    return sum(not is_ready(node) for node in model.nodes.values())


def _slug(workload: Workload) -> str:
    return re.sub(r"[^a-z0-9]+", "-", workload.name.lower()).strip("-")


def _name(workload: Workload, event: Event) -> str:
    """At most 63 characters, as of a label's value."""
    return f"{_slug(workload)[: 62 - len(event)].strip('-')}-{event}"
