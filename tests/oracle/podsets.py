"""Pods as their versions have them, the sets that are formed of them, and the conditions of filters."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.question import Question, UndecidedError, condition, is_ready, text_matches
from tests.oracle.trace import Value, all_of, no
from tests.oracle.world import Obj, Version, get

NO_FILTER = {"least", "most", "at-most", "at-least", "over", "per", "by", "descending", "replaced"}


@dataclass(slots=True)
class Pod:
    """A pod as its version in force has it, and what it keeps of earlier ones."""

    version: Version
    ended: float = math.inf  # order of the version with which it ended
    created: float = -math.inf  # order of the first version; -inf: of the first list
    finished_as: str | None = None  # the reason of the disruption with which it finished
    finished: bool = False
    unsure: bool = False  # it was finished before it was seen
    effective: Value = True  # its machine runs, and has started it again if it was off
    cache: dict[str, Value] = field(default_factory=dict)

    @property
    def obj(self) -> Obj:
        return self.version.obj

    @property
    def gone(self) -> bool:
        return self.version.deleted

    @property
    def node(self) -> str | None:
        node: str | None = get(self.obj, "spec", "nodeName")
        return node


def controller(obj: Obj) -> Obj:
    return next((o for o in get(obj, "metadata", "ownerReferences") or () if o.get("controller")), {})


def is_finished(obj: Obj) -> bool:
    return get(obj, "status", "phase") in ("Succeeded", "Failed")


def is_deleting(obj: Obj) -> bool:
    return bool(get(obj, "metadata", "deletionTimestamp"))


def disruption(obj: Obj) -> str | None:
    c = condition(obj, "DisruptionTarget")
    return (c.get("reason") or "") if c and c.get("status") == "True" else None


def updated(before: Pod | None, v: Version) -> Pod:
    """The pod with its next version."""
    pod = Pod(v, created=-math.inf if v.listed else v.order)
    if before is not None:
        pod.created, pod.ended = before.created, before.ended
        pod.finished, pod.finished_as, pod.unsure = before.finished, before.finished_as, before.unsure
    if pod.ended == math.inf and (v.deleted or is_finished(v.obj) or is_deleting(v.obj)):
        pod.ended = v.order
    if is_finished(v.obj) and not pod.finished:
        pod.finished, pod.finished_as, pod.unsure = True, disruption(v.obj), before is None
    return pod


def kind_and_name(owner: Obj | str) -> tuple[str, str]:
    """An owner as a mapping, or as Kind/name."""
    if isinstance(owner, str):
        kind, _, name = owner.partition("/")
        return kind, name
    return str(owner["kind"]), str(owner["name"])


def selected(q: Question, obj: Obj) -> bool:
    """Whether a pod that exists belongs to what is asked about."""
    p, nodes = q.params, q.case.nodes(q.params.get("node"))
    if nodes and get(obj, "spec", "nodeName") not in nodes:
        return False
    if nodes == [] and not get(obj, "spec", "nodeName"):
        return False
    meta, owner = obj["metadata"], controller(obj)
    if p.get("namespace") and meta.get("namespace") != q.case.space(p["namespace"]):
        return False
    if any((meta.get("labels") or {}).get(k) != v for k, v in (p.get("labels") or {}).items()):
        return False
    if p.get("owner") and (owner.get("kind"), owner.get("name")) != kind_and_name(p["owner"]):
        return False
    left_out = {
        "daemonset": owner.get("kind") == "DaemonSet",
        "finished": is_finished(obj),
        "static": bool(get(meta, "annotations", "kubernetes.io/config.mirror")),
        "terminating": is_deleting(obj),
    }
    return not any(left_out[name] for name in p.get("except") or ())


def matches(pod: Pod, wanted: Obj) -> Value:
    """The conditions of a filter but ``replaced``, by the version in force."""
    cached = pod.cache.get("match", pod)
    if cached is not pod:
        return cached  # type: ignore[return-value]
    value = all_of(_condition(pod, k, w) for k, w in wanted.items() if k not in NO_FILTER)
    pod.cache["match"] = value
    return value


def _condition(pod: Pod, name: str, wanted: Any) -> Value:  # noqa: C901, PLR0911, PLR0912 - one row each
    obj = pod.obj
    if name == "gone":
        return bool(pod.gone == wanted)
    if name == "deleting":
        return bool((pod.gone or is_deleting(obj)) == wanted)
    if name == "ready":
        value = all_of([not pod.gone and is_ready(obj), pod.effective])
        return value if wanted else no(value)
    if pod.version.deduced:
        return None
    if name == "phase":
        return get(obj, "status", "phase") in (wanted if isinstance(wanted, list) else [wanted])
    if name == "reason":
        return bool(get(obj, "status", "reason") == wanted)
    if name == "message":
        return text_matches(str(wanted), get(obj, "status", "message"))
    if name == "disruption":
        if pod.finished and pod.unsure and pod.finished_as != disruption(obj):
            return None
        reason = pod.finished_as if pod.finished else disruption(obj)
        return bool({"any": reason is not None, "none": reason is None}.get(str(wanted), reason == wanted))
    statuses = get(obj, "status", "containerStatuses") or []
    if name == "scheduled":
        c = condition(obj, "PodScheduled")
        both = {bool(pod.node), c is not None and c.get("status") == "True"}
        return (both == {True}) == wanted if len(both) == 1 else None
    if name == "not-on":
        return bool(pod.node) and pod.node not in wanted
    if name == "waiting":
        return any(get(s, "state", "waiting", "reason") == wanted for s in statuses)
    if name == "exit-code":
        return any(get(s, "state", "terminated", "exitCode") == wanted for s in statuses)
    restarts = sum(s.get("restartCount") or 0 for s in statuses)
    if name == "restarts-at-least":
        return bool(restarts >= wanted)
    if name == "restarts-at-most":
        return bool(restarts <= wanted)
    raise UndecidedError(f"pods {name}")


def members_at(q: Question) -> tuple[dict[str, Pod], set[str]]:
    """All pods after ``place`` versions, and those of the set."""
    now: dict[str, Pod] = {}
    for v in q.world.sequence("pods")[: q.place]:
        now[v.key[1]] = updated(now.get(v.key[1]), v)
    return now, {uid for uid, pod in now.items() if not pod.gone and selected(q, pod.obj)}
