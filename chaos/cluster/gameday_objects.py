"""Objects of game days and fleets: applied with a label, Jobs, and the state of each day in a ConfigMap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from chaos.cluster.errors import check_fleet_success, check_success, decode_body, decode_success, status_message
from chaos.cluster.replica import configmaps_path, version_of
from chaos.cluster.workload import collection_path
from chaos.core.api_path import object_path, resource_path
from chaos.core.errors import Refused
from chaos.core.labels import (
    DAY_ANNOTATION,
    GAME_DAY_LABEL,
    GAME_DAY_PREFIX,
    MANAGED_BY_LABEL,
    PLAN_ANNOTATION,
    JobView,
)
from chaos.core.ports import KubeApi

_APPLY = "application/apply-patch+yaml"
_NOT_FOUND, _CONFLICT = 404, 409
_ENDS: Mapping[str, Literal["complete", "failed"]] = {"Complete": "complete", "Failed": "failed"}
_BY_JOB = "batch.kubernetes.io/job-name"
HALT = "nodefall.dev/halt"  # annotation: why the day is to be halted, as by kubectl annotate
_STATE = "state.json"


def apply_object(kube: KubeApi, manifest: Mapping[str, Any]) -> None:
    """Create the object, or bring it to what the manifest says. Raises NodefallError, Refused.

    A field that someone else has set to something else is a conflict, and refused.
    """
    metadata = manifest["metadata"]
    path = object_path(_collection_of(manifest), metadata["name"])
    response = kube.request("PATCH", path, body=dict(manifest), content_type=_APPLY)
    if response.status == _CONFLICT:
        raise Refused(f"{_name(manifest)} belongs to another program: {status_message(response)}")
    check_fleet_success(response, f"{_name(manifest)} cannot be applied")


def delete_labelled(kube: KubeApi, manifests: Sequence[Mapping[str, Any]], selector: str) -> list[str]:
    """Delete the objects with these labels, of the kinds and namespaces of ``manifests``; which ones, as KIND/NAME.

    ``selector``: a label selector. What has no such label is never touched. Raises NodefallError.
    """
    deleted = []
    for collection, kind in {_collection_of(manifest): manifest["kind"] for manifest in reversed(manifests)}.items():
        response = kube.request("GET", collection, {"labelSelector": selector})
        check_fleet_success(response, f"objects of kind {kind} cannot be listed")
        for item in decode_body(response).get("items") or []:
            name, uid = item["metadata"]["name"], item["metadata"]["uid"]
            body = {"kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}}
            answer = kube.request("DELETE", object_path(collection, name), body=body)
            if answer.status not in (_NOT_FOUND, _CONFLICT):
                check_fleet_success(answer, f"{kind} {name} cannot be deleted")
            deleted.append(f"{kind}/{name}")
    return deleted


def _collection_of(manifest: Mapping[str, Any]) -> str:
    return collection_path(dict(manifest), manifest["metadata"].get("namespace", ""))


def _name(manifest: Mapping[str, Any]) -> str:
    metadata = manifest["metadata"]
    name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    return f"{manifest['kind']} {name}"


def list_jobs(kube: KubeApi, namespace: str, selector: str, *, with_deleted: bool = False) -> list[JobView]:
    """The Jobs with these labels. Jobs that are being deleted are included only on request. Raises NodefallError."""
    response = kube.request("GET", _jobs(namespace), {"labelSelector": selector})
    if response.status == _NOT_FOUND:
        return []
    check_fleet_success(response, f"Jobs in {namespace} cannot be read")
    jobs = decode_body(response).get("items") or []
    return [_view(kube, namespace, job) for job in jobs if with_deleted or not job["metadata"].get("deletionTimestamp")]


def _view(kube: KubeApi, namespace: str, job: Mapping[str, Any]) -> JobView:
    metadata = job["metadata"]
    annotations = metadata.get("annotations") or {}
    end = next(_ends(job), None)
    reason = end[1] if end else ""
    if end is None or end[0] == "failed":
        reason = _reason_of_pods(kube, namespace, metadata["name"]) or reason
    return JobView(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        day=str(annotations.get(DAY_ANNOTATION, "")),
        plan_hash=str(annotations.get(PLAN_ANNOTATION, "")),
        status=end[0] if end else "active",
        reason=reason,
    )


def create_job(kube: KubeApi, job: Mapping[str, Any]) -> bool:
    """Create a Job; False if there is one with its name, which is left as it is. Raises NodefallError."""
    metadata = job["metadata"]
    response = kube.request("POST", _jobs(metadata["namespace"]), body=job)
    if response.status == _CONFLICT:
        return False
    check_fleet_success(response, f"Job {metadata['namespace']}/{metadata['name']} cannot be created")
    return True


def delete_job(kube: KubeApi, namespace: str, name: str, uid: str) -> None:
    """Delete exactly this Job with its pods, which get SIGTERM; nothing if it is gone. Raises NodefallError."""
    body = {"kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}}
    response = kube.request("DELETE", object_path(_jobs(namespace), name), body=body)
    if response.status not in (_NOT_FOUND, _CONFLICT):  # a conflict: it is another one already
        check_fleet_success(response, f"Job {namespace}/{name} cannot be deleted")


def _ends(job: Mapping[str, Any]) -> Iterator[tuple[Literal["complete", "failed"], str]]:
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition.get("type") in _ENDS and condition.get("status") == "True":
            yield _ENDS[condition["type"]], str(condition.get("message") or condition.get("reason") or "")


def _reason_of_pods(kube: KubeApi, namespace: str, name: str) -> str:
    """The status of the newest pod: its termination message, or why it does not run."""
    path = resource_path("v1", "pods", namespace)
    response = kube.request("GET", path, {"labelSelector": f"{_BY_JOB}={name}"})
    check_fleet_success(response, f"pods of the Job {namespace}/{name} cannot be read")
    pods = decode_body(response).get("items") or []
    newest = max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), default=None)
    return next(_reasons(newest.get("status") or {}), "") if newest else ""


def _reasons(status: Mapping[str, Any]) -> Iterator[str]:
    for container in status.get("containerStatuses") or []:
        state = container.get("state") or {}
        if ended := state.get("terminated"):
            yield _last_line(str(ended.get("message") or "")) or f"exit code {ended.get('exitCode')}"
        if waits := state.get("waiting"):
            yield ": ".join(filter(None, (str(waits.get("reason") or ""), str(waits.get("message") or ""))))
    for condition in status.get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield str(condition.get("message") or condition.get("reason") or "")


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("error: ")), lines[-1] if lines else "")


def _jobs(namespace: str) -> str:
    return resource_path("batch/v1", "jobs", namespace)


@dataclass(frozen=True, slots=True)
class DayRecord:
    """The state of the game day ``name`` that was read. ``halt``: why it is annotated to be halted, else None."""

    name: str
    text: str
    version: str  # resourceVersion
    halt: str | None = None


def list_days(kube: KubeApi, namespace: str, name: str = "") -> list[DayRecord]:
    """The states of all game days, or of the one with this name. Raises NodefallError."""
    selector = f"{GAME_DAY_LABEL}={name}" if name else GAME_DAY_LABEL
    response = kube.request("GET", configmaps_path(namespace), {"labelSelector": selector})
    body = decode_success(response, "the state of the game day cannot be read")
    records = [_record(item) for item in body.get("items") or []]
    return [record for record in records if record.name and name in ("", record.name)]


def read_day(kube: KubeApi, namespace: str, name: str) -> DayRecord | None:
    """The state of a game day, or None. Raises NodefallError."""
    return next(iter(list_days(kube, namespace, name)), None)


def write_day(kube: KubeApi, namespace: str, name: str, text: str, over: DayRecord | None) -> bool:
    """Replace exactly the state that was read; False if it has changed in the meantime. Raises NodefallError."""
    metadata: dict[str, Any] = {
        "name": f"{GAME_DAY_PREFIX}{name}",
        "namespace": namespace,
        "labels": {**MANAGED_BY_LABEL, GAME_DAY_LABEL: name},
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_STATE: text}}
    if over is None:
        response = kube.request("POST", configmaps_path(namespace), body=body)
    else:
        metadata["resourceVersion"] = over.version
        response = kube.request("PUT", object_path(configmaps_path(namespace), metadata["name"]), body=body)
    if response.status == _CONFLICT or (response.status == _NOT_FOUND and over is not None):
        return False
    check_success(response, "the state of the game day cannot be written")
    return True


def _record(item: Mapping[str, Any]) -> DayRecord:
    metadata = item.get("metadata") or {}
    name = str(metadata.get("name", ""))
    is_day = name.startswith(GAME_DAY_PREFIX)
    halt = (metadata.get("annotations") or {}).get(HALT)
    text = str((item.get("data") or {}).get(_STATE, ""))
    reason = None if halt is None else str(halt)
    return DayRecord(name.removeprefix(GAME_DAY_PREFIX) if is_day else "", text, version_of(item), reason)
