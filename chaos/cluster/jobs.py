"""Jobs: read with the reason why one failed or its pod does not run, created once, deleted by their UID."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from chaos.cluster.response import check_fleet_success, decode_body
from chaos.core.job import JobView
from chaos.core.labels import DAY_ANNOTATION, PLAN_ANNOTATION
from chaos.core.ports import KubeApi, Response

_NOT_FOUND, _CONFLICT = 404, 409
_ENDS: Mapping[str, Literal["complete", "failed"]] = {"Complete": "complete", "Failed": "failed"}
_BY_JOB = "batch.kubernetes.io/job-name"


def list_jobs(kube: KubeApi, namespace: str, selector: str, *, with_deleted: bool = False) -> list[JobView]:
    """The Jobs with these labels; those that are being deleted only on request. Raises NodefallError."""
    response = kube.request("GET", _collection(namespace), {"labelSelector": selector})
    if response.status == _NOT_FOUND:
        return []
    jobs = _decode_success(response, f"Jobs in {namespace} cannot be read").get("items") or []
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
    response = kube.request("POST", _collection(metadata["namespace"]), body=job)
    if response.status == _CONFLICT:
        return False
    _decode_success(response, f"Job {metadata['namespace']}/{metadata['name']} cannot be created")
    return True


def delete_job(kube: KubeApi, namespace: str, name: str, uid: str) -> None:
    """Delete exactly this Job with its pods, which get SIGTERM; nothing if it is gone. Raises NodefallError."""
    body = {"kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": uid}}
    response = kube.request("DELETE", f"{_collection(namespace)}/{name}", body=body)
    if response.status not in (_NOT_FOUND, _CONFLICT):  # a conflict: it is another one already
        _decode_success(response, f"Job {namespace}/{name} cannot be deleted")


def _ends(job: Mapping[str, Any]) -> Iterator[tuple[Literal["complete", "failed"], str]]:
    for condition in (job.get("status") or {}).get("conditions") or []:
        if condition.get("type") in _ENDS and condition.get("status") == "True":
            yield _ENDS[condition["type"]], str(condition.get("message") or condition.get("reason") or "")


def _reason_of_pods(kube: KubeApi, namespace: str, name: str) -> str:
    """What the newest pod says about itself: its last words, or why it does not run."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    response = kube.request("GET", path, {"labelSelector": f"{_BY_JOB}={name}"})
    pods = _decode_success(response, f"pods of the Job {namespace}/{name} cannot be read").get("items") or []
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


def _collection(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def _decode_success(response: Response, what: str) -> dict[str, Any]:
    check_fleet_success(response, what)
    return dict(decode_body(response))
