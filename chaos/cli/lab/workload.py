"""The workload of a lab that stays: applied once the nodes are Ready, and waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from chaos.assertions.workload_available import availability
from chaos.kube.client import from_response
from chaos.kube.workload import collection_path
from chaos.load.manifests import LocatedObject
from chaos.model.duration import format_duration
from chaos.model.errors import NodefallError
from chaos.model.kube import Workload
from chaos.model.ports import Clock, KubeApi

READY_TIMEOUT = 300.0  # seconds of the cluster's time
_POLL_INTERVAL = 1.0
_AWAITED_PLURALS = ("deployments", "statefulsets", "daemonsets", "jobs", "pods")
ReadinessCheck = Callable[[], str]  # what something waits for, "" once it is there


class AppliedObject(NamedTuple):
    """An object that was created: its file and line, its kind, where to read it."""

    located: LocatedObject
    plural: str
    namespace: str
    path: str

    @property
    def name(self) -> str:
        return f"{self.plural.removesuffix('s')} {self.path.rpartition('/')[2]}"


def wait_for_nodes(kube: KubeApi, clock: Clock) -> None:
    """Until every node is Ready. Raises NodefallError after PATIENCE."""

    def look() -> str:
        late = [
            node["metadata"]["name"]
            for node in _get(kube, "/api/v1/nodes")["items"]
            if not _has_condition(node, "Ready")
        ]
        return f"not Ready: {', '.join(late[:5])}" if late else ""

    _wait(clock, look)


def apply(kube: KubeApi, objects: Iterable[LocatedObject]) -> list[AppliedObject]:
    """Create everything, in ``default`` where no namespace is named. Raises BadInput with the lab's own words."""
    applied = []
    for located in objects:
        obj = located.object
        namespace = (obj["metadata"].get("namespace") or "default") if located.is_namespaced else ""
        path = collection_path(obj, namespace)
        response = kube.request("POST", path, body=obj)
        if response.status not in (200, 201):
            what = f"the lab refuses {obj['kind']} {obj['metadata'].get('name', '')}"
            raise located.problem(from_response(response, what.rstrip()).message)
        name = msgspec.json.decode(response.body)["metadata"]["name"]
        applied.append(AppliedObject(located, path.rpartition("/")[2], namespace, f"{path}/{name}"))
    return applied


def wait_for_workload(kube: KubeApi, clock: Clock, applied: Iterable[AppliedObject]) -> None:
    """Until everything is available, and every Job has begun. Raises NodefallError after PATIENCE."""
    waited_for = [one for one in applied if one.plural in _AWAITED_PLURALS]
    _wait(clock, lambda: next(filter(None, (_unready_reason(kube, one) for one in waited_for)), ""))


def _wait(clock: Clock, look: ReadinessCheck) -> None:
    end = clock.now() + READY_TIMEOUT
    while why := look():
        if clock.now() > end:
            raise NodefallError(f"{why}, {format_duration(READY_TIMEOUT)} of the cluster's time later")
        clock.sleep(_POLL_INTERVAL)


def _unready_reason(kube: KubeApi, one: AppliedObject) -> str:
    found = _get(kube, one.path)
    if one.plural == "pods":
        ready, words = _has_condition(found, "Ready") or found["status"].get("phase") == "Succeeded", "it is not Ready"
    elif one.plural == "jobs":
        ready, words = job_readiness(found)
    else:
        ready, words = availability(one.plural, msgspec.convert(found, Workload))
    if ready:
        return ""
    file, mark, _ = one.located
    return f"{file}:{mark.line}:{mark.column}: {one.name}: {words}{_unready_pod(kube, one.namespace)}"


def job_readiness(job: dict[str, Any]) -> tuple[bool, str]:
    """Whether as many pods of a Job run, or have succeeded, as may run at once; a Job may run for hours."""
    spec, status = job["spec"], job.get("status") or {}
    if spec.get("suspend") or _has_condition(job, "Complete"):
        return True, ""
    if _has_condition(job, "Failed"):
        return False, "it has failed"
    wanted = min(spec["parallelism"], spec.get("completions") or spec["parallelism"])
    number = status.get("ready", 0) + status.get("succeeded", 0)
    return number >= wanted, f"{number} of {wanted} pods have begun"


def _unready_pod(kube: KubeApi, namespace: str) -> str:
    """What the first pod that is not Ready waits for."""
    for pod in _get(kube, f"/api/v1/namespaces/{namespace}/pods")["items"]:
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
