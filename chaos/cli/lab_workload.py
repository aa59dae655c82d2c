"""The workload of a lab that stays: applied once the nodes are Ready, and waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from chaos.assertions.workload_available import available
from chaos.engine.workload import collection
from chaos.load.manifests import Located
from chaos.model.duration import format_duration
from chaos.model.errors import NodefallError
from chaos.model.kube import Workload
from chaos.model.ports import Clock, KubeApi
from chaos.observers.api import rejected

PATIENCE = 300.0  # seconds of the cluster's time
_LOOK = 1.0
_WAITED_FOR = ("deployments", "statefulsets", "daemonsets", "jobs", "pods")
Look = Callable[[], str]  # what something waits for, "" once it is there


class Applied(NamedTuple):
    """An object that was created: its file and line, its kind, where to read it."""

    located: Located
    plural: str
    namespace: str
    path: str

    @property
    def name(self) -> str:
        return f"{self.plural.removesuffix('s')} {self.path.rpartition('/')[2]}"


def wait_for_nodes(kube: KubeApi, clock: Clock) -> None:
    """Until every node is Ready. Raises NodefallError after PATIENCE."""

    def look() -> str:
        late = [node["metadata"]["name"] for node in _get(kube, "/api/v1/nodes")["items"] if not _is(node, "Ready")]
        return f"not Ready: {', '.join(late[:5])}" if late else ""

    _wait(clock, look)


def apply(kube: KubeApi, objects: Iterable[Located]) -> list[Applied]:
    """Create everything, in ``default`` where no namespace is named. Raises BadInput with the lab's own words."""
    applied = []
    for located in objects:
        obj = located.object
        namespace = (obj["metadata"].get("namespace") or "default") if located.namespaced else ""
        path = collection(obj, namespace)
        response = kube.request("POST", path, body=obj)
        if response.status not in (200, 201):
            what = f"the lab refuses {obj['kind']} {obj['metadata'].get('name', '')}"
            raise located.problem(rejected(response, what.rstrip()).message)
        name = msgspec.json.decode(response.body)["metadata"]["name"]
        applied.append(Applied(located, path.rpartition("/")[2], namespace, f"{path}/{name}"))
    return applied


def wait_for_workload(kube: KubeApi, clock: Clock, applied: Iterable[Applied]) -> None:
    """Until everything is available, and every Job has begun. Raises NodefallError after PATIENCE."""
    waited_for = [one for one in applied if one.plural in _WAITED_FOR]
    _wait(clock, lambda: next(filter(None, (_unavailable(kube, one) for one in waited_for)), ""))


def _wait(clock: Clock, look: Look) -> None:
    end = clock.now() + PATIENCE
    while why := look():
        if clock.now() > end:
            raise NodefallError(f"{why}, {format_duration(PATIENCE)} of the cluster's time later")
        clock.sleep(_LOOK)


def _unavailable(kube: KubeApi, one: Applied) -> str:
    found = _get(kube, one.path)
    if one.plural == "pods":
        ready, words = _is(found, "Ready") or found["status"].get("phase") == "Succeeded", "it is not Ready"
    elif one.plural == "jobs":
        ready, words = begun(found)
    else:
        ready, words = available(one.plural, msgspec.convert(found, Workload))
    if ready:
        return ""
    file, mark, _ = one.located
    return f"{file}:{mark.line}:{mark.column}: {one.name}: {words}{_pods(kube, one.namespace)}"


def begun(job: dict[str, Any]) -> tuple[bool, str]:
    """Whether as many pods of a Job run, or have succeeded, as may run at once; a Job may run for hours."""
    spec, status = job["spec"], job.get("status") or {}
    if spec.get("suspend") or _is(job, "Complete"):
        return True, ""
    if _is(job, "Failed"):
        return False, "it has failed"
    wanted = min(spec["parallelism"], spec.get("completions") or spec["parallelism"])
    number = status.get("ready", 0) + status.get("succeeded", 0)
    return number >= wanted, f"{number} of {wanted} pods have begun"


def _pods(kube: KubeApi, namespace: str) -> str:
    """What the first pod that is not Ready waits for."""
    for pod in _get(kube, f"/api/v1/namespaces/{namespace}/pods")["items"]:
        conditions = (pod.get("status") or {}).get("conditions") or []
        for condition in conditions:
            if condition["status"] == "False" and condition.get("message"):
                return f" (pod {pod['metadata']['name']}: {condition['message']})"
    return ""


def _is(obj: dict[str, Any], condition: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or []
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def _get(kube: KubeApi, path: str) -> Any:
    response = kube.request("GET", path)
    if response.status != 200:
        raise rejected(response, path)
    return msgspec.json.decode(response.body)
