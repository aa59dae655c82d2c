"""The values of a game day for the Helm chart in deploy/helm, which has what all game days have in common."""

from __future__ import annotations

from typing import Any

from chaos.core.permission import role_manifests
from chaos.gameday.deploy.deployment import Deployment
from chaos.gameday.deploy.manifests import cron_job, network_policy, upload_job
from chaos.gameday.deploy.volumes import config_data, config_name

_OF_CONTAINER = ("args", "env", "volumeMounts", "resources")


def helm_values(deployment: Deployment) -> dict[str, Any]:
    """Values with which the chart renders :func:`manifests`, but for the namespace, which is that of the release."""
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
