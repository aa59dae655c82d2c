"""The pod that runs a game day: not root, without a capability, on a read-only file system."""

from __future__ import annotations

from typing import Any

from chaos.core.labels import POD_UID_ENV
from chaos.gameday.deploy.affinity import scheduling
from chaos.gameday.deploy.deployment import HOME, REPORTS, USER, Deployment
from chaos.gameday.deploy.volumes import file_volumes

_GRACE = 600  # seconds that an undo may take after SIGTERM
_POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_TEMPORARY = "/tmp"  # noqa: S108 - a volume of the pod
# Autoscalers do not remove the node of a pod with these.
_ANNOTATIONS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
_JOB = "batch.kubernetes.io/job-name"
_JOB_ENV = "NODEFALL_JOB"


def pod_template(deployment: Deployment) -> dict[str, Any]:
    """The template of the game day's pod."""
    volumes, mounts = file_volumes(deployment)
    container = {
        "name": "nodefall",
        "image": deployment.image,
        "args": arguments(deployment),
        "env": [*_own_env(), *_secret_env(deployment)],
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": _SECURITY,
        "volumeMounts": [*mounts, _mount("reports", REPORTS), _mount("tmp", _TEMPORARY)],
    }
    spec = {
        "serviceAccountName": deployment.name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _GRACE,
        "enableServiceLinks": False,
        "securityContext": _POD_SECURITY,
        **scheduling(deployment.preferences),
        "containers": [container],
        "volumes": [*volumes, reports_volume(deployment), {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}],
    }
    return {"metadata": {"labels": deployment.labels, "annotations": _ANNOTATIONS}, "spec": spec}


def upload_template(deployment: Deployment, image: str) -> dict[str, Any]:
    """The template of the pod that copies reports to a bucket; rclone has its settings from the Secret."""
    labels = {**deployment.labels, "app.kubernetes.io/component": "upload"}
    container = {
        "name": "rclone",
        "image": image,
        "args": ["copy", REPORTS, f":s3:{deployment.storage.s3}", "--config=", f"--cache-dir={_TEMPORARY}"],
        "envFrom": [{"secretRef": {"name": upload_secret(deployment)}}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": _SECURITY,
        "volumeMounts": [{**_mount("reports", REPORTS), "readOnly": True}, _mount("tmp", _TEMPORARY)],
    }
    spec = {
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "securityContext": _POD_SECURITY,
        "containers": [container],
        "volumes": [reports_volume(deployment), {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}],
    }
    return {"metadata": {"labels": labels}, "spec": spec}


def upload_secret(deployment: Deployment) -> str:
    """The Secret with the settings of rclone: RCLONE_S3_ENDPOINT and others."""
    return f"{deployment.name}-s3"


def reports_volume(deployment: Deployment) -> dict[str, Any]:
    """The volume with the reports."""
    return {"name": "reports", "persistentVolumeClaim": {"claimName": deployment.name}}


def arguments(deployment: Deployment) -> list[str]:
    """Of nodefall. The Job's name names the day, so that each Job is a day, and each pod of a Job goes on with it."""
    return [
        *("gameday", "run", deployment.gameday, "--inventory", deployment.inventory),
        *("--reports", REPORTS, "--id", f"$({_JOB_ENV})", "--scheduled", "--yes", "--plain"),
    ]


def _own_env() -> list[dict[str, Any]]:
    """What the pod knows of itself, so that its node never becomes a target."""
    return [
        {"name": POD_UID_ENV, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": _JOB_ENV, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{_JOB}']"}}},
        {"name": "HOME", "value": HOME},
    ]


def _secret_env(deployment: Deployment) -> list[dict[str, Any]]:
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": deployment.secret, "key": name}}}
        for name in deployment.secret_env
    ]


def _mount(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "mountPath": path}
