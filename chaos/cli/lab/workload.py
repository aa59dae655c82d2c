"""The workload of a lab: created once the nodes are Ready, and awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from chaos.cluster.errors import from_response
from chaos.cluster.workload import collection_path
from chaos.core.api_path import object_path, resource_path
from chaos.core.duration import format_duration
from chaos.core.errors import NodefallError
from chaos.core.kube import Workload
from chaos.core.ports import Clock, KubeApi
from chaos.documents.manifests import LocatedObject
from chaos.verdicts.assertions.workload_available import availability

READY_TIMEOUT = 300.0  # seconds of cluster time
_POLL_INTERVAL = 1.0
_AWAITED_PLURALS = ("deployments", "statefulsets", "daemonsets", "jobs", "pods")
ReadinessCheck = Callable[[], str]  # why something is not ready, "" once it is


class AppliedObject(NamedTuple):
    """An object that was created: its position in a file, its kind, its path in the API."""

    located: LocatedObject
    plural: str
    namespace: str
    path: str

    @property
    def name(self) -> str:
        return f"{self.plural.removesuffix('s')} {self.path.rpartition('/')[2]}"


def wait_for_nodes(kube: KubeApi, clock: Clock) -> None:
    """Wait until every node is Ready. Raises NodefallError after READY_TIMEOUT."""

    def check() -> str:
        unready = [
            node["metadata"]["name"]
            for node in _get(kube, "/api/v1/nodes")["items"]
            if not _has_condition(node, "Ready")
        ]
        return f"not Ready: {', '.join(unready[:5])}" if unready else ""

    _wait(clock, check)


def apply(kube: KubeApi, objects: Iterable[LocatedObject]) -> list[AppliedObject]:
    """Create all objects, by default in the namespace ``default``. Raises BadInput with the API server's message."""
    applied = []
    for located in objects:
        obj = located.object
        namespace = (obj["metadata"].get("namespace") or "default") if located.is_namespaced else ""
        path = collection_path(obj, namespace)
        response = kube.request("POST", path, body=obj)
        if response.status not in (200, 201):
            what = f"the lab rejected {obj['kind']} {obj['metadata'].get('name', '')}"
            raise located.problem(from_response(response, what.rstrip()).message)
        name = msgspec.json.decode(response.body)["metadata"]["name"]
        applied.append(AppliedObject(located, path.rpartition("/")[2], namespace, object_path(path, name)))
    return applied


def wait_for_workload(kube: KubeApi, clock: Clock, applied: Iterable[AppliedObject]) -> None:
    """Wait until everything is available and every Job has started. Raises NodefallError after READY_TIMEOUT."""
    awaited = [applied_ for applied_ in applied if applied_.plural in _AWAITED_PLURALS]
    _wait(clock, lambda: next(filter(None, (_unready_reason(kube, applied_) for applied_ in awaited)), ""))


def _wait(clock: Clock, check: ReadinessCheck) -> None:
    end = clock.now() + READY_TIMEOUT
    while reason := check():
        if clock.now() > end:
            raise NodefallError(f"timed out after {format_duration(READY_TIMEOUT)} of cluster time: {reason}")
        clock.sleep(_POLL_INTERVAL)


def _unready_reason(kube: KubeApi, applied_: AppliedObject) -> str:
    found = _get(kube, applied_.path)
    if applied_.plural == "pods":
        ready, reason_ = _has_condition(found, "Ready") or found["status"].get("phase") == "Succeeded", "not Ready"
    elif applied_.plural == "jobs":
        ready, reason_ = job_readiness(found)
    else:
        ready, reason_ = availability(applied_.plural, msgspec.convert(found, Workload))
    if ready:
        return ""
    file, mark, _ = applied_.located
    return f"{file}:{mark.line}:{mark.column}: {applied_.name}: {reason_}{_unready_pod(kube, applied_.namespace)}"


def job_readiness(job: dict[str, Any]) -> tuple[bool, str]:
    """Whether a Job runs its full number of parallel pods, and a reason if not. Its completion is not awaited."""
    spec, status = job["spec"], job.get("status") or {}
    if spec.get("suspend") or _has_condition(job, "Complete"):
        return True, ""
    if _has_condition(job, "Failed"):
        return False, "failed"
    wanted = min(spec["parallelism"], spec.get("completions") or spec["parallelism"])
    number = status.get("ready", 0) + status.get("succeeded", 0)
    return number >= wanted, f"{number} of {wanted} pods have started"


def _unready_pod(kube: KubeApi, namespace: str) -> str:
    """The message of the first pod that is not Ready."""
    for pod in _get(kube, resource_path("v1", "pods", namespace))["items"]:
        conditions = (pod.get("status") or {}).get("conditions") or []
        for condition in conditions:
            if condition["status"] == "False" and condition.get("message"):
                return f" (pod {pod['metadata']['name']}: {condition['message']})"
    return ""


def _has_condition(obj: dict[str, Any], condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def _get(kube: KubeApi, path: str) -> Any:
    response = kube.request("GET", path)
    if response.status != 200:
        raise from_response(response, path)
    return msgspec.json.decode(response.body)
