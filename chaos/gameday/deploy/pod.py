"""The pod that runs a game day: not root, without a capability, on a read-only file system.

It never runs on a node that is surely a target, rather on one that never is. Which of several nodes becomes a target is
only known when a run is planned: then the pod's own node is left out. Its files are a ConfigMap and keys of a Secret,
mounted at the very paths that the documents name.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from chaos.core.errors import UsageError
from chaos.core.labels import CONTROL_PLANE_LABELS, POD_UID_ENV
from chaos.gameday.deploy.deployment import DAY_ROOT, HOME, REPORTS, USER, DayFile, Deployment, NodePreferences

_CONTROL_PLANE = CONTROL_PLANE_LABELS[0]
_MAX_BYTES = 1_000_000  # of a ConfigMap: a little less than 1 MiB
_MODE = 0o440
_OCCUPIED = ("/app", "/dev", "/proc", "/sys", "/tmp", "/usr", "/var/run/secrets", REPORTS)  # noqa: S108 - a mount
_MIN_DEPTH = 2  # a mount over /etc or /home would hide what is there
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


def scheduling(preferences: NodePreferences) -> dict[str, Any]:
    """The keys ``affinity`` and ``tolerations`` of a pod, where there is something to say."""
    rules: dict[str, Any] = {}
    if preferences.never:
        fields = [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in preferences.never]
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
    if preferred := list(_preferred(preferences)):
        rules["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    found: dict[str, Any] = {"affinity": {"nodeAffinity": rules}} if rules else {}
    if preferences.control_planes:
        toleration = {"key": _CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}
        found["tolerations"] = [toleration]
    return found


def _preferred(preferences: NodePreferences) -> Iterator[dict[str, Any]]:
    if preferences.control_planes:
        yield _term(100, "matchExpressions", {"key": _CONTROL_PLANE, "operator": "Exists"})
    for name in preferences.protected:
        yield _term(100, "matchFields", {"key": "metadata.name", "operator": "In", "values": [name]})
    for key, value in preferences.rather_not:
        yield _term(50, "matchExpressions", {"key": key, "operator": "NotIn", "values": [value]})


def _term(weight: int, kind: str, rule: dict[str, Any]) -> dict[str, Any]:
    return {"weight": weight, "preference": {kind: [rule]}}


def config_keys(files: Iterable[DayFile]) -> dict[str, str]:
    """The key of each file in the ConfigMap, by its path; keys are unique, and say which file it is."""
    keys: dict[str, str] = {}
    for path in sorted(file.path for file in files):
        base = re.sub(r"[^-._A-Za-z0-9]+", "_", path.removeprefix(f"{DAY_ROOT}/").strip("/"))[-200:]
        key, number = base, 1
        while key in keys.values():
            number += 1
            key = f"{base}.{number}"
        keys[path] = key
    return keys


def config_data(deployment: Deployment) -> dict[str, str]:
    """The data of the ConfigMap. Raises UsageError if they are too large for one."""
    keys = config_keys(deployment.files)
    data = {keys[file.path]: file.text for file in deployment.files}
    size = sum(len(key) + len(text.encode()) for key, text in data.items())
    if size > _MAX_BYTES:
        raise UsageError(
            f"the files of {deployment.day} have {size:,} bytes: a ConfigMap takes {_MAX_BYTES:,}",
            hint="split it into several game days",
        )
    return dict(sorted(data.items()))


def config_name(deployment: Deployment) -> str:
    """The name has a hash: a day that has begun keeps its files when others are deployed."""
    text = json.dumps(config_data(deployment), sort_keys=True)
    return f"{deployment.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def file_volumes(deployment: Deployment) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Volumes and their mounts: one for each folder that has files. Raises UsageError for a folder that is taken."""
    keys = config_keys(deployment.files)
    secrets = {file.path: file.key for file in deployment.secret_files}
    volumes, mounts = [], []
    for number, (root, paths) in enumerate(_roots([*keys, *secrets]).items()):
        name = f"files-{number}"
        sources = [
            *_source("configMap", config_name(deployment), root, {path: keys[path] for path in paths if path in keys}),
            *_source("secret", deployment.secret, root, {path: secrets[path] for path in paths if path in secrets}),
        ]
        volumes.append({"name": name, "projected": {"defaultMode": _MODE, "sources": sources}})
        mounts.append({"name": name, "mountPath": root, "readOnly": True})
    return volumes, mounts


def _source(kind: str, name: str, root: str, keys: Mapping[str, str]) -> list[dict[str, Any]]:
    items = [{"key": key, "path": posixpath.relpath(path, root)} for path, key in sorted(keys.items())]
    return [{kind: {"name": name, "items": items}}] if items else []


def _roots(paths: Iterable[str]) -> dict[str, list[str]]:
    """The files by the folder that is mounted for them: no mount is within another."""
    found: dict[str, list[str]] = {}
    for path in sorted(paths, key=lambda path: (posixpath.dirname(path), path)):
        folder = DAY_ROOT if path.startswith(f"{DAY_ROOT}/") else posixpath.dirname(path)
        root = next((root for root in found if f"{folder}/".startswith(f"{root}/")), folder)
        found.setdefault(root, []).append(path)
    for root in found:
        _check_folder(root)
    return found


def _check_folder(folder: str) -> None:
    taken = folder == HOME or any(
        f"{folder}/".startswith(f"{other}/") or f"{other}/".startswith(f"{folder}/") for other in _OCCUPIED
    )
    if taken or folder.count("/") < _MIN_DEPTH:
        raise UsageError(
            f"the inventory names a file in {folder}, which is a different folder in a container",
            hint="put it into a separate folder, such as ~/.ssh or one beside the inventory",
        )


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
    """Of nodefall. The Job's name names the day, so that each Job is a day, and each pod of a Job continues with it."""
    return deployment.run_arguments("--id", f"$({_JOB_ENV})", "--scheduled")


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
