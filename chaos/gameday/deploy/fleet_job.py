"""What a fleet applies in a cluster: the manifests of a deployment with one Job instead of the CronJob."""

from __future__ import annotations

import hashlib
from typing import Any

from chaos.core.labels import DAY_ANNOTATION, PLAN_ANNOTATION
from chaos.gameday.deploy.deployment import REPORTS, Deployment
from chaos.gameday.deploy.manifests import job_spec, shared_manifests

NOT_DELETED = ("Namespace", "PersistentVolumeClaim")  # kinds that a fleet does not delete: the volume has the reports
_DIGITS = 8


def fleet_objects(deployment: Deployment) -> list[dict[str, Any]]:
    """All objects but the Job, in an order in which they can be created."""
    return shared_manifests(deployment)


def fleet_job_name(deployment: Deployment, day: str, plan_hash: str) -> str:
    """One name for each day and plan, so that the API server refuses a second Job for them."""
    digest = hashlib.sha256(f"{day}\n{plan_hash}".encode()).hexdigest()
    return f"{deployment.name}-{digest[:_DIGITS]}"


def fleet_job(deployment: Deployment, day: str, plan_hash: str) -> dict[str, Any]:
    """The Job that runs the day with this ID, or goes on with it."""
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
    return [
        *("gameday", "run", deployment.gameday, "--inventory", deployment.inventory),
        *("--reports", REPORTS, "--id", day, "--yes", "--plain"),
    ]
