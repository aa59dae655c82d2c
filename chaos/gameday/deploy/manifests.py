"""The manifests of a game day, for ``kubectl apply``, for a fleet, and as values for the Helm chart in deploy/helm.

A fleet applies one Job instead of the CronJob; the chart has what all game days have in common.
"""

from __future__ import annotations

import hashlib
from typing import Any

from chaos.core.labels import DAY_ANNOTATION, PLAN_ANNOTATION
from chaos.core.permission import role_manifests
from chaos.gameday.deploy.deployment import Deployment
from chaos.gameday.deploy.pod import config_data, config_name, pod_template, upload_template

# Of 1.75.1. Renew it with the version.
RCLONE = "docker.io/rclone/rclone:1.75.1@sha256:45401ad7410db1d67ffdb58e19059ad20b0d8e0285a60e38bbec55cc1019c7a5"
_ANY_TIME = "0 0 1 1 *"  # a suspended CronJob needs a schedule
_UPLOADS = "17 * * * *"
_HTTPS = 443
_DNS = 53
_RETRIES = 6
_EXISTING = ("default", "kube-system", "kube-public", "kube-node-lease")
# Exit codes of a day that is over, or must not begin: the same command would not do better. An undo that is pending is
# tried again, and so is a day whose process was killed.
_FINAL_CODES = [1, 2, 4, 64, 70]
NOT_DELETED = ("Namespace", "PersistentVolumeClaim")  # kinds that a fleet does not delete: the volume has the reports
_DIGITS = 8
_OF_CONTAINER = ("args", "env", "volumeMounts", "resources")


def manifests(deployment: Deployment) -> list[dict[str, Any]]:
    """All objects, in an order in which they can be created."""
    upload = [upload_job(deployment)] if deployment.storage.s3 else []
    return [*shared_manifests(deployment), cron_job(deployment), *upload]


def shared_manifests(deployment: Deployment) -> list[dict[str, Any]]:
    """All objects but Jobs and CronJobs, in an order in which they can be created."""
    account = {"kind": "ServiceAccount", "name": deployment.name, "namespace": deployment.namespace}
    roles = role_manifests(deployment.permissions, deployment.name, account)
    for role in roles:
        role["metadata"] = {**role["metadata"], "labels": deployment.labels}
    return [
        *([] if deployment.namespace in _EXISTING else [_namespace(deployment)]),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(deployment)},
        *roles,
        _config(deployment),
        _claim(deployment),
        network_policy(deployment),
    ]


def _metadata(deployment: Deployment, name: str = "") -> dict[str, Any]:
    return {"name": name or deployment.name, "namespace": deployment.namespace, "labels": deployment.labels}


def _namespace(deployment: Deployment) -> dict[str, Any]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": deployment.namespace, "labels": labels}}


def _config(deployment: Deployment) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(deployment, config_name(deployment)),
        "immutable": True,
        "data": config_data(deployment),
    }


def _claim(deployment: Deployment) -> dict[str, Any]:
    storage = deployment.storage
    spec = {
        "accessModes": ["ReadWriteOnce"],
        **({"storageClassName": storage.class_name} if storage.class_name else {}),
        "resources": {"requests": {"storage": storage.size}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": _metadata(deployment), "spec": spec}


def network_policy(deployment: Deployment) -> dict[str, Any]:
    """Nothing connects to the pod, and it connects to nothing but the ports that the day uses."""
    resolve = [{"port": _DNS, "protocol": "UDP"}, {"port": _DNS, "protocol": "TCP"}]
    ports = {(port.number, port.protocol) for port in deployment.ports}
    ports |= {(_HTTPS, "TCP")} if deployment.storage.s3 else set()
    used = [{"port": number, "protocol": protocol} for number, protocol in sorted(ports)]
    spec = {
        "podSelector": {"matchLabels": deployment.labels},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [],
        "egress": [{"ports": resolve}, *([{"ports": used}] if used else [])],
    }
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return {**head, "metadata": _metadata(deployment), "spec": spec}


def job_spec(deployment: Deployment) -> dict[str, Any]:
    """Of a Job that runs the day; a pod that was lost is replaced, and continues with it."""
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {
            "action": "FailJob",
            "onExitCodes": {"containerName": "nodefall", "operator": "In", "values": _FINAL_CODES},
        },
    ]
    return {
        "backoffLimit": _RETRIES,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": rules},
        "template": pod_template(deployment),
    }


def cron_job(deployment: Deployment) -> dict[str, Any]:
    """One day at a time."""
    spec = {
        "schedule": deployment.cron or _ANY_TIME,
        "timeZone": deployment.zone,
        "suspend": not deployment.cron,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": deployment.deadline,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 3,
        "jobTemplate": {"metadata": {"labels": deployment.labels}, "spec": job_spec(deployment)},
    }
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": _metadata(deployment), "spec": spec}


def upload_job(deployment: Deployment) -> dict[str, Any]:
    """Copies reports to a bucket every hour. The run itself needs a file system: it appends, renames and syncs."""
    job = {"backoffLimit": 2, "activeDeadlineSeconds": 3000, "template": upload_template(deployment, RCLONE)}
    spec = {
        "schedule": _UPLOADS,
        "timeZone": deployment.zone,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 600,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"metadata": {"labels": deployment.labels}, "spec": job},
    }
    metadata = _metadata(deployment, f"{deployment.name}-upload")
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def fleet_job_name(deployment: Deployment, day: str, plan_hash: str) -> str:
    """One name for each day and plan, so that the API server refuses a second Job for them."""
    digest = hashlib.sha256(f"{day}\n{plan_hash}".encode()).hexdigest()
    return f"{deployment.name}-{digest[:_DIGITS]}"


def fleet_job(deployment: Deployment, day: str, plan_hash: str) -> dict[str, Any]:
    """The Job that runs the day with this ID, or continues with it."""
    spec = job_spec(deployment)
    container = spec["template"]["spec"]["containers"][0]
    container["args"] = _arguments(deployment, day)
    container["terminationMessagePolicy"] = "FallbackToLogsOnError"  # why it was refused is then in the pod's status
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": fleet_job_name(deployment, day, plan_hash),
            "namespace": deployment.namespace,
            "labels": deployment.labels,
            "annotations": {DAY_ANNOTATION: day, PLAN_ANNOTATION: plan_hash},
        },
        "spec": spec,
    }


def _arguments(deployment: Deployment, day: str) -> list[str]:
    return deployment.run_arguments("--id", day)


def helm_values(deployment: Deployment) -> dict[str, Any]:
    """Values with which the chart renders :func:`manifests`, except for the namespace, which is that of the release."""
    job = cron_job(deployment)["spec"]
    pod = job["jobTemplate"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    roles = [each for each in role_manifests(deployment.permissions, deployment.name, {}) if "rules" in each]
    return {
        "name": deployment.name,
        "labels": deployment.labels,
        "image": deployment.image,
        "schedule": job["schedule"],
        "timeZone": job["timeZone"],
        "suspend": job["suspend"],
        "startingDeadlineSeconds": job["startingDeadlineSeconds"],
        "storage": {"size": deployment.storage.size, "className": deployment.storage.class_name},
        "roles": [{"namespace": each["metadata"].get("namespace", ""), "rules": each["rules"]} for each in roles],
        "files": {"name": config_name(deployment), "data": config_data(deployment)},
        "egress": network_policy(deployment)["spec"]["egress"],
        **{key: container[key] for key in _OF_CONTAINER},
        "volumes": pod["volumes"],
        "affinity": pod.get("affinity", {}),
        "tolerations": pod.get("tolerations", []),
        "upload": upload_job(deployment)["spec"] if deployment.storage.s3 else {},
    }
